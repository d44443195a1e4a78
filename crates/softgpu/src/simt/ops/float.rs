//! Floating-point arithmetic over lanes; what an operation means is said by [`crate::numeric`].
//!
//! An operation is written once over any [`Float`]. Its modifiers are a mode word: fixed at compile time for
//! the ones that matter, so that they cost nothing, and read from `aux` for the rest.

use super::{lanes_aux, lanes1};
use crate::isa::{Execute, Instruction, Type};
use crate::numeric::{self, Float, MinMax, Rounding, bf16, f16};
use crate::simt::lanes::Lane;
use crate::simt::{Flow, Machine};

/// The low bits of a mode are a rounding.
const ROUNDING: u32 = 7;
pub(crate) const FTZ: u32 = 8;
pub(crate) const SAT: u32 = 16;
pub(crate) const RELU: u32 = 32;
pub(crate) const NAN: u32 = 64;
pub(crate) const XORSIGN: u32 = 128;
/// Take the mode from the instruction.
const DYNAMIC: u32 = u32::MAX;

#[inline(always)]
pub(crate) fn rounding_of(mode: u32) -> Rounding {
    match mode & ROUNDING {
        0 => Rounding::Nearest,
        1 => Rounding::Zero,
        2 => Rounding::Down,
        3 => Rounding::Up,
        _ => Rounding::NearestAway,
    }
}

pub(crate) fn rounding_code(rounding: Rounding) -> u32 {
    match rounding {
        Rounding::Nearest => 0,
        Rounding::Zero => 1,
        Rounding::Down => 2,
        Rounding::Up => 3,
        Rounding::NearestAway => 4,
    }
}

/// How a register holds values of a float type: one, or two side by side.
pub(crate) trait Form {
    type Register: Lane;
    type Value: Float;
    fn map<const N: usize>(
        x: [Self::Register; N],
        f: impl Fn([Self::Value; N]) -> Self::Value,
    ) -> Self::Register;
}

struct Single;
struct Double;
struct Half;
struct Brain;
struct HalfPair;
struct BrainPair;

macro_rules! form {
    ($form:ident, $register:ty, $value:ty) => {
        impl Form for $form {
            type Register = $register;
            type Value = $value;

            #[inline(always)]
            fn map<const N: usize>(x: [$register; N], f: impl Fn([$value; N]) -> $value) -> $register {
                f(x.map(|bits| <$value as Float>::of_bits64(bits.bits()))).to_bits64() as $register
            }
        }
    };
}

macro_rules! pair {
    ($form:ident, $value:ty) => {
        impl Form for $form {
            type Register = u32;
            type Value = $value;

            #[inline(always)]
            fn map<const N: usize>(x: [u32; N], f: impl Fn([$value; N]) -> $value) -> u32 {
                let low = f(x.map(|bits| <$value>::from_bits(bits as u16)));
                let high = f(x.map(|bits| <$value>::from_bits((bits >> 16) as u16)));
                u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16
            }
        }
    };
}

form!(Single, u32, f32);
form!(Double, u64, f64);
form!(Half, u32, f16);
form!(Brain, u32, bf16);
pair!(HalfPair, f16);
pair!(BrainPair, bf16);

/// An operation of `N` operands.
pub(crate) trait Operation<const N: usize> {
    fn apply<F: Float>(x: [F; N], mode: u32) -> F;
}

#[inline(always)]
fn finish<F: Float>(x: F, mode: u32) -> F {
    let x = if mode & SAT != 0 { x.saturate() } else { x };
    if mode & RELU != 0 { x.relu() } else { x }
}

macro_rules! operation {
    ($name:ident, $n:literal, |[$($x:ident),+], $mode:ident| $e:expr) => {
        pub(crate) struct $name;

        impl Operation<$n> for $name {
            #[inline(always)]
            fn apply<F: Float>([$($x),+]: [F; $n], $mode: u32) -> F {
                finish($e, $mode)
            }
        }
    };
}

operation!(Add, 2, |[a, b], mode| {
    if mode & FTZ != 0 { a.add_ftz(b, rounding_of(mode)) } else { a.add(b, rounding_of(mode)) }
});
operation!(Subtract, 2, |[a, b], mode| {
    if mode & FTZ != 0 { a.sub_ftz(b, rounding_of(mode)) } else { a.sub(b, rounding_of(mode)) }
});
operation!(Multiply, 2, |[a, b], mode| {
    if mode & FTZ != 0 { a.mul_ftz(b, rounding_of(mode)) } else { a.mul(b, rounding_of(mode)) }
});
operation!(Divide, 2, |[a, b], mode| {
    if mode & FTZ != 0 { a.div_ftz(b, rounding_of(mode)) } else { a.div(b, rounding_of(mode)) }
});
operation!(FusedMultiplyAdd, 3, |[a, b, c], mode| {
    if mode & FTZ != 0 { a.fma_ftz(b, c, rounding_of(mode)) } else { a.fma(b, c, rounding_of(mode)) }
});
operation!(SquareRoot, 1, |[a], mode| {
    let ftz = mode & FTZ != 0;
    a.flush_if(ftz).square_root(rounding_of(mode)).flush_if(ftz)
});
operation!(Reciprocal, 1, |[a], mode| {
    if mode & FTZ != 0 { F::ONE.div_ftz(a, rounding_of(mode)) } else { a.reciprocal(rounding_of(mode)) }
});
operation!(Negate, 1, |[a], mode| a.flush_if(mode & FTZ != 0).negated());
operation!(Absolute, 1, |[a], mode| a.flush_if(mode & FTZ != 0).absolute());
operation!(CopySign, 2, |[a, b], mode| {
    let _ = mode;
    numeric::copysign(a, b)
});
operation!(Minimum, 2, |[a, b], mode| {
    let ftz = mode & FTZ != 0;
    a.flush_if(ftz).smaller(b.flush_if(ftz), how(mode))
});
operation!(Maximum, 2, |[a, b], mode| {
    let ftz = mode & FTZ != 0;
    a.flush_if(ftz).larger(b.flush_if(ftz), how(mode))
});

fn how(mode: u32) -> MinMax {
    MinMax { propagate_nan: mode & NAN != 0, xorsign_abs: mode & XORSIGN != 0 }
}

macro_rules! driver {
    ($body:ident, $plain:ident, $fast:ident, $pick:ident, $n:literal, $map:ident, |$($x:ident),+|) => {
        #[inline(always)]
        fn $body<O: Operation<$n>, F: Form, const MODE: u32>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
            let mode = if MODE == DYNAMIC { i.aux } else { MODE };
            m.$map(i, mask, |$($x: F::Register),+| F::map([$($x),+], |x| O::apply(x, mode)));
            Flow::Next
        }

        fn $plain<O: Operation<$n>, F: Form, const MODE: u32>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
            $body::<O, F, MODE>(m, i, mask)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn $fast<O: Operation<$n>, F: Form, const MODE: u32>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
            $body::<O, F, MODE>(m, i, mask)
        }

        /// The function for a type and mode. The mode must also be the instruction's `aux`.
        pub(crate) fn $pick<O: Operation<$n>>(ty: Type, mode: u32) -> Option<Execute> {
            #[cfg(target_arch = "x86_64")]
            fn version<O: Operation<$n>, F: Form, const MODE: u32>() -> Execute {
                if super::fast() { $fast::<O, F, MODE> } else { $plain::<O, F, MODE> }
            }
            #[cfg(not(target_arch = "x86_64"))]
            fn version<O: Operation<$n>, F: Form, const MODE: u32>() -> Execute {
                $plain::<O, F, MODE>
            }
            fn modes<O: Operation<$n>, F: Form>(mode: u32) -> Execute {
                if mode == 0 { version::<O, F, 0>() } else { version::<O, F, DYNAMIC>() }
            }
            Some(match (ty, mode) {
                (Type::F32, FTZ) => version::<O, Single, FTZ>(),
                (Type::F32, SAT) => version::<O, Single, SAT>(),
                (Type::F32, _) => modes::<O, Single>(mode),
                (Type::F64, _) => modes::<O, Double>(mode),
                (Type::F16, _) => modes::<O, Half>(mode),
                (Type::Bf16, _) => modes::<O, Brain>(mode),
                (Type::F16x2, _) => modes::<O, HalfPair>(mode),
                (Type::Bf16x2, _) => modes::<O, BrainPair>(mode),
                _ => return None,
            })
        }
    };
}

driver!(body1, plain1, fast1, unary, 1, map1, |a|);
driver!(body2, plain2, fast2, binary, 2, map2, |a, b|);
driver!(body3, plain3, fast3, ternary, 3, map3, |a, b, c|);

/// Round-to-nearest f64 arithmetic: the host's own, unless the result is a NaN, which a card chooses its way.
macro_rules! double {
    ($lanes:ident, $operation:ident, |$($x:ident),+| $e:expr) => {{
        #[cold]
        #[inline(never)]
        fn careful($($x: u64),+) -> u64 {
            $operation::apply([$(f64::from_bits($x)),+], 0).to_bits()
        }
        super::$lanes!(|$($x: u64),+| {
            let result: f64 = {
                $(let $x = f64::from_bits($x);)+
                $e
            };
            if result.is_nan() { careful($($x),+) } else { result.to_bits() }
        })
    }};
}

/// The fast functions for plain f64 arithmetic.
pub(crate) fn native_double(name: &str) -> Option<Execute> {
    Some(match name {
        "add" => double!(lanes2, Add, |a, b| a + b),
        "sub" => double!(lanes2, Subtract, |a, b| a - b),
        "mul" => double!(lanes2, Multiply, |a, b| a * b),
        "fma" | "mad" => double!(lanes3, FusedMultiplyAdd, |a, b, c| a.mul_add(b, c)),
        _ => return None,
    })
}

/// An f32 function that takes `ftz` from `aux`.
macro_rules! single {
    ($f:path) => {
        lanes_aux!(map1, |aux| |a: u32| $f(f32::from_bits(a), aux & FTZ != 0).to_bits())
    };
}

/// `.approx` functions of one operand.
pub(crate) fn approximate(name: &str, ty: Type) -> Option<Execute> {
    use numeric::*;
    Some(match (name, ty) {
        ("rcp", Type::F32) => single!(approximate_recip),
        ("sqrt", Type::F32) => single!(approximate_sqrt),
        ("rsqrt", Type::F32) => single!(approximate_rsqrt),
        ("sin", Type::F32) => single!(approximate_sin),
        ("cos", Type::F32) => single!(approximate_cos),
        ("lg2", Type::F32) => single!(approximate_log2),
        ("ex2", Type::F32) => single!(approximate_exp2),
        ("tanh", Type::F32) => lanes1!(|a: u32| approximate_tanh(f32::from_bits(a)).to_bits()),
        ("rcp", Type::F64) => lanes1!(|a: u64| approximate_recip_f64(f64::from_bits(a)).to_bits()),
        ("rsqrt", Type::F64) => lanes1!(|a: u64| approximate_rsqrt_f64(f64::from_bits(a)).to_bits()),
        ("ex2", Type::F16) => lanes1!(|a: u32| Half::map([a], |[x]| approximate_exp2_of(x, false))),
        ("ex2", Type::F16x2) => lanes1!(|a: u32| HalfPair::map([a], |[x]| approximate_exp2_of(x, false))),
        ("ex2", Type::Bf16) => lanes1!(|a: u32| Brain::map([a], |[x]| approximate_exp2_of(x, true))),
        ("ex2", Type::Bf16x2) => lanes1!(|a: u32| BrainPair::map([a], |[x]| approximate_exp2_of(x, true))),
        ("tanh", Type::F16) => lanes1!(|a: u32| Half::map([a], |[x]| approximate_tanh_of(x))),
        ("tanh", Type::F16x2) => lanes1!(|a: u32| HalfPair::map([a], |[x]| approximate_tanh_of(x))),
        ("tanh", Type::Bf16) => lanes1!(|a: u32| Brain::map([a], |[x]| approximate_tanh_of(x))),
        ("tanh", Type::Bf16x2) => lanes1!(|a: u32| BrainPair::map([a], |[x]| approximate_tanh_of(x))),
        _ => return None,
    })
}

/// `div.approx.f32` and `div.full.f32`.
pub(crate) fn approximate_divide(full: bool) -> Execute {
    match full {
        false => lanes_aux!(map2, |aux| |a: u32, b: u32| {
            numeric::approximate_divide(f32::from_bits(a), f32::from_bits(b), aux & FTZ != 0).to_bits()
        }),
        true => lanes_aux!(map2, |aux| |a: u32, b: u32| {
            numeric::full_range_divide(f32::from_bits(a), f32::from_bits(b), aux & FTZ != 0).to_bits()
        }),
    }
}

/// `testp`: the property in `aux`, to a predicate.
pub(crate) fn test_property(ty: Type) -> Option<Execute> {
    use numeric::Property;
    fn run<F: Form>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
        let property = match i.aux {
            0 => Property::Finite,
            1 => Property::Infinite,
            2 => Property::Number,
            3 => Property::NotANumber,
            4 => Property::Normal,
            _ => Property::Subnormal,
        };
        let bits =
            m.test1::<F::Register>(i.a, |x| numeric::test_property(property, F::Value::of_bits64(x.bits())));
        m.set_predicate(i.d, mask, bits);
        Flow::Next
    }
    match ty {
        Type::F32 => Some(run::<Single>),
        Type::F64 => Some(run::<Double>),
        _ => None,
    }
}
