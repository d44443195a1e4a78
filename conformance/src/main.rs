//! `conformance --driver PATH`: the suite as one program, with its kernels inside.

use anyhow::{Result, bail};
use clap::Parser;
use conformance::driver::{BY_PROC_ADDRESS, Driver};
use conformance::runner::{self, Launcher, Report};
use conformance::suite::{self, Case, Outcome};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

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
    #[arg(long, conflicts_with = "in_one_process")]
    by_proc_address: bool,
    /// Leave out the images that crash NVIDIA's own driver.
    #[arg(long)]
    on_card: bool,
    /// Run the cases that do no lasting harm in this process, the others in children.
    #[arg(long)]
    in_one_process: bool,
    /// Run one case in this process (how the suite starts itself).
    #[arg(long, hide = true, value_name = "CASE")]
    child: Option<String>,
    /// Run the other half of a case of two processes (how the suite starts itself).
    #[arg(long, hide = true, value_name = "NAME")]
    peer: Option<String>,
    /// Arguments of the peer.
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
    if let Some(name) = &options.child {
        return child(&options, name);
    }
    if let Some(name) = &options.peer {
        return peer(&options, name);
    }
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
    run(&options, &cases)
}

fn child(options: &Options, name: &str) -> Result<ExitCode> {
    let Some(case) = suite::all().into_iter().find(|case| case.name == name) else {
        bail!("no case is called {name}");
    };
    let driver = Driver::open(&options.driver)?;
    Ok(ExitCode::from(runner::tell(&case.execute(&driver))))
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
    let timeout = Duration::from_secs(options.timeout);
    let route = [(BY_PROC_ADDRESS.to_owned(), "1".to_owned())];
    let environment = if options.by_proc_address { &route[..] } else { &[] };
    let launcher = Launcher { program: &program, driver: &options.driver, timeout, environment };
    let totals = Mutex::new(Totals::default());
    let done = |case: &Case, report: &Report| {
        let mut totals = totals.lock().expect("nothing panics while holding the totals");
        match report.outcome {
            Outcome::Passed => totals.passed += 1,
            Outcome::Failed(_) => totals.failed += 1,
            Outcome::Skipped(_) => totals.skipped += 1,
        }
        show(options, case, report);
    };
    if options.in_one_process {
        let driver = Driver::open(&options.driver)?;
        for case in cases {
            done(case, &in_this_process(case, &driver, &launcher));
        }
    } else {
        // A driver that cannot be opened is one mistake, not a hundred failures.
        Driver::open(&options.driver)?;
        runner::run_all(&launcher, cases, options.jobs, done);
    }
    let totals = totals.into_inner().expect("nothing panics while holding the totals");
    if !options.json {
        println!("{} passed, {} failed, {} skipped", totals.passed, totals.failed, totals.skipped);
    }
    Ok(if totals.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn in_this_process(case: &Case, driver: &Driver, launcher: &Launcher<'_>) -> Report {
    if case.spoils_process {
        return launcher.run(case.name);
    }
    let started = Instant::now();
    let outcome = case.execute(driver);
    Report { outcome, output: String::new(), elapsed: started.elapsed() }
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
