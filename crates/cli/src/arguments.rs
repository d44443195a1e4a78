//! What can be typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use model::{Class, Domain};

/// Shares an NVIDIA GPU between latency-critical and best-effort processes.
#[derive(Debug, Parser)]
#[command(name = "ebb", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a latency tenant and a best-effort tenant on the software GPU, alone and together, and compare
    Demo(DemoOptions),
    /// Look at a software GPU or change how its contexts share it
    #[command(subcommand)]
    Soft(SoftVerb),
    /// Print the version
    Version {
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Print a completion script for a shell
    Completions { shell: Shell },
    /// Print the manual page, or write the pages of all commands into a folder
    Man {
        #[arg(long, value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// One tenant of the demo (started by `ebb demo`)
    #[command(hide = true)]
    Tenant(TenantOptions),
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub struct DemoOptions {
    /// Seconds per phase; there are four
    #[arg(long, default_value_t = 10.0, value_parser = seconds)]
    pub seconds: f64,
    /// Seed of the arrivals
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// The driver the tenants use [default: the software GPU beside this program]
    #[arg(long, value_name = "LIBCUDA", env = "EBB_DEMO_DRIVER")]
    pub driver: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct TenantOptions {
    #[arg(long)]
    pub driver: PathBuf,
    #[arg(long)]
    pub class: Class,
    #[arg(long, value_parser = seconds)]
    pub seconds: f64,
    #[arg(long)]
    pub seed: u64,
}

#[derive(Debug, Subcommand)]
pub enum SoftVerb {
    /// Show the card's settings and the contexts on it
    Show {
        #[command(flatten)]
        card: CardName,
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Measure how fast the software GPU is on this machine
    Bench {
        /// The driver to measure [default: the software GPU beside this program]
        #[arg(long, value_name = "LIBCUDA", env = "EBB_DEMO_DRIVER")]
        driver: Option<PathBuf>,
        #[arg(short, long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
    /// Change settings, at once and for everybody on the card
    Set {
        #[command(flatten)]
        card: CardName,
        /// How contexts share the card: one at a time (isolated) or all at once (shared)
        #[arg(long)]
        domain: Option<Domain>,
        /// What changing from one context to another costs, in microseconds
        #[arg(long, value_name = "MICROSECONDS")]
        switch_cost: Option<u64>,
        /// The timeslice of one context, in microseconds; `ebb soft show` lists the contexts
        #[arg(long, value_name = "CONTEXT=MICROSECONDS", value_parser = slice)]
        timeslice: Vec<(u64, u64)>,
    },
}

#[derive(Debug, Args)]
pub struct CardName {
    /// Name of the software GPU
    #[arg(long, env = "EBB_SOFTGPU", default_value = "default")]
    pub card: String,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600 is wanted".to_owned()),
    }
}

fn slice(text: &str) -> Result<(u64, u64), String> {
    let parsed = text.split_once('=').and_then(|(context, micros)| {
        let micros = micros.parse::<u64>().ok().filter(|micros| (1..=10_000_000).contains(micros))?;
        Some((context.parse().ok()?, micros))
    });
    parsed.ok_or_else(|| "CONTEXT=MICROSECONDS is wanted, with 1 to 10000000 microseconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn bad_spans_are_refused_with_what_is_wanted() {
        let error = Arguments::try_parse_from(["ebb", "demo", "--seconds", "0"]).unwrap_err().to_string();
        assert!(error.contains("0.1 to 3600"), "{error}");
    }

    #[test]
    fn timeslices_name_their_context() {
        assert_eq!(slice("3=2048"), Ok((3, 2048)));
        assert!(slice("2048").is_err());
        assert!(slice("3=0").is_err());
    }
}
