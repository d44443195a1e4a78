//! Memory: allocation, copies in one and two dimensions, memset, host memory, pools, and what pointers know.

use crate::answer::Code;
use crate::context::Context;
use crate::driver::*;
use crate::memory::{Buffer, Pinned};
use crate::module::Module;
use crate::numbers::Random;
use crate::stream::{NON_BLOCKING, Stream};
use crate::suite::{Case, skip};
use crate::{args, compare, source};
use anyhow::{Result, ensure};
use std::ffi::c_void;
use std::ptr;

pub const CASES: &[Case] = &[
    Case::new("memory/allocate_and_free", allocate),
    Case::new("memory/too_much_is_refused", too_much),
    Case::new("memory/free_twice_and_inside", free_wrongly).quiet(),
    Case::new("memory/info_counts", info).quiet(),
    Case::new("memory/copies_at_odd_places", odd_copies),
    Case::new("memory/memset_of_every_width", memsets),
    Case::new("memory/memset_2d", memset_2d),
    Case::new("memory/copy_2d", copy_2d),
    Case::new("memory/pitched_allocation", pitched),
    Case::new("memory/copy_out_of_bounds_is_refused", copy_out_of_bounds).quiet(),
    Case::new("memory/unified_copy_knows_directions", unified_copy),
    Case::new("memory/async_copies", async_copies),
    Case::new("memory/host_mapped", host_mapped),
    Case::new("memory/host_registered", host_registered),
    Case::new("memory/managed", managed),
    Case::new("memory/stream_ordered_allocation", stream_ordered),
    Case::new("memory/pools", pools),
    Case::new("memory/pointer_attributes", pointer_attributes),
    Case::new("memory/address_range", address_range),
];

fn allocate(context: &Context<'_>) -> Result<()> {
    let mut addresses = Vec::new();
    for bytes in [1usize, 4, 100, 4096, 1 << 20, 33 << 20] {
        let mut address = 0;
        context.cuMemAlloc_v2(&mut address, bytes).ok()?;
        ensure!(address != 0 && address % 256 == 0, "{bytes} bytes at {address:#x}");
        context.cuMemsetD8_v2(address + bytes as u64 - 1, 7, 1).ok()?;
        addresses.push((address, bytes as u64));
    }
    addresses.sort_unstable();
    let apart = addresses.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0);
    ensure!(apart, "allocations overlap: {addresses:x?}");
    for (address, _) in addresses {
        context.cuMemFree_v2(address).ok()?;
    }
    let mut address = 0;
    context.cuMemAlloc_v2(&mut address, 0).is(Code::INVALID_VALUE)?;
    context.cuMemAlloc_v2(ptr::null_mut(), 16).is(Code::INVALID_VALUE)?;
    // Freeing nothing is allowed, as in C.
    context.cuMemFree_v2(0).ok()
}

fn too_much(context: &Context<'_>) -> Result<()> {
    let mut address = 0;
    context.cuMemAlloc_v2(&mut address, 1 << 45).is(Code::OUT_OF_MEMORY)?;
    context.cuMemAlloc_v2(&mut address, usize::MAX).is(Code::OUT_OF_MEMORY)?;
    let mut total = 0;
    context.cuDeviceTotalMem_v2(&mut total, context.device()).ok()?;
    context.cuMemAlloc_v2(&mut address, total + 1).is(Code::OUT_OF_MEMORY)?;
    // The error does not stick.
    context.cuMemAlloc_v2(&mut address, 1 << 20).ok()?;
    context.cuMemFree_v2(address).ok()
}

fn free_wrongly(context: &Context<'_>) -> Result<()> {
    let mut address = 0;
    context.cuMemAlloc_v2(&mut address, 4096).ok()?;
    context.cuMemFree_v2(address + 256).is(Code::INVALID_VALUE)?;
    context.cuMemFree_v2(address).ok()?;
    context.cuMemFree_v2(address).is(Code::INVALID_VALUE)?;
    context.cuMemFree_v2(0x1234).is(Code::INVALID_VALUE)
}

fn info(context: &Context<'_>) -> Result<()> {
    let read = || -> Result<(usize, usize)> {
        let (mut free, mut total) = (0, 0);
        context.cuMemGetInfo_v2(&mut free, &mut total).ok()?;
        Ok((free, total))
    };
    // Other processes may allocate meanwhile, so the amount is large and the judgement coarse.
    let (before, total) = read()?;
    let buffer = Buffer::<u8>::new(context, 512 << 20);
    let Ok(buffer) = buffer else { return skip("no 512 MiB of free device memory") };
    let (during, _) = read()?;
    drop(buffer);
    let (after, _) = read()?;
    ensure!(before <= total, "{before} free of {total}");
    ensure!(
        before.saturating_sub(during) >= 256 << 20,
        "{before} free, then {during} with 512 MiB more in use"
    );
    ensure!(
        after.saturating_sub(during) >= 256 << 20,
        "{during} free, then {after} with 512 MiB less in use"
    );
    Ok(())
}

fn odd_copies(context: &Context<'_>) -> Result<()> {
    let mut random = Random::new(21);
    let data = random.many(10_000, |r| r.u32() as u8);
    let buffer = context.zeros::<u8>(20_000)?;
    let mut want = vec![0u8; 20_000];
    for _ in 0..60 {
        let (from, to) = (random.below(5000) as usize, random.below(15_000) as usize);
        let len = random.below(4000) as usize + 1;
        context.cuMemcpyHtoD_v2(buffer.address() + to as u64, data[from..].as_ptr().cast(), len).ok()?;
        want[to..to + len].copy_from_slice(&data[from..from + len]);
    }
    // Within the device, between ranges that do not overlap.
    context.cuMemcpyDtoD_v2(buffer.address() + 10_001, buffer.address() + 3, 7777).ok()?;
    let moved = want[3..3 + 7777].to_vec();
    want[10_001..10_001 + 7777].copy_from_slice(&moved);
    compare::equal(&buffer.read()?, &want)?;
    let mut part = vec![0u8; 333];
    context.cuMemcpyDtoH_v2(part.as_mut_ptr().cast(), buffer.address() + 77, 333).ok()?;
    compare::equal(&part, &want[77..77 + 333])?;
    // Nothing to copy is no error.
    context.cuMemcpyHtoD_v2(buffer.address(), data.as_ptr().cast(), 0).ok()
}

fn memsets(context: &Context<'_>) -> Result<()> {
    let buffer = context.zeros::<u8>(64)?;
    let at = buffer.address();
    context.cuMemsetD8_v2(at + 1, 0x11, 5).ok()?;
    context.cuMemsetD16_v2(at + 8, 0x2233, 3).ok()?;
    context.cuMemsetD32_v2(at + 16, 0x4455_6677, 2).ok()?;
    context.cuMemsetD8Async(at + 40, 0x88, 4, ptr::null_mut()).ok()?;
    context.cuMemsetD16Async(at + 44, 0x99aa, 1, ptr::null_mut()).ok()?;
    context.cuMemsetD32Async(at + 48, 0xbbcc_ddee, 1, ptr::null_mut()).ok()?;
    let mut want = [0u8; 64];
    want[1..6].fill(0x11);
    want[8..14].copy_from_slice(&[0x33, 0x22, 0x33, 0x22, 0x33, 0x22]);
    want[16..24].copy_from_slice(&[0x77, 0x66, 0x55, 0x44, 0x77, 0x66, 0x55, 0x44]);
    want[40..44].fill(0x88);
    want[44..46].copy_from_slice(&[0xaa, 0x99]);
    want[48..52].copy_from_slice(&[0xee, 0xdd, 0xcc, 0xbb]);
    compare::equal(&buffer.read()?, &want)?;
    context.cuMemsetD32_v2(at + 2, 1, 1).is(Code::INVALID_VALUE)?;
    context.cuMemsetD16_v2(at + 1, 1, 1).is(Code::INVALID_VALUE)?;
    context.cuMemsetD8_v2(at, 1, 0).ok()
}

fn memset_2d(context: &Context<'_>) -> Result<()> {
    let (pitch, rows) = (64usize, 6usize);
    let buffer = context.zeros::<u8>(pitch * rows)?;
    context.cuMemsetD2D8_v2(buffer.address() + 3, pitch, 0xab, 10, 4).ok()?;
    context.cuMemsetD2D32_v2(buffer.address() + 32, pitch, 0x0102_0304, 2, rows).ok()?;
    let mut want = vec![0u8; pitch * rows];
    for row in 0..rows {
        if row < 4 {
            want[row * pitch + 3..row * pitch + 13].fill(0xab);
        }
        want[row * pitch + 32..row * pitch + 40].copy_from_slice(&[4, 3, 2, 1, 4, 3, 2, 1]);
    }
    compare::equal(&buffer.read()?, &want)
}

/// A copy between a host array and device memory; the caller fills in the rest.
fn copy_of(width: usize, height: usize) -> CUDA_MEMCPY2D {
    CUDA_MEMCPY2D { WidthInBytes: width, Height: height, ..Default::default() }
}

fn copy_2d(context: &Context<'_>) -> Result<()> {
    let (host_pitch, device_pitch, width, rows) = (50usize, 96usize, 30usize, 7usize);
    let host = Random::new(22).many(host_pitch * (rows + 2), |r| r.u32() as u8);
    let (buffer, twin) = (context.zeros::<u8>(device_pitch * 10)?, context.zeros::<u8>(device_pitch * 10)?);
    let mut up = copy_of(width, rows);
    up.srcMemoryType = CU_MEMORYTYPE_HOST;
    up.srcHost = host.as_ptr().cast();
    up.srcPitch = host_pitch;
    (up.srcXInBytes, up.srcY) = (4, 2);
    up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    up.dstDevice = buffer.address();
    up.dstPitch = device_pitch;
    (up.dstXInBytes, up.dstY) = (11, 1);
    context.cuMemcpy2D_v2(&up).ok()?;
    let mut want = vec![0u8; device_pitch * 10];
    for row in 0..rows {
        let from = (row + 2) * host_pitch + 4;
        let to = (row + 1) * device_pitch + 11;
        want[to..to + width].copy_from_slice(&host[from..from + width]);
    }
    compare::equal(&buffer.read()?, &want)?;
    let mut across = copy_of(device_pitch, 10);
    across.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    across.srcDevice = buffer.address();
    across.srcPitch = device_pitch;
    across.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    across.dstDevice = twin.address();
    across.dstPitch = device_pitch;
    context.cuMemcpy2DAsync_v2(&across, ptr::null_mut()).ok()?;
    compare::equal(&twin.read()?, &want)?;
    let mut back = vec![0u8; width * rows];
    let mut down = copy_of(width, rows);
    down.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    down.srcDevice = twin.address();
    down.srcPitch = device_pitch;
    (down.srcXInBytes, down.srcY) = (11, 1);
    down.dstMemoryType = CU_MEMORYTYPE_HOST;
    down.dstHost = back.as_mut_ptr().cast();
    down.dstPitch = width;
    context.cuMemcpy2DUnaligned_v2(&down).ok()?;
    let want: Vec<u8> =
        (0..rows).flat_map(|row| &host[(row + 2) * host_pitch + 4..][..width]).copied().collect();
    compare::equal(&back, &want)?;
    down.dstPitch = width - 1;
    context.cuMemcpy2D_v2(&down).is(Code::INVALID_VALUE)
}

fn pitched(context: &Context<'_>) -> Result<()> {
    let (mut address, mut pitch) = (0, 0);
    context.cuMemAllocPitch_v2(&mut address, &mut pitch, 1000, 10, 4).ok()?;
    ensure!(pitch >= 1000 && pitch % 256 == 0, "a pitch of {pitch} for 1000 bytes");
    context.cuMemsetD8_v2(address + (pitch * 9 + 999) as u64, 1, 1).ok()?;
    context.cuMemFree_v2(address).ok()?;
    context.cuMemAllocPitch_v2(&mut address, &mut pitch, 1000, 10, 3).is(Code::INVALID_VALUE)?;
    context.cuMemAllocPitch_v2(&mut address, &mut pitch, 0, 10, 4).is(Code::INVALID_VALUE)
}

fn copy_out_of_bounds(context: &Context<'_>) -> Result<()> {
    let mut address = 0;
    // A whole multiple of every granularity, so that the end of the allocation is the end of the mapping.
    let bytes = 64usize << 20;
    context.cuMemAlloc_v2(&mut address, bytes).ok()?;
    let mut data = vec![0u8; 4096];
    let end = address + bytes as u64;
    context.cuMemcpyHtoD_v2(end - 100, data.as_ptr().cast(), 4096).is(Code::INVALID_VALUE)?;
    context.cuMemcpyDtoH_v2(data.as_mut_ptr().cast(), end - 100, 4096).is(Code::INVALID_VALUE)?;
    context.cuMemsetD8_v2(end - 100, 0, 4096).is(Code::INVALID_VALUE)?;
    // Nothing of that sticks.
    context.cuMemcpyHtoD_v2(end - 4096, data.as_ptr().cast(), 4096).ok()?;
    context.cuMemFree_v2(address).ok()?;
    context.cuMemcpyHtoD_v2(0, data.as_ptr().cast(), 4).is(Code::INVALID_VALUE)?;
    context.cuMemcpyHtoD_v2(address, data.as_ptr().cast(), 4).is(Code::INVALID_VALUE)
}

fn unified_copy(context: &Context<'_>) -> Result<()> {
    let data = [1u32, 2, 3, 4];
    let (a, b) = (context.zeros::<u32>(4)?, context.zeros::<u32>(4)?);
    let mut back = [0u32; 4];
    context.cuMemcpy(a.address(), data.as_ptr() as u64, 16).ok()?;
    context.cuMemcpy(b.address(), a.address(), 16).ok()?;
    context.cuMemcpyAsync(back.as_mut_ptr() as u64, b.address(), 16, ptr::null_mut()).ok()?;
    context.synchronize()?;
    compare::equal(&back, &data)?;
    // And from host to host.
    let mut other = [0u32; 4];
    context.cuMemcpy(other.as_mut_ptr() as u64, data.as_ptr() as u64, 16).ok()?;
    compare::equal(&other, &data)
}

fn async_copies(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 1 << 18;
    let data = Random::new(23).many(COUNT, Random::u32);
    let (up, down) = (Pinned::<u32>::new(context, COUNT)?, Pinned::<u32>::new(context, COUNT)?);
    data.iter().enumerate().for_each(|(i, &x)| up.set(i, x));
    let buffer = Buffer::<u32>::new(context, COUNT)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    context.cuMemcpyHtoDAsync_v2(buffer.address(), up.host().cast(), 4 * COUNT, stream.handle()).ok()?;
    context.cuMemcpyDtoHAsync_v2(down.host().cast(), buffer.address(), 4 * COUNT, stream.handle()).ok()?;
    stream.synchronize()?;
    let got: Vec<u32> = (0..COUNT).map(|i| down.get(i)).collect();
    compare::equal(&got, &data)?;
    // Pageable memory may be changed as soon as the call is back.
    let mut source = data.clone();
    context.cuMemcpyHtoDAsync_v2(buffer.address(), source.as_ptr().cast(), 4 * 1024, stream.handle()).ok()?;
    source.fill(0);
    stream.synchronize()?;
    compare::equal(&buffer.read()?, &data)
}

fn host_mapped(context: &Context<'_>) -> Result<()> {
    let source = source!("vector_add");
    source.each_variant(context, |module| {
        let (a, b, c) = (
            Pinned::<f32>::new(context, 100)?,
            Pinned::<f32>::new(context, 100)?,
            Pinned::<f32>::new(context, 100)?,
        );
        (0..100).for_each(|i| a.set(i, i as f32));
        (0..100).for_each(|i| b.set(i, 0.5));
        let arguments = args![a.address(), b.address(), c.address(), 100i32];
        module.function("vector_add")?.run(1, 128, arguments)?;
        let got: Vec<f32> = (0..100).map(|i| c.get(i)).collect();
        let want: Vec<f32> = (0..100).map(|i| i as f32 + 0.5).collect();
        compare::equal(&got, &want)?;
        // With unified addressing the device uses the host's address.
        ensure!(a.address() == a.host() as u64);
        let mut flags = 0;
        context.cuMemHostGetFlags(&mut flags, a.host().cast()).ok()?;
        ensure!(flags & CU_MEMHOSTALLOC_DEVICEMAP != 0, "flags {flags}");
        Ok(())
    })
}

fn host_registered(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("vector_add").usual())?;
    let mut memory = vec![1.5f32; 8192];
    let place: *mut c_void = memory.as_mut_ptr().cast();
    let bytes = 4 * memory.len();
    context.cuMemHostRegister_v2(place, bytes, CU_MEMHOSTREGISTER_DEVICEMAP).ok()?;
    context.cuMemHostRegister_v2(place, bytes, 0).is(Code::HOST_MEMORY_ALREADY_REGISTERED)?;
    let mut device = 0;
    context.cuMemHostGetDevicePointer_v2(&mut device, place, 0).ok()?;
    let count = memory.len() as i32;
    module.function("vector_add")?.run(64, 128, args![device, device, device, count])?;
    // SAFETY: the vector is alive; the kernel that wrote to it has ended.
    let first = unsafe { memory.as_ptr().read_volatile() };
    ensure!(first == 3.0, "the kernel left {first}");
    context.cuMemHostUnregister(place).ok()?;
    context.cuMemHostUnregister(place).is(Code::HOST_MEMORY_NOT_REGISTERED)?;
    compare::equal(&memory, &vec![3.0; 8192])
}

fn managed(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("vector_add").usual())?;
    let mut address = 0;
    context.cuMemAllocManaged(&mut address, 4096, CU_MEM_ATTACH_GLOBAL.0).ok()?;
    let place = address as *mut f32;
    for i in 0..1024 {
        // SAFETY: managed memory is the host's to write while no kernel runs; the index is inside.
        unsafe { place.wrapping_add(i).write_volatile(i as f32) };
    }
    module.function("vector_add")?.run(8, 128, args![address, address, address, 1024i32])?;
    for i in 0..1024 {
        // SAFETY: as above.
        let got = unsafe { place.wrapping_add(i).read_volatile() };
        ensure!(got == 2.0 * i as f32, "element {i} is {got}");
    }
    let mut managed = 0u32;
    let kind = CU_POINTER_ATTRIBUTE_IS_MANAGED;
    context.cuPointerGetAttribute((&raw mut managed).cast(), kind, address).ok()?;
    ensure!(managed == 1);
    context.cuMemFree_v2(address).ok()?;
    context.cuMemAllocManaged(&mut address, 4096, 0).is(Code::INVALID_VALUE)
}

fn stream_ordered(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("order").usual())?;
    let affine = module.function("affine")?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    let on = stream.handle();
    let result = context.zeros::<u32>(1000)?;
    context.synchronize()?;
    for round in 0..10u32 {
        let mut address = 0;
        context.cuMemAllocAsync(&mut address, 4000, on).ok()?;
        context.cuMemsetD32Async(address, round, 1000, on).ok()?;
        affine.launch(8, 128, 0, on, args![address, 2u32, 1000i32])?;
        context.cuMemcpyDtoDAsync_v2(result.address(), address, 4000, on).ok()?;
        context.cuMemFreeAsync(address, on).ok()?;
    }
    stream.synchronize()?;
    let want: Vec<u32> = (0..1000).map(|i| 18 + i).collect();
    compare::equal(&result.read()?, &want)?;
    let mut address = 0;
    context.cuMemAllocAsync(&mut address, 4000, on).ok()?;
    stream.synchronize()?;
    // The synchronous free takes it, too.
    context.cuMemFree_v2(address).ok()
}

fn pools(context: &Context<'_>) -> Result<()> {
    let device = context.device();
    let (mut default, mut current) = (ptr::null_mut(), ptr::null_mut());
    context.cuDeviceGetDefaultMemPool(&mut default, device).ok()?;
    context.cuDeviceGetMemPool(&mut current, device).ok()?;
    ensure!(default == current && !default.is_null(), "the default pool is not the current one");
    let properties = CUmemPoolProps {
        allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
        location: device_location(device),
        ..Default::default()
    };
    let mut pool = ptr::null_mut();
    context.cuMemPoolCreate(&mut pool, &properties).ok()?;
    let mut threshold = 1u64 << 20;
    let which = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    context.cuMemPoolSetAttribute(pool, which, (&raw mut threshold).cast()).ok()?;
    threshold = 0;
    context.cuMemPoolGetAttribute(pool, which, (&raw mut threshold).cast()).ok()?;
    ensure!(threshold == 1 << 20, "the threshold is {threshold}");
    let stream = Stream::new(context, NON_BLOCKING)?;
    let mut address = 0;
    context.cuMemAllocFromPoolAsync(&mut address, 5000, pool, stream.handle()).ok()?;
    stream.synchronize()?;
    let mut used = 0u64;
    context.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, (&raw mut used).cast()).ok()?;
    ensure!(used >= 5000, "{used} bytes in use");
    context.cuMemFreeAsync(address, stream.handle()).ok()?;
    stream.synchronize()?;
    context.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, (&raw mut used).cast()).ok()?;
    ensure!(used == 0, "{used} bytes in use after the free");
    context.cuMemPoolTrimTo(pool, 0).ok()?;
    context.cuMemPoolDestroy(pool).ok()?;
    context.cuMemPoolDestroy(default).is(Code::INVALID_VALUE)
}

/// The memory of device number `device` as a place.
pub fn device_location(device: CUdevice) -> CUmemLocation {
    CUmemLocation {
        type_: CU_MEM_LOCATION_TYPE_DEVICE,
        __bindgen_anon_1: CUmemLocation_st__bindgen_ty_1 { id: device },
    }
}

fn pointer_attributes(context: &Context<'_>) -> Result<()> {
    let buffer = context.zeros::<u8>(1000)?;
    let pinned = Pinned::<u8>::new(context, 1000)?;
    let number = |which, address| -> Result<u32> {
        let mut value = 0u32;
        context.cuPointerGetAttribute((&raw mut value).cast(), which, address).ok()?;
        Ok(value)
    };
    let long = |which, address| -> Result<u64> {
        let mut value = 0u64;
        context.cuPointerGetAttribute((&raw mut value).cast(), which, address).ok()?;
        Ok(value)
    };
    let inside = buffer.address() + 10;
    ensure!(number(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, inside)? == CU_MEMORYTYPE_DEVICE.0);
    ensure!(number(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pinned.host() as u64)? == CU_MEMORYTYPE_HOST.0);
    ensure!(long(CU_POINTER_ATTRIBUTE_CONTEXT, inside)? == context.handle() as u64);
    ensure!(long(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, inside)? == inside);
    ensure!(long(CU_POINTER_ATTRIBUTE_HOST_POINTER, pinned.host() as u64)? == pinned.host() as u64);
    ensure!(long(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside)? == buffer.address());
    ensure!(long(CU_POINTER_ATTRIBUTE_RANGE_SIZE, inside)? == 1000);
    ensure!(number(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside)? == context.device() as u32);
    let other = context.zeros::<u8>(1000)?;
    let (one, two) = (
        long(CU_POINTER_ATTRIBUTE_BUFFER_ID, inside)?,
        long(CU_POINTER_ATTRIBUTE_BUFFER_ID, other.address())?,
    );
    ensure!(one != two, "two buffers with the id {one}");
    let mut value = 0u64;
    let local = 5u32;
    let place = (&raw mut value).cast();
    let unknown = (&raw const local) as u64;
    context
        .cuPointerGetAttribute(place, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, unknown)
        .is(Code::INVALID_VALUE)?;
    // Several at once, unknown pointers answered by zeros.
    let mut kinds = [CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE];
    let (mut kind, mut size) = (9u32, 9u64);
    let mut places: [*mut c_void; 2] = [(&raw mut kind).cast(), (&raw mut size).cast()];
    context.cuPointerGetAttributes(2, kinds.as_mut_ptr(), places.as_mut_ptr(), inside).ok()?;
    ensure!(kind == CU_MEMORYTYPE_DEVICE.0 && size == 1000, "type {kind}, size {size}");
    context.cuPointerGetAttributes(2, kinds.as_mut_ptr(), places.as_mut_ptr(), unknown).ok()?;
    ensure!(kind == 0, "a local variable has memory type {kind}");
    Ok(())
}

fn address_range(context: &Context<'_>) -> Result<()> {
    let buffer = context.zeros::<u8>(12_345)?;
    let (mut base, mut size) = (0, 0);
    context.cuMemGetAddressRange_v2(&mut base, &mut size, buffer.address() + 12_344).ok()?;
    ensure!(base == buffer.address() && size == 12_345, "{size} bytes at {base:#x}");
    context.cuMemGetAddressRange_v2(ptr::null_mut(), &mut size, buffer.address()).ok()?;
    context.cuMemGetAddressRange_v2(&mut base, ptr::null_mut(), buffer.address()).ok()?;
    context.cuMemGetAddressRange_v2(&mut base, &mut size, 0x10).is(Code::NOT_FOUND)
}
