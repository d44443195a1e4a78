//! Kernels that go wrong: which error it is, that it stays, and whom it leaves alone.

use crate::answer::Code;
use crate::context::Context;
use crate::driver::*;
use crate::module::{Arguments, Module};
use crate::runner::Peer;
use crate::suite::{Case, PeerProgram};
use crate::{args, compare, source};
use anyhow::{Result, ensure};
use std::ptr;

pub const CASES: &[Case] = &[
    Case::new("fault/illegal_store", illegal_store).spoiling(),
    Case::new("fault/illegal_load", illegal_load).spoiling(),
    Case::new("fault/null_pointer", null_pointer).spoiling(),
    Case::new("fault/illegal_atomic", illegal_atomic).spoiling(),
    Case::new("fault/freed_memory", freed).spoiling(),
    Case::new("fault/host_memory", host_memory).spoiling(),
    Case::new("fault/misaligned", misaligned).spoiling(),
    Case::new("fault/shared_out_of_range", shared).spoiling(),
    Case::new("fault/trap", trap).spoiling(),
    Case::new("fault/assert", assertion).spoiling(),
    Case::new("fault/every_variant_is_exact", every_variant).spoiling(),
    Case::new("fault/error_sticks_to_the_context", sticky).spoiling(),
    Case::new("fault/error_shows_in_streams_and_events", streams_and_events).spoiling(),
    Case::new("fault/other_processes_go_on", other_process).spoiling(),
    Case::new("fault/endless_kernel_can_be_killed", endless),
    Case::new("fault/survivors_of_a_killed_process", killed_holder),
];

pub const PEERS: &[PeerProgram] = &[
    PeerProgram { name: "healthy", run: healthy },
    PeerProgram { name: "endless", run: endless_peer },
    PeerProgram { name: "holder", run: holder_peer },
];

/// An address to which nothing is mapped, on any device.
const NOWHERE: u64 = 0x0700_0000_0000;

fn fault(context: &Context<'_>, kernel: &str, threads: u32, arguments: Arguments, want: Code) -> Result<()> {
    let module = Module::load(context, source!("faults").usual())?;
    let function = module.function(kernel)?;
    function.launch(1, threads, 0, ptr::null_mut(), arguments)?;
    context.cuCtxSynchronize().is(want)
}

fn illegal_store(context: &Context<'_>) -> Result<()> {
    fault(context, "store_at", 1, args![NOWHERE, 1u32], Code::ILLEGAL_ADDRESS)
}

fn illegal_load(context: &Context<'_>) -> Result<()> {
    let output = context.zeros::<u32>(1)?;
    fault(context, "load_from", 1, args![NOWHERE, &output], Code::ILLEGAL_ADDRESS)
}

fn null_pointer(context: &Context<'_>) -> Result<()> {
    fault(context, "store_at", 1, args![0u64, 1u32], Code::ILLEGAL_ADDRESS)
}

fn illegal_atomic(context: &Context<'_>) -> Result<()> {
    fault(context, "atomic_at", 32, args![NOWHERE], Code::ILLEGAL_ADDRESS)
}

fn freed(context: &Context<'_>) -> Result<()> {
    // Loaded and run before the memory goes, or the driver may put things of its own where that was.
    let module = Module::load(context, source!("faults").usual())?;
    let store = module.function("store_at")?;
    let mut address = 0;
    // Large enough that the driver gives the mapping back with the memory.
    context.cuMemAlloc_v2(&mut address, 64 << 20).ok()?;
    store.run(1, 1, args![address, 1u32])?;
    context.cuMemFree_v2(address).ok()?;
    store.launch(1, 1, 0, ptr::null_mut(), args![address, 1u32])?;
    context.cuCtxSynchronize().is(Code::ILLEGAL_ADDRESS)
}

fn host_memory(context: &Context<'_>) -> Result<()> {
    // Some machines let the device reach all host memory; there this is no fault.
    let mut pageable = 0;
    let which = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    context.cuDeviceGetAttribute(&mut pageable, which, context.device()).ok()?;
    if pageable == 1 {
        return crate::suite::skip("the device reaches pageable host memory");
    }
    let value = Box::new(0u32);
    let address = (&raw const *value) as u64;
    fault(context, "store_at", 1, args![address, 1u32], Code::ILLEGAL_ADDRESS)?;
    ensure!(*value == 0, "the kernel wrote to the host's memory");
    Ok(())
}

fn misaligned(context: &Context<'_>) -> Result<()> {
    let buffer = context.zeros::<u32>(4)?;
    fault(context, "store_at", 1, args![buffer.address() + 2, 1u32], Code::MISALIGNED_ADDRESS)
}

fn shared(context: &Context<'_>) -> Result<()> {
    let output = context.zeros::<u32>(32)?;
    // 64 MiB behind an array of 128 bytes, where the code of a card is a surprise.
    fault(context, "shared_beyond", 32, args![&output, 16u32 << 20], Code::ILLEGAL_INSTRUCTION)
}

fn trap(context: &Context<'_>) -> Result<()> {
    let values = context.buffer(&[1i32, 2, 3, 100])?;
    fault(context, "trap_if", 4, args![&values, 50i32], Code::LAUNCH_FAILED)
}

fn assertion(context: &Context<'_>) -> Result<()> {
    let values = context.buffer(&[1i32, 2, 3, 100])?;
    fault(context, "assert_less", 4, args![&values, 50i32], Code::ASSERT)
}

/// Kernels that do not reach their fault must not be disturbed by its being there.
fn every_variant(context: &Context<'_>) -> Result<()> {
    source!("faults").each_variant(context, |module| {
        let values = context.buffer(&[1i32, 2, 3, 4])?;
        module.function("trap_if")?.run(1, 4, args![&values, 50i32])?;
        module.function("assert_less")?.run(1, 4, args![&values, 50i32])?;
        let output = context.zeros::<u32>(32)?;
        module.function("shared_beyond")?.run(1, 32, args![&output, 0u32])?;
        compare::equal(&output.read()?, &(0..32).collect::<Vec<u32>>())
    })
}

fn sticky(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("faults").usual())?;
    let store = module.function("store_at")?;
    let buffer = context.zeros::<u32>(4)?;
    store.launch(1, 1, 0, ptr::null_mut(), args![NOWHERE, 1u32])?;
    let want = Code::ILLEGAL_ADDRESS;
    for _ in 0..3 {
        context.cuCtxSynchronize().is(want)?;
    }
    let mut address = 0;
    context.cuMemAlloc_v2(&mut address, 4).is(want)?;
    let mut value = 0u32;
    context.cuMemcpyDtoH_v2((&raw mut value).cast(), buffer.address(), 4).is(want)?;
    context.cuMemcpyHtoD_v2(buffer.address(), (&raw const value).cast(), 4).is(want)?;
    context.cuMemsetD8_v2(buffer.address(), 0, 4).is(want)?;
    let mut stream = ptr::null_mut();
    context.cuStreamCreate(&mut stream, 0).is(want)?;
    let mut event = ptr::null_mut();
    context.cuEventCreate(&mut event, 0).is(want)?;
    context.cuStreamQuery(ptr::null_mut()).is(want)?;
    let mut other = ptr::null_mut();
    context.cuModuleLoadData(&mut other, source!("vector_add").usual().as_ptr().cast()).is(want)?;
    let mut arguments = args![buffer.address(), 1u32];
    let mut pointers = arguments.pointers();
    let (list, none) = (pointers.as_mut_ptr(), ptr::null_mut());
    context.cuLaunchKernel(store.handle(), 1, 1, 1, 1, 1, 1, 0, none, list, ptr::null_mut()).is(want)?;
    let (mut free, mut total) = (0, 0);
    context.cuMemGetInfo_v2(&mut free, &mut total).is(want)?;
    context.cuMemFree_v2(buffer.address()).is(want)?;
    // What needs no context is still answered.
    context.cuDriverGetVersion((&raw mut value).cast()).ok()?;
    let mut count = 0;
    context.cuDeviceGetCount(&mut count).ok()?;
    context.cuDeviceTotalMem_v2(&mut total, context.device()).ok()
}

fn streams_and_events(context: &Context<'_>) -> Result<()> {
    use crate::stream::{Event, NON_BLOCKING, Stream};
    let module = Module::load(context, source!("faults").usual())?;
    let store = module.function("store_at")?;
    let (bad, good) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    let event = Event::new(context, 0)?;
    store.launch(1, 1, 0, bad.handle(), args![NOWHERE, 1u32])?;
    context.cuStreamSynchronize(bad.handle()).is(Code::ILLEGAL_ADDRESS)?;
    // The whole context is lost, not only the stream.
    context.cuStreamSynchronize(good.handle()).is(Code::ILLEGAL_ADDRESS)?;
    context.cuStreamQuery(good.handle()).is(Code::ILLEGAL_ADDRESS)?;
    context.cuEventRecord(event.handle(), good.handle()).is(Code::ILLEGAL_ADDRESS)?;
    context.cuEventQuery(event.handle()).is(Code::ILLEGAL_ADDRESS)?;
    context.cuEventSynchronize(event.handle()).is(Code::ILLEGAL_ADDRESS)
}

fn add_and_check(context: &Context<'_>, module: &Module<'_>) -> Result<()> {
    let (a, b, c) =
        (context.buffer(&[1.0f32; 500])?, context.buffer(&[2.0f32; 500])?, context.zeros::<f32>(500)?);
    module.function("vector_add")?.run(4, 128, args![&a, &b, &c, 500i32])?;
    compare::equal(&c.read()?, &[3.0; 500])
}

/// Computes until its neighbour has faulted, which it is told by the end of its input, and a while longer.
fn healthy(driver: &Driver, _: &[String]) -> Result<()> {
    let context = Context::new(driver)?;
    let module = Module::load(&context, source!("vector_add").usual())?;
    add_and_check(&context, &module)?;
    println!("ready");
    let (done, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut nothing = String::new();
        let end = std::io::stdin().read_line(&mut nothing).is_ok();
        // The receiver is gone only when the process ends.
        let _ = done.send(end);
    });
    while told.try_recv().is_err() {
        add_and_check(&context, &module)?;
    }
    for _ in 0..50 {
        add_and_check(&context, &module)?;
    }
    Ok(())
}

fn other_process(context: &Context<'_>) -> Result<()> {
    let mut peer = Peer::start(context, "healthy", &[])?;
    peer.expect_line("ready")?;
    illegal_store(context)?;
    peer.finish()?;
    Ok(())
}

fn endless_peer(driver: &Driver, _: &[String]) -> Result<()> {
    let context = Context::new(driver)?;
    let module = Module::load(&context, source!("spin").usual())?;
    let never = context.zeros::<i32>(1)?;
    module.function("forever")?.launch(4, 64, 0, ptr::null_mut(), args![&never])?;
    context.cuStreamQuery(ptr::null_mut()).is(Code::NOT_READY)?;
    println!("running");
    context.synchronize()
}

fn endless(context: &Context<'_>) -> Result<()> {
    let mut peer = Peer::start(context, "endless", &[])?;
    peer.expect_line("running")?;
    std::thread::sleep(std::time::Duration::from_millis(100));
    peer.kill();
    let module = Module::load(context, source!("vector_add").usual())?;
    add_and_check(context, &module)
}

fn holder_peer(driver: &Driver, _: &[String]) -> Result<()> {
    let context = Context::new(driver)?;
    let buffer = crate::memory::Buffer::<u8>::new(&context, 1 << 30)?;
    println!("holding");
    let mut nothing = String::new();
    std::io::stdin().read_line(&mut nothing)?;
    drop(buffer);
    Ok(())
}

/// What a killed process held is free again.
fn killed_holder(context: &Context<'_>) -> Result<()> {
    let free = || -> Result<usize> {
        let (mut free, mut total) = (0, 0);
        context.cuMemGetInfo_v2(&mut free, &mut total).ok()?;
        Ok(free)
    };
    if free()? < 2 << 30 {
        return crate::suite::skip("less than 2 GiB of free device memory");
    }
    let mut peer = Peer::start(context, "holder", &[])?;
    peer.expect_line("holding")?;
    let during = free()?;
    peer.kill();
    crate::cases::support::eventually(
        "the memory of a killed process",
        || Ok(free()? >= during + (900 << 20)),
    )
}
