//! Loads and stores.

use std::rc::Rc;

use ptx::Span;

use super::error::Error;
use super::function::{Lowering, Name};
use super::raw::{Class, Effect, Operand, Raw, Virtual};
use super::words::Words;
use crate::isa::{Execute, Type};
use crate::simt::access::{self, Memory, NARROW, ORDERED, POLLS};
use crate::simt::address::{GENERIC, GLOBAL, LOCAL, PARAM, SHARED};
use crate::simt::lanes::Lane;
use crate::simt::ops::moves;

type Done = Result<(), Error>;

/// An address operand, ready for an instruction.
pub(super) struct Address {
    pub base: Operand,
    pub offset: i64,
    /// Flags of `aux`.
    pub aux: u32,
    /// What the name in it says about the space.
    pub space: Option<u8>,
}

/// What a `.param` address can mean.
enum Parameter {
    /// Registers that hold a call's parameter, and the byte to start at.
    Registers(Rc<[Virtual]>, i64),
    Kernel(i64),
    Address(Address),
}

impl Lowering<'_> {
    pub(super) fn address(&mut self, operand: &ptx::Operand, w: &Words<'_>) -> Result<Address, Error> {
        if let ptx::Operand::Element { span, base, index } = operand {
            let offset = self.element_offset(*span, *base, *index)?;
            return self.named_address(*base, offset);
        }
        let ptx::Operand::Address { base, offset, rest, span } = operand else {
            return Err(self.invalid(operand.span(), "an address is wanted here"));
        };
        if !rest.is_empty() {
            return Err(w.unknown(self));
        }
        match &**base {
            ptx::Operand::Name(name) => self.named_address(*name, *offset),
            ptx::Operand::Integer { value, .. } => {
                let base = self.constant(*value, Type::U64);
                Ok(Address { base, offset: *offset, aux: 0, space: None })
            }
            _ => Err(self.invalid(*span, "this is no address")),
        }
    }

    fn named_address(&mut self, name: Span, offset: i64) -> Result<Address, Error> {
        let text = self.text(name);
        let (ty, space) = match self.find(text) {
            Some(Name::Register(register, ty)) => {
                let aux = match Class::of(ty) {
                    Class::Wide => 0,
                    Class::Narrow => NARROW,
                    _ => return Err(self.invalid(name, format!("`{text}` cannot hold an address"))),
                };
                return Ok(Address { base: Operand::Use(register), offset, aux, space: None });
            }
            Some(Name::Shared(..) | Name::DynamicShared(_)) => (Type::U32, SHARED),
            Some(Name::Local(..)) => (Type::U32, LOCAL),
            Some(Name::KernelParameter(_)) => (Type::U32, PARAM),
            Some(_) => (Type::U64, GLOBAL),
            None => {
                let (register, ty) = self.find_register(name)?;
                let aux = if Class::of(ty) == Class::Wide { 0 } else { NARROW };
                return Ok(Address { base: Operand::Use(register), offset, aux, space: None });
            }
        };
        let base = self.address_of(name, name, 0, ty)?;
        let aux = if ty == Type::U32 { NARROW } else { 0 };
        Ok(Address { base, offset, aux, space: Some(space) })
    }

    fn parameter(&mut self, operand: &ptx::Operand, w: &Words<'_>) -> Result<Parameter, Error> {
        if let ptx::Operand::Address { base, offset, rest, .. } = operand
            && let (ptx::Operand::Name(name), true) = (&**base, rest.is_empty())
        {
            match self.find(self.text(*name)) {
                Some(Name::Parameter(registers)) => return Ok(Parameter::Registers(registers, *offset)),
                Some(Name::KernelParameter(start)) => {
                    return Ok(Parameter::Kernel(i64::from(start).wrapping_add(*offset)));
                }
                _ => {}
            }
        }
        self.address(operand, w).map(Parameter::Address)
    }

    /// The elements of a vector operand, or the operand itself.
    pub(super) fn elements<'b>(
        &mut self,
        operand: &'b ptx::Operand,
        count: u32,
        w: &Words<'_>,
    ) -> Result<Vec<Piece<'b>>, Error> {
        let elements = match operand {
            ptx::Operand::Vector { elements, .. } => elements.iter().map(Piece::Operand).collect(),
            ptx::Operand::Name(span) if self.is_vector(*span) => {
                self.vector_of(*span).into_iter().map(Piece::Register).collect()
            }
            other => vec![Piece::Operand(other)],
        };
        if elements.len() as u32 != count { Err(w.mismatch(self)) } else { Ok(elements) }
    }

    pub(super) fn is_vector(&mut self, span: Span) -> bool {
        matches!(self.find(self.text(span)), Some(Name::Vector(..)))
    }

    pub(super) fn vector_of(&mut self, span: Span) -> Vec<Virtual> {
        match self.find(self.text(span)) {
            Some(Name::Vector(registers, _)) => registers,
            _ => Vec::new(),
        }
    }
}

pub(super) enum Piece<'a> {
    Operand(&'a ptx::Operand),
    Register(Virtual),
}

/// Words about caches and scopes that change nothing here.
pub(super) fn is_hint(word: &str) -> bool {
    const HINTS: [&str; 24] = [
        "ca",
        "cg",
        "cs",
        "cv",
        "lu",
        "wb",
        "wt",
        "nc",
        "weak",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "noftz",
        "L1::evict_normal",
        "L1::evict_unchanged",
        "L1::evict_first",
        "L1::evict_last",
        "L1::no_allocate",
        "L2::64B",
        "L2::128B",
        "L2::256B",
        "L2::cache_hint",
        "unified",
    ];
    HINTS.contains(&word) || word.starts_with("L2::evict") || word == "mmio"
}

/// Takes the words that loads, stores and atomics share; gives the space, flags of `aux` and the vector size.
pub(super) fn memory_words(f: &Lowering<'_>, w: &mut Words<'_>) -> Result<(u8, u32, u32), Error> {
    let mut aux = match w.any(f, &["volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"]) {
        Some("acquire" | "release" | "acq_rel") => ORDERED | POLLS,
        Some(_) => POLLS,
        None => 0,
    };
    if w.take("relaxed") {
        aux |= POLLS;
    }
    let space = match w.any(
        f,
        &["global", "const", "shared", "shared::cta", "local", "param", "param::entry", "param::func"],
    ) {
        Some("global" | "const") => GLOBAL,
        Some("shared" | "shared::cta") => SHARED,
        Some("local") => LOCAL,
        Some(_) => PARAM,
        None => GENERIC,
    };
    if w.has("shared::cluster") {
        // With clusters of one block it is the block's own.
        w.take("shared::cluster");
        return finish_memory_words(w, f, SHARED, aux);
    }
    finish_memory_words(w, f, space, aux)
}

fn finish_memory_words(
    w: &mut Words<'_>,
    f: &Lowering<'_>,
    space: u8,
    aux: u32,
) -> Result<(u8, u32, u32), Error> {
    w.drop_all(is_hint);
    let count = match w.any(f, &["v2", "v4", "v8"]) {
        Some("v2") => 2,
        Some("v4") => 4,
        Some(_) => 8,
        None => 1,
    };
    Ok((space, aux, count))
}

macro_rules! by_space {
    ($space:expr, $function:ident, $t:ty, $d:ty) => {
        match $space {
            GLOBAL => Some(access::$function::<GLOBAL, $t, $d> as Execute),
            SHARED => Some(access::$function::<SHARED, $t, $d> as Execute),
            LOCAL => Some(access::$function::<LOCAL, $t, $d> as Execute),
            PARAM => Some(access::$function::<PARAM, $t, $d> as Execute),
            _ => Some(access::$function::<GENERIC, $t, $d> as Execute),
        }
    };
}

/// The load of a type to a register that may be wider.
fn loader(space: u8, ty: Type, wide: bool) -> Option<Execute> {
    match (ty.bits(), ty.is_signed(), wide) {
        (8, false, false) => by_space!(space, load, u8, u32),
        (8, true, false) => by_space!(space, load, i8, u32),
        (16, false, false) => by_space!(space, load, u16, u32),
        (16, true, false) => by_space!(space, load, i16, u32),
        (32, _, false) => by_space!(space, load, u32, u32),
        (8, false, true) => by_space!(space, load, u8, u64),
        (8, true, true) => by_space!(space, load, i8, u64),
        (16, false, true) => by_space!(space, load, u16, u64),
        (16, true, true) => by_space!(space, load, i16, u64),
        (32, false, true) => by_space!(space, load, u32, u64),
        (32, true, true) => by_space!(space, load, i32, u64),
        (64, _, true) => by_space!(space, load, u64, u64),
        _ => None,
    }
}

fn storer(space: u8, ty: Type, wide: bool) -> Option<Execute> {
    match (ty.bits(), wide) {
        (8, false) => by_space!(space, store, u8, u32),
        (16, false) => by_space!(space, store, u16, u32),
        (32, false) => by_space!(space, store, u32, u32),
        (8, true) => by_space!(space, store, u8, u64),
        (16, true) => by_space!(space, store, u16, u64),
        (32, true) => by_space!(space, store, u32, u64),
        (64, true) => by_space!(space, store, u64, u64),
        _ => None,
    }
}

fn parameter_loader(ty: Type, wide: bool) -> Option<Execute> {
    fn of<T: Memory, D: Lane>() -> Option<Execute> {
        Some(access::load_parameter::<T, D>)
    }
    match (ty.bits(), ty.is_signed(), wide) {
        (8, false, false) => of::<u8, u32>(),
        (8, true, false) => of::<i8, u32>(),
        (16, false, false) => of::<u16, u32>(),
        (16, true, false) => of::<i16, u32>(),
        (32, _, false) => of::<u32, u32>(),
        (8, false, true) => of::<u8, u64>(),
        (8, true, true) => of::<i8, u64>(),
        (16, false, true) => of::<u16, u64>(),
        (16, true, true) => of::<i16, u64>(),
        (32, false, true) => of::<u32, u64>(),
        (32, true, true) => of::<i32, u64>(),
        (64, _, true) => of::<u64, u64>(),
        _ => None,
    }
}

fn effect(space: u8) -> Effect {
    match space {
        LOCAL | GENERIC => Effect::Private,
        PARAM => Effect::Pure,
        _ => Effect::Other,
    }
}

/// `ld`, `ldu`.
pub(super) fn ld(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let (space, aux, count) = memory_words(f, w)?;
    let ty = w.ty(f)?;
    let operands = w.operands_between(f, 2, 3)?;
    let pieces = f.elements(&operands[0], count, w)?;
    let mut targets = Vec::new();
    for piece in &pieces {
        targets.push(match piece {
            Piece::Register(register) => Some((*register, ty)),
            Piece::Operand(operand) => f.target_any(operand)?,
        });
    }
    if space == PARAM {
        match f.parameter(&operands[1], w)? {
            Parameter::Registers(registers, offset) => {
                return load_registers(f, w, &registers, offset, ty, &targets);
            }
            Parameter::Kernel(offset) => {
                if offset < 0 || offset % i64::from(ty.bytes()) != 0 {
                    return Err(w.mismatch(f));
                }
                return emit_load(
                    f,
                    w,
                    ty,
                    &targets,
                    |wide| parameter_loader(ty, wide),
                    Operand::None,
                    offset,
                    aux,
                    PARAM,
                );
            }
            Parameter::Address(a) => {
                let aux = aux | a.aux;
                return emit_load(
                    f,
                    w,
                    ty,
                    &targets,
                    |wide| loader(PARAM, ty, wide),
                    a.base,
                    a.offset,
                    aux,
                    PARAM,
                );
            }
        }
    }
    let a = f.address(&operands[1], w)?;
    let space = if space == GENERIC { a.space.unwrap_or(GENERIC) } else { space };
    emit_load(f, w, ty, &targets, |wide| loader(space, ty, wide), a.base, a.offset, aux | a.aux, space)
}

#[allow(clippy::too_many_arguments)]
fn emit_load(
    f: &mut Lowering<'_>,
    w: &Words<'_>,
    ty: Type,
    targets: &[Option<(Virtual, Type)>],
    run: impl Fn(bool) -> Option<Execute>,
    base: Operand,
    offset: i64,
    aux: u32,
    space: u8,
) -> Done {
    if ty == Type::B128 {
        let [Some((d, Type::B128))] = targets else { return Err(w.mismatch(f)) };
        let run = match space {
            PARAM => None,
            _ => loader(space, Type::B64, true),
        };
        let mut raw = Raw::new(run.ok_or_else(|| w.unknown(f))?).a(base).aux(aux | 2).effect(effect(space));
        raw.offset = offset;
        raw.list = vec![Operand::DefHalf(*d, 0), Operand::DefHalf(*d, 1)];
        f.emit(raw);
        return Ok(());
    }
    let wides: Vec<bool> = targets.iter().flatten().map(|(_, ty)| Class::of(*ty) == Class::Wide).collect();
    let wide = wides.first().copied().unwrap_or(ty.is_wide());
    let odd =
        targets.iter().flatten().any(|(_, ty)| matches!(Class::of(*ty), Class::Quad | Class::Predicate));
    if odd || wides.iter().any(|other| *other != wide) || ty.is_wide() && !wide {
        return Err(w.mismatch(f));
    }
    let run = run(wide).ok_or_else(|| w.unknown(f))?;
    let mut raw = Raw::new(run).a(base).aux(aux | targets.len() as u32).effect(effect(space));
    raw.offset = offset;
    let operand = |target: &Option<(Virtual, Type)>| target.map_or(Operand::None, |(d, _)| Operand::Def(d));
    match targets {
        [Some((d, _))] => raw.d = Operand::Def(*d),
        // Loads without a result still fault; their value goes nowhere.
        [None] => raw.d = Operand::Def(f.temporary(if wide { Class::Wide } else { Class::Narrow })),
        _ => raw.list = targets.iter().map(operand).collect(),
    }
    f.emit(raw);
    Ok(())
}

/// `ld.param` of what a call returned or a function was given.
fn load_registers(
    f: &mut Lowering<'_>,
    w: &Words<'_>,
    registers: &[Virtual],
    offset: i64,
    ty: Type,
    targets: &[Option<(Virtual, Type)>],
) -> Done {
    let size = ty.bytes();
    for (index, target) in targets.iter().enumerate() {
        let Some((d, declared)) = target else { continue };
        let start = offset.wrapping_add(index as i64 * i64::from(size));
        let pieces = pieces(registers, start, size).ok_or_else(|| w.mismatch(f))?;
        let (has, wants) = (Class::of(*declared), Class::of(ty));
        let narrow = size < 4;
        let value = if has == wants && !narrow { *d } else { f.temporary(wants) };
        if narrow {
            let shift = (start as u32 % 4) * 8;
            let bits = f.temporary(Class::Narrow);
            f.emit_op(
                moves::take_bits(),
                Operand::Def(bits),
                &[Operand::Use(pieces[0])],
                shift | (8 * size) << 8,
            );
            let wider = if ty.is_signed() { Type::S32 } else { Type::U32 };
            let (run, aux) =
                crate::simt::ops::convert::convert(ty, wider, 0).unwrap_or((moves::copy(false), 0));
            let target = if has == Class::Narrow { *d } else { value };
            f.emit_op(run, Operand::Def(target), &[Operand::Use(bits)], aux);
        } else {
            f.gather(pieces, value, ty);
        }
        if has != wants {
            if (has, wants) != (Class::Wide, Class::Narrow) {
                return Err(w.mismatch(f));
            }
            let from = if ty.is_signed() { Type::S32 } else { Type::U32 };
            let (run, aux) =
                crate::simt::ops::convert::convert(from, Type::U64, 0).ok_or_else(|| w.unknown(f))?;
            f.emit_op(run, Operand::Def(*d), &[Operand::Use(value)], aux);
        }
    }
    Ok(())
}

/// The registers that hold `size` bytes from `start` on, if they are aligned.
fn pieces(registers: &[Virtual], start: i64, size: u32) -> Option<&[Virtual]> {
    let start = usize::try_from(start).ok()?;
    let aligned = start.is_multiple_of(size.min(4) as usize);
    let (first, count) = (start / 4, (size as usize).div_ceil(4));
    registers.get(first..first.checked_add(count)?).filter(|_| aligned)
}

/// `st`.
pub(super) fn st(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let (space, aux, count) = memory_words(f, w)?;
    let ty = w.ty(f)?;
    let operands = w.operands_between(f, 2, 3)?;
    let mut sources = Vec::new();
    for piece in f.elements(&operands[1], count, w)? {
        sources.push(match piece {
            Piece::Register(register) => Operand::Use(register),
            Piece::Operand(operand) => f.source(operand, ty)?,
        });
    }
    if space == PARAM {
        return match f.parameter(&operands[0], w)? {
            Parameter::Registers(registers, offset) => {
                store_registers(f, w, &registers, offset, ty, &sources)
            }
            _ => Err(w.mismatch(f)),
        };
    }
    let a = f.address(&operands[0], w)?;
    let space = if space == GENERIC { a.space.unwrap_or(GENERIC) } else { space };
    let quad = ty == Type::B128;
    let element = if quad { Type::B64 } else { ty };
    let run = storer(space, element, element.is_wide()).ok_or_else(|| w.unknown(f))?;
    let mut raw = Raw::new(run).a(a.base).effect(effect(space));
    raw.offset = a.offset;
    match (&sources[..], quad) {
        ([Operand::Use(v)], true) => raw.list = vec![Operand::UseHalf(*v, 0), Operand::UseHalf(*v, 1)],
        (_, true) => return Err(w.mismatch(f)),
        ([b], false) => raw.b = *b,
        (many, false) => raw.list = many.to_vec(),
    }
    raw.aux = aux | a.aux | if quad { 2 } else { count };
    f.emit(raw);
    Ok(())
}

fn store_registers(
    f: &mut Lowering<'_>,
    w: &Words<'_>,
    registers: &[Virtual],
    offset: i64,
    ty: Type,
    sources: &[Operand],
) -> Done {
    let size = ty.bytes();
    for (index, source) in sources.iter().enumerate() {
        let start = offset.wrapping_add(index as i64 * i64::from(size));
        let pieces = pieces(registers, start, size).ok_or_else(|| w.mismatch(f))?;
        if size < 4 {
            let aux = ((start as u32 % 4) * 8) | (8 * size) << 8;
            let piece = pieces[0];
            f.emit_op(moves::put_bits(), Operand::Def(piece), &[Operand::Use(piece), *source], aux);
        } else {
            f.scatter(*source, pieces, ty);
        }
    }
    Ok(())
}
