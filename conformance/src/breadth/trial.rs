//! One launch of one kernel: what it is given and what must come out.

use crate::compare::{self, Approximate};
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
    pub fn exactly<T: Element + Approximate>(self, want: &[T]) -> Trial {
        let zeros = vec![T::ZERO; want.len()];
        let want: Vec<Exactly> = want.iter().map(|x| Exactly(x.as_f64())).collect();
        let check = move |got: &[T]| {
            let got: Vec<Exactly> = got.iter().map(|x| Exactly(x.as_f64())).collect();
            compare::equal(&got, &want)
        };
        self.memory(&zeros, Some(Rc::new(check)))
    }

    /// Memory of zeros that must come to within `absolute + relative * |want|` of `want`.
    pub fn close<T: Element + Approximate>(self, want: &[T], relative: f64, absolute: f64) -> Trial {
        let zeros = vec![T::ZERO; want.len()];
        let want = want.to_vec();
        self.memory(&zeros, Some(Rc::new(move |got: &[T]| compare::close(got, &want, relative, absolute))))
    }

    /// Memory that begins as `before` and must satisfy `check`.
    pub fn checked<T: Element>(self, before: &[T], check: impl Fn(&[T]) -> Result<()> + 'static) -> Trial {
        self.memory(before, Some(Rc::new(check)))
    }

    fn memory<T: Element>(mut self, before: &[T], check: Option<Check<T>>) -> Trial {
        self.slots.push(Slot::Memory(Box::new(Array { before: before.to_vec(), check })));
        self
    }

    /// Runs it from each of the four PTX texts.
    pub fn run(self, context: &Context<'_>) -> Result<()> {
        self.source.each_variant(context, |module| {
            let mut arguments = Arguments::default();
            let mut placed = Vec::new();
            for slot in &self.slots {
                match slot {
                    Slot::Value(value) => arguments = arguments.with(value.as_ref()),
                    Slot::Memory(memory) => {
                        let memory = memory.place(context)?;
                        arguments = arguments.with(&memory.address());
                        placed.push(memory);
                    }
                }
            }
            let function = module.function(self.kernel)?;
            function.run_shared(self.grid, self.block, self.shared, arguments)?;
            for (number, memory) in placed.iter().enumerate() {
                memory.check().with_context(|| format!("{}, buffer {number}", self.kernel))?;
            }
            Ok(())
        })
    }
}

type Check<T> = Rc<dyn Fn(&[T]) -> Result<()>>;

/// Contents for a buffer, whatever its type.
trait Memory {
    fn place<'d>(&self, context: &Context<'d>) -> Result<Box<dyn Placed + 'd>>;
}

/// A filled buffer on the device.
trait Placed {
    fn address(&self) -> u64;
    fn check(&self) -> Result<()>;
}

struct Array<T> {
    before: Vec<T>,
    check: Option<Check<T>>,
}

struct Resident<'d, T: Element> {
    buffer: Buffer<'d, T>,
    check: Option<Check<T>>,
}

impl<T: Element> Memory for Array<T> {
    fn place<'d>(&self, context: &Context<'d>) -> Result<Box<dyn Placed + 'd>> {
        let buffer = context.buffer(&self.before)?;
        Ok(Box::new(Resident { buffer, check: self.check.clone() }))
    }
}

impl<T: Element> Placed for Resident<'_, T> {
    fn address(&self) -> u64 {
        self.buffer.address()
    }

    fn check(&self) -> Result<()> {
        self.check.as_ref().map_or(Ok(()), |check| check(&self.buffer.read()?))
    }
}

/// A number equal to another only when all bits are: zeros differ by sign, NaNs are all the same.
struct Exactly(f64);

impl PartialEq for Exactly {
    fn eq(&self, other: &Exactly) -> bool {
        self.0.to_bits() == other.0.to_bits() || (self.0.is_nan() && other.0.is_nan())
    }
}

impl Debug for Exactly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:e}", self.0)
    }
}
