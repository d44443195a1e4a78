//! `cargo test -p conformance`: every case of the suite as a test, on the software GPU or on the driver that
//! `EBB_CONFORMANCE_DRIVER` names.
//!
//! Each case gets a software GPU of its own in a runtime folder of this test's, so cases can run side by side and
//! nothing on the machine is touched. The output and the arguments understood are those of Rust's test harness.

use conformance::runner::{Launcher, Report};
use conformance::suite::{self, Case, Outcome};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

mod common;

/// Debug builds on a loaded two-core machine need many times what a release build needs.
const TIMEOUT: Duration = Duration::from_secs(240);

#[derive(Default)]
struct Arguments {
    filters: Vec<String>,
    skips: Vec<String>,
    exact: bool,
    list: bool,
    ignored: bool,
    nocapture: bool,
    threads: Option<usize>,
}

impl Arguments {
    /// Flags of the usual harness that mean nothing here are accepted and ignored.
    fn parse() -> Arguments {
        let mut arguments = Arguments::default();
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--exact" => arguments.exact = true,
                "--list" => arguments.list = true,
                "--ignored" => arguments.ignored = true,
                "--nocapture" | "--no-capture" | "--show-output" => arguments.nocapture = true,
                "--skip" => arguments.skips.extend(words.next()),
                "--test-threads" => arguments.threads = words.next().and_then(|n| n.parse().ok()),
                "--format" | "--color" | "--logfile" | "--report-time" | "-Z" => drop(words.next()),
                flag if flag.starts_with('-') => {
                    let threads = flag.strip_prefix("--test-threads=").and_then(|n| n.parse().ok());
                    arguments.threads = threads.or(arguments.threads);
                }
                filter => arguments.filters.push(filter.to_owned()),
            }
        }
        arguments
    }

    fn wants(&self, name: &str) -> bool {
        let fits = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        // No case is ever marked as ignored.
        !self.ignored
            && (self.filters.is_empty() || self.filters.iter().any(fits))
            && !self.skips.iter().any(fits)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A driver that is named may be NVIDIA's, which does not survive every image.
    let named = std::env::var_os("EBB_CONFORMANCE_DRIVER").is_some();
    let all: Vec<Case> = suite::all().into_iter().filter(|case| !(named && case.beyond_the_card)).collect();
    let cases: Vec<Case> = all.iter().copied().filter(|case| arguments.wants(case.name)).collect();
    if arguments.list {
        cases.iter().for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", cases.len());
    let filtered = all.len() - cases.len();
    let started = Instant::now();
    let (failed, skipped) = if cases.is_empty() { (0, 0) } else { run(&arguments, &cases) };
    println!(
        "\ntest result: {}. {} passed; {failed} failed; {skipped} ignored; 0 measured; {filtered} filtered out; \
         finished in {:.2}s\n",
        if failed == 0 { "ok" } else { "FAILED" },
        cases.len() - failed - skipped,
        started.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the cases and gives the numbers of failures and of skipped ones.
fn run(arguments: &Arguments, cases: &[Case]) -> (usize, usize) {
    let driver = common::driver();
    let runtime = tempfile::tempdir().expect("a temporary folder can be made");
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get());
    let threads = arguments.threads.unwrap_or(cores.min(8)).max(1);
    let (next, skipped) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((number, case)) = take(&next, cases) {
                    let report = run_one(&driver, runtime.path(), number, case);
                    match &report.outcome {
                        Outcome::Passed => println!("test {} ... ok", case.name),
                        Outcome::Skipped(reason) => {
                            skipped.fetch_add(1, Ordering::Relaxed);
                            println!("test {} ... ignored, {reason}", case.name);
                        }
                        Outcome::Failed(reason) => {
                            println!("test {} ... FAILED", case.name);
                            let text = format!("---- {} ----\n{reason}\n{}", case.name, report.output);
                            failures.lock().expect("nobody panics holding it").push(text);
                        }
                    }
                    if arguments.nocapture {
                        print!("{}", report.output);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("nobody panics holding it");
    failures.iter().for_each(|text| println!("\n{text}"));
    (failures.len(), skipped.into_inner())
}

fn take<'a>(next: &AtomicUsize, cases: &'a [Case]) -> Option<(usize, &'a Case)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    cases.get(number).map(|case| (number, case))
}

fn run_one(driver: &Path, runtime: &Path, number: usize, case: &Case) -> Report {
    let environment = [
        ("EBB_RUNTIME_DIR".to_owned(), runtime.to_string_lossy().into_owned()),
        ("EBB_SOFTGPU".to_owned(), format!("conformance-{number}")),
    ];
    let program = Path::new(env!("CARGO_BIN_EXE_conformance"));
    Launcher { program, driver, timeout: TIMEOUT, environment: &environment }.run(case.name)
}
