//! Captures: what goes into a graph has not been done.

use std::ffi::c_void;
use std::ptr;

use anyhow::{Result, ensure};
use conformance::answer::Code;
use conformance::context::Context;
use conformance::driver::*;
use conformance::stream::{DISABLE_TIMING, Event, NON_BLOCKING, Stream};
use telemetry::Counter::*;

use crate::Section;
use crate::program::{Image, Kernel, Program, launch, with_arguments};

pub const SECTIONS: &[Section] = &[
    Section::new("captures/nothing_in_them_is_counted", everything),
    Section::new("captures/of_the_threads_own_stream", per_thread),
    Section::new("captures/other_streams_go_on", beside),
    Section::new("captures/that_are_spoiled", spoiled),
];

/// What these programs work with, all of it made before a capture begins.
struct Tools<'a, 'd> {
    program: &'a Program<'d>,
    cuda: &'a Context<'d>,
    kernel: Kernel,
    stream: Stream<'d>,
    side: Stream<'d>,
}

fn with_tools(program: &Program<'_>, work: impl FnOnce(&Tools<'_, '_>) -> Result<()>) -> Result<()> {
    program.in_context(|cuda| {
        let image = Image::usual("one");
        let module = program.load(&image)?;
        let kernel = program.function(module, &image, "alpha")?;
        let (stream, side) = (Stream::new(cuda, NON_BLOCKING)?, Stream::new(cuda, NON_BLOCKING)?);
        program.did(StreamsCreated, 2);
        let tools = Tools { program, cuda, kernel, stream, side };
        work(&tools)?;
        drop(tools);
        program.did(StreamsDestroyed, 2);
        program.unload(module)
    })
}

impl Tools<'_, '_> {
    fn begin(&self, stream: CUstream, mode: CUstreamCaptureMode) -> Result<()> {
        self.cuda.cuStreamBeginCapture_v2(stream, mode).ok()?;
        self.program.did(CapturesBegun, 1);
        Ok(())
    }

    /// A launch that is only recorded.
    fn record(&self, stream: CUstream) -> Result<()> {
        launch(self.cuda, &self.kernel, (5, 1, 1), stream)?;
        self.program.did(KernelsCaptured, 1);
        Ok(())
    }

    fn end(&self, stream: CUstream) -> Result<CUgraph> {
        let mut graph = ptr::null_mut();
        self.cuda.cuStreamEndCapture(stream, &mut graph).ok()?;
        Ok(graph)
    }

    fn instantiate(&self, graph: CUgraph) -> Result<CUgraphExec> {
        let mut exec = ptr::null_mut();
        self.cuda.cuGraphInstantiateWithFlags(&mut exec, graph, 0).ok()?;
        self.program.did(GraphsInstantiated, 1);
        Ok(exec)
    }

    fn synchronize(&self, stream: CUstream) -> Result<()> {
        self.cuda.cuStreamSynchronize(stream).ok()?;
        self.program.did(StreamSynchronisations, 1);
        Ok(())
    }
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

fn everything(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (cuda, on) = (tools.cuda, tools.stream.handle());
        let mut device = 0;
        cuda.cuMemAlloc_v2(&mut device, 4096).ok()?;
        program.did(AllocationsDevice, 1);
        program.did(AllocatedDevice, 4096);
        let mut host = ptr::null_mut();
        cuda.cuMemAllocHost_v2(&mut host, 4096).ok()?;
        program.did(AllocationsHost, 1);
        program.did(AllocatedHost, 4096);
        let (forked, joined) = (Event::new(cuda, DISABLE_TIMING)?, Event::new(cuda, DISABLE_TIMING)?);
        program.did(EventsCreated, 2);

        tools.begin(on, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
        tools.record(on)?;
        work_of_every_kind(cuda, on, device, host)?;
        forked.record(on)?;
        cuda.cuStreamWaitEvent(tools.side.handle(), forked.handle(), 0).ok()?;
        tools.record(tools.side.handle())?;
        joined.record(tools.side.handle())?;
        cuda.cuStreamWaitEvent(on, joined.handle(), 0).ok()?;
        cuda.cuStreamWriteValue32_v2(on, device, 1, 0).ok()?;
        let mut twice = [CUstreamBatchMemOpParams::default(); 2];
        for operation in &mut twice {
            operation.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
            operation.writeValue.address = device;
        }
        cuda.cuStreamBatchMemOp_v2(on, 2, twice.as_mut_ptr(), 0).ok()?;
        tools.record(on)?;
        let graph = tools.end(on)?;

        let exec = tools.instantiate(graph)?;
        for _ in 0..4 {
            cuda.cuGraphLaunch(exec, on).ok()?;
            program.did(GraphOnCreated, 1);
            program.ran_in_graphs(&tools.kernel, 3);
        }
        // Both streams are their own again.
        program.launch(&tools.kernel, (2, 1, 1), on, PlainOnCreated)?;
        program.launch(&tools.kernel, (2, 1, 1), tools.side.handle(), PlainOnCreated)?;
        tools.synchronize(on)?;
        tools.synchronize(tools.side.handle())?;
        drop((forked, joined));
        program.did(EventsDestroyed, 2);
        cuda.cuMemFree_v2(device).ok()?;
        cuda.cuMemFreeHost(host).ok()?;
        program.did(Frees, 2);
        cuda.cuGraphExecDestroy(exec).ok()?;
        cuda.cuGraphDestroy(graph).ok()
    })
}

/// Copies, fills, allocations, frees and host functions, none of which runs.
fn work_of_every_kind(
    cuda: &Context<'_>,
    on: CUstream,
    device: CUdeviceptr,
    host: *mut c_void,
) -> Result<()> {
    cuda.cuMemcpyHtoDAsync_v2(device, host, 64, on).ok()?;
    cuda.cuMemcpyDtoHAsync_v2(host, device, 64, on).ok()?;
    cuda.cuMemcpyDtoDAsync_v2(device + 1024, device, 64, on).ok()?;
    cuda.cuMemcpyAsync(device + 1024, device, 64, on).ok()?;
    let rectangle = CUDA_MEMCPY2D {
        srcMemoryType: CU_MEMORYTYPE_DEVICE,
        srcDevice: device,
        srcPitch: 64,
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        dstDevice: device + 1024,
        dstPitch: 64,
        WidthInBytes: 16,
        Height: 4,
        ..Default::default()
    };
    cuda.cuMemcpy2DAsync_v2(&rectangle, on).ok()?;
    cuda.cuMemsetD8Async(device, 1, 64, on).ok()?;
    cuda.cuMemsetD32Async(device, 1, 64, on).ok()?;
    cuda.cuMemsetD2D16Async(device, 64, 1, 8, 4, on).ok()?;
    let mut inside = 0;
    cuda.cuMemAllocAsync(&mut inside, 4096, on).ok()?;
    cuda.cuMemFreeAsync(inside, on).ok()?;
    cuda.cuLaunchHostFunc(on, Some(nothing), ptr::null_mut()).ok()
}

fn per_thread(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let (cuda, none) = (tools.cuda, ptr::null_mut());
        tools.begin(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
        tools.record(CU_STREAM_PER_THREAD)?;
        // Stream 0 of the twins is the one that is being captured.
        with_arguments(|list| {
            let (function, extra) = (tools.kernel.handle(), ptr::null_mut());
            cuda.cuLaunchKernel_ptsz(function, 1, 1, 1, 1, 1, 1, 0, none, list, extra).ok()
        })?;
        program.did(KernelsCaptured, 1);
        let graph = tools.end(CU_STREAM_PER_THREAD)?;
        let exec = tools.instantiate(graph)?;
        for (answer, counter) in [
            (cuda.cuGraphLaunch(exec, none), GraphOnDefault),
            (cuda.cuGraphLaunch(exec, CU_STREAM_LEGACY), GraphOnDefault),
            (cuda.cuGraphLaunch(exec, CU_STREAM_PER_THREAD), GraphOnPerThread),
            (cuda.cuGraphLaunch_ptsz(exec, none), GraphOnPerThread),
            (cuda.cuGraphLaunch_ptsz(exec, tools.side.handle()), GraphOnCreated),
        ] {
            answer.ok()?;
            program.did(counter, 1);
            program.ran_in_graphs(&tools.kernel, 2);
        }
        tools.synchronize(CU_STREAM_PER_THREAD)?;
        cuda.cuGraphExecDestroy(exec).ok()?;
        cuda.cuGraphDestroy(graph).ok()
    })
}

/// While one stream is captured, what others are given is done and counted.
fn beside(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        tools.begin(tools.stream.handle(), CU_STREAM_CAPTURE_MODE_RELAXED)?;
        tools.record(tools.stream.handle())?;
        program.launch(&tools.kernel, (1, 1, 1), tools.side.handle(), PlainOnCreated)?;
        program.launch(&tools.kernel, (2, 1, 1), ptr::null_mut(), PlainOnDefault)?;
        program.launch(&tools.kernel, (3, 1, 1), CU_STREAM_PER_THREAD, PlainOnPerThread)?;
        let bytes = [0u8; 100];
        let mut device = 0;
        tools.cuda.cuMemAlloc_v2(&mut device, 100).ok()?;
        program.did(AllocationsDevice, 1);
        program.did(AllocatedDevice, 100);
        tools.cuda.cuMemcpyHtoD_v2(device, bytes.as_ptr().cast(), 100).ok()?;
        program.did(CopiesHostToDevice, 1);
        program.did(CopiedHostToDevice, 100);
        tools.cuda.cuMemsetD8Async(device, 0, 50, tools.side.handle()).ok()?;
        program.did(Fills, 1);
        program.did(Filled, 50);
        let graph = tools.end(tools.stream.handle())?;
        tools.synchronize(tools.side.handle())?;
        tools.cuda.cuMemFree_v2(device).ok()?;
        program.did(Frees, 1);
        tools.cuda.cuGraphDestroy(graph).ok()
    })
}

/// A capture that ends with an error has ended all the same.
fn spoiled(program: &Program<'_>) -> Result<()> {
    with_tools(program, |tools| {
        let on = tools.stream.handle();
        tools.begin(on, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
        tools.record(on)?;
        tools.cuda.cuStreamSynchronize(on).is(Code::STREAM_CAPTURE_UNSUPPORTED)?;
        ensure!(launch(tools.cuda, &tools.kernel, (1, 1, 1), on).is_err(), "a spoiled capture went on");
        program.did(LaunchesRefused, 1);
        let mut graph = ptr::null_mut();
        tools.cuda.cuStreamEndCapture(on, &mut graph).is(Code::STREAM_CAPTURE_INVALIDATED)?;
        program.launch(&tools.kernel, (1, 1, 1), on, PlainOnCreated)?;
        // And the next one is a capture like any other.
        tools.begin(on, CU_STREAM_CAPTURE_MODE_GLOBAL)?;
        tools.record(on)?;
        let graph = tools.end(on)?;
        program.launch(&tools.kernel, (1, 1, 1), on, PlainOnCreated)?;
        tools.synchronize(on)?;
        tools.cuda.cuGraphDestroy(graph).ok()
    })
}
