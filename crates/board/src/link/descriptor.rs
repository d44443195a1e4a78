//! A descriptor that a library keeps inside somebody else's program.
//!
//! The numbers of descriptors are the program's. One that becomes a daemon closes everything from 3 upwards, and the next
//! file it opens has a number that was ours. So a library must know that a number still means its own file before it
//! reads, writes or closes it. [`OwnDescriptor`] remembers which file it was, asks before every use, and forgets a number
//! that is somebody else's by now.
//!
//! Between the question and the use another thread of the program may close the number and open a file. Nothing in the
//! kernel rules that out; it takes two calls within a microsecond. Ours have high numbers, so a program that closes them
//! does not get them for the files that it opens next.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::fd::{AsFd, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::Resource;

/// Programs reach this number only if they have so many files open. Much higher ones would make the kernel's table of
/// descriptors large, which every fork copies.
const OUT_OF_THE_WAY: u64 = 960;

/// Which file a descriptor means, whatever its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    pub fn of(file: BorrowedFd<'_>) -> Result<FileIdentity, Errno> {
        let stat = rustix::fs::fstat(file)?;
        Ok(FileIdentity { device: stat.st_dev, inode: stat.st_ino })
    }

    /// Of whatever has a number now, if anything has.
    pub fn of_number(number: RawFd) -> Option<FileIdentity> {
        if number < 0 {
            return None;
        }
        // SAFETY: not negative. It is only asked what it is, and the answer may be that there is nothing.
        let file = unsafe { BorrowedFd::borrow_raw(number) };
        FileIdentity::of(file).ok()
    }

    /// As two numbers, for places that threads share.
    pub fn to_words(self) -> [u64; 2] {
        [self.device, self.inode]
    }

    pub fn from_words([device, inode]: [u64; 2]) -> FileIdentity {
        FileIdentity { device, inode }
    }
}

/// A descriptor of ours, for as long as nobody else has its number.
#[derive(Debug)]
pub struct OwnDescriptor {
    number: RawFd,
    identity: FileIdentity,
}

impl OwnDescriptor {
    /// Takes a descriptor that was made just now, and moves it out of the program's way. Where that cannot be done it stays.
    pub fn new(file: OwnedFd) -> Result<OwnDescriptor, Errno> {
        let file = rustix::io::fcntl_dupfd_cloexec(&file, lowest_number()).unwrap_or(file);
        let identity = FileIdentity::of(file.as_fd())?;
        let number = file.into_raw_fd();
        KEPT.iter().any(|kept| kept.put(number, identity));
        Ok(OwnDescriptor { number, identity })
    }

    /// The descriptor, to be used at once. `None`: the number means another file by now, or none.
    pub fn get(&self) -> Option<BorrowedFd<'_>> {
        if FileIdentity::of_number(self.number) != Some(self.identity) {
            return None;
        }
        // SAFETY: it is open, and the file is the one that we were given.
        Some(unsafe { BorrowedFd::borrow_raw(self.number) })
    }

    /// The plain descriptor, for a process that has no code but its own.
    pub fn into_owned(self) -> Option<OwnedFd> {
        let own = self.get().is_some();
        KEPT.iter().any(|kept| kept.take(self.number, self.identity));
        let number = self.number;
        std::mem::forget(self);
        // SAFETY: ours, and nobody closes it but who is given it here.
        own.then(|| unsafe { OwnedFd::from_raw_fd(number) })
    }
}

impl Drop for OwnDescriptor {
    fn drop(&mut self) {
        KEPT.iter().any(|kept| kept.take(self.number, self.identity));
        close(self.number, self.identity);
    }
}

/// Closes a number that still means a file of ours.
fn close(number: RawFd, identity: FileIdentity) {
    if FileIdentity::of_number(number) == Some(identity) {
        // SAFETY: open and ours, and the caller forgets it.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}

/// From which number on ours should be.
fn lowest_number() -> RawFd {
    let limit = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // A sixteenth of few numbers is enough for us.
    RawFd::try_from(OUT_OF_THE_WAY.min(limit - limit / 16)).unwrap_or(0)
}

/// All descriptors of ours in this process, for the child of a fork. One that has no place here stays open in children.
static KEPT: [KeptDescriptor; 32] = [const { KeptDescriptor::new() }; 32];

struct KeptDescriptor {
    /// Or [`NONE`], or [`CLAIMED`].
    number: AtomicI32,
    identity: [AtomicU64; 2],
}

const NONE: RawFd = -1;
const CLAIMED: RawFd = -2;

impl KeptDescriptor {
    const fn new() -> KeptDescriptor {
        KeptDescriptor { number: AtomicI32::new(NONE), identity: [const { AtomicU64::new(0) }; 2] }
    }

    fn put(&self, number: RawFd, identity: FileIdentity) -> bool {
        if self.number.compare_exchange(NONE, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        for (place, word) in self.identity.iter().zip(identity.to_words()) {
            place.store(word, Ordering::Relaxed);
        }
        // SYNC(kept-descriptor): a thread that sees the number sees which file it means.
        self.number.store(number, Ordering::Release);
        true
    }

    /// Two may have one number, if the program closed the first of them; so the file must be the same too.
    fn take(&self, number: RawFd, identity: FileIdentity) -> bool {
        // SYNC(kept-descriptor): pairs with the store in `put`.
        self.number.load(Ordering::Acquire) == number
            && self.identity() == identity
            && self.number.compare_exchange(number, NONE, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn identity(&self) -> FileIdentity {
        FileIdentity::from_words([0, 1].map(|word: usize| self.identity[word].load(Ordering::Relaxed)))
    }
}

/// In the child of a fork, which has copies of its parent's descriptors and no use for them: a copy of a connection would
/// keep it open when the parent is gone.
pub fn close_in_child() {
    for kept in &KEPT {
        // SYNC(kept-descriptor): pairs with the store in `put`.
        let number = kept.number.swap(NONE, Ordering::Acquire);
        close(number, kept.identity());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd as _;

    fn socket() -> (OwnedFd, OwnedFd) {
        use rustix::net::{AddressFamily, SocketFlags, SocketType};
        let flags = SocketFlags::CLOEXEC;
        rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a pair")
    }

    /// Puts another file where a number is, as a program does that closes and opens.
    fn steal(number: RawFd) -> File {
        let other = File::open("/dev/null").expect("there is one");
        // SAFETY: the numbers are open, and the file that is made owns the second one from now on.
        let mut stolen = unsafe { OwnedFd::from_raw_fd(number) };
        rustix::io::dup2(&other, &mut stolen).expect("a number that is open");
        File::from(stolen)
    }

    #[test]
    fn ours_are_out_of_the_way() {
        let (own, _other) = socket();
        let own = OwnDescriptor::new(own).expect("a descriptor");
        assert!(own.number >= lowest_number() && lowest_number() >= 48);
        assert!(own.get().is_some());
    }

    #[test]
    fn a_number_that_is_somebody_elses_is_neither_used_nor_closed() {
        let (own, _other) = socket();
        let own = OwnDescriptor::new(own).expect("a descriptor");
        let theirs = steal(own.number);
        assert!(own.get().is_none());
        drop(own);
        theirs.metadata().expect("it is still open");
    }

    #[test]
    fn one_that_was_closed_is_not_there() {
        let (own, _other) = socket();
        let own = OwnDescriptor::new(own).expect("a descriptor");
        let (number, identity) = (own.number, own.identity);
        // SAFETY: what the program does, which has not heard of us.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
        assert!(own.get().is_none());
        assert_ne!(FileIdentity::of_number(number), Some(identity));
        assert!(own.into_owned().is_none());
    }

    #[test]
    fn dropped_it_is_closed_and_given_away_it_is_not() {
        let (own, other) = socket();
        let own = OwnDescriptor::new(own).expect("a descriptor");
        let kept = own.into_owned().expect("nobody took it");
        assert!(kept.as_raw_fd() >= lowest_number());
        let (number, identity) = (kept.as_raw_fd(), FileIdentity::of(kept.as_fd()).expect("open"));
        drop(OwnDescriptor { number, identity });
        std::mem::forget(kept);
        let mut byte = [0; 1];
        let (_, length) =
            rustix::net::recv(&other, &mut byte, rustix::net::RecvFlags::DONTWAIT).expect("its end");
        assert_eq!(length, 0);
    }
}
