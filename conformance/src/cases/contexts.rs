//! Contexts: created and primary, current on a thread, with their flags and limits.

use crate::answer::Code;
use crate::context::Context;
use crate::driver::*;
use crate::suite::Case;
use anyhow::{Result, ensure};
use std::ptr;

pub const CASES: &[Case] = &[
    Case::new("context/push_and_pop", push_pop),
    Case::new("context/current_is_per_thread", per_thread),
    Case::bare("context/calls_without_context_are_refused", without_context),
    Case::bare("context/primary_retain_and_release", primary),
    Case::bare("context/primary_flags", primary_flags),
    Case::bare("context/primary_reset_frees", primary_reset),
    Case::new("context/destroyed_handle_is_refused", destroyed).quiet().beyond_the_card(),
    Case::bare("context/creation_by_every_version", creation),
    Case::new("context/limits", limits),
    Case::new("context/device_version_and_id", device_and_version),
    Case::new("context/memory_is_reached_from_other_contexts", shared_memory),
    Case::new("context/no_peer_with_itself", peer),
];

fn current(driver: &Driver) -> Result<CUcontext> {
    let mut context = ptr::null_mut();
    driver.cuCtxGetCurrent(&mut context).ok()?;
    Ok(context)
}

fn push_pop(context: &Context<'_>) -> Result<()> {
    ensure!(current(context)? == context.handle(), "a created context is current");
    let mut second = ptr::null_mut();
    context.cuCtxCreate_v2(&mut second, 0, context.device()).ok()?;
    ensure!(current(context)? == second && second != context.handle());
    let mut popped = ptr::null_mut();
    context.cuCtxPopCurrent_v2(&mut popped).ok()?;
    ensure!(popped == second && current(context)? == context.handle());
    context.cuCtxPushCurrent_v2(second).ok()?;
    ensure!(current(context)? == second);
    // Destroying the current context takes it off the stack.
    context.cuCtxDestroy_v2(second).ok()?;
    ensure!(current(context)? == context.handle(), "the context below is current again");
    context.cuCtxSetCurrent(ptr::null_mut()).ok()?;
    ensure!(current(context)?.is_null());
    context.cuCtxPopCurrent_v2(&mut popped).is(Code::INVALID_CONTEXT)?;
    context.enter()
}

fn per_thread(context: &Context<'_>) -> Result<()> {
    std::thread::scope(|scope| {
        let other = scope.spawn(|| -> Result<()> {
            ensure!(current(context)?.is_null(), "a new thread has no context");
            let mut address = 0;
            context.cuMemAlloc_v2(&mut address, 16).is(Code::INVALID_CONTEXT)?;
            context.enter()?;
            context.cuMemAlloc_v2(&mut address, 16).ok()?;
            context.cuMemFree_v2(address).ok()
        });
        other.join().expect("the other thread does not panic")
    })?;
    ensure!(current(context)? == context.handle());
    Ok(())
}

fn without_context(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    let mut address = 0;
    driver.cuMemAlloc_v2(&mut address, 16).is(Code::INVALID_CONTEXT)?;
    driver.cuCtxSynchronize().is(Code::INVALID_CONTEXT)?;
    let mut stream = ptr::null_mut();
    driver.cuStreamCreate(&mut stream, 0).is(Code::INVALID_CONTEXT)?;
    let mut event = ptr::null_mut();
    driver.cuEventCreate(&mut event, 0).is(Code::INVALID_CONTEXT)?;
    let mut device = 0;
    driver.cuCtxGetDevice(&mut device).is(Code::INVALID_CONTEXT)?;
    let mut module = ptr::null_mut();
    driver.cuModuleLoadData(&mut module, c".version 7.0".as_ptr().cast()).is(Code::INVALID_CONTEXT)
}

fn primary(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    let (mut flags, mut active) = (9, 9);
    driver.cuDevicePrimaryCtxGetState(0, &mut flags, &mut active).ok()?;
    ensure!(active == 0, "the primary context is active before anybody asked for it");
    let (mut first, mut second) = (ptr::null_mut(), ptr::null_mut());
    driver.cuDevicePrimaryCtxRetain(&mut first, 0).ok()?;
    driver.cuDevicePrimaryCtxRetain(&mut second, 0).ok()?;
    ensure!(first == second && !first.is_null());
    ensure!(current(driver)?.is_null(), "retaining makes nothing current");
    driver.cuCtxSetCurrent(first).ok()?;
    let mut address = 0;
    driver.cuMemAlloc_v2(&mut address, 1024).ok()?;
    driver.cuDevicePrimaryCtxRelease_v2(0).ok()?;
    driver.cuMemFree_v2(address).ok()?;
    driver.cuDevicePrimaryCtxGetState(0, &mut flags, &mut active).ok()?;
    ensure!(active == 1);
    driver.cuDevicePrimaryCtxRelease_v2(0).ok()?;
    driver.cuDevicePrimaryCtxGetState(0, &mut flags, &mut active).ok()?;
    ensure!(active == 0, "released as often as retained, and still active");
    driver.cuDevicePrimaryCtxRelease_v2(0).is(Code::INVALID_CONTEXT)
}

fn primary_flags(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    driver.cuDevicePrimaryCtxSetFlags_v2(0, CU_CTX_SCHED_BLOCKING_SYNC.0).ok()?;
    let mut context = ptr::null_mut();
    driver.cuDevicePrimaryCtxRetain(&mut context, 0).ok()?;
    driver.cuCtxSetCurrent(context).ok()?;
    let (mut flags, mut active) = (0, 0);
    driver.cuDevicePrimaryCtxGetState(0, &mut flags, &mut active).ok()?;
    ensure!(flags & CU_CTX_SCHED_MASK.0 == CU_CTX_SCHED_BLOCKING_SYNC.0 && active == 1, "flags {flags:#x}");
    driver.cuCtxGetFlags(&mut flags).ok()?;
    ensure!(flags & CU_CTX_SCHED_MASK.0 == CU_CTX_SCHED_BLOCKING_SYNC.0, "flags {flags:#x}");
    driver.cuDevicePrimaryCtxSetFlags_v2(0, 0x4000_0000).is(Code::INVALID_VALUE)?;
    driver.cuDevicePrimaryCtxRelease_v2(0).ok()
}

fn primary_reset(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    let mut context = ptr::null_mut();
    driver.cuDevicePrimaryCtxRetain(&mut context, 0).ok()?;
    driver.cuCtxSetCurrent(context).ok()?;
    let mut address = 0;
    driver.cuMemAlloc_v2(&mut address, 1024).ok()?;
    driver.cuDevicePrimaryCtxReset_v2(0).ok()?;
    let (mut flags, mut active) = (0, 9);
    driver.cuDevicePrimaryCtxGetState(0, &mut flags, &mut active).ok()?;
    ensure!(active == 0, "active after a reset");
    let mut again = ptr::null_mut();
    driver.cuDevicePrimaryCtxRetain(&mut again, 0).ok()?;
    driver.cuCtxSetCurrent(again).ok()?;
    driver.cuMemFree_v2(address).is(Code::INVALID_VALUE)?;
    driver.cuMemAlloc_v2(&mut address, 1024).ok()?;
    driver.cuMemFree_v2(address).ok()
}

/// NVIDIA's driver reads what it has freed here: it gives now this answer, now that, and at times it aborts.
fn destroyed(context: &Context<'_>) -> Result<()> {
    let mut second = ptr::null_mut();
    context.cuCtxCreate_v2(&mut second, 0, context.device()).ok()?;
    let mut stream = ptr::null_mut();
    context.cuStreamCreate(&mut stream, 0).ok()?;
    context.cuCtxDestroy_v2(second).ok()?;
    context.enter()?;
    context.cuCtxDestroy_v2(second).is(Code::INVALID_CONTEXT)?;
    // It can be made current, but nothing can be done in it.
    context.cuCtxPushCurrent_v2(second).ok()?;
    let mut address = 0;
    context.cuMemAlloc_v2(&mut address, 4).is(Code::CONTEXT_IS_DESTROYED)?;
    context.cuCtxSynchronize().is(Code::CONTEXT_IS_DESTROYED)?;
    let mut popped = ptr::null_mut();
    context.cuCtxPopCurrent_v2(&mut popped).ok()?;
    ensure!(popped == second && current(context)? == context.handle());
    context.cuCtxDestroy_v2(ptr::null_mut()).is(Code::INVALID_VALUE)
}

fn creation(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    let mut context = ptr::null_mut();
    driver.cuCtxCreate_v2(&mut context, CU_CTX_SCHED_SPIN.0, 0).ok()?;
    let mut flags = 0;
    driver.cuCtxGetFlags(&mut flags).ok()?;
    ensure!(flags & CU_CTX_SCHED_MASK.0 == CU_CTX_SCHED_SPIN.0, "flags {flags:#x}");
    driver.cuCtxDestroy_v2(context).ok()?;
    driver.cuCtxCreate_v3(&mut context, ptr::null_mut(), 0, 0, 0).ok()?;
    driver.cuCtxDestroy_v2(context).ok()?;
    driver.cuCtxCreate_v4(&mut context, ptr::null_mut(), 0, 0).ok()?;
    driver.cuCtxDestroy_v2(context).ok()?;
    driver.cuCtxCreate_v2(&mut context, 0, 1234).is(Code::INVALID_DEVICE)?;
    driver.cuCtxCreate_v2(&mut context, 0x4000_0000, 0).is(Code::INVALID_VALUE)?;
    driver.cuCtxCreate_v2(ptr::null_mut(), 0, 0).is(Code::INVALID_VALUE)
}

fn limits(context: &Context<'_>) -> Result<()> {
    let get = |limit| -> Result<usize> {
        let mut value = 0;
        context.cuCtxGetLimit(&mut value, limit).ok()?;
        Ok(value)
    };
    ensure!(get(CU_LIMIT_STACK_SIZE)? > 0);
    ensure!(get(CU_LIMIT_PRINTF_FIFO_SIZE)? > 0);
    ensure!(get(CU_LIMIT_MALLOC_HEAP_SIZE)? > 0);
    context.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 16 * 1024).ok()?;
    let got = get(CU_LIMIT_STACK_SIZE)?;
    ensure!(got >= 16 * 1024, "asked for a stack of 16 KiB, got {got}");
    context.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 16 << 20).ok()?;
    ensure!(get(CU_LIMIT_MALLOC_HEAP_SIZE)? >= 16 << 20);
    let mut value = 0;
    context.cuCtxGetLimit(&mut value, CUlimit_enum(77)).is(Code::INVALID_VALUE)?;
    context.cuCtxSetLimit(CUlimit_enum(77), 1).is(Code::INVALID_VALUE)
}

fn device_and_version(context: &Context<'_>) -> Result<()> {
    let mut device = -1;
    context.cuCtxGetDevice(&mut device).ok()?;
    ensure!(device == context.device());
    let mut version = 0;
    context.cuCtxGetApiVersion(context.handle(), &mut version).ok()?;
    ensure!(version > 0, "API version {version}");
    let (mut mine, mut other) = (0, 0);
    context.cuCtxGetId(context.handle(), &mut mine).ok()?;
    let mut second = ptr::null_mut();
    context.cuCtxCreate_v2(&mut second, 0, context.device()).ok()?;
    context.cuCtxGetId(second, &mut other).ok()?;
    context.cuCtxDestroy_v2(second).ok()?;
    ensure!(mine != other, "two contexts with the id {mine}");
    let mut config = CUfunc_cache_enum(9);
    context.cuCtxGetCacheConfig(&mut config).ok()?;
    context.cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1).ok()
}

fn shared_memory(context: &Context<'_>) -> Result<()> {
    // One address space per process: memory of one context can be copied with another current.
    let buffer = context.buffer(&[5u32, 6, 7])?;
    let mut second = ptr::null_mut();
    context.cuCtxCreate_v2(&mut second, 0, context.device()).ok()?;
    let mut values = [0u32; 3];
    context.cuMemcpyDtoH_v2(values.as_mut_ptr().cast(), buffer.address(), 12).ok()?;
    ensure!(values == [5, 6, 7]);
    let mut owner: CUcontext = ptr::null_mut();
    let which = CU_POINTER_ATTRIBUTE_CONTEXT;
    context.cuPointerGetAttribute((&raw mut owner).cast(), which, buffer.address()).ok()?;
    ensure!(owner == context.handle(), "the buffer belongs to another context");
    context.cuCtxDestroy_v2(second).ok()?;
    context.enter()
}

fn peer(context: &Context<'_>) -> Result<()> {
    let mut can = 9;
    let device = context.device();
    context.cuDeviceCanAccessPeer(&mut can, device, device).ok()?;
    ensure!(can == 0, "a device is its own peer");
    context.cuDeviceCanAccessPeer(&mut can, device, 1000).is(Code::INVALID_DEVICE)
}
