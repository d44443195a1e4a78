//! Green contexts: streams whose kernels have only some of the SMs.

use crate::answer::{Answer, Code};
use crate::args;
use crate::cases::support::attribute;
use crate::context::Context;
use crate::driver::*;
use crate::memory::Buffer;
use crate::module::Module;
use crate::stream::{DISABLE_TIMING, Event, NON_BLOCKING, Stream};
use crate::suite::{Case, Skipped};
use anyhow::{Result, ensure};
use std::collections::BTreeSet;
use std::ptr::{null, null_mut};

pub const CASES: &[Case] = &[
    Case::new("green/device_has_the_sms_of_its_attribute", device_has_all),
    Case::new("green/split_leaves_the_rest", split_leaves_the_rest),
    Case::new("green/split_gives_as_many_groups_as_it_says", split_into_many),
    Case::new("green/kernels_stay_on_the_sms_of_their_group", kernels_stay),
    Case::new("green/streams_know_their_green_context", streams_know),
    Case::new("green/other_streams_wait_for_a_green_one", others_wait),
    Case::new("green/bad_arguments_are_refused", bad_arguments),
];

/// Each block notes its SM, each thread a number that only it can compute; blocks stay a while, so that they spread.
const SURVEY: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry survey(.param .u64 sms, .param .u64 numbers)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<7>;
    ld.param.u64 %rd1, [sms];
    ld.param.u64 %rd2, [numbers];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    mad.lo.u32 %r5, %r4, 3, 1;
    mul.wide.u32 %rd3, %r4, 4;
    add.u64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r5;
    setp.ne.u32 %p1, %r3, 0;
    @%p1 bra stay;
    mov.u32 %r6, %smid;
    mul.wide.u32 %rd5, %r1, 4;
    add.u64 %rd6, %rd1, %rd5;
    st.global.u32 [%rd6], %r6;
stay:
    mov.u32 %r7, 100000;
    nanosleep.u32 %r7;
    ret;
}
\0";

const THREADS: u32 = 64;

/// The device's primary context, current on this thread: streams of green contexts belong to it.
struct Primary<'d> {
    driver: &'d Driver,
    device: CUdevice,
    handle: CUcontext,
}

impl<'d> Primary<'d> {
    fn enter(context: &Context<'d>) -> Result<Self> {
        let (driver, device) = (context.driver(), context.device());
        let mut handle = null_mut();
        driver.cuDevicePrimaryCtxRetain(&mut handle, device).ok()?;
        let primary = Primary { driver, device, handle };
        driver.cuCtxPushCurrent_v2(handle).ok()?;
        Ok(primary)
    }
}

impl Drop for Primary<'_> {
    fn drop(&mut self) {
        // The case has been judged; whatever these answer, the process ends soon.
        let _ = self.driver.cuCtxPopCurrent_v2(&mut null_mut());
        let _ = self.driver.cuDevicePrimaryCtxRelease_v2(self.device);
    }
}

/// A green context with one stream.
struct Green<'d> {
    driver: &'d Driver,
    handle: CUgreenCtx,
    stream: CUstream,
}

impl<'d> Green<'d> {
    fn new(context: &Context<'d>, mut resource: CUdevResource) -> Result<Self> {
        let driver = context.driver();
        let (mut description, mut handle, mut stream) = (null_mut(), null_mut(), null_mut());
        driver.cuDevResourceGenerateDesc(&mut description, &mut resource, 1).ok()?;
        let flags = CU_GREEN_CTX_DEFAULT_STREAM.0;
        driver.cuGreenCtxCreate(&mut handle, description, context.device(), flags).ok()?;
        driver.cuGreenCtxStreamCreate(&mut stream, handle, NON_BLOCKING, -1).ok()?;
        Ok(Green { driver, handle, stream })
    }
}

impl Drop for Green<'_> {
    fn drop(&mut self) {
        // The stream first: one whose green context is gone can only be destroyed, if that.
        let _ = self.driver.cuStreamDestroy_v2(self.stream);
        let _ = self.driver.cuGreenCtxDestroy(self.handle);
    }
}

fn sm_count(resource: &CUdevResource) -> u32 {
    // SAFETY: plain numbers, of which any bits are a value; all bytes were written, by the driver or as zeroes.
    unsafe { resource.__bindgen_anon_1.sm.smCount }
}

/// All SMs of the device, or an end of the case where there are no green contexts.
fn all_sms(context: &Context<'_>) -> Result<CUdevResource> {
    if context.symbol(c"cuGreenCtxStreamCreate").is_null() {
        return Err(Skipped("the driver is older than streams of green contexts".to_owned()).into());
    }
    let mut all = CUdevResource::default();
    let answer = context.cuDeviceGetDevResource(context.device(), &mut all, CU_DEV_RESOURCE_TYPE_SM);
    if answer.code == Code::NOT_SUPPORTED {
        return Err(Skipped("the driver has no green contexts on this device".to_owned()).into());
    }
    answer.ok()?;
    Ok(all)
}

/// One group of at least so many SMs, and what is left.
fn split(context: &Context<'_>, all: &CUdevResource, least: u32) -> Result<(CUdevResource, CUdevResource)> {
    let (mut group, mut rest) = (CUdevResource::default(), CUdevResource::default());
    let mut groups = 1;
    context.cuDevSmResourceSplitByCount(&mut group, &mut groups, all, &mut rest, 0, least).ok()?;
    ensure!(groups == 1, "asked for one group, given {groups}");
    Ok((group, rest))
}

fn device_has_all(context: &Context<'_>) -> Result<()> {
    let all = all_sms(context)?;
    let sms = attribute(context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    ensure!(all.type_ == CU_DEV_RESOURCE_TYPE_SM, "a resource of type {}", all.type_.0);
    ensure!(i64::from(sm_count(&all)) == i64::from(sms), "{} SMs of {sms}", sm_count(&all));
    let mut own = CUdevResource::default();
    context.cuCtxGetDevResource(context.handle(), &mut own, CU_DEV_RESOURCE_TYPE_SM).ok()?;
    ensure!(sm_count(&own) == sm_count(&all), "a context has {} SMs of {sms}", sm_count(&own));
    Ok(())
}

fn split_leaves_the_rest(context: &Context<'_>) -> Result<()> {
    let all = all_sms(context)?;
    for least in [1, sm_count(&all) / 4, sm_count(&all) / 2] {
        let (group, rest) = split(context, &all, least.max(1))?;
        let (given, left) = (sm_count(&group), sm_count(&rest));
        ensure!(given >= least.max(1), "asked for {least} SMs, given {given}");
        ensure!(given + left == sm_count(&all), "{given} and {left} are not {}", sm_count(&all));
    }
    Ok(())
}

fn split_into_many(context: &Context<'_>) -> Result<()> {
    let all = all_sms(context)?;
    let mut most = 0;
    context.cuDevSmResourceSplitByCount(null_mut(), &mut most, &all, null_mut(), 0, 1).ok()?;
    ensure!((1..=sm_count(&all)).contains(&most), "{most} groups of {} SMs", sm_count(&all));
    let mut groups = vec![CUdevResource::default(); most as usize];
    let (mut given, mut rest) = (most, CUdevResource::default());
    context.cuDevSmResourceSplitByCount(groups.as_mut_ptr(), &mut given, &all, &mut rest, 0, 1).ok()?;
    ensure!(given == most, "{most} groups were said, {given} are given");
    let sum: u32 = groups.iter().map(sm_count).sum();
    ensure!(sum + sm_count(&rest) == sm_count(&all), "{sum} and {} SMs", sm_count(&rest));
    ensure!(groups.iter().all(|group| sm_count(group) > 0), "a group without SMs");
    Ok(())
}

/// Where the blocks of a grid were, which is large enough to be on every SM of the device.
fn survey(context: &Context<'_>, module: &Module<'_>, stream: CUstream) -> Result<BTreeSet<u32>> {
    let blocks = 2 * u32::try_from(attribute(context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?)?;
    let sms: Buffer<'_, u32> = context.zeros(blocks as usize)?;
    let numbers: Buffer<'_, u32> = context.zeros((blocks * THREADS) as usize)?;
    context.synchronize()?;
    module.function("survey")?.launch(blocks, THREADS, 0, stream, args![&sms, &numbers])?;
    context.cuStreamSynchronize(stream).ok()?;
    let wrong = numbers.read()?.into_iter().zip(0..).find(|(number, thread)| *number != 3 * thread + 1);
    ensure!(wrong.is_none(), "number and thread do not fit: {wrong:?}");
    Ok(sms.read()?.into_iter().collect())
}

fn kernels_stay(context: &Context<'_>) -> Result<()> {
    let all = all_sms(context)?;
    let _primary = Primary::enter(context)?;
    let module = Module::load(context, SURVEY)?;
    let (group, rest) = split(context, &all, (sm_count(&all) / 4).max(1))?;
    let green = Green::new(context, group)?;
    let inside = survey(context, &module, green.stream)?;
    ensure!(inside.len() <= sm_count(&group) as usize, "{} SMs: {inside:?}", sm_count(&group));
    if sm_count(&rest) > 0 {
        let other = Green::new(context, rest)?;
        let outside = survey(context, &module, other.stream)?;
        ensure!(outside.len() <= sm_count(&rest) as usize, "{} SMs: {outside:?}", sm_count(&rest));
        ensure!(inside.is_disjoint(&outside), "{inside:?} and {outside:?}");
    }
    let plain = Stream::new(context, NON_BLOCKING)?;
    let everywhere = survey(context, &module, plain.handle())?;
    ensure!(everywhere.len() <= sm_count(&all) as usize, "{everywhere:?}");
    Ok(())
}

fn streams_know(context: &Context<'_>) -> Result<()> {
    let all = all_sms(context)?;
    let primary = Primary::enter(context)?;
    let (group, _) = split(context, &all, 1)?;
    let green = Green::new(context, group)?;
    let mut own = CUdevResource::default();
    context.cuGreenCtxGetDevResource(green.handle, &mut own, CU_DEV_RESOURCE_TYPE_SM).ok()?;
    ensure!(sm_count(&own) == sm_count(&group), "{} SMs, not {}", sm_count(&own), sm_count(&group));

    let mut found = null_mut();
    context.cuStreamGetGreenCtx(green.stream, &mut found).ok()?;
    ensure!(found == green.handle, "a stream of another green context");
    let (mut whole, mut found) = (null_mut(), null_mut());
    context.cuStreamGetCtx_v2(green.stream, &mut whole, &mut found).ok()?;
    ensure!(found == green.handle && whole == primary.handle, "a stream of other contexts");
    let (mut flags, mut priority) = (0, 0);
    context.cuStreamGetFlags(green.stream, &mut flags).ok()?;
    context.cuStreamGetPriority(green.stream, &mut priority).ok()?;
    ensure!((flags, priority) == (NON_BLOCKING, -1), "flags {flags}, priority {priority}");

    let plain = Stream::new(context, NON_BLOCKING)?;
    context.cuStreamGetGreenCtx(plain.handle(), &mut found).ok()?;
    ensure!(found.is_null(), "an ordinary stream has a green context");
    Ok(())
}

fn others_wait(context: &Context<'_>) -> Result<()> {
    let all = all_sms(context)?;
    let _primary = Primary::enter(context)?;
    let module = Module::load(context, SURVEY)?;
    let (group, _) = split(context, &all, 1)?;
    let green = Green::new(context, group)?;
    let plain = Stream::new(context, NON_BLOCKING)?;
    let event = Event::new(context, DISABLE_TIMING)?;
    let blocks = 4 * sm_count(&group);
    let sms: Buffer<'_, u32> = context.zeros(blocks as usize)?;
    let numbers: Buffer<'_, u32> = context.zeros((blocks * THREADS) as usize)?;
    context.synchronize()?;
    module.function("survey")?.launch(blocks, THREADS, 0, green.stream, args![&sms, &numbers])?;
    context.cuEventRecord(event.handle(), green.stream).ok()?;
    context.cuStreamWaitEvent(plain.handle(), event.handle(), 0).ok()?;
    let last = numbers.address() + 4 * u64::from(blocks * THREADS - 1);
    let copy: Buffer<'_, u32> = context.zeros(1)?;
    context.cuMemcpyDtoDAsync_v2(copy.address(), last, 4, plain.handle()).ok()?;
    plain.synchronize()?;
    ensure!(copy.read()? == [3 * (blocks * THREADS - 1) + 1], "the copy came before the kernel");
    Ok(())
}

/// Which error it is has changed from driver to driver.
#[track_caller]
fn refused(answer: Answer) -> Result<()> {
    ensure!(answer.code != Code::SUCCESS, "{} succeeded", answer.call);
    Ok(())
}

fn bad_arguments(context: &Context<'_>) -> Result<()> {
    let all = all_sms(context)?;
    let _primary = Primary::enter(context)?;
    let (sm, device) = (CU_DEV_RESOURCE_TYPE_SM, context.device());
    let mut group = CUdevResource::default();
    context.cuDeviceGetDevResource(device, null_mut(), sm).is(Code::INVALID_VALUE)?;
    refused(context.cuDeviceGetDevResource(99, &mut group, sm))?;
    refused(context.cuDeviceGetDevResource(device, &mut group, CUdevResourceType(0)))?;
    refused(context.cuCtxGetDevResource(context.handle(), null_mut(), sm))?;

    let mut groups = 1;
    let too_many = sm_count(&all) + 1;
    refused(context.cuDevSmResourceSplitByCount(&mut group, &mut groups, &all, null_mut(), 0, too_many))?;
    refused(context.cuDevSmResourceSplitByCount(&mut group, null_mut(), &all, null_mut(), 0, 1))?;
    refused(context.cuDevSmResourceSplitByCount(&mut group, &mut groups, null(), null_mut(), 0, 1))?;

    let (mut group, _) = split(context, &all, 1)?;
    let (mut description, mut green) = (null_mut(), null_mut());
    refused(context.cuDevResourceGenerateDesc(null_mut(), &mut group, 1))?;
    refused(context.cuDevResourceGenerateDesc(&mut description, null_mut(), 1))?;
    refused(context.cuDevResourceGenerateDesc(&mut description, &mut group, 0))?;
    context.cuDevResourceGenerateDesc(&mut description, &mut group, 1).ok()?;
    let flags = CU_GREEN_CTX_DEFAULT_STREAM.0;
    refused(context.cuGreenCtxCreate(null_mut(), description, device, flags))?;
    refused(context.cuGreenCtxCreate(&mut green, description, 99, flags))?;
    refused(context.cuGreenCtxCreate(&mut green, description, device, 0x4000_0000))?;

    let green = Green::new(context, group)?;
    let mut stream = null_mut();
    refused(context.cuGreenCtxStreamCreate(&mut stream, green.handle, 0, 0))?;
    refused(context.cuGreenCtxStreamCreate(null_mut(), green.handle, NON_BLOCKING, 0))?;
    refused(context.cuStreamGetGreenCtx(green.stream, null_mut()))
}
