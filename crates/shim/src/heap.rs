//! A heap of our own, for the smith.
//!
//! The rest of the shim does without a heap, but reading and rewriting images is the work of crates that want one. The
//! host's is not to be used: it may be replaced, counted or broken, and a thread that dies in it takes the program along. So
//! all of Rust's allocations in this library come from here, from mappings of our own: small ones by powers of two out of
//! chunks, large ones as pages that the kernel moves when they grow.
//!
//! Rust ends the process when there is no memory. A guest must not do that to its host, so the smith, who is the only one
//! that asks for much, is left to sleep for ever instead (`twins::starve`).

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, MremapFlags, ProtFlags};

use crate::lock::Lock;
use crate::twins;

/// More than any image and its twin take up, unpacked.
const LIMIT: usize = 4 << 30;
const CHUNK: usize = 1 << 20;
const PAGE: usize = 4096;
const SMALLEST: usize = 16;
/// From here on an allocation has pages of its own.
const LARGE: usize = 32 << 10;
const CLASSES: usize = (LARGE / SMALLEST).ilog2() as usize;

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// Held while one of the lists below is changed.
static LOCK: Lock = Lock::new();
/// What was given back, by class; each place begins with the address of the next.
static FREE: [AtomicPtr<u8>; CLASSES] = [const { AtomicPtr::new(ptr::null_mut()) }; CLASSES];
/// What is left of the chunk.
static NEXT: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static LEFT: AtomicUsize = AtomicUsize::new(0);
/// Bytes that are mapped.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// In the child of a fork, where another thread may have been cut short in here: what was free is forgotten.
pub fn in_child() {
    LOCK.reset();
    FREE.iter().for_each(|list| list.store(ptr::null_mut(), Ordering::Relaxed));
    LEFT.store(0, Ordering::Relaxed);
}

// SAFETY: places are disjoint, as large and as aligned as asked for, and stay until they are given back; a large one is
// told from a small one by its layout, which the caller knows again when it gives it back. Nothing here unwinds.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let place = match class(layout) {
            Some(class) => small(class),
            None if layout.align() <= PAGE => map(pages(layout.size())),
            None => ptr::null_mut(),
        };
        if place.is_null() {
            twins::starve();
        }
        place
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's layout.
        let place = unsafe { self.alloc(layout) };
        // Pages of its own are fresh ones: those that nobody writes to are never there.
        if !place.is_null() && class(layout).is_some() {
            // SAFETY: just given out, and as long as that.
            unsafe { place.write_bytes(0, layout.size()) };
        }
        place
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        match class(layout) {
            // SAFETY: the place is one of this class, and its owner has done with it.
            Some(class) => unsafe { give_back(class, place) },
            // SAFETY: pages that were mapped for this layout, and whose owner has done with them.
            None => unsafe { unmap(place, pages(layout.size())) },
        }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller vouches for a size that does not overflow when it is aligned.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (class(layout), class(wanted)) {
            (Some(old), Some(new)) if old == new => place,
            (None, None) => {
                // SAFETY: pages that were mapped for this layout.
                let moved = unsafe { resize(place, pages(layout.size()), pages(size)) };
                if moved.is_null() {
                    twins::starve();
                }
                moved
            }
            _ => {
                // SAFETY: the caller's layout, but for the size.
                let new = unsafe { self.alloc(wanted) };
                if !new.is_null() {
                    // SAFETY: both places are as long as that, and not the same.
                    unsafe { ptr::copy_nonoverlapping(place, new, layout.size().min(size)) };
                    // SAFETY: the caller gives it back.
                    unsafe { self.dealloc(place, layout) };
                }
                new
            }
        }
    }
}

/// The class of what is small. A place is aligned to its own size.
fn class(layout: Layout) -> Option<usize> {
    let size = layout.size().max(layout.align()).max(SMALLEST).next_power_of_two();
    (size < LARGE).then(|| (size / SMALLEST).ilog2() as usize)
}

fn pages(size: usize) -> usize {
    size.next_multiple_of(PAGE)
}

fn small(class: usize) -> *mut u8 {
    let size = SMALLEST << class;
    // Who cannot have the lock in time has a page.
    let Some(_held) = LOCK.acquire() else { return map(pages(size)) };
    let first = FREE[class].load(Ordering::Relaxed);
    if !first.is_null() {
        // SAFETY: a place that was given back begins with the address of the next.
        FREE[class].store(unsafe { first.cast::<*mut u8>().read() }, Ordering::Relaxed);
        return first;
    }
    let mut next = NEXT.load(Ordering::Relaxed);
    let mut skipped = next.addr().wrapping_neg() & (size - 1);
    if LEFT.load(Ordering::Relaxed) < size + skipped {
        next = map(CHUNK);
        if next.is_null() {
            return next;
        }
        skipped = next.addr().wrapping_neg() & (size - 1);
        LEFT.store(CHUNK, Ordering::Relaxed);
    }
    let place = next.wrapping_add(skipped);
    NEXT.store(place.wrapping_add(size), Ordering::Relaxed);
    LEFT.fetch_sub(size + skipped, Ordering::Relaxed);
    place
}

/// # Safety
/// The place must be one that [`small`] has given out for this class, and nobody's any more.
unsafe fn give_back(class: usize, place: *mut u8) {
    // Without the lock it is lost, which is better than to wait.
    let Some(_held) = LOCK.acquire() else { return };
    // SAFETY: a place is as large as an address, and aligned for one.
    unsafe { place.cast::<*mut u8>().write(FREE[class].load(Ordering::Relaxed)) };
    FREE[class].store(place, Ordering::Relaxed);
}

fn map(bytes: usize) -> *mut u8 {
    if !count(0, bytes) {
        return ptr::null_mut();
    }
    let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a new mapping at a place of the kernel's choice.
    let memory = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, prot, flags) };
    memory.map_or_else(
        |_| {
            count(bytes, 0);
            ptr::null_mut()
        },
        <*mut c_void>::cast,
    )
}

/// # Safety
/// The pages must have been mapped here, and be nobody's any more.
unsafe fn unmap(place: *mut u8, bytes: usize) {
    // SAFETY: passed on to our caller.
    if unsafe { rustix::mm::munmap(place.cast(), bytes) }.is_ok() {
        count(bytes, 0);
    }
}

/// # Safety
/// The pages must have been mapped here. They are the caller's no more, unless null is given.
unsafe fn resize(place: *mut u8, old: usize, new: usize) -> *mut u8 {
    if !count(old, new) {
        return ptr::null_mut();
    }
    // SAFETY: passed on to our caller.
    let moved = unsafe { rustix::mm::mremap(place.cast(), old, new, MremapFlags::MAYMOVE) };
    moved.map_or_else(
        |_| {
            count(new, old);
            ptr::null_mut()
        },
        <*mut c_void>::cast,
    )
}

/// So many bytes less and so many more are mapped; not if that were too many.
fn count(less: usize, more: usize) -> bool {
    let next = |taken: usize| {
        let sum = taken.saturating_sub(less).checked_add(more)?;
        (more <= less || sum <= LIMIT).then_some(sum)
    };
    TAKEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_aligned_and_apart() {
        let sizes = [1usize, 16, 17, 500, 4096, 30_000, 40_000, 3 << 20];
        let places: Vec<Vec<u8>> = (0..200).map(|index| vec![index as u8; sizes[index % 8]]).collect();
        for (index, place) in places.iter().enumerate() {
            assert!(place.iter().all(|&byte| byte == index as u8), "{index}");
        }
        let aligned = Layout::from_size_align(24, 1024).unwrap();
        // SAFETY: a layout with a size.
        let place = unsafe { std::alloc::alloc(aligned) };
        assert_eq!(place.addr() % 1024, 0);
        // SAFETY: what was just given out.
        unsafe { std::alloc::dealloc(place, aligned) };
    }

    #[test]
    fn what_grows_and_shrinks_keeps_what_it_holds() {
        let mut numbers = Vec::new();
        for number in 0..300_000u32 {
            numbers.push(number);
        }
        numbers.truncate(3_000);
        numbers.shrink_to_fit();
        assert!(numbers.iter().enumerate().all(|(index, &number)| index as u32 == number));
    }

    #[test]
    fn what_is_given_back_is_given_out_again() {
        let layout = Layout::from_size_align(1 << 14, 8).unwrap();
        let before = TAKEN.load(Ordering::Relaxed);
        for _ in 0..10_000 {
            // SAFETY: a layout with a size.
            let place = std::hint::black_box(unsafe { std::alloc::alloc(layout) });
            // SAFETY: what was just given out.
            unsafe { std::alloc::dealloc(place, layout) };
        }
        assert!(TAKEN.load(Ordering::Relaxed) < before + (64 << 20), "160 MB went through");
    }

    #[test]
    fn threads_share_it() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20_000usize).for_each(|size| drop(vec![0u8; size % 700])));
            }
        });
    }
}
