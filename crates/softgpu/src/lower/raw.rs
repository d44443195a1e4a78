//! Instructions before registers are allocated.

use std::rc::Rc;

use crate::isa::{Execute, Type};
use crate::simt::control;

/// A virtual register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Virtual(pub u32);

/// How much room a virtual register takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Class {
    Predicate,
    Narrow,
    Wide,
    Quad,
}

impl Class {
    pub(super) fn of(ty: Type) -> Class {
        match ty.bits() {
            1 => Class::Predicate,
            0..=32 => Class::Narrow,
            33..=64 => Class::Wide,
            _ => Class::Quad,
        }
    }

    /// Rows, or predicates, that it takes.
    pub(super) fn rows(self) -> u32 {
        match self {
            Class::Predicate | Class::Narrow => 1,
            Class::Wide => 2,
            Class::Quad => 4,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Register {
    pub class: Class,
    /// Rows at the start of the frame that belong to it alone: parameters and results.
    pub fixed: Option<u32>,
    /// Made by lowering for the span of one source instruction.
    pub temporary: bool,
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    None,
    Use(Virtual),
    /// A predicate, inverted.
    UseNot(Virtual),
    /// The upper or lower half of a 128-bit register.
    UseHalf(Virtual, u32),
    DefHalf(Virtual, u32),
    Def(Virtual),
    Pool(u32),
    /// The predicate that always holds.
    True,
    Bits(u32),
}

/// Where control goes after an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Control {
    Falls,
    /// To a label, or on if guarded.
    Jumps(u32),
    Table(Rc<[u32]>),
    /// Nowhere, or on if guarded.
    Ends,
    /// On, but splits of a warp meet here.
    Meets,
}

/// What an instruction means to a loop that might only wait for a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Pure,
    Clock,
    Call,
    /// Memory that may be the thread's own.
    Private,
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub run: Execute,
    pub d: Operand,
    pub a: Operand,
    pub b: Operand,
    pub c: Operand,
    pub e: Operand,
    pub list: Vec<Operand>,
    pub guard: Option<(Virtual, bool)>,
    pub aux: u32,
    pub offset: i64,
    pub line: u32,
    pub control: Control,
    pub effect: Effect,
}

impl Raw {
    pub(super) fn new(run: Execute) -> Raw {
        Raw {
            run,
            d: Operand::None,
            a: Operand::None,
            b: Operand::None,
            c: Operand::None,
            e: Operand::None,
            list: Vec::new(),
            guard: None,
            aux: 0,
            offset: 0,
            line: 0,
            control: Control::Falls,
            effect: Effect::Pure,
        }
    }

    pub(super) fn d(mut self, d: Operand) -> Raw {
        self.d = d;
        self
    }

    pub(super) fn a(mut self, a: Operand) -> Raw {
        self.a = a;
        self
    }

    pub(super) fn b(mut self, b: Operand) -> Raw {
        self.b = b;
        self
    }

    pub(super) fn c(mut self, c: Operand) -> Raw {
        self.c = c;
        self
    }

    pub(super) fn e(mut self, e: Operand) -> Raw {
        self.e = e;
        self
    }

    pub(super) fn aux(mut self, aux: u32) -> Raw {
        self.aux = aux;
        self
    }

    pub(super) fn effect(mut self, effect: Effect) -> Raw {
        self.effect = effect;
        self
    }

    pub(super) fn control(mut self, control: Control) -> Raw {
        self.control = control;
        self
    }

    /// The end of a function nobody should reach.
    pub(super) fn end() -> Raw {
        Raw::new(control::fell_off).control(Control::Ends).effect(Effect::Other)
    }

    fn operands(&self) -> impl Iterator<Item = Operand> + '_ {
        [self.d, self.a, self.b, self.c, self.e].into_iter().chain(self.list.iter().copied())
    }

    pub(super) fn uses(&self) -> impl Iterator<Item = Virtual> + '_ {
        let used = |operand| match operand {
            Operand::Use(v) | Operand::UseNot(v) | Operand::UseHalf(v, _) => Some(v),
            // The other half stays as it is.
            Operand::DefHalf(v, _) => Some(v),
            _ => None,
        };
        self.operands().filter_map(used).chain(self.guard.map(|(v, _)| v))
    }

    pub(super) fn definitions(&self) -> impl Iterator<Item = Virtual> + '_ {
        let defined = |operand| match operand {
            Operand::Def(v) | Operand::DefHalf(v, _) => Some(v),
            _ => None,
        };
        self.operands().filter_map(defined)
    }
}
