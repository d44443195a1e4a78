//! What the software GPU does not have, over a driver that agrees to everything and writes nothing. Where a driver gives
//! a handle out, such a program finds what it had put there: it chooses the handles itself, and can be given one twice.

use std::ptr;

use anyhow::Result;
use conformance::driver::*;
use telemetry::Counter::*;

use crate::Section;
use crate::program::{Image, Kernel, Program, launch};

pub const SECTIONS: &[Section] = &[
    Section::new("odd/handles_that_are_used_again", used_again).on_null(),
    Section::new("odd/kernels_nobody_looked_up", unknown).on_null(),
    Section::new("odd/launches_of_long_ago", long_ago).on_null(),
    Section::new("odd/arrays_peers_and_batches", arrays).on_null(),
    Section::new("odd/green_contexts", green).on_null(),
];

const DEFAULT: CUstream = ptr::null_mut();

fn handle<T>(number: usize) -> *mut T {
    ptr::without_provenance_mut(number)
}

/// Loads an image and is given the handle 0x1000; finds `alpha`, of which this driver tells no parameters, at 0x2000.
fn load(program: &Program<'_>, image: &Image, word: &str) -> Result<Kernel> {
    let (mut module, mut function) = (handle(0x1000), handle(0x2000));
    program.driver.cuModuleLoadData(&mut module, image.text.as_ptr().cast()).ok()?;
    program.did(ModulesPtx, 1);
    program.driver.cuModuleGetFunction(&mut function, module, c"alpha".as_ptr()).ok()?;
    program.did(FunctionsFound, 1);
    Ok(Kernel::foreign(function, "alpha", word, (0, 0)))
}

fn used_again(program: &Program<'_>) -> Result<()> {
    let (one, two, six) = (Image::usual("one"), Image::usual("two"), Image::usual("six"));
    let alpha = load(program, &one, "one")?;
    for _ in 0..2 {
        program.launch(&alpha, (1, 1, 1), DEFAULT, PlainOnDefault)?;
    }
    program.unload(handle(0x1000))?;
    // Until somebody is given it again, the handle means nothing.
    launch(program.driver, &alpha, (1, 1, 1), DEFAULT)?;
    program.did(PlainOnDefault, 1);
    program.did(KernelsUnknown, 1);
    let alpha = load(program, &two, "two")?;
    for _ in 0..3 {
        program.launch(&alpha, (1, 1, 1), DEFAULT, PlainOnDefault)?;
    }
    // Without an unload: the end of a context is the end of its modules.
    let alpha = load(program, &six, "six")?;
    for _ in 0..5 {
        program.launch(&alpha, (1, 1, 1), DEFAULT, PlainOnDefault)?;
    }
    // Another kernel of the same module under the same handle.
    let (mut function, name) = (handle(0x2000), c"beta");
    program.driver.cuModuleGetFunction(&mut function, handle(0x1000), name.as_ptr()).ok()?;
    program.did(FunctionsFound, 1);
    let beta = Kernel::foreign(function, "beta", "six", (0, 0));
    program.launch(&beta, (1, 1, 1), DEFAULT, PlainOnDefault)
}

fn unknown(program: &Program<'_>) -> Result<()> {
    let stray = Kernel::foreign(handle::<CUfunc_st>(0x3000), "stray", "none", (0, 0));
    for _ in 0..4 {
        launch(program.driver, &stray, (9, 1, 1), handle(0x4000))?;
        program.did(PlainOnCreated, 1);
        program.did(KernelsUnknown, 1);
    }
    Ok(())
}

fn long_ago(program: &Program<'_>) -> Result<()> {
    let image = Image::usual("one");
    let alpha = load(program, &image, "one")?;
    let (driver, function) = (program.driver, alpha.handle());
    driver.cuLaunch(function).ok()?;
    program.launched(&alpha, PlainOnDefault, 1);
    driver.cuLaunchGrid(function, 3, 4).ok()?;
    program.launched(&alpha, PlainOnDefault, 12);
    driver.cuLaunchGridAsync(function, 5, 6, handle(0x4000)).ok()?;
    program.launched(&alpha, PlainOnCreated, 30);
    let one = CUDA_LAUNCH_PARAMS {
        function,
        gridDimX: 2,
        gridDimY: 2,
        gridDimZ: 2,
        hStream: handle(0x4000),
        ..Default::default()
    };
    driver.cuLaunchCooperativeKernelMultiDevice([one, one].as_mut_ptr(), 2, 0).ok()?;
    (0..2).for_each(|_| program.launched(&alpha, CooperativeOnCreated, 8));
    Ok(())
}

fn arrays(program: &Program<'_>) -> Result<()> {
    let (driver, on) = (program.driver, handle(0x4000));
    let mut array: CUarray = handle(0x5000);
    let flat = CUDA_ARRAY_DESCRIPTOR { Width: 10, Height: 0, Format: CU_AD_FORMAT_FLOAT, NumChannels: 2 };
    driver.cuArrayCreate_v2(&mut array, &flat).ok()?;
    let deep = CUDA_ARRAY3D_DESCRIPTOR {
        Width: 10,
        Height: 5,
        Depth: 3,
        Format: CU_AD_FORMAT_UNSIGNED_INT16,
        NumChannels: 1,
        Flags: 0,
    };
    driver.cuArray3DCreate_v2(&mut array, &deep).ok()?;
    program.did(AllocationsDevice, 2);
    program.did(AllocatedDevice, 10 * 4 * 2 + 10 * 5 * 3 * 2);
    let mut host = [0u8; 64];
    let bytes = host.as_mut_ptr().cast();
    driver.cuMemcpyHtoA_v2(array, 0, bytes, 10).ok()?;
    driver.cuMemcpyHtoAAsync_v2(array, 0, bytes, 11, on).ok()?;
    program.did(CopiesHostToDevice, 2);
    program.did(CopiedHostToDevice, 21);
    driver.cuMemcpyAtoH_v2(bytes, array, 0, 12).ok()?;
    program.did(CopiesDeviceToHost, 1);
    program.did(CopiedDeviceToHost, 12);
    driver.cuMemcpyAtoA_v2(array, 0, array, 0, 13).ok()?;
    driver.cuMemcpyDtoA_v2(array, 0, 0x6000, 14).ok()?;
    driver.cuMemcpyAtoD_v2(0x6000, array, 0, 15).ok()?;
    let peers = CUDA_MEMCPY3D_PEER {
        srcMemoryType: CU_MEMORYTYPE_ARRAY,
        dstMemoryType: CU_MEMORYTYPE_DEVICE,
        WidthInBytes: 2,
        Height: 3,
        Depth: 4,
        ..Default::default()
    };
    driver.cuMemcpy3DPeer(&peers).ok()?;
    driver.cuMemcpy3DPeerAsync(&peers, on).ok()?;
    program.did(CopiesDeviceToDevice, 5);
    program.did(CopiedDeviceToDevice, 13 + 14 + 15 + 24 + 24);
    let mut sizes = [100, 200, 300];
    let (none, all) = (ptr::null_mut(), ptr::null_mut());
    let attributes = ptr::null_mut();
    driver
        .cuMemcpyBatchAsync_v2(none, all, sizes.as_mut_ptr(), 3, attributes, ptr::null_mut(), 0, on)
        .ok()?;
    program.did(CopiesOther, 3);
    program.did(CopiedOther, 600);
    let mut cuboids = [CUDA_MEMCPY3D_BATCH_OP::default(); 2];
    for cuboid in &mut cuboids {
        cuboid.src.type_ = CU_MEMCPY_OPERAND_TYPE_POINTER;
        cuboid.dst.type_ = CU_MEMCPY_OPERAND_TYPE_POINTER;
        cuboid.extent = CUextent3D { width: 5, height: 6, depth: 7 };
    }
    driver.cuMemcpy3DBatchAsync_v2(2, cuboids.as_mut_ptr(), 0, on).ok()?;
    program.did(CopiesOther, 2);
    program.did(CopiedOther, 2 * 5 * 6 * 7);
    driver.cuArrayDestroy(array).ok()?;
    program.did(Frees, 1);
    Ok(())
}

fn green(program: &Program<'_>) -> Result<()> {
    let (driver, event) = (program.driver, handle(0x7000));
    let mut context: CUgreenCtx = handle(0x8000);
    driver.cuGreenCtxCreate(&mut context, ptr::null_mut(), 0, 0).ok()?;
    program.did(ContextsCreated, 1);
    let mut stream = handle(0x9000);
    driver.cuGreenCtxStreamCreate(&mut stream, context, 1, 0).ok()?;
    program.did(StreamsCreated, 1);
    driver.cuGreenCtxRecordEvent(context, event).ok()?;
    program.did(EventsRecorded, 1);
    driver.cuGreenCtxWaitEvent(context, event).ok()?;
    program.did(EventsAwaited, 1);
    driver.cuGreenCtxDestroy(context).ok()?;
    program.did(ContextsDestroyed, 1);
    Ok(())
}
