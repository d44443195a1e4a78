//! Integer and floating-point arithmetic.

use super::error::Error;
use super::function::Lowering;
use super::raw::{Effect, Operand, Raw};
use super::words::Words;
use crate::isa::{Execute, Type};
use crate::numeric::Rounding;
use crate::simt::ops::{carry, float, half, integer, video};

type Done = Result<(), Error>;

/// Sources of one type, a result of another.
pub(super) fn plain(
    f: &mut Lowering<'_>,
    w: &Words<'_>,
    run: Option<Execute>,
    result: Type,
    sources: &[Type],
    aux: u32,
) -> Done {
    let mut run = run.ok_or_else(|| w.unknown(f))?;
    if result == Type::F64 && aux == 0 {
        run = float::native_double(f.text(w.instruction().opcode)).unwrap_or(run);
    }
    let operands = w.operands_between(f, sources.len() + 1, sources.len() + 1)?;
    let mut values = Vec::new();
    for (operand, ty) in operands[1..].iter().zip(sources) {
        values.push(f.source(operand, *ty)?);
    }
    let d = f.target(&operands[0], result)?;
    if d != Operand::None {
        f.emit_op(run, d, &values, aux);
    }
    Ok(())
}

/// The modifiers of floating-point arithmetic as a mode.
fn mode(f: &Lowering<'_>, w: &mut Words<'_>) -> u32 {
    let rounding = match w.any(f, &["rn", "rz", "rm", "rp"]) {
        Some("rz") => Rounding::Zero,
        Some("rm") => Rounding::Down,
        Some("rp") => Rounding::Up,
        _ => Rounding::Nearest,
    };
    let mut mode = float::rounding_code(rounding);
    for (word, flag) in [("ftz", float::FTZ), ("sat", float::SAT), ("relu", float::RELU), ("NaN", float::NAN)]
    {
        mode |= if w.take(word) { flag } else { 0 };
    }
    if w.has("xorsign") && w.has("abs") {
        w.take("xorsign");
        w.take("abs");
        mode |= float::XORSIGN;
    }
    mode
}

fn is_float(ty: Type) -> bool {
    ty.is_float()
}

/// `add`, `sub`.
pub(super) fn add(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    add_or_subtract(f, w, false)
}

pub(super) fn sub(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    add_or_subtract(f, w, true)
}

fn add_or_subtract(f: &mut Lowering<'_>, w: &mut Words<'_>, subtract: bool) -> Done {
    if w.take("cc") {
        return with_carry(f, w, carry::CARRY_OUT | if subtract { carry::SUBTRACT } else { 0 });
    }
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let run = match (is_float(ty), subtract) {
        (true, false) => float::binary::<float::Add>(ty, mode),
        (true, true) => float::binary::<float::Subtract>(ty, mode),
        (false, _) if mode & !float::SAT != 0 => None,
        (false, false) => integer::add(ty, mode == float::SAT),
        (false, true) => integer::subtract(ty, mode == float::SAT),
    };
    plain(f, w, run, ty, &[ty, ty], mode)
}

/// `addc`, `subc`, with or without `.cc`.
pub(super) fn addc(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let out = if w.take("cc") { carry::CARRY_OUT } else { 0 };
    with_carry(f, w, carry::CARRY_IN | out)
}

pub(super) fn subc(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let out = if w.take("cc") { carry::CARRY_OUT } else { 0 };
    with_carry(f, w, carry::CARRY_IN | carry::SUBTRACT | out)
}

fn with_carry(f: &mut Lowering<'_>, w: &mut Words<'_>, aux: u32) -> Done {
    let ty = w.ty(f)?;
    let run = carry::with_carry(ty.bits()).filter(|_| ty.is_integer()).ok_or_else(|| w.unknown(f))?;
    let [d, a, b] = w.operands(f)?;
    let sources = [f.source(a, ty)?, f.source(b, ty)?];
    let d = f.target(d, ty)?;
    // The carry is state that a loop could take along, so such a loop is never called idle.
    let raw = Raw::new(run).d(d).a(sources[0]).b(sources[1]).aux(aux).effect(Effect::Other);
    f.emit(raw);
    Ok(())
}

/// `mul`.
pub(super) fn mul(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let part = w.any(f, &["lo", "hi", "wide"]);
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let (run, result) = match part {
        None if is_float(ty) => (float::binary::<float::Multiply>(ty, mode), ty),
        Some(_) if mode != 0 => (None, ty),
        Some("lo") => (integer::multiply_low(ty), ty),
        Some("hi") => (integer::multiply_high(ty), ty),
        Some("wide") => (integer::multiply_wide(ty), twice_as_wide(ty)),
        _ => (None, ty),
    };
    plain(f, w, run, result, &[ty, ty], mode)
}

fn twice_as_wide(ty: Type) -> Type {
    match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        _ => Type::S64,
    }
}

/// `mad`: of integers, or the old name of `fma`.
pub(super) fn mad(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    mad_with(f, w, 0)
}

pub(super) fn madc(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    mad_with(f, w, carry::CARRY_IN)
}

fn mad_with(f: &mut Lowering<'_>, w: &mut Words<'_>, carry_in: u32) -> Done {
    let part = w.any(f, &["lo", "hi", "wide"]);
    let carry_out = if w.take("cc") { carry::CARRY_OUT } else { 0 };
    if carry_in | carry_out != 0 {
        return mad_carry(f, w, part, carry_in | carry_out);
    }
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let saturate = mode & float::SAT != 0;
    let (run, sources, result) = match part {
        None => (float::ternary::<float::FusedMultiplyAdd>(ty, mode), [ty; 3], ty),
        Some(_) if mode & !float::SAT != 0 => (None, [ty; 3], ty),
        Some("lo") if !saturate => (integer::multiply_add_low(ty), [ty; 3], ty),
        Some("hi") => (integer::multiply_add_high(ty, saturate), [ty; 3], ty),
        Some("wide") if !saturate => {
            let wide = twice_as_wide(ty);
            (integer::multiply_add_wide(ty), [ty, ty, wide], wide)
        }
        _ => (None, [ty; 3], ty),
    };
    plain(f, w, run, result, &sources, mode)
}

fn mad_carry(f: &mut Lowering<'_>, w: &mut Words<'_>, part: Option<&str>, flags: u32) -> Done {
    let ty = w.ty(f)?;
    let half = match part {
        Some("lo") => carry::LOW,
        Some("hi") => carry::HIGH,
        _ => return Err(w.unknown(f)),
    };
    let run = carry::with_carry(ty.bits()).filter(|_| ty.is_integer()).ok_or_else(|| w.unknown(f))?;
    let aux = flags | half | if ty.is_signed() { carry::SIGNED } else { 0 };
    let [d, a, b, c] = w.operands(f)?;
    let sources = [f.source(a, ty)?, f.source(b, ty)?, f.source(c, ty)?];
    let d = f.target(d, ty)?;
    f.emit(Raw::new(run).d(d).a(sources[0]).b(sources[1]).c(sources[2]).aux(aux).effect(Effect::Other));
    Ok(())
}

/// `mul24`, `mad24`.
pub(super) fn mul24(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let high = w.any(f, &["lo", "hi"]) == Some("hi");
    let ty = w.ty(f)?;
    plain(f, w, integer::multiply24(ty, high), ty, &[ty, ty], 0)
}

pub(super) fn mad24(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let high = w.any(f, &["lo", "hi"]) == Some("hi");
    let saturate = w.take("sat");
    let ty = w.ty(f)?;
    plain(f, w, integer::multiply_add24(ty, high, saturate), ty, &[ty, ty, ty], 0)
}

/// `fma`.
pub(super) fn fma(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let out_of_bounds = w.take("oob");
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let run = match out_of_bounds {
        true if mode == 0 => half::fused_out_of_bounds(ty),
        true => None,
        false => float::ternary::<float::FusedMultiplyAdd>(ty, mode),
    };
    plain(f, w, run, ty, &[ty, ty, ty], mode)
}

/// `div`.
pub(super) fn div(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let approximate = w.any(f, &["approx", "full"]);
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let run = match (approximate, ty) {
        (Some(how), Type::F32) => Some(float::approximate_divide(how == "full")),
        (Some(_), _) => None,
        (None, Type::F32 | Type::F64) => float::binary::<float::Divide>(ty, mode),
        (None, _) if mode == 0 => integer::divide(ty),
        _ => None,
    };
    plain(f, w, run, ty, &[ty, ty], mode)
}

pub(super) fn rem(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let ty = w.ty(f)?;
    plain(f, w, integer::remainder(ty), ty, &[ty, ty], 0)
}

/// `sqrt`, `rcp`, and the functions that only come as approximations.
pub(super) fn function(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let name = f.text(w.instruction().opcode);
    let approximate = w.take("approx");
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let exact = !approximate && matches!(ty, Type::F32 | Type::F64);
    let run = match name {
        _ if approximate => float::approximate(name, ty),
        "sqrt" if exact => float::unary::<float::SquareRoot>(ty, mode),
        "rcp" if exact => float::unary::<float::Reciprocal>(ty, mode),
        _ => None,
    };
    plain(f, w, run, ty, &[ty], mode)
}

pub(super) fn abs(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let run = if is_float(ty) { float::unary::<float::Absolute>(ty, mode) } else { integer::absolute(ty) };
    plain(f, w, run, ty, &[ty], mode)
}

pub(super) fn neg(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let run = if is_float(ty) { float::unary::<float::Negate>(ty, mode) } else { integer::negate(ty) };
    plain(f, w, run, ty, &[ty], mode)
}

pub(super) fn min(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let relu = mode & float::RELU != 0;
    let run =
        if is_float(ty) { float::binary::<float::Minimum>(ty, mode) } else { integer::minimum(ty, relu) };
    plain(f, w, run, ty, &[ty, ty], mode)
}

pub(super) fn max(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let mode = mode(f, w);
    let ty = w.ty(f)?;
    let relu = mode & float::RELU != 0;
    let run =
        if is_float(ty) { float::binary::<float::Maximum>(ty, mode) } else { integer::maximum(ty, relu) };
    plain(f, w, run, ty, &[ty, ty], mode)
}

pub(super) fn copysign(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let ty = w.ty(f)?;
    let run = float::binary::<float::CopySign>(ty, 0).filter(|_| matches!(ty, Type::F32 | Type::F64));
    plain(f, w, run, ty, &[ty, ty], 0)
}

pub(super) fn sad(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let ty = w.ty(f)?;
    plain(f, w, integer::sad(ty), ty, &[ty, ty, ty], 0)
}

/// `dp4a`, `dp2a`.
pub(super) fn dot(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let two = f.text(w.instruction().opcode) == "dp2a";
    let high = if two { w.any(f, &["lo", "hi"]) } else { None };
    let (a, b) = (w.ty(f)?, w.ty(f)?);
    let fits = |ty: Type| matches!(ty, Type::U32 | Type::S32);
    if !fits(a) || !fits(b) || (two && high.is_none()) {
        return Err(w.unknown(f));
    }
    let aux = u32::from(a == Type::S32) | u32::from(b == Type::S32) << 1 | u32::from(high == Some("hi")) << 2;
    let run = if two { integer::dot2() } else { integer::dot4() };
    plain(f, w, Some(run), Type::B32, &[a, b, Type::B32], aux)
}

/// `testp`.
pub(super) fn testp(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    const PROPERTIES: [&str; 6] = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
    let word = w.any(f, &PROPERTIES).ok_or_else(|| w.unknown(f))?;
    let property = PROPERTIES.iter().position(|known| *known == word).unwrap_or(0);
    let ty = w.ty(f)?;
    plain(f, w, float::test_property(ty), Type::Pred, &[ty], property as u32)
}

/// `vadd4` and its like, on whole registers.
pub(super) fn video(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let name = f.text(w.instruction().opcode);
    let (kind, bytes) = match name.split_at(name.len() - 1) {
        (kind, "4") => (kind, true),
        (kind, _) => (kind, false),
    };
    let element = match kind {
        "vadd" => video::Element::Add,
        "vsub" => video::Element::Subtract,
        "vavrg" => video::Element::Average,
        "vabsdiff" => video::Element::AbsoluteDifference,
        "vmin" => video::Element::Minimum,
        "vmax" => video::Element::Maximum,
        _ => return Err(w.unknown(f)),
    };
    let (d, a, b) = (w.ty(f)?, w.ty(f)?, w.ty(f)?);
    let flag = |set: bool, flag: u32| if set { flag } else { 0 };
    let aux = element as u32
        | flag(a == Type::S32, video::SIGNED_A)
        | flag(b == Type::S32, video::SIGNED_B)
        | flag(d == Type::S32, video::SIGNED_D)
        | flag(w.take("sat"), video::SATURATE)
        | flag(w.take("add"), video::ACCUMULATE)
        | flag(bytes, video::BYTES);
    plain(f, w, Some(video::simd), Type::B32, &[a, b, Type::B32], aux)
}
