//! `set`, `setp` and what combines their results.

use crate::isa::{Execute, Instruction, Slot, Type};
use crate::numeric::{Comparison, Float, bf16, compare, f16};
use crate::simt::{Flow, Machine};

/// `aux` of a comparison: how it is combined with the predicate in `c`, and what the result is.
pub(crate) const AND: u32 = 1;
pub(crate) const OR: u32 = 2;
pub(crate) const XOR: u32 = 3;
const COMBINE: u32 = 3;
/// Results in registers: all ones, or one as a float; the low bits say how much is written.
pub(crate) const TO_PREDICATE: u32 = 0;
pub(crate) const TO_ONES: u32 = 4;
pub(crate) const TO_F32: u32 = 8;
pub(crate) const TO_F16: u32 = 12;
pub(crate) const TO_BF16: u32 = 16;
const RESULT: u32 = 28;
/// Flush subnormal operands first.
pub(crate) const FTZ: u32 = 32;

#[inline(always)]
fn finish(m: &mut Machine<'_>, i: &Instruction, mask: u32, bits: u32) -> Flow {
    if i.aux & !FTZ == 0 && i.e == Slot::NONE {
        m.set_predicate(i.d, mask, bits);
        return Flow::Next;
    }
    let with = |bits: u32| match i.aux & COMBINE {
        AND => bits & m.predicate(i.c),
        OR => bits | m.predicate(i.c),
        XOR => bits ^ m.predicate(i.c),
        _ => bits,
    };
    let (first, second) = (with(bits), with(!bits));
    let one = match i.aux & RESULT {
        TO_PREDICATE => {
            m.set_predicate(i.d, mask, first);
            m.set_predicate(i.e, mask, second);
            return Flow::Next;
        }
        TO_ONES => u32::MAX,
        TO_F32 => 1f32.to_bits(),
        TO_F16 => u32::from(f16::ONE.to_bits()),
        _ => u32::from(bf16::ONE.to_bits()),
    };
    m.fill(i.d, mask, |lane| if first >> lane & 1 != 0 { one } else { 0 });
    Flow::Next
}

macro_rules! test {
    ($f:expr) => {{
        #[inline(always)]
        fn body(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
            let bits = m.test2(i.a, i.b, $f);
            finish(m, i, mask, bits)
        }
        crate::simt::ops::twice!(body)
    }};
}

macro_rules! integer {
    ($operator:expr, $register:ty, $t:ty) => {
        match $operator {
            Comparison::Equal => test!(|a: $register, b: $register| a as $t == b as $t),
            Comparison::NotEqual => test!(|a: $register, b: $register| a as $t != b as $t),
            Comparison::Less => test!(|a: $register, b: $register| (a as $t) < b as $t),
            Comparison::LessEqual => test!(|a: $register, b: $register| a as $t <= b as $t),
            Comparison::Greater => test!(|a: $register, b: $register| a as $t > b as $t),
            Comparison::GreaterEqual => test!(|a: $register, b: $register| a as $t >= b as $t),
            _ => return None,
        }
    };
}

macro_rules! float {
    ($operator:expr, $register:ty, $t:ty; $($name:ident),*) => {
        match $operator {
            $(Comparison::$name => {
                #[inline(always)]
                fn body(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
                    let value = |bits: $register| <$t as Float>::of_bits64(bits.into());
                    let bits = match i.aux & FTZ {
                        0 => m.test2(i.a, i.b, |a: $register, b: $register| {
                            compare(Comparison::$name, value(a), value(b))
                        }),
                        _ => m.test2(i.a, i.b, |a: $register, b: $register| {
                            compare(Comparison::$name, value(a).flush(), value(b).flush())
                        }),
                    };
                    finish(m, i, mask, bits)
                }
                crate::simt::ops::twice!(body)
            })*
        }
    };
    ($operator:expr, $register:ty, $t:ty) => {
        float!($operator, $register, $t; Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual, EqualUnordered,
            NotEqualUnordered, LessUnordered, LessEqualUnordered, GreaterUnordered, GreaterEqualUnordered, Ordered,
            Unordered)
    };
}

/// The comparison of `a` and `b`.
pub(crate) fn comparison(operator: Comparison, ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::B16 | Type::U16 => integer!(operator, u32, u16),
        Type::S16 => integer!(operator, u32, i16),
        Type::B32 | Type::U32 => integer!(operator, u32, u32),
        Type::S32 => integer!(operator, u32, i32),
        Type::B64 | Type::U64 => integer!(operator, u64, u64),
        Type::S64 => integer!(operator, u64, i64),
        Type::F32 => float!(operator, u32, f32),
        Type::F64 => float!(operator, u64, f64),
        Type::F16 => float!(operator, u32, f16),
        Type::Bf16 => float!(operator, u32, bf16),
        _ => return None,
    })
}

/// The word of PTX for a comparison; `lo`, `ls`, `hi`, `hs` are for unsigned types.
pub(crate) fn named(word: &str) -> Option<Comparison> {
    use Comparison::*;
    Some(match word {
        "eq" => Equal,
        "ne" => NotEqual,
        "lt" | "lo" => Less,
        "le" | "ls" => LessEqual,
        "gt" | "hi" => Greater,
        "ge" | "hs" => GreaterEqual,
        "equ" => EqualUnordered,
        "neu" => NotEqualUnordered,
        "ltu" => LessUnordered,
        "leu" => LessEqualUnordered,
        "gtu" => GreaterUnordered,
        "geu" => GreaterEqualUnordered,
        "num" => Ordered,
        "nan" => Unordered,
        _ => return None,
    })
}

/// Logic over predicates: `a` and `b` to `d`; the operation is in `aux`.
pub(crate) fn predicate_logic(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let (a, b) = (m.predicate(i.a), m.predicate(i.b));
    let value = match i.aux {
        AND => a & b,
        OR => a | b,
        XOR => a ^ b,
        _ => a,
    };
    m.set_predicate(i.d, mask, value);
    Flow::Next
}
