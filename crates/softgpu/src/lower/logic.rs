//! Logic, shifts, bit fields and comparisons.

use super::arithmetic::plain;
use super::error::Error;
use super::function::Lowering;
use super::raw::{Class, Operand, Raw};
use super::words::Words;
use crate::isa::Type;
use crate::numeric::Comparison;
use crate::simt::ops::{bits, compare, moves};

type Done = Result<(), Error>;

/// `and`, `or`, `xor`, `not`, of bits or of predicates.
pub(super) fn logic(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let name = f.text(w.instruction().opcode);
    let ty = w.ty(f)?;
    if ty == Type::Pred {
        return predicates(f, w, name);
    }
    if ty.is_float() || ty.is_signed() && name != "not" && name != "cnot" {
        return Err(w.unknown(f));
    }
    let run = match name {
        "and" => bits::and(ty),
        "or" => bits::or(ty),
        "xor" => bits::xor(ty),
        "cnot" => bits::cnot(ty),
        _ => bits::not(ty),
    };
    match name {
        "not" | "cnot" => plain(f, w, run, ty, &[ty], 0),
        _ => plain(f, w, run, ty, &[ty, ty], 0),
    }
}

fn predicates(f: &mut Lowering<'_>, w: &Words<'_>, name: &str) -> Done {
    let aux = match name {
        "and" => compare::AND,
        "or" => compare::OR,
        "xor" => compare::XOR,
        "not" => 0,
        _ => return Err(w.unknown(f)),
    };
    if name == "not" {
        let [d, a] = w.operands(f)?;
        let d = f.target(d, Type::Pred)?;
        let a = match f.predicate(a)? {
            Operand::Use(register) => Operand::UseNot(register),
            Operand::UseNot(register) => Operand::Use(register),
            other => other,
        };
        f.emit(Raw::new(compare::predicate_logic).d(d).a(a).b(Operand::True));
        return Ok(());
    }
    let [d, a, b] = w.operands(f)?;
    let d = f.target(d, Type::Pred)?;
    let sources = [f.predicate(a)?, f.predicate(b)?];
    f.emit_op(compare::predicate_logic, d, &sources, aux);
    Ok(())
}

/// `shl`, `shr`. The amount has 32 bits whatever is shifted.
pub(super) fn shift(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let left = f.text(w.instruction().opcode) == "shl";
    let ty = w.ty(f)?;
    let run = if left { bits::shift_left(ty) } else { bits::shift_right(ty) };
    let run = run.filter(|_| !ty.is_float());
    plain(f, w, run, ty, &[ty, Type::U32], 0)
}

/// `shf`.
pub(super) fn funnel(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let left = w.any(f, &["l", "r"]) == Some("l");
    let clamp = w.any(f, &["clamp", "wrap"]) == Some("clamp");
    let ty = w.ty(f)?;
    let run = Some(bits::funnel(left, clamp)).filter(|_| ty == Type::B32);
    plain(f, w, run, ty, &[ty, ty, Type::U32], 0)
}

/// `lop3`, also with a boolean result.
pub(super) fn lop3(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let boolean = w.any(f, &["or", "and"]);
    let ty = w.ty(f)?;
    let operands = w.operands_between(f, 5, 6)?;
    let ptx::Operand::Integer { value: table, .. } = &operands[4] else { return Err(w.mismatch(f)) };
    let sources = [f.source(&operands[1], ty)?, f.source(&operands[2], ty)?, f.source(&operands[3], ty)?];
    let aux = *table as u32 & 0xff;
    match (&operands[0], boolean) {
        (ptx::Operand::Pair { first, second, .. }, Some(boolean)) => {
            let value = match f.text(*first) {
                "_" => Operand::Def(f.temporary(Class::Narrow)),
                _ => f.target(&ptx::Operand::Name(*first), ty)?,
            };
            f.emit_op(bits::lop3(), value, &sources, aux);
            let Operand::Def(value) = value else { return Err(w.mismatch(f)) };
            let q = operands.get(5).ok_or_else(|| w.mismatch(f))?;
            let q = f.predicate(q)?;
            let p = f.target(&ptx::Operand::Name(*second), Type::Pred)?;
            let zero = f.constant32(0);
            let run = compare::comparison(Comparison::NotEqual, Type::U32).ok_or_else(|| w.unknown(f))?;
            let aux = if boolean == "or" { compare::OR } else { compare::AND };
            f.emit_op(run, p, &[Operand::Use(value), zero, q], aux);
            Ok(())
        }
        (d, None) if operands.len() == 5 => {
            let d = f.target(d, ty)?;
            f.emit_op(bits::lop3(), d, &sources, aux);
            Ok(())
        }
        _ => Err(w.mismatch(f)),
    }
}

/// `popc`, `clz`, `brev`: of one operand. Counts have 32 bits.
pub(super) fn count(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let name = f.text(w.instruction().opcode);
    let ty = w.ty(f)?;
    let (run, result) = match name {
        "popc" => (bits::population(ty), Type::U32),
        "clz" => (bits::leading_zeros(ty), Type::U32),
        _ => (bits::reverse(ty), ty),
    };
    plain(f, w, run, result, &[ty], 0)
}

pub(super) fn bfind(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let amount = w.take("shiftamt");
    let ty = w.ty(f)?;
    plain(f, w, bits::find_top(ty, amount), Type::U32, &[ty], 0)
}

pub(super) fn fns(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let ty = w.ty(f)?;
    let run = Some(bits::find_nth_set()).filter(|_| ty == Type::B32);
    plain(f, w, run, ty, &[ty, Type::B32, Type::S32], 0)
}

pub(super) fn bfe(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let ty = w.ty(f)?;
    plain(f, w, bits::extract(ty), ty, &[ty, Type::U32, Type::U32], 0)
}

pub(super) fn bfi(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let ty = w.ty(f)?;
    plain(f, w, bits::insert(ty), ty, &[ty, ty, Type::U32, Type::U32], 0)
}

pub(super) fn bmsk(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let clamp = w.any(f, &["clamp", "wrap"]) == Some("clamp");
    let ty = w.ty(f)?;
    plain(f, w, Some(bits::mask(clamp)).filter(|_| ty == Type::B32), ty, &[Type::U32, Type::U32], 0)
}

pub(super) fn szext(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let clamp = w.any(f, &["clamp", "wrap"]) == Some("clamp");
    let ty = w.ty(f)?;
    plain(f, w, bits::extend(ty, clamp), ty, &[ty, Type::U32], 0)
}

pub(super) fn prmt(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let ty = w.ty(f)?;
    let mode = w.any(f, &["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]).unwrap_or("");
    let run = bits::permute(mode).filter(|_| ty == Type::B32);
    plain(f, w, run, ty, &[ty, ty, Type::U32], 0)
}

/// The words that `set` and `setp` share: comparison, combination, flushing.
fn comparison_words(f: &Lowering<'_>, w: &mut Words<'_>) -> Result<(Comparison, u32), Error> {
    const WORDS: [&str; 18] = [
        "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
        "num", "nan",
    ];
    let word = w.any(f, &WORDS).ok_or_else(|| w.unknown(f))?;
    let operator = compare::named(word).ok_or_else(|| w.unknown(f))?;
    let mut aux = match w.any(f, &["and", "or", "xor"]) {
        Some("and") => compare::AND,
        Some("or") => compare::OR,
        Some(_) => compare::XOR,
        None => 0,
    };
    aux |= if w.take("ftz") { compare::FTZ } else { 0 };
    Ok((operator, aux))
}

/// `setp`.
pub(super) fn setp(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let (operator, aux) = comparison_words(f, w)?;
    let ty = w.ty(f)?;
    let combined = aux & compare::XOR != 0;
    let operands = w.operands_between(f, 3 + usize::from(combined), 3 + usize::from(combined))?;
    let c = if combined { f.predicate(&operands[3])? } else { Operand::None };
    let (first, second) = match &operands[0] {
        ptx::Operand::Pair { first, second, .. } => (*first, Some(*second)),
        ptx::Operand::Name(span) => (*span, None),
        _ => return Err(w.mismatch(f)),
    };
    let first = f.target(&ptx::Operand::Name(first), Type::Pred)?;
    let second = match second {
        Some(span) => f.target(&ptx::Operand::Name(span), Type::Pred)?,
        None => Operand::None,
    };
    if let Type::F16x2 | Type::Bf16x2 = ty {
        // Each half has a result of its own.
        let half = half_of(ty);
        let run = compare::comparison(operator, half).ok_or_else(|| w.unknown(f))?;
        let (low, high) = halves(f, &operands[1], &operands[2], ty)?;
        f.emit(Raw::new(run).d(first).a(low.0).b(low.1).c(c).aux(aux));
        f.emit(Raw::new(run).d(second).a(high.0).b(high.1).c(c).aux(aux));
        return Ok(());
    }
    let run = compare::comparison(operator, ty).ok_or_else(|| w.unknown(f))?;
    let sources = [f.source(&operands[1], ty)?, f.source(&operands[2], ty)?];
    f.emit(Raw::new(run).d(first).a(sources[0]).b(sources[1]).c(c).e(second).aux(aux));
    Ok(())
}

fn half_of(ty: Type) -> Type {
    if ty == Type::F16x2 { Type::F16 } else { Type::Bf16 }
}

type Pair = (Operand, Operand);

/// Lower and upper halves of two packed operands.
fn halves(f: &mut Lowering<'_>, a: &ptx::Operand, b: &ptx::Operand, ty: Type) -> Result<(Pair, Pair), Error> {
    let (a, b) = (f.source(a, ty)?, f.source(b, ty)?);
    let mut upper = |of: Operand| {
        let register = f.temporary(Class::Narrow);
        f.emit_op(moves::take_bits(), Operand::Def(register), &[of], 16 | 16 << 8);
        Operand::Use(register)
    };
    Ok(((a, b), (upper(a), upper(b))))
}

/// `set`: as `setp`, to a register.
pub(super) fn set(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let (operator, mut aux) = comparison_words(f, w)?;
    let to = w.ty(f)?;
    let ty = w.ty(f)?;
    aux |= match to {
        Type::U32 | Type::S32 | Type::U16 | Type::S16 => compare::TO_ONES,
        Type::F32 => compare::TO_F32,
        Type::F16 | Type::F16x2 => compare::TO_F16,
        Type::Bf16 | Type::Bf16x2 => compare::TO_BF16,
        _ => return Err(w.unknown(f)),
    };
    let combined = aux & compare::XOR != 0;
    let operands = w.operands_between(f, 3 + usize::from(combined), 3 + usize::from(combined))?;
    let c = if combined { f.predicate(&operands[3])? } else { Operand::None };
    let d = f.target(&operands[0], to)?;
    if let Type::F16x2 | Type::Bf16x2 = ty {
        let run = compare::comparison(operator, half_of(ty)).ok_or_else(|| w.unknown(f))?;
        let (low, high) = halves(f, &operands[1], &operands[2], ty)?;
        let (first, second) = (f.temporary(Class::Narrow), f.temporary(Class::Narrow));
        f.emit(Raw::new(run).d(Operand::Def(first)).a(low.0).b(low.1).c(c).aux(aux));
        f.emit(Raw::new(run).d(Operand::Def(second)).a(high.0).b(high.1).c(c).aux(aux));
        f.emit_op(moves::put_bits(), d, &[Operand::Use(first), Operand::Use(second)], 16 | 16 << 8);
        return Ok(());
    }
    let run = compare::comparison(operator, ty).ok_or_else(|| w.unknown(f))?;
    let sources = [f.source(&operands[1], ty)?, f.source(&operands[2], ty)?];
    f.emit(Raw::new(run).d(d).a(sources[0]).b(sources[1]).c(c).aux(aux));
    Ok(())
}
