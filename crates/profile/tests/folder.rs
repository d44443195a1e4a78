//! What becomes of files in the folder, whatever is done to them.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use common::{batch, key, platform, seen};
use profile::{Error, Limits, Platform, Reading, Rotten, Store};
use proptest::prelude::*;

struct Place {
    folder: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Place {
        Place::limited(Limits::default())
    }

    fn limited(limits: Limits) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("profiles")).with_limits(limits);
        Place { folder, store }
    }

    fn append(&self, names: &[&str]) {
        assert_eq!(self.store.append(&platform(), &batch(names)).unwrap(), None);
    }

    fn read(&self) -> Reading {
        self.store.read(&platform()).unwrap()
    }

    /// The only profile.
    fn file(&self) -> PathBuf {
        self.store.platforms().unwrap().pop().unwrap().path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.store.folder()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn launches(reading: &Reading, name: &str) -> u64 {
    reading.profile.get(&key(name)).map_or(0, |record| record.launches)
}

#[test]
fn what_is_appended_is_read_by_others_and_adds_up() {
    let place = Place::new();
    assert_eq!(place.read(), Reading::default());
    place.append(&["a", "b"]);
    place.append(&["b", "c"]);
    let reading = Store::new(place.store.folder().to_owned()).read(&platform()).unwrap();
    assert_eq!(["a", "b", "c"].map(|name| launches(&reading, name)), [1, 2, 1]);
    assert!(reading.damage.is_none() && reading.trouble.is_none());
    assert_eq!(fs::metadata(place.file()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn reading_makes_nothing() {
    let place = Place::new();
    place.read();
    assert!(place.store.platforms().unwrap().is_empty() && place.store.clear().unwrap() == 0);
    place.store.tidy(&platform()).unwrap();
    assert!(!place.store.folder().exists());
}

#[test]
fn versions_and_platforms_do_not_meet() {
    let place = Place::new();
    let platforms = [
        Platform::new("NVIDIA H200", "580.159.04", "0.1.0"),
        Platform::new("NVIDIA H200", "580.159.04", "0.2.0"),
        Platform::new("NVIDIA H200", "590.1", "0.1.0"),
        Platform::new("NVIDIA L4", "580.159.04", "0.1.0"),
    ];
    for (count, platform) in (1..).zip(&platforms) {
        (0..count).for_each(|_| assert_eq!(place.store.append(platform, &batch(&["a"])).unwrap(), None));
    }
    for (count, platform) in (1..).zip(&platforms) {
        assert_eq!(launches(&place.store.read(platform).unwrap(), "a"), count);
    }
    let found: Vec<_> =
        place.store.platforms().unwrap().into_iter().map(|found| found.platform.unwrap()).collect();
    assert_eq!(found, platforms);
}

#[test]
fn a_file_that_was_cut_anywhere_keeps_what_is_whole() {
    let place = Place::new();
    place.append(&["a", "b", "c"]);
    let (path, bytes) = (place.file(), fs::read(place.file()).unwrap());
    let mut kept = Vec::new();
    for cut in 0..=bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        let reading = place.read();
        kept.push(reading.profile.len());
        assert_eq!(reading.trouble.is_some(), !path.exists(), "cut at {cut}");
        // Whatever is left, one can go on with it.
        assert_eq!(place.store.append(&platform(), &batch(&["d"])).unwrap(), None, "cut at {cut}");
        let again = place.read();
        assert_eq!(
            (launches(&again, "d"), again.profile.len()),
            (1, reading.profile.len() + 1),
            "cut at {cut}"
        );
    }
    assert!(kept.is_sorted() && kept.first() == Some(&0) && kept.last() == Some(&3), "{kept:?}");
}

#[test]
fn every_changed_byte_costs_one_record_or_is_said() {
    let place = Place::new();
    place.append(&["a", "b", "c"]);
    let (path, bytes) = (place.file(), fs::read(place.file()).unwrap());
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x40;
        fs::write(&path, &changed).unwrap();
        let reading = place.read();
        let lost_all = reading.trouble.is_some() && reading.profile.is_empty();
        let lost_one = reading.trouble.is_none() && reading.profile.len() == 2 && reading.damage.places == 1;
        assert!(lost_all || lost_one, "byte {at}: {reading:?}");
    }
}

#[test]
fn a_file_that_is_no_profile_is_set_aside_and_said_once() {
    let place = Place::new();
    place.append(&["a"]);
    let path = place.file();
    fs::write(&path, "nonsense").unwrap();
    let trouble = place.read().trouble.unwrap();
    let aside = trouble.aside.clone().unwrap();
    assert!(aside.to_str().unwrap().ends_with(".profile.corrupt-1") && trouble.path == path, "{trouble:?}");
    assert_eq!(fs::read(&aside).unwrap(), b"nonsense");
    let said = trouble.to_string();
    assert!(said.contains("does not begin as one") && said.contains("learned anew"), "{said}");
    assert_eq!(place.read(), Reading::default(), "the second time there is nothing to say");
    place.append(&["b"]);
    assert_eq!(launches(&place.read(), "b"), 1);
}

#[test]
fn whoever_appends_sets_aside_too_and_only_a_few_are_kept() {
    let place = Place::new();
    for round in 1..=5 {
        place.append(&["a"]);
        fs::write(place.file(), format!("nonsense {round}")).unwrap();
        let trouble = place.store.append(&platform(), &batch(&["b"])).unwrap().unwrap();
        assert!(trouble.aside.unwrap().to_str().unwrap().ends_with(&format!(".corrupt-{round}")));
        assert_eq!((launches(&place.read(), "a"), launches(&place.read(), "b")), (0, 1));
        fs::remove_file(place.file()).unwrap();
    }
    let kept: Vec<_> = place.names().into_iter().filter(|name| name.contains("corrupt")).collect();
    assert_eq!(kept.len(), 3);
    assert!(kept.iter().zip(3..).all(|(name, number)| name.ends_with(&format!("-{number}"))), "{kept:?}");
}

#[test]
fn a_file_that_is_mostly_damaged_or_another_platforms_is_no_good() {
    let place = Place::new();
    place.append(&["a"]);
    let mut bytes = fs::read(place.file()).unwrap();
    bytes.resize(bytes.len() + (1 << 20), 0xeb);
    fs::write(place.file(), &bytes).unwrap();
    assert_eq!(place.read().trouble.unwrap().reason, Rotten::Mostly);

    place.append(&["a"]);
    let other = Platform::new("NVIDIA L4", "580.159.04", "0.1.0");
    place.store.append(&other, &batch(&["a"])).unwrap();
    let files: Vec<_> = place.store.platforms().unwrap().into_iter().map(|found| found.path).collect();
    fs::copy(&files[0], &files[1]).unwrap();
    assert_eq!(place.store.read(&other).unwrap().trouble.unwrap().reason, Rotten::Platform);
}

#[test]
fn a_file_of_another_format_under_its_own_name_is_left_alone() {
    let place = Place::new();
    place.append(&["a"]);
    let mut bytes = fs::read(place.file()).unwrap();
    bytes[8] = 2;
    let later = place.store.folder().join("of_tomorrow.profile");
    fs::write(&later, &bytes).unwrap();
    let found = place.store.platforms().unwrap();
    assert_eq!(found.len(), 2);
    assert!(found.iter().any(|found| found.path == later && found.platform.is_none()));
    assert_eq!((launches(&place.read(), "a"), fs::read(&later).unwrap()), (1, bytes));
}

#[test]
fn no_file_grows_beyond_its_limit_and_the_most_useful_stay() {
    let limits = Limits { file: 40_000, ..Limits::default() };
    let place = Place::limited(limits);
    let names: Vec<_> = (0..400).map(|number| format!("kernel_{number}")).collect();
    for round in 0..3 {
        for name in &names {
            // One that is launched again and again, among many that are not.
            place.append(&[name, "often"]);
            assert!(fs::metadata(place.file()).unwrap().len() <= limits.file);
        }
        assert_eq!(launches(&place.read(), "often"), (round + 1) * 400);
    }
    let reading = place.read();
    assert!(reading.damage.is_none() && reading.profile.len() > 50 && reading.profile.len() < 400);
    let most = Limits { records: 10, ..limits };
    let place = Place { store: place.store.clone().with_limits(most), ..place };
    (0..400).for_each(|number| place.append(&[&names[number], "often"]));
    place.store.tidy(&platform()).unwrap();
    assert!(place.read().profile.len() < 300 && launches(&place.read(), "often") == 1600);
}

#[test]
fn tidying_changes_nothing_but_the_length() {
    let place = Place::new();
    (0..2000).for_each(|_| place.append(&["a", "b"]));
    let (before, long) = (place.read(), fs::metadata(place.file()).unwrap().len());
    assert_eq!(place.store.tidy(&platform()).unwrap(), None);
    let short = fs::metadata(place.file()).unwrap().len();
    assert!(short * 100 < long, "{long} to {short}");
    assert_eq!(place.read(), before);
    place.append(&["a"]);
    let little = fs::read(place.file()).unwrap();
    place.store.tidy(&platform()).unwrap();
    assert_eq!(fs::read(place.file()).unwrap(), little, "a little is left for later");
}

#[test]
fn platforms_that_nobody_uses_go_when_there_are_many() {
    let place = Place::limited(Limits { platforms: 3, ..Limits::default() });
    let at = |number: u64| Platform::new("NVIDIA H200", &format!("{number}"), "0.1.0");
    for number in 1..=5 {
        place.store.append(&at(number), &batch(&["a"])).unwrap();
        let path = place
            .store
            .platforms()
            .unwrap()
            .into_iter()
            .find(|f| f.platform == Some(at(number)))
            .unwrap()
            .path;
        age(&path, 1000 - number);
    }
    let left: Vec<_> =
        place.store.platforms().unwrap().into_iter().filter_map(|found| found.platform).collect();
    assert_eq!(left, [at(3), at(4), at(5)]);
}

fn age(path: &Path, seconds: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[test]
fn what_is_cleared_is_ours() {
    let place = Place::new();
    place.append(&["a"]);
    fs::write(place.file(), "nonsense").unwrap();
    place.read();
    place.append(&["a"]);
    for name in ["attempt", "thesis.tex", "notes.corrupt-1"] {
        fs::write(place.store.folder().join(name), "").unwrap();
    }
    assert_eq!(place.store.clear().unwrap(), 2);
    assert_eq!(place.names(), ["lock", "notes.corrupt-1", "thesis.tex"]);
}

#[test]
fn a_lock_that_somebody_holds_is_not_waited_for_without_end() {
    let place = Place::limited(Limits { patience: model::Nanos::from_millis(5), ..Limits::default() });
    place.append(&["a"]);
    let lock = File::options().write(true).open(place.store.folder().join("lock")).unwrap();
    lock.lock().unwrap();
    assert!(matches!(place.store.append(&platform(), &batch(&["a"])), Err(Error::Busy { .. })));
    assert_eq!(launches(&place.read(), "a"), 1, "readers need no lock, and nothing was written");
    drop(lock);
    place.append(&["a"]);
    assert_eq!(launches(&place.read(), "a"), 2);
}

#[test]
fn links_and_folders_that_others_can_write_to_are_refused() {
    let place = Place::new();
    place.append(&["a"]);
    let path = place.file();
    let elsewhere = place.folder.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert!(matches!(place.store.read(&platform()), Err(Error::Io { .. })));
    assert!(matches!(place.store.append(&platform(), &batch(&["a"])), Err(Error::Io { .. })));
    fs::set_permissions(place.store.folder(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = place.store.append(&platform(), &batch(&["a"])).unwrap_err().to_string();
    assert!(error.contains("chmod 700") && error.contains("EBB_PROFILES"), "{error}");
}

#[test]
fn an_empty_batch_is_no_work() {
    let place = Place::new();
    place.append(&[]);
    assert!(!place.store.folder().exists());
    assert_eq!(seen(&batch(&["a", "a"])), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Anything at all, or anything behind a beginning that is right, or in the middle of a file that is.
    #[test]
    fn whatever_is_in_a_file_one_can_go_on(at: prop::sample::Index, odd in prop::collection::vec(any::<u8>(), 0..3000), keep in 0..3) {
        let place = Place::new();
        place.append(&["a", "b", "c"]);
        let (path, mut bytes) = (place.file(), fs::read(place.file()).unwrap());
        let at = if keep == 0 { 0 } else { at.index(bytes.len()) };
        let end = if keep == 2 { (at + odd.len() / 20).min(bytes.len()) } else { bytes.len() };
        bytes.splice(at..end, odd);
        fs::write(&path, &bytes).unwrap();
        let reading = place.read();
        prop_assert!(reading.profile.len() <= 3);
        place.append(&["d"]);
        prop_assert_eq!(launches(&place.read(), "d"), 1);
        prop_assert_eq!(place.read().profile.len(), reading.profile.len() + 1);
    }
}
