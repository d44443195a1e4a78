//! The event log of a process: a file beside its ledger.
//!
//! Used inside other people's programs, so the same holds as for the ledger: nothing here touches the heap, waits, or can
//! fail once the memory is there. All pages are there when it is opened: the thread that launches a kernel should not be
//! the one to wait for them.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::MapFlags;

use crate::Error;
use crate::event::Event;
use crate::file::Stem;
use crate::layout::Text;
use crate::ring::Ring;
use crate::rings::Rings;
use crate::shard::{self, SHARDS};

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"ebbevent");
pub(crate) const VERSION: u32 = 2;

/// How many launches a log remembers at least, and how many other events. They are kept apart so that a flood of the one does
/// not wash away the other.
pub const LAUNCHES: usize = (RINGS - SHARDS) * RING;
pub const COURSE: usize = 8192;

/// Launches have twice as many rings as there are desks: where every desk has one in hand, as many are full, whoever wrote
/// them. Where one thread makes all launches it has all rings but one behind it. What else happens is rare, and has one ring.
pub(crate) const RINGS: usize = 2 * SHARDS;
pub(crate) const RING: usize = 512;

/// More GPUs than this a process cannot share.
pub const POSTS: usize = 16;

pub(crate) const NAME_BYTES: usize = 128;

#[repr(C, align(64))]
pub(crate) struct Header {
    /// Written last, by `SYNC(events-open)`: whoever sees the magic sees the version and the process.
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub pid: AtomicU32,
    pub tenant: AtomicU64,
    pub name: Text<NAME_BYTES>,
    pub posts: [Post; POSTS],
}

/// One of the GPUs that the process shares.
#[repr(C)]
pub(crate) struct Post {
    pub gpu: [AtomicU64; 2],
    /// Not nought once the number is complete, by `SYNC(events-post)`.
    pub ready: AtomicU64,
}

#[repr(C)]
pub(crate) struct Layout {
    pub header: Header,
    pub launches: Rings<SHARDS, RINGS, RING>,
    pub course: Ring<COURSE>,
}

pub(crate) const BYTES: usize = size_of::<Layout>();

/// The log of this process. It stays mapped until the process ends.
#[derive(Clone, Copy)]
pub struct EventLog {
    layout: &'static Layout,
}

impl EventLog {
    /// Makes the file `<stem>.events` in a folder, and maps it. The name is the tenant's.
    pub fn create(folder: &CStr, stem: Stem, tenant: u64, name: &[u8]) -> Result<EventLog, Error> {
        let memory = stem.map(folder, "events", BYTES, MapFlags::POPULATE)?;
        // SAFETY: the mapping has the size of a layout, is zeroed, is never unmapped, and is made of atomics, so that it
        // may change under us.
        let layout = unsafe { &*memory.cast::<Layout>() };
        let header = &layout.header;
        header.version.store(VERSION, Ordering::Relaxed);
        header.pid.store(stem.pid, Ordering::Relaxed);
        header.tenant.store(tenant, Ordering::Relaxed);
        header.name.write(name);
        // SYNC(events-open): pairs with the reader, who looks for the magic first.
        header.magic.store(MAGIC, Ordering::Release);
        Ok(EventLog { layout })
    }

    /// Says which GPU a number of a post means.
    pub fn post(&self, number: u8, gpu: [u8; 16]) {
        let Some(post) = self.layout.header.posts.get(usize::from(number)) else { return };
        for (word, half) in post.gpu.iter().zip(gpu.chunks_exact(8)) {
            word.store(u64::from_le_bytes(half.try_into().expect("half of sixteen")), Ordering::Relaxed);
        }
        // SYNC(events-post): pairs with the reader, who passes over posts that are not ready.
        post.ready.store(1, Ordering::Release);
    }

    /// Writes an event down. By any thread, at any time. Where it is known what kind of event it is, little is left of this.
    #[inline(always)]
    pub fn write(&self, event: &Event) {
        self.write_at(shard::of_this_thread(), event);
    }

    #[inline(always)]
    pub(crate) fn write_at(&self, desk: usize, event: &Event) {
        if event.is_launch() {
            self.layout.launches.write(desk, event.words());
        } else {
            self.layout.course.write(event.words());
        }
    }
}
