//! What can be typed after `ebb policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::Domain;

use crate::arguments::Output;

#[derive(Debug, Subcommand)]
pub enum PolicyVerb {
    /// Look for mistakes in a configuration, and say all of them with file and line
    #[command(after_help = CHECK_HELP)]
    Check(CheckOptions),
    /// Take a file into the configuration of the daemon that runs, if nothing is wrong with it
    ///
    /// The file is written as 50-apply.toml into the folder conf.d of the daemon's configuration, in place of what was applied
    /// before, and the daemon reads everything again. Whatever goes wrong, the configuration in force stays.
    Apply(ApplyOptions),
    /// Show the configuration in force: every key, its value and where that was said
    Show(ShowOptions),
    /// Say what another configuration would change, or replay what was recorded under two policies
    ///
    /// With one word, a file: what `ebb policy apply` would change about the configuration in force. With two and a trace:
    /// the requests come when they came, and take as long as they took alone; who has the GPU when is simulated.
    #[command(after_help = DIFF_HELP)]
    Diff(DiffOptions),
}

const CHECK_HELP: &str = "\
A FOLDER is looked at as /etc/ebb is: ebb.toml and conf.d/*.toml in it; one that has neither, as conf.d.
Exit status: 0 if nothing is wrong, 1 if something is";

#[derive(Debug, Args)]
pub struct CheckOptions {
    /// What to look at [default: the configuration of the daemon that answers, else your own]
    #[arg(value_name = "FILE|FOLDER")]
    pub what: Option<PathBuf>,
    /// Judge it as the configuration of the machine's daemon; by default the one in /etc/ebb
    #[arg(long)]
    pub machine: bool,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct ApplyOptions {
    pub file: PathBuf,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct ShowOptions {
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

const DIFF_HELP: &str = "\
Policies are named as for `ebb sim`: strict, gaps, slo, fair, deadline, switch, fikit, hummingbird,
tally, reef, reef-n, timeslice, mps, mps-priority; one of ebb's may have a domain and dials of its
own: slo@shared:quiet=50us

Examples:
  ebb policy diff site.toml
  ebb policy diff strict slo --trace results --domain shared
  ebb policy diff switch slo@shared --trace results --scenario bert-beside-bert-training";

#[derive(Debug, Args)]
pub struct DiffOptions {
    /// The first policy; or, by itself, a configuration file
    #[arg(value_name = "A|FILE")]
    pub before: String,
    /// The policy it is compared with
    #[arg(value_name = "B", requires = "trace")]
    pub after: Option<String>,
    /// What was recorded: a folder that `ebb lab run` wrote, or a result file; it needs runs of the tenants alone
    #[arg(long, value_name = "DIR|FILE", requires = "after")]
    pub trace: Vec<PathBuf>,
    /// Only this scenario, and others named so [default: all that were recorded]
    #[arg(long = "scenario", value_name = "NAME", requires = "after")]
    pub scenarios: Vec<String>,
    /// The domain of ebb's policies [default: isolated]
    #[arg(long, value_name = "isolated|shared", requires = "after")]
    pub domain: Option<Domain>,
    /// Set a dial for both, such as quiet=100us
    #[arg(long = "set", value_name = "DIAL=VALUE", requires = "after")]
    pub dials: Vec<String>,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}
