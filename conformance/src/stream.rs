//! Streams and events that are destroyed when dropped.

use crate::context::Context;
use crate::driver::{CUevent, CUstream, Driver};
use anyhow::Result;
use std::ptr;

/// `CU_STREAM_NON_BLOCKING`: takes no part in the legacy default stream's ordering.
pub const NON_BLOCKING: u32 = 1;
/// `CU_EVENT_DISABLE_TIMING`.
pub const DISABLE_TIMING: u32 = 2;

pub struct Stream<'d> {
    driver: &'d Driver,
    handle: CUstream,
}

// SAFETY: CUDA handles and device addresses are names that the driver lets every thread use.
unsafe impl Send for Stream<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Stream<'_> {}

impl<'d> Stream<'d> {
    #[track_caller]
    pub fn new(context: &Context<'d>, flags: u32) -> Result<Self> {
        let mut handle = ptr::null_mut();
        context.cuStreamCreate(&mut handle, flags).ok()?;
        Ok(Stream { driver: context.driver(), handle })
    }

    #[track_caller]
    pub fn with_priority(context: &Context<'d>, priority: i32) -> Result<Self> {
        let mut handle = ptr::null_mut();
        context.cuStreamCreateWithPriority(&mut handle, NON_BLOCKING, priority).ok()?;
        Ok(Stream { driver: context.driver(), handle })
    }

    pub fn handle(&self) -> CUstream {
        self.handle
    }

    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        self.driver.cuStreamSynchronize(self.handle).ok()
    }
}

impl Drop for Stream<'_> {
    fn drop(&mut self) {
        // Fails only after a sticky error, which the case has judged.
        let _ = self.driver.cuStreamDestroy_v2(self.handle);
    }
}

pub struct Event<'d> {
    driver: &'d Driver,
    handle: CUevent,
}

// SAFETY: CUDA handles and device addresses are names that the driver lets every thread use.
unsafe impl Send for Event<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Event<'_> {}

impl<'d> Event<'d> {
    #[track_caller]
    pub fn new(context: &Context<'d>, flags: u32) -> Result<Self> {
        let mut handle = ptr::null_mut();
        context.cuEventCreate(&mut handle, flags).ok()?;
        Ok(Event { driver: context.driver(), handle })
    }

    pub fn handle(&self) -> CUevent {
        self.handle
    }

    #[track_caller]
    pub fn record(&self, stream: CUstream) -> Result<()> {
        self.driver.cuEventRecord(self.handle, stream).ok()
    }

    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        self.driver.cuEventSynchronize(self.handle).ok()
    }

    /// Milliseconds from `self` to `end`.
    #[track_caller]
    pub fn until(&self, end: &Event<'_>) -> Result<f32> {
        let mut milliseconds = 0.0;
        self.driver.cuEventElapsedTime_v2(&mut milliseconds, self.handle, end.handle).ok()?;
        Ok(milliseconds)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // Fails only after a sticky error, which the case has judged.
        let _ = self.driver.cuEventDestroy_v2(self.handle);
    }
}
