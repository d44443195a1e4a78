//! `cargo xtask check`: what no compiler checks.

mod arrows;
mod files;
mod licences;
mod spdx;

use anyhow::{Result, bail};

use crate::fetch::Unavailable;
use crate::{docs, donors, r#gen, kernels, twins, workspace};

/// How much to check.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Also what needs NVIDIA's headers and compiler, which are fetched.
    pub fetched: bool,
    /// Whether not being able to fetch them is a failure.
    pub network_required: bool,
}

/// Runs every check, so that one failure does not hide another.
pub fn run(extent: Extent) -> Result<()> {
    let metadata = workspace::metadata()?;
    let mut failures = 0;
    let mut report = |name: &str, result: Result<()>| match result {
        Ok(()) => println!("ok       {name}"),
        Err(error) if !extent.network_required && error.is::<Unavailable>() => {
            println!("skipped  {name}: {error:#}");
        }
        Err(error) => {
            failures += 1;
            println!("FAILED   {name}: {error:#}");
        }
    };
    report("arrows between crates", arrows::check(&metadata));
    report("what the shim brings along", arrows::check_the_shim(&metadata));
    report("reasons for dependencies", arrows::check_reasons(&metadata, workspace::root()));
    report("licences", licences::check(&metadata));
    report("files", files::check(workspace::root()));
    report("documentation", docs::check());
    if extent.fetched {
        report("generated interface", r#gen::run(true));
        report("compiled kernels", kernels::run(true, &[]));
        report("compiled prologues", donors::run(true));
        report("rewritten kernels", twins::run(true));
    }
    match failures {
        0 => Ok(()),
        1 => bail!("one check failed"),
        many => bail!("{many} checks failed"),
    }
}
