//! Memory of our own.
//!
//! The host's heap may be replaced, counted, locked or broken, and to fail there is to abort; so what the shim
//! remembers lies in mappings of its own. It is never given back one by one: what is remembered is bounded by what
//! a program loads, and by [`LIMIT`]. When there is no more, the caller does without.

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

use crate::fault;
use crate::lock::Lock;

/// At most so much for one process.
const LIMIT: usize = 256 << 20;
const CHUNK: usize = 1 << 20;

static LOCK: Lock = Lock::new();
static NEXT: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A place for one value, for ever.
pub fn place<T>(value: T) -> Option<&'static T> {
    let memory = take(Layout::new::<T>())?.cast::<T>();
    // SAFETY: fresh memory of the right size and alignment.
    unsafe { memory.write(value) };
    // SAFETY: just written, and never reused.
    Some(unsafe { memory.as_ref() })
}

/// Zeroed places for `count` values of a type for which zeros are a value.
///
/// # Safety
/// All-zero bytes must be a valid `T`.
pub unsafe fn zeroed<T>(count: usize) -> Option<&'static [T]> {
    let memory = take(Layout::array::<T>(count).ok()?)?.cast::<T>();
    // SAFETY: fresh zeroed memory of the right size and alignment, never reused; zeros are values by the contract.
    Some(unsafe { std::slice::from_raw_parts(memory.as_ptr(), count) })
}

/// A copy of a list, for ever.
pub fn copy<T: Copy>(list: &[T]) -> Option<&'static [T]> {
    let memory = take(Layout::for_value(list))?.cast::<T>();
    // SAFETY: fresh memory of that length, which cannot overlap anything.
    unsafe { ptr::copy_nonoverlapping(list.as_ptr(), memory.as_ptr(), list.len()) };
    // SAFETY: just written, and never reused.
    Some(unsafe { std::slice::from_raw_parts(memory.as_ptr(), list.len()) })
}

/// In the child of a fork, where another thread may have been cut short in here: begins a new chunk.
pub fn in_child() {
    LOCK.reset();
    NEXT.store(0, Ordering::Relaxed);
    END.store(0, Ordering::Relaxed);
}

fn take(layout: Layout) -> Option<NonNull<u8>> {
    if fault::memory() {
        return None;
    }
    let size = layout.size().max(1);
    if size > CHUNK / 4 {
        return map(size);
    }
    let _held = LOCK.acquire()?;
    let mut start = NEXT.load(Ordering::Relaxed).next_multiple_of(layout.align());
    if start == 0 || start + size > END.load(Ordering::Relaxed) {
        start = map(CHUNK)?.addr().get();
        END.store(start + CHUNK, Ordering::Relaxed);
    }
    NEXT.store(start + size, Ordering::Relaxed);
    NonNull::new(ptr::with_exposed_provenance_mut(start))
}

/// Fresh pages, within the limit.
fn map(bytes: usize) -> Option<NonNull<u8>> {
    // In one step: somebody who asks for too much must not, even for a moment, leave others without.
    let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= LIMIT);
    TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at a place of the kernel's choice.
    let memory = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, prot, flags) };
    let memory = memory.ok()?.cast::<u8>();
    memory.expose_provenance();
    NonNull::new(memory)
}

/// Pages for a while.
pub struct Pages {
    start: NonNull<c_void>,
    bytes: usize,
}

impl Pages {
    pub fn new(bytes: usize) -> Option<Pages> {
        if fault::memory() || bytes == 0 || bytes > LIMIT {
            return None;
        }
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at a place of the kernel's choice.
        let memory = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, prot, flags) };
        Some(Pages { start: NonNull::new(memory.ok()?)?, bytes })
    }

    pub fn start(&self) -> *mut c_void {
        self.start.as_ptr()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nobody refers to any more.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap() {
        let first = copy(b"first").unwrap();
        let number = place(7u64).unwrap();
        let second = copy(b"second").unwrap();
        assert_eq!((first, *number, second), (&b"first"[..], 7, &b"second"[..]));
        assert_eq!(ptr::from_ref(number).addr() % 8, 0);
    }

    #[test]
    fn what_is_larger_than_a_chunk_has_pages_of_its_own() {
        // SAFETY: zeros are numbers.
        let large = unsafe { zeroed::<u64>(CHUNK) }.unwrap();
        assert_eq!(large.len(), CHUNK);
        assert!(large.iter().all(|&word| word == 0));
    }

    #[test]
    fn there_is_a_limit() {
        // SAFETY: zeros are numbers.
        assert!(unsafe { zeroed::<u8>(LIMIT + 1) }.is_none());
    }
}
