//! The memory of the software GPU as one process sees it.
//!
//! A device address is a number inside a *front* window of this process, reserved and inaccessible: host code
//! that dereferences a device pointer faults, as with a card, and device and host pointers never collide. The
//! bytes live in a memory file which is mapped at a second place, the *back* window, at the same offsets. So
//! an access is two compares, one byte of the granule table, and an addition. The back window is never taken
//! away while the space lives: a kernel that reads freed memory gets CUDA's error or stale bytes, and never a
//! signal.
//!
//! ```text
//! offset   0        64 KiB            window           2 * window        + 16 MiB  + 16 MiB
//!          | exports | device memory    | host memory     | shared        | local   |
//! front    |  none   |  none            | read/write      | none          | none    |
//! back     |            the memory file, same offsets     |
//! ```
//!
//! Host memory (pinned, managed) is the one part that can be touched through the front too. Ordinary
//! allocations use the file at their own offset, so they cost no system call; physical memory of the virtual
//! memory calls, and memory of other processes, is mapped over the back window in whole granules. Ranges that
//! the host registers lie outside the windows and are looked up in a small sorted list.

mod copy;
mod host;
mod ipc;
mod ranges;
mod regions;
mod vmm;
mod window;

#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rustix::fs::{MemfdFlags, SealFlags};
use thiserror::Error;

use crate::error::Access;
pub use copy::{Copy2D, Copy3D, Fill, Pattern, Word};
pub use ipc::ExportedMemory;
pub use regions::{Region, RegionKind};
pub use vmm::{PhysicalId, Protection};

use host::Registered;
use regions::State;
use window::Window;

/// The unit in which memory is mapped and protected.
pub const GRANULE: u64 = 64 << 10;
const GRANULE_SHIFT: u32 = GRANULE.trailing_zeros();
/// What the windows, reservations and shareable memory are aligned to: the large page of a card.
pub const LARGE_GRANULE: u64 = 2 << 20;
/// Size of the windows through which generic addresses reach shared and local memory.
pub const GENERIC_WINDOW: u64 = 16 << 20;

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;

#[derive(Debug, Error)]
pub enum Error {
    #[error(
        "cannot reserve {bytes} bytes of address space ({source}); a limit on virtual memory (ulimit -v) must be lifted"
    )]
    Reserve { bytes: u64, source: io::Error },
    #[error("out of memory: {bytes} bytes wanted")]
    OutOfMemory { bytes: u64 },
    #[error("{bytes} bytes is no usable size here")]
    InvalidSize { bytes: u64 },
    /// An address that is not what the call needs: not the start of an allocation, not reserved, not mapped.
    #[error("{address:#x} is {what}")]
    InvalidAddress { address: u64, what: &'static str },
    #[error("{bytes} bytes at {address:#x} are not all accessible")]
    Inaccessible { address: u64, bytes: u64 },
    #[error("host memory at {address:#x} is registered already")]
    AlreadyRegistered { address: u64 },
    #[error("host memory at {address:#x} is not registered")]
    NotRegistered { address: u64 },
    #[error("unknown handle of physical memory")]
    UnknownPhysical,
    #[error("the handle is not of live memory of a live process")]
    StaleExport,
    #[error("this memory cannot be shared")]
    NotShareable,
    #[error("the operating system refused: {0}")]
    System(#[from] io::Error),
}

impl From<rustix::io::Errno> for Error {
    fn from(errno: rustix::io::Errno) -> Error {
        Error::System(errno.into())
    }
}

/// Who asked for memory, so that all of it can be freed with its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextId(pub u64);

/// An address as the device sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DevicePointer(pub u64);

/// The capacity of the card, which processes share.
pub trait Quota: Send + Sync {
    /// Takes `bytes` from the capacity; false, and nothing taken, when they are not there.
    fn charge(&self, bytes: u64) -> bool;
    fn refund(&self, bytes: u64);
}

/// A card with as much memory as the machine gives.
#[derive(Clone, Copy, Debug)]
pub struct Unlimited;

impl Quota for Unlimited {
    fn charge(&self, _bytes: u64) -> bool {
        true
    }

    fn refund(&self, _bytes: u64) {}
}

/// All memory that kernels of this process can reach.
pub struct AddressSpace {
    front: u64,
    back: usize,
    /// Bytes of the windows that have a granule in the table.
    span: u64,
    table: Box<[AtomicU8]>,
    registered: RwLock<Vec<Registered>>,
    registered_count: AtomicUsize,
    state: Mutex<State>,
    quota: Arc<dyn Quota>,
    layout: Layout,
    front_window: Window,
    back_window: Window,
    file: Arc<OwnedFd>,
}

/// Offsets of the parts, see the picture above.
#[derive(Clone, Copy, Debug)]
struct Layout {
    host: u64,
    shared: u64,
    local: u64,
    end: u64,
    /// Where in the file physical memory of the virtual memory calls begins: it has no address of its own.
    physical: u64,
    file_bytes: u64,
}

impl Layout {
    fn new(window: u64) -> Option<Layout> {
        let window = window.max(LARGE_GRANULE).checked_next_multiple_of(LARGE_GRANULE)?;
        let shared = window.checked_mul(2)?;
        let local = shared.checked_add(GENERIC_WINDOW)?;
        let end = local.checked_add(GENERIC_WINDOW)?;
        let file_bytes = end.checked_add(window)?;
        (file_bytes < 1 << 46).then_some(Layout {
            host: window,
            shared,
            local,
            end,
            physical: end,
            file_bytes,
        })
    }
}

impl AddressSpace {
    /// Reserves `window_bytes` of device addresses and as many for host memory; no memory is used yet.
    pub fn new(window_bytes: u64, quota: Arc<dyn Quota>) -> Result<AddressSpace, Error> {
        let layout = Layout::new(window_bytes).ok_or(Error::InvalidSize { bytes: window_bytes })?;
        let reserve = |bytes: u64| {
            Window::reserve(bytes as usize, LARGE_GRANULE as usize)
                .map_err(|source| Error::Reserve { bytes, source })
        };
        let front_window = reserve(layout.end)?;
        let back_window = reserve(layout.shared)?;
        let file = memory_file(layout.file_bytes)?;
        back_window.cover(0, layout.shared, file.as_fd(), 0)?;
        let granules = (layout.shared >> GRANULE_SHIFT) as usize;
        // SAFETY: all-zero bytes are `AtomicU8`s of value 0.
        let table = unsafe { Box::<[AtomicU8]>::new_zeroed_slice(granules).assume_init() };
        Ok(AddressSpace {
            front: front_window.base() as u64,
            back: back_window.base(),
            span: layout.shared,
            table,
            registered: RwLock::new(Vec::new()),
            registered_count: AtomicUsize::new(0),
            state: Mutex::new(State::new(&layout)),
            quota,
            layout,
            front_window,
            back_window,
            file: Arc::new(file),
        })
    }

    /// Where the device finds `len` bytes at `address`, if it may access them so. The pointer is to be used
    /// with atomic accesses only, since kernels race; it stays usable as long as the space lives (for memory
    /// that the host registered: until it is unregistered), whatever becomes of the allocation.
    #[inline]
    pub fn translate(&self, address: u64, len: u32, access: Access) -> Option<*mut u8> {
        let offset = address.wrapping_sub(self.front);
        if offset >= self.span {
            return self.translate_registered(address, u64::from(len), access);
        }
        let wanted = wanted(access);
        let first = (offset >> GRANULE_SHIFT) as usize;
        let last = ((offset + u64::from(len.max(1)) - 1) >> GRANULE_SHIFT) as usize;
        if self.table[first].load(Ordering::Relaxed) & wanted != wanted {
            return None;
        }
        // An aligned access never gets here; a long one may.
        if last != first && !self.granules_allow(first + 1, last, wanted) {
            return None;
        }
        Some(ptr::with_exposed_provenance_mut(self.back + offset as usize))
    }

    /// The generic address at which every block sees its shared memory.
    pub fn shared_window(&self) -> u64 {
        self.front + self.layout.shared
    }

    /// The generic address at which every thread sees its local memory.
    pub fn local_window(&self) -> u64 {
        self.front + self.layout.local
    }

    /// Whether an address is of the windows: the device's, or host memory that was allocated here.
    pub fn contains(&self, address: u64) -> bool {
        self.offset(address).is_some()
    }

    #[cold]
    fn granules_allow(&self, first: usize, last: usize, wanted: u8) -> bool {
        self.table
            .get(first..=last)
            .is_some_and(|granules| granules.iter().all(|g| g.load(Ordering::Relaxed) & wanted == wanted))
    }

    /// Sets what the device may do in a range of whole granules.
    fn protect(&self, offset: u64, bytes: u64, flags: u8) {
        let granules = (offset >> GRANULE_SHIFT) as usize..((offset + bytes) >> GRANULE_SHIFT) as usize;
        for granule in &self.table[granules] {
            granule.store(flags, Ordering::Relaxed);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves the books as they were before or after a whole step; go on with them.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The offset of an address in the windows, if it lies there.
    fn offset(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(self.front);
        (offset < self.layout.end).then_some(offset)
    }
}

impl std::fmt::Debug for AddressSpace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressSpace")
            .field("front", &self.front)
            .field("layout", &self.layout)
            .finish_non_exhaustive()
    }
}

fn wanted(access: Access) -> u8 {
    match access {
        Access::Read => READABLE,
        Access::Write | Access::Atomic => READABLE | WRITABLE,
    }
}

fn round_up(bytes: u64) -> Result<u64, Error> {
    match bytes.checked_next_multiple_of(GRANULE) {
        Some(rounded) if bytes > 0 => Ok(rounded),
        _ => Err(Error::InvalidSize { bytes }),
    }
}

/// A memory file that cannot shrink under whoever maps it.
fn memory_file(bytes: u64) -> Result<OwnedFd, Error> {
    let file = rustix::fs::memfd_create("ebb-softgpu", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&file, bytes)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    Ok(file)
}

/// Gives the pages of a part of a memory file back; it reads as zeroes afterwards.
fn discard(file: &OwnedFd, offset: u64, bytes: u64) -> Result<(), Error> {
    use rustix::fs::FallocateFlags as Flags;
    rustix::fs::fallocate(file, Flags::PUNCH_HOLE | Flags::KEEP_SIZE, offset, bytes)?;
    Ok(())
}
