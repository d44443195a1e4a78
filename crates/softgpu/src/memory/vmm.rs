//! Virtual memory management: addresses and memory acquired apart and joined by hand.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::SealFlags;

use super::regions::State;
use super::{
    AddressSpace, ContextId, DevicePointer, Error, GRANULE, LARGE_GRANULE, READABLE, Region, RegionKind,
    WRITABLE, discard, memory_file, round_up,
};

/// Physical memory without an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PhysicalId(pub u64);

/// What the device may do with mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    None,
    Read,
    ReadWrite,
}

#[derive(Debug)]
pub(super) struct Physical {
    file: Arc<OwnedFd>,
    file_offset: u64,
    bytes: u64,
    /// Handles that the user holds, and mappings: the memory lives as long as either.
    handles: u32,
    mappings: u32,
    origin: Origin,
}

/// Where the bytes come from decides who gives them back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// A part of the process's memory file.
    Part,
    /// A memory file of its own, so that it can be passed on.
    Own,
    /// A file that was passed to us, and is charged to whoever made it.
    Foreign,
}

#[derive(Debug)]
pub(super) struct Mapping {
    pub(super) bytes: u64,
    pub(super) physical: PhysicalId,
    pub(super) id: u64,
    protection: Protection,
}

impl AddressSpace {
    /// Addresses without memory. `hint` is taken when it is free.
    pub fn reserve(
        &self,
        owner: ContextId,
        bytes: u64,
        align: u64,
        hint: Option<u64>,
    ) -> Result<DevicePointer, Error> {
        let align = align.max(LARGE_GRANULE);
        let aligned = align.is_power_of_two() && bytes.is_multiple_of(GRANULE);
        let rounded = if aligned { round_up(bytes)? } else { return Err(Error::InvalidSize { bytes }) };
        let mut state = self.state();
        let hinted = hint
            .and_then(|address| self.offset(address))
            .filter(|offset| offset.is_multiple_of(LARGE_GRANULE));
        let offset = match hinted {
            Some(offset) if state.device.take_at(offset, rounded) => offset,
            // The windows are aligned to large granules only, so a larger alignment is found by trying.
            _ => self.take_aligned(&mut state, rounded, align).ok_or(Error::OutOfMemory { bytes })?,
        };
        Ok(self.enter(&mut state, offset, bytes, RegionKind::Reserved, owner))
    }

    fn take_aligned(&self, state: &mut State, bytes: u64, align: u64) -> Option<u64> {
        if align <= LARGE_GRANULE {
            return state.device.take(bytes, align);
        }
        let roomy = bytes.checked_add(align)?;
        let start = state.device.take(roomy, LARGE_GRANULE)?;
        let at = (self.front + start).next_multiple_of(align) - self.front;
        if at > start {
            state.device.give(start, at - start);
        }
        state.device.give(at + bytes, start + roomy - (at + bytes));
        Some(at)
    }

    /// Gives a whole reservation back; everything in it must be unmapped.
    pub fn unreserve(&self, pointer: DevicePointer, bytes: u64) -> Result<(), Error> {
        let mut state = self.state();
        let region = self.starting_at(&state, pointer, |kind| kind == RegionKind::Reserved)?;
        let offset = pointer.0 - self.front;
        if region.bytes != bytes {
            return Err(Error::InvalidSize { bytes });
        }
        if state.mappings.range(offset..offset + bytes).next().is_some() {
            return Err(Error::InvalidAddress { address: pointer.0, what: "still mapped" });
        }
        self.remove(&mut state, &region)
    }

    /// Physical memory; `shareable` gives it a file of its own that can be passed to another process.
    pub fn create(&self, bytes: u64, shareable: bool) -> Result<PhysicalId, Error> {
        if !bytes.is_multiple_of(GRANULE) {
            return Err(Error::InvalidSize { bytes });
        }
        let bytes = round_up(bytes)?;
        let mut state = self.state();
        self.charge(&mut state, bytes)?;
        let made = if shareable {
            memory_file(bytes).map(|file| (Arc::new(file), 0, Origin::Own))
        } else {
            let taken = state.physical.take(bytes, GRANULE).ok_or(Error::OutOfMemory { bytes });
            taken.map(|offset| (self.file().clone(), offset, Origin::Part))
        };
        match made {
            Ok((file, file_offset, origin)) => {
                Ok(state.add(Physical { file, file_offset, bytes, handles: 1, mappings: 0, origin }))
            }
            Err(error) => {
                self.refund(&mut state, bytes);
                Err(error)
            }
        }
    }

    /// A descriptor by which another process can import shareable memory.
    pub fn export_descriptor(&self, id: PhysicalId) -> Result<OwnedFd, Error> {
        let state = self.state();
        let physical = state.physicals.get(&id).ok_or(Error::UnknownPhysical)?;
        if physical.origin == Origin::Part {
            return Err(Error::NotShareable);
        }
        Ok(rustix::io::fcntl_dupfd_cloexec(&*physical.file, 0)?)
    }

    /// The other end of `export_descriptor`. A file that could shrink under us is refused.
    pub fn import_descriptor(&self, file: OwnedFd) -> Result<PhysicalId, Error> {
        let sealed = rustix::fs::fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
        let bytes = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        if !sealed || bytes == 0 || !bytes.is_multiple_of(GRANULE) {
            return Err(Error::StaleExport);
        }
        let physical = Physical {
            file: Arc::new(file),
            file_offset: 0,
            bytes,
            handles: 1,
            mappings: 0,
            origin: Origin::Foreign,
        };
        Ok(self.state().add(physical))
    }

    pub fn physical_bytes(&self, id: PhysicalId) -> Option<u64> {
        self.state().physicals.get(&id).map(|physical| physical.bytes)
    }

    /// Another handle on the memory mapped at `address`.
    pub fn retain(&self, address: u64) -> Result<PhysicalId, Error> {
        let Some(Region { kind: RegionKind::Mapped(id), .. }) = self.lookup(address) else {
            return Err(Error::InvalidAddress { address, what: "not mapped by hand" });
        };
        let mut state = self.state();
        let physical = state.physicals.get_mut(&id).ok_or(Error::UnknownPhysical)?;
        physical.handles += 1;
        Ok(id)
    }

    /// Gives a handle up. The memory goes with its last handle and mapping.
    pub fn release(&self, id: PhysicalId) -> Result<(), Error> {
        let mut state = self.state();
        let physical = state
            .physicals
            .get_mut(&id)
            .filter(|physical| physical.handles > 0)
            .ok_or(Error::UnknownPhysical)?;
        physical.handles -= 1;
        self.drop_unused(&mut state, id)
    }

    /// Puts `bytes` of physical memory, from `physical_offset`, at an address inside a reservation. Until
    /// `set_access` nobody may touch it.
    pub fn map(
        &self,
        pointer: DevicePointer,
        bytes: u64,
        id: PhysicalId,
        physical_offset: u64,
    ) -> Result<(), Error> {
        let whole = |n: u64| n.is_multiple_of(GRANULE);
        if bytes == 0 || !whole(bytes) || !whole(physical_offset) {
            return Err(Error::InvalidSize { bytes });
        }
        let mut state = self.state();
        let offset = self.reserved(&state, pointer, bytes)?;
        let before = state.mappings.range(..offset + bytes).next_back();
        if before.is_some_and(|(&start, mapping)| start + mapping.bytes > offset) {
            return Err(Error::InvalidAddress { address: pointer.0, what: "mapped already" });
        }
        let mapping_id = state.fresh_id();
        let physical = state
            .physicals
            .get_mut(&id)
            .filter(|physical| physical.handles > 0)
            .ok_or(Error::UnknownPhysical)?;
        if physical_offset.checked_add(bytes).is_none_or(|end| end > physical.bytes) {
            return Err(Error::InvalidSize { bytes });
        }
        self.back_window.cover(
            offset,
            bytes,
            physical.file.as_fd(),
            physical.file_offset + physical_offset,
        )?;
        physical.mappings += 1;
        let mapping = Mapping { bytes, physical: id, id: mapping_id, protection: Protection::None };
        state.mappings.insert(offset, mapping);
        Ok(())
    }

    /// Takes the mappings away that make up exactly `[pointer, pointer + bytes)`.
    pub fn unmap(&self, pointer: DevicePointer, bytes: u64) -> Result<(), Error> {
        let mut state = self.state();
        let mappings = self.mapped(&state, pointer, bytes)?;
        let offset = pointer.0 - self.front;
        self.protect(offset, bytes, 0);
        self.back_window.cover(offset, bytes, self.file_fd(), offset)?;
        for start in mappings {
            let Some(mapping) = state.mappings.remove(&start) else { continue };
            if let Some(physical) = state.physicals.get_mut(&mapping.physical) {
                physical.mappings -= 1;
            }
            self.drop_unused(&mut state, mapping.physical)?;
        }
        Ok(())
    }

    /// Says what the device may do in `[pointer, pointer + bytes)`, whole mappings.
    pub fn set_access(
        &self,
        pointer: DevicePointer,
        bytes: u64,
        protection: Protection,
    ) -> Result<(), Error> {
        let mut state = self.state();
        for start in self.mapped(&state, pointer, bytes)? {
            if let Some(mapping) = state.mappings.get_mut(&start) {
                mapping.protection = protection;
            }
        }
        let flags = match protection {
            Protection::None => 0,
            Protection::Read => READABLE,
            Protection::ReadWrite => READABLE | WRITABLE,
        };
        self.protect(pointer.0 - self.front, bytes, flags);
        Ok(())
    }

    /// What `set_access` said for the mapping at `address`.
    pub fn access(&self, address: u64) -> Option<Protection> {
        let offset = self.offset(address)?;
        let state = self.state();
        let (start, mapping) = state.mappings.range(..=offset).next_back()?;
        (offset - start < mapping.bytes).then_some(mapping.protection)
    }

    fn reserved(&self, state: &State, pointer: DevicePointer, bytes: u64) -> Result<u64, Error> {
        let wrong = Error::InvalidAddress { address: pointer.0, what: "not reserved" };
        let offset = self.offset(pointer.0).filter(|offset| offset.is_multiple_of(GRANULE));
        let found = offset.and_then(|offset| Some((offset, state.region_at(pointer.0, offset)?)));
        match found {
            Some((offset, region))
                if region.kind == RegionKind::Reserved
                    && bytes <= region.base.0 + region.bytes - pointer.0 =>
            {
                Ok(offset)
            }
            _ => Err(wrong),
        }
    }

    /// The starts of the mappings that make up exactly this range.
    fn mapped(&self, state: &State, pointer: DevicePointer, bytes: u64) -> Result<Vec<u64>, Error> {
        let wrong = || Error::InvalidAddress { address: pointer.0, what: "not the whole of a mapping" };
        let start = self.offset(pointer.0).ok_or_else(wrong)?;
        let end = start.checked_add(bytes).filter(|_| bytes > 0).ok_or_else(wrong)?;
        let (mut starts, mut at) = (Vec::new(), start);
        for (&offset, mapping) in state.mappings.range(start..end) {
            if offset != at {
                return Err(wrong());
            }
            starts.push(offset);
            at = offset + mapping.bytes;
        }
        if at == end { Ok(starts) } else { Err(wrong()) }
    }

    fn drop_unused(&self, state: &mut State, id: PhysicalId) -> Result<(), Error> {
        let unused = |physical: &Physical| physical.handles == 0 && physical.mappings == 0;
        if !state.physicals.get(&id).is_some_and(unused) {
            return Ok(());
        }
        let Some(physical) = state.physicals.remove(&id) else { return Ok(()) };
        if physical.origin == Origin::Part {
            discard(&physical.file, physical.file_offset, physical.bytes)?;
            state.physical.give(physical.file_offset, physical.bytes);
        }
        if physical.origin != Origin::Foreign {
            self.refund(state, physical.bytes);
        }
        Ok(())
    }
}

impl State {
    fn add(&mut self, physical: Physical) -> PhysicalId {
        let id = PhysicalId(self.fresh_id());
        self.physicals.insert(id, physical);
        id
    }
}
