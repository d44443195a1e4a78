//! Memset, in all widths.

use softgpu::memory::{Fill, Pattern};

use super::prelude::*;
use crate::state::operation::Operation;

/// Puts a fill into a stream, after the checks that a real driver makes at the call.
fn enqueue(fill: Fill, stream: Handle<Stream>) -> Result<()> {
    let stream = Stream::find(stream)?;
    let operation = check(&stream, fill)?;
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    stream.enqueue(operation).map(drop)
}

fn check(stream: &Stream, fill: Fill) -> Result<Operation> {
    require(fill.to.is_multiple_of(fill.pattern.bytes()))?;
    let row = fill.width.checked_mul(fill.pattern.bytes()).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    require(fill.height <= 1 || (fill.pitch.is_multiple_of(fill.pattern.bytes()) && fill.pitch >= row))?;
    let operation = Operation::Fill(fill);
    if fill.width > 0 && fill.height > 0 {
        operation.check(&stream.context()?.driver.space)?;
    }
    Ok(operation)
}

/// The forms without a stream act in the default stream. They are asynchronous for device memory on a card,
/// but it costs nothing here to let the caller find the work done.
fn now(fill: Fill) -> Result<()> {
    let stream = Stream::find(Handle::of(0))?;
    let operation = check(&stream, fill)?;
    if fill.width == 0 || fill.height == 0 {
        return Ok(());
    }
    match stream.enqueue(operation)? {
        Some(task) => stream.context()?.wait(&task),
        None => Ok(()),
    }
}

fn row(to: CUdeviceptr, pattern: Pattern, count: usize) -> Fill {
    let width = count as u64;
    Fill { to, pitch: width.saturating_mul(pattern.bytes()), pattern, width, height: 1 }
}

fn rows(to: CUdeviceptr, pitch: usize, pattern: Pattern, width: usize, height: usize) -> Fill {
    Fill { to, pitch: pitch as u64, pattern, width: width as u64, height: height as u64 }
}

macro_rules! fills {
    ($($name:ident, $name_async:ident, $value:ty, $pattern:ident;)*) => {$(
        pub fn $name(dstDevice: CUdeviceptr, value: $value, N: usize) -> Result<()> {
            now(row(dstDevice, Pattern::$pattern(value), N))
        }

        pub fn $name_async(dstDevice: CUdeviceptr, value: $value, N: usize, hStream: Handle<Stream>) -> Result<()> {
            enqueue(row(dstDevice, Pattern::$pattern(value), N), hStream)
        }
    )*};
}

fills! {
    cuMemsetD8_v2, cuMemsetD8Async, u8, One;
    cuMemsetD16_v2, cuMemsetD16Async, u16, Two;
    cuMemsetD32_v2, cuMemsetD32Async, u32, Four;
}

macro_rules! pitched_fills {
    ($($name:ident, $name_async:ident, $value:ty, $pattern:ident;)*) => {$(
        pub fn $name(dstDevice: CUdeviceptr, dstPitch: usize, value: $value, Width: usize, Height: usize) -> Result<()> {
            now(rows(dstDevice, dstPitch, Pattern::$pattern(value), Width, Height))
        }

        pub fn $name_async(
            dstDevice: CUdeviceptr,
            dstPitch: usize,
            value: $value,
            Width: usize,
            Height: usize,
            hStream: Handle<Stream>,
        ) -> Result<()> {
            enqueue(rows(dstDevice, dstPitch, Pattern::$pattern(value), Width, Height), hStream)
        }
    )*};
}

pitched_fills! {
    cuMemsetD2D8_v2, cuMemsetD2D8Async, u8, One;
    cuMemsetD2D16_v2, cuMemsetD2D16Async, u16, Two;
    cuMemsetD2D32_v2, cuMemsetD2D32Async, u32, Four;
}
