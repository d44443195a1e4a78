//! Half-precision odds and ends that the general float operations do not cover.

use super::lanes3;
use crate::isa::{Execute, Type};
use crate::numeric::{Float, Rounding, bf16, f16};

/// `fma.rn.oob`: a result is zero where an operand is out of bounds, which is marked by a NaN of all ones.
pub(crate) fn fused_out_of_bounds(ty: Type) -> Option<Execute> {
    #[inline(always)]
    fn apply<F: Float>(a: u32, b: u32, c: u32) -> u32 {
        let marked = |x: u32| x as u16 == 0xffff;
        if marked(a) || marked(b) {
            return 0;
        }
        let value = |x: u32| F::of_bits64(u64::from(x as u16));
        value(a).fma(value(b), value(c), Rounding::Nearest).to_bits64() as u32
    }
    Some(match ty {
        Type::F16 => lanes3!(|a: u32, b: u32, c: u32| apply::<f16>(a, b, c)),
        Type::Bf16 => lanes3!(|a: u32, b: u32, c: u32| apply::<bf16>(a, b, c)),
        _ => return None,
    })
}
