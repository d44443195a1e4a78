//! What is written, read again.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod exposition;

use std::process::Command;

use board::{Board, Figures, Occupant, Settings};
use export::{
    Clients, Disconnects, FAMILIES, Format, Gpu, Health, Memory, Now, Observation, Reload, Slowdown, Tenant,
    text,
};
use exposition::Exposition;
use model::{Class, Nanos};
use proptest::prelude::*;

/// What a seat has counted to which this is done.
fn figures(count: impl FnOnce(&board::Tally)) -> Box<Figures> {
    let board = Board::private(board::Gpu([7; 16]), &Settings::default()).unwrap();
    let occupant = Occupant {
        pid: std::process::id(),
        tenant: 1,
        class: Class::BestEffort,
        weight: 1,
        priority: 0,
        slo: None,
        memory: None,
        name: b"a",
        program: b"a",
    };
    let place = board.take(&occupant).unwrap();
    let seat = board.sit(place).unwrap();
    count(seat.tally());
    let figures = board.seats().next().unwrap().1.figures;
    Box::new(figures)
}

fn tenant(name: &str, class: Class) -> Tenant {
    let now = Now {
        weight: 2,
        priority: 1,
        slo: Some(Nanos::from_millis(20)),
        slowdown: Some(Slowdown { p50: 1.0, p99: 1.25 }),
        memory: Some(Memory { used: 1 << 30, limit: Some(2 << 30) }),
    };
    let figures = figures(|tally| {
        tally.launches.add(12);
        tally.gpu_ns.add(1_500_000_000);
        tally.stops_switch.add(2);
        tally.preempted.add(3);
        tally.bursts.add(100);
        tally.slo_missed.add(1);
        tally.memory_denials.add(3);
        tally.wait_times.record(Nanos::from_millis(2));
        tally.wait_times.record(Nanos::from_millis(60_000));
        tally.guard_times.record(Nanos::from_micros(7));
    });
    Tenant { name: name.to_owned(), class, user: 1000, now: Some(now), figures }
}

fn observation(tenants: Vec<Tenant>) -> Observation {
    let mut all = Figures::NONE;
    tenants.iter().for_each(|tenant| all.add(&tenant.figures));
    let gpu = Gpu {
        index: Some(0),
        uuid: "GPU-07070707-0707-0707-0707-070707070707".to_owned(),
        domain: "isolated".to_owned(),
        policy: "slo".to_owned(),
        clients: Clients { latency: 1, best_effort: 1 },
        unmanaged: Some(2),
        idle: Nanos::from_millis(250),
        harvested: Nanos::from_millis(1_500),
        gathered: 3,
        all: Box::new(all),
        tenants,
    };
    Observation {
        version: "0.1.0".to_owned(),
        gpus: vec![gpu],
        disconnects: Disconnects { exit: 4, death: 1, expelled: 0 },
        health: Health { rung: true, ..Health::default() },
        reload: Reload { successful: true, at: 1_790_000_000.25 },
    }
}

fn both() -> Observation {
    observation(vec![tenant("search", Class::Latency), tenant("train \"1\"", Class::BestEffort)])
}

#[test]
fn figures_are_what_was_counted() {
    let read = Exposition::read(&text(&both(), Format::OpenMetrics));
    let search = [("tenant", "search"), ("class", "latency"), ("gpu", "0")];
    let train = [("tenant", "train \"1\""), ("class", "best-effort")];
    assert_eq!(read.get("ebb_tenant_launches_total", &search), Some(12.0));
    assert_eq!(read.get("ebb_tenant_gpu_time_seconds_total", &train), Some(1.5));
    assert_eq!(read.get("ebb_slo_target_seconds", &search), Some(0.02));
    assert_eq!(read.get("ebb_slo_requests_total", &search), Some(100.0));
    assert_eq!(read.get("ebb_slo_violations_total", &search), Some(1.0));
    assert_eq!(read.get("ebb_tenant_memory_denials_total", &search), Some(3.0));
    assert_eq!(read.get("ebb_tenant_memory_limit_bytes", &search), Some(2_147_483_648.0));
    assert_eq!(read.get("ebb_slo_requests_total", &train), None, "best-effort tenants have no requests");
    let rung = |rung| [("tenant", "search"), ("rung", rung)];
    assert_eq!(read.get("ebb_preemptions_total", &rung("switch")), Some(5.0));
    assert_eq!(read.get("ebb_preemptions_total", &rung("hold")), Some(0.0));
    let slowdown = [("tenant", "search"), ("quantile", "0.99")];
    assert_eq!(read.get("ebb_tenant_slowdown_ratio", &slowdown), Some(1.25));
    assert_eq!(read.get("ebb_client_disconnects_total", &[("reason", "death")]), Some(1.0));
    assert_eq!(read.get("ebb_degraded", &[("reason", "rung")]), Some(1.0));
    assert_eq!(read.get("ebb_degraded", &[("reason", "mps")]), Some(0.0));
    assert_eq!(read.get("ebb_unmanaged_processes", &[]), Some(2.0));
    assert_eq!(read.get("ebb_config_last_reload_success_timestamp_seconds", &[]), Some(1_790_000_000.25));
}

#[test]
fn a_histogram_says_nothing_was_faster_than_it_was() {
    let read = Exposition::read(&text(&both(), Format::OpenMetrics));
    let wait = |le| {
        let labels = [("tenant", "search"), ("le", le)];
        read.get("ebb_tenant_launch_wait_seconds_bucket", &labels).unwrap()
    };
    assert_eq!((wait("0.001"), wait("0.005"), wait("30.0"), wait("+Inf")), (0.0, 1.0, 1.0, 2.0));
    assert_eq!(read.get("ebb_tenant_launch_wait_seconds_sum", &[("tenant", "search")]), Some(60.002));
    let stop = |le| {
        let labels = [("rung", "guard"), ("le", le)];
        read.get("ebb_preemption_latency_seconds_bucket", &labels).unwrap()
    };
    assert_eq!((stop("5e-06"), stop("1e-05"), stop("+Inf")), (0.0, 2.0, 2.0));
}

#[test]
fn every_metric_has_series_with_its_labels_and_no_others() {
    let read = Exposition::read(&text(&both(), Format::OpenMetrics));
    for family in FAMILIES {
        assert_eq!(read.types[family.stem()], family.kind.name());
        for name in family.series() {
            let series: Vec<_> = read.values.keys().filter(|series| series.name == name).collect();
            assert!(!series.is_empty(), "{name}");
            for series in series {
                let found: Vec<_> = series.labels.keys().filter(|key| *key != "le").collect();
                let mut wanted: Vec<_> = family.labels.to_vec();
                wanted.sort_unstable();
                assert_eq!(found, wanted, "{name}");
            }
        }
    }
}

#[test]
fn what_is_not_known_is_absent_and_what_has_not_happened_is_nought() {
    let tenant = Tenant { now: None, figures: Box::new(Figures::NONE), ..tenant("new", Class::Latency) };
    let mut observation = observation(vec![tenant]);
    observation.gpus[0].unmanaged = None;
    observation.gpus[0].index = None;
    let read = Exposition::read(&text(&observation, Format::OpenMetrics));
    for absent in ["ebb_unmanaged_processes", "ebb_slo_target_seconds", "ebb_tenant_memory_used_bytes"] {
        assert_eq!(read.get(absent, &[]), None);
    }
    let new = [("tenant", "new"), ("gpu", "")];
    for nought in [
        "ebb_tenant_launches_total",
        "ebb_tenant_gpu_time_seconds_total",
        "ebb_tenant_launch_wait_seconds_count",
        "ebb_resumes_total",
        "ebb_slo_requests_total",
        "ebb_slo_violations_total",
    ] {
        assert_eq!(read.get(nought, &new), Some(0.0), "{nought}");
    }
}

#[test]
fn the_older_format_has_the_same_series() {
    let (new, old) = (text(&both(), Format::OpenMetrics), text(&both(), Format::Prometheus));
    let series = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    assert_eq!(series(&new), series(&old));
    assert!(
        old.contains("# TYPE ebb_tenant_launches_total counter\n")
            && old.contains("# TYPE ebb_build_info gauge\n")
    );
    assert!(!old.contains("# EOF") && !old.contains("# UNIT"));
}

/// The reader that others use, where there is one.
#[test]
fn the_clients_library_of_prometheus_reads_it() {
    let script = "import sys\n\
        try:\n    from prometheus_client.openmetrics.parser import text_string_to_metric_families as new\n    \
        from prometheus_client.parser import text_string_to_metric_families as old\n\
        except ImportError:\n    sys.exit(77)\n\
        read = {'new': new, 'old': old}[sys.argv[1]]\n\
        print(sum(len(family.samples) for family in read(open(sys.argv[2]).read())))";
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [("new", Format::OpenMetrics), ("old", Format::Prometheus)] {
        let (path, written) = (folder.path().join(name), text(&both(), format));
        std::fs::write(&path, &written).unwrap();
        let Ok(output) = Command::new("python3").args(["-c", script, name]).arg(&path).output() else {
            return eprintln!("skipped: there is no python3");
        };
        if output.status.code() == Some(77) {
            return eprintln!("skipped: there is no prometheus_client for python3");
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let samples = written.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), samples.to_string());
    }
}

proptest! {
    #[test]
    fn any_name_comes_back_as_it_was(name in "[^\\p{C}]{0,20}") {
        let written = text(&observation(vec![tenant(&name, Class::Latency)]), Format::OpenMetrics);
        let read = Exposition::read(&written);
        prop_assert_eq!(read.get("ebb_tenant_launches_total", &[("tenant", &name)]), Some(12.0));
    }
}
