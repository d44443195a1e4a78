//! Address spaces, barrier objects, fences, asynchronous copies and hints.

use super::error::Error;
use super::function::Lowering;
use super::memory::is_hint;
use super::raw::{Class, Effect, Operand, Raw};
use super::words::Words;
use crate::isa::{Execute, Type};
use crate::simt::access::{self, NARROW};
use crate::simt::address::{GLOBAL, LOCAL, PARAM, PARAM_OFFSET, SHARED};
use crate::simt::control::nothing;
use crate::simt::mbarrier;
use crate::simt::ops::{integer, moves};
use crate::simt::special::{self, Special};

type Done = Result<(), Error>;

/// `cvta`: between generic addresses and those of a space.
pub(super) fn cvta(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let to_space = w.take("to");
    let words =
        ["global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"];
    let space = w.any(f, &words).ok_or_else(|| w.unknown(f))?;
    let ty = w.ty(f)?;
    let [d, a] = w.operands(f)?;
    if ty != Type::U64 {
        return Err(w.unknown(f));
    }
    let a = match a {
        ptx::Operand::Name(span) => f.source(&ptx::Operand::Name(*span), ty)?,
        other => f.source(other, ty)?,
    };
    let Operand::Def(d) = f.target(d, ty)? else { return Err(w.mismatch(f)) };
    let window = match space {
        "global" | "const" => {
            f.copy(ty, d, a);
            return Ok(());
        }
        "local" => Special::LocalWindow,
        _ => Special::SharedWindow,
    };
    let base = f.temporary(Class::Wide);
    f.emit(Raw::new(special::read).aux(window as u32).d(Operand::Def(base)));
    let mut value = a;
    if space.starts_with("param") {
        let distance = if to_space { 0u64.wrapping_sub(PARAM_OFFSET) } else { PARAM_OFFSET };
        let distance = f.constant(distance, Type::U64);
        let moved = f.temporary(Class::Wide);
        let add = integer::add(Type::U64, false).ok_or_else(|| w.unknown(f))?;
        f.emit_op(add, Operand::Def(moved), &[value, distance], 0);
        value = Operand::Use(moved);
    }
    let run = if to_space { integer::subtract(Type::U64, false) } else { integer::add(Type::U64, false) };
    f.emit_op(run.ok_or_else(|| w.unknown(f))?, Operand::Def(d), &[value, Operand::Use(base)], 0);
    Ok(())
}

/// `isspacep`.
pub(super) fn isspacep(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let words =
        ["global", "const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry"];
    let space = match w.any(f, &words) {
        Some("global") => GLOBAL,
        // Constants live in global memory here, and no address is in both.
        Some("const") => u8::MAX,
        Some("local") => LOCAL,
        Some("param" | "param::entry") => PARAM,
        Some(_) => SHARED,
        None => return Err(w.unknown(f)),
    };
    let [d, a] = w.operands(f)?;
    let d = f.target(d, Type::Pred)?;
    let a = f.source(a, Type::U64)?;
    f.emit(Raw::new(access::is_space).d(d).a(a).aux(u32::from(space)));
    Ok(())
}

/// `mapa`, `getctarank` with clusters of one block.
pub(super) fn mapa(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let rank = f.text(w.instruction().opcode) == "getctarank";
    w.any(f, &["shared::cluster"]);
    let ty = w.ty(f)?;
    match rank {
        true => {
            let [d, _] = w.operands(f)?;
            let d = f.target(d, Type::U32)?;
            let zero = f.constant32(0);
            f.emit_op(moves::copy(false), d, &[zero], 0);
        }
        false => {
            let [d, a, _] = w.operands(f)?;
            let Operand::Def(d) = f.target(d, ty)? else { return Err(w.mismatch(f)) };
            let a = f.source(a, ty)?;
            f.copy(ty, d, a);
        }
    }
    Ok(())
}

/// `createpolicy`: cache policies are numbers that nobody reads.
pub(super) fn createpolicy(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    w.drop_all(|_| true);
    let operands = w.operands_between(f, 1, 4)?;
    let d = f.target(&operands[0], Type::B64)?;
    let zero = f.constant(0, Type::B64);
    f.emit_op(moves::copy(true), d, &[zero], 0);
    Ok(())
}

/// `mbarrier`: objects in shared memory, without transactions.
pub(super) fn mbarrier(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    const OPERATIONS: [&str; 7] =
        ["init", "inval", "arrive", "arrive_drop", "test_wait", "try_wait", "pending_count"];
    let operation = w.any(f, &OPERATIONS).ok_or_else(|| w.unknown(f))?;
    w.take("noComplete");
    let parity = w.take("parity");
    let waits = matches!(operation, "test_wait" | "try_wait");
    w.drop_all(|word| matches!(word, "shared" | "shared::cta" | "cta" | "release" | "relaxed" | "acquire"));
    w.drop_all(|word| waits && word == "cluster");
    let ty = w.ty(f)?;
    if ty != Type::B64 || (parity && !waits) {
        return Err(w.unknown(f));
    }
    let aux = u32::from(parity) * mbarrier::PARITY;
    let least = if matches!(operation, "inval") { 1 } else { 2 };
    let operands = match operation {
        "arrive" | "arrive_drop" => w.operands_between(f, 1, 3)?,
        _ => w.operands_between(f, least, 4)?,
    };
    if operation == "pending_count" {
        let (d, state) = (f.target(&operands[0], Type::U32)?, f.source(&operands[1], ty)?);
        f.emit(Raw::new(mbarrier::pending_count).d(d).a(state));
        return Ok(());
    }
    let at = operands.iter().position(|operand| matches!(operand, ptx::Operand::Address { .. }));
    let at = at.ok_or_else(|| w.mismatch(f))?;
    let address = f.address(&operands[at], w)?;
    let run: Execute = match operation {
        "init" => mbarrier::init,
        "inval" => nothing,
        "arrive" => mbarrier::arrive,
        "arrive_drop" => mbarrier::arrive_and_drop,
        _ => mbarrier::test_wait,
    };
    let mut raw = Raw::new(run).a(address.base).aux(aux | address.aux).effect(Effect::Other);
    raw.offset = address.offset;
    raw.b = match (operands.get(at + 1), waits && !parity) {
        (Some(operand), true) => f.source(operand, Type::B64)?,
        (Some(operand), false) => f.source(operand, Type::U32)?,
        (None, _) => f.constant32(1),
    };
    if at == 1 {
        raw.d = f.target(&operands[0], if waits { Type::Pred } else { Type::B64 })?;
    }
    f.emit(raw);
    Ok(())
}

/// Hints: `prefetch`, `prefetchu`, `applypriority`, `discard`.
pub(super) fn hint(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    w.drop_all(|_| true);
    for operand in w.operands_between(f, 0, 4)? {
        if let ptx::Operand::Address { .. } = operand {
            f.address(operand, w)?;
        }
    }
    f.emit(Raw::new(nothing));
    Ok(())
}

/// `fence`, `membar`.
pub(super) fn fence(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let words = [
        "sc",
        "acq_rel",
        "acquire",
        "release",
        "cta",
        "cluster",
        "gpu",
        "sys",
        "gl",
        "mbarrier_init",
        "proxy",
        "alias",
        "async",
        "async.global",
        "generic",
    ];
    w.drop_all(|word| {
        words.contains(&word) || word.starts_with("async") || word.starts_with("sync_restrict")
    });
    w.operands::<0>(f)?;
    f.emit(Raw::new(access::memory_fence).effect(Effect::Other));
    Ok(())
}

/// `cp.async` and its groups; the bulk copies are another machine.
pub(super) fn cp(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    if !w.take("async") || w.has("bulk") || w.has("mbarrier") {
        return Err(w.unknown(f));
    }
    if w.take("commit_group") || w.take("wait_group") || w.take("wait_all") {
        w.operands_between(f, 0, 1)?;
        f.emit(Raw::new(nothing));
        return Ok(());
    }
    w.drop_all(|word| {
        is_hint(word) || matches!(word, "shared" | "shared::cta" | "shared::cluster" | "global")
    });
    let operands = w.operands_between(f, 3, 5)?;
    let (to, from) = (f.address(&operands[0], w)?, f.address(&operands[1], w)?);
    let size = match &operands[2] {
        ptx::Operand::Integer { value: 4 | 8 | 16, .. } => operands[2].clone(),
        _ => return Err(w.mismatch(f)),
    };
    let ptx::Operand::Integer { value: size, .. } = size else { return Err(w.mismatch(f)) };
    let wide = match (from.base, from.aux & NARROW) {
        (base, 0) => base,
        _ => return Err(w.mismatch(f)),
    };
    let mut raw =
        Raw::new(access::copy_async).a(to.base).b(wide).aux(size as u32 | to.aux).effect(Effect::Other);
    raw.offset = to.offset;
    raw.c = Operand::Bits(from.offset as i32 as u32);
    raw.e = match operands.get(3) {
        Some(bytes) => f.source(bytes, Type::U32)?,
        None => Operand::None,
    };
    f.emit(raw);
    Ok(())
}
