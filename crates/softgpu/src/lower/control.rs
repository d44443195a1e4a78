//! Branches, calls, and the instructions in which threads meet.

use super::error::Error;
use super::function::{Lowering, Name};
use super::raw::{Class, Control, Effect, Operand, Raw, Virtual};
use super::words::Words;
use crate::isa::Type;
use crate::simt::{barrier, clock, control, print, stack, sync};

type Done = Result<(), Error>;

/// `bra`.
pub(super) fn bra(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    w.take("uni");
    let [target] = w.operands(f)?;
    let ptx::Operand::Name(span) = target else { return Err(w.mismatch(f)) };
    let Some(Name::Label(label)) = f.find(f.text(*span)) else {
        return Err(f.invalid(*span, format!("`{}` is not a label", f.text(*span))));
    };
    f.emit(Raw::new(control::branch).control(Control::Jumps(label)));
    Ok(())
}

/// `brx.idx`.
pub(super) fn brx(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    w.take("uni");
    if !w.take("idx") {
        return Err(w.unknown(f));
    }
    w.take("uni");
    let [index, targets] = w.operands(f)?;
    let index = f.source(index, Type::U32)?;
    let ptx::Operand::Name(span) = targets else { return Err(w.mismatch(f)) };
    let Some(Name::Targets(labels)) = f.find(f.text(*span)) else {
        return Err(f.invalid(*span, format!("`{}` is not a list of targets", f.text(*span))));
    };
    let raw = Raw::new(control::branch_indexed).a(index).aux(labels.len() as u32);
    f.emit(raw.control(Control::Table(labels)).effect(Effect::Other));
    Ok(())
}

/// `ret`, `exit`.
pub(super) fn ret(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let name = f.text(w.instruction().opcode);
    w.take("uni");
    w.operands::<0>(f)?;
    if name == "exit" || f.is_kernel {
        f.emit(Raw::new(control::exit).control(Control::Ends));
        return Ok(());
    }
    for (register, rows) in f.result_registers.clone() {
        let ty = if rows.len() == 1 { Type::B32 } else { Type::B64 };
        f.scatter(Operand::Use(register), &rows, ty);
    }
    f.emit(Raw::new(control::ret).control(Control::Ends));
    Ok(())
}

pub(super) fn trap(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    w.operands::<0>(f)?;
    f.emit(Raw::new(control::trap).control(Control::Ends).effect(Effect::Other));
    Ok(())
}

/// `brkpt`, `pmevent`, `griddepcontrol`, `setmaxnreg`: nothing to do here.
pub(super) fn nothing(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    w.drop_all(|_| true);
    w.operands_between(f, 0, 1)?;
    f.emit(Raw::new(control::nothing));
    Ok(())
}

/// `call`.
pub(super) fn call(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    w.take("uni");
    let operands = w.operands_between(f, 1, 4)?;
    let (results, rest): (&[ptx::Operand], _) = match operands {
        [ptx::Operand::List { elements, .. }, rest @ ..] => (elements, rest),
        rest => (&[], rest),
    };
    let (callee, rest) = match rest {
        [ptx::Operand::Name(span), rest @ ..] => (*span, rest),
        _ => return Err(w.mismatch(f)),
    };
    let arguments: &[ptx::Operand] = match rest {
        [ptx::Operand::List { elements, .. }, ..] => elements,
        _ => &[],
    };
    let text = f.text(callee);
    let target = f.find(text);
    let (mut copies, mut places) = (Vec::new(), Vec::new());
    for argument in arguments {
        argument_places(f, argument, &mut places)?;
    }
    let inputs = places.len();
    for result in results {
        result_places(f, result, &mut places, &mut copies)?;
    }
    match target {
        Some(Name::Function(index)) => direct(f, index, text, &places, inputs)?,
        Some(Name::Register(register, Type::B64 | Type::U64 | Type::S64)) => {
            f.calls_pointers = true;
            let raw = Raw::new(control::call_indirect).a(Operand::Use(register));
            emit_call(f, raw, &places, inputs);
        }
        _ => return Err(f.invalid(callee, format!("`{text}` is not a function"))),
    }
    for (register, pieces, ty) in copies {
        f.gather(&pieces, register, ty);
    }
    Ok(())
}

/// The registers of an argument; a plain value is put into some first.
fn argument_places(f: &mut Lowering<'_>, operand: &ptx::Operand, places: &mut Vec<Virtual>) -> Done {
    if let ptx::Operand::Name(span) = operand
        && let Some(Name::Parameter(registers)) = f.find(f.text(*span))
    {
        places.extend(registers.iter());
        return f.check_listed(*span, places.len());
    }
    let ty = match operand {
        ptx::Operand::Name(span) => f.find_register(*span)?.1,
        ptx::Operand::Float { double: true, .. } => Type::F64,
        ptx::Operand::Float { .. } => Type::F32,
        _ => Type::B32,
    };
    let value = f.source(operand, ty)?;
    let pieces: Vec<Virtual> = (0..Class::of(ty).rows()).map(|_| f.temporary(Class::Narrow)).collect();
    f.scatter(value, &pieces, ty);
    places.extend(pieces);
    Ok(())
}

type Copies = Vec<(Virtual, Vec<Virtual>, Type)>;

fn result_places(
    f: &mut Lowering<'_>,
    operand: &ptx::Operand,
    places: &mut Vec<Virtual>,
    copies: &mut Copies,
) -> Done {
    let ptx::Operand::Name(span) = operand else {
        return Err(f.invalid(operand.span(), "a result is a name"));
    };
    if let Some(Name::Parameter(registers)) = f.find(f.text(*span)) {
        places.extend(registers.iter());
        return f.check_listed(*span, places.len());
    }
    let (register, ty) = f.find_register(*span)?;
    let pieces: Vec<Virtual> = (0..Class::of(ty).rows()).map(|_| f.temporary(Class::Narrow)).collect();
    places.extend(&pieces);
    copies.push((register, pieces, ty));
    Ok(())
}

fn direct(f: &mut Lowering<'_>, index: u32, text: &str, places: &[Virtual], inputs: usize) -> Done {
    if f.linker.functions[index as usize].body.is_some() {
        f.callees.push(index);
        emit_call(f, Raw::new(control::call).aux(index), places, inputs);
        return Ok(());
    }
    match text {
        "vprintf" if inputs == 4 => {
            let (format, arguments) = (f.temporary(Class::Wide), f.temporary(Class::Wide));
            f.gather(&places[..2], format, Type::B64);
            f.gather(&places[2..4], arguments, Type::B64);
            let d = places.get(4).map_or(Operand::None, |place| Operand::Def(*place));
            let raw = Raw::new(print::printf).d(d).a(Operand::Use(format)).b(Operand::Use(arguments));
            f.emit(raw.effect(Effect::Other));
            Ok(())
        }
        "__assertfail" => {
            f.emit(Raw::new(control::assert_failed).effect(Effect::Other).control(Control::Ends));
            Ok(())
        }
        // Virtual destructors mention `free` whether or not anybody deletes, so only running it is refused.
        "malloc" | "free" => {
            f.emit(Raw::new(control::no_heap).effect(Effect::Other).control(Control::Ends));
            Ok(())
        }
        _ => Err(Error::Unresolved { name: text.to_owned() }),
    }
}

fn emit_call(f: &mut Lowering<'_>, mut raw: Raw, places: &[Virtual], inputs: usize) {
    raw.list = vec![Operand::Bits(inputs as u32), Operand::Bits((places.len() - inputs) as u32)];
    raw.list.extend(places[..inputs].iter().map(|place| Operand::Use(*place)));
    raw.list.extend(places[inputs..].iter().map(|place| Operand::Def(*place)));
    f.emit(raw.control(Control::Meets).effect(Effect::Call));
}

/// `bar`, `barrier`: of the block, the warp or the cluster.
pub(super) fn bar(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    if w.take("warp") {
        w.take("sync");
        let [members] = w.operands(f)?;
        let members = f.source(members, Type::B32)?;
        f.emit(Raw::new(sync::warp_barrier).e(members).control(Control::Meets).effect(Effect::Other));
        return Ok(());
    }
    if w.take("cluster") {
        // A cluster is one block: waiting for it is a barrier that nobody else uses.
        let arrives = w.take("arrive");
        w.drop_all(|word| matches!(word, "wait" | "aligned" | "release" | "relaxed" | "acquire"));
        w.operands::<0>(f)?;
        let id = f.constant32(CLUSTER_BARRIER);
        let raw =
            Raw::new(if arrives { control::nothing } else { barrier::barrier }).a(id).aux(barrier::SYNC);
        f.emit(raw.control(Control::Meets).effect(Effect::Other));
        return Ok(());
    }
    w.take("cta");
    w.take("aligned");
    match w.any(f, &["sync", "arrive", "red"]) {
        Some("sync") => plain_barrier(f, w, barrier::SYNC),
        Some("arrive") => plain_barrier(f, w, barrier::ARRIVE),
        Some(_) => reducing_barrier(f, w),
        None => Err(w.unknown(f)),
    }
}

/// The number of the barrier that stands for the cluster's: programs have 0 to 15.
const CLUSTER_BARRIER: u32 = barrier::BARRIERS as u32;

fn plain_barrier(f: &mut Lowering<'_>, w: &mut Words<'_>, aux: u32) -> Done {
    w.take("aligned");
    let operands = w.operands_between(f, 1, 2)?;
    let mut raw = Raw::new(barrier::barrier).aux(aux);
    raw.a = f.source(&operands[0], Type::U32)?;
    if let Some(count) = operands.get(1) {
        raw.b = f.source(count, Type::U32)?;
    }
    f.emit(raw.control(Control::Meets).effect(Effect::Other));
    Ok(())
}

fn reducing_barrier(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let aux = match w.any(f, &["popc", "and", "or"]) {
        Some("popc") => barrier::RED_POPC,
        Some("and") => barrier::RED_AND,
        Some(_) => barrier::RED_OR,
        None => return Err(w.unknown(f)),
    };
    w.take("aligned");
    let ty = w.ty(f)?;
    let operands = w.operands_between(f, 3, 4)?;
    let mut raw = Raw::new(barrier::barrier).aux(aux);
    raw.d = f.target(&operands[0], ty)?;
    raw.a = f.source(&operands[1], Type::U32)?;
    if operands.len() == 4 {
        raw.b = f.source(&operands[2], Type::U32)?;
    }
    raw.c = f.predicate(&operands[operands.len() - 1])?;
    f.emit(raw.control(Control::Meets).effect(Effect::Other));
    Ok(())
}

/// `shfl.sync`.
pub(super) fn shfl(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    if !w.take("sync") {
        return Err(w.unknown(f));
    }
    let aux = match w.any(f, &["up", "down", "bfly", "idx"]) {
        Some("up") => sync::UP,
        Some("down") => sync::DOWN,
        Some("bfly") => sync::BUTTERFLY,
        Some(_) => sync::INDEX,
        None => return Err(w.unknown(f)),
    };
    let ty = w.ty(f)?;
    let [d, a, b, c, members] = w.operands(f)?;
    let (d, p) = match d {
        ptx::Operand::Pair { first, second, .. } => (ptx::Operand::Name(*first), Some(*second)),
        other => (other.clone(), None),
    };
    let mut raw = Raw::new(sync::shuffle).aux(aux);
    raw.a = f.source(a, ty)?;
    raw.b = f.source(b, Type::B32)?;
    raw.c = f.source(c, Type::B32)?;
    raw.e = f.source(members, Type::B32)?;
    raw.d = match f.target(&d, ty)? {
        Operand::None => Operand::Def(f.temporary(Class::Narrow)),
        d => d,
    };
    if let Some(p) = p {
        let p = f.target(&ptx::Operand::Name(p), Type::Pred)?;
        raw.list = vec![p];
    }
    f.emit(raw.control(Control::Meets).effect(Effect::Other));
    Ok(())
}

/// `vote.sync`.
pub(super) fn vote(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    if !w.take("sync") {
        return Err(w.unknown(f));
    }
    let (aux, result) = match w.any(f, &["all", "any", "uni", "ballot"]) {
        Some("all") => (sync::ALL, Type::Pred),
        Some("any") => (sync::ANY, Type::Pred),
        Some("uni") => (sync::UNIFORM, Type::Pred),
        Some(_) => (sync::BALLOT, Type::B32),
        None => return Err(w.unknown(f)),
    };
    if w.ty(f)? != result {
        return Err(w.mismatch(f));
    }
    let [d, a, members] = w.operands(f)?;
    let raw =
        Raw::new(sync::vote).d(f.target(d, result)?).a(f.predicate(a)?).e(f.source(members, Type::B32)?);
    f.emit(raw.aux(aux).control(Control::Meets).effect(Effect::Other));
    Ok(())
}

/// `match.sync`.
pub(super) fn match_sync(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let all = w.any(f, &["any", "all"]) == Some("all");
    w.take("sync");
    let ty = w.ty(f)?;
    let [d, a, members] = w.operands(f)?;
    let (d, p) = match d {
        ptx::Operand::Pair { first, second, .. } => (ptx::Operand::Name(*first), Some(*second)),
        other => (other.clone(), None),
    };
    let mut raw = Raw::new(sync::match_lanes).aux(u32::from(ty.is_wide()) | u32::from(all) << 1);
    raw.a = f.source(a, ty)?;
    raw.e = f.source(members, Type::B32)?;
    raw.d = match f.target(&d, Type::B32)? {
        Operand::None => Operand::Def(f.temporary(Class::Narrow)),
        d => d,
    };
    if let Some(p) = p {
        raw.c = f.target(&ptx::Operand::Name(p), Type::Pred)?;
    }
    f.emit(raw.control(Control::Meets).effect(Effect::Other));
    Ok(())
}

/// `redux.sync`.
pub(super) fn redux(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    w.take("sync");
    let aux = match w.any(f, &["add", "min", "max", "and", "or", "xor"]) {
        Some("add") => sync::REDUX_ADD,
        Some("min") => sync::REDUX_MIN,
        Some("max") => sync::REDUX_MAX,
        Some("and") => sync::REDUX_AND,
        Some("or") => sync::REDUX_OR,
        Some(_) => sync::REDUX_XOR,
        None => return Err(w.unknown(f)),
    };
    let ty = w.ty(f)?;
    if ty.bits() != 32 || ty.is_float() {
        return Err(w.unknown(f));
    }
    let aux = aux | if ty.is_signed() { sync::REDUX_SIGNED } else { 0 };
    let [d, a, members] = w.operands(f)?;
    let raw = Raw::new(sync::redux).d(f.target(d, ty)?).a(f.source(a, ty)?).e(f.source(members, Type::B32)?);
    f.emit(raw.aux(aux).control(Control::Meets).effect(Effect::Other));
    Ok(())
}

/// `elect.sync`.
pub(super) fn elect(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    w.take("sync");
    let [d, members] = w.operands(f)?;
    let ptx::Operand::Pair { first, second, .. } = d else { return Err(w.mismatch(f)) };
    let mut raw = Raw::new(sync::elect).e(f.source(members, Type::B32)?);
    raw.d = f.target(&ptx::Operand::Name(*first), Type::B32)?;
    raw.c = f.target(&ptx::Operand::Name(*second), Type::Pred)?;
    f.emit(raw.control(Control::Meets).effect(Effect::Other));
    Ok(())
}

/// `activemask`.
pub(super) fn activemask(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let ty = w.ty(f)?;
    let [d] = w.operands(f)?;
    let d = f.target(d, ty)?;
    f.emit(Raw::new(sync::active_mask).d(d));
    Ok(())
}

/// `nanosleep`.
pub(super) fn nanosleep(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let ty = w.ty(f)?;
    let [a] = w.operands(f)?;
    let a = f.source(a, ty)?;
    f.emit(Raw::new(clock::sleep).a(a).effect(Effect::Pure).control(Control::Meets));
    Ok(())
}

/// `alloca`, `stacksave`, `stackrestore`.
pub(super) fn stack_pointer(f: &mut Lowering<'_>, w: &mut Words<'_>) -> Done {
    let name = f.text(w.instruction().opcode);
    let ty = w.ty(f)?;
    let operands = w.operands_between(f, 1, 3)?;
    let mut raw = match name {
        "alloca" => {
            let size = operands.get(1).ok_or_else(|| w.mismatch(f))?;
            let align = match operands.get(2) {
                Some(ptx::Operand::Integer { value, .. }) if value.is_power_of_two() && *value <= 128 => {
                    *value as u32
                }
                None => 8,
                Some(_) => return Err(w.mismatch(f)),
            };
            f.calls_pointers = true;
            Raw::new(stack::allocate).d(f.target(&operands[0], ty)?).a(f.source(size, ty)?).aux(align)
        }
        "stacksave" => Raw::new(stack::save).d(f.target(&operands[0], ty)?),
        _ => Raw::new(stack::restore).a(f.source(&operands[0], ty)?),
    };
    raw.offset = i64::from(ty.is_wide());
    f.emit(raw.effect(Effect::Other));
    Ok(())
}
