//! Profiles for people.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use model::{Kernel, Nanos};
use profile::{Record, Spans};

use super::kept::{Kept, Known, KnownKernel};
use crate::run::report::{cut, readable};

const NAME: usize = 60;
/// Letters of an id that tell kernels of one list apart.
const ID: usize = 8;
const WIDE: &str = "a string takes everything";

pub fn list(kept: &Kept, now: Nanos) -> String {
    if kept.platforms.is_empty() {
        return format!("Nothing is known of any kernel yet; what is learned is kept in {}.\n", kept.folder);
    }
    let mut page = kept.platforms.iter().map(|known| platform(known, now)).collect::<Vec<_>>().join("\n");
    if !kept.demoted.is_empty() {
        let names: BTreeSet<_> = kept.demoted.iter().map(|demoted| &demoted.name).collect();
        let noun = if names.len() == 1 { "kernel" } else { "kernels" };
        writeln!(page, "\nThe guard has demoted {} {noun}; `ebb profile show` says why.", names.len())
            .expect(WIDE);
    }
    page
}

fn title(known: &Known) -> String {
    let platform = &known.platform;
    format!("{}, driver {}, ebb {}", platform.gpu(), platform.driver(), platform.ebb())
}

fn platform(known: &Known, now: Nanos) -> String {
    let kernels = known.kernels.len();
    let noun = if kernels == 1 { "kernel" } else { "kernels" };
    let mut page = format!("{}: {kernels} {noun}, {} kB\n", title(known), known.bytes.div_ceil(1000));
    if !known.damage.is_none() {
        writeln!(page, "  {} bytes are damaged and were passed over", known.damage.bytes).expect(WIDE);
    }
    let mut line = |cells: [&str; 11]| {
        let [id, launches, p50, p99, block, gap, stops, sites, seen, rung, kernel] = cells;
        write!(page, "  {id:8}{launches:>10}{p50:>10}{p99:>10}{block:>11}{gap:>10}{stops:>10}").expect(WIDE);
        writeln!(page, "{sites:>7}{seen:>11}  {rung:30}{kernel}").expect(WIDE);
    };
    line([
        "id",
        "launches",
        "p50",
        "p99",
        "block p99",
        "gap p50",
        "stops in",
        "sites",
        "last seen",
        "rung",
        "kernel",
    ]);
    for known in &known.kernels {
        let record = &known.anywhere;
        line([
            &known.kernel.id().to_string()[..ID],
            &record.launches.to_string(),
            &quantile(&record.duration, 500),
            &quantile(&record.duration, 990),
            &quantile(&record.block, 990),
            &quantile(&record.gap, 500),
            &record.certificate.map_or("–".to_owned(), |certificate| certificate.latency.to_string()),
            &known.sites.len().to_string(),
            &ago(record.last_seen, now),
            &rung(&known.kernel, record),
            &format!("{}  {}", cut(&readable(&known.kernel.name), NAME), shape(&known.kernel)),
        ]);
    }
    page
}

/// The rung, and the last reason for which it is not a better one.
fn rung(kernel: &Kernel, record: &Record) -> String {
    let last = record.demotions.iter().max_by_key(|(_, demotion)| demotion.last);
    match last {
        Some((reason, _)) => format!("{}: {}", kernel.rung, reason.as_str()),
        None => kernel.rung.to_string(),
    }
}

fn shape(kernel: &Kernel) -> String {
    format!("{} of {}", kernel.geometry.grid, kernel.geometry.block)
}

fn quantile(spans: &Spans, thousandths: u32) -> String {
    spans.quantile(thousandths).map_or("–".to_owned(), |time| time.to_string())
}

pub fn show(kept: &Kept, now: Nanos) -> String {
    let mut parts = Vec::new();
    for known in &kept.platforms {
        parts.extend(known.kernels.iter().map(|kernel| one(known, kernel, now)));
    }
    if !kept.demoted.is_empty() {
        let mut page = "found out by the guard, on whatever GPU\n".to_owned();
        for demoted in &kept.demoted {
            let (reason, when) = (demoted.reason.as_str(), ago(demoted.when, now));
            writeln!(page, "  {reason}, {when}, of the code {:032x}", demoted.code).expect(WIDE);
        }
        parts.push(page);
    }
    parts.join("\n")
}

fn one(platform: &Known, known: &KnownKernel, now: Nanos) -> String {
    let (kernel, record) = (&known.kernel, &known.anywhere);
    let name = readable(&kernel.name);
    let mut page = format!("{name}\n");
    let mut line = |what: &str, value: String| writeln!(page, "  {what:12}{value}").expect(WIDE);
    if name != kernel.name {
        line("symbol", kernel.name.clone());
    }
    line("id", kernel.id().to_string());
    line("module", kernel.module.to_string());
    line("shape", format!("{}, {} bytes of shared memory", shape(kernel), kernel.geometry.shared_bytes));
    line("rung", kernel.rung.to_string());
    line("on", title(platform));
    line("launches", format!("{}, {} of them timed", record.launches, record.duration.seen()));
    line("last seen", ago(record.last_seen, now));
    if let Some(certificate) = record.certificate {
        line("stops in", format!("{}, promised {}", certificate.latency, ago(certificate.since, now)));
    }
    if record.stops > 0 || record.broken > 0 {
        line("stopped", format!("{}, {} of them later than promised", times(record.stops), record.broken));
    }
    for (reason, demotion) in &record.demotions {
        let last = ago(demotion.last, now);
        line("demoted", format!("{}, {}, last {last}", reason.as_str(), times(demotion.count)));
    }
    page.push_str(&quantiles(record));
    if !known.sites.is_empty() {
        page.push_str(&sites(known));
    }
    page
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn quantiles(record: &Record) -> String {
    let rows = [("duration", &record.duration), ("block", &record.block), ("gap", &record.gap)];
    let mut page = format!("  {:12}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "", "p10", "p50", "p90", "p99", "seen");
    for (what, spans) in rows.into_iter().filter(|(_, spans)| spans.seen() > 0) {
        let [p10, p50, p90, p99] = [100, 500, 900, 990].map(|thousandths| quantile(spans, thousandths));
        writeln!(page, "  {what:12}{p10:>10}{p50:>10}{p90:>10}{p99:>10}{:>10}", spans.seen()).expect(WIDE);
    }
    page
}

/// The places in sequences that are seen most.
fn sites(known: &KnownKernel) -> String {
    const MOST: usize = 10;
    let mut sites: Vec<_> = known.sites.iter().collect();
    sites.sort_by_key(|(_, record)| std::cmp::Reverse(record.launches));
    let mut page = format!(
        "  {:18}{:>10}{:>14}{:>10}{:>10}\n",
        "site", "launches", "duration p50", "gap p10", "gap p50"
    );
    for (site, record) in sites.iter().take(MOST) {
        let [duration, short, gap] = [(&record.duration, 500), (&record.gap, 100), (&record.gap, 500)]
            .map(|(spans, at)| quantile(spans, at));
        writeln!(page, "  {:18}{:>10}{duration:>14}{short:>10}{gap:>10}", site.to_string(), record.launches)
            .expect(WIDE);
    }
    if sites.len() > MOST {
        writeln!(page, "  and {} more", sites.len() - MOST).expect(WIDE);
    }
    page
}

/// How long ago a moment was, as people say it.
fn ago(then: Nanos, now: Nanos) -> String {
    let seconds = now.since(then).0 / 1_000_000_000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}
