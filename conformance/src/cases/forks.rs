//! Forks of a process that uses CUDA. The fork has no driver that works, and must be told so; the parent must not
//! notice. (A fork before `cuInit` is a process like any other: `conformance --forked` runs every case in one.)

use crate::context::Context;
use crate::driver::*;
use crate::module::Module;
use crate::runner::fork::{self, End};
use crate::suite::Case;
use crate::{args, compare, source};
use anyhow::{Context as _, Result, ensure};
use std::io::{Read, Write};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub const CASES: &[Case] = &[
    Case::new("fork/after_use_is_answered_and_harmless", after_use).spoiling(),
    Case::new("fork/while_threads_launch", while_busy).spoiling(),
    Case::bare("fork/of_a_fork", of_a_fork),
];

/// Far more than refusals take; a fork that needs it hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// One launch with a checked result.
fn add(context: &Context<'_>) -> Result<()> {
    let module = Module::load(context, source!("vector_add").usual())?;
    let (a, b) = (context.buffer(&[1.0f32; 100])?, context.buffer(&[2.0f32; 100])?);
    let c = context.zeros::<f32>(100)?;
    module.function("vector_add")?.run(1, 128, args![&a, &b, &c, 100i32])?;
    compare::close(&c.read()?, &[3.0; 100], 1e-6, 0.0)
}

/// What a fork is told when it goes on using its parent's driver, call by call.
fn answers(driver: &Driver) -> Vec<String> {
    let (mut number, mut context, mut stream, mut address) = (0, ptr::null_mut(), ptr::null_mut(), 0);
    let answers = [
        driver.cuDeviceGetCount(&mut number),
        driver.cuInit(0),
        driver.cuCtxGetCurrent(&mut context),
        driver.cuCtxCreate_v2(&mut context, 0, 0),
        driver.cuMemAlloc_v2(&mut address, 4),
        driver.cuMemAllocAsync(&mut address, 4, ptr::null_mut()),
        driver.cuStreamCreate(&mut stream, 0),
        driver.cuCtxSynchronize(),
        driver.cuStreamSynchronize(ptr::null_mut()),
    ];
    answers.iter().map(|answer| format!("{} -> {}", answer.call, answer.code)).collect()
}

/// Forks, and prints what the fork was told, for `--probe` and `--compare`.
fn ask_a_fork(driver: &Driver) -> Result<()> {
    let (mut reader, mut writer) = std::io::pipe().context("cannot make a pipe")?;
    let end = fork::beside(PATIENCE, || {
        let text = answers(driver).join("\n");
        u8::from(writer.write_all(text.as_bytes()).is_err())
    })?;
    drop(writer);
    ensure!(end == End::Exit(0), "the fork ended with {end:?}");
    let mut text = String::new();
    reader.read_to_string(&mut text)?;
    ensure!(text.lines().count() == 9, "the fork said {text:?}");
    text.lines().for_each(|line| println!("probe: in the fork {line}"));
    let working = text.lines().find(|line| line.ends_with(" SUCCESS"));
    ensure!(working.is_none(), "a fork of a process that uses CUDA was told {}", working.unwrap_or_default());
    Ok(())
}

fn after_use(context: &Context<'_>) -> Result<()> {
    add(context)?;
    let buffer = context.buffer(&[7u32; 16])?;
    for _ in 0..3 {
        ask_a_fork(context)?;
        add(context)?;
    }
    compare::equal(&buffer.read()?, &[7u32; 16])
}

/// A fork at any moment of another thread's calls.
fn while_busy(context: &Context<'_>) -> Result<()> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let busy = [(); 3].map(|()| {
            scope.spawn(|| {
                context.enter()?;
                while !stop.load(Ordering::Relaxed) {
                    add(context)?;
                }
                anyhow::Ok(())
            })
        });
        let forks = (0..10).try_for_each(|_| ask_a_fork(context));
        stop.store(true, Ordering::Relaxed);
        for thread in busy {
            thread.join().expect("a case does not panic")?;
        }
        forks
    })?;
    add(context)
}

/// Generations of processes that have the library but have not used it; the last one uses it.
fn of_a_fork(driver: &Driver) -> Result<()> {
    let work = || u8::from(Context::new(driver).and_then(|context| add(&context)).is_err());
    let inner = || match fork::beside(PATIENCE, work) {
        Ok(End::Exit(code)) => code,
        _ => 2,
    };
    let end = fork::beside(2 * PATIENCE, inner)?;
    ensure!(end == End::Exit(0), "the fork of a fork ended with {end:?}");
    // Nobody has used the driver in this process, so it is as good as new.
    add(&Context::new(driver)?)
}
