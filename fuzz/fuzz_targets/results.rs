//! Any bytes as a result file: what is read gives figures that mean something, and a report.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use results::figures::Latency;
use results::quantile::NEVER;
use results::{Archive, Figures, Quantiles};

static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("ebb-fuzz-results-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is a folder for temporary files");
    folder.join(results::FILE)
});

fuzz_target!(|data: &[u8]| {
    std::fs::write(&*FILE, data).expect("the file is written");
    let archive = match Archive::read(&[&*FILE]) {
        Ok(archive) => archive,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let figures = Figures::of(&archive);
    for mode in figures.scenarios.iter().flat_map(|scenario| &scenario.modes) {
        mode.latency.iter().for_each(latency);
        for tenant in &mode.best_effort {
            assert!(tenant.rate.value >= 0.0 && tenant.rate.value.is_finite());
        }
    }
    assert!(!report::html(&archive, &figures).is_empty());
    assert!(!report::markdown(&archive, &figures).is_empty());
    report::picture(&archive, &figures);
});

fn latency(tenant: &Latency) {
    assert!(tenant.dropped + tenant.wrong <= tenant.offered);
    assert_eq!(tenant.latencies.len() + tenant.dropped, tenant.offered);
    assert!(tenant.latencies.is_sorted());
    for quantiles in [&tenant.arrival, &tenant.service] {
        let Quantiles { p50, p90, p99, p999, max, .. } = *quantiles;
        // What was never finished is later than everything that was.
        let times = [p50, p90, p99, p999, max].map(|time| time.unwrap_or(NEVER));
        assert!(times.is_sorted(), "{quantiles:?}");
    }
    if let Some(share) = &tenant.attainment {
        assert!(
            0.0 <= share.low && share.low <= share.value && share.value <= share.high && share.high <= 1.0
        );
    }
}
