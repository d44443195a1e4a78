//! Moving values between registers: copies, selections, packing and unpacking.

use super::{lanes1, lanes2};
use crate::isa::{Execute, Instruction, Type};
use crate::simt::lanes::Lane;
use crate::simt::{Flow, Machine};

/// A copy; 128 bits are two of 64.
pub(crate) fn copy(wide: bool) -> Execute {
    if wide { lanes1!(|a: u64| a) } else { lanes1!(|a: u32| a) }
}

/// 32 bits to 64, with zeroes; and 64 to 32.
pub(crate) fn widen() -> Execute {
    lanes1!(|a: u32| u64::from(a))
}

pub(crate) fn truncate() -> Execute {
    lanes1!(|a: u64| a as u32)
}

pub(crate) fn high_word() -> Execute {
    lanes1!(|a: u64| (a >> 32) as u32)
}

/// 64 bits of `a`, and `b` above.
pub(crate) fn join_words() -> Execute {
    lanes2!(|a: u32, b: u32| u64::from(b) << 32 | u64::from(a))
}

/// Bits from `aux & 0xff` on, as many as `aux >> 8` says, of a 32-bit register.
pub(crate) fn take_bits() -> Execute {
    super::lanes_aux!(map1, |aux| |a: u32| a >> (aux & 31) & (u32::MAX >> (32 - (aux >> 8))))
}

/// Bits of `b` put into `a` from `aux & 0xff` on, as many as `aux >> 8` says.
pub(crate) fn put_bits() -> Execute {
    super::lanes_aux!(map2, |aux| |a: u32, b: u32| {
        let field = (u32::MAX >> (32 - (aux >> 8))) << (aux & 31);
        (a & !field) | (b << (aux & 31) & field)
    })
}

/// `selp`: `a` where the predicate in `c` holds, else `b`.
pub(crate) fn select(wide: bool) -> Execute {
    #[inline(always)]
    fn body<T: Lane>(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
        let truths = m.predicate(i.c);
        let (a, b, d) = (m.source::<T>(i.a), m.source::<T>(i.b), m.target::<T>(i.d));
        let whole = m.whole(mask);
        for step in 0..crate::simt::lanes::STEPS {
            let (x, y) = (a.step(step), b.step(step));
            let values = std::array::from_fn(|lane| {
                let yes = truths >> (step * crate::simt::lanes::STEP + lane) & 1 != 0;
                T::select(yes, x[lane], y[lane])
            });
            m.put(d, step, mask, whole, values);
        }
        Flow::Next
    }
    if wide { super::twice!(body::<u64>) } else { super::twice!(body::<u32>) }
}

/// `slct`: `a` where `c` is not negative, else `b`.
pub(crate) fn select_by_sign(wide: bool, by: Type) -> Option<Execute> {
    use super::lanes_aux;
    // A float of -0 counts as zero, and so does what `.ftz` makes of a subnormal: bit 3 of `aux`.
    #[inline(always)]
    fn keeps(c: u32, aux: u32) -> bool {
        let value = f32::from_bits(c);
        value >= 0.0 || (aux & 8 != 0 && value.is_subnormal())
    }
    Some(match (wide, by) {
        (false, Type::S32) => super::lanes3!(|a: u32, b: u32, c: u32| if c as i32 >= 0 { a } else { b }),
        (true, Type::S32) => super::lanes3!(|a: u64, b: u64, c: u32| if c as i32 >= 0 { a } else { b }),
        (false, Type::F32) => {
            lanes_aux!(map3, |aux| |a: u32, b: u32, c: u32| if keeps(c, aux) { a } else { b })
        }
        (true, Type::F32) => {
            lanes_aux!(map3, |aux| |a: u64, b: u64, c: u32| if keeps(c, aux) { a } else { b })
        }
        _ => return None,
    })
}

/// A constant predicate: `aux` is the mask.
pub(crate) fn set_constant(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    m.set_predicate(i.d, mask, i.aux);
    Flow::Next
}
