//! The lock of one GPU, on which the best-effort tenants of all daemons of a machine meet.
//!
//! Seats of one board take turns by its token. Boards do not know each other: two users may each have a daemon, and a
//! machine's daemon may come beside them. So the holder of a board's token also takes a lock on the GPU itself before its
//! work goes there, and gives it back with every turn. The kernel arbitrates: it is a `flock` of a file that belongs to the
//! GPU, not to anybody's folder (an attribute of the PCI device in sysfs; a file beside the card of a software GPU). Every
//! user can open it for reading, which is enough; nobody can remove or replace it; it is gone with the process that held it.
//!
//! Two files make it fair. Who wants the lock first takes the *queue*, and has it until it has the lock; so there is one
//! who is next, and who gives the lock back cannot take it again before that one. Who just had it waits a little before it
//! asks for the queue again, so that others who look there now and then come first.
//!
//! Nobody is trusted: who is next waits a bounded time for the lock, and then goes on without it, with a slice that gets
//! work done beside somebody (`policy::lease`). The same holds where the files cannot be reached, as in a container with a
//! sysfs of its own.

use std::ffi::CStr;

use board::link::OwnDescriptor;
use cuda_abi::CUdevice;
use model::Nanos;
use rustix::fd::{FromRawFd as _, OwnedFd};
use rustix::fs::{FlockOperation, Mode, OFlags};

use super::lever::software_lock_file;
use super::proof::pci_name;
use crate::log::say;

/// How often one who waits looks.
const LOOK: Nanos = Nanos::from_millis(1);
/// How long one who has just given the lock back leaves the queue to others.
const AFTER_YOU: Nanos = Nanos::from_millis(3);
/// How long one who is next waits for the lock. A turn is shorter, unless its holder hangs or means no good.
const NEXT_PATIENCE: Nanos = Nanos::from_millis(400);
/// How long one waits to be next. Others may be in the queue, each for a turn.
const QUEUE_PATIENCE: Nanos = Nanos::from_millis(3_000);
/// Who has gone on without the lock does not wait for it again so soon.
const NO_WAIT: Nanos = Nanos::from_millis(10_000);

/// What came of asking for the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Held,
    /// Somebody else may be on the GPU: there is no lock, or it was not given back in time.
    Without,
    /// Ask again after this.
    Wait(Nanos),
}

pub struct GpuLock {
    files: Option<[LockFile; 2]>,
    /// When files that could not be had, or that the program has closed, are opened again.
    open_again: Nanos,
    waiting_since: Option<Nanos>,
    next_since: Option<Nanos>,
    not_before: Nanos,
    no_wait_before: Nanos,
    /// The turn goes on without the lock.
    without: bool,
    /// When somebody else was last seen to have the lock or to want it.
    others_seen: Nanos,
}

const LOCK: usize = 0;
const QUEUE: usize = 1;

impl GpuLock {
    pub const fn new() -> GpuLock {
        GpuLock {
            files: None,
            open_again: Nanos::ZERO,
            waiting_since: None,
            next_since: None,
            not_before: Nanos::ZERO,
            no_wait_before: Nanos::ZERO,
            without: false,
            others_seen: Nanos::ZERO,
        }
    }

    /// Asks for the lock. Asked again by who has it, it says so.
    pub fn ask(&mut self, device: CUdevice, now: Nanos) -> Asked {
        let usable = |files: &[LockFile; 2]| files.iter().all(LockFile::is_open);
        if !self.files.as_ref().is_some_and(usable) && now >= self.open_again {
            self.open_again = now + NO_WAIT;
            self.files = open(device);
        }
        let Some([lock, queue]) = &mut self.files else { return Asked::Without };
        if lock.held {
            return Asked::Held;
        }
        if self.without {
            return Asked::Without;
        }
        if now < self.not_before {
            return Asked::Wait(self.not_before.since(now));
        }
        let waited = now.since(*self.waiting_since.get_or_insert(now));
        if !queue.held && !queue.take() {
            self.others_seen = now;
            return self.patience(waited < QUEUE_PATIENCE, now);
        }
        let is_next_for = now.since(*self.next_since.get_or_insert(now));
        let taken = lock.take();
        if taken || is_next_for >= NEXT_PATIENCE {
            queue.give_back();
        }
        match taken {
            true => {
                self.waiting_since = None;
                self.next_since = None;
                Asked::Held
            }
            false => {
                self.others_seen = now;
                self.patience(is_next_for < NEXT_PATIENCE, now)
            }
        }
    }

    fn patience(&mut self, has_any: bool, now: Nanos) -> Asked {
        if has_any && now >= self.no_wait_before {
            return Asked::Wait(LOOK);
        }
        if now >= self.no_wait_before {
            say!("somebody keeps the lock of the GPU for too long; going on without it");
            self.no_wait_before = now + NO_WAIT;
        }
        self.without = true;
        self.next_since = None;
        self.waiting_since = None;
        if let Some([_, queue]) = &mut self.files {
            queue.give_back();
        }
        Asked::Without
    }

    /// Whether somebody is next, and we have what they wait for.
    pub fn is_wanted(&mut self, now: Nanos) -> bool {
        let Some([lock, queue]) = &mut self.files else { return false };
        if !lock.held {
            return false;
        }
        let free = queue.take();
        queue.give_back();
        if !free {
            self.others_seen = now;
        }
        !free
    }

    /// For how long nobody else has shown interest in the lock.
    pub fn unshared_for(&self, now: Nanos) -> Nanos {
        now.since(self.others_seen)
    }

    /// Whether the turn goes on without the lock though there is one: somebody else may be on the GPU.
    pub fn is_without(&self) -> bool {
        self.without
    }

    pub fn is_held(&self) -> bool {
        self.files.as_ref().is_some_and(|[lock, _]| lock.held && lock.is_open())
    }

    /// The turn is over, and nothing of ours is on the GPU.
    pub fn give_back(&mut self, now: Nanos) {
        self.without = false;
        self.waiting_since = None;
        self.next_since = None;
        let Some([lock, queue]) = &mut self.files else { return };
        queue.give_back();
        if lock.give_back() {
            self.not_before = now + AFTER_YOU;
        }
    }
}

/// One of the files. Its descriptor is out of the program's way, and not left to the children of a fork: a lock belongs to
/// whoever has the descriptor open, and would stay with them.
struct LockFile {
    file: OwnDescriptor,
    held: bool,
}

impl LockFile {
    fn new(file: OwnedFd) -> Option<LockFile> {
        OwnDescriptor::new(file).ok().map(|file| LockFile { file, held: false })
    }

    /// Whether the program has left it to us.
    fn is_open(&self) -> bool {
        self.file.get().is_some()
    }

    fn take(&mut self) -> bool {
        let locked = |file| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
        self.held = self.file.get().is_some_and(locked);
        self.held
    }

    /// Whether it was held.
    fn give_back(&mut self) -> bool {
        let held = std::mem::take(&mut self.held);
        if let Some(file) = self.file.get().filter(|_| held) {
            let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        }
        held
    }
}

fn open(device: CUdevice) -> Option<[LockFile; 2]> {
    let files = match [LOCK, QUEUE].map(|which| software_lock_file(which as u64)) {
        [Some(lock), Some(queue)] => {
            // SAFETY: descriptors that the software GPU opened for us just now, and that nobody else knows.
            [lock, queue].map(|file| unsafe { OwnedFd::from_raw_fd(file) })
        }
        _ => of_pci_device(device)?,
    };
    let [lock, queue] = files;
    Some([LockFile::new(lock)?, LockFile::new(queue)?])
}

fn of_pci_device(device: CUdevice) -> Option<[OwnedFd; 2]> {
    let mut place = [0; 16];
    let name = pci_name(device, &mut place)?;
    let open = |attribute: &str| {
        let mut path = [0u8; 80];
        let mut length = 0;
        for part in ["/sys/bus/pci/devices/", name, "/", attribute] {
            path.get_mut(length..length + part.len())?.copy_from_slice(part.as_bytes());
            length += part.len();
        }
        rustix::fs::open(
            CStr::from_bytes_until_nul(&path).ok()?,
            OFlags::RDONLY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .ok()
    };
    Some([open("device")?, open("vendor")?])
}
