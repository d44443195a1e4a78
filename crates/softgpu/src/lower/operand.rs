//! Operands: from names and literals to registers and constants.

use ptx::Span;

use super::error::Error;
use super::function::{Lowering, Name};
use super::raw::{Class, Effect, Operand, Raw, Virtual};
use crate::isa::{Symbol, Type};
use crate::simt::ops::moves;
use crate::simt::special::{self, Special};
use crate::simt::{access, clock};

impl Lowering<'_> {
    /// An operand that is read as `ty`.
    pub(super) fn source(&mut self, operand: &ptx::Operand, ty: Type) -> Result<Operand, Error> {
        match operand {
            ptx::Operand::Name(span) => self.named_source(*span, ty),
            ptx::Operand::Integer { span, value } => self.integer_constant(*span, *value, ty),
            ptx::Operand::Float { span, bits, double } => self.float_constant(*span, *bits, *double, ty),
            ptx::Operand::Offset { span, base, offset } => self.address_of(*span, *base, *offset, ty),
            ptx::Operand::Element { span, base, index } => {
                let offset = self.element_offset(*span, *base, *index)?;
                self.address_of(*span, *base, offset, ty)
            }
            ptx::Operand::Vector { elements, .. } => self.packed(operand.span(), elements, ty),
            _ => Err(self.invalid(operand.span(), "this operand is not a value")),
        }
    }

    fn named_source(&mut self, span: Span, ty: Type) -> Result<Operand, Error> {
        let text = self.text(span);
        if let Some(value) = predefined(text) {
            return self.integer_constant(span, value, ty);
        }
        match self.find(text) {
            Some(Name::Register(register, declared)) => self.fitted(span, register, declared, ty),
            Some(Name::Vector(..) | Name::Label(_) | Name::Prototype | Name::Targets(_)) => {
                Err(self.invalid(span, format!("`{text}` is not a value")))
            }
            Some(_) => self.address_of(span, span, 0, ty),
            None if text.starts_with('%') => match self.special(text, ty) {
                Some(operand) => Ok(operand),
                None => {
                    let (register, declared) = self.find_register(span)?;
                    self.fitted(span, register, declared, ty)
                }
            },
            None => Err(self.invalid(span, format!("unknown name `{text}`"))),
        }
    }

    /// A register read as `ty`: a wider one gives its lower part.
    fn fitted(&mut self, span: Span, register: Virtual, declared: Type, ty: Type) -> Result<Operand, Error> {
        let (has, wants) = (Class::of(declared), Class::of(ty));
        match (has, wants) {
            _ if has == wants => Ok(Operand::Use(register)),
            (Class::Wide, Class::Narrow) => {
                let low = self.temporary(Class::Narrow);
                self.emit_op(moves::truncate(), Operand::Def(low), &[Operand::Use(register)], 0);
                Ok(Operand::Use(low))
            }
            _ => {
                let name = self.text(span);
                Err(self.invalid(
                    span,
                    format!("`{name}` has {} bits, {} are wanted", declared.bits(), ty.bits()),
                ))
            }
        }
    }

    pub(super) fn constant(&mut self, bits: u64, ty: Type) -> Operand {
        match Class::of(ty) {
            Class::Wide | Class::Quad => Operand::Pool(self.linker.pool_wide(bits)),
            _ => Operand::Pool(self.linker.pool_narrow(bits as u32)),
        }
    }

    pub(super) fn constant32(&mut self, bits: u32) -> Operand {
        Operand::Pool(self.linker.pool_narrow(bits))
    }

    fn integer_constant(&mut self, span: Span, value: u64, ty: Type) -> Result<Operand, Error> {
        match ty {
            Type::Pred => Err(self.invalid(span, "a number is not a predicate")),
            Type::F32 | Type::F64 => Err(self.invalid(span, "an integer where a float is wanted")),
            Type::B128 => Err(self.invalid(span, "a number of 128 bits is made of two")),
            _ => {
                let bits = ty.bits().min(64);
                let cut = value & (u64::MAX >> (64 - bits));
                Ok(self.constant(cut, ty))
            }
        }
    }

    fn float_constant(&mut self, span: Span, bits: u64, double: bool, ty: Type) -> Result<Operand, Error> {
        let bits = match (ty.bits(), double) {
            (32, true) => u64::from((f64::from_bits(bits) as f32).to_bits()),
            (64, false) => f64::from(f32::from_bits(bits as u32)).to_bits(),
            (32, false) | (64, true) => bits,
            _ => return Err(self.invalid(span, "a float literal does not fit this type")),
        };
        Ok(self.constant(bits, ty))
    }

    /// Reads a special register, or tells that there is none of that name.
    fn special(&mut self, text: &str, ty: Type) -> Option<Operand> {
        let wide = Class::of(ty) == Class::Wide;
        let clock = match text {
            "%clock" => Some((clock::CLOCK, false)),
            "%clock_hi" => Some((clock::CLOCK_HI, false)),
            "%clock64" => Some((clock::CLOCK64, true)),
            "%globaltimer" => Some((clock::GLOBALTIMER, true)),
            "%globaltimer_lo" => Some((clock::GLOBALTIMER_LO, false)),
            "%globaltimer_hi" => Some((clock::GLOBALTIMER_HI, false)),
            _ => None,
        };
        let (raw, is_wide) = match clock {
            Some((which, is_wide)) => (Raw::new(clock::read).aux(which).effect(Effect::Clock), is_wide),
            None => {
                let special = Special::named(text)?;
                self.linker.reserved_shared |= matches!(special, Special::Reserved | Special::ReservedEnd);
                (Raw::new(special::read).aux(special as u32), special.is_wide())
            }
        };
        let value = self.temporary(if is_wide { Class::Wide } else { Class::Narrow });
        self.emit(raw.d(Operand::Def(value)));
        if is_wide == wide {
            return Some(Operand::Use(value));
        }
        let fitted = self.temporary(if wide { Class::Wide } else { Class::Narrow });
        let convert = if wide { moves::widen() } else { moves::truncate() };
        self.emit_op(convert, Operand::Def(fitted), &[Operand::Use(value)], 0);
        Some(Operand::Use(fitted))
    }

    /// The address of a variable, in its own space.
    pub(super) fn address_of(
        &mut self,
        span: Span,
        base: Span,
        offset: i64,
        ty: Type,
    ) -> Result<Operand, Error> {
        let text = self.text(base);
        let wide = match Class::of(ty) {
            Class::Wide => true,
            Class::Narrow => false,
            _ => return Err(self.invalid(span, "an address has 32 or 64 bits")),
        };
        let of_number = |this: &mut Self, value: i64| this.constant(value as u64, ty);
        match self.find(text) {
            Some(Name::Variable(index, _)) if wide => Ok(self.symbol(Symbol::Variable(index), offset)),
            Some(Name::Function(index)) if wide => Ok(self.symbol(Symbol::Function(index), offset)),
            Some(Name::Shared(start, _)) => Ok(of_number(self, i64::from(start).wrapping_add(offset))),
            Some(Name::KernelParameter(start)) => Ok(of_number(self, i64::from(start).wrapping_add(offset))),
            Some(Name::DynamicShared(_)) => Ok(self.dynamic_shared(offset, wide)),
            Some(Name::Local(start, _)) => {
                let value = self.temporary(Class::of(ty));
                let mut raw = Raw::new(access::local_address).d(Operand::Def(value)).aux(u32::from(!wide));
                raw.offset = i64::from(start).wrapping_add(offset);
                self.emit(raw);
                Ok(Operand::Use(value))
            }
            Some(Name::Parameter(..)) => {
                Err(self.unsupported(span, "the address of a parameter of a device function"))
            }
            Some(_) => Err(self.invalid(span, format!("`{text}` has no address of {} bits", ty.bits()))),
            None => Err(self.invalid(span, format!("unknown name `{text}`"))),
        }
    }

    /// The bytes before `name[index]`.
    pub(super) fn element_offset(&mut self, span: Span, base: Span, index: i64) -> Result<i64, Error> {
        let text = self.text(base);
        let stride = match self.find(text) {
            Some(Name::Variable(_, stride) | Name::Shared(_, stride)) => stride,
            Some(Name::DynamicShared(stride) | Name::Local(_, stride)) => stride,
            Some(Name::KernelParameter(_) | Name::Parameter(_)) => {
                return Err(self.unsupported(span, "subscripts of parameters"));
            }
            Some(_) => None,
            None => return Err(self.invalid(base, format!("unknown name `{text}`"))),
        };
        let stride = stride.ok_or_else(|| self.invalid(span, format!("`{text}` is not an array")))?;
        let offset = index.checked_mul(i64::from(stride)).filter(|offset| u32::try_from(*offset).is_ok());
        offset.ok_or_else(|| self.invalid(span, "a subscript outside 32 bits"))
    }

    fn symbol(&mut self, symbol: Symbol, offset: i64) -> Operand {
        if let Symbol::Function(index) = symbol {
            self.callees.push(index);
        }
        Operand::Pool(self.linker.pool_symbol(symbol, offset))
    }

    fn dynamic_shared(&mut self, offset: i64, wide: bool) -> Operand {
        let base = self.temporary(Class::Narrow);
        self.emit(Raw::new(special::read).aux(Special::DynamicBase as u32).d(Operand::Def(base)));
        let sum = self.temporary(Class::Narrow);
        let constant = self.constant32(offset as u32);
        let add = crate::simt::ops::integer::add(Type::U32, false).expect("32-bit addition exists");
        self.emit_op(add, Operand::Def(sum), &[Operand::Use(base), constant], 0);
        if !wide {
            return Operand::Use(sum);
        }
        let address = self.temporary(Class::Wide);
        self.emit_op(moves::widen(), Operand::Def(address), &[Operand::Use(sum)], 0);
        Operand::Use(address)
    }

    /// `{%r1, %r2}` read as one value.
    fn packed(&mut self, span: Span, elements: &[ptx::Operand], ty: Type) -> Result<Operand, Error> {
        let value = self.temporary(Class::of(ty));
        self.pack(span, elements, ty, value)?;
        Ok(Operand::Use(value))
    }

    /// A register that is written as `ty`; `_` is nobody.
    pub(super) fn target(&mut self, operand: &ptx::Operand, ty: Type) -> Result<Operand, Error> {
        let ptx::Operand::Name(span) = operand else {
            return Err(self.invalid(operand.span(), "a register is wanted here"));
        };
        if self.text(*span) == "_" {
            return Ok(Operand::None);
        }
        let (register, declared) = self.find_register(*span)?;
        if Class::of(declared) != Class::of(ty) {
            let message =
                format!("`{}` has {} bits, the result {}", self.text(*span), declared.bits(), ty.bits());
            return Err(self.invalid(*span, message));
        }
        Ok(Operand::Def(register))
    }

    /// A register to write and its declared type.
    pub(super) fn target_any(&mut self, operand: &ptx::Operand) -> Result<Option<(Virtual, Type)>, Error> {
        let ptx::Operand::Name(span) = operand else {
            return Err(self.invalid(operand.span(), "a register is wanted here"));
        };
        if self.text(*span) == "_" {
            return Ok(None);
        }
        self.find_register(*span).map(Some)
    }

    /// A predicate that is read, plain or inverted.
    pub(super) fn predicate(&mut self, operand: &ptx::Operand) -> Result<Operand, Error> {
        let (span, inverted) = match operand {
            ptx::Operand::Name(span) => (*span, false),
            ptx::Operand::Not { register, .. } => (*register, true),
            ptx::Operand::Integer { value, .. } => {
                // `mov.pred %p, 1` and votes over a constant.
                return Ok(if *value != 0 { Operand::True } else { self.never() });
            }
            _ => return Err(self.invalid(operand.span(), "a predicate is wanted here")),
        };
        let (register, ty) = self.find_register(span)?;
        match (ty, inverted) {
            (Type::Pred, false) => Ok(Operand::Use(register)),
            (Type::Pred, true) => Ok(Operand::UseNot(register)),
            _ => Err(self.invalid(span, format!("`{}` is not a predicate", self.text(span)))),
        }
    }

    /// A predicate that never holds.
    fn never(&mut self) -> Operand {
        let register = self.temporary(Class::Predicate);
        self.emit(Raw::new(moves::set_constant).d(Operand::Def(register)).aux(0));
        Operand::Use(register)
    }
}

fn predefined(text: &str) -> Option<u64> {
    match text {
        "WARP_SZ" => Some(32),
        _ => None,
    }
}
