//! What several files of cases build their programs from.

use crate::args;
use crate::context::Context;
use crate::driver::{CUdevice_attribute, CUstream};
use crate::memory::{Buffer, Pinned};
use crate::module::{Function, Module, Source};
use crate::source;
use crate::stream::{NON_BLOCKING, Stream};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// The small kernels for programs about ordering.
pub const ORDER: Source = source!("order");

/// A kernel that waits for the host: while a gate is shut, everything ordered behind it must not have happened.
///
/// A gate opens when it is dropped, so a failing case ends instead of hanging in the destruction of its stream.
/// Kernels are to be looked up before a gate is shut, because loading one lazily may wait for the device.
pub struct Gate<'d> {
    flag: Pinned<'d, u32>,
    kernel: Function<'d>,
}

impl<'d> Gate<'d> {
    pub fn new(context: &Context<'d>, module: &Module<'d>) -> Result<Self> {
        Ok(Gate { flag: Pinned::new(context, 1)?, kernel: module.function("await_flag")? })
    }

    /// Everything submitted to `stream` from now on waits until [`Gate::open`].
    #[track_caller]
    pub fn shut(&self, stream: CUstream) -> Result<()> {
        self.kernel.launch(1, 1, 0, stream, args![self.flag.address()])
    }

    pub fn open(&self) {
        self.flag.set(0, 1);
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.open();
    }
}

/// A log in device memory to which kernels append tokens; read through a stream that waits for no other.
pub struct Log<'d> {
    tokens: Buffer<'d, u32>,
    length: Buffer<'d, u32>,
    staging: Pinned<'d, u32>,
    reader: Stream<'d>,
    append: Function<'d>,
    slow_append: Function<'d>,
}

impl<'d> Log<'d> {
    pub fn new(context: &Context<'d>, module: &Module<'d>, capacity: usize) -> Result<Self> {
        let log = Log {
            tokens: context.zeros(capacity)?,
            length: context.zeros(1)?,
            staging: Pinned::new(context, capacity + 1)?,
            reader: Stream::new(context, NON_BLOCKING)?,
            append: module.function("append")?,
            slow_append: module.function("slow_append")?,
        };
        context.synchronize()?;
        Ok(log)
    }

    #[track_caller]
    pub fn append(&self, stream: CUstream, token: u32) -> Result<()> {
        self.append.launch(1, 32, 0, stream, args![&self.tokens, &self.length, token])
    }

    /// Takes a while before it appends.
    #[track_caller]
    pub fn slow_append(&self, stream: CUstream, token: u32, time: Duration) -> Result<()> {
        self.slow_append_blocks(stream, 1, 0, token, time)
    }

    /// As [`Log::slow_append`], once per block, with `shared` bytes per block to keep them apart.
    #[track_caller]
    pub fn slow_append_blocks(
        &self,
        stream: CUstream,
        blocks: u32,
        shared: u32,
        token: u32,
        time: Duration,
    ) -> Result<()> {
        let nanoseconds = u64::try_from(time.as_nanos())?;
        let arguments = args![&self.tokens, &self.length, token, nanoseconds];
        self.slow_append.launch(blocks, 32, shared, stream, arguments)
    }

    pub fn slow_kernel(&self) -> Function<'d> {
        self.slow_append
    }

    /// What has been logged so far.
    #[track_caller]
    pub fn read(&self, context: &Context<'_>) -> Result<Vec<u32>> {
        let staging = self.staging.host();
        let stream = self.reader.handle();
        context.cuMemcpyDtoHAsync_v2(staging.cast(), self.length.address(), 4, stream).ok()?;
        self.reader.synchronize()?;
        let length = self.staging.get(0) as usize;
        ensure!(length <= self.tokens.len(), "the log says it holds {length} tokens");
        if length > 0 {
            let first = staging.wrapping_add(1);
            context.cuMemcpyDtoHAsync_v2(first.cast(), self.tokens.address(), 4 * length, stream).ok()?;
            self.reader.synchronize()?;
        }
        Ok((1..=length).map(|i| self.staging.get(i)).collect())
    }
}

/// A device attribute's value.
#[track_caller]
pub fn attribute(context: &Context<'_>, attribute: CUdevice_attribute) -> Result<i32> {
    let mut value = 0;
    context.cuDeviceGetAttribute(&mut value, attribute, context.device()).ok()?;
    Ok(value)
}

/// Asks again and again, for as long as ten seconds, until `done` says so.
pub fn eventually(what: &str, mut done: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !done()? {
        ensure!(Instant::now() < deadline, "waited ten seconds in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
