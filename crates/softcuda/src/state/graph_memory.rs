//! Memory that graphs allocate.
//!
//! A graph's memory has an address from the time its node is made. It is kept until the last graph that has the
//! node is gone, instead of coming and going with each launch: the results are the same.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use softgpu::memory::{AddressSpace, ContextId, DevicePointer};

use super::driver::Driver;
use super::lock;
use crate::error::{Result, require};

pub struct GraphMemory {
    space: Arc<AddressSpace>,
    pointer: DevicePointer,
    bytes: u64,
}

static ALL: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// Whether a graph's memory begins at an address.
pub fn contains(address: u64) -> bool {
    lock(&ALL).contains(&address)
}

impl GraphMemory {
    pub fn allocate(driver: &Driver, bytes: u64) -> Result<Arc<GraphMemory>> {
        require(bytes > 0)?;
        let pointer = driver.space.allocate(ContextId(0), bytes)?;
        lock(&ALL).insert(pointer.0);
        Ok(Arc::new(GraphMemory { space: Arc::clone(&driver.space), pointer, bytes }))
    }

    pub fn address(&self) -> u64 {
        self.pointer.0
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for GraphMemory {
    fn drop(&mut self) {
        lock(&ALL).remove(&self.pointer.0);
        let freed = self.space.free(self.pointer);
        debug_assert!(freed.is_ok(), "nobody else frees the memory of a graph");
    }
}
