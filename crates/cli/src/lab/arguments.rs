//! What can be typed after `ebb lab`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use model::{Kind, Nanos};
use results::mode::Factor;
use scenario::Mode;

#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// List the built-in suites, or the scenarios of one
    List(ListOptions),
    /// Look for mistakes in scenario files
    Check(CheckOptions),
    /// Run suites, and write down what every request met
    ///
    /// Runs that are already in the folder's results are not made again, so a campaign that was ended goes on where it
    /// was. Ctrl-C ends it; what was measured stays.
    #[command(after_help = RUN_HELP)]
    Run(RunOptions),
    /// Write results as one HTML page, with charts and tables
    Report(ReportOptions),
    /// Say what got better or worse between two sets of results, beyond noise
    ///
    /// The exit status is 0 if nothing got worse, 1 if something did, and 2 if they cannot be compared.
    Compare(CompareOptions),
    /// Record which kernels workloads consist of, on this machine's GPU
    #[command(after_help = RECORD_HELP)]
    Record(RecordOptions),
    /// Synthetic tenants (started by `ebb lab run`)
    #[command(hide = true)]
    Tenant(TenantOptions),
}

#[derive(Debug, Args)]
pub struct ListOptions {
    /// A built-in suite, or the path of a folder or a scenario file
    pub suite: Option<String>,
    /// On which device times are counted and modes apply
    #[arg(long, default_value = "gpu", value_name = "gpu|soft")]
    pub device: scenario::Device,
    /// Only name the workloads, one to a line
    #[arg(long)]
    pub workloads: bool,
}

#[derive(Debug, Args)]
pub struct CheckOptions {
    /// Scenario files, or folders of them
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<std::path::PathBuf>,
}

const RECORD_HELP: &str = "\
Examples:
  ebb lab record vgg19-inference-eager-b1 --out profiles
  ebb lab record '{ model = \"llama\", output = 16 }' --out profiles
  ebb lab record $(ebb lab list --workloads disb-a) --out profiles --python venv/bin/python

Needs a GPU that nobody else uses, and PyTorch (CuPy for stencil and traversal).";

#[derive(Debug, Args)]
pub struct RecordOptions {
    /// Workloads by their names, or as a scenario file writes them
    #[arg(required = true, value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// The folder for the profiles, one file for each
    #[arg(long, value_name = "DIR")]
    pub out: std::path::PathBuf,
    /// The Python that has PyTorch
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub python: std::ffi::OsString,
    /// What to record on; from the software GPU there is nothing to learn
    #[arg(long, default_value = "gpu", value_name = "gpu|soft")]
    pub device: scenario::Device,
}

#[derive(Debug, Args)]
pub struct RunOptions {
    /// Built-in suites, or paths of folders or scenario files
    #[arg(required = true, value_name = "SUITE|PATH")]
    pub suites: Vec<String>,
    /// What to run on
    #[arg(long, default_value = "gpu", value_name = "gpu|soft")]
    pub device: scenario::Device,
    /// The folder of the results, made if need be
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Only this mode, and others named so [default: those that a scenario wants]
    #[arg(long = "mode", value_name = "MODE")]
    pub modes: Vec<Mode>,
    /// Run ebb's modes under this policy, and others named so [default: as the daemon is without a word]
    #[arg(long = "policy", value_name = "strict|gaps|slo|fair|deadline")]
    pub policies: Vec<Kind>,
    /// Have latency tenants tell ebb so many times their own p99 alone as their SLO, such as 1.2 [default: none]
    #[arg(long, value_name = "FACTOR")]
    pub slo: Option<Factor>,
    /// Only this scenario, and others named so [default: all]
    #[arg(long = "scenario", value_name = "NAME")]
    pub scenarios: Vec<String>,
    /// How often [default: as a scenario says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: Option<u32>,
    /// Counted seconds of each run [default: as a scenario says]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub seconds: Option<f64>,
    /// Seed of all arrivals [default: as a scenario says]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Begin nothing that would not end within this time, such as 500s
    #[arg(long, value_name = "TIME", value_parser = budget)]
    pub budget: Option<Duration>,
    /// The Python that has PyTorch
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    pub python: OsString,
    /// Where a rival was built: xsched, xsched-timeslice, hami or nvshare, and a folder
    #[arg(long = "rival", value_name = "NAME=PATH", value_parser = rival)]
    pub rivals: Vec<(Mode, PathBuf)>,
    /// At most so many worker processes at once [default: 40 on a GPU, 100 on the software GPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub crew: Option<u32>,
    /// Keep what workers print, also when nothing went wrong
    #[arg(long)]
    pub keep_logs: bool,
    /// How long a worker may be silent beyond its time (for tests)
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds, hide = true)]
    pub grace: f64,
}

const RUN_HELP: &str = "\
Examples:
  ebb lab run disb-a --device soft --out results
  ebb lab run tally --out results --scenario bert-beside-gpt2-large --repetitions 5
  ebb lab run tally --out results --mode alone --mode ebb-shared --policy strict --policy slo --slo 1.2
  ebb lab run micro --out results --mode alone --mode timeslice --mode ebb-isolated --budget 500s
  ebb lab report results

Exit status:
  0 also if the time was up before all was measured, and if some runs failed: the results say so;
  1 if nothing could be measured, 130 or 143 if a signal ended it";

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600 is wanted".to_owned()),
    }
}

fn budget(text: &str) -> Result<Duration, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("a time above zero is wanted".to_owned()),
        Ok(time) => Ok(Duration::from_nanos(time.0)),
        Err(error) => Err(error.to_string()),
    }
}

fn rival(text: &str) -> Result<(Mode, PathBuf), String> {
    let (name, path) = text.split_once('=').ok_or("NAME=PATH is wanted")?;
    let mode = name.parse::<Mode>().ok().filter(|mode| mode.is_rival());
    let mode =
        mode.ok_or_else(|| format!("`{name}` is not one of xsched, xsched-timeslice, hami, nvshare"))?;
    Ok((mode, PathBuf::from(path)))
}

#[derive(Clone, Debug, Args)]
pub struct TenantOptions {
    /// The file that says which tenants
    pub spec: std::path::PathBuf,
    /// The driver library
    #[arg(long, value_name = "LIBCUDA", default_value = "libcuda.so.1")]
    pub driver: std::path::PathBuf,
    /// Look for profiles in this folder before those that are built in
    #[arg(long, value_name = "FOLDER")]
    pub profiles: Option<std::path::PathBuf>,
}

#[derive(Debug, Args)]
pub struct CompareOptions {
    /// The earlier results: a folder that `ebb lab run` wrote, or a file of it
    pub before: std::path::PathBuf,
    /// The later results
    pub after: std::path::PathBuf,
    /// Show also what did not change
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct ReportOptions {
    /// Folders that `ebb lab run` wrote, or result files; several of one device make one report
    #[arg(required = true, value_name = "DIR|FILE")]
    pub results: Vec<std::path::PathBuf>,
    /// Where the page goes [default: report.html beside the first results]
    #[arg(long, value_name = "FILE.html")]
    pub out: Option<std::path::PathBuf>,
    /// Write a summary as Markdown, too
    #[arg(long, value_name = "FILE.md")]
    pub markdown: Option<std::path::PathBuf>,
    /// Say in a few lines what each mode and policy costs and gives over a suite; a page only with --out
    #[arg(long)]
    pub summary: bool,
    /// Write the headline as a picture, too
    #[arg(long, value_name = "FILE.svg")]
    pub picture: Option<std::path::PathBuf>,
}
