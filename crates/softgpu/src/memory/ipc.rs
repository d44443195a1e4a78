//! Memory of other processes.
//!
//! A handle names a place in the memory file of the process that exported it. Files are found through
//! `/proc/PID/fd`, which the kernel opens only to the same user. Process numbers and descriptors are used
//! again, so a handle also carries the file's identity and a *slot*: a word at the start of the file that
//! holds the allocation's number as long as the allocation lives.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use rustix::fs::SealFlags;

use super::regions::State;
use super::{
    AddressSpace, ContextId, DevicePointer, Error, GRANULE, READABLE, RegionKind, WRITABLE, round_up,
};

/// How many allocations can be exported at a time: as many words as the first granule holds.
pub(super) const SLOTS: u32 = (GRANULE / 8) as u32;

const MAGIC: u64 = u64::from_le_bytes(*b"ebb-ipc1");

/// A handle of an allocation, as plain bytes that fit CUDA's 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportedMemory {
    pid: u32,
    descriptor: u32,
    inode: u64,
    offset: u64,
    bytes: u64,
    id: u64,
    slot: u32,
}

impl ExportedMemory {
    pub const BYTES: usize = 64;

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let words = [
            MAGIC,
            u64::from(self.pid) | u64::from(self.descriptor) << 32,
            self.inode,
            self.offset,
            self.bytes,
            self.id,
            u64::from(self.slot),
            0,
        ];
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// `None` for bytes that `to_bytes` did not make. What they name is checked when it is imported.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Option<ExportedMemory> {
        let mut words = [0u64; 8];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let [magic, process, inode, offset, bytes, id, slot, _] = words;
        let slot = u32::try_from(slot).ok().filter(|&slot| slot < SLOTS)?;
        let (pid, descriptor) = (process as u32, (process >> 32) as u32);
        (magic == MAGIC).then_some(ExportedMemory { pid, descriptor, inode, offset, bytes, id, slot })
    }

    /// The process that exported it.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl AddressSpace {
    /// A handle of the allocation that starts at `pointer`.
    pub fn export(&self, pointer: DevicePointer) -> Result<ExportedMemory, Error> {
        let mut state = self.state();
        let region = self.starting_at(&state, pointer, |kind| kind == RegionKind::Device)?;
        let offset = pointer.0 - self.front;
        let slot = match state.exports.get(&offset) {
            Some(&slot) => slot,
            None => {
                let slot = state.free_slots.pop().ok_or(Error::NotShareable)?;
                rustix::io::pwrite(&**self.file(), &region.id.to_le_bytes(), u64::from(slot) * 8)?;
                state.exports.insert(offset, slot);
                slot
            }
        };
        Ok(ExportedMemory {
            pid: std::process::id(),
            descriptor: self.file().as_raw_fd() as u32,
            inode: rustix::fs::fstat(&**self.file())?.st_ino,
            offset,
            bytes: region.bytes,
            id: region.id,
            slot,
        })
    }

    /// Maps the memory behind a handle of another process (or of this one).
    pub fn import(&self, owner: ContextId, handle: &ExportedMemory) -> Result<DevicePointer, Error> {
        let file = open_export(handle)?;
        let rounded = round_up(handle.bytes)?;
        let mut state = self.state();
        let offset = state.device.take(rounded, GRANULE).ok_or(Error::OutOfMemory { bytes: handle.bytes })?;
        if let Err(error) =
            self.back_window.cover(offset, rounded, std::os::fd::AsFd::as_fd(&file), handle.offset)
        {
            state.device.give(offset, rounded);
            return Err(error.into());
        }
        self.protect(offset, rounded, READABLE | WRITABLE);
        Ok(self.enter(&mut state, offset, handle.bytes, RegionKind::Imported, owner))
    }

    /// Ends what `import` began.
    pub fn close_import(&self, pointer: DevicePointer) -> Result<(), Error> {
        let mut state = self.state();
        let region = self.starting_at(&state, pointer, |kind| kind == RegionKind::Imported)?;
        self.remove(&mut state, &region)
    }

    /// An allocation that goes is no longer exported.
    pub(super) fn retract(&self, state: &mut State, offset: u64) {
        if let Some(slot) = state.exports.remove(&offset) {
            // A word that cannot be cleared must not be used again; the number in it never is.
            if rustix::io::pwrite(&**self.file(), &[0; 8], u64::from(slot) * 8).is_ok() {
                state.free_slots.push(slot);
            }
        }
    }
}

fn open_export(handle: &ExportedMemory) -> Result<OwnedFd, Error> {
    let path = format!("/proc/{}/fd/{}", handle.pid, handle.descriptor);
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|_| Error::StaleExport)?;
    let sealed = rustix::fs::fcntl_get_seals(&file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK));
    let metadata = file.metadata()?;
    let fits = handle.offset.checked_add(round_up(handle.bytes)?).is_some_and(|end| end <= metadata.len());
    let whole = handle.offset.is_multiple_of(GRANULE) && handle.offset >= GRANULE;
    if !sealed
        || metadata.ino() != handle.inode
        || !fits
        || !whole
        || slot_word(&file, handle.slot)? != handle.id
    {
        return Err(Error::StaleExport);
    }
    Ok(file.into())
}

fn slot_word(file: &File, slot: u32) -> Result<u64, Error> {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, u64::from(slot) * 8)?;
    Ok(u64::from_le_bytes(word))
}
