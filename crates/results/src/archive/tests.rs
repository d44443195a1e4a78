use std::fs;
use std::io::Write as _;

use model::Class;
use proptest::prelude::*;

use super::*;
use crate::record::{Build, Device, Host, Slo, Tenant, TenantRun};
use crate::{Record, Writer};

fn machine() -> Machine {
    Machine {
        schema: SCHEMA,
        at: "2026-11-15T12:00:00Z".into(),
        ebb: Build { version: "0.1.0".into(), commit: Some("abc".into()), dirty: false },
        host: Host { cpu: "EPYC".into(), cores: 2, memory_gib: 8.0, kernel: "6.1".into() },
        device: Device { kind: "soft".into(), name: "software GPU".into(), ..Device::default() },
        libraries: BTreeMap::from([("torch".into(), "2.11".into())]),
        command: vec!["ebb".into(), "lab".into()],
    }
}

fn scenario(digest: &str) -> Scenario {
    let tenant = Tenant {
        name: "t".into(),
        class: Class::Latency,
        workload: "w".into(),
        arrival: "closed".into(),
        rate: None,
        slo: Slo { alone_p99: Some(1.2), ..Slo::default() },
    };
    Scenario {
        suite: "s".into(),
        name: "n".into(),
        digest: digest.into(),
        title: "T".into(),
        source: None,
        about: Some("why".into()),
        duration_us: 10,
        warmup_us: 1,
        repetitions: 3,
        seed: 1,
        slowdown: 1.0,
        tenants: vec![tenant],
        modes: vec!["alone".into()],
    }
}

fn run(id: &str, starts: Vec<u64>, ends: Vec<u64>) -> Run {
    let tenant = TenantRun {
        name: "t".into(),
        workload: "w".into(),
        gpu_us: 0.1,
        due_us: Some(starts.clone()),
        start_us: starts,
        end_us: ends,
        wrong: vec![0],
        ..TenantRun::default()
    };
    Run {
        id: id.into(),
        suite: "s".into(),
        scenario: "n".into(),
        mode: "mps".into(),
        repetition: 0,
        order: 0,
        at: "2026-11-15T12:00:00Z".into(),
        seed: 1,
        warmup_us: 1,
        until_us: 11,
        wall_s: 0.5,
        tenants: vec![tenant],
        ebb: Some(serde_json::json!({"tenants": []})),
        serves: Vec::new(),
        machine: 0,
    }
}

fn failure(id: &str) -> Failure {
    Failure {
        id: id.into(),
        suite: "s".into(),
        scenario: "n".into(),
        mode: "mps".into(),
        repetition: 0,
        tenant: Some("t".into()),
        reason: "it died".into(),
    }
}

fn written(records: &[Record]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    append(folder.path(), records);
    folder
}

fn append(folder: &Path, records: &[Record]) {
    let mut writer = Writer::open(folder).unwrap();
    for record in records {
        writer.append(record).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_torn_last_line_costs_that_record_only_and_does_not_spoil_the_next() {
    let folder = written(&[Record::Machine(machine()), Record::Run(run("a", vec![1], vec![2]))]);
    let path = folder.path().join(FILE);
    fs::File::options()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"{\"record\":\"run\",\"id\":\"b\"")
        .unwrap();
    let archive = Archive::read(&[&path]).unwrap();
    assert_eq!(archive.done_ids(), BTreeSet::from(["a"]));
    assert!(archive.remarks[0].contains("torn"), "{:?}", archive.remarks);

    append(folder.path(), &[Record::Run(run("c", vec![1], vec![2]))]);
    let archive = Archive::read(&[folder.path()]).unwrap();
    assert_eq!(archive.done_ids(), BTreeSet::from(["a", "c"]));
    assert!(archive.remarks.is_empty());
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_with_its_place() {
    let folder = written(&[Record::Machine(machine())]);
    let path = folder.path().join(FILE);
    fs::File::options().append(true).open(&path).unwrap().write_all(b"{\"record\":\n").unwrap();
    let error = Archive::read(&[&path]).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn an_unknown_kind_of_record_is_a_remark() {
    let folder = written(&[Record::Machine(machine())]);
    let path = folder.path().join(FILE);
    fs::File::options().append(true).open(&path).unwrap().write_all(b"{\"record\":\"weather\"}\n").unwrap();
    let archive = Archive::read(&[&path]).unwrap();
    assert!(archive.remarks[0].contains("`weather`"), "{:?}", archive.remarks);
}

#[test]
fn another_schema_is_refused_by_name() {
    let folder = written(&[Record::Machine(Machine { schema: 2, ..machine() })]);
    let error = Archive::read(&[folder.path()]).unwrap_err().to_string();
    assert!(error.contains("schema 2") && error.contains("schema 1"), "{error}");
}

#[test]
fn two_devices_are_not_mixed() {
    let mut other = machine();
    other.device.kind = "gpu".into();
    let (one, two) = (written(&[Record::Machine(machine())]), written(&[Record::Machine(other)]));
    let error = Archive::read(&[one.path(), two.path()]).unwrap_err().to_string();
    assert!(error.contains("make a report for each"), "{error}");
}

#[test]
fn a_packed_file_reads_like_the_plain_one() {
    let folder = written(&[Record::Machine(machine()), Record::Run(run("a", vec![1], vec![2]))]);
    let plain = Archive::read(&[folder.path()]).unwrap();
    let packed = tempfile::tempdir().unwrap();
    let file = fs::File::create(packed.path().join(PACKED)).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    encoder.write_all(&fs::read(folder.path().join(FILE)).unwrap()).unwrap();
    encoder.finish().unwrap();
    assert_eq!(Archive::read(&[packed.path()]).unwrap(), plain);
}

#[test]
fn a_folder_without_results_says_what_it_should_hold() {
    let folder = tempfile::tempdir().unwrap();
    let error = Archive::read(&[folder.path()]).unwrap_err().to_string();
    assert!(error.contains("results.jsonl.gz"), "{error}");
}

#[test]
fn a_run_supersedes_its_failure_whichever_came_first() {
    let records = [
        Record::Machine(machine()),
        Record::Failure(failure("a")),
        Record::Run(run("a", vec![1], vec![2])),
        Record::Failure(failure("a")),
        Record::Failure(failure("b")),
    ];
    let archive = Archive::read(&[written(&records).path()]).unwrap();
    assert_eq!(archive.failures, [failure("b")]);
    assert_eq!(archive.done_ids(), BTreeSet::from(["a"]));
}

#[test]
fn a_changed_scenario_loses_what_was_measured_before() {
    let shared = Run { serves: vec!["s/other/t".into(), "s/n/t".into()], ..alone() };
    let records = [
        Record::Machine(machine()),
        Record::Scenario(scenario("1")),
        Record::Run(run("a", vec![1], vec![2])),
        Record::Run(shared),
        Record::Scenario(scenario("1")),
    ];
    let folder = written(&records);
    assert_eq!(Archive::read(&[folder.path()]).unwrap().runs.len(), 2);
    // One alone that serves two scenarios is there before the second is described.
    let again = Run { id: "again".into(), serves: vec!["s/other/t".into(), "s/n/t".into()], ..alone() };
    let since = [Record::Machine(machine()), Record::Run(again), Record::Scenario(scenario("2"))];
    append(folder.path(), &since);
    let archive = Archive::read(&[folder.path()]).unwrap();
    let left = |scenario| {
        archive.runs_of("s", scenario, ALONE).iter().map(|run| run.id.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((left("n"), left("other")), (vec!["again"], vec!["alone", "again"]));
    assert_eq!(archive.runs.len(), 2);
    assert!(archive.remarks[0].contains("1 earlier runs"), "{:?}", archive.remarks);
}

fn alone() -> Run {
    Run { mode: ALONE.into(), scenario: "other".into(), ..run("alone", vec![1], vec![2]) }
}

#[test]
fn a_torn_line_may_be_long_and_end_in_the_middle_of_a_letter() {
    let folder = written(&[Record::Machine(machine()), Record::Run(run("a", vec![1], vec![2]))]);
    let path = folder.path().join(FILE);
    let whole = fs::metadata(&path).unwrap().len();
    let mut torn = br#"{"record":"run","id":""#.to_vec();
    torn.extend(std::iter::repeat_n(b'x', 200_000));
    torn.push("µ".as_bytes()[0]);
    fs::File::options().append(true).open(&path).unwrap().write_all(&torn).unwrap();
    assert_eq!(Archive::read(&[&path]).unwrap().done_ids(), BTreeSet::from(["a"]));
    append(folder.path(), &[]);
    assert_eq!(fs::metadata(&path).unwrap().len(), whole);
}

#[test]
fn a_run_of_impossible_times_is_an_error_with_its_place() {
    let late = run("a", vec![1], vec![1 << 62]);
    let empty = Run { until_us: 1, ..run("a", vec![1], vec![2]) };
    for (run, why) in [(late, "beyond a month"), (empty, "counts no time")] {
        let folder = written(&[Record::Machine(machine()), Record::Run(run)]);
        let error = Archive::read(&[folder.path()]).unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains(why), "{error}");
    }
}

#[test]
fn a_second_writer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Writer::open(folder.path()).unwrap();
    assert!(matches!(Writer::open(folder.path()), Err(Error::Busy(_))));
}

#[test]
fn a_mode_that_was_measured_is_not_absent() {
    let absent = |mode: &str| Absent { mode: mode.into(), suite: None, scenario: None, reason: "no".into() };
    let records = [
        Record::Machine(machine()),
        Record::Absent(absent("mps")),
        Record::Absent(absent("hami")),
        Record::Absent(absent("hami")),
        Record::Run(run("a", vec![1], vec![2])),
    ];
    let archive = Archive::read(&[written(&records).path()]).unwrap();
    assert_eq!(archive.absent, [absent("hami")]);
}

proptest! {
    #[test]
    fn what_is_written_is_read(times in prop::collection::vec((0u64..1 << 40, 0u64..1 << 40), 0..50)) {
        let (starts, ends) = times.into_iter().unzip();
        let (run, scenario) = (run("a", starts, ends), scenario("1"));
        let records = [
            Record::Machine(machine()),
            Record::Scenario(scenario.clone()),
            Record::Calibration(Calibration { workload: "w".into(), per_s: 812.5, gpu_us: 934.5 }),
            Record::Run(run.clone()),
        ];
        let archive = Archive::read(&[written(&records).path()]).unwrap();
        prop_assert_eq!(archive.machines, vec![machine()]);
        prop_assert_eq!(archive.scenarios, vec![scenario]);
        prop_assert_eq!(archive.calibrations.len(), 1);
        prop_assert_eq!(archive.runs, vec![run]);
        prop_assert!(archive.remarks.is_empty());
    }

    /// Whatever a file says, reading it ends in figures or in an error.
    #[test]
    fn no_number_in_a_file_makes_it_panic(place in 0usize..1 << 20, digits in "[0-9]{1,20}|-1|null|\\[\\]|1e300") {
        let mut best_effort = run("b", vec![0, 2, 4], vec![3, 5, 9]);
        best_effort.tenants[0].class = Class::BestEffort;
        best_effort.mode = ALONE.into();
        let records = [
            Record::Machine(machine()),
            Record::Scenario(scenario("1")),
            Record::Run(run("a", vec![1, 2, 3], vec![2, 4])),
            Record::Run(best_effort),
        ];
        let folder = written(&records);
        let path = folder.path().join(FILE);
        let text = fs::read_to_string(&path).unwrap();
        let numbers: Vec<usize> = text.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
        let at = numbers[place % numbers.len()];
        fs::write(&path, format!("{}{digits}{}", &text[..at], &text[at + 1..])).unwrap();
        if let Ok(archive) = Archive::read(&[&path]) {
            let figures = crate::Figures::of(&archive);
            prop_assert!(figures.scenarios.len() <= 1);
            crate::Comparison::of(&archive, &archive);
            for scenario in &archive.scenarios {
                crate::timeline::stretch(&archive, scenario);
            }
        }
    }
}
