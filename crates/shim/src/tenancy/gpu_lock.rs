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
//! Nobody is trusted, and everybody can take these locks: who is next waits a bounded time, and who has waited too long lately
//! for the little that it got does not wait at all for a while. It goes on without the lock then, with a slice that gets work
//! done beside somebody (`policy::lease`). The same holds where the files cannot be reached, as in a container with a sysfs of
//! its own.

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
/// The longest turn while another daemon's tenant waits, whatever quantum is set.
pub const LONGEST_TURN: Nanos = Nanos::from_millis(200);
/// How long one who is next waits for the lock. A turn is shorter, unless its holder hangs or means no good.
const NEXT_PATIENCE: Nanos = Nanos::from_millis(400);
/// How long one waits at once: others may be in the queue, each for a turn. And all in all lately, before it asks whether that is fair.
const PATIENCE: Nanos = Nanos::from_millis(1_000);
/// It is fair to wait so many times as long as one has held the lock: for as many others as seldom meet.
const FAIR: u64 = 8;
/// Over how much time waiting and holding are held against each other.
const LATELY: Nanos = Nanos::from_millis(20_000);
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
    /// When files that could not be had are asked for again.
    open_again: Nanos,
    waiting_since: Option<Nanos>,
    next_since: Option<Nanos>,
    held_since: Nanos,
    /// For how long the lock was waited for lately, and held: of each turn as much as it may last while others wait.
    waited: Nanos,
    held: Nanos,
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
            held_since: Nanos::ZERO,
            waited: Nanos::ZERO,
            held: Nanos::ZERO,
            not_before: Nanos::ZERO,
            no_wait_before: Nanos::ZERO,
            without: false,
            others_seen: Nanos::ZERO,
        }
    }

    /// Asks for the lock. Asked again by who has it, it says so.
    pub fn ask(&mut self, device: CUdevice, now: Nanos) -> Asked {
        self.have_files(|| open(device), now);
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
        let waiting = now.since(*self.waiting_since.get_or_insert(now));
        if queue.held || queue.take() {
            self.next_since.get_or_insert(now);
            if lock.take() {
                queue.give_back();
                self.stop_waiting(waiting);
                self.held_since = now;
                return Asked::Held;
            }
        }
        self.others_seen = now;
        let is_next_for = self.next_since.map_or(Nanos::ZERO, |since| now.since(since));
        let fair = PATIENCE.max(Nanos(self.held.0.saturating_mul(FAIR)));
        let is_fair = waiting <= PATIENCE && self.waited + waiting <= fair;
        if is_next_for < NEXT_PATIENCE && is_fair && now >= self.no_wait_before {
            return Asked::Wait(LOOK);
        }
        self.go_without(waiting, now)
    }

    fn go_without(&mut self, waiting: Nanos, now: Nanos) -> Asked {
        if now >= self.no_wait_before {
            say!("somebody keeps the lock of the GPU for too long; going on without it");
            self.no_wait_before = now + NO_WAIT;
        }
        self.without = true;
        self.stop_waiting(waiting);
        // It waits again when it has been on the GPU for a while, but not as long.
        (self.waited, self.held) = (self.waited.scaled(1, 2), self.held.scaled(1, 2));
        if let Some([_, queue]) = &mut self.files {
            queue.give_back();
        }
        Asked::Without
    }

    fn stop_waiting(&mut self, waiting: Nanos) {
        (self.waiting_since, self.next_since) = (None, None);
        self.waited += waiting;
        if self.waited + self.held > LATELY {
            (self.waited, self.held) = (self.waited.scaled(1, 2), self.held.scaled(1, 2));
        }
    }

    /// Files that the program has closed are opened again at once, and those that cannot be had now and then. What was held by a
    /// descriptor that is closed is not held any more.
    fn have_files(&mut self, open: impl FnOnce() -> Option<[LockFile; 2]>, now: Nanos) {
        let usable = |files: &[LockFile; 2]| files.iter().all(LockFile::is_open);
        if self.files.as_ref().is_some_and(usable) {
            return;
        }
        self.files = None;
        if now >= self.open_again {
            self.files = open();
        }
        if self.files.is_none() && now >= self.open_again {
            self.open_again = now + NO_WAIT;
        }
    }

    /// Whether somebody is next, and we have what they wait for.
    pub fn is_wanted(&mut self, now: Nanos) -> bool {
        let Some([lock, queue]) = &mut self.files else { return false };
        if !lock.held || !queue.is_open() {
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
        if let Some(since) = self.waiting_since {
            self.stop_waiting(now.since(since));
        }
        let Some([lock, queue]) = &mut self.files else { return };
        queue.give_back();
        if lock.give_back() {
            self.held += now.since(self.held_since).min(LONGEST_TURN);
            self.not_before = now + AFTER_YOU;
        }
    }
}

/// One of the files. Its descriptor is out of the program's way, and not left to the children of a fork: a lock belongs to
/// every process that has the descriptor open, and would stay with them.
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsRawFd as _;
    use rustix::fs::MemfdFlags;

    const MS: u64 = 1_000_000;

    /// Two files on which several who know nothing of each other meet.
    struct Meeting([OwnedFd; 2]);

    impl Meeting {
        fn new() -> Meeting {
            Meeting(
                [0, 1].map(|_| rustix::fs::memfd_create(c"meeting", MemfdFlags::CLOEXEC).expect("memory")),
            )
        }

        fn open(&self) -> [LockFile; 2] {
            let open = |file: &OwnedFd| {
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                let again = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
                LockFile::new(again.expect("it is open")).expect("a descriptor")
            };
            [open(&self.0[LOCK]), open(&self.0[QUEUE])]
        }

        fn lock(&self) -> GpuLock {
            GpuLock { files: Some(self.open()), ..GpuLock::new() }
        }
    }

    /// As long as the first one is alone, before others come.
    const ALONE: u64 = 60_000;

    /// Turns of 50 ms, or longer ones that nobody wants, on a clock of whole milliseconds: for a minute alone, and for so long beside
    /// others. Which part of that time the first one was on the GPU. `others` is what all others do in each millisecond.
    fn part_of_first(lock: &mut GpuLock, seconds: u64, mut others: impl FnMut(Nanos)) -> f64 {
        let (mut on, mut turn_ends) = (0u64, None);
        for millisecond in 1..=ALONE + seconds * 1_000 {
            let now = Nanos(millisecond * MS);
            let together = millisecond > ALONE;
            if together {
                others(Nanos(now.0 - ALONE * MS));
            }
            match turn_ends {
                Some(end) if now < end || !together => on += u64::from(together),
                Some(_) => {
                    lock.give_back(now);
                    turn_ends = None;
                }
                None => {
                    let ready = !matches!(lock.ask(0, now), Asked::Wait(_));
                    turn_ends = ready.then_some(now + Nanos::from_millis(50));
                }
            }
        }
        on as f64 / (seconds * 1_000) as f64
    }

    #[test]
    fn two_take_turns_and_none_goes_without() {
        let meeting = Meeting::new();
        let (mut first, mut second) = (meeting.lock(), meeting.lock());
        let mut second_ends = None;
        let mut without = false;
        let part = part_of_first(&mut first, 10, |now| match second_ends {
            Some(end) if now < end => {}
            Some(_) => {
                second.give_back(now);
                second_ends = None;
            }
            None => {
                let asked = second.ask(0, now);
                without |= asked == Asked::Without;
                second_ends = (asked == Asked::Held).then_some(now + Nanos::from_millis(50));
            }
        });
        assert!((0.42..0.55).contains(&part), "{part}");
        assert!(!without && !first.is_without());
    }

    #[test]
    fn who_keeps_the_lock_or_the_queue_for_ever_keeps_nobody_from_the_gpu() {
        for kept in [LOCK, QUEUE] {
            let meeting = Meeting::new();
            let mut hostile = meeting.open();
            let part = part_of_first(&mut meeting.lock(), 60, |_| {
                let _ = hostile[kept].held || hostile[kept].take();
            });
            assert!(part > 0.8, "{kept}: {part}");
        }
    }

    /// The queue and then the lock are each given back shortly before the other's patience ends, again and again.
    #[test]
    fn who_gives_back_just_in_time_leaves_others_a_fair_part() {
        let meeting = Meeting::new();
        let mut hostile = meeting.open();
        let part = part_of_first(&mut meeting.lock(), 60, |now| {
            let phase = now.0 / MS % 1_350;
            let [lock, queue] = &mut hostile;
            match phase {
                0 => drop(queue.held || queue.take()),
                600 => drop(lock.held || lock.take()),
                900 => drop(queue.give_back()),
                1_280 => drop(lock.give_back()),
                _ => {}
            }
        });
        assert!(part > 0.1, "{part}");
    }

    #[test]
    fn files_that_the_program_has_closed_are_opened_again_and_nobody_waits_for_them() {
        let meeting = Meeting::new();
        let mut lock = meeting.lock();
        assert_eq!(lock.ask(0, Nanos(MS)), Asked::Held);
        let close = |lock: &GpuLock| {
            for file in lock.files.iter().flatten() {
                let number = file.file.get().expect("it is open").as_raw_fd();
                // SAFETY: what the program does, which has not heard of us.
                drop(unsafe { OwnedFd::from_raw_fd(number) });
            }
        };
        close(&lock);
        assert!(!lock.is_held() && !lock.is_wanted(Nanos(2 * MS)));
        lock.give_back(Nanos(3 * MS));
        lock.have_files(|| Some(meeting.open()), Nanos(10 * MS));
        assert_eq!(lock.ask(0, Nanos(10 * MS)), Asked::Held);
        close(&lock);
        lock.give_back(Nanos(11 * MS));
        // They cannot be had any more: nobody waits, and it is not tried again at once.
        lock.have_files(|| None, Nanos(12 * MS));
        lock.have_files(|| panic!("it is too early"), Nanos(13 * MS));
        assert_eq!(lock.ask(0, Nanos(13 * MS)), Asked::Without);
    }
}
