//! Reserved stretches of this process's address space.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// A stretch of virtual memory that belongs to us until it is dropped. It starts out inaccessible; parts of
/// it are then covered with pages of a file. Kept as numbers, since every pointer into it is made on demand.
#[derive(Debug)]
pub(super) struct Window {
    /// What was mapped, `base` rounded up lies inside.
    mapped: usize,
    mapped_bytes: usize,
    base: usize,
    bytes: usize,
}

impl Window {
    pub(super) fn reserve(bytes: usize, align: usize) -> io::Result<Window> {
        let mapped_bytes = bytes.checked_add(align).ok_or(io::ErrorKind::InvalidInput)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: the kernel chooses the place, so nothing that exists is replaced.
        let start =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), mapped_bytes, ProtFlags::empty(), flags) }?;
        let mapped = start.expose_provenance();
        Ok(Window { mapped, mapped_bytes, base: mapped.next_multiple_of(align), bytes })
    }

    pub(super) fn base(&self) -> usize {
        self.base
    }

    /// Covers `[offset, offset + bytes)` with the file's bytes from `file_offset`, readable and writable.
    pub(super) fn cover(
        &self,
        offset: u64,
        bytes: u64,
        file: BorrowedFd<'_>,
        file_offset: u64,
    ) -> io::Result<()> {
        let (place, bytes) = self.part(offset, bytes)?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        let flags = flags | MapFlags::NORESERVE;
        // SAFETY: `part` has checked that the replaced pages lie inside this window. Whoever holds a pointer
        // there made it from a number, and finds memory of the same size behind it as before.
        unsafe { rustix::mm::mmap(place, bytes, protection, flags, file, file_offset) }?;
        // A core dump of the process should not walk through terabytes of holes.
        // SAFETY: the advice changes nothing that a program can see.
        unsafe { rustix::mm::madvise(place, bytes, Advice::LinuxDontDump) }?;
        Ok(())
    }

    /// Makes `[offset, offset + bytes)` inaccessible again.
    pub(super) fn uncover(&self, offset: u64, bytes: u64) -> io::Result<()> {
        let (place, bytes) = self.part(offset, bytes)?;
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: inside this window, as `part` has checked; the caller frees host memory that its user gave
        // up, or takes back pages which no device access is allowed to reach any more.
        unsafe { rustix::mm::mmap_anonymous(place, bytes, ProtFlags::empty(), flags) }?;
        Ok(())
    }

    fn part(&self, offset: u64, bytes: u64) -> io::Result<(*mut c_void, usize)> {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes as u64);
        if !inside || bytes == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok((ptr::with_exposed_provenance_mut(self.base + offset as usize), bytes as usize))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let start = ptr::with_exposed_provenance_mut(self.mapped);
        // SAFETY: exactly what `reserve` mapped. The owner is being dropped, so no pointer made from it is
        // used any more (the contract of `AddressSpace::translate`).
        let unmapped = unsafe { rustix::mm::munmap(start, self.mapped_bytes) };
        debug_assert!(unmapped.is_ok(), "unmapping what was mapped succeeds");
    }
}
