//! One launch of one kernel: what it is given and what must come out.

use crate::compare;
use crate::context::Context;
use crate::memory::{Buffer, Element};
use crate::module::{Argument, Arguments, Dim3, Source};
use anyhow::{Context as _, Result};
use std::fmt::Debug;
use std::rc::Rc;

/// A kernel's launch with its arguments in order. Every memory argument is a buffer of its own, filled before
/// the launch and, where something is expected of it, checked after.
pub(super) struct Trial {
    source: Source,
    kernel: &'static str,
    grid: Dim3,
    block: Dim3,
    shared: u32,
    slots: Vec<Slot>,
}

enum Slot {
    Value(Box<dyn Argument>),
    Memory(Box<dyn Memory>),
}

impl Trial {
    /// A launch of one block of one thread, until told otherwise.
    pub fn new(source: Source, kernel: &'static str) -> Trial {
        Trial { source, kernel, grid: 1.into(), block: 1.into(), shared: 0, slots: Vec::new() }
    }

    pub fn shape(mut self, grid: impl Into<Dim3>, block: impl Into<Dim3>) -> Trial {
        (self.grid, self.block) = (grid.into(), block.into());
        self
    }

    /// Blocks of 128 threads, at least `count` threads in all.
    pub fn threads(self, count: usize) -> Trial {
        self.shape(count.div_ceil(128) as u32, 128)
    }

    /// Dynamic shared memory.
    pub fn shared(mut self, bytes: usize) -> Trial {
        self.shared = bytes as u32;
        self
    }

    /// An argument by value.
    pub fn value(mut self, value: impl Argument + 'static) -> Trial {
        self.slots.push(Slot::Value(Box::new(value)));
        self
    }

    /// Memory that the kernel reads, or may spoil.
    pub fn input<T: Element>(self, values: &[T]) -> Trial {
        self.memory(values, None)
    }

    /// Memory of zeros that must become `want`.
    pub fn output<T: Element + PartialEq + Debug>(self, want: &[T]) -> Trial {
        self.changed(&vec![T::ZERO; want.len()], want)
    }

    /// Memory that begins as `before` and must become `after`.
    pub fn changed<T: Element + PartialEq + Debug>(self, before: &[T], after: &[T]) -> Trial {
        let after = after.to_vec();
        self.memory(before, Some(Rc::new(move |got: &[T]| compare::equal(got, &after))))
    }

    /// Memory of zeros that must become `want` to the bit, though any NaN may stand for another.
    pub fn exactly<T: Element + compare::Approximate>(self, want: &[T]) -> Trial {
        let want: Vec<Exactly> = want.iter().map(|x| Exactly(x.as_f64())).collect();
        let check = move |got: &[T]| {
            let got: Vec<Exactly> = got.iter().map(|x| Exactly(x.as_f64())).collect();
            compare::equal(&got, &want)
        };
        self.memory(&vec![T::ZERO; self_len(&check, &want_len::<T>())], Some(Rc::new(check)))
    }
}
