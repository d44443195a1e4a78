//! Who is on the cards of a folder, for somebody who is on none of them.
//!
//! A card that several users share may be cut short or locked by any of them, so a card is looked at by reading its file, never by
//! mapping it: a reader can be told something wrong, and nothing worse.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read as _;
use std::mem::offset_of;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;

use model::Nanos;

use super::layout::{ContextSlot, MAGIC, Segment, Settings, VERSION};
use super::{folder, liveness};

const BYTES: usize = size_of::<Segment>();

const MAGIC_AT: usize = offset_of!(Segment, magic);
const VERSION_AT: usize = offset_of!(Segment, version);
const UUID_AT: usize = offset_of!(Segment, settings) + offset_of!(Settings, uuid);
/// What must be read to know a card.
const HEAD: usize = UUID_AT + 16;

/// More cards than this in a folder are not looked at.
const MOST: usize = 64;

/// A card with the processes that have contexts on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CardCompany {
    pub uuid: [u8; 16],
    pub processes: Vec<Occupant>,
}

/// A process with contexts on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    pub pid: u32,
    pub used_bytes: u64,
    /// It has work for the GPU now.
    pub active: bool,
    /// How long its contexts have been on the GPU so far; `None`: where all are on it together, nobody counts.
    pub on_gpu: Option<Nanos>,
}

/// A card's name and file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CardFile {
    pub uuid: [u8; 16],
    /// The file system and the number of the file in it.
    pub device: u64,
    pub inode: u64,
}

/// All cards in the folder that `EBB_SOFTGPU_DIR` names, or in this one where it names none.
pub fn survey(otherwise: &Path) -> Vec<CardCompany> {
    paths(otherwise).iter().filter_map(|path| look(path)).collect()
}

/// The files of the same cards. Two may have one name: in a shared folder anybody can write anything into a file of its own.
pub fn card_files(otherwise: &Path) -> Vec<CardFile> {
    paths(otherwise).iter().filter_map(|path| card_file(path)).collect()
}

fn card_file(path: &Path) -> Option<CardFile> {
    let mut head = [0; HEAD];
    let (mut file, facts) = open(path)?;
    file.read_exact(&mut head).ok()?;
    let word = |from: usize| head.get(from..from + 8).and_then(|bytes| bytes.try_into().ok());
    let version = head.get(VERSION_AT..VERSION_AT + 4).and_then(|bytes| bytes.try_into().ok());
    let known = u64::from_le_bytes(word(MAGIC_AT)?) == MAGIC && u32::from_le_bytes(version?) == VERSION;
    known.then_some(())?;
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&word(UUID_AT)?);
    uuid[8..].copy_from_slice(&word(UUID_AT + 8)?);
    Some(CardFile { uuid, device: facts.dev(), inode: facts.ino() })
}

fn paths(otherwise: &Path) -> Vec<PathBuf> {
    let folder = folder::named().unwrap_or_else(|| otherwise.to_owned());
    let end = format!(".{VERSION}.card");
    let is_card = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("softgpu-") && name.ends_with(&end))
    };
    let entries = folder.read_dir().into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(is_card).take(MOST).collect()
}

fn look(path: &Path) -> Option<CardCompany> {
    company(&*read(path)?)
}

/// Who is on a card, by what its segment says.
pub(super) fn company(segment: &Segment) -> Option<CardCompany> {
    let known = segment.magic.load(Relaxed) == MAGIC && segment.version.load(Relaxed) == VERSION;
    known.then_some(())?;
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&segment.settings.uuid[0].load(Relaxed).to_le_bytes());
    uuid[8..].copy_from_slice(&segment.settings.uuid[1].load(Relaxed).to_le_bytes());
    let isolated = segment.settings.domain.load(Relaxed) == 0;
    let processes = segment.processes.iter().enumerate().filter_map(|(index, process)| {
        let pid = process.pid.load(Relaxed);
        let own = || segment.contexts.iter().filter(|slot| slot.process.load(Relaxed) == index as u32 + 1);
        let there = pid != 0 && own().next().is_some();
        let lives = || liveness::start_time(pid) == Some(process.started.load(Relaxed));
        (there && lives()).then(|| Occupant {
            pid,
            used_bytes: process.used_bytes.load(Relaxed),
            active: own().any(|slot| slot.competes()),
            on_gpu: isolated.then(|| own().map(time_on_gpu).fold(Nanos::ZERO, |sum, one| sum + one)),
        })
    });
    Some(CardCompany { uuid, processes: processes.collect() })
}

fn time_on_gpu(slot: &ContextSlot) -> Nanos {
    let begins = slot.begins.load(Relaxed);
    let turn = if begins == 0 { Nanos::ZERO } else { super::now().since(Nanos(begins)) };
    Nanos(slot.on_time.load(Relaxed)) + turn
}

fn open(path: &Path) -> Option<(File, Metadata)> {
    // What lies there may be anything, also a pipe that nobody writes to.
    let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let facts = file.metadata().ok()?;
    (facts.is_file() && facts.len() == BYTES as u64).then_some((file, facts))
}

fn read(path: &Path) -> Option<Box<Segment>> {
    let (mut file, _) = open(path)?;
    let mut bytes = vec![0; BYTES];
    file.read_exact(&mut bytes).ok()?;
    segment_of(&bytes)
}

/// The segment that these bytes are, if they are as many as one has.
pub(super) fn segment_of(bytes: &[u8]) -> Option<Box<Segment>> {
    let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
    let mut segment = Box::<Segment>::new_uninit();
    // SAFETY: the box has room for so many bytes, and is another piece of memory than they are.
    unsafe { segment.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), BYTES) };
    // SAFETY: all bytes are set, and every field is an atomic or the words of a mutex, for which any bytes are a value. The
    // mutex is not used.
    Some(unsafe { segment.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::super::{Card, Defaults};
    use super::*;

    #[test]
    fn who_has_a_context_is_seen_and_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let card = Card::attach_in(folder.path(), "seen", Defaults::default()).unwrap();
        let only = |cards: Vec<CardCompany>| cards.into_iter().next().unwrap();
        let found = only(survey(folder.path()));
        assert_eq!((found.uuid, found.processes.len()), (card.properties().uuid, 0));
        let context = card.create_context().unwrap();
        let on_gpu = Some(Nanos::ZERO);
        let own = Occupant { pid: std::process::id(), used_bytes: 0, active: false, on_gpu };
        assert_eq!(only(survey(folder.path())).processes, [own]);
        card.set_runnable(&context, true);
        let look = || only(survey(folder.path())).processes[0];
        assert!(look().active);
        let had = look().on_gpu;
        assert!(had > on_gpu && look().on_gpu > had, "its time on the GPU goes on");
    }

    #[test]
    fn a_card_is_known_by_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let card = Card::attach_in(folder.path(), "known", Defaults::default()).unwrap();
        let [found] = card_files(folder.path()).try_into().unwrap();
        let facts = card.open_again().unwrap().metadata().unwrap();
        let uuid = card.properties().uuid;
        assert_eq!(found, CardFile { uuid, device: facts.dev(), inode: facts.ino() });
        std::fs::write(folder.path().join(format!("softgpu-odd.{VERSION}.card")), vec![7; BYTES]).unwrap();
        assert_eq!(card_files(folder.path()), [found]);
    }

    #[test]
    fn what_is_no_card_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(format!("softgpu-short.{VERSION}.card")), "short").unwrap();
        let long = vec![1; BYTES];
        std::fs::write(folder.path().join(format!("softgpu-long.{VERSION}.card")), long).unwrap();
        assert_eq!(survey(folder.path()), []);
        assert_eq!(survey(&folder.path().join("nowhere")), []);
    }
}
