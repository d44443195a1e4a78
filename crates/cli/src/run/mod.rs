//! `ebb run`: a command with the shim in front of its driver.
//!
//! Without a report ebb *becomes* the command, as nice(1) and env(1) do, and nothing is left between it and its
//! parent. With a report ebb stays as its parent until it has ended. Either way the command should not notice, and
//! what ebb cannot do is said in one sentence while the command runs as it would have without.
//!
//! * `driver`: which driver stands behind the shim
//! * `environment`: the variables by which the loader finds the shim
//! * `folder`: where the command's processes leave their ledgers
//! * `tenancy`: what the command is among others, and the daemon that seats it
//! * `name`: what it is called if nobody says
//! * `memory`: how much of a GPU's memory it may have
//! * `supervise`: the command as a child, its signals and its status
//! * `watch`, `process`: who reaches the driver round us
//! * `report`: what is said in the end

mod driver;
pub mod environment;
pub mod folder;
mod memory;
mod name;
pub mod process;
pub mod report;
mod supervise;
mod tenancy;
mod watch;

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use installation::Error as Uninstalled;
use installation::program::{Preload, Program, inspect};
use model::Domain;

use crate::arguments::RunOptions;
use crate::verdicts::found;
use crate::{beside, company};
use driver::{Driver, is_software};
use folder::RunFolder;
use report::{Report, Sight};
use supervise::{Running, Signals};
use watch::{DriverUsers, Signs, Watch};

/// The statuses of env(1), timeout(1) and their like.
const OUR_FAILURE: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Why ebb will not see a command, beyond the reasons that lie in the command itself.
const NO_DRIVER: &str = "there is no NVIDIA driver on this machine, so the command runs without ebb; `--device soft` \
                         gives it the software GPU, `--driver` another one";

const DISABLED: &str = "EBB_DISABLE=1 is set, so ebb only passes calls on; unset it to have them seen";

/// What has the shim hold kernels against their originals: all that can be guarded are, from their first launch on.
const VERIFY: [(&str, &str); 2] = [("EBB_VERIFY", "1"), ("EBB_GUARD", "now")];

pub fn run(options: &RunOptions) -> ExitCode {
    let status = attempt(options).unwrap_or_else(|error| {
        say(&format!("{error:#}"));
        OUR_FAILURE
    });
    ExitCode::from(status)
}

/// Whoever reads our messages may be gone, which is no reason to fail.
fn say(sentence: &str) {
    let _ = writeln!(io::stderr(), "ebb: {sentence}");
}

/// How the command will be run.
struct Plan {
    program: Result<Program, Uninstalled>,
    settings: Vec<environment::Setting>,
    /// Variables that the command must not find.
    unset: &'static [&'static str],
    /// What tells attached processes from others; `None` where nothing is preloaded.
    signs: Option<Signs>,
    /// Whether ebb will see the command itself.
    sight: Sight,
}

impl Plan {
    fn make(options: &RunOptions) -> Result<Plan> {
        let shim = beside::shim()?;
        let program = inspect(&options.command[0], std::env::var_os("PATH").as_deref());
        let driver = Driver::choose(options)?;
        let mut plan = Plan { program, settings: Vec::new(), unset: &[], signs: None, sight: Sight::Clear };
        if driver == Driver::Missing {
            plan.sight = Sight::Blind(NO_DRIVER.to_owned());
            return Ok(plan);
        }
        let limit = memory::limit(options.tenancy.mem, std::env::vars_os())?;
        let management = if limit.holds { in_front_of_nvml(options) } else { None };
        let libraries: Vec<&Path> =
            [Some(&shim), management.as_ref()].into_iter().flatten().map(PathBuf::as_path).collect();
        plan.settings = environment::preloading(&libraries)?;
        if let Driver::Named(path) = &driver {
            plan.settings.push((driver::VARIABLE, path.into()));
        }
        if options.verify {
            plan.settings.extend(VERIFY.map(|(name, value)| (name, value.into())));
        }
        plan.settings.extend(limit.setting);
        plan.signs = Some(Signs { shim: real(&shim), driver: driver.path().map(real) });
        plan.sight = plan.outlook();
        plan.join(options)?;
        Ok(plan)
    }

    /// Makes the command a tenant, unless nothing of it will run under ebb.
    fn join(&mut self, options: &RunOptions) -> Result<()> {
        if options.tenancy.no_daemon {
            self.unset = &tenancy::VARIABLES;
            return Ok(());
        }
        let cannot_run =
            matches!(&self.program, Err(reason) if !matches!(reason, Uninstalled::Unreadable { .. }));
        if cannot_run || is_disabled() {
            return Ok(());
        }
        let joined = tenancy::join(&options.tenancy, &options.command)?;
        if !options.quiet {
            joined.remarks.iter().for_each(|remark| say(remark));
            joined.place.as_ref().and_then(company::remark_once).iter().for_each(|remark| say(remark));
        }
        self.settings.extend(joined.settings);
        // For `ebb verdicts` and `ebb trace`, which miss them where there is no folder.
        self.settings.extend(found::folder().ok().map(|folder| (found::VARIABLE, folder.into())));
        let software = self.signs.as_ref().and_then(|signs| signs.driver.as_deref()).is_some_and(is_software);
        if joined.domain == Domain::Shared && software {
            self.settings.push(driver::share_card()?);
        }
        Ok(())
    }

    /// Whether the shim, once preloaded, will look at what the command does.
    fn outlook(&self) -> Sight {
        if is_disabled() {
            return Sight::Blind(DISABLED.to_owned());
        }
        match &self.program {
            Ok(Program { path, preload: Preload::No(reason), .. }) => {
                Sight::Blind(format!("ebb cannot see {}: {reason}; {}", path.display(), reason.fix()))
            }
            _ => Sight::Clear,
        }
    }

    fn command(&self, words: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).envs(self.settings.iter().map(|(name, value)| (name, value)));
        self.unset.iter().for_each(|name| _ = command.env_remove(name));
        command
    }

    /// Says why the command does not start, and gives the status for it.
    fn refusal(&self, command: &OsStr, error: &io::Error) -> u8 {
        match &self.program {
            Err(reason) if !matches!(reason, Uninstalled::Unreadable { .. }) => say(&reason.to_string()),
            _ => say(&format!("cannot start {}: {error}", command.display())),
        }
        if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
    }
}

/// The library by which NVML shows a limit. Its jumps are written for one architecture; without it, limits hold all the same.
fn in_front_of_nvml(options: &RunOptions) -> Option<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    beside::management()
        .inspect_err(|missing| {
            if !options.quiet {
                say(&format!("{missing:#}, so NVML will show the whole card; install ebb again"));
            }
        })
        .ok()
}

fn is_disabled() -> bool {
    std::env::var_os("EBB_DISABLE").is_some_and(|value| value == "1")
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn attempt(options: &RunOptions) -> Result<u8> {
    // Before anything runs: a report that cannot be written should be known before a day's work, not after.
    let target = options.report.as_ref().map(report::Target::open).transpose()?;
    let plan = Plan::make(options)?;
    if let (Sight::Blind(sentence), false, Ok(_)) = (&plan.sight, options.quiet, &plan.program) {
        say(sentence);
    }
    let command = plan.command(&options.command);
    match target {
        None => Ok(become_command(command, &plan, options)),
        Some(target) => supervise(command, plan, options, target),
    }
}

/// Returns only if it could not be done.
fn become_command(mut command: Command, plan: &Plan, options: &RunOptions) -> u8 {
    let error = command.exec();
    plan.refusal(&options.command[0], &error)
}

fn supervise(
    mut command: Command,
    mut plan: Plan,
    options: &RunOptions,
    target: report::Target,
) -> Result<u8> {
    let folder = run_folder(&mut plan, options);
    if let Some(folder) = &folder {
        command.env("EBB_RUN", folder.path());
    }
    let running = match start(&mut command, &plan, options)? {
        Ok(running) => running,
        Err(error) => return Ok(plan.refusal(&options.command[0], &error)),
    };
    let watch = plan.signs.take().map(|signs| Watch::start(running.pid(), signs));
    let (end, lasted) = running.wait()?;
    let DriverUsers { round, attached } = watch.and_then(Result::ok).map(Watch::finish).unwrap_or_default();
    let unwritten = folder.as_ref().map(RunFolder::unwritten).unwrap_or_default();
    let (readings, remarks) = folder.as_ref().map(RunFolder::readings).unwrap_or_default();
    let folder = folder.as_ref().map(|folder| folder.path().to_owned()).unwrap_or_default();
    let words = options.command.iter().map(|word| word.to_string_lossy().into_owned());
    let (command, sight) = (words.collect(), plan.sight);
    let report =
        Report { command, end, lasted, readings, unwritten, attached, round, sight, remarks, folder };
    if let Err(error) = target.write(&report) {
        say(&format!("{error:#}"));
    }
    Ok(end.status())
}

/// A folder for the ledgers, if there can be any. Without one the command still runs, and the report says why it has
/// no figures.
fn run_folder(plan: &mut Plan, options: &RunOptions) -> Option<RunFolder> {
    plan.signs.as_ref()?;
    match RunFolder::create() {
        Ok(folder) => Some(folder),
        Err(refused) => {
            if !options.quiet {
                say(&format!("nothing will be counted: {refused:#}"));
            }
            if plan.sight == Sight::Clear {
                plan.sight = Sight::Blind(format!("{refused:#}"));
            }
            None
        }
    }
}

/// Starts the command as a child. A text without `#!` is given to the shell, as `execvp` would.
fn start(command: &mut Command, plan: &Plan, options: &RunOptions) -> Result<io::Result<Running>> {
    const NO_FORMAT: i32 = rustix::io::Errno::NOEXEC.raw_os_error();
    match Running::start(command, Signals::catch()?) {
        Err(error) if error.raw_os_error() == Some(NO_FORMAT) => {
            let Ok(program) = &plan.program else { return Ok(Err(error)) };
            let mut shell = Command::new("/bin/sh");
            shell.arg(&program.path).args(&options.command[1..]);
            shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            plan.unset.iter().for_each(|name| _ = shell.env_remove(name));
            Ok(Running::start(&mut shell, Signals::catch().context("cannot start again")?))
        }
        other => Ok(other),
    }
}
