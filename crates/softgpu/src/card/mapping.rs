//! Opening, checking and, where nobody uses it, making the card file.
//!
//! All of it happens under an exclusive `flock` of the file, so two processes that start at the same time
//! agree on who makes the segment. A file left by a crash is not stale: its slots name processes that no
//! longer live. If none lives, the part that describes running work is made anew; the settings stay.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use model::Domain;
use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::layout::{MAGIC, NO_PRIORITY, Segment, SmUse, VERSION};
use super::{Defaults, Error, folder, liveness};

const BYTES: usize = size_of::<Segment>();

pub struct Mapping {
    segment: NonNull<Segment>,
    file: File,
}

// SAFETY: the segment is made of atomics and a process-shared mutex; the mapping may be used and dropped by
// any thread.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    pub fn open(path: &Path, defaults: &Defaults) -> Result<Mapping, Error> {
        let failed = |source: std::io::Error| Error::File { path: path.to_owned(), source };
        let file = folder::open_card(path)?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
        let length = file.metadata().map_err(failed)?.len();
        if length != BYTES as u64 && length > 0 {
            refuse_foreign_version_in_use(path, &file)?;
        }
        reserve(&file, length).map_err(|source| {
            let path = path.to_owned();
            if is_full(&source) {
                Error::NoRoom { path, bytes: BYTES, source }
            } else {
                Error::File { path, source }
            }
        })?;
        // SAFETY: a new shared mapping of a file we hold open, at an address of the kernel's choice.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &file,
                0,
            )
        };
        let address = address.map_err(|e| failed(e.into()))?;
        let segment = NonNull::new(address.cast::<Segment>()).expect("mmap never returns null on success");
        let mapping = Mapping { segment, file };
        mapping.make_ready(path, defaults)?;
        Ok(mapping)
    }

    /// Under the `flock`: checks what is there, makes it where it is missing, and lets others in.
    fn make_ready(&self, path: &Path, defaults: &Defaults) -> Result<(), Error> {
        let segment = self.segment();
        let known = segment.magic.load(Acquire) == MAGIC && segment.version.load(Relaxed) == VERSION;
        if !known {
            if segment.magic.load(Relaxed) == MAGIC && self.anyone_alive() {
                let found = segment.version.load(Relaxed);
                return Err(Error::OtherVersion { path: path.to_owned(), found, ours: VERSION });
            }
            self.write_settings(path, defaults);
        }
        if !known || !self.anyone_alive() {
            self.write_idle_state();
        }
        segment.version.store(VERSION, Relaxed);
        segment.bytes.store(BYTES as u32, Relaxed);
        segment.magic.store(MAGIC, Release);
        Ok(())
    }

    pub fn segment(&self) -> &Segment {
        // SAFETY: the mapping is `BYTES` long, page-aligned, lives as long as `self`, and every field is an
        // atomic or a mutex word, for which any bit pattern is a value.
        unsafe { self.segment.as_ref() }
    }

    /// Takes a vacant process slot for this process.
    pub fn claim_process(&self) -> Option<usize> {
        let slots = &self.segment().processes;
        let index = slots.iter().position(|slot| slot.pid.load(Relaxed) == 0)?;
        let pid = std::process::id();
        let slot = &slots[index];
        slot.used_bytes.store(0, Relaxed);
        slot.sleepers.store(0, Relaxed);
        slot.started.store(liveness::start_time(pid).unwrap_or(0), Relaxed);
        slot.pid.store(pid, Release);
        Some(index)
    }

    /// Lets other processes open the card; until then this one is alone with it.
    pub fn end_exclusion(&self) {
        rustix::fs::flock(&self.file, FlockOperation::Unlock).expect("a held flock can be given up");
    }

    fn anyone_alive(&self) -> bool {
        self.segment().processes.iter().any(|slot| {
            let pid = slot.pid.load(Relaxed);
            pid != 0 && liveness::start_time(pid) == Some(slot.started.load(Relaxed))
        })
    }

    fn write_settings(&self, path: &Path, defaults: &Defaults) {
        let settings = &self.segment().settings;
        settings.domain.store(u32::from(defaults.domain == Domain::Shared), Relaxed);
        settings.sms.store(defaults.sms, Relaxed);
        settings.memory_bytes.store(defaults.memory_bytes, Relaxed);
        settings.switch_cost.store(defaults.switch_cost.0, Relaxed);
        settings.default_timeslice.store(defaults.timeslice.0.max(1), Relaxed);
        // The whole path: cards of one name in two folders are two cards, and somebody may tell them apart by this.
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let place = place.as_os_str().as_encoded_bytes();
        settings.uuid[0].store(fingerprint(place, 0xcbf2_9ce4_8422_2325), Relaxed);
        settings.uuid[1].store(fingerprint(place, 0x6c62_272e_07bb_0142), Relaxed);
    }

    fn write_idle_state(&self) {
        let segment = self.segment();
        segment.lock.initialise();
        segment.runnable.store(0, Relaxed);
        segment.current.store(0, Relaxed);
        segment.last.store(0, Relaxed);
        segment.on_chip.store(0, Relaxed);
        segment.overfull.store(0, Relaxed);
        segment.slice_end.store(0, Relaxed);
        segment.best_pending.store(NO_PRIORITY, Relaxed);
        segment.switches.store(0, Relaxed);
        for slot in &segment.processes {
            slot.pid.store(0, Relaxed);
            slot.used_bytes.store(0, Relaxed);
        }
        for slot in &segment.contexts {
            slot.clear();
            slot.resident.iter().for_each(SmUse::clear);
        }
        segment.totals.iter().for_each(SmUse::clear);
        segment.left_at.iter().for_each(|left| left.store(0, Relaxed));
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `open` with this length, and no reference outlives `self`.
        let result = unsafe { rustix::mm::munmap(self.segment.as_ptr().cast(), BYTES) };
        debug_assert!(result.is_ok(), "a mapping we made can be unmapped");
    }
}

/// Gives the file its length and all its blocks: a store into a mapping that the folder has no room for is a SIGBUS, and in the
/// middle of somebody's program. A file that cannot have them keeps the length it had.
fn reserve(file: &File, length: u64) -> io::Result<()> {
    if length > BYTES as u64 {
        file.set_len(BYTES as u64)?;
    }
    let reserved = match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, BYTES as u64) {
        // Where room cannot be reserved it is taken by writing. What is there stays: others may have it mapped.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let missing = BYTES.saturating_sub(usize::try_from(length).unwrap_or(BYTES));
            file.write_all_at(&vec![0; missing], (BYTES - missing) as u64)
        }
        other => other.map_err(io::Error::from),
    };
    reserved.inspect_err(|_| {
        let _ = file.set_len(length.min(BYTES as u64));
    })
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// A file of another size is another layout: refuse to cut it while its owner may have it mapped.
fn refuse_foreign_version_in_use(path: &Path, file: &File) -> Result<(), Error> {
    let mut head = [0; 16];
    let complete = file.read_exact_at(&mut head, 0).is_ok();
    let magic = u64::from_le_bytes(head[..8].try_into().expect("eight bytes are eight bytes"));
    let found = u32::from_le_bytes(head[8..12].try_into().expect("four bytes are four bytes"));
    if complete && magic == MAGIC && found != VERSION {
        return Err(Error::OtherVersion { path: path.to_owned(), found, ours: VERSION });
    }
    Ok(())
}

/// FNV-1a: a name's stable number.
fn fingerprint(bytes: &[u8], seed: u64) -> u64 {
    bytes.iter().fold(seed, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
