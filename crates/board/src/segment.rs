//! The memory of a board: made, passed on as a file, and checked before it is touched.
//!
//! The file is sealed against changes of its size before anybody else sees it. Without that, any tenant could shorten it,
//! and the next load of all others would be a SIGBUS; so a file that is not sealed is refused, whoever it came from.
//! Mappings of tenants stay until the process ends, for threads may look at a board at any time.

use std::ptr;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::Error;
use crate::layout::{BYTES, Layout, MAGIC, VERSION};

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// A new memory file of the right size, all zero.
pub(crate) fn create() -> Result<(&'static Layout, OwnedFd), Error> {
    let file = sized().map_err(Error::Make)?;
    let layout = map(file.as_fd())?;
    Ok((layout, file))
}

fn sized() -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match rustix::fs::memfd_create(c"ebb-board", flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know the last flag.
        Err(Errno::INVAL) => rustix::fs::memfd_create(c"ebb-board", flags)?,
        other => other?,
    };
    rustix::fs::ftruncate(&file, BYTES as u64)?;
    // All pages now, so that no store by a tenant is the one that finds no memory left.
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, BYTES as u64)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

/// Memory that nobody else sees.
pub(crate) fn private() -> Result<&'static Layout, Error> {
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping, at a place of the kernel's choice.
    let memory = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), BYTES, prot, flags) };
    // SAFETY: the mapping has the size of a layout, is zeroed, aligned to a page, and never unmapped.
    Ok(unsafe { &*memory.map_err(Error::Map)?.cast::<Layout>() })
}

/// Gives a mapping back.
///
/// # Safety
///
/// Nobody in this process looks at it any more.
pub(crate) unsafe fn unmap(layout: &'static Layout) {
    let memory = ptr::from_ref(layout).cast_mut().cast();
    // SAFETY: mapped here with this size, and the caller says that nobody looks. If it fails, it stays, which does no harm.
    let _ = unsafe { rustix::mm::munmap(memory, BYTES) };
}

/// Maps what somebody says is a board, if its size cannot change.
pub(crate) fn open(file: BorrowedFd<'_>) -> Result<&'static Layout, Error> {
    // Only memory files have seals to ask for.
    let seals = rustix::fs::fcntl_get_seals(file).map_err(|_| Error::NotAMemoryFile)?;
    if !seals.contains(SEALS) {
        return Err(Error::NotSealed);
    }
    let found = rustix::fs::fstat(file).map_err(Error::Map)?.st_size;
    if found != BYTES as i64 {
        let size = Error::Size { found: found.unsigned_abs(), expected: BYTES as u64 };
        return Err(other_version(file).unwrap_or(size));
    }
    map(file)
}

/// Boards of other versions have other sizes. That it is one of them says more than its size does.
fn other_version(file: BorrowedFd<'_>) -> Option<Error> {
    let mut beginning = [0; 12];
    if rustix::io::pread(file, &mut beginning, 0) != Ok(beginning.len()) {
        return None;
    }
    let (magic, version) = beginning.split_first_chunk::<8>()?;
    let found = u32::from_le_bytes(version.try_into().ok()?);
    (u64::from_le_bytes(*magic) == MAGIC && found != VERSION).then_some(Error::Version { found })
}

fn map(file: BorrowedFd<'_>) -> Result<&'static Layout, Error> {
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping, at a place of the kernel's choice.
    let memory = unsafe { rustix::mm::mmap(ptr::null_mut(), BYTES, prot, flags, file, 0) };
    // SAFETY: the file has the size of a layout and is sealed against another, so all of the mapping is backed for as long
    // as it exists, which is for ever; it is aligned to a page, and made of atomics, so that it may change under us and
    // any bytes are a value.
    Ok(unsafe { &*memory.map_err(Error::Map)?.cast::<Layout>() })
}
