//! The writer: a process about itself.
//!
//! Used inside other people's programs. So nothing here touches the heap, waits, or can fail once the memory is
//! there; and the file has its room before it is mapped (`file`), since a store into a mapping on a full disk is a SIGBUS.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::Ordering;

use rustix::mm::{MapFlags, ProtFlags};

use crate::file::Stem;
use crate::layout::{BYTES, KERNEL_SHARDS, KERNELS, KernelEntry, Layout, MAGIC, VERSION};
use crate::{Counter, Error, Note, shard};

/// The ledger of this process. It stays mapped until the process ends: threads may count at any time.
#[derive(Clone, Copy)]
pub struct Ledger {
    layout: &'static Layout,
}

/// A kernel as the ledger lists it.
#[derive(Clone, Copy, Debug)]
pub struct KernelIdentity<'a> {
    pub name: &'a [u8],
    pub module_hash: u128,
    pub parameter_bytes: u32,
    pub parameter_count: u32,
}

/// A kernel's place in the ledger.
#[derive(Clone, Copy)]
pub struct Kernel {
    layout: &'static Layout,
    index: u32,
}

impl Ledger {
    /// Makes the file `<pid>-<time>.ledger` in a folder, and maps it. `program` is what a reader is told is running.
    pub fn create(folder: &CStr, stem: Stem, program: &[u8]) -> Result<Ledger, Error> {
        let memory = stem.map(folder, "ledger", BYTES, MapFlags::empty())?;
        // SAFETY: the mapping has the size of a layout, is zeroed, is never unmapped, and is made of atomics, so
        // that it may change under us.
        let layout = unsafe { &*memory.cast::<Layout>() };
        Ok(Ledger::begin(layout, stem.pid, program))
    }

    /// A ledger that nobody else sees: counting goes on where there is no folder to count in.
    pub fn private() -> Result<Ledger, Error> {
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, at a place of the kernel's choice.
        let memory = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), BYTES, prot, flags) };
        // SAFETY: the mapping has the size of a layout, is zeroed, and is never unmapped.
        let layout = unsafe { &*memory.map_err(Error::Make)?.cast::<Layout>() };
        Ok(Ledger::begin(layout, rustix::process::getpid().as_raw_nonzero().get().unsigned_abs(), b""))
    }

    fn begin(layout: &'static Layout, pid: u32, program: &[u8]) -> Ledger {
        let header = &layout.header;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
        header.version.store(VERSION, Ordering::Relaxed);
        header.pid.store(pid, Ordering::Relaxed);
        header.started.store(seconds * 1_000_000_000 + nanos, Ordering::Relaxed);
        header.program.write(program);
        // SYNC(ledger-open): pairs with the reader, who looks for the magic first.
        header.magic.store(MAGIC, Ordering::Release);
        Ledger { layout }
    }

    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        self.layout.shards[shard::of_this_thread()].counters[counter as usize]
            .fetch_add(amount, Ordering::Relaxed);
    }

    pub fn note(&self, note: Note) {
        self.layout.header.notes.fetch_or(note.bit(), Ordering::Relaxed);
    }

    /// Says something in words; only the first who does is heard.
    pub fn detail(&self, text: &[u8]) {
        self.layout.header.detail.write(text);
    }

    /// Which driver is behind.
    pub fn driver(&self, path: &[u8], version: i32) {
        self.layout.header.driver_version.store(version, Ordering::Relaxed);
        self.layout.header.driver.write(path);
    }

    /// The place of a kernel, found or taken; `None` when all places are.
    pub fn kernel(&self, identity: &KernelIdentity<'_>) -> Option<Kernel> {
        let key = key(identity);
        let first = usize::try_from(key % KERNELS as u64).expect("less than the number of kernels");
        for index in (first..KERNELS).chain(0..first) {
            let entry = &self.layout.kernels[index];
            let kernel = Kernel { layout: self.layout, index: index as u32 };
            match entry.key.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    describe(entry, identity);
                    return Some(kernel);
                }
                Err(other) if other == key => return Some(kernel),
                Err(_) => {}
            }
        }
        self.note(Note::KernelsOverflow);
        None
    }
}

impl Kernel {
    /// Which place in the ledger it has; by this number events name it.
    #[inline]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// A launch of so many blocks.
    #[inline]
    pub fn launched(&self, blocks: u64) {
        let shard = &self.layout.launches[shard::of_this_thread() % KERNEL_SHARDS];
        let count = &shard.counts[self.index as usize];
        count.launches.fetch_add(1, Ordering::Relaxed);
        count.blocks.fetch_add(blocks, Ordering::Relaxed);
    }

    #[inline]
    fn entry(&self) -> &'static KernelEntry {
        &self.layout.kernels[self.index as usize]
    }

    /// So many nodes of a launched graph.
    pub fn in_graph(&self, times: u64) {
        self.entry().in_graphs.fetch_add(times, Ordering::Relaxed);
    }

    /// What is thought of stopping it between its blocks.
    pub fn judged(&self, verdict: u8) {
        self.entry().verdict.store(verdict.into(), Ordering::Relaxed);
    }

    /// What trials have shown of its twin.
    pub fn found(&self, finding: u8) {
        self.entry().finding.store(finding.into(), Ordering::Relaxed);
    }

    /// One of its launches was that of a twin.
    #[inline]
    pub fn guarded(&self) {
        self.entry().guarded.fetch_add(1, Ordering::Relaxed);
    }

    /// So many launches of its twin were cut.
    pub fn cut(&self, launches: u64) {
        self.entry().cut.fetch_add(launches, Ordering::Relaxed);
    }

    /// A launch took so long; by all that was seen lately, blocks take so long at most, and the kernel stops within so long.
    pub fn timed(&self, launch_ns: u64, block_ns: u64, certificate_ns: u64) {
        self.entry().samples.fetch_add(1, Ordering::Relaxed);
        self.entry().sampled_ns.fetch_add(launch_ns, Ordering::Relaxed);
        self.entry().block_ns.store(block_ns, Ordering::Relaxed);
        self.entry().certificate_ns.store(certificate_ns, Ordering::Relaxed);
    }

    /// Earlier runs have seen blocks of such a length, and promised to stop it within so long.
    pub fn foreseen(&self, block_ns: u64, certificate_ns: u64) {
        self.entry().block_ns.fetch_max(block_ns, Ordering::Relaxed);
        self.entry().certificate_ns.fetch_max(certificate_ns, Ordering::Relaxed);
    }

    /// How long it takes to stop, as promised so far.
    pub fn certificate_ns(&self) -> Option<u64> {
        Some(self.entry().certificate_ns.load(Ordering::Relaxed)).filter(|&time| time > 0)
    }
}

fn describe(entry: &KernelEntry, identity: &KernelIdentity<'_>) {
    let halves = [identity.module_hash as u64, (identity.module_hash >> 64) as u64];
    for (place, half) in entry.module_hash.iter().zip(halves) {
        place.store(half, Ordering::Relaxed);
    }
    entry.parameter_bytes.store(identity.parameter_bytes, Ordering::Relaxed);
    entry.parameter_count.store(identity.parameter_count, Ordering::Relaxed);
    entry.name.write(identity.name);
    // SYNC(ledger-kernel): pairs with the reader, who passes over entries that are not ready.
    entry.ready.store(1, Ordering::Release);
}

/// Never zero. Two kernels of one key would be counted as one, which 64 bits make a curiosity.
fn key(identity: &KernelIdentity<'_>) -> u64 {
    let fold = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = identity.name.iter().fold(0xcbf2_9ce4_8422_2325, fold);
    identity.module_hash.to_le_bytes().iter().fold(hash, fold) | 1
}
