//! Memory for marks: which blocks of a launch have run.
//!
//! One allocation on the device, in chunks. A lane takes marks for its launches from a chunk of its own, one behind the
//! other, and gets another chunk when that one is used up; the old one is free again when the lane has passed the gate
//! behind the last launch that used it. What lies in a chunk from before does not matter, because a mark is the serial of
//! its launch; but serials come round after four billion launches, so every chunk is cleared once in each *era* of serials
//! before it is used, in the stream that is about to use it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use cuda_abi::{CUdeviceptr, CUstream};

use super::driver::ok;
use crate::lock::Lock;
use crate::next;

const CHUNK: u64 = 256 << 10;
const CHUNKS: usize = 256;
/// Nobody's.
const FREE: u32 = u32::MAX;
/// The gate that ends the use of a chunk has not been put yet.
const IN_USE: u64 = 0;
/// Cells of the ordered rule are read in one piece, and two of them are written by different attempts.
const ALIGNMENT: u64 = 16;

pub struct Marks {
    device: AtomicU64,
    lock: Lock,
    chunks: [Chunk; CHUNKS],
}

struct Chunk {
    lane: AtomicU32,
    /// The gate behind its last use, plus one; or [`IN_USE`].
    until: AtomicU64,
    /// The era in which it was last cleared; the first is 1.
    era: AtomicU32,
}

/// Where a lane takes its next marks from.
pub struct Cursor {
    next: AtomicU64,
    end: AtomicU64,
    first: AtomicU32,
    count: AtomicU32,
    era: AtomicU32,
}

/// What a launch needs, and who asks.
pub struct Wish {
    pub lane: u32,
    pub bytes: u64,
    pub era: u32,
    /// The gate that will come behind what the lane has been given so far.
    pub next_gate: u32,
    pub stream: CUstream,
}

/// What it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub at: u64,
    /// Whether they are being cleared, by what stands last in the stream now.
    pub cleared: bool,
}

impl Cursor {
    pub const fn new() -> Cursor {
        Cursor {
            next: AtomicU64::new(0),
            end: AtomicU64::new(0),
            first: AtomicU32::new(0),
            count: AtomicU32::new(0),
            era: AtomicU32::new(0),
        }
    }

    fn take(&self, bytes: u64, era: u32) -> Option<u64> {
        let (next, end) = (self.next.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        if end - next < bytes || self.era.load(Ordering::Relaxed) != era {
            return None;
        }
        self.next.store(next + bytes, Ordering::Relaxed);
        Some(next)
    }

    pub fn clear(&self) {
        self.next.store(0, Ordering::Relaxed);
        self.end.store(0, Ordering::Relaxed);
        self.count.store(0, Ordering::Relaxed);
    }
}

impl Chunk {
    const fn new() -> Chunk {
        Chunk { lane: AtomicU32::new(FREE), until: AtomicU64::new(IN_USE), era: AtomicU32::new(0) }
    }
}

impl Marks {
    pub const fn new() -> Marks {
        Marks { device: AtomicU64::new(0), lock: Lock::new(), chunks: [const { Chunk::new() }; CHUNKS] }
    }

    /// In the calling thread's context.
    pub fn make(&self) -> Option<()> {
        let mut device: CUdeviceptr = 0;
        // SAFETY: a place for the answer.
        ok(unsafe { next::call::cuMemAlloc_v2(&mut device, CHUNK as usize * CHUNKS) })?;
        self.reset();
        self.device.store(device, Ordering::Relaxed);
        Some(())
    }

    pub fn unmake(&self) {
        let device = self.device.swap(0, Ordering::Relaxed);
        if device != 0 {
            // SAFETY: our own memory, which nobody uses any more.
            let _ = unsafe { next::call::cuMemFree_v2(device) };
        }
    }

    /// In the child of a fork: what there was is the parent's.
    pub fn forget(&self) {
        self.device.store(0, Ordering::Relaxed);
        self.lock.reset();
    }

    fn reset(&self) {
        for chunk in &self.chunks {
            chunk.lane.store(FREE, Ordering::Relaxed);
            chunk.era.store(0, Ordering::Relaxed);
        }
    }

    /// Marks for one launch, under the lane's lock. `passed` tells how many gates a lane has passed. `None`: there is no
    /// room now.
    pub fn take(&self, cursor: &Cursor, wish: &Wish, passed: impl Fn(u32) -> u32) -> Option<Taken> {
        let bytes = wish.bytes.max(1).next_multiple_of(ALIGNMENT);
        if let Some(marks) = cursor.take(bytes, wish.era) {
            return Some(Taken { at: marks, cleared: false });
        }
        let count = usize::try_from(bytes.div_ceil(CHUNK)).ok().filter(|count| *count <= CHUNKS)?;
        let _held = self.lock.acquire()?;
        self.leave(cursor, wish.next_gate);
        self.reclaim(passed);
        let first = self.first_free(count)?;
        let cleared = self.enter(cursor, first, count, wish)?;
        Some(Taken { at: cursor.take(bytes, wish.era)?, cleared })
    }

    /// The lane is done with its chunks, once it has passed the next gate.
    fn leave(&self, cursor: &Cursor, gate: u32) {
        let first = cursor.first.load(Ordering::Relaxed) as usize;
        let count = cursor.count.load(Ordering::Relaxed) as usize;
        for chunk in &self.chunks[first..first + count] {
            chunk.until.store(u64::from(gate) + 1, Ordering::Relaxed);
        }
        cursor.clear();
    }

    fn reclaim(&self, passed: impl Fn(u32) -> u32) {
        for chunk in &self.chunks {
            let (lane, until) = (chunk.lane.load(Ordering::Relaxed), chunk.until.load(Ordering::Relaxed));
            if lane != FREE && until != IN_USE && has_passed(passed(lane), (until - 1) as u32) {
                chunk.lane.store(FREE, Ordering::Relaxed);
            }
        }
    }

    /// The first of so many free chunks in a row.
    fn first_free(&self, count: usize) -> Option<usize> {
        let free = |chunk: &Chunk| chunk.lane.load(Ordering::Relaxed) == FREE;
        self.chunks.windows(count).position(|row| row.iter().all(free))
    }

    /// Makes these chunks the lane's. Whether they are being cleared.
    fn enter(&self, cursor: &Cursor, first: usize, count: usize, wish: &Wish) -> Option<bool> {
        let start = self.device.load(Ordering::Relaxed) + first as u64 * CHUNK;
        let row = &self.chunks[first..first + count];
        let clear = row.iter().any(|chunk| chunk.era.load(Ordering::Relaxed) != wish.era);
        if clear {
            // SAFETY: chunks of ours, which no launch uses; and a stream that is about to be given one.
            ok(unsafe { next::call::cuMemsetD8Async(start, 0, CHUNK as usize * count, wish.stream) })?;
        }
        for chunk in row {
            chunk.lane.store(wish.lane, Ordering::Relaxed);
            chunk.until.store(IN_USE, Ordering::Relaxed);
            chunk.era.store(wish.era, Ordering::Relaxed);
        }
        cursor.next.store(start, Ordering::Relaxed);
        cursor.end.store(start + count as u64 * CHUNK, Ordering::Relaxed);
        cursor.first.store(first as u32, Ordering::Relaxed);
        cursor.count.store(count as u32, Ordering::Relaxed);
        cursor.era.store(wish.era, Ordering::Relaxed);
        Some(clear)
    }

    /// A lane that has passed all its gates is no more.
    pub fn give_back(&self, lane: u32, cursor: &Cursor) {
        let _held = self.lock.acquire();
        let own = |chunk: &&Chunk| chunk.lane.load(Ordering::Relaxed) == lane;
        self.chunks.iter().filter(own).for_each(|chunk| chunk.lane.store(FREE, Ordering::Relaxed));
        cursor.clear();
    }
}

/// Whether a lane that has passed the first gate has passed the second. Numbers of gates come round.
pub fn has_passed(passed: u32, gate: u32) -> bool {
    passed.wrapping_sub(gate).cast_signed() >= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks at address zero, all chunks of which are clear.
    fn marks() -> Marks {
        let marks = Marks::new();
        marks.chunks.iter().for_each(|chunk| chunk.era.store(1, Ordering::Relaxed));
        marks
    }

    fn wish(bytes: u64, next_gate: u32) -> Wish {
        Wish { lane: 0, bytes, era: 1, next_gate, stream: std::ptr::null_mut() }
    }

    /// Where they are; all chunks are clear.
    fn taken(marks: &Marks, cursor: &Cursor, wish: &Wish, passed: u32) -> Option<u64> {
        let taken = marks.take(cursor, wish, |_| passed)?;
        assert!(!taken.cleared);
        Some(taken.at)
    }

    #[test]
    fn launches_of_a_lane_lie_behind_each_other() {
        let (marks, cursor) = (marks(), Cursor::new());
        assert_eq!(taken(&marks, &cursor, &wish(4, 1), 0), Some(0));
        assert_eq!(taken(&marks, &cursor, &wish(100, 1), 0), Some(16));
        assert_eq!(taken(&marks, &cursor, &wish(16, 1), 0), Some(128));
    }

    #[test]
    fn lanes_have_chunks_of_their_own() {
        let (marks, one, other) = (marks(), Cursor::new(), Cursor::new());
        taken(&marks, &one, &wish(4, 1), 0);
        assert_eq!(taken(&marks, &other, &Wish { lane: 1, ..wish(4, 1) }, 0), Some(CHUNK));
    }

    #[test]
    fn a_chunk_is_free_when_the_gate_behind_its_last_use_is_passed() {
        let (marks, cursor) = (marks(), Cursor::new());
        for _ in 0..CHUNKS {
            assert!(taken(&marks, &cursor, &wish(CHUNK, 5), 4).is_some());
        }
        assert_eq!(taken(&marks, &cursor, &wish(CHUNK, 6), 4), None);
        assert_eq!(taken(&marks, &cursor, &wish(CHUNK, 6), 5), Some(0));
    }

    #[test]
    fn a_large_grid_has_several_chunks_and_one_that_is_too_large_has_none() {
        let (marks, cursor) = (marks(), Cursor::new());
        assert_eq!(taken(&marks, &cursor, &wish(3 * CHUNK, 1), 0), Some(0));
        assert_eq!(taken(&marks, &cursor, &wish(4, 1), 0), Some(3 * CHUNK));
        assert_eq!(taken(&marks, &cursor, &wish(CHUNK * CHUNKS as u64 + 1, 1), 0), None);
    }

    #[test]
    fn numbers_of_gates_come_round() {
        assert!(has_passed(5, 5) && has_passed(6, 5) && !has_passed(4, 5));
        assert!(has_passed(2, u32::MAX) && !has_passed(u32::MAX, 2));
    }
}
