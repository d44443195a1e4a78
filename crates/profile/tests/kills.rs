//! Processes that write at the same time, and are killed while they do.
//!
//! This program starts itself as the writers. A writer says a line for each batch it has handed over; the batch that it was about
//! to hand over when it died may be there or not, or a part of it. Every other must be there exactly once.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{batch, key, platform};
use profile::{Limits, Profile, Store};

const FOLDER: &str = "EBB_TEST_PROFILES";
const WRITER: &str = "EBB_TEST_WRITER";
/// Kernels of each writer.
const KERNELS: usize = 24;

/// All that the writers of a round have to say fits into the half of a file that stays, but few batches more: files are put in
/// order all the time.
const LIMITS: Limits = Limits {
    file: 24 << 10,
    records: 4096,
    platforms: 16,
    aside: 3,
    patience: model::Nanos::from_millis(60_000),
};

fn names(writer: &str) -> Vec<String> {
    (0..KERNELS).map(|number| format!("{writer}_{number}")).collect()
}

#[test]
#[ignore = "started by the others, in processes of their own"]
fn a_writer() {
    let (Some(folder), Ok(writer)) = (std::env::var_os(FOLDER), std::env::var(WRITER)) else { return };
    let store = Store::new(folder.into()).with_limits(LIMITS);
    let names = names(&writer);
    let batch = batch(&names.iter().map(String::as_str).collect::<Vec<_>>());
    loop {
        assert_eq!(store.append(&platform(), &batch).unwrap(), None);
        writeln!(std::io::stderr(), "batch").unwrap();
    }
}

fn start(folder: &Path, writer: &str, errors: Stdio) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "a_writer", "--nocapture"]);
    command.env(FOLDER, folder).env(WRITER, writer).stdout(Stdio::null()).stderr(errors);
    command.spawn().unwrap()
}

/// Kills a writer that has handed over this many batches at least, and says how many it has.
fn kill(mut child: Child, after: usize) -> u64 {
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = 0;
    for line in lines {
        // The last line may be cut.
        said += u64::from(line.is_ok_and(|line| line == "batch"));
        if said == after as u64 {
            // Between any two of its instructions: what it says from now on is read to its end.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    said
}

fn check(profile: &Profile, writer: &str, said: u64) {
    for name in names(writer) {
        let record = profile.get(&key(&name)).unwrap_or_else(|| panic!("{name} is gone"));
        assert!((said..=said + 1).contains(&record.launches), "{name}: {} of {said}", record.launches);
        assert_eq!(record.duration.seen(), record.launches, "{name}");
    }
}

#[test]
fn killed_writers_cost_at_most_the_batch_they_were_writing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("profiles");
    let store = Store::new(folder.clone()).with_limits(LIMITS);
    for round in 0..10 {
        let writers = ["a", "b", "c", "d"];
        let children = writers.map(|writer| start(&folder, writer, Stdio::piped()));
        // Each is killed in its own time, while the others go on.
        let ends = [5, 12, 19, 26].map(|batches| batches + round);
        let pairs: Vec<_> = children.into_iter().zip(ends).collect();
        let killers = pairs.into_iter().map(|(child, after)| std::thread::spawn(move || kill(child, after)));
        let killers: Vec<_> = killers.collect();
        let said: Vec<_> = killers.into_iter().map(|killer| killer.join().unwrap()).collect();
        let reading = store.read(&platform()).unwrap();
        assert_eq!(reading.trouble, None);
        writers.iter().zip(said).for_each(|(writer, said)| check(&reading.profile, writer, said));
        assert_eq!(store.clear().unwrap(), 1, "nothing was set aside");
    }
}

#[test]
fn a_reader_never_sees_less_than_it_saw() {
    const CHANGES: u32 = 50;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("profiles");
    let store = Store::new(folder.clone()).with_limits(LIMITS);
    let mut children = ["a", "b"].map(|writer| start(&folder, writer, Stdio::null()));
    let (mut seen, mut changes) = (0, 0);
    while changes < CHANGES {
        let reading = store.read(&platform()).unwrap();
        assert_eq!(reading.trouble, None);
        let sum = reading.profile.iter().map(|(_, record)| record.launches).sum();
        assert!(sum >= seen, "{sum} after {seen}");
        changes += u32::from(sum > seen);
        seen = sum;
        assert!(
            children.iter_mut().all(|child| child.try_wait().unwrap().is_none()),
            "a writer has given up"
        );
    }
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
