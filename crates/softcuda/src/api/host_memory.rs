//! Host memory: page-locked and registered.

use std::collections::BTreeMap;
use std::sync::Mutex;

use softgpu::memory::{DevicePointer, Region, RegionKind};

use super::prelude::*;
use crate::state::capture;

pub fn cuMemHostAlloc(pp: Out<*mut c_void>, bytesize: usize, Flags: c_uint) -> Result<()> {
    let context = current::context()?;
    pp.check()?;
    let known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    require(Flags & !known == 0)?;
    allocate(&context, &pp, bytesize, Flags)
}

pub fn cuMemAllocHost_v2(pp: Out<*mut c_void>, bytesize: usize) -> Result<()> {
    let context = current::context()?;
    pp.check()?;
    allocate(&context, &pp, bytesize, 0)
}

/// What host memory was allocated with, where that was more than nothing.
static FLAGS: Mutex<BTreeMap<u64, c_uint>> = Mutex::new(BTreeMap::new());

fn allocate(context: &Context, out: &Out<*mut c_void>, bytes: usize, flags: c_uint) -> Result<()> {
    capture::forbid_unsafe_call()?;
    if bytes == 0 {
        return out.set(std::ptr::null_mut());
    }
    let pointer = context.driver.space.allocate_host(context.owner(), bytes as u64)?;
    if flags != 0 {
        lock(&FLAGS).insert(pointer.0, flags);
    }
    out.set(Address(pointer.0).pointer())
}

pub fn cuMemFreeHost(p: Address) -> Result<()> {
    let context = current::context()?;
    capture::forbid_unsafe_call()?;
    if p.is_null() {
        return Ok(());
    }
    context.bring_to_rest()?;
    context.driver.space.free_host(DevicePointer(p.0))?;
    lock(&FLAGS).remove(&p.0);
    Ok(())
}

pub fn cuMemHostGetDevicePointer_v2(pdptr: Out<CUdeviceptr>, p: Address, Flags: c_uint) -> Result<()> {
    let context = current::context()?;
    require(Flags == 0)?;
    pdptr.check()?;
    require(host_region(&context, p)?.kind != RegionKind::Managed)?;
    pdptr.set(p.0)
}

fn host_region(context: &Context, address: Address) -> Result<Region> {
    let kinds = [RegionKind::Pinned, RegionKind::Registered, RegionKind::Managed];
    let region = context.driver.space.lookup(address.0).filter(|region| kinds.contains(&region.kind));
    region.ok_or(CUDA_ERROR_INVALID_VALUE.into())
}

pub fn cuMemHostGetFlags(pFlags: Out<c_uint>, p: Address) -> Result<()> {
    let context = current::context()?;
    pFlags.check()?;
    let region = host_region(&context, p)?;
    // With unified addressing all host memory is mapped, whatever was asked for.
    let asked = lock(&FLAGS).get(&region.base.0).copied().unwrap_or(0);
    pFlags.set(asked | CU_MEMHOSTALLOC_DEVICEMAP)
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
    require(!p.is_null())?;
    capture::forbid_unsafe_call()?;
    let space = &context.driver.space;
    let middle = space.lookup(p.0).is_some_and(|region| region.base.0 != p.0);
    require(!middle)?;
    context.bring_to_rest()?;
    Ok(space.unregister(p.0)?)
}
