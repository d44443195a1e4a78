//! Contexts: making, choosing, asking.

use std::sync::atomic::Ordering::Relaxed;

use super::prelude::*;
use crate::state::capture;
use crate::state::driver::CONTEXT_VERSION;
use crate::state::event::Event;
use crate::state::stream::{GREATEST_PRIORITY, LEAST_PRIORITY};

pub fn check_flags(flags: c_uint) -> Result<()> {
    require(flags & !CU_CTX_FLAGS_MASK.0 == 0)?;
    let scheduling = flags & CU_CTX_SCHED_MASK.0;
    require(
        [0, CU_CTX_SCHED_SPIN.0, CU_CTX_SCHED_YIELD.0, CU_CTX_SCHED_BLOCKING_SYNC.0].contains(&scheduling),
    )
}

pub fn cuCtxCreate_v2(pctx: Out<CUcontext>, flags: c_uint, dev: CUdevice) -> Result<()> {
    let driver = driver()?;
    pctx.check()?;
    check_flags(flags)?;
    driver.check_device(dev)?;
    let context = Context::create(driver, None, flags)?;
    current::push(context.handle)?;
    pctx.set(context.handle.raw())
}

pub fn cuCtxCreate_v3(
    pctx: Out<CUcontext>,
    paramsArray: Array<CUexecAffinityParam>,
    numParams: c_int,
    flags: c_uint,
    dev: CUdevice,
) -> Result<()> {
    driver()?;
    if numParams != 0 || !paramsArray.is_null() {
        return Err(Error::new(
            CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY,
            "contexts with execution affinity are not supported",
        ));
    }
    cuCtxCreate_v2(pctx, flags, dev)
}

pub fn cuCtxCreate_v4(
    pctx: Out<CUcontext>,
    ctxCreateParams: In<CUctxCreateParams>,
    flags: c_uint,
    dev: CUdevice,
) -> Result<()> {
    driver()?;
    if let Some(params) = ctxCreateParams.optional()
        && (params.numExecAffinityParams != 0 || !params.cigParams.is_null())
    {
        return Err(Error::new(
            CUDA_ERROR_NOT_SUPPORTED,
            "contexts with execution affinity or graphics are not supported",
        ));
    }
    cuCtxCreate_v2(pctx, flags, dev)
}

pub fn cuCtxDestroy_v2(ctx: Handle<Context>) -> Result<()> {
    let driver = driver()?;
    require(!ctx.is_null())?;
    let context = ctx.get()?;
    if context.is_primary {
        return refuse(CUDA_ERROR_INVALID_CONTEXT);
    }
    debug_assert!(std::ptr::eq(context.driver, driver), "one driver per process");
    context.destroy();
    current::forget(&context);
    Ok(())
}

pub fn cuCtxDestroy(ctx: Handle<Context>) -> Result<()> {
    cuCtxDestroy_v2(ctx)
}

pub fn cuCtxDetach(ctx: Handle<Context>) -> Result<()> {
    cuCtxDestroy_v2(ctx)
}

pub fn cuCtxPushCurrent_v2(ctx: Handle<Context>) -> Result<()> {
    driver()?;
    require(!ctx.is_null())?;
    current::push(ctx)
}

pub fn cuCtxPushCurrent(ctx: Handle<Context>) -> Result<()> {
    cuCtxPushCurrent_v2(ctx)
}

pub fn cuCtxPopCurrent_v2(pctx: Out<CUcontext>) -> Result<()> {
    driver()?;
    pctx.set_if_wanted(current::pop()?.raw());
    Ok(())
}

pub fn cuCtxPopCurrent(pctx: Out<CUcontext>) -> Result<()> {
    cuCtxPopCurrent_v2(pctx)
}

pub fn cuCtxSetCurrent(ctx: Handle<Context>) -> Result<()> {
    driver()?;
    current::set(ctx)
}

pub fn cuCtxGetCurrent(pctx: Out<CUcontext>) -> Result<()> {
    driver()?;
    pctx.set(current::handle().raw())
}

pub fn cuCtxGetDevice(device: Out<CUdevice>) -> Result<()> {
    driver()?;
    if current::handle().is_null() {
        return refuse(CUDA_ERROR_INVALID_CONTEXT);
    }
    device.set(DEVICE)
}

pub fn cuCtxGetDevice_v2(device: Out<CUdevice>, ctx: Handle<Context>) -> Result<()> {
    given_or_current(ctx)?;
    device.set(DEVICE)
}

fn given_or_current(ctx: Handle<Context>) -> Result<Arc<Context>> {
    if ctx.is_null() {
        return current::context_whatever_its_state();
    }
    driver()?;
    ctx.get()
}

pub fn cuCtxGetFlags(flags: Out<c_uint>) -> Result<()> {
    flags.set(current::context()?.flags.load(Relaxed))
}

pub fn cuCtxSetFlags(flags: c_uint) -> Result<()> {
    let context = current::context()?;
    check_flags(flags)?;
    context.flags.store(flags, Relaxed);
    Ok(())
}

pub fn cuCtxGetId(ctx: Handle<Context>, ctxId: Out<c_ulonglong>) -> Result<()> {
    ctxId.set(given_or_current(ctx)?.id)
}

pub fn cuCtxGetApiVersion(ctx: Handle<Context>, version: Out<c_uint>) -> Result<()> {
    given_or_current(ctx)?;
    version.set(CONTEXT_VERSION)
}

pub fn cuCtxSynchronize() -> Result<()> {
    let context = current::context()?;
    synchronise(&context)
}

pub fn cuCtxSynchronize_v2(ctx: Handle<Context>) -> Result<()> {
    let context = given_or_current(ctx)?;
    context.check()?;
    synchronise(&context)
}

fn synchronise(context: &Context) -> Result<()> {
    capture::forbid_in(context)?;
    context.wait_for_all()?;
    context.check()
}

pub fn cuCtxSetLimit(limit: CUlimit, value: usize) -> Result<()> {
    lock(&current::context()?.limits).set(limit, value as u64)
}

pub fn cuCtxGetLimit(pvalue: Out<usize>, limit: CUlimit) -> Result<()> {
    let value = lock(&current::context()?.limits).get(limit)?;
    pvalue.set(value as usize)
}

pub fn cuCtxGetCacheConfig(pconfig: Out<CUfunc_cache>) -> Result<()> {
    let config = lock(&current::context()?.limits).cache_config();
    pconfig.set(CUfunc_cache_enum(config))
}

pub fn cuCtxSetCacheConfig(config: CUfunc_cache) -> Result<()> {
    let context = current::context()?;
    require(config.0 <= CU_FUNC_CACHE_PREFER_EQUAL.0)?;
    lock(&context.limits).set_cache_config(config.0);
    Ok(())
}

pub fn cuCtxGetSharedMemConfig(pConfig: Out<CUsharedconfig>) -> Result<()> {
    current::context()?;
    pConfig.set(CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE)
}

/// Banks have four bytes, as on every card of the last ten years; other wishes are accepted and ignored there, too.
pub fn cuCtxSetSharedMemConfig(config: CUsharedconfig) -> Result<()> {
    current::context()?;
    require(config.0 <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE.0)
}

pub fn cuCtxGetStreamPriorityRange(leastPriority: Out<c_int>, greatestPriority: Out<c_int>) -> Result<()> {
    current::context()?;
    leastPriority.set_if_wanted(LEAST_PRIORITY);
    greatestPriority.set_if_wanted(GREATEST_PRIORITY);
    Ok(())
}

pub fn cuCtxResetPersistingL2Cache() -> Result<()> {
    current::context().map(drop)
}

/// Records an event after everything submitted to the context.
pub fn cuCtxRecordEvent(hCtx: Handle<Context>, hEvent: Handle<Event>) -> Result<()> {
    let context = given_or_current(hCtx)?;
    context.check()?;
    capture::forbid_in(&context)?;
    hEvent.get()?.record_everything(&context)
}

/// Makes everything that is submitted to the context from now on wait for an event.
pub fn cuCtxWaitEvent(hCtx: Handle<Context>, hEvent: Handle<Event>) -> Result<()> {
    let context = given_or_current(hCtx)?;
    context.check()?;
    capture::forbid_in(&context)?;
    let event = hEvent.get()?;
    for stream in context.streams().iter().chain([&context.legacy]) {
        event.hold(stream, false)?;
    }
    Ok(())
}

pub fn cuCtxEnablePeerAccess(peerContext: Handle<Context>, Flags: c_uint) -> Result<()> {
    let context = current::context()?;
    require(Flags == 0)?;
    let peer = peerContext.get()?;
    refuse(if peer.id == context.id {
        CUDA_ERROR_INVALID_CONTEXT
    } else {
        CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
    })
}

pub fn cuCtxDisablePeerAccess(peerContext: Handle<Context>) -> Result<()> {
    current::context()?;
    peerContext.get()?;
    refuse(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
}
