//! `ebb verdicts`: which kernels can be stopped between their blocks, which cannot, and why.
//!
//! What is shown comes from the ledgers of processes, as the report of `ebb run` does: those of runs with a report, and of
//! tenants of a shared GPU, whose ledgers lie in the runtime folder for a while when they have ended.
//!
//! * `account`: kernels and their verdicts, added up
//! * `found`: the ledgers that there are
//! * `text`, `json`: for people and for programs

pub mod account;
pub mod found;
pub mod json;
pub mod text;

use anyhow::{Context as _, Result, bail};
use installation::memory;

use crate::arguments::{Output, VerdictOptions};
use crate::status;
use found::Found;

pub fn run(options: &VerdictOptions) -> Result<()> {
    if options.forget {
        return forget();
    }
    let mut found = found::all()?;
    match options.process {
        Some(pid) => found.retain(|found| found.reading.pid == pid),
        None => found.retain(|found| options.all || found.is_alive),
    }
    if let (Some(pid), true) = (options.process, found.is_empty()) {
        bail!(
            "process {pid} has no ledger: it has not used CUDA under ebb, or shares no GPU and was started without --report"
        );
    }
    // Where no daemon answers, nobody is seated.
    if let Ok(report) = status::report() {
        found::seat(&mut found, &report);
    }
    match options.output {
        Output::Text => print!("{}", page(&found)),
        Output::Json => println!("{}", json::all(&found)),
    }
    Ok(())
}

fn page(found: &[Found]) -> String {
    if found.is_empty() {
        return "Nothing under ebb uses a shared GPU just now; --all shows what has ended.\n".to_owned();
    }
    found.iter().map(text::process).collect::<Vec<_>>().join("\n")
}

fn forget() -> Result<()> {
    let Some(folder) = memory::folder() else { bail!("nothing is kept: {} says so", memory::VARIABLE) };
    let count = memory::forget(&folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    println!("{count} {} forgotten in {}", if count == 1 { "file" } else { "files" }, folder.display());
    Ok(())
}
