//! Integer arithmetic.
//!
//! Registers of 16 bits live in rows of 32; what lies above bit 15 means nothing, so operations that could see
//! it cut it off first.

use super::{lanes_aux, lanes1, lanes2, lanes3};
use crate::isa::{Execute, Type};

/// An operation written over `T`, for each integer type.
macro_rules! by_type {
    ($ty:expr, $lanes:ident, |$($x:ident),+| $e:expr) => {
        match $ty {
            Type::U16 | Type::B16 => by_type!(@narrow u16, u16, $lanes, |$($x),+| $e),
            Type::S16 => by_type!(@narrow i16, u16, $lanes, |$($x),+| $e),
            Type::U32 | Type::B32 => by_type!(@narrow u32, u32, $lanes, |$($x),+| $e),
            Type::S32 => by_type!(@narrow i32, u32, $lanes, |$($x),+| $e),
            Type::U64 | Type::B64 => by_type!(@wide u64, $lanes, |$($x),+| $e),
            Type::S64 => by_type!(@wide i64, $lanes, |$($x),+| $e),
            _ => return None,
        }
    };
    (@narrow $t:ty, $unsigned:ty, $lanes:ident, |$($x:ident),+| $e:expr) => {
        $lanes!(|$($x: u32),+| {
            #[allow(dead_code)]
            type T = $t;
            $(let $x = $x as $t;)+
            let result: $t = $e;
            result as $unsigned as u32
        })
    };
    (@wide $t:ty, $lanes:ident, |$($x:ident),+| $e:expr) => {
        $lanes!(|$($x: u64),+| {
            #[allow(dead_code)]
            type T = $t;
            $(let $x = $x as $t;)+
            let result: $t = $e;
            result as u64
        })
    };
}

pub(crate) fn add(ty: Type, saturate: bool) -> Option<Execute> {
    Some(match (ty, saturate) {
        (Type::S32, true) => lanes2!(|a: u32, b: u32| (a as i32).saturating_add(b as i32) as u32),
        (_, true) => return None,
        (Type::U16x2 | Type::S16x2, _) => lanes2!(|a: u32, b: u32| halves(a, b, u16::wrapping_add)),
        _ if ty.is_integer() && ty.is_wide() => lanes2!(|a: u64, b: u64| a.wrapping_add(b)),
        _ if ty.is_integer() && ty.bits() >= 16 => lanes2!(|a: u32, b: u32| a.wrapping_add(b)),
        _ => return None,
    })
}

pub(crate) fn subtract(ty: Type, saturate: bool) -> Option<Execute> {
    Some(match (ty, saturate) {
        (Type::S32, true) => lanes2!(|a: u32, b: u32| (a as i32).saturating_sub(b as i32) as u32),
        (_, true) => return None,
        _ if ty.is_integer() && ty.is_wide() => lanes2!(|a: u64, b: u64| a.wrapping_sub(b)),
        _ if ty.is_integer() && ty.bits() >= 16 => lanes2!(|a: u32, b: u32| a.wrapping_sub(b)),
        _ => return None,
    })
}

/// Both 16-bit halves of a register.
#[inline(always)]
pub(crate) fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

pub(crate) fn multiply_low(ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::U16 | Type::S16 | Type::U32 | Type::S32 => lanes2!(|a: u32, b: u32| a.wrapping_mul(b)),
        Type::U64 | Type::S64 => lanes2!(|a: u64, b: u64| a.wrapping_mul(b)),
        _ => return None,
    })
}

pub(crate) fn multiply_high(ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::U16 => lanes2!(|a: u32, b: u32| (a & 0xffff).wrapping_mul(b & 0xffff) >> 16),
        Type::S16 => lanes2!(|a: u32, b: u32| (i32::from(a as i16) * i32::from(b as i16)) as u32 >> 16),
        Type::U32 => lanes2!(|a: u32, b: u32| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        Type::S32 => lanes2!(|a: u32, b: u32| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
        Type::U64 => lanes2!(|a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 64) as u64),
        Type::S64 => lanes2!(|a: u64, b: u64| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64),
        _ => return None,
    })
}

pub(crate) fn multiply_wide(ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::U16 => lanes2!(|a: u32, b: u32| (a & 0xffff).wrapping_mul(b & 0xffff)),
        Type::S16 => lanes2!(|a: u32, b: u32| (i32::from(a as i16) * i32::from(b as i16)) as u32),
        Type::U32 => lanes2!(|a: u32, b: u32| u64::from(a) * u64::from(b)),
        Type::S32 => lanes2!(|a: u32, b: u32| (i64::from(a as i32) * i64::from(b as i32)) as u64),
        _ => return None,
    })
}

pub(crate) fn multiply_add_low(ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::U16 | Type::S16 | Type::U32 | Type::S32 => {
            lanes3!(|a: u32, b: u32, c: u32| a.wrapping_mul(b).wrapping_add(c))
        }
        Type::U64 | Type::S64 => lanes3!(|a: u64, b: u64, c: u64| a.wrapping_mul(b).wrapping_add(c)),
        _ => return None,
    })
}

pub(crate) fn multiply_add_high(ty: Type, saturate: bool) -> Option<Execute> {
    Some(match (ty, saturate) {
        (Type::S32, true) => lanes3!(|a: u32, b: u32, c: u32| {
            let high = ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as i32;
            high.saturating_add(c as i32) as u32
        }),
        (_, true) => return None,
        (Type::U16, _) => {
            lanes3!(|a: u32, b: u32, c: u32| ((a & 0xffff).wrapping_mul(b & 0xffff) >> 16).wrapping_add(c))
        }
        (Type::S16, _) => lanes3!(|a: u32, b: u32, c: u32| {
            ((i32::from(a as i16) * i32::from(b as i16)) as u32 >> 16).wrapping_add(c)
        }),
        (Type::U32, _) => {
            lanes3!(|a: u32, b: u32, c: u32| (((u64::from(a) * u64::from(b)) >> 32) as u32).wrapping_add(c))
        }
        (Type::S32, _) => lanes3!(|a: u32, b: u32, c: u32| {
            (((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32).wrapping_add(c)
        }),
        (Type::U64, _) => {
            lanes3!(|a: u64, b: u64, c: u64| (((u128::from(a) * u128::from(b)) >> 64) as u64).wrapping_add(c))
        }
        (Type::S64, _) => lanes3!(|a: u64, b: u64, c: u64| {
            (((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64).wrapping_add(c)
        }),
        _ => return None,
    })
}

pub(crate) fn multiply_add_wide(ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::U16 => lanes3!(|a: u32, b: u32, c: u32| (a & 0xffff).wrapping_mul(b & 0xffff).wrapping_add(c)),
        Type::S16 => {
            lanes3!(
                |a: u32, b: u32, c: u32| ((i32::from(a as i16) * i32::from(b as i16)) as u32).wrapping_add(c)
            )
        }
        Type::U32 => lanes3!(|a: u32, b: u32, c: u64| (u64::from(a) * u64::from(b)).wrapping_add(c)),
        Type::S32 => {
            lanes3!(
                |a: u32, b: u32, c: u64| ((i64::from(a as i32) * i64::from(b as i32)) as u64).wrapping_add(c)
            )
        }
        _ => return None,
    })
}

/// The product of the low 24 bits, `mul24` and `mad24`: bits 0 to 31 or 16 to 47 of it.
#[inline(always)]
fn product24(a: u32, b: u32, signed: bool, high: bool) -> u32 {
    let product = match signed {
        true => i64::from((a << 8) as i32 >> 8) * i64::from((b << 8) as i32 >> 8),
        false => (u64::from(a & 0xff_ffff) * u64::from(b & 0xff_ffff)) as i64,
    };
    if high { (product >> 16) as u32 } else { product as u32 }
}

pub(crate) fn multiply24(ty: Type, high: bool) -> Option<Execute> {
    Some(match (ty, high) {
        (Type::U32, false) => lanes2!(|a: u32, b: u32| product24(a, b, false, false)),
        (Type::U32, true) => lanes2!(|a: u32, b: u32| product24(a, b, false, true)),
        (Type::S32, false) => lanes2!(|a: u32, b: u32| product24(a, b, true, false)),
        (Type::S32, true) => lanes2!(|a: u32, b: u32| product24(a, b, true, true)),
        _ => return None,
    })
}

pub(crate) fn multiply_add24(ty: Type, high: bool, saturate: bool) -> Option<Execute> {
    Some(match (ty, high, saturate) {
        (Type::S32, true, true) => {
            lanes3!(
                |a: u32, b: u32, c: u32| (product24(a, b, true, true) as i32).saturating_add(c as i32) as u32
            )
        }
        (_, _, true) => return None,
        (Type::U32, false, _) => {
            lanes3!(|a: u32, b: u32, c: u32| product24(a, b, false, false).wrapping_add(c))
        }
        (Type::U32, true, _) => {
            lanes3!(|a: u32, b: u32, c: u32| product24(a, b, false, true).wrapping_add(c))
        }
        (Type::S32, false, _) => {
            lanes3!(|a: u32, b: u32, c: u32| product24(a, b, true, false).wrapping_add(c))
        }
        (Type::S32, true, _) => lanes3!(|a: u32, b: u32, c: u32| product24(a, b, true, true).wrapping_add(c)),
        _ => return None,
    })
}

/// Division by zero gives all ones, as cards do; PTX leaves it open.
pub(crate) fn divide(ty: Type) -> Option<Execute> {
    Some(by_type!(ty, lanes2, |a, b| if b == 0 { !0 } else { a.wrapping_div(b) }))
}

pub(crate) fn remainder(ty: Type) -> Option<Execute> {
    Some(by_type!(ty, lanes2, |a, b| if b == 0 { a } else { a.wrapping_rem(b) }))
}

pub(crate) fn minimum(ty: Type, relu: bool) -> Option<Execute> {
    Some(match (ty, relu) {
        (Type::U16x2, false) => lanes2!(|a: u32, b: u32| halves(a, b, u16::min)),
        (Type::S16x2, false) => {
            lanes2!(|a: u32, b: u32| halves(a, b, |a, b| (a as i16).min(b as i16) as u16))
        }
        (Type::S16x2, true) => {
            lanes2!(|a: u32, b: u32| halves(a, b, |a, b| (a as i16).min(b as i16).max(0) as u16))
        }
        (Type::S32, true) => lanes2!(|a: u32, b: u32| (a as i32).min(b as i32).max(0) as u32),
        (_, true) => return None,
        _ => by_type!(ty, lanes2, |a, b| a.min(b)),
    })
}

pub(crate) fn maximum(ty: Type, relu: bool) -> Option<Execute> {
    Some(match (ty, relu) {
        (Type::U16x2, false) => lanes2!(|a: u32, b: u32| halves(a, b, u16::max)),
        (Type::S16x2, false) => {
            lanes2!(|a: u32, b: u32| halves(a, b, |a, b| (a as i16).max(b as i16) as u16))
        }
        (Type::S16x2, true) => {
            lanes2!(|a: u32, b: u32| halves(a, b, |a, b| (a as i16).max(b as i16).max(0) as u16))
        }
        (Type::S32, true) => lanes2!(|a: u32, b: u32| (a as i32).max(b as i32).max(0) as u32),
        (_, true) => return None,
        _ => by_type!(ty, lanes2, |a, b| a.max(b)),
    })
}

pub(crate) fn absolute(ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::S16 => lanes1!(|a: u32| u32::from((a as i16).unsigned_abs())),
        Type::S32 => lanes1!(|a: u32| (a as i32).unsigned_abs()),
        Type::S64 => lanes1!(|a: u64| (a as i64).unsigned_abs()),
        _ => return None,
    })
}

pub(crate) fn negate(ty: Type) -> Option<Execute> {
    Some(match ty {
        Type::S16 | Type::S32 => lanes1!(|a: u32| a.wrapping_neg()),
        Type::S64 => lanes1!(|a: u64| a.wrapping_neg()),
        _ => return None,
    })
}

pub(crate) fn sad(ty: Type) -> Option<Execute> {
    Some(by_type!(ty, lanes3, |a, b, c| c.wrapping_add(if a > b {
        a.wrapping_sub(b)
    } else {
        b.wrapping_sub(a)
    })))
}

/// `dp4a`: `aux & 1` for a signed `a`, `aux & 2` for a signed `b`.
pub(crate) fn dot4() -> Execute {
    lanes_aux!(map3, |aux| |a: u32, b: u32, c: u32| {
        (0..4).fold(c, |sum, byte| {
            let (x, y) = (a >> (8 * byte), b >> (8 * byte));
            let x = if aux & 1 != 0 { i32::from(x as i8) } else { i32::from(x as u8) };
            let y = if aux & 2 != 0 { i32::from(y as i8) } else { i32::from(y as u8) };
            sum.wrapping_add((x * y) as u32)
        })
    })
}

/// `dp2a`: as `dp4a`, with 16-bit halves of `a`; `aux & 4` takes the upper bytes of `b`.
pub(crate) fn dot2() -> Execute {
    lanes_aux!(map3, |aux| |a: u32, b: u32, c: u32| {
        let b = if aux & 4 != 0 { b >> 16 } else { b };
        (0..2).fold(c, |sum, part| {
            let (x, y) = (a >> (16 * part), b >> (8 * part));
            let x = if aux & 1 != 0 { i32::from(x as i16) } else { i32::from(x as u16) };
            let y = if aux & 2 != 0 { i32::from(y as i8) } else { i32::from(y as u8) };
            sum.wrapping_add(x.wrapping_mul(y) as u32)
        })
    })
}
