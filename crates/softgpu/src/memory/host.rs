//! Host memory that the device can reach: pinned, managed, registered.

use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::{
    AddressSpace, ContextId, DevicePointer, Error, GRANULE, LARGE_GRANULE, READABLE, Region, RegionKind,
    WRITABLE, round_up, wanted,
};
use crate::error::Access;

/// A range of the host's own memory lent to the device.
#[derive(Clone, Debug)]
pub(super) struct Registered {
    start: u64,
    end: u64,
    flags: u8,
    owner: ContextId,
    id: u64,
}

impl AddressSpace {
    /// Page-locked host memory, device-accessible at its own address.
    pub fn allocate_host(&self, owner: ContextId, bytes: u64) -> Result<DevicePointer, Error> {
        self.allocate_shared(owner, bytes, RegionKind::Pinned)
    }

    /// Memory that host and device use at one address.
    pub fn allocate_managed(&self, owner: ContextId, bytes: u64) -> Result<DevicePointer, Error> {
        self.allocate_shared(owner, bytes, RegionKind::Managed)
    }

    /// Frees what `allocate_host` gave.
    pub fn free_host(&self, pointer: DevicePointer) -> Result<(), Error> {
        let mut state = self.state();
        let region = self.starting_at(&state, pointer, |kind| kind == RegionKind::Pinned)?;
        self.remove(&mut state, &region)
    }

    fn allocate_shared(
        &self,
        owner: ContextId,
        bytes: u64,
        kind: RegionKind,
    ) -> Result<DevicePointer, Error> {
        let rounded = round_up(bytes)?;
        let mut state = self.state();
        let align = if rounded >= LARGE_GRANULE { LARGE_GRANULE } else { GRANULE };
        let offset = state.host.take(rounded, align).ok_or(Error::OutOfMemory { bytes })?;
        if let Err(error) = self.front_window.cover(offset, rounded, self.file_fd(), offset) {
            state.host.give(offset, rounded);
            return Err(error.into());
        }
        self.protect(offset, rounded, READABLE | WRITABLE);
        Ok(self.enter(&mut state, offset, bytes, kind, owner))
    }

    /// Lends `bytes` of the host's memory at `start` to the device. The caller vouches that they are there
    /// and stay until `unregister`, as it must to CUDA.
    pub fn register(&self, owner: ContextId, start: u64, bytes: u64, read_only: bool) -> Result<(), Error> {
        let end = match start.checked_add(bytes) {
            Some(end) if bytes > 0 => end,
            _ => return Err(Error::InvalidSize { bytes }),
        };
        let ours = self.front..self.front + self.layout.end;
        if start == 0 || (start < ours.end && end > ours.start) {
            return Err(Error::InvalidAddress { address: start, what: "not ordinary host memory" });
        }
        let id = self.state().fresh_id();
        let mut list = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        let place = list.partition_point(|range| range.end <= start);
        if list.get(place).is_some_and(|next| next.start < end) {
            return Err(Error::AlreadyRegistered { address: start });
        }
        let flags = if read_only { READABLE } else { READABLE | WRITABLE };
        list.insert(place, Registered { start, end, flags, owner, id });
        self.registered_count.store(list.len(), Ordering::Release);
        Ok(())
    }

    /// Ends the loan of the range that was registered at exactly `start`.
    pub fn unregister(&self, start: u64) -> Result<(), Error> {
        let mut list = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        let place = list.iter().position(|range| range.start == start);
        list.remove(place.ok_or(Error::NotRegistered { address: start })?);
        self.registered_count.store(list.len(), Ordering::Release);
        Ok(())
    }

    pub(super) fn unregister_owned(&self, owner: ContextId) {
        let mut list = self.registered.write().unwrap_or_else(PoisonError::into_inner);
        list.retain(|range| range.owner != owner);
        self.registered_count.store(list.len(), Ordering::Release);
    }

    pub(super) fn lookup_registered(&self, address: u64) -> Option<Region> {
        self.find_registered(address).map(|range| Region {
            base: DevicePointer(range.start),
            bytes: range.end - range.start,
            kind: RegionKind::Registered,
            owner: range.owner,
            id: range.id,
        })
    }

    /// The way of `translate` for addresses outside the windows: at the host's own place, if lent.
    #[cold]
    pub(super) fn translate_registered(&self, address: u64, bytes: u64, access: Access) -> Option<*mut u8> {
        let range = self.find_registered(address)?;
        let (wanted, end) = (wanted(access), address.checked_add(bytes)?);
        let allowed = range.flags & wanted == wanted && end <= range.end;
        allowed.then(|| ptr::with_exposed_provenance_mut(address as usize))
    }

    fn find_registered(&self, address: u64) -> Option<Registered> {
        if self.registered_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let list = self.registered.read().unwrap_or_else(PoisonError::into_inner);
        let place = list.partition_point(|range| range.end <= address);
        list.get(place).filter(|range| range.start <= address).cloned()
    }
}
