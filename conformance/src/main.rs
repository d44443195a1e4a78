//! `conformance --driver PATH`: the suite as one program, with its kernels inside.

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use conformance::driver::{BY_PROC_ADDRESS, Driver};
use conformance::runner::{self, Launcher, Report, crowd, fork};
use conformance::suite::{self, Case, Outcome};
use conformance::{proc_addresses, zeros};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

/// Runs real driver-API programs against any libcuda.so.1 and says which of them it runs rightly.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// The library to test.
    #[arg(long, default_value = "libcuda.so.1")]
    driver: PathBuf,
    /// Only cases whose name contains this.
    filter: Option<String>,
    /// Name the cases and run nothing.
    #[arg(long)]
    list: bool,
    /// How many cases run at the same time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Seconds after which a case has failed.
    #[arg(long, default_value_t = 60)]
    timeout: u64,
    /// One JSON object per case instead of the table.
    #[arg(long)]
    json: bool,
    /// Show what cases print.
    #[arg(long)]
    verbose: bool,
    /// Print the raw code of every call of the bad-argument tables.
    #[arg(long)]
    probe: bool,
    /// Take every function from cuGetProcAddress instead of by its exported name.
    #[arg(long)]
    by_proc_address: bool,
    /// Leave out the images that crash NVIDIA's own driver.
    #[arg(long)]
    on_card: bool,
    /// Preload this library in every child; it must be what answers to the plain name in --driver.
    #[arg(long, value_name = "LIB")]
    preload: Option<PathBuf>,
    /// Run the cases that do no lasting harm in one process, on this many threads at the same time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Run every case in the fork of a process that has opened the driver.
    #[arg(long)]
    forked: bool,
    /// Run with this driver too, without --preload, and say for which cases the outcomes or raw codes differ.
    #[arg(long, value_name = "OTHER")]
    compare: Option<PathBuf>,
    /// Instead of cases, ask --driver and a shim in front of it for the address of every function.
    #[arg(long, value_name = "SHIM")]
    compare_proc_addresses: Option<PathBuf>,
    /// Run one case in this process (how the suite starts itself).
    #[arg(long, hide = true, value_name = "CASE")]
    child: Option<String>,
    /// Run many cases in this process, on so many threads (how the suite starts itself).
    #[arg(long, hide = true, value_name = "N")]
    crowd: Option<usize>,
    /// Print the file that answers to the driver's name (how the suite starts itself).
    #[arg(long, hide = true)]
    who: bool,
    /// Call every function with zeros and print what it answers: for drivers made for tests, no other survives it.
    #[arg(long, hide = true)]
    call_all: bool,
    /// Call the function that cuGetProcAddress gives for a name and a version, with zeros, as --call-all does.
    #[arg(long, hide = true, num_args = 2, value_names = ["NAME", "VERSION"])]
    call_found: Option<Vec<String>>,
    /// Run the other half of a case of two processes (how the suite starts itself).
    #[arg(long, hide = true, value_name = "NAME")]
    peer: Option<String>,
    /// Arguments of the peer, names of the crowd's cases.
    #[arg(last = true, hide = true)]
    rest: Vec<String>,
}

fn main() -> ExitCode {
    match start() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<ExitCode> {
    let options = Options::parse();
    if let Some(name) = &options.peer {
        return peer(&options, name);
    }
    if let Some(name) = &options.child {
        return child(&options, |driver| Ok(runner::tell(&case_named(name)?.execute(driver))));
    }
    if let Some(threads) = options.crowd {
        let cases = options.rest.iter().map(|name| case_named(name)).collect::<Result<Vec<_>>>()?;
        return child(&options, |driver| {
            crowd::serve(driver, &cases, threads);
            Ok(0)
        });
    }
    if options.who {
        return child(&options, |driver| {
            println!("{}", driver.file()?.display());
            Ok(0)
        });
    }
    if options.call_all {
        return child(&options, |driver| {
            zeros::call_all(driver);
            Ok(0)
        });
    }
    if let Some([name, version]) = options.call_found.as_deref() {
        return child(&options, |driver| zeros::call_found(driver, name, version.parse()?).map(|()| 0));
    }
    if let Some(shim) = &options.compare_proc_addresses {
        return compare_proc_addresses(&options, shim);
    }
    suite_of(&options)
}

fn suite_of(options: &Options) -> Result<ExitCode> {
    let filter = options.filter.as_deref().unwrap_or(if options.probe { "bad/" } else { "" });
    let wanted = |case: &Case| case.name.contains(filter) && !(options.on_card && case.beyond_the_card);
    let cases: Vec<Case> = suite::all().into_iter().filter(wanted).collect();
    if options.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return Ok(ExitCode::SUCCESS);
    }
    if cases.is_empty() {
        bail!("no case has {filter:?} in its name; --list names them");
    }
    run(options, &cases)
}

fn case_named(name: &str) -> Result<Case> {
    suite::all()
        .into_iter()
        .find(|case| case.name == name)
        .with_context(|| format!("no case is called {name}"))
}

/// Opens the driver and does the work, in a fork if that was asked for.
fn child(options: &Options, work: impl FnOnce(&Driver) -> Result<u8>) -> Result<ExitCode> {
    let driver = Driver::open(&options.driver)?;
    let work = || work(&driver).map(ExitCode::from);
    if options.forked { fork::instead(work) } else { work() }
}

fn peer(options: &Options, name: &str) -> Result<ExitCode> {
    let Some(program) = conformance::cases::peers().into_iter().find(|peer| peer.name == name) else {
        bail!("no peer program is called {name}");
    };
    let driver = Driver::open(&options.driver)?;
    (program.run)(&driver, &options.rest)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Totals {
    passed: usize,
    failed: usize,
    skipped: usize,
}

fn run(options: &Options, cases: &[Case]) -> Result<ExitCode> {
    let program = std::env::current_exe()?;
    let mut environment = Vec::new();
    if options.by_proc_address {
        environment.push((BY_PROC_ADDRESS.to_owned(), "1".to_owned()));
    }
    let plain = environment.clone();
    if let Some(library) = &options.preload {
        environment.push(preloading(library)?);
    }
    let launcher = Launcher {
        program: &program,
        driver: &options.driver,
        timeout: Duration::from_secs(options.timeout),
        environment: &environment,
        forked: options.forked,
    };
    let found = launcher.library()?;
    if let Some(library) = &options.preload {
        let same = found.canonicalize()? == library.canonicalize()?;
        ensure!(same, "{} answers to {}, not what is preloaded", found.display(), options.driver.display());
    }
    let Some(other) = &options.compare else { return totalled(options, &launcher, cases) };
    let second = Launcher { driver: other, environment: &plain, ..launcher };
    second.library()?;
    compared(options, &launcher, &second, cases)
}

/// What must be in the environment for the loader to load a library first. It only warns of one it cannot find.
fn preloading(library: &Path) -> Result<(String, String)> {
    let path = library.canonicalize().with_context(|| format!("cannot preload {}", library.display()))?;
    let mut value = path.to_str().context("the loader takes no such path")?.to_owned();
    if let Ok(others) = std::env::var("LD_PRELOAD") {
        value = format!("{value}:{others}");
    }
    Ok(("LD_PRELOAD".to_owned(), value))
}

fn execute(options: &Options, launcher: &Launcher<'_>, cases: &[Case], done: impl Fn(&Case, &Report) + Sync) {
    match options.threads {
        Some(threads) => crowd::run_all(launcher, cases, usize::from(threads), options.jobs, done),
        None => runner::run_all(launcher, cases, options.jobs, done),
    }
}

fn totalled(options: &Options, launcher: &Launcher<'_>, cases: &[Case]) -> Result<ExitCode> {
    let totals = Mutex::new(Totals::default());
    execute(options, launcher, cases, |case, report| {
        let mut totals = totals.lock().expect("nothing panics while holding the totals");
        match report.outcome {
            Outcome::Passed => totals.passed += 1,
            Outcome::Failed(_) => totals.failed += 1,
            Outcome::Skipped(_) => totals.skipped += 1,
        }
        show(options, case, report);
    });
    let totals = totals.into_inner().expect("nothing panics while holding the totals");
    if !options.json {
        println!("{} passed, {} failed, {} skipped", totals.passed, totals.failed, totals.skipped);
    }
    Ok(if totals.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn compared(
    options: &Options,
    first: &Launcher<'_>,
    second: &Launcher<'_>,
    cases: &[Case],
) -> Result<ExitCode> {
    let [first, second] = [first, second].map(|launcher| {
        let reports = Mutex::new(BTreeMap::new());
        execute(options, launcher, cases, |case, report| {
            let mut reports = reports.lock().expect("nothing panics while holding the reports");
            reports.insert(case.name, report.clone());
        });
        reports.into_inner().expect("nothing panics while holding the reports")
    });
    let different = cases.iter().filter(|case| !first[case.name].agrees_with(&second[case.name]));
    let different: Vec<_> = different.collect();
    for case in &different {
        // The driver under test first, then the other.
        show(options, case, &first[case.name]);
        show(options, case, &second[case.name]);
        let probes = first[case.name].probes().zip(second[case.name].probes());
        for (one, other) in probes.filter(|(one, other)| one != other) {
            eprintln!("{}: {one} / {other}", case.name);
        }
    }
    if !options.json {
        println!("{} cases, {} differ", cases.len(), different.len());
    }
    Ok(if different.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(options: &Options, case: &Case, report: &Report) {
    let (word, reason) = match &report.outcome {
        Outcome::Passed => ("passed", ""),
        Outcome::Failed(reason) => ("failed", reason.as_str()),
        Outcome::Skipped(reason) => ("skipped", reason.as_str()),
    };
    let milliseconds = report.elapsed.as_secs_f64() * 1e3;
    if options.json {
        println!(
            "{{\"case\":{},\"outcome\":\"{word}\",\"reason\":{},\"ms\":{milliseconds:.1},\"output\":{}}}",
            quoted(case.name),
            quoted(reason),
            quoted(&report.output)
        );
        return;
    }
    println!("{word:<8}{:<48}{milliseconds:>9.1} ms", case.name);
    reason.lines().for_each(|line| println!("            {line}"));
    let wanted = |line: &&str| {
        options.verbose || line.starts_with("note: ") || (options.probe && line.starts_with("probe: "))
    };
    let shown = report.output.lines().filter(wanted);
    shown.for_each(|line| println!("          | {line}"));
}

fn compare_proc_addresses(options: &Options, shim: &Path) -> Result<ExitCode> {
    let comparison = proc_addresses::compare(&options.driver, shim)?;
    comparison.differences.iter().take(40).for_each(|difference| println!("{difference}"));
    println!("{} questions, {} answered differently", comparison.asked, comparison.differences.len());
    Ok(if comparison.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c < ' ' => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
