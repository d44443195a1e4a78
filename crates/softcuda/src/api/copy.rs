//! Copies.
//!
//! Every copy becomes one [`Copy3D`] with its two ends; what the call or the memory type said about an end is
//! checked, then the address alone counts.

use softgpu::error::Access;
use softgpu::memory::{Copy2D, Copy3D};

use super::prelude::*;
use crate::state::capture;
use crate::state::operation::Operation;

/// What a call says about one end of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Host,
    Device,
    /// The address tells.
    Either,
}

impl End {
    fn of(memory_type: CUmemorytype) -> Result<End> {
        match memory_type {
            CU_MEMORYTYPE_HOST => Ok(End::Host),
            CU_MEMORYTYPE_DEVICE => Ok(End::Device),
            CU_MEMORYTYPE_UNIFIED => Ok(End::Either),
            CU_MEMORYTYPE_ARRAY => Err(Error::unsupported("a CUDA array")),
            _ => refuse(CUDA_ERROR_INVALID_VALUE),
        }
    }
}

/// A copy with what is claimed about its ends.
#[derive(Clone, Copy)]
pub struct Transfer {
    pub copy: Copy3D,
    pub to: End,
    pub from: End,
}

impl Transfer {
    pub fn flat(to: (End, u64), from: (End, u64), bytes: usize) -> Transfer {
        let (width, height) = (bytes as u64, 1);
        let plane = Copy2D { to: to.1, to_pitch: width, from: from.1, from_pitch: width, width, height };
        Transfer { copy: Copy3D { plane, to_slice: 0, from_slice: 0, depth: 1 }, to: to.0, from: from.0 }
    }

    fn is_empty(&self) -> bool {
        self.copy.plane.width == 0 || self.copy.plane.height == 0 || self.copy.depth == 0
    }

    /// Bytes from the first to the last at one end.
    fn extent(&self, pitch: u64, slice: u64) -> Result<u64> {
        let (plane, depth) = (&self.copy.plane, self.copy.depth);
        let rows = (plane.height - 1).checked_mul(pitch);
        let slices = (depth - 1).checked_mul(slice);
        let sum =
            rows.zip(slices).and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(plane.width));
        sum.ok_or(CUDA_ERROR_INVALID_VALUE.into())
    }

    /// Refuses ends that are not what the call says.
    pub fn check(&self, context: &Context) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (plane, space) = (&self.copy.plane, &context.driver.space);
        let ends = [
            (self.to, plane.to, self.extent(plane.to_pitch, self.copy.to_slice)?, Access::Write),
            (self.from, plane.from, self.extent(plane.from_pitch, self.copy.from_slice)?, Access::Read),
        ];
        for (end, address, bytes, access) in ends {
            require(address != 0)?;
            let ours = space.contains(address);
            if end == End::Device || (ours && end == End::Either) {
                space.check(address, bytes, access)?;
            }
        }
        Ok(())
    }

    fn contiguous(&self) -> Option<u64> {
        let plane = &self.copy.plane;
        (plane.height == 1 && self.copy.depth == 1).then_some(plane.width)
    }

    /// Whether an end is host memory that the device knows nothing of.
    fn is_pageable(context: &Context, address: u64) -> bool {
        context.driver.space.lookup(address).is_none()
    }

    /// Carries the copy out in a default stream and waits for it.
    pub fn now(self) -> Result<()> {
        let stream = Stream::find(Handle::of(0))?;
        let context = stream.context()?;
        self.check(&context)?;
        if self.is_empty() {
            return Ok(());
        }
        match stream.enqueue(Operation::Copy(self.copy))? {
            Some(task) => context.wait(&task),
            None => Ok(()),
        }
    }

    /// Puts the copy into a stream. Pageable memory may be reused, or is expected to be filled, when the call
    /// returns: it is read at once, or waited for.
    pub fn enqueue(self, stream: Handle<Stream>) -> Result<()> {
        let stream = Stream::find(stream)?;
        let context = stream.context()?;
        self.check(&context)?;
        if self.is_empty() {
            return Ok(());
        }
        let plane = &self.copy.plane;
        if capture::of(&stream, &context)?.is_none() {
            let _copying = lock(&context.copying);
            if let Some(bytes) = self.contiguous()
                && Transfer::is_pageable(&context, plane.from)
                && !Transfer::is_pageable(&context, plane.to)
            {
                let staged: Arc<[u8]> = Address(plane.from).values::<u8>().read(bytes as usize)?.into();
                return stream.enqueue(Operation::Staged { to: plane.to, bytes: staged }).map(drop);
            }
            if Transfer::is_pageable(&context, plane.to) || Transfer::is_pageable(&context, plane.from) {
                let task = stream.enqueue(Operation::Copy(self.copy))?;
                return task.map_or(Ok(()), |task| context.wait(&task));
            }
        }
        stream.enqueue(Operation::Copy(self.copy)).map(drop)
    }

    pub fn of_2d(copy: &CUDA_MEMCPY2D) -> Result<Transfer> {
        let to = Corner {
            end: End::of(copy.dstMemoryType)?,
            host: copy.dstHost.expose_provenance(),
            device: copy.dstDevice,
        };
        let from = Corner {
            end: End::of(copy.srcMemoryType)?,
            host: copy.srcHost.expose_provenance(),
            device: copy.srcDevice,
        };
        let (width, height) = (copy.WidthInBytes as u64, copy.Height as u64);
        let to_pitch = pitch(copy.dstPitch, width, copy.dstXInBytes, height)?;
        let from_pitch = pitch(copy.srcPitch, width, copy.srcXInBytes, height)?;
        let plane = Copy2D {
            to: to.place(copy.dstXInBytes, copy.dstY, to_pitch, 0, 0)?,
            to_pitch,
            from: from.place(copy.srcXInBytes, copy.srcY, from_pitch, 0, 0)?,
            from_pitch,
            width,
            height,
        };
        Ok(Transfer {
            copy: Copy3D { plane, to_slice: 0, from_slice: 0, depth: 1 },
            to: to.end,
            from: from.end,
        })
    }

    pub fn of_3d(copy: &CUDA_MEMCPY3D) -> Result<Transfer> {
        require(copy.srcLOD == 0 && copy.dstLOD == 0)?;
        let to = Corner {
            end: End::of(copy.dstMemoryType)?,
            host: copy.dstHost.expose_provenance(),
            device: copy.dstDevice,
        };
        let from = Corner {
            end: End::of(copy.srcMemoryType)?,
            host: copy.srcHost.expose_provenance(),
            device: copy.srcDevice,
        };
        let (width, height, depth) = (copy.WidthInBytes as u64, copy.Height as u64, copy.Depth as u64);
        let to_pitch = pitch(copy.dstPitch, width, copy.dstXInBytes, height)?;
        let from_pitch = pitch(copy.srcPitch, width, copy.srcXInBytes, height)?;
        let to_slice = slice(copy.dstHeight, height, copy.dstY, to_pitch, depth)?;
        let from_slice = slice(copy.srcHeight, height, copy.srcY, from_pitch, depth)?;
        let plane = Copy2D {
            to: to.place(copy.dstXInBytes, copy.dstY, to_pitch, copy.dstZ, to_slice)?,
            to_pitch,
            from: from.place(copy.srcXInBytes, copy.srcY, from_pitch, copy.srcZ, from_slice)?,
            from_pitch,
            width,
            height,
        };
        Ok(Transfer { copy: Copy3D { plane, to_slice, from_slice, depth }, to: to.end, from: from.end })
    }
}

/// Where one end of a pitched copy begins.
struct Corner {
    end: End,
    host: usize,
    device: u64,
}

impl Corner {
    fn place(&self, x: usize, y: usize, pitch: u64, z: usize, slice: u64) -> Result<u64> {
        let start = if self.end == End::Host { self.host as u64 } else { self.device };
        let skipped = (y as u64).checked_mul(pitch).zip((z as u64).checked_mul(slice));
        let place = skipped
            .and_then(|(rows, slices)| start.checked_add(x as u64)?.checked_add(rows)?.checked_add(slices));
        place.ok_or(CUDA_ERROR_INVALID_VALUE.into())
    }
}

/// A pitch of zero stands for rows without gaps; one that rows do not fit in is an error.
fn pitch(pitch: usize, width: u64, x: usize, height: u64) -> Result<u64> {
    let least = width.checked_add(x as u64).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let pitch = if pitch == 0 { least } else { pitch as u64 };
    require(pitch >= least || height <= 1)?;
    Ok(pitch)
}

fn slice(rows: usize, height: u64, y: usize, pitch: u64, depth: u64) -> Result<u64> {
    let least = height.checked_add(y as u64).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let rows = if rows == 0 { least } else { rows as u64 };
    require(rows >= least || depth <= 1)?;
    rows.checked_mul(pitch).ok_or(CUDA_ERROR_INVALID_VALUE.into())
}

pub fn cuMemcpy(dst: CUdeviceptr, src: CUdeviceptr, ByteCount: usize) -> Result<()> {
    Transfer::flat((End::Either, dst), (End::Either, src), ByteCount).now()
}

pub fn cuMemcpyAsync(
    dst: CUdeviceptr,
    src: CUdeviceptr,
    ByteCount: usize,
    hStream: Handle<Stream>,
) -> Result<()> {
    Transfer::flat((End::Either, dst), (End::Either, src), ByteCount).enqueue(hStream)
}

pub fn cuMemcpyHtoD_v2(dstDevice: CUdeviceptr, srcHost: Address, ByteCount: usize) -> Result<()> {
    Transfer::flat((End::Device, dstDevice), (End::Host, srcHost.0), ByteCount).now()
}

pub fn cuMemcpyHtoDAsync_v2(
    dstDevice: CUdeviceptr,
    srcHost: Address,
    ByteCount: usize,
    hStream: Handle<Stream>,
) -> Result<()> {
    Transfer::flat((End::Device, dstDevice), (End::Host, srcHost.0), ByteCount).enqueue(hStream)
}

pub fn cuMemcpyDtoH_v2(dstHost: Address, srcDevice: CUdeviceptr, ByteCount: usize) -> Result<()> {
    Transfer::flat((End::Host, dstHost.0), (End::Device, srcDevice), ByteCount).now()
}

pub fn cuMemcpyDtoHAsync_v2(
    dstHost: Address,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
    hStream: Handle<Stream>,
) -> Result<()> {
    Transfer::flat((End::Host, dstHost.0), (End::Device, srcDevice), ByteCount).enqueue(hStream)
}

pub fn cuMemcpyDtoD_v2(dstDevice: CUdeviceptr, srcDevice: CUdeviceptr, ByteCount: usize) -> Result<()> {
    Transfer::flat((End::Device, dstDevice), (End::Device, srcDevice), ByteCount).now()
}

pub fn cuMemcpyDtoDAsync_v2(
    dstDevice: CUdeviceptr,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
    hStream: Handle<Stream>,
) -> Result<()> {
    Transfer::flat((End::Device, dstDevice), (End::Device, srcDevice), ByteCount).enqueue(hStream)
}

/// All contexts of a process see the same memory here, so a copy between them is a copy.
pub fn cuMemcpyPeer(
    dstDevice: CUdeviceptr,
    dstContext: Handle<Context>,
    srcDevice: CUdeviceptr,
    srcContext: Handle<Context>,
    ByteCount: usize,
) -> Result<()> {
    driver()?;
    dstContext.get()?;
    srcContext.get()?;
    cuMemcpyDtoD_v2(dstDevice, srcDevice, ByteCount)
}

pub fn cuMemcpyPeerAsync(
    dstDevice: CUdeviceptr,
    dstContext: Handle<Context>,
    srcDevice: CUdeviceptr,
    srcContext: Handle<Context>,
    ByteCount: usize,
    hStream: Handle<Stream>,
) -> Result<()> {
    driver()?;
    dstContext.get()?;
    srcContext.get()?;
    cuMemcpyDtoDAsync_v2(dstDevice, srcDevice, ByteCount, hStream)
}

pub fn cuMemcpy2D_v2(pCopy: In<CUDA_MEMCPY2D>) -> Result<()> {
    driver()?;
    Transfer::of_2d(&pCopy.get()?)?.now()
}

pub fn cuMemcpy2DUnaligned_v2(pCopy: In<CUDA_MEMCPY2D>) -> Result<()> {
    cuMemcpy2D_v2(pCopy)
}

pub fn cuMemcpy2DAsync_v2(pCopy: In<CUDA_MEMCPY2D>, hStream: Handle<Stream>) -> Result<()> {
    driver()?;
    Transfer::of_2d(&pCopy.get()?)?.enqueue(hStream)
}

pub fn cuMemcpy3D_v2(pCopy: In<CUDA_MEMCPY3D>) -> Result<()> {
    driver()?;
    Transfer::of_3d(&pCopy.get()?)?.now()
}

pub fn cuMemcpy3DAsync_v2(pCopy: In<CUDA_MEMCPY3D>, hStream: Handle<Stream>) -> Result<()> {
    driver()?;
    Transfer::of_3d(&pCopy.get()?)?.enqueue(hStream)
}
