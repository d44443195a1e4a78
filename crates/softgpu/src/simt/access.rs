//! Loads and stores.
//!
//! Threads of several blocks race on memory, so every access is an atomic one of its size: on the hosts we run
//! on that is an ordinary move. Lanes of a warp mostly fall into one page, and what is true of a page's first
//! byte is true of the others, so an address is translated once per page and not once per lane.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use super::address::{GENERIC, GLOBAL, LOCAL, PARAM, SHARED};
use super::lanes::{Lane, STEP, STEPS, each_lane};
use super::machine::{Flow, Machine};
use crate::error::{Access, Fault};
use crate::isa::{Instruction, LANES, Slot};

/// Fields of `aux` for loads and stores: the number of elements, then flags.
pub(crate) const COUNT: u32 = 0xff;
/// The address is a 32-bit register.
pub(crate) const NARROW: u32 = 1 << 8;
/// Others may write here: a loop around it is polling.
pub(crate) const POLLS: u32 = 1 << 9;
pub(crate) const ORDERED: u32 = 1 << 10;

const PAGE_SHIFT: u32 = 12;

/// A value in memory.
pub(crate) trait Memory {
    const SIZE: u32;
    /// # Safety
    /// `place` is valid and aligned for an access of `SIZE` bytes.
    unsafe fn load(place: *mut u8) -> u64;
    /// # Safety
    /// As for `load`.
    unsafe fn store(place: *mut u8, value: u64);
}

macro_rules! memory {
    ($($ty:ty, $signed:ty, $atomic:ty;)*) => {$(
        impl Memory for $ty {
            const SIZE: u32 = size_of::<$ty>() as u32;

            #[inline(always)]
            unsafe fn load(place: *mut u8) -> u64 {
                // SAFETY: the caller's promise; all accesses to device memory are atomic.
                let place = unsafe { <$atomic>::from_ptr(place.cast()) };
                place.load(Ordering::Relaxed) as $signed as i64 as u64
            }

            #[inline(always)]
            unsafe fn store(place: *mut u8, value: u64) {
                // SAFETY: the caller's promise; all accesses to device memory are atomic.
                let place = unsafe { <$atomic>::from_ptr(place.cast()) };
                place.store(value as _, Ordering::Relaxed);
            }
        }
    )*};
}

memory! {
    i8, i8, AtomicU8;
    i16, i16, AtomicU16;
    i32, i32, AtomicU32;
    u64, u64, AtomicU64;
}

macro_rules! memory_unsigned {
    ($($ty:ty, $atomic:ty;)*) => {$(
        impl Memory for $ty {
            const SIZE: u32 = size_of::<$ty>() as u32;

            #[inline(always)]
            unsafe fn load(place: *mut u8) -> u64 {
                // SAFETY: the caller's promise; all accesses to device memory are atomic.
                let place = unsafe { <$atomic>::from_ptr(place.cast()) };
                u64::from(place.load(Ordering::Relaxed))
            }

            #[inline(always)]
            unsafe fn store(place: *mut u8, value: u64) {
                // SAFETY: the caller's promise; all accesses to device memory are atomic.
                let place = unsafe { <$atomic>::from_ptr(place.cast()) };
                place.store(value as $ty, Ordering::Relaxed);
            }
        }
    )*};
}

memory_unsigned! {
    u8, AtomicU8;
    u16, AtomicU16;
    u32, AtomicU32;
}

/// Where the lanes' accesses go. Lanes that are not active have some active lane's place.
#[allow(clippy::large_enum_variant, reason = "lives for one instruction, on the stack")]
enum Places {
    /// As far from `place` as the address is from `first`.
    Near {
        place: *mut u8,
        first: u64,
    },
    Far([*mut u8; LANES]),
}

impl Machine<'_> {
    /// The address a lane accesses.
    #[inline(always)]
    pub(crate) fn address(&self, i: &Instruction, lane: usize) -> u64 {
        let base = match i.aux & NARROW != 0 {
            true => u64::from(self.source::<u32>(i.a).get(lane)),
            false => self.source::<u64>(i.a).get(lane),
        };
        base.wrapping_add_signed(i.offset)
    }

    /// Where an aligned access of a lane goes.
    #[inline(always)]
    pub(crate) fn aligned<const SPACE: u8>(
        &mut self,
        lane: usize,
        address: u64,
        size: u32,
        access: Access,
    ) -> Result<*mut u8, Flow> {
        if address & u64::from(size - 1) != 0 {
            return Err(self.fail(Fault::MisalignedAddress { address, size, access }, lane));
        }
        match self.place::<SPACE>(lane, address, size, access) {
            Some(place) => Ok(place),
            None if SPACE == SHARED => Err(self.fail(Fault::BeyondShared { address, size, access }, lane)),
            None => Err(self.illegal_address(lane, address, size, access)),
        }
    }

    /// The addresses of all lanes; those that are not active get that of the first active one.
    #[inline(always)]
    fn addresses(&self, i: &Instruction, mask: u32) -> [u64; LANES] {
        let mut addresses = [0; LANES];
        if i.aux & NARROW != 0 {
            let base = self.source::<u32>(i.a);
            for step in 0..STEPS {
                let base = base.step(step);
                for lane in 0..STEP {
                    addresses[step * STEP + lane] = u64::from(base[lane]).wrapping_add_signed(i.offset);
                }
            }
        } else {
            let base = self.source::<u64>(i.a);
            for step in 0..STEPS {
                let base = base.step(step);
                for lane in 0..STEP {
                    addresses[step * STEP + lane] = base[lane].wrapping_add_signed(i.offset);
                }
            }
        }
        if mask != u32::MAX {
            let first = addresses[mask.trailing_zeros() as usize];
            each_lane(!mask).for_each(|lane| addresses[lane] = first);
        }
        addresses
    }

    /// Where the lanes' accesses of `size` bytes go, all of them checked.
    #[inline(always)]
    fn places<const SPACE: u8>(
        &mut self,
        addresses: &[u64; LANES],
        mask: u32,
        size: u32,
        access: Access,
    ) -> Result<Places, Flow> {
        let first = addresses[0];
        let apart = addresses.iter().fold(0, |apart, address| apart | (address ^ first));
        let low = u64::from(size - 1);
        // Within one page: what holds for the first lane holds for all, except in local memory, where equal
        // addresses are different places.
        let together = apart >> PAGE_SHIFT == 0 && (apart | first) & low == 0 && SPACE != LOCAL;
        if !together || (SPACE == GENERIC && self.is_local(first)) {
            return self.separate_places::<SPACE>(addresses, mask, size, access);
        }
        let lane = mask.trailing_zeros() as usize;
        let Some(place) = self.place::<SPACE>(lane, first, size, access) else {
            return self.separate_places::<SPACE>(addresses, mask, size, access);
        };
        // What is not made of whole pages may end before the last lane's address.
        let page_end = (first | ((1 << PAGE_SHIFT) - 1)) - low;
        if SPACE != GLOBAL && self.place::<SPACE>(lane, page_end, size, access).is_none() {
            let last = addresses.iter().fold(0, |last, address| last.max(*address));
            if self.place::<SPACE>(lane, last, size, access).is_none() {
                return self.separate_places::<SPACE>(addresses, mask, size, access);
            }
        }
        Ok(Places::Near { place, first })
    }

    /// Lane by lane, with a page remembered from one to the next.
    #[inline(never)]
    fn separate_places<const SPACE: u8>(
        &mut self,
        addresses: &[u64; LANES],
        mask: u32,
        size: u32,
        access: Access,
    ) -> Result<Places, Flow> {
        let lane = mask.trailing_zeros() as usize;
        let first = self.aligned::<SPACE>(lane, addresses[lane], size, access)?;
        let mut places = [first; LANES];
        let mut known = (addresses[lane], first);
        for lane in each_lane(mask) {
            let address = addresses[lane];
            let same_page = SPACE == GLOBAL && (address ^ known.0) >> PAGE_SHIFT == 0;
            if !same_page || address & u64::from(size - 1) != 0 {
                known = (address, self.aligned::<SPACE>(lane, address, size, access)?);
            }
            places[lane] = known.1.wrapping_offset(address.wrapping_sub(known.0) as isize);
        }
        Ok(Places::Far(places))
    }

    fn is_local(&self, address: u64) -> bool {
        address.wrapping_sub(self.state.local_window) < crate::memory::GENERIC_WINDOW
    }
}

/// `ld`: to `d`, or to the registers of the list when there are several.
pub(crate) fn load<const SPACE: u8, T: Memory, D: Lane>(
    m: &mut Machine<'_>,
    i: &Instruction,
    mask: u32,
) -> Flow {
    let count = i.aux & COUNT;
    let size = T::SIZE * count;
    if m.trial.is_some() && !m.try_access::<SPACE>(i, mask, size, Access::Read) {
        return Flow::Fault;
    }
    m.warp.polled |= i.aux & POLLS != 0;
    let addresses = m.addresses(i, mask);
    match m.places::<SPACE>(&addresses, mask, size, Access::Read) {
        Ok(Places::Near { place, first }) => load_from::<T, D>(m, i, mask, |lane| {
            place.wrapping_offset(addresses[lane].wrapping_sub(first) as isize)
        }),
        Ok(Places::Far(places)) => load_from::<T, D>(m, i, mask, |lane| places[lane]),
        Err(flow) => return flow,
    }
    if i.aux & ORDERED != 0 {
        fence(Ordering::Acquire);
    }
    Flow::Next
}

/// Reads what each lane's place holds; every place was checked for all elements.
#[inline(always)]
fn load_from<T: Memory, D: Lane>(
    m: &Machine<'_>,
    i: &Instruction,
    mask: u32,
    place: impl Fn(usize) -> *mut u8,
) {
    let (count, whole) = (i.aux & COUNT, m.whole(mask));
    for element in 0..count {
        let slot = if count == 1 { i.d } else { m.image.lists[(i.list + element) as usize] };
        if slot == Slot::NONE {
            continue;
        }
        let d = m.target::<D>(slot);
        for step in 0..STEPS {
            let values: [D; STEP] = std::array::from_fn(|lane| {
                let place = place(step * STEP + lane).wrapping_add((element * T::SIZE) as usize);
                // SAFETY: the place is valid for all elements, of which this is one, and aligned.
                D::low(unsafe { T::load(place) })
            });
            m.put(d, step, mask, whole, values);
        }
    }
}

/// `st`: from `b`, or from the registers of the list when there are several.
pub(crate) fn store<const SPACE: u8, T: Memory, D: Lane>(
    m: &mut Machine<'_>,
    i: &Instruction,
    mask: u32,
) -> Flow {
    let count = i.aux & COUNT;
    let size = T::SIZE * count;
    if m.trial.is_some() && !m.try_access::<SPACE>(i, mask, size, Access::Write) {
        return Flow::Fault;
    }
    if i.aux & ORDERED != 0 {
        fence(Ordering::Release);
    }
    let addresses = m.addresses(i, mask);
    match m.places::<SPACE>(&addresses, mask, size, Access::Write) {
        Ok(Places::Near { place, first }) => store_to::<T, D>(m, i, mask, |lane| {
            place.wrapping_offset(addresses[lane].wrapping_sub(first) as isize)
        }),
        Ok(Places::Far(places)) => store_to::<T, D>(m, i, mask, |lane| places[lane]),
        Err(flow) => return flow,
    }
    Flow::Next
}

/// Writes to each lane's place; every place was checked for all elements.
#[inline(always)]
fn store_to<T: Memory, D: Lane>(
    m: &Machine<'_>,
    i: &Instruction,
    mask: u32,
    place: impl Fn(usize) -> *mut u8,
) {
    let count = i.aux & COUNT;
    // Lane by lane, so that of two lanes which write to the same place the higher one wins in all elements.
    if count == 1 {
        let b = m.source::<D>(i.b);
        for lane in each_lane(mask) {
            // SAFETY: the place is valid and aligned.
            unsafe { T::store(place(lane), b.get(lane).bits()) };
        }
        return;
    }
    for lane in each_lane(mask) {
        for element in 0..count {
            let slot = m.image.lists[(i.list + element) as usize];
            let value = m.source::<D>(slot).get(lane).bits();
            let place = place(lane).wrapping_add((element * T::SIZE) as usize);
            // SAFETY: the place is valid for all elements, of which this is one, and aligned.
            unsafe { T::store(place, value) };
        }
    }
}

/// `ld.param` of a kernel at a fixed place: the same value for all lanes.
pub(crate) fn load_parameter<T: Memory, D: Lane>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let count = i.aux & COUNT;
    for element in 0..count {
        let offset = (i.offset as u64).wrapping_add(u64::from(element * T::SIZE));
        let Some(place) = m.state.parameters.pointer(offset, T::SIZE) else {
            return m.illegal_address(mask.trailing_zeros() as usize, offset, T::SIZE, Access::Read);
        };
        // SAFETY: within the parameters; lowering has checked that the offset is aligned.
        let value = D::low(unsafe { T::load(place) });
        let slot = if count == 1 { i.d } else { m.image.lists[(i.list + element) as usize] };
        if slot != Slot::NONE {
            m.fill(slot, mask, |_| value);
        }
    }
    Flow::Next
}

/// `cp.async`: from `b` to shared memory at `a`, `aux` bytes of which `e` (or all) come from the source and
/// the rest is zero. Done at once, which is one of the orders the program allows.
pub(crate) fn copy_async(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    if m.trial.is_some() {
        return Flow::Fault;
    }
    let size = i.aux & COUNT;
    for lane in each_lane(mask) {
        let to = m.address(i, lane);
        let from = m.source::<u64>(i.b).get(lane).wrapping_add_signed(i64::from(i.c.0 as i32));
        let wanted = if i.e == Slot::NONE { size } else { m.source::<u32>(i.e).get(lane).min(size) };
        let to = match m.aligned::<SHARED>(lane, to, size, Access::Write) {
            Ok(place) => place,
            Err(flow) => return flow,
        };
        let from = match wanted {
            0 => to,
            _ => match m.aligned::<GENERIC>(lane, from, size, Access::Read) {
                Ok(place) => place,
                Err(flow) => return flow,
            },
        };
        for byte in 0..size as usize {
            // SAFETY: both places hold `size` bytes.
            let value = if byte < wanted as usize { unsafe { u8::load(from.wrapping_add(byte)) } } else { 0 };
            // SAFETY: as above.
            unsafe { u8::store(to.wrapping_add(byte), value) };
        }
    }
    Flow::Next
}

/// `fence`, `membar`.
pub(crate) fn memory_fence(_: &mut Machine<'_>, _: &Instruction, _: u32) -> Flow {
    fence(Ordering::SeqCst);
    Flow::Next
}

/// Address of a local variable: the frame's base plus the offset, to a 64-bit (`aux` 0) or 32-bit register.
pub(crate) fn local_address(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let base = u64::from(m.warp.frames[m.warp.frame as usize].local_base).wrapping_add_signed(i.offset);
    match i.aux {
        0 => m.fill(i.d, mask, |_| base),
        _ => m.fill(i.d, mask, |_| base as u32),
    }
    Flow::Next
}

/// `isspacep` for the space in `aux`.
pub(crate) fn is_space(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    use super::address::PARAM_OFFSET;
    use crate::memory::GENERIC_WINDOW;
    let (shared, local) = (m.state.shared_window, m.state.local_window);
    let space = i.aux as u8;
    let bits = m.test1::<u64>(i.a, |address| {
        let (in_shared, in_local) = (address.wrapping_sub(shared), address.wrapping_sub(local));
        let found = match (in_shared, in_local) {
            (0..PARAM_OFFSET, _) => SHARED,
            (PARAM_OFFSET..GENERIC_WINDOW, _) => PARAM,
            (_, 0..GENERIC_WINDOW) => LOCAL,
            _ => GLOBAL,
        };
        found == space
    });
    m.set_predicate(i.d, mask, bits);
    Flow::Next
}
