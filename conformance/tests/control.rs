//! `ebb_softgpu_control`, the software GPU's own symbol: what a library in front of it can do to the contexts of its
//! process. Every section is a process of its own, on a card of its own, because what is set is set for a process.

use std::ffi::c_int;
use std::fs::File;
use std::os::fd::FromRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::ptr;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use conformance::args;
use conformance::context::Context;
use conformance::driver::{CUuuid, Driver};
use conformance::memory::Pinned;
use conformance::module::{Function, Module};
use conformance::runner::fork::{self, End};
use libtest_mimic::{Arguments, Failed, Trial};

mod common;

const DRIVER_AT: &str = "EBB_CONTROL_TEST_DRIVER";
const PATIENCE: Duration = Duration::from_secs(60);
/// The timeslice of the cards here, unlike any that is set.
const CARD_SLICE: u64 = 3_000_000;

/// Every block adds one to a count `steps` times, and sleeps for a millisecond before each.
const STEPS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry steps(.param .u64 count, .param .u32 steps)
{
    .reg .pred %p<2>;
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [count];
    ld.param.u32 %r1, [steps];
    cvta.to.global.u64 %rd2, %rd1;
again:
    mov.u32 %r2, 1000000;
    nanosleep.u32 %r2;
    red.global.add.u32 [%rd2], 1;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
\0";

static SOFTCUDA: LazyLock<PathBuf> = LazyLock::new(|| common::built("softcuda"));

type Section = (&'static str, fn(&Driver) -> Result<()>);

const SECTIONS: &[Section] = &[
    ("suspended_in_the_middle_of_a_block", suspended),
    ("any_thread_at_any_time", any_thread),
    ("before_init_it_is_remembered", before_init),
    ("later_contexts_have_what_was_set", later_contexts),
    ("contexts_made_while_disabled_start_disabled", start_disabled),
    ("what_is_not_known_is_refused", refused),
    ("a_fork_has_nothing_of_it", forked),
    ("other_processes_are_left_alone", others),
    ("a_card_is_known_by_its_uuid", uuids),
    ("who_may_use_a_card_is_given_its_file", card_file),
];

/// Started by sections, not by the list.
const NEIGHBOURS: &[Section] = &[("neighbour", neighbour), ("say_uuid", say_uuid)];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, flag, name] = &words[..]
        && flag == "--section"
    {
        return become_section(name);
    }
    let trials = SECTIONS.iter().map(|&(name, _)| Trial::test(name, move || judge(name)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn become_section(name: &str) -> ExitCode {
    let run = || {
        let (_, section) =
            SECTIONS.iter().chain(NEIGHBOURS).find(|(other, _)| *other == name).context("no such section")?;
        let path = std::env::var_os(DRIVER_AT).context("no driver is named")?;
        section(&Driver::open(Path::new(&path))?)
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}

fn judge(name: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let mut command = start(name)?;
    command.env(DRIVER_AT, &*SOFTCUDA).env("EBB_RUNTIME_DIR", folder.path());
    command.env("EBB_SOFTGPU", "control").env("EBB_SOFTGPU_TIMESLICE_US", (CARD_SLICE / 1000).to_string());
    let output = command.output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn start(section: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--section", section]).stdin(Stdio::null());
    Ok(command)
}

/// The symbol under test: the answer, or the negative number it gave.
fn control(driver: &Driver, operation: u32, value: u64) -> Result<u64, c_int> {
    type Symbol = unsafe extern "C" fn(u32, u64, *mut u64) -> c_int;
    let address = driver.symbol(c"ebb_softgpu_control");
    assert!(!address.is_null(), "the software GPU exports its control");
    // SAFETY: the software GPU exports this name with this signature.
    let function = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Symbol>(address) };
    let mut answer = u64::MAX;
    // SAFETY: a place for the answer.
    match unsafe { function(operation, value, &mut answer) } {
        0 => Ok(answer),
        refused => Err(refused),
    }
}

const COUNT: u32 = 0;
const TIMESLICE: u32 = 1;
const SET_TIMESLICE: u32 = 2;
const PREEMPT: u32 = 3;
const DISABLE: u32 = 4;
const ENABLE: u32 = 5;
const LOCK_FILE: u32 = 6;
const CARD_FILE: u32 = 7;

/// Blocks that count in memory which the host can look at while they run.
struct Work<'d> {
    kernel: Function<'d>,
    count: Pinned<'d, u32>,
    _module: Module<'d>,
}

impl<'d> Work<'d> {
    fn new(context: &Context<'d>) -> Result<Work<'d>> {
        let module = Module::load(context, STEPS)?;
        Ok(Work { kernel: module.function("steps")?, count: Pinned::new(context, 1)?, _module: module })
    }

    fn launch(&self, blocks: u32, steps: u32) -> Result<()> {
        self.kernel.launch(blocks, 1, 0, ptr::null_mut(), args![self.count.address(), steps])
    }

    fn count(&self) -> u32 {
        self.count.get(0)
    }

    fn stands_still(&self) -> bool {
        let before = self.count();
        std::thread::sleep(Duration::from_millis(50));
        self.count() == before
    }
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) -> Result<()> {
    let begin = Instant::now();
    while !condition() {
        ensure!(begin.elapsed() < PATIENCE, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Checks an answer of the control.
fn gives(driver: &Driver, operation: u32, value: u64, wanted: u64) -> Result<()> {
    let given = control(driver, operation, value);
    ensure!(given == Ok(wanted), "operation {operation} gave {given:?} instead of {wanted}");
    Ok(())
}

fn suspended(driver: &Driver) -> Result<()> {
    let context = Context::new(driver)?;
    let work = Work::new(&context)?;
    let (blocks, steps) = (4, 200);
    work.launch(blocks, steps)?;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| -> Result<()> {
            for _ in 0..3 {
                let before = work.count();
                wait_for("the blocks go on", || work.count() > before)?;
                gives(driver, DISABLE, 0, 1)?;
                wait_for("nothing advances", || work.stands_still())?;
                ensure!(work.count() < blocks * steps, "the blocks were suspended before their end");
                gives(driver, ENABLE, 0, 1)?;
            }
            Ok(())
        });
        // This thread waits for the work meanwhile, as a program does.
        context.synchronize()?;
        other.join().expect("no assertion stands in the thread")
    })?;
    ensure!(work.count() == blocks * steps, "{} steps of {}", work.count(), blocks * steps);
    Ok(())
}

/// Controls in any order while contexts come and go: everything runs once, and nobody waits for ever.
fn any_thread(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let restless = scope.spawn(|| -> Result<()> {
            for round in 0u64.. {
                let operation =
                    [PREEMPT, DISABLE, ENABLE, SET_TIMESLICE, COUNT, TIMESLICE][round as usize % 6];
                control(driver, operation, 1000 + round).ok().context("a control was refused")?;
                if ended.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                std::thread::sleep(Duration::from_micros(200));
            }
            control(driver, ENABLE, 0).map(drop).ok().context("cannot enable")
        });
        let done = (0..20).try_for_each(|_| {
            let context = Context::new(driver)?;
            let work = Work::new(&context)?;
            work.launch(10, 3)?;
            context.synchronize()?;
            ensure!(work.count() == 30, "{} of 30", work.count());
            Ok(())
        });
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        restless.join().expect("no assertion stands in the thread")?;
        done
    })
}

fn before_init(driver: &Driver) -> Result<()> {
    gives(driver, COUNT, 0, 0)?;
    ensure!(control(driver, TIMESLICE, 0) == Err(-libc::ENODEV), "nobody can know the timeslice yet");
    gives(driver, SET_TIMESLICE, 7000, 0)?;
    gives(driver, TIMESLICE, 0, 7000)?;
    for operation in [PREEMPT, DISABLE, ENABLE] {
        gives(driver, operation, 0, 0)?;
    }
    let context = Context::new(driver)?;
    gives(driver, COUNT, 0, 1)?;
    gives(driver, TIMESLICE, 0, 7000)?;
    let work = Work::new(&context)?;
    work.launch(1, 1)?;
    context.synchronize()
}

fn later_contexts(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    gives(driver, TIMESLICE, 0, CARD_SLICE)?;
    let first = Context::new(driver)?;
    gives(driver, TIMESLICE, 0, CARD_SLICE)?;
    gives(driver, SET_TIMESLICE, 1000, 1)?;
    gives(driver, TIMESLICE, 0, 1000)?;
    let second = Context::new(driver)?;
    gives(driver, COUNT, 0, 2)?;
    drop(first);
    gives(driver, TIMESLICE, 0, 1000)?;
    drop(second);
    gives(driver, COUNT, 0, 0)?;
    // The primary context comes and goes by another way.
    let mut primary = ptr::null_mut();
    driver.cuDevicePrimaryCtxRetain(&mut primary, 0).ok()?;
    gives(driver, COUNT, 0, 1)?;
    gives(driver, TIMESLICE, 0, 1000)?;
    gives(driver, SET_TIMESLICE, 2000, 1)?;
    driver.cuDevicePrimaryCtxRelease_v2(0).ok()?;
    driver.cuDevicePrimaryCtxRetain(&mut primary, 0).ok()?;
    gives(driver, TIMESLICE, 0, 2000)
}

fn start_disabled(driver: &Driver) -> Result<()> {
    gives(driver, DISABLE, 0, 0)?;
    let context = Context::new(driver)?;
    let work = Work::new(&context)?;
    work.launch(2, 1)?;
    std::thread::sleep(Duration::from_millis(100));
    ensure!(work.count() == 0, "a disabled context runs nothing");
    gives(driver, ENABLE, 0, 1)?;
    context.synchronize()?;
    ensure!(work.count() == 2, "{} of 2", work.count());
    let second = Context::new(driver)?;
    let work = Work::new(&second)?;
    work.launch(2, 1)?;
    second.synchronize()
}

fn refused(driver: &Driver) -> Result<()> {
    let _context = Context::new(driver)?;
    let unknown = [(LOCK_FILE, 2), (CARD_FILE, 1), (CARD_FILE + 1, 0), (u32::MAX, 0)];
    for (operation, value) in unknown.into_iter().chain([(SET_TIMESLICE, 0), (SET_TIMESLICE, u64::MAX)]) {
        let given = control(driver, operation, value);
        ensure!(given == Err(-libc::EINVAL), "operation {operation} with {value} gave {given:?}");
    }
    gives(driver, TIMESLICE, 0, CARD_SLICE)
}

fn forked(driver: &Driver) -> Result<()> {
    // A fork before `cuInit` is a process like any other, and not a disabled one.
    gives(driver, SET_TIMESLICE, 5000, 0)?;
    gives(driver, DISABLE, 0, 0)?;
    let early = fork::beside(PATIENCE, || {
        let run = || {
            let context = Context::new(driver)?;
            gives(driver, TIMESLICE, 0, CARD_SLICE)?;
            Work::new(&context)?.launch(1, 1)?;
            context.synchronize()
        };
        u8::from(run().is_err())
    })?;
    ensure!(early == End::Exit(0), "the early fork ended with {early:?}");
    gives(driver, ENABLE, 0, 0)?;
    let context = Context::new(driver)?;
    let work = Work::new(&context)?;
    work.launch(4, 50)?;
    let late = fork::beside(PATIENCE, || {
        let run = || {
            gives(driver, COUNT, 0, 0)?;
            for operation in [PREEMPT, DISABLE] {
                gives(driver, operation, 0, 0)?;
            }
            gives(driver, SET_TIMESLICE, 9000, 0)
        };
        u8::from(run().is_err())
    })?;
    ensure!(late == End::Exit(0), "the late fork ended with {late:?}");
    context.synchronize()?;
    ensure!(work.count() == 200, "{} of 200", work.count());
    gives(driver, TIMESLICE, 0, 5000)
}

/// Another process on the same card: it has one context, the card's timeslice, and the GPU.
fn neighbour(driver: &Driver) -> Result<()> {
    let context = Context::new(driver)?;
    gives(driver, COUNT, 0, 1)?;
    gives(driver, TIMESLICE, 0, CARD_SLICE)?;
    let work = Work::new(&context)?;
    work.launch(4, 20)?;
    context.synchronize()?;
    ensure!(work.count() == 80, "{} of 80", work.count());
    // Its own wishes end with it.
    gives(driver, DISABLE, 0, 1)
}

fn others(driver: &Driver) -> Result<()> {
    let context = Context::new(driver)?;
    let work = Work::new(&context)?;
    gives(driver, SET_TIMESLICE, 1000, 1)?;
    work.launch(4, 100)?;
    wait_for("the blocks run", || work.count() > 0)?;
    gives(driver, DISABLE, 0, 1)?;
    wait_for("nothing advances", || work.stands_still())?;
    let before = work.count();
    let output = start("neighbour")?.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(work.count() == before, "this process is still disabled");
    gives(driver, ENABLE, 0, 1)?;
    context.synchronize()?;
    gives(driver, TIMESLICE, 0, 1000)?;
    ensure!(work.count() == 400, "{} of 400", work.count());
    Ok(())
}

fn card_file(driver: &Driver) -> Result<()> {
    let early = control(driver, CARD_FILE, 0);
    ensure!(early == Err(-libc::ENODEV), "before there is a card: {early:?}");
    let _context = Context::new(driver)?;
    let open = || -> Result<(File, i32)> {
        let number = control(driver, CARD_FILE, 0).map_err(|error| anyhow::anyhow!("error {error}"))?;
        let number = c_int::try_from(number)?;
        // SAFETY: a descriptor that is ours from now on; it is asked how it was opened.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFL) };
        // SAFETY: as above.
        Ok((unsafe { File::from_raw_fd(number) }, flags))
    };
    let ((one, flags), (two, _)) = (open()?, open()?);
    ensure!(flags & libc::O_ACCMODE == libc::O_RDWR, "flags {flags:#o}");
    let facts = |file: &File| -> Result<_> {
        let facts = file.metadata()?;
        Ok((facts.dev(), facts.ino(), facts.is_file()))
    };
    ensure!(facts(&one)? == facts(&two)? && facts(&one)?.2, "it is one file");
    Ok(())
}

fn say_uuid(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    let mut uuid = CUuuid::default();
    driver.cuDeviceGetUuid_v2(&mut uuid, 0).ok()?;
    println!("{:?}", uuid.bytes);
    Ok(())
}

fn uuids(_: &Driver) -> Result<()> {
    let said = |setting: Option<(&str, &Path)>| -> Result<String> {
        let output = start("say_uuid")?.envs(setting).output()?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8(output.stdout)?)
    };
    let folder = tempfile::tempdir()?;
    let own = said(None)?;
    ensure!(own == said(None)?, "two processes see two cards");
    let other = said(Some(("EBB_SOFTGPU", Path::new("another"))))?;
    let elsewhere = said(Some(("EBB_RUNTIME_DIR", folder.path())))?;
    ensure!(
        own != other && own != elsewhere && other != elsewhere,
        "two cards are one: {own}{other}{elsewhere}"
    );
    Ok(())
}
