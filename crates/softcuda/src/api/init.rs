//! Beginning, versions, names of errors, and finding functions.

use std::ffi::CStr;

use super::prelude::*;
use crate::exports;
use crate::state::driver::{self, VERSION};

pub fn cuInit(Flags: c_uint) -> Result<()> {
    require(Flags == 0)?;
    driver::init()
}

pub fn cuDriverGetVersion(driverVersion: Out<c_int>) -> Result<()> {
    driverVersion.set(VERSION)
}

pub fn cuGetErrorName(error: CUresult, pStr: Out<*const c_char>) -> Result<()> {
    describe(error.name(), &pStr)
}

pub fn cuGetErrorString(error: CUresult, pStr: Out<*const c_char>) -> Result<()> {
    describe(error.description(), &pStr)
}

fn describe(text: Option<&'static CStr>, out: &Out<*const c_char>) -> Result<()> {
    out.set(text.map_or(std::ptr::null(), CStr::as_ptr))?;
    require(text.is_some())
}

/// The flags that `cuGetProcAddress` knows.
const PROC_FLAGS: u64 =
    (CU_GET_PROC_ADDRESS_LEGACY_STREAM.0 | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.0) as u64;

pub fn cuGetProcAddress(symbol: Text, pfn: Out<*mut c_void>, cudaVersion: c_int, flags: u64) -> Result<()> {
    let (address, _) = find(&symbol, cudaVersion, flags)?;
    pfn.set(address)?;
    if address.is_null() { refuse(CUDA_ERROR_NOT_FOUND) } else { Ok(()) }
}

/// The newer form says in `symbolStatus` what it found, and is content to give a null pointer.
pub fn cuGetProcAddress_v2(
    symbol: Text,
    pfn: Out<*mut c_void>,
    cudaVersion: c_int,
    flags: u64,
    symbolStatus: Out<CUdriverProcAddressQueryResult>,
) -> Result<()> {
    let (address, status) = find(&symbol, cudaVersion, flags)?;
    pfn.set(address)?;
    symbolStatus.set_if_wanted(status);
    Ok(())
}

fn find(symbol: &Text, version: c_int, flags: u64) -> Result<(*mut c_void, CUdriverProcAddressQueryResult)> {
    let name = symbol.get()?;
    require(flags & !PROC_FLAGS == 0 && version <= VERSION)?;
    Ok(match cuda_abi::symbol(&name, version, flags) {
        Lookup::Found(function) => (exports::address_of(function).cast_mut(), CU_GET_PROC_ADDRESS_SUCCESS),
        Lookup::VersionTooLow => (std::ptr::null_mut(), CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
        Lookup::NotFound => (std::ptr::null_mut(), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
    })
}

/// The private tables of NVIDIA's own libraries are not something to imitate.
pub fn cuGetExportTable(ppExportTable: Out<*const c_void>, pExportTableId: In<CUuuid>) -> Result<()> {
    ppExportTable.set(std::ptr::null())?;
    pExportTableId.get()?;
    Err(Error::new(
        CUDA_ERROR_NOT_FOUND,
        "private tables of the driver are not provided (runtime-API programs need them)",
    ))
}

pub fn cuProfilerStart() -> Result<()> {
    current::context().map(drop)
}

pub fn cuProfilerStop() -> Result<()> {
    current::context().map(drop)
}

pub fn cuFlushGPUDirectRDMAWrites(
    _target: CUflushGPUDirectRDMAWritesTarget,
    _scope: CUflushGPUDirectRDMAWritesScope,
) -> Result<()> {
    current::context()?;
    Err(Error::unsupported("remote memory access by other devices"))
}
