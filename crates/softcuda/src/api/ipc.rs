//! Memory of other processes.

use softgpu::memory::{DevicePointer, ExportedMemory};

use super::prelude::*;

pub fn cuIpcGetMemHandle(pHandle: Out<CUipcMemHandle>, dptr: CUdeviceptr) -> Result<()> {
    let context = current::context()?;
    pHandle.check()?;
    // Any address inside an allocation names the whole of it.
    let region = context.driver.space.lookup(dptr).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    let exported = context.driver.space.export(region.base)?;
    pHandle.set(CUipcMemHandle { reserved: exported.to_bytes().map(|byte| byte as c_char) })
}

pub fn cuIpcOpenMemHandle_v2(pdptr: Out<CUdeviceptr>, handle: CUipcMemHandle, Flags: c_uint) -> Result<()> {
    let context = current::context()?;
    pdptr.check()?;
    let bytes = handle.reserved.map(|byte| byte as u8);
    let Some(exported) = ExportedMemory::from_bytes(bytes) else { return refuse(CUDA_ERROR_INVALID_VALUE) };
    if exported.pid() == std::process::id() {
        return Err(Error::new(CUDA_ERROR_INVALID_CONTEXT, "a process cannot open its own memory handles"));
    }
    require(Flags & !CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0 == 0)?;
    pdptr.set(context.driver.space.import(context.owner(), &exported)?.0)
}

pub fn cuIpcOpenMemHandle(pdptr: Out<CUdeviceptr>, handle: CUipcMemHandle, Flags: c_uint) -> Result<()> {
    cuIpcOpenMemHandle_v2(pdptr, handle, Flags)
}

pub fn cuIpcCloseMemHandle(dptr: CUdeviceptr) -> Result<()> {
    let context = current::context()?;
    context.bring_to_rest()?;
    Ok(context.driver.space.close_import(DevicePointer(dptr))?)
}
