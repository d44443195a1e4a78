//! Profiles as a table, a record to a line.

use std::fmt::Write as _;

use model::{Kernel, Site};
use profile::{Platform, Record, Spans};

use super::kept::Kept;

const COLUMNS: &str = "gpu,driver,ebb,id,name,module,grid,block,shared_bytes,rung,site,launches,stops,broken,\
    certificate_ns,last_seen_ns,demoted,\
    duration_seen,duration_p10_ns,duration_p50_ns,duration_p90_ns,duration_p99_ns,\
    block_seen,block_p10_ns,block_p50_ns,block_p90_ns,block_p99_ns,\
    gap_seen,gap_p10_ns,gap_p50_ns,gap_p90_ns,gap_p99_ns";

pub fn all(kept: &Kept) -> String {
    let mut page = format!("{COLUMNS}\n");
    for known in &kept.platforms {
        for kernel in &known.kernels {
            for (site, record) in kernel.records() {
                line(&mut page, &known.platform, &kernel.kernel, site, record);
            }
        }
    }
    page
}

fn line(page: &mut String, platform: &Platform, kernel: &Kernel, site: Option<Site>, record: &Record) {
    let reasons: Vec<_> = record.demotions.keys().map(|reason| reason.as_str()).collect();
    let geometry = kernel.geometry;
    let mut cells = vec![
        cell(platform.gpu()),
        cell(platform.driver()),
        cell(platform.ebb()),
        kernel.id().to_string(),
        cell(&kernel.name),
        kernel.module.to_string(),
        geometry.grid.to_string(),
        geometry.block.to_string(),
        geometry.shared_bytes.to_string(),
        kernel.rung.name().to_owned(),
        site.map(|site| site.to_string()).unwrap_or_default(),
        record.launches.to_string(),
        record.stops.to_string(),
        record.broken.to_string(),
        record.certificate.map(|certificate| certificate.latency.0.to_string()).unwrap_or_default(),
        record.last_seen.0.to_string(),
        reasons.join(" "),
    ];
    [&record.duration, &record.block, &record.gap].iter().for_each(|spans| cells.extend(times(spans)));
    writeln!(page, "{}", cells.join(",")).expect("a string takes everything");
}

fn times(spans: &Spans) -> impl Iterator<Item = String> {
    let quantile =
        |thousandths| spans.quantile(thousandths).map(|time| time.0.to_string()).unwrap_or_default();
    [spans.seen().to_string()].into_iter().chain([100, 500, 900, 990].map(quantile))
}

/// In quotes where it must be.
fn cell(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
