//! What the shim costs, as a table: `cargo xtask bench-shim`.
//!
//! `shim NULL SHIM [-o json]`, with the paths of the driver that does nothing and of the shim. Release builds only say
//! something.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use lab::{Call, Cost, Error, Forwarding, StartUp};
use model::Nanos;
use telemetry::{LaunchKind, Reading, StreamKind};

const THREADS: usize = 8;
const STARTS: usize = 100;
const MOST_START_UP: Nanos = Nanos::from_millis(10);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--started", driver] => println!("{}", lab::started(Path::new(driver))?),
        ["--measured", null, shim, json] => measure(Path::new(null), Path::new(shim), *json == "json")?,
        [null, shim] => return again(null, shim, "text"),
        [null, shim, "-o", output @ ("json" | "text")] => return again(null, shim, output),
        _ => return Err("usage: shim NULL SHIM [-o json]".into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts this program again with an environment in which the shim counts, as it does under `ebb run`.
fn again(null: &str, shim: &str, output: &str) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let (null, shim) = (Path::new(null).canonicalize()?, Path::new(shim).canonicalize()?);
    let folder = tempfile::tempdir()?;
    let status = Command::new(std::env::current_exe()?)
        .arg("--measured")
        .args([&null, &shim])
        .arg(output)
        .env("EBB_DRIVER", &null)
        .env("EBB_RUN", folder.path())
        .status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(null: &Path, shim: &Path, json: bool) -> Result<(), Box<dyn std::error::Error>> {
    let forwarding = Forwarding::open(null, shim)?;
    let costs = |threads| Call::ALL.map(|call| (threads, forwarding.cost(call, threads)));
    let costs = [costs(1), costs(THREADS)].concat();
    attached()?;
    let start_up = StartUp::measure(&std::env::current_exe()?, null, shim, STARTS)?;
    if json {
        print_json(&costs, start_up)
    } else {
        print_table(&costs, start_up)
    }
    Ok(())
}

/// A shim that is not attached costs nothing: the ledger must have counted what was launched.
fn attached() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::var_os("EBB_RUN").ok_or("EBB_RUN is not set")?);
    let mut launches = 0;
    for file in std::fs::read_dir(folder)? {
        let ledger = Reading::open(&file?.path())?;
        launches +=
            StreamKind::ALL.map(|stream| ledger.launches(LaunchKind::Plain, stream)).iter().sum::<u64>();
    }
    let made = Forwarding::CALLS * (1 + THREADS as u64);
    if launches != made {
        return Err(Error::Protocol(format!("{launches} launches counted of {made}")).into());
    }
    Ok(())
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

fn print_table(costs: &[(usize, Cost)], start_up: StartUp) {
    println!(
        "{:24} {:>7} {:>10} {:>12} {:>9} {:>8}",
        "call", "threads", "direct", "through ebb", "added", "bar"
    );
    for (threads, cost) in costs {
        let (direct, through, added, bar) = (cost.direct, cost.through, cost.added(), cost.call.bar());
        println!(
            "{:24} {threads:>7} {direct:>7.2} ns {through:>9.2} ns {added:>6.2} ns {:>8}  {}",
            cost.call.name(),
            format!("<= {bar}"),
            verdict(added <= bar)
        );
    }
    let StartUp { direct, through } = start_up;
    let (added, millis) = (through - direct, |time: Nanos| time.as_micros_f64() / 1e3);
    println!(
        "{:24} {:>7} {:>7.2} ms {:>9.2} ms {:>6.2} ms {:>8}  {}",
        "start to end of cuInit",
        1,
        millis(direct),
        millis(through),
        millis(added),
        "<= 10",
        verdict(added <= MOST_START_UP)
    );
    println!("\nmedians; calls in CPU time of their thread, {} calls each and thread", Forwarding::CALLS);
}

fn print_json(costs: &[(usize, Cost)], start_up: StartUp) {
    let calls: Vec<String> = costs
        .iter()
        .map(|(threads, cost)| {
            format!(
                "{{\"call\":\"{}\",\"threads\":{threads},\"direct_ns\":{:.3},\"through_ns\":{:.3}}}",
                cost.call.name(),
                cost.direct,
                cost.through
            )
        })
        .collect();
    println!(
        "{{\"calls\":[{}],\"start_up\":{{\"direct_ns\":{},\"through_ns\":{}}}}}",
        calls.join(","),
        start_up.direct.0,
        start_up.through.0
    );
}
