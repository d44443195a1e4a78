//! Processes: each that uses CUDA has a ledger of its own doings, however it began and however it ends.

use std::ffi::CString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::ptr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use conformance::runner::fork::{self, End};
use libtest_mimic::Failed;
use telemetry::Counter::*;
use telemetry::Reading;

use crate::program::{Image, Program, launch};
use crate::{Place, Section, TIMEOUT, verdict};

pub const SECTIONS: &[Section] = &[
    Section::new("processes/forked_before_cuda_is_used", fork_first),
    Section::new("processes/forked_after_cuda_was_used", fork_later),
    Section::new("processes/becoming_another_program", become_another),
    Section::new("processes/that_close_the_library_and_go_on", close),
    Section::new("processes/that_only_look_for_a_device", only_look),
    Section::new("processes/switched_off", untold).with(&[("EBB_DISABLE", "1")]),
    Section::new("processes/without_a_folder", untold).with(&[("EBB_RUN", "")]),
    Section::new("processes/whose_folder_is_missing", untold).with(&[("EBB_RUN", "/nowhere/at/all")]),
];

/// Not judged like the others: it never ends.
pub const ENDLESS: Section = Section::new("processes/killed", endless);

const FORK: Duration = TIMEOUT;

fn launches(program: &Program<'_>, times: u32) -> Result<()> {
    program.in_context(|_| {
        let image = Image::usual("one");
        let module = program.load(&image)?;
        let alpha = program.function(module, &image, "alpha")?;
        for _ in 0..times {
            program.launch(&alpha, (2, 1, 1), ptr::null_mut(), PlainOnDefault)?;
        }
        program.unload(module)
    })
}

/// Does something in a fork that has a tally of its own.
fn in_fork(program: &Program<'_>, work: impl FnOnce(&Program<'_>) -> Result<()>) -> Result<()> {
    let end = fork::beside(FORK, || {
        let own = Program::new(program.driver);
        match work(&own).and_then(|()| own.tell()) {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("in a fork: {error:?}");
                1
            }
        }
    })?;
    ensure!(end == End::Exit(0), "the fork ended with {end:?}");
    Ok(())
}

/// Programs keep the addresses that a library has given them, also when they have closed it.
fn close(program: &Program<'_>) -> Result<()> {
    launches(program, 2)?;
    let path = CString::new(program.driver.path().as_os_str().as_encoded_bytes())?;
    // SAFETY: a C string; a library that is open already.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) };
    ensure!(!handle.is_null(), "the library is not open under its path");
    // Ours, and the one by which the driver was opened.
    for _ in 0..2 {
        // SAFETY: the handle has been opened as often.
        ensure!(unsafe { libc::dlclose(handle) } == 0, "the library cannot be closed");
    }
    launches(program, 3)
}

fn fork_first(program: &Program<'_>) -> Result<()> {
    in_fork(program, |_| Ok(()))?;
    in_fork(program, |own| launches(own, 3))?;
    in_fork(program, |own| {
        launches(own, 4)?;
        in_fork(own, |_| Ok(()))
    })?;
    launches(program, 5)
}

/// CUDA cannot be used in the fork of a process that has used it. What a fork tries all the same is its own failure.
fn fork_later(program: &Program<'_>) -> Result<()> {
    program.in_context(|cuda| {
        let image = Image::usual("one");
        let module = program.load(&image)?;
        let alpha = program.function(module, &image, "alpha")?;
        program.launch(&alpha, (2, 1, 1), ptr::null_mut(), PlainOnDefault)?;
        cuda.synchronize()?;
        program.did(ContextSynchronisations, 1);
        in_fork(program, |_| Ok(()))?;
        in_fork(program, |own| {
            ensure!(launch(own.driver, &alpha, (2, 1, 1), ptr::null_mut()).is_err(), "a fork has launched");
            own.did(LaunchesRefused, 1);
            Ok(())
        })?;
        program.launch(&alpha, (2, 1, 1), ptr::null_mut(), PlainOnDefault)?;
        program.unload(module)
    })
}

/// Says in the program that a process has become that it is one.
const BECOME: &str = "EBB_LEDGER_TEST_BECOME";

fn become_another(program: &Program<'_>) -> Result<()> {
    if std::env::var_os(BECOME).is_some() {
        return launches(program, 7);
    }
    launches(program, 2)?;
    program.tell()?;
    let mut same = Command::new(std::env::current_exe()?);
    bail!("exec: {}", same.args(std::env::args_os().skip(1)).env(BECOME, "1").exec())
}

/// Who asks for no more than the number of devices has a ledger in which nothing is counted.
fn only_look(program: &Program<'_>) -> Result<()> {
    program.driver.cuInit(0).ok()?;
    let mut count = 0;
    program.driver.cuDeviceGetCount(&mut count).ok()?;
    ensure!(count > 0);
    program.did(PlainOnDefault, 0);
    Ok(())
}

/// Works, and says nothing of it: there must be no ledger.
fn untold(program: &Program<'_>) -> Result<()> {
    let quiet = Program::new(program.driver);
    launches(&quiet, 3)?;
    program.driver.cuInit(0).ok()
}

const AT_LEAST: u32 = 100;

fn endless(program: &Program<'_>) -> Result<()> {
    program.in_context(|_| {
        let image = Image::usual("one");
        let module = program.load(&image)?;
        let alpha = program.function(module, &image, "alpha")?;
        for _ in 0..AT_LEAST {
            program.launch(&alpha, (2, 1, 1), ptr::null_mut(), PlainOnDefault)?;
        }
        program.tell()?;
        loop {
            launch(program.driver, &alpha, (2, 1, 1), ptr::null_mut())?;
        }
    })
}

/// Killed in the middle of its work, a process has a ledger that says how far it came.
pub fn killed() -> Result<(), Failed> {
    let place = Place::new(ENDLESS)?;
    let mut child = place.start()?;
    let deadline = Instant::now() + TIMEOUT;
    while std::fs::read_dir(place.tallies())?.count() == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    // Read while it is being written, too.
    let alive = only_ledger(&place);
    child.kill()?;
    child.wait()?;
    let dead = only_ledger(&place)?;
    goes_on(&alive?, &dead).map_err(|error| format!("{error:#}").into())
}

fn only_ledger(place: &Place) -> Result<Reading, Failed> {
    let ledgers = verdict::read_ledgers(&place.ledgers()).map_err(|error| format!("{error:#}"))?;
    let mut all = ledgers.into_values().flatten();
    let first = all.next().ok_or("there is no ledger")?;
    if all.next().is_some() { Err("there are two ledgers".into()) } else { Ok(first) }
}

fn goes_on(alive: &Reading, dead: &Reading) -> Result<()> {
    let (before, after) = (alive.count(PlainOnDefault), dead.count(PlainOnDefault));
    ensure!(before >= u64::from(AT_LEAST) && before <= after, "{before} launches, then {after}");
    let alpha = dead.kernels.first().context("no kernel is listed")?;
    // Between the two additions of a launch it may have been killed.
    ensure!(after - alpha.launches <= 1, "{after} launches, of which {} under the kernel", alpha.launches);
    ensure!(2 * alpha.launches - alpha.blocks <= 2, "{} blocks in {after} launches", alpha.blocks);
    ensure!(dead.count(ModulesPtx) == 1 && dead.count(ContextsDestroyed) == 0 && dead.notes.is_empty());
    Ok(())
}
