//! What the shim costs, as a table: `cargo xtask bench-shim`.
//!
//! `shim EBB NULL SOFT SHIM [-o json]`, with the paths of `ebb`, of the driver that does nothing, of the software GPU's and of
//! the shim beside `ebb`. The calls are measured in this same program under `ebb run`: as no tenant, as a latency tenant and
//! as a best-effort one; guarded launches on the software GPU. Ends with a failure if a bar is missed. Release builds only
//! say something.
//!
//! * `house`: a daemon for us alone, and what it says about a process
//! * `measurement`: one process that measures, from both of its sides
//! * `table`: what is shown

mod house;
mod measurement;
mod table;

use std::path::Path;
use std::process::ExitCode;

use house::House;
use lab::StartUp;
use measurement::Measurement;
use model::Class;
use table::Table;

const THREADS: [usize; 2] = [1, 8];
const STARTS: usize = 100;
const WITHIN: [Option<Class>; 3] = [None, Some(Class::Latency), Some(Class::BestEffort)];

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--started", driver] => println!("{}", lab::started(Path::new(driver))?),
        ["--measured", null, shim, class] => {
            measurement::serve(Path::new(null), Path::new(shim), class.parse().ok())?;
        }
        ["--guarded", soft, shim] => measurement::serve_guarded(Path::new(soft), Path::new(shim))?,
        [ebb, null, soft, shim] => return measure([ebb, null, soft, shim], false),
        [ebb, null, soft, shim, "-o", output @ ("json" | "text")] => {
            return measure([ebb, null, soft, shim], *output == "json");
        }
        _ => return Err("usage: shim EBB NULL SOFT SHIM [-o json]".into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(paths: [&&str; 4], json: bool) -> Result<ExitCode> {
    let [ebb, null, soft, shim] = paths.map(|path| Path::new(path).canonicalize());
    let (ebb, null, soft, shim) = (ebb?, null?, soft?, shim?);
    let house = House::open(&ebb)?;
    let mut rows = Vec::new();
    for class in WITHIN {
        let costs = Measurement { house: &house, null: &null, shim: &shim, class, events: true }.run()?;
        rows.extend(costs.into_iter().map(|cost| (class, cost)));
    }
    let without =
        Measurement { house: &house, null: &null, shim: &shim, class: None, events: false }.run()?;
    let guarded = measurement::guarded(&house, &soft, &shim)?;
    rows.extend(guarded.into_iter().map(|cost| (None, cost)));
    let start_up = StartUp::measure(&std::env::current_exe()?, &null, &shim, STARTS)?;
    let table = Table { rows, without, start_up };
    if json {
        table.print_json()
    } else {
        table.print()
    }
    Ok(if table.all_met() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
