//! From an address of a PTX state space to the byte it means.

use std::cell::UnsafeCell;

use super::machine::Machine;
use super::warp::Warp;
use crate::error::Access;
use crate::isa::LANES;
use crate::memory::GENERIC_WINDOW;

/// State spaces, as parameters of the functions that access memory. Constants live in global memory.
pub(crate) const GLOBAL: u8 = 0;
pub(crate) const SHARED: u8 = 1;
pub(crate) const LOCAL: u8 = 2;
pub(crate) const GENERIC: u8 = 3;
pub(crate) const PARAM: u8 = 4;

/// Kernel parameters have generic addresses too (`cvta.param`); no block has so much shared memory that they
/// could collide in this window.
pub(crate) const PARAM_OFFSET: u64 = GENERIC_WINDOW / 2;

/// Bytes that are accessed only through pointers, aligned for the largest access.
#[derive(Default)]
pub(crate) struct Bytes {
    granules: Vec<UnsafeCell<Granule>>,
    len: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Granule([u8; 32]);

impl Bytes {
    pub(crate) fn zeroed(len: usize) -> Bytes {
        let granule = || UnsafeCell::new(Granule([0; 32]));
        Bytes { granules: std::iter::repeat_with(granule).take(len.div_ceil(32)).collect(), len }
    }

    /// Bounds it to `len` bytes. What was there stays; new bytes are zero.
    pub(crate) fn resize(&mut self, len: usize) {
        if len > self.capacity() {
            *self = Bytes::zeroed(len);
        }
        self.len = len;
    }

    pub(crate) fn capacity(&self) -> usize {
        self.granules.len() * size_of::<Granule>()
    }

    /// Becomes the first `len` bytes of `bytes`, with zeroes behind them if there are fewer.
    pub(crate) fn assign(&mut self, bytes: &[u8], len: usize) {
        self.resize(len);
        let mut rest = &bytes[..len.min(bytes.len())];
        for granule in &mut self.granules {
            let (now, later) = rest.split_at(rest.len().min(size_of::<Granule>()));
            let place = &mut granule.get_mut().0;
            place[..now.len()].copy_from_slice(now);
            place[now.len()..].fill(0);
            rest = later;
        }
    }

    /// A pointer to `size` bytes at `offset`, valid as long as this lives and does not move its bytes.
    #[inline(always)]
    pub(crate) fn pointer(&self, offset: u64, size: u32) -> Option<*mut u8> {
        let inside = offset <= self.len as u64 && u64::from(size) <= self.len as u64 - offset;
        inside.then(|| self.granules.as_ptr().cast::<u8>().cast_mut().wrapping_add(offset as usize))
    }
}

/// Local memory of the lanes of a warp, each a stretch of the same length.
#[derive(Default)]
pub(crate) struct LocalMemory {
    bytes: Bytes,
    stride: usize,
}

impl LocalMemory {
    #[inline(always)]
    fn pointer(&self, lane: usize, offset: u64, size: u32) -> Option<*mut u8> {
        let inside = offset <= self.stride as u64 && u64::from(size) <= self.stride as u64 - offset;
        if inside { self.bytes.pointer((lane * self.stride) as u64 + offset, size) } else { None }
    }

    pub(crate) fn copy(&mut self) -> LocalMemory {
        let copied = self.bytes.granules.iter_mut().map(|granule| UnsafeCell::new(*granule.get_mut()));
        LocalMemory { bytes: Bytes { granules: copied.collect(), len: self.bytes.len }, stride: self.stride }
    }

    #[cold]
    fn grow(&mut self, stride: usize) {
        let mut bytes = Bytes::zeroed(stride * LANES);
        let (old, new) = (self.stride / 32, stride / 32);
        for lane in 0..LANES {
            let kept = self.bytes.granules[lane * old..(lane + 1) * old].iter_mut();
            for (to, from) in bytes.granules[lane * new..].iter_mut().zip(kept) {
                *to.get_mut() = *from.get_mut();
            }
        }
        (self.bytes, self.stride) = (bytes, stride);
    }
}

impl Warp {
    /// Makes sure each lane has `bytes` of local memory.
    #[inline]
    pub(crate) fn reserve_local(&mut self, bytes: u32) {
        if self.local.stride < bytes as usize {
            self.local.grow((bytes as usize).next_power_of_two().max(64));
        }
    }
}

impl Machine<'_> {
    pub(crate) fn reserve_local(&mut self, bytes: u32) {
        self.warp.reserve_local(bytes);
    }

    /// Where `size` bytes of a lane lie, if it may access them.
    #[inline(always)]
    pub(crate) fn place<const SPACE: u8>(
        &self,
        lane: usize,
        address: u64,
        size: u32,
        access: Access,
    ) -> Option<*mut u8> {
        match SPACE {
            GLOBAL => self.space.translate(address, size, access),
            SHARED => self.state.shared.pointer(address, size),
            LOCAL => self.warp.local.pointer(lane, address, size),
            PARAM => self.state.parameters.pointer(address, size),
            _ => self.place_generic(lane, address, size, access),
        }
    }

    #[inline(always)]
    fn place_generic(&self, lane: usize, address: u64, size: u32, access: Access) -> Option<*mut u8> {
        let shared = address.wrapping_sub(self.state.shared_window);
        let local = address.wrapping_sub(self.state.local_window);
        if shared < PARAM_OFFSET {
            self.state.shared.pointer(shared, size)
        } else if local < GENERIC_WINDOW {
            self.warp.local.pointer(lane, local, size)
        } else if shared < GENERIC_WINDOW && access == Access::Read {
            self.state.parameters.pointer(shared - PARAM_OFFSET, size)
        } else {
            self.space.translate(address, size, access)
        }
    }
}
