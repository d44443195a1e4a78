//! `atom` and `red`.
//!
//! Global memory is shared with other threads of the host, so every operation there is a compare-and-exchange
//! loop; shared memory belongs to the one that runs the block.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::access::{COUNT, Memory, ORDERED};
use super::address::{GENERIC, GLOBAL, SHARED};
use super::lanes::{Lane, each_lane};
use super::machine::{Flow, Machine};
use crate::error::Access;
use crate::isa::{Execute, Instruction, Slot};
use crate::numeric::{Float, MinMax, Rounding, bf16, f16};

/// A value that can be updated atomically.
pub(crate) trait Atomic: Memory {
    type Register: Lane;

    /// # Safety
    /// `place` is valid and aligned for an access of `SIZE` bytes.
    unsafe fn update(place: *mut u8, f: impl Fn(u64) -> u64) -> u64;
}

macro_rules! atomic_value {
    ($($ty:ty, $atomic:ty, $register:ty;)*) => {$(
        impl Atomic for $ty {
            type Register = $register;

            #[inline(always)]
            unsafe fn update(place: *mut u8, f: impl Fn(u64) -> u64) -> u64 {
                // SAFETY: the caller's promise; all accesses to device memory are atomic.
                let place = unsafe { <$atomic>::from_ptr(place.cast()) };
                let mut old = place.load(Ordering::Relaxed);
                loop {
                    let new = f(u64::from(old)) as $ty;
                    match place.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Relaxed) {
                        Ok(_) => return u64::from(old),
                        Err(seen) => old = seen,
                    }
                }
            }
        }
    )*};
}

atomic_value! {
    u16, AtomicU16, u32;
    u32, AtomicU32, u32;
    u64, AtomicU64, u64;
}

/// Updates memory at the address in `a` with the operands in `b` and `c`; the old value goes to `d`, if there
/// is one. With several elements, the list holds their destinations, then their operands. `f` gets the old
/// value, the operands, and whether the place is in shared memory.
#[inline(always)]
fn update<const SPACE: u8, T: Atomic>(
    m: &mut Machine<'_>,
    i: &Instruction,
    mask: u32,
    f: impl Fn(u64, u64, u64, bool) -> u64,
) -> Flow {
    if m.trial.is_some() {
        return Flow::Fault;
    }
    m.warp.polled = true;
    let count = i.aux & COUNT;
    for lane in each_lane(mask) {
        let address = m.address(i, lane);
        let place = match m.aligned::<SPACE>(lane, address, T::SIZE * count, Access::Atomic) {
            Ok(place) => place,
            Err(flow) => return flow,
        };
        let shared = SPACE == SHARED || (SPACE == GENERIC && m.is_shared(address));
        for element in 0..count {
            let list = |number: u32| m.image.lists[(i.list + number) as usize];
            let (d, b) = if count == 1 { (i.d, i.b) } else { (list(element), list(count + element)) };
            let b = m.source::<T::Register>(b).get(lane).bits();
            let c = if i.c == Slot::NONE { 0 } else { m.source::<T::Register>(i.c).get(lane).bits() };
            let part = place.wrapping_add((element * T::SIZE) as usize);
            let old = if SPACE == SHARED {
                // SAFETY: `aligned` gave a place for all elements.
                let old = unsafe { T::load(part) };
                // SAFETY: as above.
                unsafe { T::store(part, f(old, b, c, shared)) };
                old
            } else {
                // SAFETY: `aligned` gave a place for all elements.
                unsafe { T::update(part, |old| f(old, b, c, shared)) }
            };
            if d != Slot::NONE {
                m.target::<T::Register>(d).set(lane, T::Register::low(old));
            }
        }
    }
    if i.aux & ORDERED != 0 {
        std::sync::atomic::fence(Ordering::SeqCst);
    }
    Flow::Next
}

impl Machine<'_> {
    fn is_shared(&self, address: u64) -> bool {
        address.wrapping_sub(self.state.shared_window) < super::address::PARAM_OFFSET
    }
}

/// One operation for the three spaces it can act on.
pub(crate) struct InSpaces {
    global: Execute,
    shared: Execute,
    generic: Execute,
}

impl InSpaces {
    pub(crate) fn pick(&self, space: u8) -> Option<Execute> {
        match space {
            GLOBAL => Some(self.global),
            SHARED => Some(self.shared),
            GENERIC => Some(self.generic),
            _ => None,
        }
    }
}

macro_rules! atomic {
    ($ty:ty, $f:expr) => {{
        fn run<const SPACE: u8>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
            update::<SPACE, $ty>(m, i, mask, $f)
        }
        InSpaces { global: run::<GLOBAL>, shared: run::<SHARED>, generic: run::<GENERIC> }
    }};
}

/// The types `atom` and `red` distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Bits16,
    Bits32,
    Bits64,
    Unsigned32,
    Signed32,
    Unsigned64,
    Signed64,
    Float32,
    Float64,
    Half,
    HalfPair,
    Brain,
    BrainPair,
}

fn float_add<F: Float>(a: u64, b: u64, flush: bool) -> u64 {
    let (a, b) = (F::of_bits64(a), F::of_bits64(b));
    let sum = if flush { a.add_ftz(b, Rounding::Nearest) } else { a.add(b, Rounding::Nearest) };
    sum.to_bits64()
}

/// Both halves of a pair.
fn in_pairs(a: u64, b: u64, f: impl Fn(u64, u64) -> u64) -> u64 {
    (f(a & 0xffff, b & 0xffff) & 0xffff) | f(a >> 16 & 0xffff, b >> 16 & 0xffff) << 16
}

fn float_extreme<F: Float>(a: u64, b: u64, smaller: bool) -> u64 {
    let (a, b, how) = (F::of_bits64(a), F::of_bits64(b), MinMax::default());
    if smaller { a.smaller(b, how).to_bits64() } else { a.larger(b, how).to_bits64() }
}

/// The function for an operation of `atom`, by its name in PTX.
pub(crate) fn operation(name: &str, kind: Kind) -> Option<InSpaces> {
    use Kind::*;
    Some(match (name, kind) {
        ("add", Unsigned32 | Signed32) => atomic!(u32, |old, b, _, _| old.wrapping_add(b)),
        ("add", Unsigned64 | Signed64) => atomic!(u64, |old, b, _, _| old.wrapping_add(b)),
        // A card flushes subnormal sums in global memory and keeps them in shared memory.
        ("add", Float32) => atomic!(u32, |old, b, _, shared| float_add::<f32>(old, b, !shared)),
        ("add", Float64) => atomic!(u64, |old, b, _, _| float_add::<f64>(old, b, false)),
        ("add", Half) => atomic!(u16, |old, b, _, _| float_add::<f16>(old, b, false)),
        ("add", Brain) => atomic!(u16, |old, b, _, _| float_add::<bf16>(old, b, false)),
        ("add", HalfPair) => {
            atomic!(u32, |old, b, _, _| in_pairs(old, b, |a, b| float_add::<f16>(a, b, false)))
        }
        ("add", BrainPair) => {
            atomic!(u32, |old, b, _, _| in_pairs(old, b, |a, b| float_add::<bf16>(a, b, false)))
        }
        ("min", Half) => atomic!(u16, |old, b, _, _| float_extreme::<f16>(old, b, true)),
        ("max", Half) => atomic!(u16, |old, b, _, _| float_extreme::<f16>(old, b, false)),
        ("min", Brain) => atomic!(u16, |old, b, _, _| float_extreme::<bf16>(old, b, true)),
        ("max", Brain) => atomic!(u16, |old, b, _, _| float_extreme::<bf16>(old, b, false)),
        ("min", HalfPair) => {
            atomic!(u32, |old, b, _, _| in_pairs(old, b, |a, b| float_extreme::<f16>(a, b, true)))
        }
        ("max", HalfPair) => {
            atomic!(u32, |old, b, _, _| in_pairs(old, b, |a, b| float_extreme::<f16>(a, b, false)))
        }
        ("min", BrainPair) => {
            atomic!(u32, |old, b, _, _| in_pairs(old, b, |a, b| float_extreme::<bf16>(a, b, true)))
        }
        ("max", BrainPair) => {
            atomic!(u32, |old, b, _, _| in_pairs(old, b, |a, b| float_extreme::<bf16>(a, b, false)))
        }
        ("min", Unsigned32) => atomic!(u32, |old, b, _, _| old.min(b)),
        ("max", Unsigned32) => atomic!(u32, |old, b, _, _| old.max(b)),
        ("min", Signed32) => atomic!(u32, |old, b, _, _| (old as i32).min(b as i32) as u64),
        ("max", Signed32) => atomic!(u32, |old, b, _, _| (old as i32).max(b as i32) as u64),
        ("min", Unsigned64) => atomic!(u64, |old, b, _, _| old.min(b)),
        ("max", Unsigned64) => atomic!(u64, |old, b, _, _| old.max(b)),
        ("min", Signed64) => atomic!(u64, |old, b, _, _| (old as i64).min(b as i64) as u64),
        ("max", Signed64) => atomic!(u64, |old, b, _, _| (old as i64).max(b as i64) as u64),
        ("inc", Unsigned32) => atomic!(u32, |old, b, _, _| if old >= b { 0 } else { old + 1 }),
        ("dec", Unsigned32) => atomic!(u32, |old, b, _, _| if old == 0 || old > b { b } else { old - 1 }),
        ("and", Bits32) => atomic!(u32, |old, b, _, _| old & b),
        ("or", Bits32) => atomic!(u32, |old, b, _, _| old | b),
        ("xor", Bits32) => atomic!(u32, |old, b, _, _| old ^ b),
        ("and", Bits64) => atomic!(u64, |old, b, _, _| old & b),
        ("or", Bits64) => atomic!(u64, |old, b, _, _| old | b),
        ("xor", Bits64) => atomic!(u64, |old, b, _, _| old ^ b),
        ("exch", Bits32 | Unsigned32 | Signed32 | Float32) => atomic!(u32, |_, b, _, _| b),
        ("exch", Bits64 | Unsigned64 | Signed64 | Float64) => atomic!(u64, |_, b, _, _| b),
        ("cas", Bits16) => atomic!(u16, |old, b, c, _| if old == b & 0xffff { c } else { old }),
        ("cas", Bits32 | Unsigned32 | Signed32 | Float32) => {
            atomic!(u32, |old, b, c, _| if old == b { c } else { old })
        }
        ("cas", Bits64 | Unsigned64 | Signed64 | Float64) => {
            atomic!(u64, |old, b, c, _| if old == b { c } else { old })
        }
        _ => return None,
    })
}
