//! The ledger is exact: what the shim has counted is what the program did, no more and no less.
//!
//! Every section is a program of its own, in a process of its own, because a driver is found and a ledger begun but
//! once in a process. It does known things on the software GPU through the shim, keeps a tally of them by itself
//! ([`tally`]), and leaves that beside its ledger. This side then compares the two in everything: counters that the
//! program did not mention must be zero, kernels that it did not name must not be listed, and whoever has told nothing
//! must have no ledger.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use conformance::driver::Driver;
use libtest_mimic::{Arguments, Failed, Trial};

use program::Program;

mod captures;
#[path = "../common/mod.rs"]
mod common;
mod graphs;
mod launches;
mod memory;
mod modules;
mod odd;
mod processes;
mod program;
mod streams;
mod tally;
mod verdict;

/// Debug builds on a loaded two-core machine need many times what a release build needs.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Where a section finds the shim, and where it leaves its tally.
const SHIM_AT: &str = "EBB_LEDGER_TEST_SHIM";
const TALLIES_AT: &str = "EBB_LEDGER_TEST_TALLIES";

static SHIM: LazyLock<PathBuf> = LazyLock::new(|| common::built("shim"));
static SOFTCUDA: LazyLock<PathBuf> = LazyLock::new(|| common::built("softcuda"));
/// For what the software GPU does not have: it answers everything with success and writes nothing, so a program can
/// choose the handles that it is "given".
static NULLCUDA: LazyLock<PathBuf> = LazyLock::new(|| common::built("nullcuda"));

/// A program, by the name under which this binary is started again to be it.
#[derive(Clone, Copy)]
pub struct Section {
    name: &'static str,
    run: fn(&Program<'_>) -> anyhow::Result<()>,
    driver: &'static LazyLock<PathBuf>,
    environment: &'static [(&'static str, &'static str)],
}

impl Section {
    const fn new(name: &'static str, run: fn(&Program<'_>) -> anyhow::Result<()>) -> Section {
        Section { name, run, driver: &SOFTCUDA, environment: &[] }
    }

    const fn on_null(self) -> Section {
        Section { driver: &NULLCUDA, ..self }
    }

    const fn with(self, environment: &'static [(&'static str, &'static str)]) -> Section {
        Section { environment, ..self }
    }
}

fn sections() -> impl Iterator<Item = Section> {
    let all = [
        launches::SECTIONS,
        captures::SECTIONS,
        graphs::SECTIONS,
        modules::SECTIONS,
        memory::SECTIONS,
        streams::SECTIONS,
        odd::SECTIONS,
        processes::SECTIONS,
    ];
    all.into_iter().flatten().copied()
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, flag, name] = &words[..]
        && flag == "--section"
    {
        return become_section(name);
    }
    let mut trials: Vec<Trial> =
        sections().map(|section| Trial::test(section.name, move || judge(section))).collect();
    trials.push(Trial::test("processes/killed", processes::killed));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The child's side.
fn become_section(name: &str) -> ExitCode {
    let section = sections().chain([processes::ENDLESS]).find(|section| section.name == name);
    let result = section.ok_or_else(|| anyhow::anyhow!("no section is called {name}")).and_then(|section| {
        let path = std::env::var_os(SHIM_AT).ok_or_else(|| anyhow::anyhow!("{SHIM_AT} is not set"))?;
        let driver = Driver::open(Path::new(&path))?;
        let program = Program::new(&driver);
        (section.run)(&program)?;
        program.tell()
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}

/// Folders for one section and what it leaves there.
pub struct Place {
    section: Section,
    folder: tempfile::TempDir,
}

impl Place {
    fn new(section: Section) -> std::io::Result<Place> {
        let place = Place { section, folder: tempfile::tempdir()? };
        std::fs::create_dir(place.ledgers())?;
        std::fs::create_dir(place.tallies())?;
        Ok(place)
    }

    fn ledgers(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn tallies(&self) -> PathBuf {
        self.folder.path().join("tallies")
    }

    fn start(&self) -> std::io::Result<Child> {
        Command::new(std::env::current_exe()?)
            .args(["--section", self.section.name])
            .env(SHIM_AT, &*SHIM)
            .env(TALLIES_AT, self.tallies())
            .env("EBB_DRIVER", &**self.section.driver)
            .env("EBB_RUN", self.ledgers())
            .env("EBB_RUNTIME_DIR", self.folder.path())
            .env("EBB_SOFTGPU", "ledger")
            .envs(self.section.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    }
}

fn judge(section: Section) -> Result<(), Failed> {
    let place = Place::new(section)?;
    let mut child = place.start()?;
    let deadline = Instant::now() + TIMEOUT;
    while child.try_wait()?.is_none() {
        if Instant::now() > deadline {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    verdict::compare(&place).map_err(|error| format!("{error:#}").into())
}
