//! Device memory.

use softgpu::memory::{DevicePointer, RegionKind};

use super::prelude::*;
use crate::state::{capture, graph_memory, pool};

pub fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) -> Result<()> {
    let context = current::context()?;
    free.set_if_wanted(context.driver.memory_free() as usize);
    total.set_if_wanted(context.driver.properties.memory_bytes as usize);
    Ok(())
}

pub fn cuMemAlloc_v2(dptr: Out<CUdeviceptr>, bytesize: usize) -> Result<()> {
    let context = current::context()?;
    dptr.check()?;
    require(bytesize > 0)?;
    capture::forbid_unsafe_call()?;
    dptr.set(allocate(&context, bytesize as u64)?)
}

fn allocate(context: &Context, bytes: u64) -> Result<u64> {
    use softgpu::memory::Error::{InvalidSize, OutOfMemory};
    match context.driver.space.allocate(context.owner(), bytes) {
        Ok(pointer) => Ok(pointer.0),
        // A size that cannot even be rounded is simply too much.
        Err(InvalidSize { .. } | OutOfMemory { .. }) => refuse(CUDA_ERROR_OUT_OF_MEMORY),
        Err(error) => Err(error.into()),
    }
}

/// Rows begin at multiples of this, as on the card.
const PITCH: usize = 512;

pub fn cuMemAllocPitch_v2(
    dptr: Out<CUdeviceptr>,
    pPitch: Out<usize>,
    WidthInBytes: usize,
    Height: usize,
    ElementSizeBytes: c_uint,
) -> Result<()> {
    let context = current::context()?;
    dptr.check()?;
    pPitch.check()?;
    require([4, 8, 16].contains(&ElementSizeBytes) && WidthInBytes > 0 && Height > 0)?;
    capture::forbid_unsafe_call()?;
    let pitch = WidthInBytes.checked_next_multiple_of(PITCH).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    let bytes = pitch.checked_mul(Height).ok_or(CUDA_ERROR_OUT_OF_MEMORY)?;
    dptr.set(allocate(&context, bytes as u64)?)?;
    pPitch.set(pitch)
}

/// Freeing waits for what is running, as the real call does: a kernel may still use the memory.
pub fn cuMemFree_v2(dptr: CUdeviceptr) -> Result<()> {
    let context = current::context()?;
    capture::forbid_unsafe_call()?;
    if dptr == 0 {
        return Ok(());
    }
    if graph_memory::contains(dptr) {
        return Ok(());
    }
    let driver = context.driver;
    let owned = driver.space.lookup(dptr).filter(|region| region.base.0 == dptr);
    let freeable =
        owned.is_some_and(|region| matches!(region.kind, RegionKind::Device | RegionKind::Managed));
    require(freeable && !pool::is_leaving(dptr))?;
    context.bring_to_rest()?;
    Ok(pool::free(&driver.space, dptr)?)
}

pub fn cuMemGetAddressRange_v2(pbase: Out<CUdeviceptr>, psize: Out<usize>, dptr: CUdeviceptr) -> Result<()> {
    let context = current::context()?;
    // Whoever wants no answer gets no refusal either.
    if pbase.is_null() && psize.is_null() {
        return Ok(());
    }
    match context.driver.space.lookup(dptr) {
        Some(region) if region.kind != RegionKind::Reserved => {
            pbase.set_if_wanted(region.base.0);
            psize.set_if_wanted(region.bytes as usize);
            Ok(())
        }
        _ => refuse(CUDA_ERROR_NOT_FOUND),
    }
}

pub fn cuMemAllocManaged(dptr: Out<CUdeviceptr>, bytesize: usize, flags: c_uint) -> Result<()> {
    let context = current::context()?;
    dptr.check()?;
    let attach = [CU_MEM_ATTACH_GLOBAL.0, CU_MEM_ATTACH_HOST.0];
    require(bytesize > 0 && attach.contains(&flags))?;
    capture::forbid_unsafe_call()?;
    let DevicePointer(address) = context.driver.space.allocate_managed(context.owner(), bytesize as u64)?;
    dptr.set(address)
}

/// Managed memory is everywhere at once here, so there is nothing to move.
pub fn cuMemPrefetchAsync(
    devPtr: CUdeviceptr,
    count: usize,
    dstDevice: CUdevice,
    hStream: Handle<Stream>,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    require(dstDevice == DEVICE || dstDevice == CU_DEVICE_CPU)?;
    check_managed(&*stream.context()?, devPtr, count)
}

pub fn cuMemPrefetchAsync_v2(
    devPtr: CUdeviceptr,
    count: usize,
    _location: CUmemLocation,
    flags: c_uint,
    hStream: Handle<Stream>,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    require(flags == 0)?;
    check_managed(&*stream.context()?, devPtr, count)
}

pub fn cuMemAdvise(devPtr: CUdeviceptr, count: usize, advice: CUmem_advise, _device: CUdevice) -> Result<()> {
    require((CU_MEM_ADVISE_SET_READ_MOSTLY.0..=CU_MEM_ADVISE_UNSET_ACCESSED_BY.0).contains(&advice.0))?;
    check_managed(&*current::context()?, devPtr, count)
}

pub fn cuMemAdvise_v2(
    devPtr: CUdeviceptr,
    count: usize,
    advice: CUmem_advise,
    _location: CUmemLocation,
) -> Result<()> {
    cuMemAdvise(devPtr, count, advice, DEVICE)
}

fn check_managed(context: &Context, address: u64, bytes: usize) -> Result<()> {
    require(bytes > 0)?;
    let region = context.driver.space.lookup(address).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let fits = bytes as u64 <= region.base.0 + region.bytes - address;
    require(region.kind == RegionKind::Managed && fits)
}
