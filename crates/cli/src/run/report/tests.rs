use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;

use telemetry::{KernelIdentity, LaunchKind, Ledger, Note, StreamKind};

use super::*;

/// What a ledger says after somebody has written into it.
fn reading(program: &str, write: impl FnOnce(&Ledger)) -> Reading {
    let folder = tempfile::tempdir().unwrap();
    let name = CString::new(folder.path().as_os_str().as_bytes()).unwrap();
    let ledger = Ledger::create(&name, telemetry::Stem::now(), program.as_bytes()).unwrap();
    write(&ledger);
    let file = folder.path().read_dir().unwrap().next().unwrap().unwrap().path();
    let mut reading = Reading::open(&file).unwrap();
    reading.pid = 42;
    reading
}

fn launch(ledger: &Ledger, name: &str, times: u64) {
    let identity =
        KernelIdentity { name: name.as_bytes(), module_hash: 7, parameter_bytes: 8, parameter_count: 1 };
    let kernel = ledger.kernel(&identity).unwrap();
    for _ in 0..times {
        kernel.launched(2);
        ledger.add(Counter::launches(LaunchKind::Plain, StreamKind::Default), 1);
    }
}

fn report(readings: Vec<Reading>) -> Report {
    Report {
        command: vec!["train".to_owned(), "two\nlines".to_owned()],
        end: End::Exited(0),
        lasted: Duration::from_millis(1500),
        readings,
        unwritten: Vec::new(),
        attached: Vec::new(),
        round: Vec::new(),
        sight: Sight::Clear,
        remarks: Vec::new(),
        folder: "/run/ebb/run-1-2".into(),
    }
}

fn busy() -> Report {
    let first = reading("train", |ledger| {
        ledger.driver(b"/lib/libcuda.so.1", 13_010);
        launch(ledger, "add", 3);
        launch(ledger, "multiply", 1);
        ledger.add(Counter::launches(LaunchKind::Graph, StreamKind::Created), 2);
        ledger.add(Counter::KernelsInGraphs, 10);
        ledger.add(Counter::ModulesPtx, 1);
        ledger.add(Counter::ModulesCubin, 2);
        ledger.add(Counter::AllocationsDevice, 2);
        ledger.add(Counter::AllocatedDevice, 3 << 20);
        ledger.note(Note::OpenedByPath);
        ledger.detail(b"/opt/libcuda.so.1");
    });
    let second = reading("worker", |ledger| launch(ledger, "add", 4));
    report(vec![first, second])
}

#[test]
fn the_text_is_aligned_and_leaves_out_what_is_zero() {
    let expected = "\
ebb: `train two lines` ended with status 0 after 1.500 s
  processes attached  2
                    42  CUDA 13.1  train
                    42  CUDA –     worker
  driver              /lib/libcuda.so.1

  launches by stream       default  per thread     created       total
    plain                        8           0           0           8
    graphs                       0           0           2           2
  kernels run         18, 10 of them in graphs

  modules             PTX 1, cubin 2
  allocations         device 2 (3.0 MiB)

    launches  kernel
           7  add
           1  multiply

Process 42: the driver was opened by its path; it was given ebb's library instead.
Process 42 says: /opt/libcuda.so.1.
";
    assert_eq!(text::write(&busy()), expected);
}

#[test]
fn kernels_of_all_processes_are_added_up() {
    let kernels = busy().kernels();
    assert_eq!((kernels[0].name.as_str(), kernels[0].launches, kernels[0].blocks), ("add", 7, 14));
    assert_eq!(kernels.len(), 2);
}

#[test]
fn whether_cuda_was_used_is_only_said_where_it_is_known() {
    let mut report = report(Vec::new());
    assert_eq!(report.used(), Some(false));
    assert_eq!(report.sentences(), ["CUDA was never used by this command."]);
    report.sight = Sight::Blind("it was dark".to_owned());
    assert_eq!(report.used(), None);
    assert_eq!(report.sentences(), ["There are no figures: it was dark."]);
    report.round.push(Bypass { pid: 9, program: "p".to_owned(), library: "/lib/libcuda.so.1".into() });
    assert_eq!(report.used(), Some(true));
    let sentences = report.sentences();
    assert_eq!(sentences[0], "There may be more than was counted: it was dark.");
    assert!(sentences[1].starts_with("Process 9 (p) reached the driver round ebb"), "{sentences:?}");
}

#[test]
fn a_ledger_that_could_not_be_written_is_not_a_command_without_cuda() {
    let folder = tempfile::tempdir().unwrap();
    let name = CString::new(folder.path().as_os_str().as_bytes()).unwrap();
    telemetry::UnwrittenLedger::prepare(folder.path()).unwrap();
    telemetry::UnwrittenLedger::tell(&name, &telemetry::Error::Make(rustix::io::Errno::NOSPC));
    let mut report = report(Vec::new());
    report.unwritten = telemetry::UnwrittenLedger::read_all(folder.path());
    assert_eq!(report.used(), Some(true));
    let sentences = report.sentences();
    let said = format!(
        "Process {} used CUDA and is not counted: its ledger could not be written to /run/ebb/run-1-2 (No space left on device",
        std::process::id()
    );
    assert!(sentences.len() == 1 && sentences[0].starts_with(&said), "{sentences:?}");
    let json = json::write(&report).to_string();
    assert!(json.contains(r#""unwritten":[{"pid":"#) && json.contains(r#""cuda_used":true"#), "{json}");
}

#[test]
fn who_reached_the_driver_and_left_nothing_is_named() {
    let mut report = report(Vec::new());
    report.attached.push(AttachedProcess { pid: 9, program: "p".to_owned() });
    assert_eq!(report.used(), None);
    let sentences = report.sentences();
    assert!(
        sentences.len() == 1
            && sentences[0].starts_with("Process 9 (p) reached the driver through ebb and left no ledger"),
        "{sentences:?}"
    );
    report.readings.push(reading("train", |_| ()));
    assert_eq!((report.used(), report.sentences()), (Some(true), Vec::new()));
}
