//! Files that a process maps and writes into: how they are called, and how they come by their room.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::ptr;

use rustix::fd::OwnedFd;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::Error;

/// Opens such a file to read it: one of so many bytes, and of this user where one is given. Whoever wrote it may have put
/// something else in its place, which must neither be waited for nor believed.
pub(crate) fn open(path: &Path, owner: Option<u32>, bytes: usize, what: &'static str) -> Result<File, Error> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let unread = |reason| Error::Read { path: path.to_owned(), reason };
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unread)?;
    let facts = file.metadata().map_err(unread)?;
    let no = |reason| Err(Error::Not { path: path.to_owned(), what, reason });
    match () {
        () if !facts.is_file() => no("it is no file"),
        () if owner.is_some_and(|owner| facts.uid() != owner) => no("it is another user's"),
        () if facts.len() != bytes as u64 => no("it has another size"),
        () => Ok(file),
    }
}

/// What the files of one process are called before the point: its number, and when it began to write.
#[derive(Clone, Copy, Debug)]
pub struct Stem {
    pub(crate) pid: u32,
    seconds: i64,
    nanos: i64,
}

impl Stem {
    /// Of this process, now.
    pub fn now() -> Stem {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let pid = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
        Stem { pid, seconds: now.tv_sec, nanos: now.tv_nsec }
    }

    /// Makes `<stem>.<ending>` in a folder, and maps so many bytes of it for good.
    pub(crate) fn map(
        self,
        folder: &CStr,
        ending: &str,
        bytes: usize,
        flags: MapFlags,
    ) -> Result<*mut u8, Error> {
        let mut path = [0; 4096];
        let mut rest = &mut path[..];
        rest.write_all(folder.to_bytes())
            .and_then(|()| write!(rest, "/{}-{}{:09}.{ending}\0", self.pid, self.seconds, self.nanos))
            .map_err(|_| Error::NameTooLong)?;
        let path = CStr::from_bytes_until_nul(&path).expect("a zero was written behind the name");
        map_file(path, bytes, flags).map_err(Error::Make)
    }
}

fn map_file(path: &CStr, bytes: usize, flags: MapFlags) -> Result<*mut u8, Errno> {
    let open = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, open, Mode::RUSR | Mode::WUSR)?;
    let mapped = reserve(&file, bytes).and_then(|()| {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | flags);
        // SAFETY: a new mapping, at a place of the kernel's choice.
        unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, prot, flags, &file, 0) }
    });
    mapped.map(<*mut _>::cast).inspect_err(|_| {
        // A file that cannot be written is better absent than empty.
        let _ = rustix::fs::unlink(path);
    })
}

/// Gives the file all its blocks now, so that no later store can find the disk full.
pub(crate) fn reserve(file: &OwnedFd, bytes: usize) -> Result<(), Errno> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        other => return other,
    }
    let zeros = [0; 4096];
    let mut written = 0;
    while written < bytes {
        let part = zeros.len().min(bytes - written);
        written += rustix::io::write(file, &zeros[..part])?;
    }
    Ok(())
}
