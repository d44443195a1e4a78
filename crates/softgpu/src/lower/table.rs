//! The instructions, and who lowers them. `docs/ptx-support.md` is checked against this table.

use ptx::Instruction;

use super::error::Error;
use super::function::Lowering;
use super::words::Words;
use super::{arithmetic, atomic, control, logic, memory, moves, spaces};

type Lower = fn(&mut Lowering<'_>, &mut Words<'_>) -> Result<(), Error>;

/// Lowers one instruction, its guard and line already noted.
pub(super) fn lower(f: &mut Lowering<'_>, instruction: &Instruction) -> Result<(), Error> {
    let name = f.source.text(instruction.opcode);
    let mut words = Words::new(f, instruction);
    match lookup(name) {
        Some(lower) => lower(f, &mut words),
        None => Err(words.unknown(f)),
    }
}

fn lookup(name: &str) -> Option<Lower> {
    Some(match name {
        "add" => arithmetic::add,
        "sub" => arithmetic::sub,
        "addc" => arithmetic::addc,
        "subc" => arithmetic::subc,
        "mul" => arithmetic::mul,
        "mad" => arithmetic::mad,
        "madc" => arithmetic::madc,
        "mul24" => arithmetic::mul24,
        "mad24" => arithmetic::mad24,
        "fma" => arithmetic::fma,
        "div" => arithmetic::div,
        "rem" => arithmetic::rem,
        "sqrt" | "rcp" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => arithmetic::function,
        "abs" => arithmetic::abs,
        "neg" => arithmetic::neg,
        "min" => arithmetic::min,
        "max" => arithmetic::max,
        "copysign" => arithmetic::copysign,
        "sad" => arithmetic::sad,
        "dp4a" | "dp2a" => arithmetic::dot,
        "testp" => arithmetic::testp,
        "vadd2" | "vadd4" | "vsub2" | "vsub4" | "vavrg2" | "vavrg4" => arithmetic::video,
        "vabsdiff2" | "vabsdiff4" | "vmin2" | "vmin4" | "vmax2" | "vmax4" => arithmetic::video,
        "and" | "or" | "xor" | "not" | "cnot" => logic::logic,
        "shl" | "shr" => logic::shift,
        "shf" => logic::funnel,
        "lop3" => logic::lop3,
        "popc" | "clz" | "brev" => logic::count,
        "bfind" => logic::bfind,
        "fns" => logic::fns,
        "bfe" => logic::bfe,
        "bfi" => logic::bfi,
        "bmsk" => logic::bmsk,
        "szext" => logic::szext,
        "prmt" => logic::prmt,
        "set" => logic::set,
        "setp" => logic::setp,
        "selp" => moves::selp,
        "slct" => moves::slct,
        "mov" => moves::mov,
        "cvt" => moves::cvt,
        "ld" | "ldu" => memory::ld,
        "st" => memory::st,
        "atom" | "red" => atomic::atom,
        "cvta" => spaces::cvta,
        "isspacep" => spaces::isspacep,
        "mapa" | "getctarank" => spaces::mapa,
        "prefetch" | "prefetchu" | "applypriority" | "discard" => spaces::hint,
        "createpolicy" => spaces::createpolicy,
        "mbarrier" => spaces::mbarrier,
        "fence" | "membar" => spaces::fence,
        "cp" => spaces::cp,
        "bra" => control::bra,
        "brx" => control::brx,
        "call" => control::call,
        "ret" | "exit" => control::ret,
        "trap" => control::trap,
        "brkpt" | "pmevent" | "griddepcontrol" | "setmaxnreg" => control::nothing,
        "bar" | "barrier" => control::bar,
        "shfl" => control::shfl,
        "vote" => control::vote,
        "match" => control::match_sync,
        "redux" => control::redux,
        "elect" => control::elect,
        "activemask" => control::activemask,
        "nanosleep" => control::nanosleep,
        "alloca" | "stacksave" | "stackrestore" => control::stack_pointer,
        _ => return None,
    })
}
