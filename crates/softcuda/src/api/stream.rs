//! Streams.

use std::sync::atomic::Ordering::Relaxed;

use super::prelude::*;
use crate::entry::{self, HostFunction, StreamCallback};
use crate::state::capture;
use crate::state::operation::Operation;
use crate::state::stream::Kind;

pub fn cuStreamCreate(phStream: Out<CUstream>, Flags: c_uint) -> Result<()> {
    cuStreamCreateWithPriority(phStream, Flags, 0)
}

pub fn cuStreamCreateWithPriority(phStream: Out<CUstream>, flags: c_uint, priority: c_int) -> Result<()> {
    let context = current::context()?;
    phStream.check()?;
    let kind = match flags {
        flags if flags == CU_STREAM_DEFAULT.0 => Kind::Blocking,
        flags if flags == CU_STREAM_NON_BLOCKING.0 => Kind::NonBlocking,
        _ => return refuse(CUDA_ERROR_INVALID_VALUE),
    };
    phStream.set(Stream::create(&context, kind, priority, None).handle.raw())
}

/// Work in the stream goes on to its end.
pub fn cuStreamDestroy_v2(hStream: Handle<Stream>) -> Result<()> {
    driver()?;
    let stream = hStream.take()?;
    if let Some(capture) = lock(&stream.capture).clone() {
        capture.invalidate();
    }
    stream.destroy();
    Ok(())
}

pub fn cuStreamDestroy(hStream: Handle<Stream>) -> Result<()> {
    cuStreamDestroy_v2(hStream)
}

pub fn cuStreamGetPriority(hStream: Handle<Stream>, priority: Out<c_int>) -> Result<()> {
    priority.set(Stream::find(hStream)?.priority)
}

pub fn cuStreamGetFlags(hStream: Handle<Stream>, flags: Out<c_uint>) -> Result<()> {
    flags.set(Stream::find(hStream)?.flags())
}

pub fn cuStreamGetId(hStream: Handle<Stream>, streamId: Out<c_ulonglong>) -> Result<()> {
    streamId.set(Stream::find(hStream)?.id)
}

pub fn cuStreamGetDevice(hStream: Handle<Stream>, device: Out<CUdevice>) -> Result<()> {
    Stream::find(hStream)?;
    device.set(DEVICE)
}

pub fn cuStreamGetCtx(hStream: Handle<Stream>, pctx: Out<CUcontext>) -> Result<()> {
    pctx.set(Stream::find(hStream)?.context()?.handle.raw())
}

pub fn cuStreamGetCtx_v2(
    hStream: Handle<Stream>,
    pCtx: Out<CUcontext>,
    pGreenCtx: Out<CUgreenCtx>,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    pGreenCtx.set_if_wanted(stream.green_handle());
    pCtx.set(stream.context()?.handle.raw())
}

/// Whether the stream may be waited for; asking spoils a capture, of this stream or of others.
fn outside_capture(stream: &Stream) -> Result<()> {
    let context = stream.context()?;
    capture::forbid_unsafe_call()?;
    if let Some(capture) = capture::of(stream, &context)? {
        capture.invalidate();
        return refuse(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    Ok(())
}

pub fn cuStreamQuery(hStream: Handle<Stream>) -> Result<()> {
    let in_host_function = entry::is_forbidden_here();
    entry::even_in_host_functions(|| {
        let stream = Stream::find(hStream)?;
        outside_capture(&stream)?;
        let idle = stream.context()?.ask(in_host_function, || stream.is_idle())?;
        if idle { Ok(()) } else { refuse(CUDA_ERROR_NOT_READY) }
    })
}

pub fn cuStreamSynchronize(hStream: Handle<Stream>) -> Result<()> {
    let stream = Stream::find(hStream)?;
    outside_capture(&stream)?;
    stream.synchronise()
}

pub fn cuLaunchHostFunc(hStream: Handle<Stream>, fn_: CUhostFn, userData: Address) -> Result<()> {
    let stream = Stream::find(hStream)?;
    stream.enqueue(Operation::Host(HostFunction::new(fn_, userData)?)).map(drop)
}

pub fn cuStreamAddCallback(
    hStream: Handle<Stream>,
    callback: CUstreamCallback,
    userData: Address,
    flags: c_uint,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    require(flags == 0)?;
    let callback = StreamCallback::new(callback, hStream.value(), userData)?;
    stream.enqueue(Operation::Callback(callback)).map(drop)
}

/// Managed memory is attached to everything here.
pub fn cuStreamAttachMemAsync(
    hStream: Handle<Stream>,
    dptr: CUdeviceptr,
    _length: usize,
    flags: c_uint,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    let known = [CU_MEM_ATTACH_GLOBAL.0, CU_MEM_ATTACH_HOST.0, CU_MEM_ATTACH_SINGLE.0];
    require(known.contains(&flags))?;
    let region = stream.context()?.driver.space.lookup(dptr);
    require(region.is_some_and(|region| region.kind == softgpu::memory::RegionKind::Managed))
}

pub fn cuStreamGetAttribute(
    hStream: Handle<Stream>,
    attr: CUstreamAttrID,
    value_out: Out<CUstreamAttrValue>,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    value_out.check()?;
    match attr {
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {
            value_out.cast::<u32>().set(stream.synchronisation_policy.load(Relaxed))
        }
        CU_LAUNCH_ATTRIBUTE_PRIORITY => value_out.cast::<c_int>().set(stream.priority),
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => value_out.set(CUstreamAttrValue::default()),
        // The default domain is 0, the remote one 1: one byte each.
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP => value_out.cast::<[u8; 2]>().set([0, 1]),
        CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN => value_out.cast::<u32>().set(0),
        _ => refuse(CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn cuStreamSetAttribute(
    hStream: Handle<Stream>,
    attr: CUstreamAttrID,
    value: In<CUstreamAttrValue>,
) -> Result<()> {
    let stream = Stream::find(hStream)?;
    match attr {
        CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY => {
            let policy = value.cast::<u32>().get()?;
            require((CU_SYNC_POLICY_AUTO.0..=CU_SYNC_POLICY_BLOCKING_SYNC.0).contains(&policy))?;
            stream.synchronisation_policy.store(policy, Relaxed);
            Ok(())
        }
        // A hint on caching, of which there is none.
        CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW => value.get().map(drop),
        _ => refuse(CUDA_ERROR_INVALID_VALUE),
    }
}

pub fn cuStreamCopyAttributes(dst: Handle<Stream>, src: Handle<Stream>) -> Result<()> {
    let (to, from) = (Stream::find(dst)?, Stream::find(src)?);
    to.synchronisation_policy.store(from.synchronisation_policy.load(Relaxed), Relaxed);
    Ok(())
}
