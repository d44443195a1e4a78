//! Virtual memory management: addresses, memory and the mapping between them, each on its own.

use crate::answer::Code;
use crate::cases::memory::device_location;
use crate::context::Context;
use crate::driver::*;
use crate::module::Module;
use crate::suite::Case;
use crate::{args, compare, source};
use anyhow::{Result, ensure};
use std::ptr;

pub const CASES: &[Case] = &[
    Case::new("vmm/reserve_create_map_and_use", whole_way),
    Case::new("vmm/two_addresses_for_one_memory", alias),
    Case::new("vmm/mapping_survives_release_of_the_handle", released),
    Case::new("vmm/memory_can_move", remap),
    Case::new("vmm/copy_without_access_is_refused", copy_without_access),
    Case::new("vmm/kernel_without_access_faults", kernel_without_access).spoiling(),
    Case::new("vmm/kernel_after_unmap_faults", kernel_after_unmap).spoiling(),
    Case::new("vmm/refusals", refusals),
];

fn properties(context: &Context<'_>) -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CU_MEM_ALLOCATION_TYPE_PINNED,
        location: device_location(context.device()),
        ..Default::default()
    }
}

fn granularity(context: &Context<'_>) -> Result<usize> {
    let mut bytes = 0;
    let option = CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    context.cuMemGetAllocationGranularity(&mut bytes, &properties(context), option).ok()?;
    ensure!(bytes.is_power_of_two() && bytes >= 4096, "a granularity of {bytes}");
    Ok(bytes)
}

fn reserve(context: &Context<'_>, bytes: usize) -> Result<CUdeviceptr> {
    let mut address = 0;
    context.cuMemAddressReserve(&mut address, bytes, 0, 0, 0).ok()?;
    Ok(address)
}

fn create(context: &Context<'_>, bytes: usize) -> Result<CUmemGenericAllocationHandle> {
    let mut handle = 0;
    context.cuMemCreate(&mut handle, bytes, &properties(context), 0).ok()?;
    Ok(handle)
}

fn allow(context: &Context<'_>, address: CUdeviceptr, bytes: usize) -> Result<()> {
    let access = CUmemAccessDesc {
        location: device_location(context.device()),
        flags: CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    context.cuMemSetAccess(address, bytes, &access, 1).ok()
}

/// Doubles each of `count` floats in place.
fn double(context: &Context<'_>, address: CUdeviceptr, count: i32) -> Result<()> {
    let module = Module::load(context, source!("vector_add").usual())?;
    module.function("vector_add")?.run(8, 128, args![address, address, address, count])
}

fn floats(context: &Context<'_>, address: CUdeviceptr, count: usize) -> Result<Vec<f32>> {
    let mut values = vec![0f32; count];
    context.cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), address, 4 * count).ok()?;
    Ok(values)
}

fn whole_way(context: &Context<'_>) -> Result<()> {
    let grain = granularity(context)?;
    let address = reserve(context, 4 * grain)?;
    ensure!(address != 0 && address % grain as u64 == 0, "reserved {address:#x}");
    let handle = create(context, 2 * grain)?;
    // Part of the reservation, not from its beginning.
    let at = address + grain as u64;
    context.cuMemMap(at, 2 * grain, 0, handle, 0).ok()?;
    allow(context, at, 2 * grain)?;
    let mut flags = 0;
    context.cuMemGetAccess(&mut flags, &device_location(context.device()), at).ok()?;
    ensure!(flags == u64::from(CU_MEM_ACCESS_FLAGS_PROT_READWRITE.0), "access {flags}");
    // Across the boundary between the two granules.
    let middle = at + grain as u64 - 2000;
    let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    context.cuMemcpyHtoD_v2(middle, values.as_ptr().cast(), 4000).ok()?;
    double(context, middle, 1000)?;
    let want: Vec<f32> = values.iter().map(|x| 2.0 * x).collect();
    compare::equal(&floats(context, middle, 1000)?, &want)?;
    let mut found = CUmemAllocationProp::default();
    context.cuMemGetAllocationPropertiesFromHandle(&mut found, handle).ok()?;
    ensure!(found.type_ == CU_MEM_ALLOCATION_TYPE_PINNED);
    context.cuMemUnmap(at, 2 * grain).ok()?;
    context.cuMemRelease(handle).ok()?;
    context.cuMemAddressFree(address, 4 * grain).ok()
}

fn alias(context: &Context<'_>) -> Result<()> {
    let grain = granularity(context)?;
    let (one, two) = (reserve(context, grain)?, reserve(context, grain)?);
    let handle = create(context, grain)?;
    for address in [one, two] {
        context.cuMemMap(address, grain, 0, handle, 0).ok()?;
        allow(context, address, grain)?;
    }
    let values = [1.0f32, 2.0, 3.0];
    context.cuMemcpyHtoD_v2(one, values.as_ptr().cast(), 12).ok()?;
    compare::equal(&floats(context, two, 3)?, &values)?;
    double(context, two, 3)?;
    compare::equal(&floats(context, one, 3)?, &[2.0, 4.0, 6.0])?;
    for address in [one, two] {
        context.cuMemUnmap(address, grain).ok()?;
        context.cuMemAddressFree(address, grain).ok()?;
    }
    context.cuMemRelease(handle).ok()
}

fn released(context: &Context<'_>) -> Result<()> {
    let grain = granularity(context)?;
    let address = reserve(context, grain)?;
    let handle = create(context, grain)?;
    context.cuMemMap(address, grain, 0, handle, 0).ok()?;
    context.cuMemRelease(handle).ok()?;
    allow(context, address, grain)?;
    context.cuMemsetD32_v2(address, 1.5f32.to_bits(), 10).ok()?;
    double(context, address, 10)?;
    compare::equal(&floats(context, address, 10)?, &[3.0; 10])?;
    // The mapping leads back to the memory.
    let mut again = 0;
    context.cuMemRetainAllocationHandle(&mut again, address as *mut _).ok()?;
    context.cuMemUnmap(address, grain).ok()?;
    context.cuMemMap(address, grain, 0, again, 0).ok()?;
    allow(context, address, grain)?;
    compare::equal(&floats(context, address, 10)?, &[3.0; 10])?;
    context.cuMemUnmap(address, grain).ok()?;
    context.cuMemRelease(again).ok()?;
    context.cuMemAddressFree(address, grain).ok()
}

fn remap(context: &Context<'_>) -> Result<()> {
    let grain = granularity(context)?;
    let address = reserve(context, grain)?;
    let (one, two) = (create(context, grain)?, create(context, grain)?);
    for (handle, value) in [(one, 1.0f32), (two, 2.0)] {
        context.cuMemMap(address, grain, 0, handle, 0).ok()?;
        allow(context, address, grain)?;
        context.cuMemsetD32_v2(address, value.to_bits(), 4).ok()?;
        context.synchronize()?;
        context.cuMemUnmap(address, grain).ok()?;
    }
    for (handle, value) in [(one, 1.0f32), (two, 2.0)] {
        context.cuMemMap(address, grain, 0, handle, 0).ok()?;
        allow(context, address, grain)?;
        compare::equal(&floats(context, address, 4)?, &[value; 4])?;
        context.cuMemUnmap(address, grain).ok()?;
        context.cuMemRelease(handle).ok()?;
    }
    context.cuMemAddressFree(address, grain).ok()
}

fn copy_without_access(context: &Context<'_>) -> Result<()> {
    let grain = granularity(context)?;
    let address = reserve(context, grain)?;
    let value = 5u32;
    context.cuMemcpyHtoD_v2(address, (&raw const value).cast(), 4).is(Code::INVALID_VALUE)?;
    let handle = create(context, grain)?;
    context.cuMemMap(address, grain, 0, handle, 0).ok()?;
    context.cuMemcpyHtoD_v2(address, (&raw const value).cast(), 4).is(Code::INVALID_VALUE)
}

fn kernel_without_access(context: &Context<'_>) -> Result<()> {
    let grain = granularity(context)?;
    let module = Module::load(context, source!("faults").usual())?;
    let store = module.function("store_at")?;
    let address = reserve(context, grain)?;
    let handle = create(context, grain)?;
    context.cuMemMap(address, grain, 0, handle, 0).ok()?;
    store.launch(1, 1, 0, ptr::null_mut(), args![address, 1u32])?;
    context.cuCtxSynchronize().is(Code::ILLEGAL_ADDRESS)
}

fn kernel_after_unmap(context: &Context<'_>) -> Result<()> {
    let grain = granularity(context)?;
    let module = Module::load(context, source!("faults").usual())?;
    let store = module.function("store_at")?;
    let address = reserve(context, grain)?;
    let handle = create(context, grain)?;
    context.cuMemMap(address, grain, 0, handle, 0).ok()?;
    allow(context, address, grain)?;
    store.run(1, 1, args![address, 1u32])?;
    context.cuMemUnmap(address, grain).ok()?;
    store.launch(1, 1, 0, ptr::null_mut(), args![address, 1u32])?;
    context.cuCtxSynchronize().is(Code::ILLEGAL_ADDRESS)
}

fn refusals(context: &Context<'_>) -> Result<()> {
    let grain = granularity(context)?;
    let mut handle = 0;
    let properties = properties(context);
    context.cuMemCreate(&mut handle, grain + 1, &properties, 0).is(Code::INVALID_VALUE)?;
    context.cuMemCreate(&mut handle, 0, &properties, 0).is(Code::INVALID_VALUE)?;
    context.cuMemCreate(&mut handle, grain, ptr::null(), 0).is(Code::INVALID_VALUE)?;
    let wrong = CUmemAllocationProp { type_: CUmemAllocationType_enum(99), ..properties };
    context.cuMemCreate(&mut handle, grain, &wrong, 0).is(Code::INVALID_VALUE)?;
    let mut address = 0;
    context.cuMemAddressReserve(&mut address, 0, 0, 0, 0).is(Code::INVALID_VALUE)?;
    context.cuMemAddressReserve(&mut address, grain, 3, 0, 0).is(Code::INVALID_VALUE)?;
    context.cuMemAddressReserve(&mut address, 2 * grain, 0, 0, 0).ok()?;
    handle = create(context, grain)?;
    context.cuMemMap(address, 2 * grain, 0, handle, 0).is(Code::NOT_SUPPORTED)?;
    context.cuMemMap(address + 1, grain, 0, handle, 0).is(Code::INVALID_VALUE)?;
    context.cuMemMap(address, grain, 0, handle, 0).ok()?;
    // Neither over a mapping nor away from under one.
    context.cuMemMap(address, grain, 0, handle, 0).is(Code::INVALID_VALUE)?;
    context.cuMemAddressFree(address, 2 * grain).is(Code::INVALID_VALUE)?;
    context.cuMemUnmap(address, grain).ok()?;
    // Where nothing is mapped there is nothing to refuse.
    context.cuMemUnmap(address, grain).ok()?;
    context.cuMemAddressFree(address, grain).is(Code::INVALID_VALUE)?;
    context.cuMemAddressFree(address, 2 * grain).ok()?;
    context.cuMemRelease(handle).ok()?;
    context.cuMemRelease(handle).is(Code::INVALID_VALUE)
}
