//! Rows of registers, and arithmetic over their lanes.
//!
//! Operands may be the same row, so each step reads eight lanes of all sources before it writes eight lanes of
//! the result: that is always right, needs no check for overlap, and compiles to vector instructions.

use std::cell::UnsafeCell;

use super::Machine;
use crate::isa::{Instruction, PoolRow, Slot};

/// Lanes computed at once.
pub(crate) const STEP: usize = 8;
pub(crate) const STEPS: usize = crate::isa::LANES / STEP;

/// A value of one lane as registers hold it.
pub(crate) trait Lane: Copy + Default + 'static {
    const ROWS: usize;
    fn select(condition: bool, yes: Self, no: Self) -> Self;
    fn low(bits: u64) -> Self;
    fn bits(self) -> u64;
}

impl Lane for u32 {
    const ROWS: usize = 1;

    #[inline(always)]
    fn select(condition: bool, yes: u32, no: u32) -> u32 {
        if condition { yes } else { no }
    }

    #[inline(always)]
    fn low(bits: u64) -> u32 {
        bits as u32
    }

    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self)
    }
}

impl Lane for u64 {
    const ROWS: usize = 2;

    #[inline(always)]
    fn select(condition: bool, yes: u64, no: u64) -> u64 {
        if condition { yes } else { no }
    }

    #[inline(always)]
    fn low(bits: u64) -> u64 {
        bits
    }

    #[inline(always)]
    fn bits(self) -> u64 {
        self
    }
}

/// A row of a warp's registers. It may be written while other references to the file exist, since operands of
/// one instruction overlap.
#[repr(transparent)]
pub(crate) struct RegisterRow(UnsafeCell<PoolRow>);

impl RegisterRow {
    pub(crate) fn zero() -> RegisterRow {
        RegisterRow(UnsafeCell::new(PoolRow::splat(0)))
    }

    pub(crate) fn copy(&mut self) -> RegisterRow {
        RegisterRow(UnsafeCell::new(*self.0.get_mut()))
    }
}

/// Where 32 lanes are read from or written to: always whole rows of the register file or the pool.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<T>(*mut T);

impl<T: Lane> Lanes<T> {
    /// Eight lanes.
    #[inline(always)]
    pub(crate) fn step(self, step: usize) -> [T; STEP] {
        assert!(step < STEPS);
        // SAFETY: the step lies within the 32 lanes.
        let place = unsafe { self.0.add(step * STEP) };
        // SAFETY: made by `source` or `target`, which checked that the rows exist; rows are aligned to 64
        // bytes and any bits are a value. The file does not move while an instruction holds lanes of it.
        unsafe { place.cast::<[T; STEP]>().read() }
    }

    #[inline(always)]
    pub(crate) fn set_step(self, step: usize, values: [T; STEP]) {
        assert!(step < STEPS);
        // SAFETY: the step lies within the 32 lanes.
        let place = unsafe { self.0.add(step * STEP) };
        // SAFETY: as for `step`; only `target` gives out lanes that are written.
        unsafe { place.cast::<[T; STEP]>().write(values) }
    }

    #[inline(always)]
    pub(crate) fn get(self, lane: usize) -> T {
        assert!(lane < crate::isa::LANES);
        // SAFETY: the lane is one of the 32.
        let place = unsafe { self.0.add(lane) };
        // SAFETY: as for `step`.
        unsafe { place.read() }
    }

    #[inline(always)]
    pub(crate) fn set(self, lane: usize, value: T) {
        assert!(lane < crate::isa::LANES);
        // SAFETY: the lane is one of the 32.
        let place = unsafe { self.0.add(lane) };
        // SAFETY: as for `set_step`.
        unsafe { place.write(value) }
    }
}

/// The numbers of the lanes in a mask.
#[inline(always)]
pub(crate) fn each_lane(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as usize;
        (mask != 0).then(|| {
            mask &= mask - 1;
            lane
        })
    })
}

impl Machine<'_> {
    #[inline(always)]
    pub(crate) fn source<T: Lane>(&self, slot: Slot) -> Lanes<T> {
        match slot.0 & Slot::POOL != 0 {
            true => {
                let index = (slot.0 & !Slot::POOL) as usize;
                Lanes(self.pool[index..index + T::ROWS].as_ptr().cast_mut().cast())
            }
            false => self.target(slot),
        }
    }

    #[inline(always)]
    pub(crate) fn target<T: Lane>(&self, slot: Slot) -> Lanes<T> {
        let index = self.warp.base + slot.0 as usize;
        Lanes(self.warp.rows[index..index + T::ROWS].as_ptr().cast_mut().cast())
    }

    /// Whether all lanes that still exist are in `mask`: then whole rows may be written.
    #[inline(always)]
    pub(crate) fn whole(&self, mask: u32) -> bool {
        mask | self.warp.dead == u32::MAX
    }

    /// The lanes in which a predicate holds.
    #[inline(always)]
    pub(crate) fn predicate(&self, slot: Slot) -> u32 {
        let index = slot.0 & !Slot::NOT;
        let value = match index == Slot::TRUE.0 {
            true => u32::MAX,
            false => self.warp.predicates[self.warp.predicate_base + index as usize],
        };
        if slot.0 & Slot::NOT != 0 { !value } else { value }
    }

    #[inline(always)]
    pub(crate) fn set_predicate(&mut self, slot: Slot, mask: u32, value: u32) {
        if slot == Slot::NONE {
            return;
        }
        let place = &mut self.warp.predicates[self.warp.predicate_base + slot.0 as usize];
        *place = (*place & !mask) | (value & mask);
    }

    #[inline(always)]
    pub(crate) fn put<D: Lane>(
        &self,
        d: Lanes<D>,
        step: usize,
        mask: u32,
        whole: bool,
        mut values: [D; STEP],
    ) {
        if !whole {
            let old = d.step(step);
            for lane in 0..STEP {
                let written = mask >> (step * STEP + lane) & 1 != 0;
                values[lane] = D::select(written, values[lane], old[lane]);
            }
        }
        d.set_step(step, values);
    }

    /// Writes one value per lane; `value` is asked for every lane, so it must be cheap and total.
    #[inline(always)]
    pub(crate) fn fill<D: Lane>(&mut self, d: Slot, mask: u32, value: impl Fn(usize) -> D) {
        let (d, whole) = (self.target::<D>(d), self.whole(mask));
        for step in 0..STEPS {
            let values = std::array::from_fn(|lane| value(step * STEP + lane));
            self.put(d, step, mask, whole, values);
        }
    }

    #[inline(always)]
    pub(crate) fn map1<A: Lane, D: Lane>(&mut self, i: &Instruction, mask: u32, f: impl Fn(A) -> D) {
        let (a, d, whole) = (self.source::<A>(i.a), self.target::<D>(i.d), self.whole(mask));
        for step in 0..STEPS {
            let a = a.step(step);
            let mut values = [D::default(); STEP];
            for lane in 0..STEP {
                values[lane] = f(a[lane]);
            }
            self.put(d, step, mask, whole, values);
        }
    }

    #[inline(always)]
    pub(crate) fn map2<A: Lane, B: Lane, D: Lane>(
        &mut self,
        i: &Instruction,
        mask: u32,
        f: impl Fn(A, B) -> D,
    ) {
        let (a, b) = (self.source::<A>(i.a), self.source::<B>(i.b));
        let (d, whole) = (self.target::<D>(i.d), self.whole(mask));
        for step in 0..STEPS {
            let (a, b) = (a.step(step), b.step(step));
            let mut values = [D::default(); STEP];
            for lane in 0..STEP {
                values[lane] = f(a[lane], b[lane]);
            }
            self.put(d, step, mask, whole, values);
        }
    }

    #[inline(always)]
    pub(crate) fn map3<A: Lane, B: Lane, C: Lane, D: Lane>(
        &mut self,
        i: &Instruction,
        mask: u32,
        f: impl Fn(A, B, C) -> D,
    ) {
        let (a, b, c) = (self.source::<A>(i.a), self.source::<B>(i.b), self.source::<C>(i.c));
        let (d, whole) = (self.target::<D>(i.d), self.whole(mask));
        for step in 0..STEPS {
            let (a, b, c) = (a.step(step), b.step(step), c.step(step));
            let mut values = [D::default(); STEP];
            for lane in 0..STEP {
                values[lane] = f(a[lane], b[lane], c[lane]);
            }
            self.put(d, step, mask, whole, values);
        }
    }

    /// The lanes in which `f` holds.
    #[inline(always)]
    pub(crate) fn test1<A: Lane>(&self, a: Slot, f: impl Fn(A) -> bool) -> u32 {
        let a = self.source::<A>(a);
        let mut bits = [0u32; STEP];
        for step in 0..STEPS {
            let a = a.step(step);
            for lane in 0..STEP {
                bits[lane] |= u32::from(f(a[lane])) << (step * STEP + lane);
            }
        }
        bits.iter().fold(0, |all, bit| all | bit)
    }

    #[inline(always)]
    pub(crate) fn test2<A: Lane, B: Lane>(&self, a: Slot, b: Slot, f: impl Fn(A, B) -> bool) -> u32 {
        let (a, b) = (self.source::<A>(a), self.source::<B>(b));
        let mut bits = [0u32; STEP];
        for step in 0..STEPS {
            let (a, b) = (a.step(step), b.step(step));
            for lane in 0..STEP {
                bits[lane] |= u32::from(f(a[lane], b[lane])) << (step * STEP + lane);
            }
        }
        bits.iter().fold(0, |all, bit| all | bit)
    }
}
