//! Allocations: what lies where, and whose it is.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::ranges::Ranges;
use super::vmm::{Mapping, Physical, PhysicalId};
use super::{
    AddressSpace, ContextId, DevicePointer, Error, GRANULE, LARGE_GRANULE, Layout, READABLE, WRITABLE,
    discard, round_up,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// `allocate`: the device's own.
    Device,
    /// `allocate_host`: page-locked, at the same address for host and device.
    Pinned,
    /// `allocate_managed`: like pinned memory, freed like device memory.
    Managed,
    /// `register`: the host's own memory, lent to the device.
    Registered,
    /// `reserve`: addresses without memory behind them.
    Reserved,
    /// A piece of a reservation with physical memory mapped to it.
    Mapped(PhysicalId),
    /// `import`: memory of another process.
    Imported,
}

/// One stretch of addresses that was handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    pub base: DevicePointer,
    /// As asked for, not as rounded.
    pub bytes: u64,
    pub kind: RegionKind,
    pub owner: ContextId,
    /// Never used twice in a process, so that a pointer can be told from an earlier one of the same value.
    pub id: u64,
}

impl Region {
    pub fn contains(&self, address: u64) -> bool {
        address.wrapping_sub(self.base.0) < self.bytes
    }
}

/// The books. Keys of `regions` and `mappings` are offsets in the windows.
pub(super) struct State {
    pub(super) device: Ranges,
    pub(super) host: Ranges,
    pub(super) physical: Ranges,
    pub(super) regions: BTreeMap<u64, Region>,
    pub(super) mappings: BTreeMap<u64, Mapping>,
    pub(super) physicals: BTreeMap<PhysicalId, Physical>,
    /// Slots in which exported allocations are marked as alive, by offset of the allocation.
    pub(super) exports: BTreeMap<u64, u32>,
    pub(super) free_slots: Vec<u32>,
    pub(super) next_id: u64,
    charged: u64,
}

impl State {
    pub(super) fn new(layout: &Layout) -> State {
        State {
            device: Ranges::new(GRANULE, layout.host - GRANULE),
            host: Ranges::new(layout.host, layout.shared - layout.host),
            physical: Ranges::new(layout.physical, layout.file_bytes - layout.physical),
            regions: BTreeMap::new(),
            mappings: BTreeMap::new(),
            physicals: BTreeMap::new(),
            exports: BTreeMap::new(),
            free_slots: (0..super::ipc::SLOTS).rev().collect(),
            next_id: 1,
            charged: 0,
        }
    }

    pub(super) fn fresh_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    /// The region whose addresses include `offset`.
    pub(super) fn region_at(&self, address: u64, offset: u64) -> Option<&Region> {
        self.regions
            .range(..=offset)
            .next_back()
            .map(|(_, region)| region)
            .filter(|region| region.contains(address))
    }
}

impl AddressSpace {
    /// Device memory, zeroed as it happens, aligned to a granule.
    pub fn allocate(&self, owner: ContextId, bytes: u64) -> Result<DevicePointer, Error> {
        let rounded = round_up(bytes)?;
        let mut state = self.state();
        self.charge(&mut state, rounded)?;
        let align = if rounded >= LARGE_GRANULE { LARGE_GRANULE } else { GRANULE };
        let Some(offset) = state.device.take(rounded, align) else {
            self.refund(&mut state, rounded);
            return Err(Error::OutOfMemory { bytes });
        };
        self.protect(offset, rounded, READABLE | WRITABLE);
        Ok(self.enter(&mut state, offset, bytes, RegionKind::Device, owner))
    }

    /// Frees what `allocate` or `allocate_managed` gave.
    pub fn free(&self, pointer: DevicePointer) -> Result<(), Error> {
        let mut state = self.state();
        let region = self
            .starting_at(&state, pointer, |kind| matches!(kind, RegionKind::Device | RegionKind::Managed))?;
        self.remove(&mut state, &region)
    }

    /// Frees this very allocation, not a later one at the same place.
    pub fn free_region(&self, region: &Region) -> Result<(), Error> {
        let mut state = self.state();
        let there = self.starting_at(&state, region.base, |kind| kind == region.kind)?;
        if there.id != region.id {
            return Err(Error::InvalidAddress { address: region.base.0, what: "another allocation by now" });
        }
        self.remove(&mut state, &there)
    }

    /// Frees everything that a context had: its memory goes with it.
    pub fn free_owned(&self, owner: ContextId) -> Result<(), Error> {
        let mut state = self.state();
        let freed = [RegionKind::Device, RegionKind::Managed, RegionKind::Pinned, RegionKind::Imported];
        let owned = |region: &&Region| region.owner == owner && freed.contains(&region.kind);
        let regions: Vec<Region> = state.regions.values().filter(owned).cloned().collect();
        for region in regions {
            self.remove(&mut state, &region)?;
        }
        drop(state);
        self.unregister_owned(owner);
        Ok(())
    }

    /// What lies at an address, if it was handed out here. A mapped piece of a reservation answers for itself.
    pub fn lookup(&self, address: u64) -> Option<Region> {
        let Some(offset) = self.offset(address) else { return self.lookup_registered(address) };
        let state = self.state();
        let region = state.region_at(address, offset)?;
        if region.kind != RegionKind::Reserved {
            return Some(region.clone());
        }
        let mapping = state.mappings.range(..=offset).next_back();
        match mapping.filter(|&(&start, mapping)| offset - start < mapping.bytes) {
            None => Some(region.clone()),
            Some((start, mapping)) => Some(Region {
                base: DevicePointer(self.front + start),
                bytes: mapping.bytes,
                kind: RegionKind::Mapped(mapping.physical),
                owner: region.owner,
                id: mapping.id,
            }),
        }
    }

    /// Writes a region down and returns its address.
    pub(super) fn enter(
        &self,
        state: &mut State,
        offset: u64,
        bytes: u64,
        kind: RegionKind,
        owner: ContextId,
    ) -> DevicePointer {
        let base = DevicePointer(self.front + offset);
        let id = state.fresh_id();
        state.regions.insert(offset, Region { base, bytes, kind, owner, id });
        base
    }

    /// The region that starts exactly at `pointer`.
    pub(super) fn starting_at(
        &self,
        state: &State,
        pointer: DevicePointer,
        kind: impl Fn(RegionKind) -> bool,
    ) -> Result<Region, Error> {
        let wrong = |what| Error::InvalidAddress { address: pointer.0, what };
        let offset = self.offset(pointer.0).ok_or_else(|| wrong("no device address"))?;
        let region = state.regions.get(&offset).ok_or_else(|| wrong("not the start of an allocation"))?;
        if kind(region.kind) { Ok(region.clone()) } else { Err(wrong("memory of another kind")) }
    }

    /// Takes a region out of the books and its pages away.
    pub(super) fn remove(&self, state: &mut State, region: &Region) -> Result<(), Error> {
        let offset = region.base.0 - self.front;
        let rounded = round_up(region.bytes)?;
        self.protect(offset, rounded, 0);
        state.regions.remove(&offset);
        self.retract(state, offset);
        let host = match region.kind {
            RegionKind::Pinned | RegionKind::Managed => {
                self.front_window.uncover(offset, rounded)?;
                true
            }
            RegionKind::Imported | RegionKind::Reserved => {
                self.back_window.cover(offset, rounded, self.file_fd(), offset)?;
                state.device.give(offset, rounded);
                return Ok(());
            }
            _ => false,
        };
        discard(&self.file, offset, rounded)?;
        if host {
            state.host.give(offset, rounded);
        } else {
            state.device.give(offset, rounded);
            self.refund(state, rounded);
        }
        Ok(())
    }

    pub(super) fn charge(&self, state: &mut State, bytes: u64) -> Result<(), Error> {
        if !self.quota.charge(bytes) {
            return Err(Error::OutOfMemory { bytes });
        }
        state.charged += bytes;
        Ok(())
    }

    pub(super) fn refund(&self, state: &mut State, bytes: u64) {
        state.charged -= bytes;
        self.quota.refund(bytes);
    }

    pub(super) fn file_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&*self.file)
    }

    pub(super) fn file(&self) -> &Arc<OwnedFd> {
        &self.file
    }
}

impl Drop for AddressSpace {
    fn drop(&mut self) {
        let charged = self.state().charged;
        self.quota.refund(charged);
    }
}
