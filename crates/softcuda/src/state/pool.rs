//! Memory pools. Memory is taken when the call is made and given back in stream order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use cuda_abi::*;
use softgpu::memory::{self, AddressSpace, ContextId, DevicePointer};

use super::driver::Driver;
use super::lock;
use super::stream::Stream;
use crate::error::{Result, refuse};
use crate::handles::{Handle, object};

pub struct Pool {
    pub handle: Handle<Pool>,
    pub release_threshold: AtomicU64,
    pub reuse: [AtomicI32; 3],
    pub used: AtomicU64,
    pub used_high: AtomicU64,
    /// The most the pool may hold, 0 for no bound.
    limit: u64,
}

object!(Pool, CUmemPoolHandle_st, CUDA_ERROR_INVALID_VALUE);

/// Allocations of pools belong to the device, not to a context.
const OWNER: ContextId = ContextId(0);

/// Which allocation is of which pool, and how large.
static ALLOCATIONS: Mutex<BTreeMap<u64, (Arc<Pool>, u64)>> = Mutex::new(BTreeMap::new());

/// The pool that an allocation is of.
pub fn of(address: u64) -> Option<Arc<Pool>> {
    let allocations = lock(&ALLOCATIONS);
    let (start, (pool, bytes)) = allocations.range(..=address).next_back()?;
    (address - start < *bytes).then(|| Arc::clone(pool))
}

/// Allocations that a stream is going to give back.
static LEAVING: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Notes that a stream is going to free an allocation; false if one is going to already.
pub fn leave(address: u64) -> bool {
    lock(&LEAVING).insert(address)
}

pub fn is_leaving(address: u64) -> bool {
    lock(&LEAVING).contains(&address)
}

/// Gives an allocation of a pool back; the caller has seen to it that nothing uses it any more.
pub fn free(space: &AddressSpace, address: u64) -> std::result::Result<(), memory::Error> {
    lock(&LEAVING).remove(&address);
    if let Some((pool, bytes)) = lock(&ALLOCATIONS).remove(&address) {
        pool.used.fetch_sub(bytes, Ordering::Relaxed);
    }
    space.free(DevicePointer(address))
}

impl Pool {
    fn new(limit: u64) -> Arc<Pool> {
        let pool = Arc::new(Pool {
            handle: Handle::fresh(),
            release_threshold: AtomicU64::new(0),
            reuse: [const { AtomicI32::new(1) }; 3],
            used: AtomicU64::new(0),
            used_high: AtomicU64::new(0),
            limit,
        });
        pool.handle.bind(Arc::clone(&pool));
        pool
    }

    pub fn register_default() -> Arc<Pool> {
        Pool::new(0)
    }

    pub fn create(limit: u64) -> Arc<Pool> {
        Pool::new(limit)
    }

    /// Memory for use in `stream`. When there is none, what the stream is about to free is waited for.
    pub fn allocate(self: &Arc<Pool>, driver: &Driver, stream: &Stream, bytes: u64) -> Result<u64> {
        if self.limit != 0 && self.used.load(Ordering::Relaxed).saturating_add(bytes) > self.limit {
            return refuse(CUDA_ERROR_OUT_OF_MEMORY);
        }
        let pointer = match driver.space.allocate(OWNER, bytes) {
            Err(memory::Error::OutOfMemory { .. }) => {
                stream.synchronise()?;
                driver.space.allocate(OWNER, bytes)?
            }
            other => other?,
        };
        lock(&ALLOCATIONS).insert(pointer.0, (Arc::clone(self), bytes));
        let used = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.used_high.fetch_max(used, Ordering::Relaxed);
        Ok(pointer.0)
    }
}
