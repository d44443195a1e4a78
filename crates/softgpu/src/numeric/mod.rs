//! What PTX means by a floating-point operation, as pure scalar functions.
//!
//! The executor's instructions say *which* operation; this room says what its result is, to the
//! bit: rounding in the direction asked for, one rounding only, subnormals kept or flushed, the
//! NaN a card returns. Nothing here knows of lanes, registers or memory.
//!
//! Two ideas carry it. Every value of f16, bf16, tf32, fp8 and f32 is exact in f64, so the narrow
//! formats compute in f64 and round once at the end; where the f64 result is itself inexact it is
//! *rounded to odd* (`odd`), which loses no information a later, narrower rounding could want.
//! Only f64 in a directed rounding needs more than that: `exact` does it in 256-bit integers.
//! Round-to-nearest f32 and f64, which is nearly everything a kernel does, is the host's own
//! arithmetic.
//!
//! | file | subject |
//! |---|---|
//! | `float` | [`Float`]: add, sub, mul, fma, div, sqrt, rcp, ftz, sat, relu, min, max |
//! | `compare` | set, setp, testp, copysign |
//! | `approximate` | the `.approx` functions |
//! | `convert` | cvt among integers and the four float types |
//! | `narrow` | cvt to and from tf32 and fp8 |
//! | `exact`, `odd` | the arithmetic underneath |

mod approximate;
mod compare;
mod convert;
mod exact;
mod float;
mod narrow;
mod odd;

pub use approximate::{
    approximate_cos, approximate_divide, approximate_exp2, approximate_exp2_of, approximate_log2,
    approximate_recip, approximate_recip_f64, approximate_rsqrt, approximate_rsqrt_f64, approximate_sin,
    approximate_sqrt, approximate_tanh, approximate_tanh_of, full_range_divide,
};
pub use compare::{Comparison, Property, compare, compare_integers, copysign, test_property};
pub use convert::{
    Integer, convert_float, convert_float_ftz, convert_integer, float_to_integer, integer_to_float,
    round_integral,
};
pub use exact::Format;
pub use float::{Float, MinMax};
pub use half::{bf16, f16};
pub use narrow::{
    e4m3_from, e4m3_to_f16, e5m2_from, e5m2_to_f16, pack_e4m3x2, pack_e5m2x2, round_satfinite, tf32_from,
    unpack_e4m3x2, unpack_e5m2x2,
};

/// The direction an inexact result is rounded in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// `.rn`, `.rni`: to nearest, ties to even.
    #[default]
    Nearest,
    /// `.rz`, `.rzi`: towards zero.
    Zero,
    /// `.rm`, `.rmi`: towards minus infinity.
    Down,
    /// `.rp`, `.rpi`: towards plus infinity.
    Up,
    /// `.rna`: to nearest, ties away from zero.
    NearestAway,
}

#[cfg(test)]
mod tests;
