//! `ebb`, the command line: thin glue between a person and the rooms below.

#![forbid(unsafe_code)]

// First: its macros are meant in all the others.
#[macro_use]
mod stdio;

mod arguments;
mod beside;
mod bundle;
mod change;
mod company;
mod daemon;
mod demo;
mod doctor;
mod document;
mod json;
mod lab;
mod policy;
mod profile;
mod run;
mod sim;
mod soft;
mod status;
mod top;
mod trace;
mod users;
mod verdicts;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Verb};

fn main() -> ExitCode {
    stdio::finish(run(Arguments::parse().verb))
}

fn run(verb: Verb) -> ExitCode {
    let result = match verb {
        Verb::Run(options) => return run::run(&options),
        Verb::Doctor(options) => return doctor::run(&options),
        Verb::Lab(verb) => return lab::run(&verb),
        Verb::Top(options) => return top::run(&options),
        Verb::Status(options) => status::status(options.output),
        Verb::Ps(options) => status::ps(options.output),
        Verb::Verdicts(options) => verdicts::run(&options),
        Verb::Trace(options) => trace::run(&options),
        Verb::Profile(verb) => profile::run(&verb),
        Verb::Set(options) => change::set(&options),
        Verb::Pause(tenant) => change::pause(&tenant),
        Verb::Resume(tenant) => change::resume(&tenant),
        Verb::Daemon(options) => daemon::run(&options),
        Verb::Demo(options) => demo::run(&options),
        Verb::Sim(options) => sim::run(&options),
        Verb::Policy(verb) => policy::run(&verb),
        Verb::Soft(verb) => soft::run(&verb),
        Verb::SupportBundle(options) => bundle::run(&options),
        Verb::Version { output } => document::version(output),
        Verb::Completions { shell } => document::completions(shell),
        Verb::Man { folder, markdown } => document::manual(folder.as_deref(), markdown),
        Verb::Tenant(options) => demo::tenant(&options),
        Verb::Digest { driver, steps } => demo::digest(&driver, steps),
        Verb::Probe { driver } => doctor::probe(&driver),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ebb: {error:#}");
            ExitCode::FAILURE
        }
    }
}
