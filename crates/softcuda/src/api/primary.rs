//! The primary context.

use super::prelude::*;

pub fn cuDevicePrimaryCtxRetain(pctx: Out<CUcontext>, dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    pctx.check()?;
    driver.check_device(dev)?;
    pctx.set(driver.retain_primary()?.handle.raw())
}

pub fn cuDevicePrimaryCtxRelease(dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    driver.release_primary()
}

pub fn cuDevicePrimaryCtxRelease_v2(dev: CUdevice) -> Result<()> {
    cuDevicePrimaryCtxRelease(dev)
}

pub fn cuDevicePrimaryCtxReset(dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    driver.reset_primary();
    Ok(())
}

pub fn cuDevicePrimaryCtxReset_v2(dev: CUdevice) -> Result<()> {
    cuDevicePrimaryCtxReset(dev)
}

pub fn cuDevicePrimaryCtxSetFlags(dev: CUdevice, flags: c_uint) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    super::context::check_flags(flags)?;
    let mut primary = lock(&driver.primary);
    primary.flags = flags;
    if let Some(context) = &primary.context {
        context.flags.store(flags, std::sync::atomic::Ordering::Relaxed);
    }
    Ok(())
}

pub fn cuDevicePrimaryCtxSetFlags_v2(dev: CUdevice, flags: c_uint) -> Result<()> {
    cuDevicePrimaryCtxSetFlags(dev, flags)
}

pub fn cuDevicePrimaryCtxGetState(dev: CUdevice, flags: Out<c_uint>, active: Out<c_int>) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    let primary = lock(&driver.primary);
    flags.set(primary.flags)?;
    active.set(c_int::from(primary.context.is_some()))
}
