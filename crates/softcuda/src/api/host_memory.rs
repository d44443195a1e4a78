//! Host memory: page-locked and registered.

use softgpu::memory::{DevicePointer, RegionKind};

use super::prelude::*;
use crate::state::capture;

pub fn cuMemHostAlloc(pp: Out<*mut c_void>, bytesize: usize, Flags: c_uint) -> Result<()> {
    let context = current::context()?;
    pp.check()?;
    let known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    require(Flags & !known == 0)?;
    allocate(&context, &pp, bytesize)
}

pub fn cuMemAllocHost_v2(pp: Out<*mut c_void>, bytesize: usize) -> Result<()> {
    let context = current::context()?;
    pp.check()?;
    allocate(&context, &pp, bytesize)
}

fn allocate(context: &Context, out: &Out<*mut c_void>, bytes: usize) -> Result<()> {
    require(bytes > 0)?;
    capture::forbid_unsafe_call()?;
    let pointer = context.driver.space.allocate_host(context.owner(), bytes as u64)?;
    out.set(Address(pointer.0).pointer())
}

pub fn cuMemFreeHost(p: Address) -> Result<()> {
    let context = current::context()?;
    capture::forbid_unsafe_call()?;
    context.wait_for_all()?;
    Ok(context.driver.space.free_host(DevicePointer(p.0))?)
}

pub fn cuMemHostGetDevicePointer_v2(pdptr: Out<CUdeviceptr>, p: Address, Flags: c_uint) -> Result<()> {
    let context = current::context()?;
    require(Flags == 0)?;
    pdptr.check()?;
    is_host(&context, p)?;
    pdptr.set(p.0)
}

fn is_host(context: &Context, address: Address) -> Result<RegionKind> {
    match context.driver.space.lookup(address.0).map(|region| region.kind) {
        Some(kind @ (RegionKind::Pinned | RegionKind::Registered | RegionKind::Managed)) => Ok(kind),
        _ => refuse(CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn cuMemHostGetFlags(pFlags: Out<c_uint>, p: Address) -> Result<()> {
    let context = current::context()?;
    pFlags.check()?;
    is_host(&context, p)?;
    // With unified addressing all host memory is portable and mapped, whatever was asked for.
    pFlags.set(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)
}

pub fn cuMemHostRegister_v2(p: Address, bytesize: usize, Flags: c_uint) -> Result<()> {
    let context = current::context()?;
    let known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY;
    require(Flags & !(known | CU_MEMHOSTREGISTER_IOMEMORY) == 0 && !p.is_null() && bytesize > 0)?;
    if Flags & CU_MEMHOSTREGISTER_IOMEMORY != 0 {
        return Err(Error::unsupported("registering memory of a device"));
    }
    capture::forbid_unsafe_call()?;
    let read_only = Flags & CU_MEMHOSTREGISTER_READ_ONLY != 0;
    Ok(context.driver.space.register(context.owner(), p.0, bytesize as u64, read_only)?)
}

pub fn cuMemHostUnregister(p: Address) -> Result<()> {
    let context = current::context()?;
    capture::forbid_unsafe_call()?;
    context.wait_for_all()?;
    Ok(context.driver.space.unregister(p.0)?)
}
