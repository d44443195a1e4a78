//! Streams held at a word and let go again, and kernels that a word in memory reaches while they run: what stopping and
//! resuming somebody's work by memory alone asks of a driver.

use crate::answer::Code;
use crate::cases::ipc::{from_text, to_text};
use crate::cases::support::{Log, ORDER, eventually};
use crate::context::Context;
use crate::driver::*;
use crate::memory::{Buffer, Pinned};
use crate::module::{Dim3, Module};
use crate::runner::Peer;
use crate::stream::{Event, NON_BLOCKING, Stream};
use crate::suite::{Case, PeerProgram};
use crate::{args, compare, source};
use anyhow::{Context as _, Result, ensure};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

pub const CASES: &[Case] = &[
    Case::new("gate/open_gate_is_passed", open),
    Case::new("gate/shut_gate_holds_every_kind_of_stream", shut),
    Case::new("gate/is_opened_from_another_stream", opened_by_stream),
    Case::new("gate/holds_nobody_else", holds_nobody_else),
    Case::new("gate/takes_five_hundred_launches_behind_it", |context| takes(context, 500)),
    Case::new("gate/takes_a_thousand_launches_behind_it", |context| takes(context, 1_000)),
    Case::new("gate/keeps_who_launches_more_until_it_opens", keeps_who_launches_more),
    Case::new("gate/word_reaches_a_running_kernel", running_kernel),
    Case::new("gate/word_of_another_process_reaches_a_running_kernel", running_kernel_of_another),
    Case::new("gate/first_block_waits_for_the_last", first_awaits_last),
    Case::new("gate/copy_to_pageable_memory_waits_for_kernels", copy_to_pageable),
    Case::new("gate/library_kernel_runs_in_the_context_of_the_stream", kernel_in_contexts),
    Case::new("gate/library_kernel_runs_in_context_after_context", kernel_in_turn),
    Case::new("gate/library_kernel_keeps_attributes_in_every_context", kernel_attributes),
];

pub const PEERS: &[PeerProgram] = &[PeerProgram { name: "gate-raise", run: raise_peer }];

/// A word on the device that holds streams while it is not 0, and what the streams tell the host about it.
struct Gate<'d> {
    word: Buffer<'d, u32>,
    /// How many gates a stream has come to, and how many it has passed.
    told: Pinned<'d, u32>,
}

impl<'d> Gate<'d> {
    fn new(context: &Context<'d>, word: u32) -> Result<Self> {
        let gate = Gate { word: context.buffer(&[word])?, told: Pinned::new(context, 2)? };
        context.synchronize()?;
        Ok(gate)
    }

    /// Puts the gate, under a number, into a stream: one batch of three operations.
    fn put(&self, context: &Context<'_>, stream: CUstream, number: u32) -> Result<()> {
        let mut wait = CUstreamBatchMemOpParams::default();
        wait.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
        wait.waitValue.address = self.word.address();
        wait.waitValue.__bindgen_anon_1.value = 0;
        wait.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ.0;
        let tell = |place: u64| {
            let mut write = CUstreamBatchMemOpParams::default();
            write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
            write.writeValue.address = self.told.address() + 4 * place;
            write.writeValue.__bindgen_anon_1.value = number;
            write
        };
        let mut operations = [tell(0), wait, tell(1)];
        context.cuStreamBatchMemOp_v2(stream, 3, operations.as_mut_ptr(), 0).ok()
    }

    fn await_arrival(&self, number: u32) -> Result<()> {
        eventually("the stream to come to its gate", || Ok(self.told.get(0) == number))
    }

    fn passed(&self) -> u32 {
        self.told.get(1)
    }

    fn open(&self, context: &Context<'_>, by: &Stream<'_>) -> Result<()> {
        context.cuStreamWriteValue32_v2(by.handle(), self.word.address(), 0, 0).ok()
    }
}

fn open(context: &Context<'_>) -> Result<()> {
    let gate = Gate::new(context, 0)?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    for number in 1..=100 {
        gate.put(context, stream.handle(), number)?;
    }
    stream.synchronize()?;
    ensure!((gate.told.get(0), gate.passed()) == (100, 100), "the last gate was not told to the host");
    Ok(())
}

fn shut(context: &Context<'_>) -> Result<()> {
    let created = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, 0)?);
    let opener = Stream::with_priority(context, -5)?;
    let streams =
        [created.0.handle(), created.1.handle(), ptr::null_mut(), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD];
    for (number, stream) in (1..).zip(streams) {
        let gate = Gate::new(context, 1)?;
        let event = Event::new(context, 0)?;
        gate.put(context, stream, number)?;
        event.record(stream)?;
        gate.await_arrival(number)?;
        std::thread::sleep(Duration::from_millis(3));
        let (early, query, event_query) =
            (gate.passed(), context.cuStreamQuery(stream), context.cuEventQuery(event.handle()));
        gate.open(context, &opener)?;
        ensure!(early == 0, "stream {number} passed a gate that was shut");
        query.is(Code::NOT_READY)?;
        event_query.is(Code::NOT_READY)?;
        event.synchronize()?;
        context.cuStreamSynchronize(stream).ok()?;
        ensure!(gate.passed() == number, "stream {number} did not tell that it passed");
    }
    Ok(())
}

fn opened_by_stream(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let log = Log::new(context, &module, 16)?;
    let gate = Gate::new(context, 7)?;
    let (held, helper) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    gate.put(context, held.handle(), 1)?;
    log.append(held.handle(), 2)?;
    gate.await_arrival(1)?;
    // What the helper does before it opens the gate has happened for everything behind the gate.
    log.slow_append(helper.handle(), 1, Duration::from_millis(5))?;
    gate.open(context, &helper)?;
    held.synchronize()?;
    compare::equal(&log.read(context)?, &[1, 2])
}

fn holds_nobody_else(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let log = Log::new(context, &module, 128)?;
    let gates = (0..8).map(|_| Gate::new(context, 1)).collect::<Result<Vec<_>>>()?;
    let held = (0..8).map(|_| Stream::new(context, NON_BLOCKING)).collect::<Result<Vec<_>>>()?;
    let (free, opener) = (Stream::new(context, NON_BLOCKING)?, Stream::new(context, NON_BLOCKING)?);
    for (gate, stream) in gates.iter().zip(&held) {
        gate.put(context, stream.handle(), 1)?;
        log.append(stream.handle(), 100)?;
    }
    gates.iter().try_for_each(|gate| gate.await_arrival(1))?;
    let tried = (0..50).try_for_each(|token| log.append(free.handle(), token));
    let waited = free.synchronize();
    let early = log.read(context);
    gates.iter().try_for_each(|gate| gate.open(context, &opener))?;
    tried.and(waited)?;
    let want: Vec<u32> = (0..50).collect();
    compare::equal(&early?, &want)?;
    held.iter().try_for_each(Stream::synchronize)?;
    ensure!(log.read(context)?[50..] == [100; 8], "a gate that was opened still held its stream");
    Ok(())
}

/// A gate in a stream of its own, opened by a word of the host: whoever does so needs no call of the driver. A thread launches behind it.
struct Crowd<'d> {
    word: Pinned<'d, u32>,
    stream: Stream<'d>,
    log: Log<'d>,
    launched: AtomicU32,
    /// To unload it is to wait for all that runs.
    _module: Module<'d>,
}

impl<'d> Crowd<'d> {
    fn new(context: &Context<'d>, launches: u32) -> Result<Self> {
        let module = Module::load(context, ORDER.usual())?;
        let log = Log::new(context, &module, launches as usize + 1)?;
        let (word, stream) = (Pinned::new(context, 1)?, Stream::new(context, NON_BLOCKING)?);
        // The first of its kind may wait for everything else.
        log.append(stream.handle(), 0)?;
        stream.synchronize()?;
        context
            .cuStreamWaitValue32_v2(stream.handle(), word.address(), 1, CU_STREAM_WAIT_VALUE_GEQ.0)
            .ok()?;
        Ok(Crowd { word, stream, log, launched: AtomicU32::new(0), _module: module })
    }

    /// Launches so many, opens the gate when `meanwhile` has seen what it wants to see or has given up, and looks whether all of them ran.
    fn run(
        &self,
        context: &Context<'_>,
        launches: u32,
        meanwhile: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let launch = || -> Result<()> {
            context.enter()?;
            for token in 1..=launches {
                self.log.append(self.stream.handle(), token)?;
                self.launched.store(token, Ordering::Relaxed);
            }
            Ok(())
        };
        let (seen, launched) = std::thread::scope(|scope| {
            let thread = scope.spawn(launch);
            let seen = meanwhile();
            self.word.set(0, 1);
            (seen, thread.join().expect("a case does not panic"))
        });
        launched?;
        self.stream.synchronize()?;
        seen?;
        let want: Vec<u32> = (0..=launches).collect();
        compare::equal(&self.log.read(context)?, &want)
    }

    fn launched(&self) -> u32 {
        self.launched.load(Ordering::Relaxed)
    }
}

/// A program may launch so much ahead, and open the gate only then.
fn takes(context: &Context<'_>, launches: u32) -> Result<()> {
    let crowd = Crowd::new(context, launches)?;
    let all = || eventually("all to be launched", || Ok(crowd.launched() == launches));
    crowd.run(context, launches, all)
}

/// A driver keeps so much of a stream and no more. Whoever hands over the next waits inside; and nobody knows what else waits with it.
fn keeps_who_launches_more(context: &Context<'_>) -> Result<()> {
    const LAUNCHES: u32 = 4_000;
    /// More than any driver that was measured takes.
    const MANY: u32 = 1_100;
    let crowd = Crowd::new(context, LAUNCHES)?;
    crowd.run(context, LAUNCHES, || {
        eventually("a thousand launches", || Ok(crowd.launched() >= 1_000))?;
        std::thread::sleep(Duration::from_millis(30));
        let launched = crowd.launched();
        ensure!(launched < MANY, "{launched} launches were taken behind a gate that was shut");
        Ok(())
    })
}

fn running_kernel(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let kernel = module.function("await_flag")?;
    let word = context.zeros::<u32>(1)?;
    context.synchronize()?;
    let (stream, raiser) = (Stream::new(context, NON_BLOCKING)?, Stream::with_priority(context, -5)?);
    kernel.launch(4, 32, 0, stream.handle(), args![&word])?;
    std::thread::sleep(Duration::from_millis(3));
    let early = context.cuStreamQuery(stream.handle());
    context.cuStreamWriteValue32_v2(raiser.handle(), word.address(), 1, 0).ok()?;
    early.is(Code::NOT_READY)?;
    stream.synchronize()
}

/// Blocks that wait for others with higher numbers. There is no promise that this works; it does where a block that waits
/// leaves room for the others. Whoever stops kernels between their blocks must see to it that it goes on working.
fn first_awaits_last(context: &Context<'_>) -> Result<()> {
    const BLOCKS: u32 = 2048;
    const SHARED: u32 = 40 << 10;
    let module = Module::load(context, ORDER.usual())?;
    let kernel = module.function("first_awaits_last")?;
    for _ in 0..12 {
        let (flag, count) = (context.zeros::<u32>(1)?, context.zeros::<u32>(1)?);
        context.synchronize()?;
        kernel.launch(BLOCKS, 32, SHARED, ptr::null_mut(), args![&flag, &count, 300_000u64])?;
        context.synchronize()?;
        compare::equal(&count.read()?, &[BLOCKS])?;
    }
    Ok(())
}

/// A copy to memory that the driver does not know is over when the call returns, though it is called asynchronous. A driver may keep
/// others from copying meanwhile; whoever stops kernels between their blocks must not need a copy then.
fn copy_to_pageable(context: &Context<'_>) -> Result<()> {
    const BLOCKS: u32 = 512;
    const SHARED: u32 = 40 << 10;
    let module = Module::load(context, ORDER.usual())?;
    let kernel = module.function("slow_append")?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    let rounds = 30;
    let (tokens, length) = (context.zeros::<u32>((BLOCKS * rounds) as usize)?, context.zeros::<u32>(1)?);
    context.synchronize()?;
    for round in 1..=rounds {
        kernel.launch(BLOCKS, 32, SHARED, stream.handle(), args![&tokens, &length, round, 100_000u64])?;
        let mut seen = vec![0u32];
        context.cuMemcpyDtoHAsync_v2(seen.as_mut_ptr().cast(), length.address(), 4, stream.handle()).ok()?;
        compare::equal(&seen, &[BLOCKS * round])?;
    }
    Ok(())
}

/// Opens the handle and raises the first word in there, as often as it is told to.
fn raise_peer(driver: &Driver, arguments: &[String]) -> Result<()> {
    let context = Context::new(driver)?;
    let handle = from_text(arguments.first().context("no handle")?)?;
    let mut address = 0;
    context.cuIpcOpenMemHandle_v2(&mut address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS.0).ok()?;
    let stream = Stream::with_priority(&context, -5)?;
    println!("ready");
    let mut nothing = String::new();
    std::io::stdin().read_line(&mut nothing)?;
    context.cuStreamWriteValue32_v2(stream.handle(), address, 1, 0).ok()?;
    stream.synchronize()?;
    context.cuIpcCloseMemHandle(address).ok()
}

fn running_kernel_of_another(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, ORDER.usual())?;
    let kernel = module.function("await_flag")?;
    // A driver may share more than was asked for, so the word has its own large allocation.
    let words = context.zeros::<u32>(1 << 20)?;
    let mut handle = CUipcMemHandle::default();
    context.cuIpcGetMemHandle(&mut handle, words.address()).ok()?;
    context.synchronize()?;
    let mut peer = Peer::start(context, "gate-raise", &[to_text(&handle)])?;
    peer.expect_line("ready")?;
    let stream = Stream::new(context, NON_BLOCKING)?;
    kernel.launch(4, 32, 0, stream.handle(), args![&words])?;
    std::thread::sleep(Duration::from_millis(3));
    let early = context.cuStreamQuery(stream.handle());
    peer.finish()?;
    early.is(Code::NOT_READY)?;
    stream.synchronize()?;
    ensure!(words.read()?[0] == 1, "the word is not what the other process wrote");
    Ok(())
}

/// Loads a library on a thread that has no context, as somebody does who prepares kernels beside the program.
fn load_aside(context: &Context<'_>, text: &str, name: &std::ffi::CStr) -> Result<(CUlibrary, CUkernel)> {
    struct Handles(CUlibrary, CUkernel);
    // SAFETY: CUDA handles are names that the driver lets every thread use.
    unsafe impl Send for Handles {}
    let driver = context.driver();
    let load = || -> Result<Handles> {
        let (mut library, mut kernel) = (ptr::null_mut(), ptr::null_mut());
        let (none, nothing) = (ptr::null_mut(), ptr::null_mut());
        let (options, values) = (ptr::null_mut(), ptr::null_mut());
        driver
            .cuLibraryLoadData(&mut library, text.as_ptr().cast(), none, nothing, 0, options, values, 0)
            .ok()?;
        driver.cuLibraryGetKernel(&mut kernel, library, name.as_ptr()).ok()?;
        Ok(Handles(library, kernel))
    };
    let Handles(library, kernel) =
        std::thread::scope(|scope| scope.spawn(load).join()).expect("the loader does not panic")?;
    Ok((library, kernel))
}

fn launch(
    context: &Context<'_>,
    kernel: CUkernel,
    (grid, block, shared): (Dim3, Dim3, u32),
    stream: CUstream,
    mut arguments: crate::module::Arguments,
) -> Result<()> {
    let mut pointers = arguments.pointers();
    let (list, none) = (pointers.as_mut_ptr(), ptr::null_mut());
    let (x, y, z) = (grid.0, grid.1, grid.2);
    context.cuLaunchKernel(kernel.cast(), x, y, z, block.0, block.1, block.2, shared, stream, list, none).ok()
}

fn kernel_in_contexts(context: &Context<'_>) -> Result<()> {
    let (library, kernel) = load_aside(context, ORDER.usual(), c"affine")?;
    let shape = (Dim3(1, 1, 1), Dim3(64, 1, 1), 0);
    let mine = (context.buffer(&[5u32; 64])?, Stream::new(context, NON_BLOCKING)?);
    let other = Context::new(context.driver())?;
    let theirs = (other.buffer(&[7u32; 64])?, Stream::new(&other, NON_BLOCKING)?);
    // The other context is the current one: the stream says where a launch goes.
    launch(context, kernel, shape, mine.1.handle(), args![&mine.0, 3u32, 64i32])?;
    launch(&other, kernel, shape, theirs.1.handle(), args![&theirs.0, 3u32, 64i32])?;
    mine.1.synchronize()?;
    theirs.1.synchronize()?;
    let want = |start: u32| (0..64).map(|i| start * 3 + i).collect::<Vec<u32>>();
    compare::equal(&theirs.0.read()?, &want(7))?;
    drop((theirs, other));
    context.enter()?;
    compare::equal(&mine.0.read()?, &want(5))?;
    context.cuLibraryUnload(library).ok()
}

/// The kernel outlives the contexts, of which each may begin where the one before it ended.
fn kernel_in_turn(context: &Context<'_>) -> Result<()> {
    let (library, kernel) = load_aside(context, ORDER.usual(), c"affine")?;
    let shape = (Dim3(1, 1, 1), Dim3(64, 1, 1), 0);
    for round in 0..4u32 {
        let other = Context::new(context.driver())?;
        let (words, stream) = (other.buffer(&[round; 64])?, Stream::new(&other, NON_BLOCKING)?);
        launch(&other, kernel, shape, ptr::null_mut(), args![&words, 3u32, 64i32])?;
        other.synchronize()?;
        launch(&other, kernel, shape, stream.handle(), args![&words, 2u32, 64i32])?;
        stream.synchronize()?;
        let want: Vec<u32> = (0..64).map(|i| (round * 3 + i) * 2 + i).collect();
        compare::equal(&words.read()?, &want)?;
    }
    context.enter()?;
    context.cuLibraryUnload(library).ok()
}

fn kernel_attributes(context: &Context<'_>) -> Result<()> {
    let (library, kernel) = load_aside(context, source!("params").usual(), c"no_parameters")?;
    let which = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // Launched before, it is loaded in this context when the attribute is set.
    launch(context, kernel, (Dim3(1, 1, 1), Dim3(32, 1, 1), 0), ptr::null_mut(), args![])?;
    context.cuKernelSetAttribute(which, 100 << 10, kernel, context.device()).ok()?;
    let shape = (Dim3(1, 1, 1), Dim3(32, 1, 1), 100 << 10);
    launch(context, kernel, shape, ptr::null_mut(), args![])?;
    context.synchronize()?;
    let other = Context::new(context.driver())?;
    launch(&other, kernel, shape, ptr::null_mut(), args![])?;
    other.synchronize()?;
    let mut bytes = 0;
    other.cuKernelGetAttribute(&mut bytes, which, kernel, other.device()).ok()?;
    ensure!(bytes == 100 << 10, "{bytes} bytes of dynamic shared memory in the other context");
    drop(other);
    context.enter()?;
    context.cuLibraryUnload(library).ok()
}
