//! Which metrics there are.
//!
//! Names follow the conventions of Prometheus: base units in the name, ratios from nought to one, one prefix. They are not
//! renamed: dashboards and bills are made of them.

use model::Nanos;

use crate::text::{Samples, Seconds, Subjects, label};

/// What kind of value a metric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Labels are all there is to say; the value is 1.
    Info,
    Gauge,
    Counter,
    Histogram,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Info => "info",
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
        }
    }
}

/// A metric: all series of one name.
#[derive(Debug)]
pub struct Family {
    /// As queries have it; of a histogram, without the endings of its series.
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    pub help: &'static str,
    samples: fn(&Subjects<'_>, &mut Samples<'_>),
}

impl Family {
    /// The name without the ending that its kind gives it.
    pub fn stem(&self) -> &'static str {
        let ending = match self.kind {
            Kind::Info => "_info",
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Histogram => "",
        };
        self.name.strip_suffix(ending).expect("a test sees to it that names end as their kinds do")
    }

    pub fn unit(&self) -> Option<&'static str> {
        ["seconds", "bytes", "ratio"].into_iter().find(|unit| self.stem().ends_with(unit))
    }

    /// The names of its series.
    pub fn series(&self) -> Vec<String> {
        match self.kind {
            Kind::Histogram => ["_bucket", "_count", "_sum"].map(|end| format!("{}{end}", self.name)).into(),
            _ => vec![self.name.to_owned()],
        }
    }

    pub(crate) fn write(&self, subjects: &Subjects<'_>, out: &mut Samples<'_>) {
        (self.samples)(subjects, out);
    }
}

const GPU: &[&str] = &["gpu", "gpu_uuid"];
const GPU_RUNG: &[&str] = &["gpu", "gpu_uuid", "rung"];
const TENANT: &[&str] = &["gpu", "gpu_uuid", "tenant", "class"];
const TENANT_RUNG: &[&str] = &["gpu", "gpu_uuid", "tenant", "class", "rung"];

const fn us(micros: u64) -> Nanos {
    Nanos(micros * 1_000)
}

const fn ms(millis: u64) -> Nanos {
    Nanos(millis * 1_000_000)
}

/// A wait is as long as a turn of somebody else, or a few.
const WAITS: [(Nanos, &str); 17] = [
    (us(10), "1e-05"),
    (us(50), "5e-05"),
    (us(100), "0.0001"),
    (us(500), "0.0005"),
    (ms(1), "0.001"),
    (ms(5), "0.005"),
    (ms(10), "0.01"),
    (ms(25), "0.025"),
    (ms(50), "0.05"),
    (ms(100), "0.1"),
    (ms(250), "0.25"),
    (ms(500), "0.5"),
    (ms(1_000), "1.0"),
    (ms(2_500), "2.5"),
    (ms(5_000), "5.0"),
    (ms(10_000), "10.0"),
    (ms(30_000), "30.0"),
];

/// Boards tell times apart from a microsecond on.
const STOPS: [(Nanos, &str); 15] = [
    (us(2), "2e-06"),
    (us(5), "5e-06"),
    (us(10), "1e-05"),
    (us(20), "2e-05"),
    (us(50), "5e-05"),
    (us(100), "0.0001"),
    (us(200), "0.0002"),
    (us(500), "0.0005"),
    (ms(1), "0.001"),
    (ms(2), "0.002"),
    (ms(5), "0.005"),
    (ms(10), "0.01"),
    (ms(20), "0.02"),
    (ms(50), "0.05"),
    (ms(100), "0.1"),
];

/// All metrics, in the order in which they are written.
pub const FAMILIES: &[Family] = &[
    Family {
        name: "ebb_build_info",
        kind: Kind::Info,
        labels: &["version"],
        help: "The version of the daemon.",
        samples: |subjects, out| out.with("", "version", &subjects.observation.version, 1),
    },
    Family {
        name: "ebb_gpu_info",
        kind: Kind::Info,
        labels: &["gpu", "gpu_uuid", "domain", "policy"],
        help: "A GPU that tenants share, how its contexts share it and which policy decides.",
        samples: |subjects, out| {
            for (gpu, labels) in &subjects.gpus {
                let mut labels = labels.clone();
                label(&mut labels, "domain", &gpu.domain);
                label(&mut labels, "policy", &gpu.policy);
                out.value(&labels, 1);
            }
        },
    },
    Family {
        name: "ebb_tenant_info",
        kind: Kind::Info,
        labels: &["gpu", "gpu_uuid", "tenant", "class", "user", "weight", "priority"],
        help: "A tenant that has processes on the GPU now.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                let Some(now) = &tenant.now else { continue };
                let mut labels = labels.clone();
                label(&mut labels, "user", tenant.user);
                label(&mut labels, "weight", now.weight);
                label(&mut labels, "priority", now.priority);
                out.value(&labels, 1);
            }
        },
    },
    Family {
        name: "ebb_tenant_gpu_time_seconds_total",
        kind: Kind::Counter,
        labels: TENANT,
        help: "Time for which a tenant had work on the GPU and was not stopped.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                out.value(labels, Seconds(Nanos(tenant.figures.gpu_ns)));
            }
        },
    },
    Family {
        name: "ebb_tenant_launches_total",
        kind: Kind::Counter,
        labels: TENANT,
        help: "Kernels that a tenant launched, those inside graphs counted one by one.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                out.value(labels, tenant.figures.launches);
            }
        },
    },
    Family {
        name: "ebb_tenant_launch_wait_seconds",
        kind: Kind::Histogram,
        labels: TENANT,
        help: "How long threads of a tenant were kept waiting before they could hand over work.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                out.histogram(labels, &tenant.figures.wait_times, &WAITS);
            }
        },
    },
    Family {
        name: "ebb_tenant_memory_used_bytes",
        kind: Kind::Gauge,
        labels: TENANT,
        help: "Device memory that the processes of a tenant have now; absent when there are none.",
        samples: |subjects, out| memory(subjects, &mut |labels, memory| out.value(labels, memory.used)),
    },
    Family {
        name: "ebb_tenant_memory_limit_bytes",
        kind: Kind::Gauge,
        labels: TENANT,
        help: "Device memory that a tenant may allocate; absent where there is no limit.",
        samples: |subjects, out| {
            memory(subjects, &mut |labels, memory| {
                memory.limit.into_iter().for_each(|limit| out.value(labels, limit));
            });
        },
    },
    Family {
        name: "ebb_tenant_memory_denials_total",
        kind: Kind::Counter,
        labels: TENANT,
        help: "Allocations that were refused because of a tenant's limit.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                out.value(labels, tenant.figures.memory_denials);
            }
        },
    },
    Family {
        name: "ebb_tenant_slices_lengthened_total",
        kind: Kind::Counter,
        labels: TENANT,
        help: "Times that a best-effort tenant lengthened its timeslice because nothing got done with the short one.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                out.value(labels, tenant.figures.slices_lengthened);
            }
        },
    },
    Family {
        name: "ebb_tenant_slowdown_ratio",
        kind: Kind::Gauge,
        labels: &["gpu", "gpu_uuid", "tenant", "class", "quantile"],
        help: "How long requests of a latency tenant take lately, over what they take alone; absent until both are known.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                let Some(slowdown) = tenant.now.as_ref().and_then(|now| now.slowdown) else { continue };
                out.with(labels, "quantile", "0.5", slowdown.p50);
                out.with(labels, "quantile", "0.99", slowdown.p99);
            }
        },
    },
    Family {
        name: "ebb_preemptions_total",
        kind: Kind::Counter,
        labels: TENANT_RUNG,
        help: "Times that a tenant was stopped, by the means that stopped it.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                let figures = &tenant.figures;
                out.with(labels, "rung", "hold", figures.stops_hold);
                out.with(labels, "rung", "guard", figures.stops_guard);
                // By its own lever, and by the hardware because its slice is the shortest.
                out.with(labels, "rung", "switch", figures.stops_switch.saturating_add(figures.preempted));
            }
        },
    },
    Family {
        name: "ebb_preemption_latency_seconds",
        kind: Kind::Histogram,
        labels: GPU_RUNG,
        help: "From the moment a stop was known to the moment the work had left the GPU.",
        samples: |subjects, out| {
            for (gpu, labels) in &subjects.gpus {
                let all = &gpu.all;
                let rungs =
                    [("hold", &all.hold_times), ("guard", &all.guard_times), ("switch", &all.switch_times)];
                for (rung, times) in rungs {
                    let mut labels = labels.clone();
                    label(&mut labels, "rung", rung);
                    out.histogram(&labels, times, &STOPS);
                }
            }
        },
    },
    Family {
        name: "ebb_resumes_total",
        kind: Kind::Counter,
        labels: TENANT,
        help: "Times that a stopped tenant went on.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                out.value(labels, tenant.figures.resumes);
            }
        },
    },
    Family {
        name: "ebb_slo_target_seconds",
        kind: Kind::Gauge,
        labels: TENANT,
        help: "The time that 99 of 100 requests of a tenant should not exceed; absent where there is none.",
        samples: |subjects, out| {
            for (tenant, labels) in &subjects.tenants {
                let Some(slo) = tenant.now.as_ref().and_then(|now| now.slo) else { continue };
                out.value(labels, Seconds(slo));
            }
        },
    },
    Family {
        name: "ebb_slo_requests_total",
        kind: Kind::Counter,
        labels: TENANT,
        help: "Requests of a latency tenant.",
        samples: |subjects, out| {
            for (tenant, labels) in latency(subjects) {
                out.value(labels, tenant.figures.bursts);
            }
        },
    },
    Family {
        name: "ebb_slo_violations_total",
        kind: Kind::Counter,
        labels: TENANT,
        help: "Requests of a latency tenant that took longer than its objective.",
        samples: |subjects, out| {
            for (tenant, labels) in latency(subjects) {
                out.value(labels, tenant.figures.slo_missed);
            }
        },
    },
    Family {
        name: "ebb_harvested_gpu_seconds_total",
        kind: Kind::Counter,
        labels: GPU,
        help: "GPU time of best-effort tenants.",
        samples: |subjects, out| {
            for (gpu, labels) in &subjects.gpus {
                out.value(labels, Seconds(gpu.harvested));
            }
        },
    },
    Family {
        name: "ebb_tenants_gathered_total",
        kind: Kind::Counter,
        labels: GPU,
        help: "Times that a tenant came to be counted in the series other@UID, because its user has too many names.",
        samples: |subjects, out| {
            for (gpu, labels) in &subjects.gpus {
                out.value(labels, gpu.gathered);
            }
        },
    },
    Family {
        name: "ebb_gpu_idle_seconds_total",
        kind: Kind::Counter,
        labels: GPU,
        help: "Time for which no tenant had work on the GPU, since the daemon first saw a tenant on it.",
        samples: |subjects, out| {
            for (gpu, labels) in &subjects.gpus {
                out.value(labels, Seconds(gpu.idle));
            }
        },
    },
    Family {
        name: "ebb_clients",
        kind: Kind::Gauge,
        labels: &["gpu", "gpu_uuid", "class"],
        help: "Processes of tenants on the GPU.",
        samples: |subjects, out| {
            for (gpu, labels) in &subjects.gpus {
                out.with(labels, "class", "latency", gpu.clients.latency);
                out.with(labels, "class", "best-effort", gpu.clients.best_effort);
            }
        },
    },
    Family {
        name: "ebb_client_disconnects_total",
        kind: Kind::Counter,
        labels: &["reason"],
        help: "Processes of tenants that are gone: exit (their program ended), death (killed, or ended in the middle), expelled (broke the rules).",
        samples: |subjects, out| {
            let disconnects = subjects.observation.disconnects;
            out.with("", "reason", "exit", disconnects.exit);
            out.with("", "reason", "death", disconnects.death);
            out.with("", "reason", "expelled", disconnects.expelled);
        },
    },
    Family {
        name: "ebb_unmanaged_processes",
        kind: Kind::Gauge,
        labels: GPU,
        help: "Processes that compute on the GPU and are no tenants; absent where that cannot be known.",
        samples: |subjects, out| {
            for (gpu, labels) in &subjects.gpus {
                gpu.unmanaged.into_iter().for_each(|count| out.value(labels, count));
            }
        },
    },
    Family {
        name: "ebb_degraded",
        kind: Kind::Gauge,
        labels: &["reason"],
        help: "1 where something is not as it should be: mps (the shared domain's service is down), rung (a best-effort tenant cannot be stopped by the means of its domain), silent (a tenant shows no life).",
        samples: |subjects, out| {
            let health = subjects.observation.health;
            for (reason, is_so) in [("mps", health.mps), ("rung", health.rung), ("silent", health.silent)] {
                out.with("", "reason", reason, u8::from(is_so));
            }
        },
    },
    Family {
        name: "ebb_config_last_reload_successful",
        kind: Kind::Gauge,
        labels: &[],
        help: "1 unless the configuration was wrong when it was last read.",
        samples: |subjects, out| out.value("", u8::from(subjects.observation.reload.successful)),
    },
    Family {
        name: "ebb_config_last_reload_success_timestamp_seconds",
        kind: Kind::Gauge,
        labels: &[],
        help: "When the configuration was last read and found right.",
        samples: |subjects, out| out.value("", subjects.observation.reload.at),
    },
];

/// The tenants that have requests.
fn latency<'a>(subjects: &'a Subjects<'_>) -> impl Iterator<Item = &'a (&'a crate::Tenant, String)> {
    subjects.tenants.iter().filter(|(tenant, _)| tenant.class == model::Class::Latency)
}

fn memory(subjects: &Subjects<'_>, each: &mut dyn FnMut(&str, crate::Memory)) {
    for (tenant, labels) in &subjects.tenants {
        if let Some(memory) = tenant.now.as_ref().and_then(|now| now.memory) {
            each(labels, memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_as_their_kinds_do_and_stand_once() {
        let mut names = std::collections::BTreeSet::new();
        for family in FAMILIES {
            assert!(family.name.starts_with("ebb_") && names.insert(family.name), "{}", family.name);
            assert!(!family.stem().ends_with("_total"), "{}", family.name);
            let ends = |ending| family.name.ends_with(ending);
            assert_eq!(ends("_total"), family.kind == Kind::Counter, "{}", family.name);
            assert_eq!(ends("_info"), family.kind == Kind::Info, "{}", family.name);
            assert!(!family.help.contains('\n') && family.help.ends_with('.'), "{}", family.name);
        }
    }

    #[test]
    fn bounds_rise_and_are_what_they_are_written_as() {
        for bounds in [&WAITS[..], &STOPS[..]] {
            assert!(bounds.windows(2).all(|pair| pair[0].0 < pair[1].0));
            for (bound, written) in bounds {
                let seconds: f64 = written.parse().unwrap();
                assert!((seconds - bound.as_secs_f64()).abs() < 1e-12, "{written}");
            }
        }
    }
}
