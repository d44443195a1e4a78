//! The smith's book: what timed launches have shown, for the runs to come; and what earlier runs have shown, for this one.
//!
//! Every process writes for itself into the folder of its user (`profile`): a batch is appended in some 30 µs under a lock
//! that nobody holds for long, so no daemon is needed, and what one user's programs have shown stays with that user. What was
//! seen is written down two seconds after the beginning and then after twice as long each time, up to two minutes, and when
//! the program ends. So whoever is killed loses no more than about as much as was written down before, and who runs for days
//! does not write all the time.
//!
//! What is known is read once, when the first twin is made: the longest promise of a kernel, over all shapes in which it was
//! launched. A promise that is too long costs best-effort work a gap or two; one that is too short costs a latency tenant.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use cuda_abi::{CUDA_SUCCESS, CUdevice};
use guard::Reason;
use model::{ModuleHash, Nanos};
use profile::{Error, Platform, Profile, Store, Trouble};
use telemetry::Note;

use super::tally::{Tally, identity};
use super::{sighting, smith};
use crate::frames::Frame;
use crate::log::say;
use crate::{next, watch};

/// From one writing to the next: first, and at most.
const FIRST: Duration = Duration::from_secs(2);
const LONGEST: Duration = Duration::from_secs(120);
/// More GPUs than a machine has.
const MOST_DEVICES: CUdevice = 64;

pub struct Book {
    /// `None`: nothing is kept.
    store: Option<Store>,
    tally: Tally,
    platforms: BTreeMap<CUdevice, Option<Platform>>,
    /// `None`: not read yet.
    known: Option<BTreeMap<(ModuleHash, String), Known>>,
    due: Instant,
    pause: Duration,
    complained: bool,
}

/// What earlier runs knew of a kernel: its longest block, and how soon it stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub block: Nanos,
    pub certificate: Nanos,
}

impl Book {
    pub fn open() -> Book {
        Book::at(Store::of_this_user())
    }

    /// One in which nothing stands, and nothing is written.
    pub fn closed() -> Book {
        Book::at(None)
    }

    fn at(store: Option<Store>) -> Book {
        Book {
            store,
            tally: Tally::default(),
            platforms: BTreeMap::new(),
            known: None,
            due: Instant::now() + FIRST,
            pause: FIRST,
            complained: false,
        }
    }

    /// What earlier runs knew of a kernel.
    pub fn known(&mut self, frame: &'static Frame) -> Option<Known> {
        if self.known.is_none() {
            self.known = Some(self.read());
        }
        let (module, name) = identity(frame)?;
        self.known.as_ref()?.get(&(module, name.to_owned())).copied()
    }

    /// Of every kind of GPU that is here, because nobody knows on which a kernel will be launched.
    fn read(&mut self) -> BTreeMap<(ModuleHash, String), Known> {
        let mut known = BTreeMap::new();
        let Some(store) = self.store.clone() else { return known };
        let mut platforms: Vec<_> = (0..device_count()).filter_map(|device| self.platform(device)).collect();
        platforms.sort();
        platforms.dedup();
        for platform in platforms {
            match store.read(&platform) {
                Ok(reading) => {
                    learn(&mut known, &reading.profile);
                    reading.trouble.iter().for_each(said);
                }
                Err(error) => self.complain(&error),
            }
        }
        known
    }

    /// Takes in what was seen meanwhile, and writes it down if it is time.
    pub fn tend(&mut self) {
        self.take_in();
        if Instant::now() >= self.due {
            self.write();
            if self.pause == FIRST {
                self.tidy();
            }
            self.pause = (self.pause * 2).min(LONGEST);
            self.due = Instant::now() + self.pause;
        }
    }

    /// Writes down what there is, for the last time.
    pub fn close(&mut self) {
        self.take_in();
        self.write();
    }

    /// A kernel was demoted, which is worth writing down soon: the process may hang, and be killed for it.
    pub fn demoted(&mut self, frame: &'static Frame, reason: Reason) {
        self.take_in();
        self.tally.demoted(frame, reason, since_1970());
        self.due = Instant::now();
    }

    fn take_in(&mut self) {
        let keep = self.store.is_some();
        sighting::collect(|sighting| {
            if keep {
                self.tally.add(&sighting);
            }
        });
    }

    fn write(&mut self) {
        self.tally.add_counts();
        if let Err(error) = self.hand_over() {
            self.complain(&error);
        }
    }

    /// On an error what was not written down stays, and is written down later.
    fn hand_over(&mut self) -> Result<(), Error> {
        let now = since_1970();
        while let (Some(store), Some(device)) = (self.store.clone(), self.tally.first_device()) {
            let Some(platform) = self.platform(device) else {
                self.tally.forget_device(device);
                continue;
            };
            let (batch, sums) = self.tally.batch(device, now);
            store.append(&platform, &batch)?.iter().for_each(said);
            self.tally.forget(sums);
        }
        Ok(())
    }

    /// Adds up what others have appended, once: the smith has the time, and the next one reads it more quickly.
    fn tidy(&mut self) {
        let Some(store) = &self.store else { return };
        for platform in self.platforms.values().flatten() {
            if let Ok(Some(trouble)) = store.tidy(platform) {
                said(&trouble);
            }
        }
    }

    /// What it is that is measured on a GPU. `None` where the driver does not tell.
    fn platform(&mut self, device: CUdevice) -> Option<Platform> {
        let find = || Some(Platform::here(&device_name(device)?, &driver_name()?));
        self.platforms.entry(device).or_insert_with(find).clone()
    }

    /// That somebody else was writing is no reason for complaint. The rest is said once: it will not be otherwise in a minute.
    fn complain(&mut self, error: &Error) {
        if !self.complained && !matches!(error, Error::Busy { .. }) {
            self.complained = true;
            say!("what kernels take is not kept: {error}");
        }
    }
}

/// The longest of everything, for each kernel in whatever shape.
fn learn(known: &mut BTreeMap<(ModuleHash, String), Known>, profile: &Profile) {
    for (key, record) in profile.iter() {
        let Some(promised) = record.certificate else { continue };
        let kernel = (key.kernel.module, key.kernel.name.clone());
        let longest: &mut Known = known.entry(kernel).or_default();
        let block = record.block.quantile(1000).unwrap_or(Nanos::ZERO);
        longest.block = longest.block.max(block);
        longest.certificate = longest.certificate.max(promised.latency);
    }
}

/// Says that a file was set aside. Whoever was told is the only one who can.
fn said(trouble: &Trouble) {
    say!("{trouble}");
    watch::quietly("a profile", |watch| watch.ledger.note(Note::ProfileSetAside));
}

fn since_1970() -> Nanos {
    let age = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX))
}

fn device_count() -> CUdevice {
    let mut count = 0;
    // SAFETY: a place for the answer.
    let result = smith::unless_ending(|| unsafe { next::call::cuDeviceGetCount(&mut count) });
    if result == Some(CUDA_SUCCESS) { count.min(MOST_DEVICES) } else { 0 }
}

fn device_name(device: CUdevice) -> Option<String> {
    const ROOM: usize = 256;
    let mut name = [0u8; ROOM];
    let result = smith::unless_ending(|| {
        // SAFETY: a device that there is, and so many bytes for its name.
        unsafe { next::call::cuDeviceGetName(name.as_mut_ptr().cast(), ROOM as i32, device) }
    })?;
    let name = name.split(|byte| *byte == 0).next().filter(|name| !name.is_empty())?;
    (result == CUDA_SUCCESS).then(|| String::from_utf8_lossy(name).into_owned())
}

/// The version of the driver behind, as its file is called; where that says nothing, which CUDA it is for.
fn driver_name() -> Option<String> {
    let path = Path::new(next::behind()?.to_str().ok()?);
    let real = fs::canonicalize(path).ok();
    let version = real.as_deref().and_then(installation::library::version);
    version.map(str::to_owned).or_else(|| {
        let mut cuda = 0;
        // SAFETY: a place for the answer.
        let result = smith::unless_ending(|| unsafe { next::call::cuDriverGetVersion(&mut cuda) })?;
        (result == CUDA_SUCCESS).then(|| format!("CUDA {}.{}", cuda / 1000, cuda % 1000 / 10))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tally::tests::{frame, sighting};
    use super::*;
    use std::path::PathBuf;

    /// A book in a folder, of a process with one GPU.
    fn book(folder: PathBuf) -> Book {
        let mut book = Book::at(Some(Store::new(folder)));
        book.platforms.insert(0, Some(platform()));
        book
    }

    fn platform() -> Platform {
        Platform::here("a GPU", "580.1")
    }

    #[test]
    fn what_one_run_has_seen_the_next_one_knows() {
        let folder = tempfile::tempdir().unwrap();
        let gemm = frame(7, c"gemm");
        for run in 1..=2 {
            let mut book = book(folder.path().join("profiles"));
            book.tally.add(&sighting(gemm, 1, 10));
            book.tally.add(&sighting(gemm, 9, 200));
            book.hand_over().unwrap();
            let reading = book.store.as_ref().unwrap().read(&platform()).unwrap();
            let seen: Vec<_> = reading.profile.iter().map(|(_, record)| record.duration.seen()).collect();
            assert_eq!(seen, [run, run]);
            let mut known = BTreeMap::new();
            learn(&mut known, &reading.profile);
            let known = known[&(ModuleHash(7), "gemm".to_owned())];
            assert_eq!(known.certificate, Nanos::from_micros(200), "the longest of all shapes");
            assert!(known.block.0.abs_diff(100_000) <= 100_000 / 32);
        }
    }

    #[test]
    fn what_cannot_be_written_down_is_kept_and_one_that_keeps_nothing_forgets() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("profiles");
        fs::write(&place, "no folder").unwrap();
        let mut book = book(place.clone());
        book.tally.add(&sighting(frame(7, c"gemm"), 1, 10));
        assert!(book.hand_over().is_err() && book.tally.first_device().is_some());
        fs::remove_file(&place).unwrap();
        book.hand_over().unwrap();
        assert_eq!(book.tally.first_device(), None);
        assert_eq!(book.store.unwrap().read(&platform()).unwrap().profile.len(), 1);
        let mut closed = Book::closed();
        closed.close();
        assert_eq!(closed.known(frame(7, c"gemm")), None);
    }
}
