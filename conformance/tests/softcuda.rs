//! `cargo test -p conformance`: every case of the suite as a test, on the software GPU or on the driver that
//! `EBB_CONFORMANCE_DRIVER` names.
//!
//! Each case gets a software GPU of its own in a runtime folder of this test's, so cases can run side by side and
//! nothing on the machine is touched.

use conformance::runner::Launcher;
use conformance::suite::{self, Case, Outcome};
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::LazyLock;
use std::time::Duration;

mod common;

/// Debug builds on a loaded two-core machine need many times what a release build needs.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Every case keeps several threads busy, so more cases at once only wait for each other.
const THREADS: usize = 2;

/// Found or built by the first case that runs: listing the tests needs no driver.
static DRIVER: LazyLock<PathBuf> = LazyLock::new(common::driver);

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    // A driver that is named may be NVIDIA's, which does not survive everything.
    let named = std::env::var_os("EBB_CONFORMANCE_DRIVER").is_some();
    let runtime = tempfile::tempdir().expect("a temporary folder can be made");
    let cases = suite::all().into_iter().filter(|case| !(named && case.beyond_the_card));
    let trials = cases.enumerate().map(|(number, case)| {
        let (runtime, show) = (runtime.path().to_owned(), arguments.nocapture);
        Trial::ignorable_test(case.name, move || run(&case, number, &runtime, show))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn run(case: &Case, number: usize, runtime: &Path, show: bool) -> Result<Completion, Failed> {
    let environment = [
        ("EBB_RUNTIME_DIR".to_owned(), runtime.to_string_lossy().into_owned()),
        ("EBB_SOFTGPU".to_owned(), format!("conformance-{number}")),
    ];
    let program = Path::new(env!("CARGO_BIN_EXE_conformance"));
    let launcher =
        Launcher { program, driver: &DRIVER, timeout: TIMEOUT, environment: &environment, forked: false };
    let report = launcher.run(case.name);
    if show {
        print!("{}", report.output);
    }
    match report.outcome {
        Outcome::Passed => Ok(Completion::Completed),
        Outcome::Skipped(reason) => Ok(Completion::ignored_with(reason)),
        Outcome::Failed(reason) => Err(format!("{reason}\n{}", report.output).into()),
    }
}
