//! Memory: what was allocated, copied and filled, to the byte.

use std::ffi::c_void;
use std::ptr;

use anyhow::{Result, ensure};
use conformance::context::Context;
use conformance::driver::*;
use conformance::stream::{NON_BLOCKING, Stream};
use telemetry::Counter::{self, *};

use crate::Section;
use crate::program::Program;

pub const SECTIONS: &[Section] = &[
    Section::new("memory/allocations", allocations),
    Section::new("memory/virtual", virtual_memory),
    Section::new("memory/refused", refused),
    Section::new("memory/copies", copies),
    Section::new("memory/copies_of_rectangles", rectangles),
    Section::new("memory/fills", fills),
];

impl Program<'_> {
    fn did_bytes(&self, (count, sum): (Counter, Counter), bytes: usize) {
        self.did(count, 1);
        self.did(sum, bytes as u64);
    }

    fn stream<'c>(&self, cuda: &Context<'c>) -> Result<Stream<'c>> {
        let stream = Stream::new(cuda, NON_BLOCKING)?;
        self.did(StreamsCreated, 1);
        Ok(stream)
    }

    fn finished(&self, stream: Stream<'_>) -> Result<()> {
        stream.synchronize()?;
        self.did(StreamSynchronisations, 1);
        drop(stream);
        self.did(StreamsDestroyed, 1);
        Ok(())
    }
}

const DEVICE: (Counter, Counter) = (AllocationsDevice, AllocatedDevice);
const HOST: (Counter, Counter) = (AllocationsHost, AllocatedHost);
const MANAGED: (Counter, Counter) = (AllocationsManaged, AllocatedManaged);
const VIRTUAL: (Counter, Counter) = (AllocationsVirtual, AllocatedVirtual);
const STREAM_ORDERED: (Counter, Counter) = (AllocationsStreamOrdered, AllocatedStreamOrdered);

fn allocations(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let (mut address, mut pitch, mut host) = (0, 0, ptr::null_mut());
        for bytes in [1, 1000, 123_457] {
            cuda.cuMemAlloc_v2(&mut address, bytes).ok()?;
            program.did_bytes(DEVICE, bytes);
            cuda.cuMemFree_v2(address).ok()?;
        }
        cuda.cuMemAllocPitch_v2(&mut address, &mut pitch, 100, 7, 4).ok()?;
        ensure!(pitch >= 100, "a row of 100 bytes in {pitch}");
        program.did_bytes(DEVICE, 7 * pitch);
        cuda.cuMemFree_v2(address).ok()?;
        cuda.cuMemAllocManaged(&mut address, 5000, CU_MEM_ATTACH_GLOBAL.0).ok()?;
        program.did_bytes(MANAGED, 5000);
        cuda.cuMemFree_v2(address).ok()?;
        cuda.cuMemAllocHost_v2(&mut host, 333).ok()?;
        program.did_bytes(HOST, 333);
        cuda.cuMemFreeHost(host).ok()?;
        cuda.cuMemHostAlloc(&mut host, 444, 0).ok()?;
        program.did_bytes(HOST, 444);
        cuda.cuMemFreeHost(host).ok()?;
        let mut own = vec![0u8; 8192];
        cuda.cuMemHostRegister_v2(own.as_mut_ptr().cast(), 8192, 0).ok()?;
        program.did_bytes(HOST, 8192);
        cuda.cuMemHostUnregister(own.as_mut_ptr().cast()).ok()?;
        program.did(Frees, 3 + 1 + 1 + 2 + 1);
        stream_ordered(program, cuda)
    })
}

fn stream_ordered(program: &Program<'_>, cuda: &Context<'_>) -> Result<()> {
    let (stream, mut address, mut pool) = (program.stream(cuda)?, 0, ptr::null_mut());
    cuda.cuMemAllocAsync(&mut address, 777, stream.handle()).ok()?;
    program.did_bytes(STREAM_ORDERED, 777);
    cuda.cuMemFreeAsync(address, stream.handle()).ok()?;
    cuda.cuMemAllocAsync_ptsz(&mut address, 888, ptr::null_mut()).ok()?;
    program.did_bytes(STREAM_ORDERED, 888);
    cuda.cuMemFreeAsync_ptsz(address, ptr::null_mut()).ok()?;
    let properties = CUmemPoolProps {
        allocType: CU_MEM_ALLOCATION_TYPE_PINNED,
        location: location(cuda),
        ..Default::default()
    };
    cuda.cuMemPoolCreate(&mut pool, &properties).ok()?;
    program.did(PoolsCreated, 1);
    cuda.cuMemAllocFromPoolAsync(&mut address, 999, pool, stream.handle()).ok()?;
    program.did_bytes(STREAM_ORDERED, 999);
    cuda.cuMemFreeAsync(address, stream.handle()).ok()?;
    program.did(Frees, 3);
    program.finished(stream)?;
    cuda.cuMemPoolDestroy(pool).ok()
}

fn location(cuda: &Context<'_>) -> CUmemLocation {
    CUmemLocation {
        type_: CU_MEM_LOCATION_TYPE_DEVICE,
        __bindgen_anon_1: CUmemLocation_st__bindgen_ty_1 { id: cuda.device() },
    }
}

fn virtual_memory(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let properties = CUmemAllocationProp {
            type_: CU_MEM_ALLOCATION_TYPE_PINNED,
            location: location(cuda),
            ..Default::default()
        };
        let (mut grain, mut address, mut memory) = (0, 0, 0);
        let least = CU_MEM_ALLOC_GRANULARITY_MINIMUM;
        cuda.cuMemGetAllocationGranularity(&mut grain, &properties, least).ok()?;
        cuda.cuMemAddressReserve(&mut address, 4 * grain, 0, 0, 0).ok()?;
        program.did(AddressesReserved, 1);
        cuda.cuMemCreate(&mut memory, 2 * grain, &properties, 0).ok()?;
        program.did_bytes(VIRTUAL, 2 * grain);
        for place in [0, 2] {
            cuda.cuMemMap(address + place * grain as u64, 2 * grain, 0, memory, 0).ok()?;
            program.did(MemoryMapped, 1);
        }
        cuda.cuMemUnmap(address, 4 * grain).ok()?;
        cuda.cuMemRelease(memory).ok()?;
        program.did(Frees, 1);
        cuda.cuMemAddressFree(address, 4 * grain).ok()
    })
}

/// What was not given is counted as refused, and its bytes nowhere.
fn refused(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        const TOO_MUCH: usize = 1 << 60;
        let (mut address, mut pitch, mut host) = (0, 0, ptr::null_mut());
        for answer in [
            cuda.cuMemAlloc_v2(&mut address, TOO_MUCH),
            cuda.cuMemAlloc_v2(&mut address, 0),
            cuda.cuMemAllocPitch_v2(&mut address, &mut pitch, 100, 7, 3),
            cuda.cuMemAllocManaged(&mut address, 0, CU_MEM_ATTACH_GLOBAL.0),
            cuda.cuMemAllocHost_v2(&mut host, TOO_MUCH),
            cuda.cuMemHostAlloc(&mut host, TOO_MUCH, 0),
            cuda.cuMemHostRegister_v2(ptr::null_mut(), 4096, 0),
            cuda.cuMemAllocAsync(&mut address, TOO_MUCH, ptr::null_mut()),
            cuda.cuMemCreate(&mut address, 4096, ptr::null(), 0),
        ] {
            ensure!(answer.ok().is_err(), "{} has given something", answer.call);
            program.did(AllocationsRefused, 1);
        }
        ensure!(cuda.cuMemFree_v2(12345).ok().is_err());
        let mut byte = 0u8;
        ensure!(cuda.cuMemcpyDtoH_v2((&raw mut byte).cast(), 12345, 1).ok().is_err());
        ensure!(cuda.cuMemsetD8_v2(12345, 0, 1).ok().is_err());
        Ok(())
    })
}

const TO_DEVICE: (Counter, Counter) = (CopiesHostToDevice, CopiedHostToDevice);
const TO_HOST: (Counter, Counter) = (CopiesDeviceToHost, CopiedDeviceToHost);
const ON_DEVICE: (Counter, Counter) = (CopiesDeviceToDevice, CopiedDeviceToDevice);
const OTHER: (Counter, Counter) = (CopiesOther, CopiedOther);

const ROOM: usize = 1 << 16;

/// Does something with two halves of device memory, some memory of the host and a stream.
fn with_memory(
    program: &Program<'_>,
    work: impl FnOnce(&Context<'_>, [CUdeviceptr; 2], *mut c_void, CUstream) -> Result<()>,
) -> Result<()> {
    program.in_context(|cuda| {
        let (mut device, mut host, stream) = (0, vec![0u8; ROOM], program.stream(cuda)?);
        cuda.cuMemAlloc_v2(&mut device, 2 * ROOM).ok()?;
        program.did_bytes(DEVICE, 2 * ROOM);
        let halves = [device, device + ROOM as u64];
        work(cuda, halves, host.as_mut_ptr().cast(), stream.handle())?;
        program.finished(stream)?;
        cuda.cuMemFree_v2(device).ok()?;
        program.did(Frees, 1);
        Ok(())
    })
}

fn copies(program: &Program<'_>) -> Result<()> {
    with_memory(program, |cuda, [a, b], host, on| {
        let (zero, own) = (ptr::null_mut(), cuda.handle());
        // The software GPU has one address space with the host, as unified addressing has.
        let host_address = host.expose_provenance() as CUdeviceptr;
        for (answer, kind, bytes) in [
            (cuda.cuMemcpyHtoD_v2(a, host, 101), TO_DEVICE, 101),
            (cuda.cuMemcpyHtoD_v2_ptds(a, host, 102), TO_DEVICE, 102),
            (cuda.cuMemcpyHtoDAsync_v2(a, host, 103, on), TO_DEVICE, 103),
            (cuda.cuMemcpyHtoDAsync_v2_ptsz(a, host, 104, zero), TO_DEVICE, 104),
            (cuda.cuMemcpyDtoH_v2(host, a, 201), TO_HOST, 201),
            (cuda.cuMemcpyDtoHAsync_v2(host, a, 202, on), TO_HOST, 202),
            (cuda.cuMemcpyDtoHAsync_v2_ptsz(host, a, 203, on), TO_HOST, 203),
            (cuda.cuMemcpyDtoD_v2(b, a, 301), ON_DEVICE, 301),
            (cuda.cuMemcpyDtoDAsync_v2(b, a, 302, on), ON_DEVICE, 302),
            (cuda.cuMemcpyPeer(b, own, a, own, 303), ON_DEVICE, 303),
            (cuda.cuMemcpyPeerAsync(b, own, a, own, 304, on), ON_DEVICE, 304),
            (cuda.cuMemcpy(b, a, 401), OTHER, 401),
            (cuda.cuMemcpy(b, host_address, 402), OTHER, 402),
            (cuda.cuMemcpyAsync(b, a, 403, on), OTHER, 403),
        ] {
            answer.ok()?;
            program.did_bytes(kind, bytes);
        }
        Ok(())
    })
}

fn rectangles(program: &Program<'_>) -> Result<()> {
    with_memory(program, |cuda, [a, b], host, on| {
        let kinds = [CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED];
        for (number, (from, to)) in
            kinds.iter().flat_map(|from| kinds.iter().map(move |to| (*from, *to))).enumerate()
        {
            let (width, height, depth) = (10 + number, 3, 2);
            let kind = match (from, to) {
                (CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE) => TO_DEVICE,
                (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST) => TO_HOST,
                (CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE) => ON_DEVICE,
                _ => OTHER,
            };
            let plane = CUDA_MEMCPY2D {
                srcMemoryType: from,
                srcHost: host,
                srcDevice: a,
                srcPitch: 64,
                dstMemoryType: to,
                dstHost: host.wrapping_byte_add(ROOM / 2),
                dstDevice: b,
                dstPitch: 128,
                WidthInBytes: width,
                Height: height,
                ..Default::default()
            };
            cuda.cuMemcpy2D_v2(&plane).ok()?;
            cuda.cuMemcpy2DUnaligned_v2(&plane).ok()?;
            cuda.cuMemcpy2DAsync_v2(&plane, on).ok()?;
            (0..3).for_each(|_| program.did_bytes(kind, width * height));
            let cuboid = CUDA_MEMCPY3D {
                srcMemoryType: from,
                srcHost: host,
                srcDevice: a,
                srcPitch: 64,
                srcHeight: height,
                dstMemoryType: to,
                dstHost: host.wrapping_byte_add(ROOM / 2),
                dstDevice: b,
                dstPitch: 128,
                dstHeight: height,
                WidthInBytes: width,
                Height: height,
                Depth: depth,
                ..Default::default()
            };
            cuda.cuMemcpy3D_v2(&cuboid).ok()?;
            cuda.cuMemcpy3DAsync_v2(&cuboid, on).ok()?;
            (0..2).for_each(|_| program.did_bytes(kind, width * height * depth));
        }
        Ok(())
    })
}

fn fills(program: &Program<'_>) -> Result<()> {
    with_memory(program, |cuda, [a, _], _, on| {
        let zero = ptr::null_mut();
        for (answer, bytes) in [
            (cuda.cuMemsetD8_v2(a, 1, 11), 11),
            (cuda.cuMemsetD8Async(a, 1, 12, on), 12),
            (cuda.cuMemsetD16_v2(a, 1, 21), 42),
            (cuda.cuMemsetD16Async(a, 1, 22, on), 44),
            (cuda.cuMemsetD32_v2(a, 1, 31), 124),
            (cuda.cuMemsetD32Async(a, 1, 32, on), 128),
            (cuda.cuMemsetD32Async_ptsz(a, 1, 33, zero), 132),
            (cuda.cuMemsetD2D8_v2(a, 64, 1, 5, 3), 15),
            (cuda.cuMemsetD2D8Async(a, 64, 1, 6, 3, on), 18),
            (cuda.cuMemsetD2D16_v2(a, 64, 1, 5, 3), 30),
            (cuda.cuMemsetD2D16Async(a, 64, 1, 6, 3, on), 36),
            (cuda.cuMemsetD2D32_v2(a, 64, 1, 5, 3), 60),
            (cuda.cuMemsetD2D32Async(a, 64, 1, 6, 3, on), 72),
        ] {
            answer.ok()?;
            program.did_bytes((Fills, Filled), bytes);
        }
        Ok(())
    })
}
