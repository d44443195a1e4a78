//! What can be typed after `ebb policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::Domain;

use crate::arguments::Output;

#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Replay what was recorded under two policies, and say what changes for whom
    ///
    /// The requests come when they came, and take as long as they took alone; who has the GPU when is simulated.
    #[command(after_help = DIFF_HELP)]
    Diff(DiffOptions),
}

const DIFF_HELP: &str = "\
Policies are named as for `ebb sim`: strict, gaps, slo, fair, deadline, switch, fikit, hummingbird,
tally, reef, reef-n, timeslice, mps, mps-priority; one of ebb's may have a domain and dials of its
own: slo@shared:quiet=50us

Examples:
  ebb policy diff strict slo --trace results --domain shared
  ebb policy diff switch slo@shared --trace results --scenario bert-beside-bert-training";

#[derive(Debug, Args)]
pub struct DiffOptions {
    /// The first policy
    #[arg(value_name = "A")]
    pub before: String,
    /// The one it is compared with
    #[arg(value_name = "B")]
    pub after: String,
    /// What was recorded: a folder that `ebb lab run` wrote, or a result file; it needs runs of the tenants alone
    #[arg(long, value_name = "DIR|FILE", required = true)]
    pub trace: Vec<PathBuf>,
    /// Only this scenario, and others named so [default: all that were recorded]
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// The domain of ebb's policies [default: isolated]
    #[arg(long, value_name = "isolated|shared")]
    pub domain: Option<Domain>,
    /// Set a dial for both, such as quiet=100us
    #[arg(long = "set", value_name = "DIAL=VALUE")]
    pub dials: Vec<String>,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}
