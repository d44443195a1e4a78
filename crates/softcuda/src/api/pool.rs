//! Stream-ordered memory and its pools.

use std::sync::atomic::Ordering::Relaxed;

use softgpu::memory::RegionKind;

use super::prelude::*;
use crate::state::capture;
use crate::state::graph_memory::{self, GraphMemory};
use crate::state::operation::Operation;
use crate::state::pool::{self, Pool};

pub fn cuMemAllocAsync(dptr: Out<CUdeviceptr>, bytesize: usize, hStream: Handle<Stream>) -> Result<()> {
    driver()?;
    let pool = Arc::clone(&lock(&driver()?.current_pool));
    allocate(&dptr, bytesize, &pool, hStream)
}

pub fn cuMemAllocFromPoolAsync(
    dptr: Out<CUdeviceptr>,
    bytesize: usize,
    pool: Handle<Pool>,
    hStream: Handle<Stream>,
) -> Result<()> {
    driver()?;
    allocate(&dptr, bytesize, &pool.get()?, hStream)
}

fn allocate(out: &Out<CUdeviceptr>, bytes: usize, pool: &Arc<Pool>, stream: Handle<Stream>) -> Result<()> {
    let stream = Stream::find(stream)?;
    let context = stream.context()?;
    out.check()?;
    if bytes == 0 {
        return out.set(0);
    }
    if let Some(capture) = capture::of(&stream, &context)? {
        let memory = GraphMemory::allocate(context.driver, bytes as u64)?;
        out.set(memory.address())?;
        return capture.add(&stream, Operation::Allocate(memory));
    }
    out.set(pool.allocate(context.driver, &stream, bytes as u64)?)
}

pub fn cuMemFreeAsync(dptr: CUdeviceptr, hStream: Handle<Stream>) -> Result<()> {
    let stream = Stream::find(hStream)?;
    let context = stream.context()?;
    let capture = capture::of(&stream, &context)?;
    if dptr == 0 {
        return Ok(());
    }
    if graph_memory::contains(dptr) {
        // It belongs to its graph, and goes with it.
        return capture.map_or(Ok(()), |capture| capture.add(&stream, Operation::Free(dptr)));
    }
    let region = context.driver.space.lookup(dptr).filter(|region| region.base.0 == dptr);
    require(capture.is_none() && region.is_some_and(|region| region.kind == RegionKind::Device))?;
    require(pool::leave(dptr))?;
    stream.enqueue(Operation::Free(dptr)).map(drop)
}

pub fn cuMemPoolCreate(pool: Out<CUmemoryPool>, poolProps: In<CUmemPoolProps>) -> Result<()> {
    let driver = driver()?;
    pool.check()?;
    let properties = poolProps.get()?;
    require(properties.allocType == CU_MEM_ALLOCATION_TYPE_PINNED)?;
    if properties.location.type_ != CU_MEM_LOCATION_TYPE_DEVICE
        || properties.handleTypes != CU_MEM_HANDLE_TYPE_NONE
    {
        return Err(Error::unsupported("a memory pool that is shared or on the host"));
    }
    driver.check_device(crate::entry::location_id(&properties.location))?;
    pool.set(Pool::create(properties.maxSize as u64).handle.raw())
}

pub fn cuMemPoolDestroy(pool: Handle<Pool>) -> Result<()> {
    let driver = driver()?;
    let found = pool.get()?;
    require(found.handle != driver.default_pool.handle)?;
    pool.take()?;
    let mut current = lock(&driver.current_pool);
    if current.handle == found.handle {
        *current = Arc::clone(&driver.default_pool);
    }
    Ok(())
}

/// Nothing is kept back that could be trimmed.
pub fn cuMemPoolTrimTo(pool: Handle<Pool>, _minBytesToKeep: usize) -> Result<()> {
    driver()?;
    pool.get().map(drop)
}

pub fn cuMemPoolSetAttribute(pool: Handle<Pool>, attr: CUmemPool_attribute, value: Address) -> Result<()> {
    driver()?;
    let pool = pool.get()?;
    require(!value.is_null())?;
    let number = || value.values::<u64>().at(0);
    match attr {
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => pool.release_threshold.store(number(), Relaxed),
        CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH | CU_MEMPOOL_ATTR_USED_MEM_HIGH => {
            // A high-water mark can only be brought down to where the water is.
            require(number() == 0)?;
            pool.used_high.store(pool.used.load(Relaxed), Relaxed);
        }
        attr => match reuse(attr) {
            Some(place) => pool.reuse[place].store(value.values::<i32>().at(0), Relaxed),
            None => return refuse(CUDA_ERROR_INVALID_VALUE),
        },
    }
    Ok(())
}

pub fn cuMemPoolGetAttribute(
    pool: Handle<Pool>,
    attr: CUmemPool_attribute,
    value: Out<c_void>,
) -> Result<()> {
    driver()?;
    let pool = pool.get()?;
    value.check()?;
    let number = value.cast::<u64>();
    match attr {
        CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => number.set(pool.release_threshold.load(Relaxed)),
        CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT | CU_MEMPOOL_ATTR_USED_MEM_CURRENT => {
            number.set(pool.used.load(Relaxed))
        }
        CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH | CU_MEMPOOL_ATTR_USED_MEM_HIGH => {
            number.set(pool.used_high.load(Relaxed))
        }
        attr => match reuse(attr) {
            Some(place) => value.cast::<i32>().set(pool.reuse[place].load(Relaxed)),
            None => refuse(CUDA_ERROR_INVALID_VALUE),
        },
    }
}

fn reuse(attribute: CUmemPool_attribute) -> Option<usize> {
    let policies = [
        CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
        CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
    ];
    policies.iter().position(|policy| *policy == attribute)
}

pub fn cuMemPoolSetAccess(pool: Handle<Pool>, map: Array<CUmemAccessDesc>, count: usize) -> Result<()> {
    let driver = driver()?;
    pool.get()?;
    for access in map.read(count)? {
        driver.check_device(crate::entry::location_id(&access.location))?;
        // The device that the memory is on cannot be shut out.
        require(access.flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)?;
    }
    Ok(())
}

pub fn cuMemPoolGetAccess(
    flags: Out<CUmemAccess_flags>,
    memPool: Handle<Pool>,
    location: In<CUmemLocation>,
) -> Result<()> {
    let driver = driver()?;
    memPool.get()?;
    driver.check_device(crate::entry::location_id(&location.get()?))?;
    flags.set(CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
}

pub fn cuDeviceGetDefaultMemPool(pool_out: Out<CUmemoryPool>, dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    pool_out.set(driver.default_pool.handle.raw())
}

/// Graphs keep their memory until they go.
pub fn cuDeviceGraphMemTrim(device: CUdevice) -> Result<()> {
    driver()?.check_device(device)
}

pub fn cuDeviceGetMemPool(pool: Out<CUmemoryPool>, dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    pool.set(lock(&driver.current_pool).handle.raw())
}

pub fn cuDeviceSetMemPool(dev: CUdevice, pool: Handle<Pool>) -> Result<()> {
    let driver = driver()?;
    driver.check_device(dev)?;
    *lock(&driver.current_pool) = pool.get()?;
    Ok(())
}
