//! `mov`, `cvt` and the like: values from one register, or several, to another.

use ptx::Span;

use super::error::Error;
use super::function::Lowering;
use super::raw::{Class, Effect, Operand, Raw, Virtual};
use super::words::Words;
use crate::isa::Type;
use crate::numeric::Rounding;
use crate::simt::ops::convert::{self, INTEGRAL, SATFINITE};
use crate::simt::ops::{compare, float, moves};

impl Lowering<'_> {
    /// A copy of a value of `ty`.
    pub(super) fn copy(&mut self, ty: Type, d: Virtual, a: Operand) {
        match (Class::of(ty), a) {
            (Class::Quad, Operand::Use(a)) => {
                for half in 0..2 {
                    self.emit_op(
                        moves::copy(true),
                        Operand::DefHalf(d, half),
                        &[Operand::UseHalf(a, half)],
                        0,
                    );
                }
            }
            (class, a) => self.emit_op(moves::copy(class == Class::Wide), Operand::Def(d), &[a], 0),
        }
    }

    /// One value of the pieces a parameter is kept in.
    pub(super) fn gather(&mut self, pieces: &[Virtual], d: Virtual, ty: Type) {
        let piece = |index: usize| Operand::Use(pieces[index]);
        match Class::of(ty) {
            Class::Wide => self.emit_op(moves::join_words(), Operand::Def(d), &[piece(0), piece(1)], 0),
            Class::Quad => {
                for half in 0..2 {
                    let words = [piece(2 * half), piece(2 * half + 1)];
                    self.emit_op(moves::join_words(), Operand::DefHalf(d, half as u32), &words, 0);
                }
            }
            _ => self.emit_op(moves::copy(false), Operand::Def(d), &[piece(0)], 0),
        }
    }

    /// The pieces of one value.
    pub(super) fn scatter(&mut self, a: Operand, pieces: &[Virtual], ty: Type) {
        let piece = |index: usize| Operand::Def(pieces[index]);
        let halves = |half: u32| match a {
            Operand::Use(v) => Operand::UseHalf(v, half),
            other => other,
        };
        match Class::of(ty) {
            Class::Wide => {
                self.emit_op(moves::truncate(), piece(0), &[a], 0);
                self.emit_op(moves::high_word(), piece(1), &[a], 0);
            }
            Class::Quad => {
                for half in 0..2 {
                    self.emit_op(moves::truncate(), piece(2 * half), &[halves(half as u32)], 0);
                    self.emit_op(moves::high_word(), piece(2 * half + 1), &[halves(half as u32)], 0);
                }
            }
            _ => self.emit_op(moves::copy(false), piece(0), &[a], 0),
        }
    }

    /// `{a, b}` into one register of `ty`, the first lowest.
    pub(super) fn pack(
        &mut self,
        span: Span,
        elements: &[ptx::Operand],
        ty: Type,
        d: Virtual,
    ) -> Result<(), Error> {
        let element =
            element_type(ty, elements.len()).ok_or_else(|| self.bad_vector(span, ty, elements.len()))?;
        let mut sources = Vec::new();
        for operand in elements {
            sources.push(self.source(operand, element)?);
        }
        match (ty.bits(), element.bits()) {
            (128, 64) => {
                for (half, source) in sources.iter().enumerate() {
                    self.emit_op(moves::copy(true), Operand::DefHalf(d, half as u32), &[*source], 0);
                }
            }
            (128, _) => {
                for (half, pair) in sources.chunks(2).enumerate() {
                    self.emit_op(moves::join_words(), Operand::DefHalf(d, half as u32), pair, 0);
                }
            }
            (64, 32) => self.emit_op(moves::join_words(), Operand::Def(d), &sources, 0),
            (64, _) => {
                let words: Vec<Operand> =
                    sources.chunks(sources.len() / 2).map(|part| self.pack32(part)).collect();
                self.emit_op(moves::join_words(), Operand::Def(d), &words, 0);
            }
            _ => {
                let word = self.pack32(&sources);
                self.emit_op(moves::copy(false), Operand::Def(d), &[word], 0);
            }
        }
        Ok(())
    }

    /// Bytes or halves into a 32-bit or 16-bit register.
    fn pack32(&mut self, parts: &[Operand]) -> Operand {
        let bits = if parts.len() == 2 { 16 } else { 8 };
        let zero = self.constant32(0);
        parts.iter().enumerate().fold(zero, |so_far, (index, part)| {
            let next = self.temporary(Class::Narrow);
            let aux = (bits * index as u32) | bits << 8;
            self.emit_op(moves::put_bits(), Operand::Def(next), &[so_far, *part], aux);
            Operand::Use(next)
        })
    }

    /// One register of `ty` into `{a, b}`.
    fn unpack(&mut self, span: Span, elements: &[ptx::Operand], ty: Type, a: Operand) -> Result<(), Error> {
        let element =
            element_type(ty, elements.len()).ok_or_else(|| self.bad_vector(span, ty, elements.len()))?;
        // A target may be the source itself, so the source is read from a copy.
        let held = self.temporary(Class::of(ty));
        self.copy(ty, held, a);
        for (index, operand) in elements.iter().enumerate() {
            let d = self.target(operand, element)?;
            if d == Operand::None {
                continue;
            }
            let whole = Operand::Use(held);
            match (ty.bits(), element.bits()) {
                (128, 64) => self.emit_op(moves::copy(true), d, &[Operand::UseHalf(held, index as u32)], 0),
                (128, _) => {
                    let word = if index % 2 == 0 { moves::truncate() } else { moves::high_word() };
                    self.emit_op(word, d, &[Operand::UseHalf(held, index as u32 / 2)], 0);
                }
                (64, 32) => {
                    let word = if index == 0 { moves::truncate() } else { moves::high_word() };
                    self.emit_op(word, d, &[whole], 0);
                }
                (64, bits) => {
                    let per_word = 32 / bits as usize;
                    let word = self.temporary(Class::Narrow);
                    let half = if index < per_word { moves::truncate() } else { moves::high_word() };
                    self.emit_op(half, Operand::Def(word), &[whole], 0);
                    let aux = ((index % per_word) as u32 * bits) | bits << 8;
                    self.emit_op(moves::take_bits(), d, &[Operand::Use(word)], aux);
                }
                (_, bits) => self.emit_op(moves::take_bits(), d, &[whole], (index as u32 * bits) | bits << 8),
            }
        }
        Ok(())
    }

    fn bad_vector(&self, span: Span, ty: Type, count: usize) -> Error {
        self.invalid(span, format!("{count} elements do not make {} bits", ty.bits()))
    }
}

fn element_type(ty: Type, count: usize) -> Option<Type> {
    Some(match (ty.bits(), count) {
        (128, 2) => Type::B64,
        (128, 4) | (64, 2) => Type::B32,
        (64, 4) | (32, 2) => Type::B16,
        (64, 8) | (32, 4) | (16, 2) => Type::B8,
        _ => return None,
    })
}

/// `mov`.
pub(super) fn mov(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Result<(), Error> {
    w.any(f, &["relaxed", "volatile"]);
    let ty = w.ty(f)?;
    let [d, a] = w.operands(f)?;
    if ty == Type::Pred {
        let d = f.target(d, ty)?;
        let a = f.predicate(a)?;
        f.emit(Raw::new(compare::predicate_logic).d(d).a(a).b(Operand::True));
        return Ok(());
    }
    match (d, a) {
        (ptx::Operand::Vector { span, elements }, ptx::Operand::Name(name)) if f.is_vector(*name) => {
            let sources = f.vector_of(*name);
            if sources.len() != elements.len() {
                return Err(f.invalid(*span, "vectors of different length"));
            }
            for (element, source) in elements.iter().zip(sources) {
                if let Operand::Def(d) = f.target(element, ty)? {
                    f.copy(ty, d, Operand::Use(source));
                }
            }
            Ok(())
        }
        (ptx::Operand::Vector { span, elements }, a) => {
            let a = f.source(a, ty)?;
            f.unpack(*span, elements, ty, a)
        }
        (ptx::Operand::Name(name), ptx::Operand::Vector { span, elements }) if f.is_vector(*name) => {
            let targets = f.vector_of(*name);
            if targets.len() != elements.len() {
                return Err(f.invalid(*span, "vectors of different length"));
            }
            for (element, d) in elements.iter().zip(targets) {
                let a = f.source(element, ty)?;
                f.copy(ty, d, a);
            }
            Ok(())
        }
        (ptx::Operand::Name(_), a) => {
            let Some((d, declared)) = f.target_any(d)? else { return Ok(()) };
            if let ptx::Operand::Vector { span, elements } = a {
                return f.pack(*span, elements, ty, d);
            }
            let a = f.source(a, ty)?;
            if Class::of(declared) != Class::of(ty) {
                return Err(w.mismatch(f));
            }
            f.copy(ty, d, a);
            Ok(())
        }
        _ => Err(w.mismatch(f)),
    }
}

/// `cvt`.
pub(super) fn cvt(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Result<(), Error> {
    if w.take("pack") {
        return cvt_pack(f, w);
    }
    let integral = w.any(f, &["rni", "rzi", "rmi", "rpi"]);
    let rounding = w.any(f, &["rn", "rz", "rm", "rp", "rna"]);
    let mut mode = 0;
    mode |= if w.take("ftz") { float::FTZ } else { 0 };
    mode |= if w.take("satfinite") { SATFINITE } else { 0 };
    mode |= if w.take("sat") { float::SAT } else { 0 };
    mode |= if w.take("relu") { float::RELU } else { 0 };
    let to = w.ty(f)?;
    let from = w.ty(f)?;
    let chosen = match integral.or(rounding) {
        Some("rz" | "rzi") => Rounding::Zero,
        Some("rm" | "rmi") => Rounding::Down,
        Some("rp" | "rpi") => Rounding::Up,
        Some("rna") => Rounding::NearestAway,
        Some(_) => Rounding::Nearest,
        // What converts without a word about rounding is exact, or truncates.
        None if from.is_float() && to.is_integer() => Rounding::Zero,
        None => Rounding::Nearest,
    };
    mode |= float::rounding_code(chosen);
    mode |= if integral.is_some() && to == from { INTEGRAL } else { 0 };
    if let (Type::F16x2 | Type::Bf16x2 | Type::E4m3x2 | Type::E5m2x2, Type::F32) = (to, from) {
        let [d, a, b] = w.operands(f)?;
        let d = f.target(d, to)?;
        let sources = [f.source(a, from)?, f.source(b, from)?];
        let run = convert::pack_pair(to).ok_or_else(|| w.unknown(f))?;
        f.emit_op(run, d, &sources, mode);
        return Ok(());
    }
    let [d, a] = w.operands(f)?;
    let a = f.source(a, from)?;
    let (run, aux) = match convert::narrow(from, to) {
        Some(run) => (run, mode),
        None => convert::convert(from, to, mode).ok_or_else(|| w.unknown(f))?,
    };
    let Some((d, declared)) = f.target_any(d)? else { return Ok(()) };
    match (Class::of(declared), Class::of(to)) {
        (has, gives) if has == gives => f.emit_op(run, Operand::Def(d), &[a], aux),
        (Class::Wide, Class::Narrow) => {
            let part = f.temporary(Class::Narrow);
            f.emit_op(run, Operand::Def(part), &[a], aux);
            let wider = if to.is_signed() { Type::S32 } else { Type::U32 };
            let (extend, aux) = convert::convert(wider, Type::U64, 0).ok_or_else(|| w.unknown(f))?;
            f.emit_op(extend, Operand::Def(d), &[Operand::Use(part)], aux);
        }
        _ => return Err(w.mismatch(f)),
    }
    Ok(())
}

fn cvt_pack(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Result<(), Error> {
    if !w.take("sat") {
        return Err(w.unknown(f));
    }
    let to = w.ty(f)?;
    let from = w.ty(f)?;
    let third = w.optional_ty();
    if from != Type::S32 || third.is_some_and(|ty| ty != Type::B32) {
        return Err(w.unknown(f));
    }
    let aux = convert::pack_aux(to).filter(|_| to.bits() <= 16).ok_or_else(|| w.unknown(f))?;
    let operands = w.operands_between(f, 3, 4)?;
    let d = f.target(&operands[0], Type::B32)?;
    let mut raw = Raw::new(convert::pack_saturated).d(d).aux(aux).effect(Effect::Pure);
    raw = raw.a(f.source(&operands[1], from)?).b(f.source(&operands[2], from)?);
    if let Some(c) = operands.get(3) {
        raw = raw.c(f.source(c, Type::B32)?);
    }
    f.emit(raw);
    Ok(())
}

/// `selp`.
pub(super) fn selp(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Result<(), Error> {
    let ty = w.ty(f)?;
    let [d, a, b, c] = w.operands(f)?;
    let d = f.target(d, ty)?;
    let sources = [f.source(a, ty)?, f.source(b, ty)?, f.predicate(c)?];
    f.emit_op(moves::select(ty.is_wide()), d, &sources, 0);
    Ok(())
}

/// `slct`.
pub(super) fn slct(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Result<(), Error> {
    let ftz = w.take("ftz");
    let ty = w.ty(f)?;
    let by = w.ty(f)?;
    let [d, a, b, c] = w.operands(f)?;
    let d = f.target(d, ty)?;
    let sources = [f.source(a, ty)?, f.source(b, ty)?, f.source(c, by)?];
    let run = moves::select_by_sign(ty.is_wide(), by).ok_or_else(|| w.unknown(f))?;
    f.emit_op(run, d, &sources, if ftz { float::FTZ } else { 0 });
    Ok(())
}
