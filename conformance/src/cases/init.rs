//! Before and during initialisation; what the device says of itself.

use crate::answer::Code;
use crate::cases::support::attribute;
use crate::context::Context;
use crate::driver::*;
use crate::suite::Case;
use anyhow::{Result, ensure};
use std::ffi::{CStr, c_char};
use std::ptr;

pub const CASES: &[Case] = &[
    Case::bare("init/calls_before_init_are_refused", before_init),
    Case::bare("init/version_and_repeated_init", version),
    Case::bare("init/error_names_and_strings", error_names),
    Case::bare("init/devices", devices),
    Case::new("init/device_attributes_make_sense", attributes),
    Case::new("init/device_identity", identity),
];

fn before_init(driver: &Driver) -> Result<()> {
    let mut count = 0;
    driver.cuDeviceGetCount(&mut count).is(Code::NOT_INITIALIZED)?;
    let mut device = 0;
    driver.cuDeviceGet(&mut device, 0).is(Code::NOT_INITIALIZED)?;
    let mut context = ptr::null_mut();
    driver.cuCtxCreate_v2(&mut context, 0, 0).is(Code::NOT_INITIALIZED)?;
    driver.cuCtxGetCurrent(&mut context).is(Code::NOT_INITIALIZED)?;
    let mut address = 0;
    driver.cuMemAlloc_v2(&mut address, 4).is(Code::NOT_INITIALIZED)?;
    driver.cuCtxSynchronize().is(Code::NOT_INITIALIZED)?;
    driver.cuInit(1).is(Code::INVALID_VALUE)
}

fn version(driver: &Driver) -> Result<()> {
    let mut version = 0;
    driver.cuDriverGetVersion(&mut version).ok()?;
    ensure!((12_000..100_000).contains(&version), "version {version}");
    driver.cuDriverGetVersion(ptr::null_mut()).is(Code::INVALID_VALUE)?;
    driver.cuInit(0).ok()?;
    driver.cuInit(0).ok()
}

fn error_names(driver: &Driver) -> Result<()> {
    for (code, name) in [
        (0, "CUDA_SUCCESS"),
        (1, "CUDA_ERROR_INVALID_VALUE"),
        (2, "CUDA_ERROR_OUT_OF_MEMORY"),
        (218, "CUDA_ERROR_INVALID_PTX"),
        (700, "CUDA_ERROR_ILLEGAL_ADDRESS"),
        (719, "CUDA_ERROR_LAUNCH_FAILED"),
        (999, "CUDA_ERROR_UNKNOWN"),
    ] {
        let got = driver.error_name(code);
        ensure!(got == name, "error {code} is called {got}, wanted {name}");
        let mut text: *const c_char = ptr::null();
        driver.cuGetErrorString(CUresult(code), &mut text).ok()?;
        // SAFETY: on success the driver gives a static C string.
        let text = unsafe { CStr::from_ptr(text) };
        ensure!(!text.is_empty(), "error {code} has an empty description");
    }
    let mut text: *const c_char = c"set".as_ptr();
    driver.cuGetErrorName(CUresult(123_456), &mut text).is(Code::INVALID_VALUE)?;
    ensure!(text.is_null(), "the name of an unknown error is not null");
    text = c"set".as_ptr();
    driver.cuGetErrorString(CUresult(123_456), &mut text).is(Code::INVALID_VALUE)?;
    ensure!(text.is_null(), "the description of an unknown error is not null");
    Ok(())
}

fn devices(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    let mut count = 0;
    driver.cuDeviceGetCount(&mut count).ok()?;
    ensure!(count >= 1, "{count} devices");
    let mut device = -1;
    driver.cuDeviceGet(&mut device, 0).ok()?;
    driver.cuDeviceGet(&mut device, count).is(Code::INVALID_DEVICE)?;
    driver.cuDeviceGet(&mut device, -1).is(Code::INVALID_DEVICE)?;
    let mut value = 0;
    driver.cuDeviceGetAttribute(&mut value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, count).is(Code::INVALID_DEVICE)
}

fn attributes(context: &Context<'_>) -> Result<()> {
    let get = |which| attribute(context, which);
    let warp = get(CU_DEVICE_ATTRIBUTE_WARP_SIZE)?;
    ensure!(warp == 32, "warps of {warp}");
    let block = get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    ensure!(block == 1024, "{block} threads per block");
    let limits = [
        get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
        get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
        get(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
        get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
        get(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
    ];
    ensure!(limits == [1024, 1024, 64, i32::MAX, 65535, 65535], "geometry limits {limits:?}");
    let shared = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?;
    let opt_in = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let per_sm = get(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?;
    ensure!(shared == 48 * 1024 && opt_in >= shared && per_sm >= opt_in, "{shared} {opt_in} {per_sm}");
    ensure!(get(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? >= 1);
    ensure!(get(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)? >= block);
    ensure!(get(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? >= 8);
    for yes in [
        CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING,
        CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
        CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS,
        CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH,
        CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
        CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
    ] {
        ensure!(get(yes)? == 1, "attribute {yes:?} is not 1");
    }
    let mut value = 0;
    let device = context.device();
    context.cuDeviceGetAttribute(&mut value, CUdevice_attribute_enum(0), device).is(Code::INVALID_VALUE)?;
    context.cuDeviceGetAttribute(&mut value, CUdevice_attribute_enum(100_000), device).is(Code::INVALID_VALUE)
}

fn identity(context: &Context<'_>) -> Result<()> {
    let device = context.device();
    let mut name = [1 as c_char; 128];
    context.cuDeviceGetName(name.as_mut_ptr(), 128, device).ok()?;
    // SAFETY: the driver ends the name with a zero byte within the length it was given.
    let text = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    ensure!(!text.is_empty() && text.len() < 128, "the device is called {text:?}");
    let mut bytes = 0;
    context.cuDeviceTotalMem_v2(&mut bytes, device).ok()?;
    ensure!(bytes >= 64 << 20, "{bytes} bytes of memory");
    let (mut free, mut total) = (0, 0);
    context.cuMemGetInfo_v2(&mut free, &mut total).ok()?;
    ensure!(free > 0 && free <= total && total <= bytes, "{free} free of {total}, device has {bytes}");
    let mut uuid = CUuuid::default();
    context.cuDeviceGetUuid_v2(&mut uuid, device).ok()?;
    ensure!(uuid.bytes.iter().any(|&byte| byte != 0), "the UUID is zero");
    let mut bus = [0 as c_char; 32];
    context.cuDeviceGetPCIBusId(bus.as_mut_ptr(), 32, device).ok()?;
    let mut found = -1;
    context.cuDeviceGetByPCIBusId(&mut found, bus.as_ptr()).ok()?;
    ensure!(found == device, "the bus id leads to device {found}");
    println!("note: {text}, {} MiB", bytes >> 20);
    Ok(())
}
