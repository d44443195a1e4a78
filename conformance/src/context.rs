//! A context of its own for every case.

use crate::driver::{CUcontext, CUdevice, Driver};
use anyhow::Result;
use std::ops::Deref;
use std::ptr;

/// Whether cases have the primary context of the device, as programs of the runtime do, instead of one that is made for them; by whichever
/// value.
pub const PRIMARY: &str = "EBB_CONFORMANCE_PRIMARY";

/// A context, current on this thread, on device 0: a created one, or as [`PRIMARY`] says. Every driver call can be made through it.
pub struct Context<'d> {
    driver: &'d Driver,
    device: CUdevice,
    handle: CUcontext,
    primary: bool,
}

// SAFETY: CUDA handles and device addresses are names that the driver lets every thread use.
unsafe impl Send for Context<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Context<'_> {}

impl<'d> Context<'d> {
    /// Initialises the driver and makes a context with default flags, or retains the primary one.
    pub fn new(driver: &'d Driver) -> Result<Context<'d>> {
        driver.cuInit(0).ok()?;
        let mut device = 0;
        driver.cuDeviceGet(&mut device, 0).ok()?;
        let mut handle = ptr::null_mut();
        let primary = std::env::var_os(PRIMARY).is_some();
        if primary {
            driver.cuDevicePrimaryCtxRetain(&mut handle, device).ok()?;
            driver.cuCtxSetCurrent(handle).ok()?;
        } else {
            driver.cuCtxCreate_v2(&mut handle, 0, device).ok()?;
        }
        Ok(Context { driver, device, handle, primary })
    }

    pub fn driver(&self) -> &'d Driver {
        self.driver
    }

    pub fn device(&self) -> CUdevice {
        self.device
    }

    pub fn handle(&self) -> CUcontext {
        self.handle
    }

    /// Makes it current on the calling thread too.
    #[track_caller]
    pub fn enter(&self) -> Result<()> {
        self.driver.cuCtxSetCurrent(self.handle).ok()
    }

    /// Waits for everything submitted in this context.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        self.driver.cuCtxSynchronize().ok()
    }
}

impl Deref for Context<'_> {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.driver
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // A context that a case has deliberately broken answers with its sticky error; the case has judged that.
        let _ = match self.primary {
            true => self.driver.cuDevicePrimaryCtxRelease_v2(self.device),
            false => self.driver.cuCtxDestroy_v2(self.handle),
        };
    }
}
