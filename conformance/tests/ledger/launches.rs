//! Launches: every way of making one, on every kind of stream.

use std::ffi::c_void;
use std::ptr;

use anyhow::Result;
use conformance::answer::Code;
use conformance::context::Context;
use conformance::driver::*;
use conformance::stream::{NON_BLOCKING, Stream};
use telemetry::Counter::{self, *};

use crate::Section;
use crate::program::{Image, Kernel, Program, with_arguments};

pub const SECTIONS: &[Section] = &[
    Section::new("launches/plain", plain),
    Section::new("launches/extended", extended),
    Section::new("launches/cooperative", cooperative),
    Section::new("launches/host_functions", host_functions),
    Section::new("launches/refused", refused),
    Section::new("launches/on_32_threads", threads),
];

const DEFAULT: CUstream = ptr::null_mut();

/// Does something with `alpha` and a created stream.
fn with_kernel(
    program: &Program<'_>,
    work: impl FnOnce(&Context<'_>, &Kernel, CUstream) -> Result<()>,
) -> Result<()> {
    program.in_context(|cuda| {
        let image = Image::usual("one");
        let module = program.load(&image)?;
        let alpha = program.function(module, &image, "alpha")?;
        let stream = Stream::new(cuda, NON_BLOCKING)?;
        program.did(StreamsCreated, 1);
        work(cuda, &alpha, stream.handle())?;
        cuda.synchronize()?;
        program.did(ContextSynchronisations, 1);
        drop(stream);
        program.did(StreamsDestroyed, 1);
        program.unload(module)
    })
}

fn plain(program: &Program<'_>) -> Result<()> {
    with_kernel(program, |cuda, alpha, created| {
        for (stream, counter, times) in [
            (DEFAULT, PlainOnDefault, 3),
            (CU_STREAM_LEGACY, PlainOnDefault, 2),
            (CU_STREAM_PER_THREAD, PlainOnPerThread, 4),
            (created, PlainOnCreated, 5),
        ] {
            for time in 1..=times {
                program.launch(alpha, (time, 2, 3), stream, counter)?;
            }
        }
        // The twins, for which 0 is the thread's own stream, and nothing else is different.
        for (stream, counter) in [
            (DEFAULT, PlainOnPerThread),
            (CU_STREAM_LEGACY, PlainOnDefault),
            (CU_STREAM_PER_THREAD, PlainOnPerThread),
            (created, PlainOnCreated),
        ] {
            with_arguments(|list| {
                let (function, extra) = (alpha.handle(), ptr::null_mut());
                cuda.cuLaunchKernel_ptsz(function, 7, 1, 1, 1, 1, 1, 0, stream, list, extra).ok()
            })?;
            program.launched(alpha, counter, 7);
        }
        Ok(())
    })
}

fn attribute(id: CUlaunchAttributeID, set: impl FnOnce(&mut CUlaunchAttributeValue)) -> CUlaunchAttribute {
    let mut attribute = CUlaunchAttribute { id, ..Default::default() };
    set(&mut attribute.value);
    attribute
}

fn config(stream: CUstream, attributes: &mut [CUlaunchAttribute]) -> CUlaunchConfig {
    CUlaunchConfig {
        gridDimX: 2,
        gridDimY: 3,
        gridDimZ: 1,
        blockDimX: 4,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: u32::try_from(attributes.len()).expect("there are few"),
        ..Default::default()
    }
}

fn extended(program: &Program<'_>) -> Result<()> {
    with_kernel(program, |cuda, alpha, created| {
        let cooperative = |yes| attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, |value| value.cooperative = yes);
        let priority = attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, |value| value.priority = 0);
        let kinds: [(&[CUlaunchAttribute], [Counter; 3]); 4] = [
            (&[], [ExtendedOnDefault, ExtendedOnPerThread, ExtendedOnCreated]),
            (&[priority], [ExtendedOnDefault, ExtendedOnPerThread, ExtendedOnCreated]),
            (&[priority, cooperative(0)], [ExtendedOnDefault, ExtendedOnPerThread, ExtendedOnCreated]),
            (
                &[priority, cooperative(1)],
                [CooperativeOnDefault, CooperativeOnPerThread, CooperativeOnCreated],
            ),
        ];
        for (attributes, counters) in kinds {
            let mut attributes = attributes.to_vec();
            for (stream, counter) in [DEFAULT, CU_STREAM_PER_THREAD, created].into_iter().zip(counters) {
                let config = config(stream, &mut attributes);
                with_arguments(|list| {
                    cuda.cuLaunchKernelEx(&config, alpha.handle(), list, ptr::null_mut()).ok()
                })?;
                program.launched(alpha, counter, 6);
            }
            let config = config(DEFAULT, &mut attributes);
            with_arguments(|list| {
                cuda.cuLaunchKernelEx_ptsz(&config, alpha.handle(), list, ptr::null_mut()).ok()
            })?;
            program.launched(alpha, counters[1], 6);
        }
        Ok(())
    })
}

fn cooperative(program: &Program<'_>) -> Result<()> {
    with_kernel(program, |cuda, alpha, created| {
        for (stream, counter, times) in [
            (DEFAULT, CooperativeOnDefault, 1),
            (CU_STREAM_PER_THREAD, CooperativeOnPerThread, 2),
            (created, CooperativeOnCreated, 3),
        ] {
            for _ in 0..times {
                with_arguments(|list| {
                    cuda.cuLaunchCooperativeKernel(alpha.handle(), 2, 2, 1, 1, 1, 1, 0, stream, list).ok()
                })?;
                program.launched(alpha, counter, 4);
            }
        }
        with_arguments(|list| {
            cuda.cuLaunchCooperativeKernel_ptsz(alpha.handle(), 5, 1, 1, 1, 1, 1, 0, DEFAULT, list).ok()
        })?;
        program.launched(alpha, CooperativeOnPerThread, 5);
        Ok(())
    })
}

unsafe extern "C" fn nothing(_: *mut c_void) {}
unsafe extern "C" fn called_back(_: CUstream, _: CUresult, _: *mut c_void) {}

fn host_functions(program: &Program<'_>) -> Result<()> {
    with_kernel(program, |cuda, _, created| {
        let none = ptr::null_mut();
        for (stream, counter, times) in [
            (DEFAULT, HostFunctionOnDefault, 1),
            (CU_STREAM_PER_THREAD, HostFunctionOnPerThread, 2),
            (created, HostFunctionOnCreated, 3),
        ] {
            for _ in 0..times {
                cuda.cuLaunchHostFunc(stream, Some(nothing), none).ok()?;
                cuda.cuStreamAddCallback(stream, Some(called_back), none, 0).ok()?;
                program.did(counter, 2);
            }
        }
        cuda.cuLaunchHostFunc_ptsz(DEFAULT, Some(nothing), none).ok()?;
        cuda.cuStreamAddCallback_ptsz(DEFAULT, Some(called_back), none, 0).ok()?;
        program.did(HostFunctionOnPerThread, 2);
        Ok(())
    })
}

/// Whatever is refused is one refused launch and nothing else, under no kernel.
fn refused(program: &Program<'_>) -> Result<()> {
    with_kernel(program, |cuda, alpha, created| {
        let (function, null) = (alpha.handle(), ptr::null_mut());
        let invalid = Code::INVALID_VALUE;
        with_arguments(|list| -> Result<()> {
            cuda.cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, created, list, ptr::null_mut()).is(invalid)?;
            cuda.cuLaunchKernel(function, 1, 1, 1, 5000, 1, 1, 0, DEFAULT, list, ptr::null_mut())
                .is(invalid)?;
            cuda.cuLaunchKernel_ptsz(function, 1, 0, 1, 1, 1, 1, 0, DEFAULT, list, ptr::null_mut())
                .is(invalid)?;
            let too_large = Code::COOPERATIVE_LAUNCH_TOO_LARGE;
            cuda.cuLaunchCooperativeKernel(function, 1 << 20, 1, 1, 1024, 1, 1, 0, created, list)
                .is(too_large)?;
            let bad = CUlaunchConfig { gridDimZ: 0, ..config(created, &mut []) };
            cuda.cuLaunchKernelEx(&bad, function, list, ptr::null_mut()).is(invalid)
        })?;
        program.did(LaunchesRefused, 5);
        cuda.cuLaunchHostFunc(created, None, null).is(invalid)?;
        cuda.cuStreamAddCallback(created, None, null, 0).is(invalid)?;
        cuda.cuGraphLaunch(ptr::null_mut(), created).is(invalid)?;
        program.did(LaunchesRefused, 3);
        program.launch(alpha, (1, 1, 1), created, PlainOnCreated)
    })
}

/// As many as count at the same time on the same kernel and on few shards.
fn threads(program: &Program<'_>) -> Result<()> {
    const THREADS: usize = 32;
    const LAUNCHES: usize = 1000;
    with_kernel(program, |cuda, alpha, _| {
        let work = |thread: usize| -> Result<()> {
            cuda.enter()?;
            let stream = Stream::new(cuda, NON_BLOCKING)?;
            program.did(StreamsCreated, 1);
            let (handle, counter) = match thread % 2 {
                0 => (stream.handle(), PlainOnCreated),
                _ => (CU_STREAM_PER_THREAD, PlainOnPerThread),
            };
            for _ in 0..LAUNCHES {
                program.launch(alpha, (2, 1, 1), handle, counter)?;
            }
            cuda.cuStreamSynchronize(handle).ok()?;
            program.did(StreamSynchronisations, 1);
            drop(stream);
            program.did(StreamsDestroyed, 1);
            Ok(())
        };
        std::thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("a thread does not panic"))
        })
    })
}
