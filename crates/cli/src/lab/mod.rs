//! `ebb lab`: experiments with tenants that share a GPU, from scenario files to a report.

pub mod arguments;
mod check;
mod compare;
mod list;
mod record;
mod report;
mod run;
mod tenant;

use std::process::ExitCode;

use anyhow::Result;

use arguments::LabVerb;

pub fn run(verb: &LabVerb) -> ExitCode {
    finish(match verb {
        LabVerb::List(options) => list::run(options),
        LabVerb::Check(options) => check::run(options),
        LabVerb::Run(options) => run::run(options),
        LabVerb::Compare(options) => return compare::run(options),
        LabVerb::Report(options) => report::run(options),
        LabVerb::Record(options) => record::run(options),
        LabVerb::Tenant(options) => tenant::run(options),
    })
}

/// A verb has a status of its own; what it could not do at all is told here.
fn finish(result: Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("ebb: {error:#}");
        ExitCode::FAILURE
    })
}
