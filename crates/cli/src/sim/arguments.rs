//! What can be typed after `ebb sim`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use model::Domain;

use crate::arguments::Output;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = SIM_HELP)]
pub struct SimOptions {
    #[command(subcommand)]
    pub verb: Option<SimVerb>,
    #[command(flatten)]
    pub play: PlayOptions,
}

#[derive(Debug, Subcommand)]
pub enum SimVerb {
    /// Play scenarios under many policies, loads and dials, and compare
    #[command(after_help = SWEEP_HELP)]
    Sweep(SweepOptions),
    /// Say how many GPUs a fleet of tenants needs, shared and apart
    #[command(after_help = FLEET_HELP)]
    Fleet(FleetOptions),
}

const SIM_HELP: &str = "\
A policy is one of ebb's (strict, gaps, slo, fair, deadline), `switch` (the isolated domain with no
policy at all), a published system (fikit, hummingbird, tally, reef, reef-n), or what NVIDIA ships
(timeslice, mps, mps-priority). One of ebb's may have a domain and dials of its own:
slo@shared:quiet=50us,beside=20us. The dials are quiet, threshold, in-flight and beside, which are
times, confine, in hundredths of the SMs, and solo-share, in thousandths. One that is set stays so;
the others slo turns by itself.

Examples:
  ebb sim tally/bert-beside-gpt2-large-training
  ebb sim disb-a/scaled --policy slo,gaps,timeslice --domain shared --seed 7
  ebb sim my-scenario.toml --policy strict --set quiet=200us -o json
  ebb sim micro --policy switch,mps-priority --out simulated && ebb lab report simulated
  ebb sim sweep --help
  ebb sim fleet --help";

const SWEEP_HELP: &str = "\
Examples:
  ebb sim sweep tally/yolo-beside-bert-training --policy strict,gaps,slo --load 0.1,0.5,0.9
  ebb sim sweep disb-a --policy strict --set quiet=50us,100us,400us --out sweep

With --out the folder has the results and report.html.";

const FLEET_HELP: &str = "\
Without a file: --services tenants that answer requests, --jobs that train, of several sorts. A file:

  schema = 1
  slo = [1.1, 1.5]            # multiples of each service's p99 alone
  memory = 141                # GiB of each GPU
  [[latency]]
  name = \"search\"
  workload = { model = \"bert\", form = \"graph\" }
  count = 400
  load = 0.2                  # or rate, in requests/s
  memory = 6
  [[best-effort]]
  name = \"nightly\"
  workload = { model = \"resnet50\", task = \"training\", batch = 128 }
  count = 300
  share = 0.4                 # of what it does with a GPU of its own
  memory = 40";

/// What is played, and what is said of it.
#[derive(Debug, Args)]
pub struct PlayOptions {
    /// A suite, a scenario of one (SUITE/NAME), or the path of a scenario file or of a folder of them
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    #[command(flatten)]
    pub how: How,
    /// Set a dial, such as quiet=100us
    #[arg(long = "set", value_name = "DIAL=VALUE")]
    pub dials: Vec<String>,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

/// What all commands that play have in common.
#[derive(Debug, Args)]
pub struct How {
    /// Under which policies, each by itself
    #[arg(long = "policy", value_name = "POLICY", value_delimiter = ' ', default_value = "slo")]
    pub policies: Vec<String>,
    /// The domain of ebb's policies [default: isolated]
    #[arg(long, value_name = "isolated|shared")]
    pub domain: Option<Domain>,
    /// Seed of all arrivals [default: as a scenario says]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How often [default: as a scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: Option<u32>,
    /// Counted seconds of each run [default: as a scenario says]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Keep the results in this folder, as `ebb lab run` does
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Look for the kernels of workloads in this folder before those that are built in
    #[arg(long, value_name = "DIR")]
    pub profiles: Option<PathBuf>,
    /// How many worlds are played at a time [default: as many as there are processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

#[derive(Debug, Args)]
pub struct SweepOptions {
    /// A suite, a scenario of one (SUITE/NAME), or the path of a scenario file or of a folder of them
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    #[command(flatten)]
    pub how: How,
    /// Loads of the latency tenants, each by itself, as shares of what they can answer alone [default: as a scenario says]
    #[arg(long = "load", value_name = "LOAD", value_delimiter = ',', value_parser = load)]
    pub loads: Vec<f64>,
    /// Values of a dial, each by itself, such as quiet=50us,100us
    #[arg(long = "set", value_name = "DIAL=VALUE,...")]
    pub dials: Vec<String>,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct FleetOptions {
    /// A file that says who is in the fleet
    #[arg(value_name = "FILE.toml")]
    pub file: Option<PathBuf>,
    /// How many services, if there is no file
    #[arg(long, value_name = "N", default_value_t = 2000, conflicts_with = "file", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub services: u32,
    /// How many training jobs, if there is no file
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with = "file", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub jobs: u32,
    /// The load of each service, as a share of what it can answer alone, if there is no file
    #[arg(long, value_name = "LOAD", default_value_t = 0.2, conflicts_with = "file", value_parser = load)]
    pub load: f64,
    /// Which share of its own speed a job is content with, if there is no file
    #[arg(long, value_name = "SHARE", default_value_t = 0.4, conflicts_with = "file", value_parser = load)]
    pub share: f64,
    /// Multiples of each service's p99 alone that may be promised [default: as the file says, or 1.05,1.2,1.5,2]
    #[arg(long = "slo", value_name = "MULTIPLE", value_delimiter = ',', value_parser = multiple)]
    pub promises: Vec<f64>,
    /// Under which policies, each by itself
    #[arg(
        long = "policy",
        value_name = "POLICY",
        value_delimiter = ' ',
        default_value = "slo@isolated slo@shared timeslice"
    )]
    pub policies: Vec<String>,
    /// Seed of all arrivals [default: as the file says]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Show also which tenants are together
    #[arg(long)]
    pub placements: bool,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600 is wanted".to_owned()),
    }
}

fn load(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(load) if load > 0.0 && load < 1.0 => Ok(load),
        _ => Err("a share between 0 and 1 is wanted".to_owned()),
    }
}

fn multiple(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(multiple) if (1.0..=100.0).contains(&multiple) => Ok(multiple),
        _ => Err("a multiple from 1 to 100 is wanted".to_owned()),
    }
}
