//! Order: within a stream, between streams, around the default streams, and by priority.

use crate::answer::Code;
use crate::cases::support::{Gate, Log, ORDER, attribute, eventually};
use crate::context::Context;
use crate::driver::*;
use crate::memory::{Buffer, Pinned};
use crate::module::Module;
use crate::stream::{NON_BLOCKING, Stream};
use crate::suite::Case;
use crate::{args, compare};
use anyhow::{Result, ensure};
use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;
use std::time::Duration;

pub const CASES: &[Case] = &[
    Case::new("stream/launches_run_in_order", in_order),
    Case::new("stream/copies_and_memsets_keep_their_place", mixed_order),
    Case::new("stream/query_and_synchronize", query),
    Case::new("stream/legacy_default_orders_blocking_streams", legacy_default),
    Case::new("stream/null_and_legacy_handle_are_one", legacy_handle),
    Case::new("stream/per_thread_default_is_its_own", per_thread_default),
    Case::new("stream/per_thread_entry_points", per_thread_entry_points),
    Case::new("stream/streams_run_side_by_side", side_by_side),
    Case::new("stream/threads_submit_side_by_side", threads),
    Case::new("stream/flags_priority_context_and_id", properties),
    Case::new("stream/destroy_lets_work_finish", destroy_with_work),
    Case::new("stream/priority_range_and_clamping", priority_range),
    Case::new("stream/high_priority_overtakes_between_blocks", priority_effect).quiet(),
    Case::new("stream/host_functions_keep_their_place", host_functions),
];

const NULL: CUstream = ptr::null_mut();

fn in_order(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 300;
    ORDER.each_variant(context, |module| {
        let affine = module.function("affine")?;
        let values = context.zeros::<u32>(COUNT)?;
        context.synchronize()?;
        let stream = Stream::new(context, NON_BLOCKING)?;
        let mut want = vec![0u32; COUNT];
        for factor in 1..=200u32 {
            affine.launch(3, 128, 0, stream.handle(), args![&values, factor, COUNT as i32])?;
            for (i, x) in want.iter_mut().enumerate() {
                *x = x.wrapping_mul(factor).wrapping_add(i as u32);
            }
        }
        stream.synchronize()?;
        compare::equal(&values.read()?, &want)
    })
}

fn mixed_order(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 256;
    let module = Module::load(context, ORDER.usual())?;
    let affine = module.function("affine")?;
    let (values, copy) = (context.zeros::<u32>(COUNT)?, context.zeros::<u32>(COUNT)?);
    let staging = Pinned::<u32>::new(context, COUNT)?;
    context.synchronize()?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    let on = stream.handle();
    context.cuMemsetD32Async(values.address(), 5, COUNT, on).ok()?;
    affine.launch(2, 128, 0, on, args![&values, 3u32, COUNT as i32])?;
    context.cuMemcpyDtoDAsync_v2(copy.address(), values.address(), 4 * COUNT, on).ok()?;
    context.cuMemsetD32Async(values.address(), 9, COUNT, on).ok()?;
    affine.launch(2, 128, 0, on, args![&copy, 10u32, COUNT as i32])?;
    context.cuMemcpyDtoHAsync_v2(staging.host().cast(), copy.address(), 4 * COUNT, on).ok()?;
    stream.synchronize()?;
    let got: Vec<u32> = (0..COUNT).map(|i| staging.get(i)).collect();
    let want: Vec<u32> = (0..COUNT as u32).map(|i| (15 + i) * 10 + i).collect();
    compare::equal(&got, &want)?;
    compare::equal(&values.read()?, &[9; COUNT])
}

fn query(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let gate = Gate::new(context, &module)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    context.cuStreamQuery(stream.handle()).ok()?;
    gate.shut(stream.handle())?;
    context.cuStreamQuery(stream.handle()).is(Code::NOT_READY)?;
    // Not ready is an answer, not an error that sticks.
    let other = Stream::new(context, NON_BLOCKING)?;
    context.cuStreamQuery(other.handle()).ok()?;
    gate.open();
    stream.synchronize()?;
    context.cuStreamQuery(stream.handle()).ok()
}

fn legacy_default(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let (gate, log) = (Gate::new(context, &module)?, Log::new(context, &module, 16)?);
    let (first, second) = (Stream::new(context, 0)?, Stream::new(context, 0)?);
    let free = Stream::new(context, NON_BLOCKING)?;
    gate.shut(first.handle())?;
    log.append(NULL, 1)?;
    log.append(second.handle(), 2)?;
    log.append(free.handle(), 3)?;
    free.synchronize()?;
    context.cuStreamQuery(second.handle()).is(Code::NOT_READY)?;
    context.cuStreamQuery(NULL).is(Code::NOT_READY)?;
    compare::equal(&log.read(context)?, &[3])?;
    gate.open();
    context.synchronize()?;
    // The default stream waits for the gate, and the other blocking stream waits for the default stream.
    compare::equal(&log.read(context)?, &[3, 1, 2])
}

fn legacy_handle(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let (gate, log) = (Gate::new(context, &module)?, Log::new(context, &module, 16)?);
    gate.shut(NULL)?;
    log.append(CU_STREAM_LEGACY, 1)?;
    context.cuStreamQuery(CU_STREAM_LEGACY).is(Code::NOT_READY)?;
    compare::equal(&log.read(context)?, &[])?;
    gate.open();
    context.cuStreamSynchronize(CU_STREAM_LEGACY).ok()?;
    compare::equal(&log.read(context)?, &[1])
}

fn per_thread_default(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let (gate, log) = (Gate::new(context, &module)?, Log::new(context, &module, 16)?);
    gate.shut(CU_STREAM_PER_THREAD)?;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| -> Result<()> {
            context.enter()?;
            log.append(CU_STREAM_PER_THREAD, 1)?;
            context.cuStreamSynchronize(CU_STREAM_PER_THREAD).ok()
        });
        other.join().expect("the other thread does not panic")
    })?;
    compare::equal(&log.read(context)?, &[1])?;
    // It is a blocking stream in the eyes of the legacy default stream.
    log.append(NULL, 2)?;
    context.cuStreamQuery(NULL).is(Code::NOT_READY)?;
    gate.open();
    context.synchronize()?;
    compare::equal(&log.read(context)?, &[1, 2])
}

fn per_thread_entry_points(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let (gate, log) = (Gate::new(context, &module)?, Log::new(context, &module, 16)?);
    gate.shut(CU_STREAM_PER_THREAD)?;
    // Null means the per-thread stream to entry points of the per-thread kind.
    context.cuStreamQuery_ptsz(NULL).is(Code::NOT_READY)?;
    let free = Stream::new(context, NON_BLOCKING)?;
    log.append(free.handle(), 1)?;
    free.synchronize()?;
    compare::equal(&log.read(context)?, &[1])?;
    gate.open();
    context.cuStreamSynchronize_ptsz(NULL).ok()?;
    let values = [1u32, 2, 3, 4];
    let buffer = context.zeros::<u32>(4)?;
    context.cuMemcpyHtoD_v2_ptds(buffer.address(), values.as_ptr().cast(), 16).ok()?;
    compare::equal(&buffer.read()?, &values)
}

fn side_by_side(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let flag = Pinned::<u32>::new(context, 1)?;
    let (wait, set) = (module.function("await_flag")?, module.function("set_flag")?);
    let (a, b) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    // The first can end only if the second runs at the same time.
    wait.launch(1, 1, 0, a.handle(), args![flag.address()])?;
    set.launch(1, 1, 0, b.handle(), args![flag.address(), 1u32])?;
    let result = eventually("two kernels that must run side by side", || {
        Ok(context.cuStreamQuery(a.handle()).code == Code::SUCCESS)
    });
    flag.set(0, 1);
    result
}

fn threads(context: &Context<'_>) -> Result<()> {
    const COUNT: usize = 256;
    let module = Module::load(context, ORDER.usual())?;
    let affine = module.function("affine")?;
    let one_thread = |seed: u32| -> Result<()> {
        context.enter()?;
        let stream = Stream::new(context, NON_BLOCKING)?;
        let values = Buffer::<u32>::new(context, COUNT)?;
        context.cuMemsetD32Async(values.address(), seed, COUNT, stream.handle()).ok()?;
        let mut want = vec![seed; COUNT];
        for factor in 1..=150u32 {
            affine.launch(2, 128, 0, stream.handle(), args![&values, factor, COUNT as i32])?;
            for (i, x) in want.iter_mut().enumerate() {
                *x = x.wrapping_mul(factor).wrapping_add(i as u32);
            }
        }
        stream.synchronize()?;
        compare::equal(&values.read()?, &want)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|seed| scope.spawn(move || one_thread(seed))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}

fn properties(context: &Context<'_>) -> Result<()> {
    let (plain, free) = (Stream::new(context, 0)?, Stream::new(context, NON_BLOCKING)?);
    let (mut flags, mut priority) = (9, 9);
    context.cuStreamGetFlags(plain.handle(), &mut flags).ok()?;
    ensure!(flags == 0, "flags of a default stream: {flags}");
    context.cuStreamGetFlags(free.handle(), &mut flags).ok()?;
    ensure!(flags == NON_BLOCKING, "flags of a non-blocking stream: {flags}");
    context.cuStreamGetPriority(plain.handle(), &mut priority).ok()?;
    ensure!(priority == 0, "priority of a default stream: {priority}");
    let mut owner = ptr::null_mut();
    context.cuStreamGetCtx(plain.handle(), &mut owner).ok()?;
    ensure!(owner == context.handle(), "a stream of another context");
    let (mut one, mut two) = (0, 0);
    context.cuStreamGetId(plain.handle(), &mut one).ok()?;
    context.cuStreamGetId(free.handle(), &mut two).ok()?;
    ensure!(one != two, "two streams with the id {one}");
    let mut stream = NULL;
    context.cuStreamCreate(&mut stream, 0x40).is(Code::INVALID_VALUE)
}

fn destroy_with_work(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let log = Log::new(context, &module, 16)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    log.slow_append(stream.handle(), 7, Duration::from_millis(20))?;
    drop(stream);
    context.synchronize()?;
    compare::equal(&log.read(context)?, &[7])
}

fn priority_range(context: &Context<'_>) -> Result<()> {
    let (mut least, mut greatest) = (9, 9);
    context.cuCtxGetStreamPriorityRange(&mut least, &mut greatest).ok()?;
    ensure!(least == 0 && greatest < 0, "priorities from {least} to {greatest}");
    println!("note: priorities from {least} to {greatest}");
    context.cuCtxGetStreamPriorityRange(ptr::null_mut(), ptr::null_mut()).ok()?;
    let asked = [(greatest, greatest), (greatest - 100, greatest), (100, least), (-1, -1)];
    for (ask, want) in asked {
        let stream = Stream::with_priority(context, ask)?;
        let mut got = 9;
        context.cuStreamGetPriority(stream.handle(), &mut got).ok()?;
        ensure!(got == want, "asked for priority {ask}, got {got}, wanted {want}");
    }
    Ok(())
}

fn priority_effect(context: &Context<'_>) -> Result<()> {
    const LOW: u32 = 1;
    const HIGH: u32 = 2;
    let sms = u32::try_from(attribute(context, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?)?;
    let opt_in = attribute(context, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let (mut least, mut greatest) = (0, 0);
    context.cuCtxGetStreamPriorityRange(&mut least, &mut greatest).ok()?;
    let module = Module::load(context, ORDER.usual())?;
    let waves = 10;
    let log = Log::new(context, &module, (sms * (waves + 1)) as usize)?;
    // All the shared memory of an SM for every block: one block per SM, so a grid is made of waves.
    let kernel = log.slow_kernel().handle();
    context.cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, opt_in).ok()?;
    let shared = u32::try_from(opt_in)?;
    let (low, high) = (Stream::with_priority(context, least)?, Stream::with_priority(context, greatest)?);
    let time = Duration::from_millis(5);
    log.slow_append_blocks(low.handle(), sms * waves, shared, LOW, time)?;
    eventually("the first wave of blocks", || Ok(!log.read(context)?.is_empty()))?;
    log.slow_append_blocks(high.handle(), sms, shared, HIGH, time)?;
    context.synchronize()?;
    let tokens = log.read(context)?;
    let count = |token| tokens.iter().filter(|&&t| t == token).count() as u32;
    ensure!(count(LOW) == sms * waves && count(HIGH) == sms, "{} and {} blocks ran", count(LOW), count(HIGH));
    let last_high = tokens.iter().rposition(|&token| token == HIGH).expect("counted above");
    let behind = tokens[last_high..].iter().filter(|&&token| token == LOW).count();
    println!("note: {behind} of {} low-priority blocks ended behind the high-priority grid", sms * waves);
    ensure!(behind as u32 >= sms * 3, "only {behind} low-priority blocks were overtaken");
    Ok(())
}

fn host_functions(context: &Context<'_>) -> Result<()> {
    static SEEN: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    unsafe extern "C" fn observe(data: *mut c_void) {
        // SAFETY: the case passes the address of pinned memory that outlives the stream's work.
        let value = unsafe { data.cast::<u32>().read_volatile() };
        SEEN.lock().expect("no observer panics").push(value);
    }
    SEEN.lock().expect("no observer panics").clear();
    let module = Module::load(context, ORDER.usual())?;
    let set = module.function("set_flag")?;
    let value = Pinned::<u32>::new(context, 1)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    for i in 1..=20u32 {
        set.launch(1, 1, 0, stream.handle(), args![value.address(), i * i])?;
        context.cuLaunchHostFunc(stream.handle(), Some(observe), value.host().cast()).ok()?;
    }
    stream.synchronize()?;
    let want: Vec<u32> = (1..=20).map(|i| i * i).collect();
    compare::equal(&SEEN.lock().expect("no observer panics"), &want)
}
