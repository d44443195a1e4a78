//! Fills: memory set to one value.

#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::c_uint;

use cuda_abi::CUstream;
use telemetry::Counter;

use crate::entry::{Raw, Seen};

/// In the default stream where none is named.
fn filled(seen: &Seen, stream: Option<CUstream>, elements: usize, rows: usize, bytes: usize) {
    let stream = stream.unwrap_or(std::ptr::null_mut());
    if seen.captured(stream) {
        return;
    }
    seen.handed_over(stream);
    seen.count(Counter::Fills);
    seen.add(Counter::Filled, elements.saturating_mul(rows).saturating_mul(bytes) as u64);
}

/// `name(width of an element; type of numbers)`, with a stream where one is named.
macro_rules! fills {
    ($($name:ident($bytes:literal; $number:ty $(; $stream:ty)?);)*) => {
        $(pub fn $name<A, B>(seen: &Seen, _: A, _: B, elements: Raw<$number>, $(stream: Raw<$stream>,)?) {
            filled(seen, stream_of!($(stream: $stream)?), elements.value() as usize, 1, $bytes);
        })*
    };
}
fills! {
    cuMemsetD8(1; c_uint);
    cuMemsetD8_v2(1; usize);
    cuMemsetD8Async(1; usize; CUstream);
    cuMemsetD16(2; c_uint);
    cuMemsetD16_v2(2; usize);
    cuMemsetD16Async(2; usize; CUstream);
    cuMemsetD32(4; c_uint);
    cuMemsetD32_v2(4; usize);
    cuMemsetD32Async(4; usize; CUstream);
}

macro_rules! fills_of_rows {
    ($($name:ident($bytes:literal; $number:ty $(; $stream:ty)?);)*) => {
        $(pub fn $name<A, B, C>(
            seen: &Seen,
            _: A,
            _: B,
            _: C,
            width: Raw<$number>,
            rows: Raw<$number>,
            $(stream: Raw<$stream>,)?
        ) {
            let (width, rows) = (width.value() as usize, rows.value() as usize);
            filled(seen, stream_of!($(stream: $stream)?), width, rows, $bytes);
        })*
    };
}
fills_of_rows! {
    cuMemsetD2D8(1; c_uint);
    cuMemsetD2D8_v2(1; usize);
    cuMemsetD2D8Async(1; usize; CUstream);
    cuMemsetD2D16(2; c_uint);
    cuMemsetD2D16_v2(2; usize);
    cuMemsetD2D16Async(2; usize; CUstream);
    cuMemsetD2D32(4; c_uint);
    cuMemsetD2D32_v2(4; usize);
    cuMemsetD2D32Async(4; usize; CUstream);
}
