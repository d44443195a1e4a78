//! Virtual memory management.

use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};

use softgpu::memory::{AddressSpace, DevicePointer, LARGE_GRANULE, PhysicalId, Protection, RegionKind};

use super::prelude::*;
use crate::entry::location_id;

/// Physical memory is handed out and mapped in these units, as on the card.
const GRANULARITY: u64 = LARGE_GRANULE;
/// Handles of physical memory are numbers that look like no other handle.
const TAG: u64 = 0xebb0_0000_0000;

fn to_handle(id: PhysicalId) -> CUmemGenericAllocationHandle {
    TAG | id.0
}

fn from_handle(handle: CUmemGenericAllocationHandle) -> Result<PhysicalId> {
    require(handle & TAG == TAG)?;
    Ok(PhysicalId(handle & !TAG))
}

fn whole(bytes: usize) -> Result<u64> {
    let bytes = bytes as u64;
    require(bytes > 0 && bytes.is_multiple_of(GRANULARITY))?;
    Ok(bytes)
}

fn check_properties(properties: &CUmemAllocationProp) -> Result<bool> {
    require(properties.type_ == CU_MEM_ALLOCATION_TYPE_PINNED)?;
    if properties.location.type_ != CU_MEM_LOCATION_TYPE_DEVICE {
        return Err(Error::unsupported("physical memory on the host"));
    }
    driver()?.check_device(location_id(&properties.location))?;
    match properties.requestedHandleTypes {
        CU_MEM_HANDLE_TYPE_NONE => Ok(false),
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => Ok(true),
        _ => Err(Error::unsupported("this type of shareable handle")),
    }
}

pub fn cuMemGetAllocationGranularity(
    granularity: Out<usize>,
    prop: In<CUmemAllocationProp>,
    option: CUmemAllocationGranularity_flags,
) -> Result<()> {
    driver()?;
    granularity.check()?;
    check_properties(&prop.get()?)?;
    require(option.0 <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED.0)?;
    granularity.set(GRANULARITY as usize)
}

pub fn cuMemAddressReserve(
    ptr: Out<CUdeviceptr>,
    size: usize,
    alignment: usize,
    addr: CUdeviceptr,
    flags: c_ulonglong,
) -> Result<()> {
    let driver = driver()?;
    ptr.check()?;
    let bytes = whole(size)?;
    require(flags == 0 && (alignment == 0 || alignment.is_power_of_two()))?;
    // Addresses belong to the process, not to a context.
    let owner = softgpu::memory::ContextId(0);
    let hint = Some(addr).filter(|address| *address != 0);
    ptr.set(driver.space.reserve(owner, bytes, alignment as u64, hint)?.0)
}

pub fn cuMemAddressFree(ptr: CUdeviceptr, size: usize) -> Result<()> {
    Ok(driver()?.space.unreserve(DevicePointer(ptr), whole(size)?)?)
}

pub fn cuMemCreate(
    handle: Out<CUmemGenericAllocationHandle>,
    size: usize,
    prop: In<CUmemAllocationProp>,
    flags: c_ulonglong,
) -> Result<()> {
    let driver = driver()?;
    handle.check()?;
    let bytes = whole(size)?;
    let shareable = check_properties(&prop.get()?)?;
    require(flags == 0)?;
    handle.set(to_handle(driver.space.create(bytes, shareable)?))
}

pub fn cuMemRelease(handle: CUmemGenericAllocationHandle) -> Result<()> {
    Ok(driver()?.space.release(from_handle(handle)?)?)
}

pub fn cuMemMap(
    ptr: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: c_ulonglong,
) -> Result<()> {
    let driver = driver()?;
    let bytes = whole(size)?;
    require(flags == 0 && (offset as u64).is_multiple_of(GRANULARITY))?;
    let id = from_handle(handle)?;
    let there = driver.space.physical_bytes(id).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    if (offset as u64).checked_add(bytes).is_none_or(|end| end > there) {
        return Err(Error::new(CUDA_ERROR_NOT_SUPPORTED, "the mapping is larger than its memory"));
    }
    Ok(driver.space.map(DevicePointer(ptr), bytes, id, offset as u64)?)
}

/// Kernels that use the memory are waited for.
pub fn cuMemUnmap(ptr: CUdeviceptr, size: usize) -> Result<()> {
    let driver = driver()?;
    let bytes = whole(size)?;
    if is_reserved_only(&driver.space, ptr, bytes) {
        return Ok(());
    }
    use crate::handles::Object;
    for context in Context::registry().select(|_| true) {
        let _ = context.bring_to_rest();
    }
    Ok(driver.space.unmap(DevicePointer(ptr), bytes)?)
}

/// Whether addresses are reserved and nothing is mapped to any of them.
fn is_reserved_only(space: &AddressSpace, start: u64, bytes: u64) -> bool {
    let reserved = space.lookup(start).is_some_and(|region| {
        region.kind == RegionKind::Reserved && bytes <= region.base.0 + region.bytes - start
    });
    reserved && (start..start + bytes).step_by(GRANULARITY as usize).all(|at| space.access(at).is_none())
}

pub fn cuMemSetAccess(
    ptr: CUdeviceptr,
    size: usize,
    desc: Array<CUmemAccessDesc>,
    count: usize,
) -> Result<()> {
    let driver = driver()?;
    let bytes = whole(size)?;
    require(count > 0)?;
    for access in desc.read(count)? {
        if access.location.type_ != CU_MEM_LOCATION_TYPE_DEVICE {
            return Err(Error::unsupported("access by the host to memory of the device"));
        }
        driver.check_device(location_id(&access.location))?;
        let protection = match access.flags {
            CU_MEM_ACCESS_FLAGS_PROT_NONE => Protection::None,
            CU_MEM_ACCESS_FLAGS_PROT_READ => Protection::Read,
            CU_MEM_ACCESS_FLAGS_PROT_READWRITE => Protection::ReadWrite,
            _ => return refuse(CUDA_ERROR_INVALID_VALUE),
        };
        driver.space.set_access(DevicePointer(ptr), bytes, protection)?;
    }
    Ok(())
}

pub fn cuMemGetAccess(flags: Out<c_ulonglong>, location: In<CUmemLocation>, ptr: CUdeviceptr) -> Result<()> {
    let driver = driver()?;
    flags.check()?;
    driver.check_device(location_id(&location.get()?))?;
    let protection = driver.space.access(ptr).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    flags.set(c_ulonglong::from(match protection {
        Protection::None => CU_MEM_ACCESS_FLAGS_PROT_NONE.0,
        Protection::Read => CU_MEM_ACCESS_FLAGS_PROT_READ.0,
        Protection::ReadWrite => CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0,
    }))
}

pub fn cuMemRetainAllocationHandle(handle: Out<CUmemGenericAllocationHandle>, addr: Address) -> Result<()> {
    let driver = driver()?;
    handle.check()?;
    handle.set(to_handle(driver.space.retain(addr.0)?))
}

pub fn cuMemGetAllocationPropertiesFromHandle(
    prop: Out<CUmemAllocationProp>,
    handle: CUmemGenericAllocationHandle,
) -> Result<()> {
    let driver = driver()?;
    prop.check()?;
    driver.space.physical_bytes(from_handle(handle)?).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let mut properties =
        CUmemAllocationProp { type_: CU_MEM_ALLOCATION_TYPE_PINNED, ..CUmemAllocationProp::default() };
    properties.location.type_ = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.set(properties)
}

pub fn cuMemExportToShareableHandle(
    shareableHandle: Out<c_void>,
    handle: CUmemGenericAllocationHandle,
    handleType: CUmemAllocationHandleType,
    flags: c_ulonglong,
) -> Result<()> {
    let driver = driver()?;
    shareableHandle.check()?;
    require(flags == 0 && handleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)?;
    let descriptor = driver.space.export_descriptor(from_handle(handle)?)?;
    shareableHandle.cast::<c_int>().set(descriptor.into_raw_fd())
}

pub fn cuMemImportFromShareableHandle(
    handle: Out<CUmemGenericAllocationHandle>,
    osHandle: Address,
    shHandleType: CUmemAllocationHandleType,
) -> Result<()> {
    let driver = driver()?;
    handle.check()?;
    require(shHandleType == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)?;
    let descriptor = c_int::try_from(osHandle.0).map_err(|_| CUDA_ERROR_INVALID_VALUE)?;
    let file = borrow(descriptor)?;
    handle.set(to_handle(driver.space.import_descriptor(file)?))
}

/// The program keeps its descriptor; we work with a copy.
fn borrow(descriptor: c_int) -> Result<OwnedFd> {
    // SAFETY: duplicating is harmless whatever the number means; a bad one is refused.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) };
    require(copy >= 0)?;
    // SAFETY: `fcntl` just made the descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}
