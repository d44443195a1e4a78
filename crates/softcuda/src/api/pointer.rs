//! What a pointer points to.

use softgpu::memory::{Region, RegionKind};

use super::prelude::*;
use crate::state::pool;

/// An address as the questions about it see it.
struct Pointer {
    address: u64,
    region: Option<Region>,
}

impl Pointer {
    fn look_up(address: u64) -> Result<Pointer> {
        let region = driver()?.space.lookup(address).filter(|region| region.kind != RegionKind::Reserved);
        Ok(Pointer { address, region })
    }

    fn is_host(&self) -> bool {
        matches!(self.kind(), Some(RegionKind::Pinned | RegionKind::Registered))
    }

    fn kind(&self) -> Option<RegionKind> {
        self.region.as_ref().map(|region| region.kind)
    }

    fn known(&self) -> Result<&Region> {
        self.region.as_ref().ok_or(CUDA_ERROR_INVALID_VALUE.into())
    }

    /// Writes the answer to one question.
    fn answer(&self, attribute: CUpointer_attribute, out: &Out<c_void>) -> Result<()> {
        match attribute {
            CU_POINTER_ATTRIBUTE_CONTEXT => out.cast::<CUcontext>().set(self.context()?),
            CU_POINTER_ATTRIBUTE_MEMORY_TYPE => out.cast::<CUmemorytype>().set(self.memory_type()?),
            CU_POINTER_ATTRIBUTE_DEVICE_POINTER => {
                self.known()?;
                out.cast::<CUdeviceptr>().set(self.address)
            }
            CU_POINTER_ATTRIBUTE_HOST_POINTER => {
                self.known()?;
                let of_host = self.is_host() || self.kind() == Some(RegionKind::Managed);
                out.cast::<u64>().set(if of_host { self.address } else { 0 })?;
                require(of_host)
            }
            CU_POINTER_ATTRIBUTE_BUFFER_ID => out.cast::<c_ulonglong>().set(self.known()?.id),
            CU_POINTER_ATTRIBUTE_IS_MANAGED => {
                self.known()?;
                yes_or_no(out, self.kind() == Some(RegionKind::Managed))
            }
            CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => {
                self.known()?;
                out.cast::<c_int>().set(DEVICE)
            }
            CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
                self.known()?;
                let plain = self.kind() == Some(RegionKind::Device) && pool::of(self.address).is_none();
                yes_or_no(out, plain)
            }
            CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => out.cast::<CUdeviceptr>().set(self.known()?.base.0),
            CU_POINTER_ATTRIBUTE_RANGE_SIZE => out.cast::<usize>().set(self.known()?.bytes as usize),
            CU_POINTER_ATTRIBUTE_MAPPED => {
                self.known()?;
                yes_or_no(out, true)
            }
            CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => {
                self.known()?;
                yes_or_no(out, !self.is_host())
            }
            CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => {
                self.known()?;
                out.cast::<u64>().set(0)
            }
            CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
            | CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => {
                self.known()?;
                yes_or_no(out, false)
            }
            CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => {
                self.known()?;
                out.cast::<u32>().set(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE.0)
            }
            CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => {
                self.known()?;
                let pool = pool::of(self.address).map_or(std::ptr::null_mut(), |pool| pool.handle.raw());
                out.cast::<CUmemoryPool>().set(pool)
            }
            CU_POINTER_ATTRIBUTE_MAPPING_SIZE => out.cast::<usize>().set(self.known()?.bytes as usize),
            CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => out.cast::<CUdeviceptr>().set(self.known()?.base.0),
            CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => out.cast::<c_ulonglong>().set(self.known()?.id),
            _ => refuse(CUDA_ERROR_INVALID_VALUE),
        }
    }

    fn memory_type(&self) -> Result<CUmemorytype> {
        self.known()?;
        Ok(if self.is_host() { CU_MEMORYTYPE_HOST } else { CU_MEMORYTYPE_DEVICE })
    }

    /// The context that the memory was allocated in; memory of the device as a whole has none.
    fn context(&self) -> Result<CUcontext> {
        use crate::handles::Object;
        let region = self.known()?;
        let owner = Context::registry().select(|context| context.owner() == region.owner);
        Ok(owner.first().map_or(std::ptr::null_mut(), |context| context.handle.raw()))
    }
}

pub fn cuPointerGetAttribute(
    data: Out<c_void>,
    attribute: CUpointer_attribute,
    ptr: CUdeviceptr,
) -> Result<()> {
    current::context()?;
    data.check()?;
    Pointer::look_up(ptr)?.answer(attribute, &data)
}

/// Several answers at once. Here a pointer that is unknown is no error: every answer about it is empty.
pub fn cuPointerGetAttributes(
    numAttributes: c_uint,
    attributes: Array<CUpointer_attribute>,
    data: Array<*mut c_void>,
    ptr: CUdeviceptr,
) -> Result<()> {
    current::context()?;
    let count = numAttributes as usize;
    let pointer = Pointer::look_up(ptr)?;
    for (attribute, place) in attributes.read(count)?.into_iter().zip(data.read(count)?) {
        require(
            (CU_POINTER_ATTRIBUTE_CONTEXT.0..=CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE.0)
                .contains(&attribute.0),
        )?;
        let out = crate::entry::out_at(Address(place.expose_provenance() as u64));
        out.check()?;
        if pointer.answer(attribute, &out).is_err() {
            empty(attribute, &out)?;
        }
    }
    Ok(())
}

/// A truth value takes four bytes here.
fn yes_or_no(out: &Out<c_void>, value: bool) -> Result<()> {
    out.cast::<u32>().set(u32::from(value))
}

fn empty(attribute: CUpointer_attribute, out: &Out<c_void>) -> Result<()> {
    match attribute {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE => out.cast::<u32>().set(0),
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => out.cast::<c_int>().set(CU_DEVICE_INVALID),
        CU_POINTER_ATTRIBUTE_IS_MANAGED
        | CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
        | CU_POINTER_ATTRIBUTE_MAPPED
        | CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
        | CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE
        | CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => yes_or_no(out, false),
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => out.cast::<u32>().set(0),
        _ => out.cast::<u64>().set(0),
    }
}

/// Copies are in order whatever this is set to.
pub fn cuPointerSetAttribute(value: Address, attribute: CUpointer_attribute, ptr: CUdeviceptr) -> Result<()> {
    current::context()?;
    require(!value.is_null())?;
    require(attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)?;
    Pointer::look_up(ptr)?.known().map(drop)
}
