//! Files that are almost right: whatever is accepted can be used, and nothing makes the reader panic.

use std::fs;
use std::path::PathBuf;

use model::Nanos;
use proptest::prelude::*;
use proptest::sample::select;
use scenario::{Device, Error, Origin, parse};

fn files() -> Vec<PathBuf> {
    let within = |folder: PathBuf| {
        let entries = fs::read_dir(folder).expect("it is part of the crate");
        entries.map(|entry| entry.expect("it can be read").path())
    };
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/suites"));
    let all = within(root).flat_map(within);
    let scenarios = all.filter(|file| file.extension().is_some_and(|ending| ending == "toml"));
    scenarios.filter(|file| !file.ends_with("suite.toml")).collect()
}

const PIECES: [&str; 16] = [
    "",
    "\"",
    "\n",
    "=",
    "0",
    "-1",
    "1e300",
    "nan",
    "{ }",
    "[cross]\n",
    "[[tenant]]\n",
    "\"0s\"",
    "\"18446744073s\"",
    "closed",
    "rate = 3",
    "🦀",
];

proptest! {
    #[test]
    fn what_is_accepted_can_be_used(
        file in select(files()), place in 0usize..4000, length in 0usize..20, piece in select(&PIECES[..]),
    ) {
        let text: Vec<char> = fs::read_to_string(&file).unwrap().chars().collect();
        let begin = place.min(text.len());
        let end = (begin + length).min(text.len());
        let changed: String = text[..begin].iter().chain(&piece.chars().collect::<Vec<_>>()).chain(&text[end..]).collect();
        match parse(&changed, &Origin::file(&file)) {
            Err(Error::Wrong(mistakes)) => {
                prop_assert!(!mistakes.is_empty());
                let lines = changed.lines().count().max(1);
                prop_assert!(mistakes.iter().all(|mistake| (1..=lines + 1).contains(&mistake.line)));
            }
            Err(other) => prop_assert!(false, "{}", other),
            Ok(scenarios) => {
                prop_assert!(!scenarios.is_empty());
                for scenario in scenarios.into_iter().take(3) {
                    let soft = scenario.clone().for_device(Device::Soft);
                    prop_assert_ne!(soft.digest(), scenario.digest());
                    for tenant in &scenario.tenants {
                        let rate = tenant.arrival.rate(100.0);
                        tenant.arrival.due(1, rate, scenario.until().min(Nanos::from_millis(2000)));
                    }
                }
            }
        }
    }
}
