//! Profiles for programs. The keys are described in `docs/profiles.md` and stay what they are.

use model::{Dim3, Kernel, Site};
use profile::{Demoted, Record, Spans};

use super::kept::{Kept, Known, KnownKernel};
use crate::json::Json;

/// Kernels wherever they are launched.
pub fn list(kept: &Kept) -> Json {
    document(kept, |known| {
        let described = record(&known.kernel, None, &known.anywhere);
        vec![described.and([("sites", (known.sites.len() as u64).into())])]
    })
}

/// Every record there is.
pub fn all(kept: &Kept) -> Json {
    document(kept, |known| known.records().map(|(site, at)| record(&known.kernel, site, at)).collect())
}

fn document(kept: &Kept, records: impl Fn(&KnownKernel) -> Vec<Json>) -> Json {
    let platforms = kept.platforms.iter().map(|known| platform(known, &records)).collect();
    let demoted = kept.demoted.iter().map(demoted).collect();
    Json::object([("platforms", Json::List(platforms)), ("demoted_by_guard", Json::List(demoted))])
}

fn platform(known: &Known, records: impl Fn(&KnownKernel) -> Vec<Json>) -> Json {
    Json::object([
        ("gpu", known.platform.gpu().into()),
        ("driver", known.platform.driver().into()),
        ("ebb", known.platform.ebb().into()),
        ("bytes", known.bytes.into()),
        ("damaged_bytes", (known.damage.bytes as u64).into()),
        ("kernels", Json::List(known.kernels.iter().flat_map(records).collect())),
    ])
}

fn record(kernel: &Kernel, site: Option<Site>, record: &Record) -> Json {
    let demotions = record.demotions.iter().map(|(reason, demotion)| {
        Json::object([
            ("reason", reason.as_str().into()),
            ("count", demotion.count.into()),
            ("last_ns", demotion.last.0.into()),
        ])
    });
    let geometry = kernel.geometry;
    Json::object([
        ("id", kernel.id().to_string().into()),
        ("name", kernel.name.as_str().into()),
        ("module", kernel.module.to_string().into()),
        ("grid", extents(geometry.grid)),
        ("block", extents(geometry.block)),
        ("shared_bytes", geometry.shared_bytes.into()),
        ("rung", kernel.rung.name().into()),
        ("site", site.map(|site| site.to_string()).into()),
        ("launches", record.launches.into()),
        ("stops", record.stops.into()),
        ("broken", record.broken.into()),
        ("certificate_ns", record.certificate.map(|certificate| certificate.latency.0).into()),
        ("last_seen_ns", record.last_seen.0.into()),
        ("demotions", Json::List(demotions.collect())),
        ("duration", spans(&record.duration)),
        ("block_time", spans(&record.block)),
        ("gap", spans(&record.gap)),
    ])
}

fn extents(extents: Dim3) -> Json {
    Json::list([extents.x, extents.y, extents.z])
}

fn spans(spans: &Spans) -> Json {
    let quantile = |thousandths| Json::from(spans.quantile(thousandths).map(|time| time.0));
    Json::object([
        ("seen", spans.seen().into()),
        ("p10_ns", quantile(100)),
        ("p50_ns", quantile(500)),
        ("p90_ns", quantile(900)),
        ("p99_ns", quantile(990)),
    ])
}

fn demoted(demoted: &Demoted) -> Json {
    Json::object([
        ("name", demoted.name.as_str().into()),
        ("code", format!("{:032x}", demoted.code).into()),
        ("reason", demoted.reason.as_str().into()),
        ("when_ns", demoted.when.0.into()),
    ])
}
