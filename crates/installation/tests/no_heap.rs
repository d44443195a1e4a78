//! The search for the driver runs inside other people's processes, perhaps inside their allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

use installation::search::{Surroundings, each_candidate};

/// The system's allocator, counting what this thread asks of it.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came; counting touches a constant-initialised cell only.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: passed on to our caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on to our caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn looking_for_the_driver_allocates_nothing() {
    let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
    let surroundings =
        Surroundings { setting: None, library_path: Some(b"/a:/b:relative::/c"), cache: &cache };
    let before = ALLOCATIONS.get();
    assert!(before > 0, "the test itself must be counted");
    let mut seen = 0;
    each_candidate(&surroundings, &mut |_, path| {
        seen += path.count_bytes();
        ControlFlow::Continue(())
    });
    assert_eq!(ALLOCATIONS.get(), before);
    assert!(seen > 0);
}
