//! Any text as a scenario, with any text as the trace beside it: what is accepted can be run, on both devices.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use scenario::{Device, Origin, Scenario};

/// As many requests per second as a tenant that gives its load is taken to answer alone.
const CAPACITY: f64 = 20.0;
/// What the reader bounds a run by, and room for chance.
const MOST_REQUESTS: usize = 1_100_000;

static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("ebb-fuzz-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is a folder for temporary files");
    folder
});

// The scenario ends at the first NUL; what follows it is the trace.
fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    let (text, trace) = text.split_once('\0').unwrap_or((text, ""));
    if text.contains("trace") {
        std::fs::write(FOLDER.join("a.trace"), trace).expect("the trace is written");
    }
    match scenario::parse(text, &Origin::file(&FOLDER.join("fuzz.toml"))) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(scenarios) => {
            assert!(!scenarios.is_empty());
            // A cross makes many, which differ in who is beside whom.
            for scenario in scenarios.into_iter().take(4) {
                runs(scenario.clone().for_device(Device::Soft));
                runs(scenario);
            }
        }
    }
});

fn runs(scenario: Scenario) {
    assert!(!scenario.name.is_empty() && !scenario.tenants.is_empty() && scenario.repetitions > 0);
    assert!(scenario.modes().iter().all(|mode| scenario.applies(*mode).is_ok()));
    assert_eq!(scenario.digest(), scenario.clone().digest());
    for tenant in &scenario.tenants {
        assert_eq!(tenant.slo.is_some(), tenant.is_latency());
        let rate = tenant.arrival.rate(CAPACITY);
        let due = || tenant.arrival.due(scenario.arrival_seed(tenant, 0), rate, scenario.until());
        let Some(once) = due() else { continue };
        assert!(once.is_sorted() && once.last().is_none_or(|last| *last < scenario.until()));
        assert!(once.len() <= MOST_REQUESTS, "{} requests", once.len());
        assert_eq!(due(), Some(once));
    }
}
