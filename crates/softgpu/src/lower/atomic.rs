//! `atom` and `red`.

use super::error::Error;
use super::function::Lowering;
use super::memory::{Piece, memory_words};
use super::raw::{Effect, Operand, Raw};
use super::words::Words;
use crate::isa::Type;
use crate::simt::access::POLLS;
use crate::simt::address::GENERIC;
use crate::simt::atomics::{self, Kind};

type Done = Result<(), Error>;

/// `atom`, `red`.
pub(super) fn atom(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let returns = f.text(w.instruction().opcode) == "atom";
    let (space, aux, count) = memory_words(f, w)?;
    const OPERATIONS: [&str; 10] = ["add", "and", "or", "xor", "min", "max", "inc", "dec", "exch", "cas"];
    let operation = w.any(f, &OPERATIONS).ok_or_else(|| w.unknown(f))?;
    let ty = w.ty(f)?;
    let kind = kind(ty).ok_or_else(|| w.unknown(f))?;
    let operands = w.operands_between(f, 2, 5)?;
    let (d, rest) = if returns { (Some(&operands[0]), &operands[1..]) } else { (None, operands) };
    let [at, b, more @ ..] = rest else { return Err(w.mismatch(f)) };
    let a = f.address(at, w)?;
    let space = if space == GENERIC { a.space.unwrap_or(GENERIC) } else { space };
    let run = atomics::operation(operation, kind)
        .and_then(|found| found.pick(space))
        .ok_or_else(|| w.unknown(f))?;
    let mut raw = Raw::new(run).a(a.base).aux(aux | a.aux | count).effect(Effect::Other);
    raw.aux &= !POLLS;
    raw.offset = a.offset;
    if operation == "cas" {
        let [c, ..] = more else { return Err(w.mismatch(f)) };
        raw.c = f.source(c, ty)?;
    }
    if count == 1 {
        raw.b = f.source(b, ty)?;
        raw.d = match d {
            Some(d) => f.target(d, ty)?,
            None => Operand::None,
        };
    } else {
        let mut targets = vec![Operand::None; count as usize];
        if let Some(ptx::Operand::Vector { elements, .. }) = d
            && elements.len() == targets.len()
        {
            for (target, element) in targets.iter_mut().zip(elements) {
                *target = f.target(element, ty)?;
            }
        }
        raw.list = targets;
        for piece in f.elements(b, count, w)? {
            let Piece::Operand(operand) = piece else { return Err(w.mismatch(f)) };
            let source = f.source(operand, ty)?;
            raw.list.push(source);
        }
    }
    f.emit(raw);
    Ok(())
}

fn kind(ty: Type) -> Option<Kind> {
    Some(match ty {
        Type::B16 => Kind::Bits16,
        Type::B32 => Kind::Bits32,
        Type::B64 => Kind::Bits64,
        Type::U32 => Kind::Unsigned32,
        Type::S32 => Kind::Signed32,
        Type::U64 => Kind::Unsigned64,
        Type::S64 => Kind::Signed64,
        Type::F32 => Kind::Float32,
        Type::F64 => Kind::Float64,
        Type::F16 => Kind::Half,
        Type::F16x2 => Kind::HalfPair,
        Type::Bf16 => Kind::Brain,
        Type::Bf16x2 => Kind::BrainPair,
        _ => return None,
    })
}
