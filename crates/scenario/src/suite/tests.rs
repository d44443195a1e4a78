use std::collections::BTreeSet;

use super::*;
use crate::arrival::{Pace, Process};
use crate::mode::{Device, Mode};
use crate::scenario::least_time;
use crate::workload::Worker;
use model::Nanos;

fn all() -> Vec<Suite> {
    Suite::names().map(|name| Suite::named(name).unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn named(name: &str) -> Suite {
    Suite::named(name).unwrap()
}

#[test]
fn every_built_in_suite_is_right_and_says_what_it_is() {
    for suite in all() {
        assert_ne!(suite.title, suite.name);
        assert!(suite.about.is_some(), "{}", suite.name);
        for scenario in &suite.scenarios {
            assert!(!scenario.title.contains('{'), "{}", scenario.title);
            assert!(scenario.latency_tenants().count() > 0 && scenario.best_effort_tenants().count() > 0);
            assert!(
                scenario.modes().contains(&Mode::EbbIsolated) && scenario.modes().contains(&Mode::Streams)
            );
        }
    }
}

#[test]
fn disb_has_the_published_numbers() {
    let rates = |name: &str| -> Vec<(String, Option<f64>)> {
        let suite = named(name);
        let published = suite.scenarios.iter().find(|scenario| scenario.name == "published").unwrap();
        published.tenants.iter().map(|tenant| (tenant.name.clone(), tenant.arrival.rate(0.0))).collect()
    };
    let expected = |tenants: &[(&str, Option<f64>)]| -> Vec<(String, Option<f64>)> {
        tenants.iter().map(|(name, rate)| ((*name).to_owned(), *rate)).collect()
    };
    let five = ["resnet152", "densenet201", "vgg19", "inception-v3", "distilbert"];
    let loops = five.map(|name| (format!("{name}-loop"), None));
    assert_eq!(rates("disb-a"), expected(&[("vgg19", Some(100.0)), ("resnet152-loop", None)]));
    assert_eq!(rates("disb-b"), expected(&[("vgg19", None), ("resnet152-loop", None)]));
    assert_eq!(rates("disb-c"), [expected(&[("vgg19", Some(100.0))]), loops.to_vec()].concat());
    for suite in ["disb-d", "disb-e"] {
        let latency = five.map(|name| (name.to_owned(), Some(20.0)));
        assert_eq!(rates(suite), [latency.to_vec(), loops.to_vec()].concat());
    }
    for (tenant, rate) in rates("disb-real").into_iter().zip([9.9, 5.3, 14.7, 9.8, 4.6]) {
        assert!((tenant.1.unwrap() / rate - 1.0).abs() < 0.03, "{tenant:?}");
    }
    assert!(matches!(named("disb-d").scenarios[0].tenants[0].arrival.process, Process::Uniform));
    assert!(matches!(named("disb-e").scenarios[0].tenants[0].arrival.process, Process::Poisson));
}

#[test]
fn tally_has_all_pairs_and_two_sweeps() {
    let suite = named("tally");
    let at = |load: f64| {
        let is = |scenario: &&Scenario| scenario.tenants[0].arrival.pace == Pace::Load(load);
        suite.scenarios.iter().filter(is).count()
    };
    assert_eq!([0.1, 0.3, 0.5, 0.7, 0.9].map(at), [2, 2, 36, 2, 2]);
    let names: BTreeSet<_> = suite.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert!(names.contains("bert-beside-bert-training"));
    assert!(names.contains("bert-beside-gpt2-large-training-load-01"));
    assert!(names.contains("resnet50-beside-whisper-training-load-09"));
}

#[test]
fn stress_has_ten_and_ten_and_micro_needs_no_framework() {
    let stress = named("stress").scenarios.remove(0);
    assert_eq!((stress.latency_tenants().count(), stress.best_effort_tenants().count()), (10, 10));
    let micro = named("micro");
    let tenants = micro.scenarios.iter().flat_map(|scenario| &scenario.tenants);
    assert!(tenants.clone().all(|tenant| tenant.workload.worker() == Worker::Synthetic));
}

/// Tenants that are the same in two scenarios need to be measured alone only once, and that is told by their names; so in
/// one suite a name means one thing.
#[test]
fn in_a_suite_a_name_means_one_workload() {
    for suite in all() {
        let tenants: BTreeSet<_> = suite
            .scenarios
            .iter()
            .flat_map(|scenario| &scenario.tenants)
            .map(|tenant| (tenant.name.clone(), tenant.workload.id()))
            .collect();
        let names: BTreeSet<_> = tenants.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), tenants.len(), "{}", suite.name);
    }
}

#[test]
fn on_the_software_gpu_suites_are_bearable() {
    let time = |name: &str| {
        let staged = named(name).scenarios.into_iter().map(|scenario| scenario.for_device(Device::Soft));
        least_time(&staged.collect::<Vec<_>>())
    };
    // A run costs half a second beside its own time, so that the whole stays below 90 s.
    assert!(time("disb-a") <= Nanos::from_millis(66_000), "{}", time("disb-a"));
    for name in Suite::names().filter(|name| *name != "tally") {
        assert!(time(name) <= Nanos::from_millis(300_000), "{name}: {}", time(name));
    }
}

#[test]
fn an_unknown_suite_is_told_the_known_ones() {
    let error = Suite::find("disb-x").unwrap_err().to_string();
    assert!(
        error.contains("`disb-x`") && error.contains("disb-a, disb-b") && error.contains("stress"),
        "{error}"
    );
}

const SMALL: &str = r#"
    schema = 1
    title = "small"
    duration = "1s"
    [[tenant]]
    name = "a"
    class = "latency"
    workload = { model = "vgg19" }
    arrival = { process = "trace", file = "a.trace" }
"#;

#[test]
fn a_folder_is_a_suite_and_so_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("a.trace", "1\n2\n");
    write("one.toml", SMALL);
    write("two.toml", SMALL);
    write("notes.md", "not a scenario");
    let suite = Suite::at(folder.path()).unwrap();
    assert_eq!(suite.scenarios.iter().map(|scenario| &*scenario.name).collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(suite.name, folder.path().file_name().unwrap().to_str().unwrap());
    assert_eq!(suite.title, suite.name);
    write("suite.toml", "schema = 1\ntitle = \"both\"");
    assert_eq!(Suite::at(folder.path()).unwrap().title, "both");
    let one = Suite::find(folder.path().join("one.toml").to_str().unwrap()).unwrap();
    assert_eq!((one.scenarios.len(), &one.name), (1, &suite.name));
}

#[test]
fn mistakes_of_all_files_are_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    assert!(matches!(Suite::at(folder.path()), Err(Error::Empty { .. })));
    assert!(matches!(Suite::at(&folder.path().join("none.toml")), Err(Error::Unreadable { .. })));
    write("one.toml", SMALL);
    write("two.toml", &SMALL.replace("vgg19", "vgg20"));
    write("suite.toml", "schema = 1\ntitle = \"both\"\norder = 1");
    let told = Suite::at(folder.path()).unwrap_err().to_string();
    let lines: Vec<_> = told.lines().map(|line| line.split_once("toml:").unwrap().1).collect();
    assert_eq!(lines.len(), 4, "{told}");
    assert!(lines[0].starts_with("9: a.trace cannot be read"), "{told}");
    assert!(lines[1].starts_with("3: unknown field `order`"), "{told}");
    assert!(lines[2].starts_with("8: `vgg20` is no model"), "{told}");
    assert!(lines[3].starts_with("9: a.trace cannot be read"), "{told}");
}

#[test]
fn two_scenarios_of_one_name_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cross = r#"
        schema = 1
        title = "{latency}"
        duration = "1s"
        [cross]
        arrival = { process = "closed" }
        [[cross.latency]]
        name = "a"
        workload = { model = "vgg19" }
        [[cross.best-effort]]
        name = "b"
        workload = { model = "vgg19" }
    "#;
    fs::write(folder.path().join("one.toml"), cross).unwrap();
    fs::write(folder.path().join("two.toml"), cross).unwrap();
    let told = Suite::at(folder.path()).unwrap_err().to_string();
    assert!(told.contains("two scenarios of this suite are called a-beside-b"), "{told}");
}
