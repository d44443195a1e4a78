//! The bytes of a ledger.
//!
//! A header, then the counters, then the kernels. Counters are kept in several *shards* which are added up when
//! read: threads that count at the same time seldom meet on one cache line. So is what every launch counts of its kernel,
//! since threads often launch the same one. All numbers are little-endian words at fixed places; the version changes with
//! any of them, and a reader refuses another version.

use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::Counter;
use crate::shard::SHARDS;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"ebbledgr");
pub(crate) const VERSION: u32 = 6;

/// A multiple of a cache line, so that shards share none.
pub(crate) const SHARD_WORDS: usize = Counter::COUNT.next_multiple_of(8);

/// How many kernels a ledger lists.
pub const KERNELS: usize = 1024;

/// Fewer than of counters: each of them has a place for every kernel.
pub(crate) const KERNEL_SHARDS: usize = 8;

pub(crate) const PROGRAM_BYTES: usize = 256;
pub(crate) const DRIVER_BYTES: usize = 1024;
pub(crate) const DETAIL_BYTES: usize = 256;
pub(crate) const NAME_BYTES: usize = 320;

#[repr(C, align(64))]
pub(crate) struct Header {
    /// Written last, by `SYNC(ledger-open)`: whoever sees the magic sees everything above the counters.
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub pid: AtomicU32,
    /// Nanoseconds since 1970.
    pub started: AtomicU64,
    pub notes: AtomicU64,
    pub driver_version: AtomicI32,
    pub program: Text<PROGRAM_BYTES>,
    pub driver: Text<DRIVER_BYTES>,
    /// What went wrong, or which file was opened: whichever came first.
    pub detail: Text<DETAIL_BYTES>,
}

#[repr(C, align(64))]
pub(crate) struct Shard {
    pub counters: [AtomicU64; SHARD_WORDS],
}

/// What is counted of all kernels by the threads of one shard.
#[repr(C, align(64))]
pub(crate) struct KernelShard {
    pub counts: [KernelCount; KERNELS],
}

/// Launches of a kernel, and their blocks.
#[repr(C)]
pub(crate) struct KernelCount {
    pub launches: AtomicU64,
    pub blocks: AtomicU64,
}

#[repr(C, align(64))]
pub(crate) struct KernelEntry {
    /// Zero: free. Taken by one writer; the rest is written before `ready`, by `SYNC(ledger-kernel)`.
    pub key: AtomicU64,
    pub ready: AtomicU32,
    pub module_hash: [AtomicU64; 2],
    pub parameter_bytes: AtomicU32,
    pub parameter_count: AtomicU32,
    pub in_graphs: AtomicU64,
    /// Whether and how it can be stopped between its blocks, as a number of `guard`'s; zero: nobody has looked.
    pub verdict: AtomicU32,
    /// What trials have shown of its twin, as a number of `guard`'s; zero: there were none.
    pub finding: AtomicU32,
    /// Launches of its twin, and how many of those were cut.
    pub guarded: AtomicU64,
    pub cut: AtomicU64,
    /// How many of its launches were timed, how long they took together, and how long a block at most.
    pub samples: AtomicU64,
    pub sampled_ns: AtomicU64,
    pub block_ns: AtomicU64,
    /// How long it takes to stop, as promised; zero: nothing is.
    pub certificate_ns: AtomicU64,
    pub name: Text<NAME_BYTES>,
}

#[repr(C)]
pub(crate) struct Layout {
    pub header: Header,
    pub shards: [Shard; SHARDS],
    pub launches: [KernelShard; KERNEL_SHARDS],
    pub kernels: [KernelEntry; KERNELS],
}

/// A text that is written once. All bytes are atomics, so that a mapping shared with anybody is sound to refer to.
#[repr(C)]
pub(crate) struct Text<const N: usize> {
    /// Zero: nothing yet. `Text::CLAIMED`: being written. Stored after the bytes, by `SYNC(ledger-text)`.
    pub length: AtomicU32,
    pub bytes: [AtomicU8; N],
}

impl<const N: usize> Text<N> {
    pub const CLAIMED: u32 = u32::MAX;

    /// Writes the beginning of `text`, unless somebody has written already.
    pub fn write(&self, text: &[u8]) {
        let claim = self.length.compare_exchange(0, Self::CLAIMED, Ordering::Relaxed, Ordering::Relaxed);
        if claim.is_err() {
            return;
        }
        for (place, &byte) in self.bytes.iter().zip(text) {
            place.store(byte, Ordering::Relaxed);
        }
        let length = u32::try_from(text.len().min(N)).expect("texts of a ledger are short");
        // SYNC(ledger-text): pairs with the reader, who takes the length before the bytes.
        self.length.store(length, Ordering::Release);
    }
}

pub(crate) const BYTES: usize = size_of::<Layout>();
