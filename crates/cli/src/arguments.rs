//! What can be typed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use daemon::Wanted;
use lab::Scene;
use model::{Bytes, Class, Domain, Kind, Nanos};

use crate::lab::arguments::LabVerb;
use crate::policy::arguments::PolicyVerb;
use crate::profile::arguments::ProfileVerb;
use crate::sim::arguments::SimOptions;
use crate::top::arguments::TopOptions;

/// Shares an NVIDIA GPU between latency-critical and best-effort processes.
#[derive(Debug, Parser)]
#[command(name = "ebb", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a command with ebb in front of the CUDA driver
    ///
    /// ebb adds its library to the command's environment and then becomes the command: same process, same status,
    /// same terminal. With a report it stays as the command's parent, passes signals on, and exits with the
    /// command's status.
    Run(RunOptions),
    /// Show who shares the GPUs: tenants, classes, how each can be stopped, what each got
    Status(ShowOptions),
    /// List the processes that share the GPUs, one to a line
    Ps(ShowOptions),
    /// Watch who shares the GPUs: what each tenant gets, whether objectives are kept, how soon each stops
    Top(TopOptions),
    /// List the kernels of processes on a shared GPU: which can be stopped between their blocks, which not, and why
    #[command(after_help = VERDICTS_HELP)]
    Verdicts(VerdictOptions),
    /// Record who ran when, who was stopped, and which requests were late, as a file for ui.perfetto.dev
    #[command(after_help = TRACE_HELP)]
    Trace(TraceOptions),
    /// Look at what is known of kernels from all runs: how long they take, what follows them, how soon they stop
    #[command(subcommand)]
    Profile(ProfileVerb),
    /// Change a tenant while it runs
    #[command(after_help = TENANT_HELP)]
    Set(ChangeOptions),
    /// Let a tenant put no more work on its GPU until it is resumed
    #[command(after_help = TENANT_HELP)]
    Pause(TenantName),
    /// Let a paused tenant go on
    #[command(after_help = TENANT_HELP)]
    Resume(TenantName),
    /// Seat tenants at GPUs; `ebb run` starts this by itself where none runs
    #[command(after_help = DAEMON_HELP)]
    Daemon(DaemonOptions),
    /// Look for what would keep ebb from working here, and say how to mend it
    #[command(after_long_help = crate::doctor::CHECKS)]
    Doctor(DoctorOptions),
    /// Run a latency tenant and a best-effort tenant on the software GPU, alone and together, and compare
    Demo(DemoOptions),
    /// Measure how tenants share a GPU: scenarios, suites, reports
    #[command(subcommand)]
    Lab(LabVerb),
    /// Play scenarios on a simulated GPU, under any policy, much faster than real time
    Sim(SimOptions),
    /// Look at the configuration, change it, and compare policies on what was recorded
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// Look at a software GPU or change how its contexts share it
    #[command(subcommand)]
    Soft(SoftVerb),
    /// Put what somebody who is to help needs to know into one file
    ///
    /// Status, what `ebb doctor` finds, versions, configuration, the end of the daemon's log, and how many kernels can be
    /// stopped and are known. What is in it is listed.
    SupportBundle(BundleOptions),
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
        /// Print all commands and their options as one page of Markdown: docs/cli.md
        #[arg(long, conflicts_with = "folder")]
        markdown: bool,
    },
    /// One tenant of the demo (started by `ebb demo`)
    #[command(hide = true)]
    Tenant(TenantOptions),
    /// A computation whose result must not depend on who shares the GPU (started by tests)
    #[command(hide = true)]
    Digest {
        #[arg(long)]
        driver: PathBuf,
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        steps: u32,
    },
    /// Ask a driver what it says about itself (started by `ebb doctor`)
    #[command(hide = true)]
    Probe {
        #[arg(long)]
        driver: PathBuf,
    },
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    #[value(alias = "table")]
    Text,
    Json,
}

#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
pub struct RunOptions {
    /// Say in the end which processes used CUDA and what they launched: on standard error, or into a file
    #[arg(
        long,
        value_name = "text|json[:FILE]",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "text",
        value_parser = OsStringValueParser::new().try_map(|text| report(&text))
    )]
    pub report: Option<ReportOption>,
    /// Give the command this device instead of the machine's GPUs
    #[arg(long, value_enum, conflicts_with = "driver")]
    pub device: Option<Device>,
    /// Put this driver library behind ebb [default: the one installed]
    #[arg(long, value_name = "LIBCUDA")]
    pub driver: Option<PathBuf>,
    /// Hold every kernel that is guarded against its original when it is first launched, and say what came of it in
    /// the report and in `ebb verdicts`. The command runs more slowly
    #[arg(long)]
    pub verify: bool,
    /// Do not warn when ebb cannot see the command, has no daemon for it, or has no use for an option
    #[arg(short, long)]
    pub quiet: bool,
    #[command(flatten)]
    pub tenancy: TenancyOptions,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

const RUN_HELP: &str = "\
Examples:
  ebb run -- python train.py
  ebb run --report -- python train.py
  ebb run --report=json:report.json -- ./simulate --steps 1000
  ebb run --device soft -- ./driver-api-program
  ebb run --class latency --slo-p99 20ms --name search -- ./serve
  ebb run --verify --report -- python train.py
  ebb run --mem 20Gi -- python train.py

A run inside another belongs to the outer one's tenant, unless an option about sharing makes it a
tenant of its own.

Exit status:
  that of the command; 128+N if signal N ended it; 125 if ebb failed, 126 if the command cannot be
  executed, 127 if it cannot be found";

const VERDICTS_HELP: &str = "\
In the isolated domain no verdict is needed: a kernel is stopped in its middle. In the shared domain:
`guard`: any of its blocks may be turned away when it is told to stop. `ordered guard`: only all from
some block on. `refuse`: it is held before it begins, with the reason. `stops in` is what is promised
from the block times seen. `ebb run --report` has the same for the processes of one command.";

const TRACE_HELP: &str = "Tenants remember 8192 launches or more and their last 8192 other events, unless EBB_EVENTS=0 is set for \
                          them. docs/trace.md says what is to be seen, and how to ask why a request was late.";

const TENANT_HELP: &str = "\
TENANT is a name, a tenant's number as `ebb status` shows it, or the number of one of its processes.
If that fits none, or several, nothing is changed.";

const DAEMON_HELP: &str = "\
Signals: TERM and INT end it, and tenants go on; HUP makes it read its configuration again.
Configuration: /etc/ebb/ebb.toml with --machine, else $XDG_CONFIG_HOME/ebb/ebb.toml, and beside it
conf.d/*.toml; read again when they change. `ebb policy show` says what is in force.";

/// A device that is not simply the machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Device {
    /// The software GPU
    Soft,
}

/// The form of a report and where it goes; standard error if nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportOption {
    pub form: Output,
    pub file: Option<PathBuf>,
}

/// What a command is among those that share its GPU. What is not said is taken from the variable of the same name, so
/// that a run inside another has the outer one's terms.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sharing")]
pub struct TenancyOptions {
    /// `latency`: run as if alone; `best-effort`: get everything else [default: best-effort]
    #[arg(long, value_name = "CLASS")]
    pub class: Option<Class>,
    /// The time that 99 of 100 bursts of a latency tenant should stay below, such as 20ms; others are counted. Without --class latency: a
    /// warning
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub slo_p99: Option<Nanos>,
    /// Who goes first among latency tenants: 0 to 9, higher first; without --class latency: a warning [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=9))]
    pub priority: Option<u32>,
    /// The share among best-effort tenants: 1 to 1000; with --class latency: a warning [default: 1]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub weight: Option<u32>,
    /// How much of a GPU's memory the tenant may have, such as 20Gi, or `none`; more is "out of memory" [default: none]
    #[arg(long, value_name = "SIZE", value_parser = size_or_none)]
    pub mem: Option<Bytes>,
    /// What the tenant is called [default: its script or program, such as train.py]
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub name: Option<String>,
    /// What to do when the daemon is gone [default: continue]
    #[arg(long, value_enum, value_name = "WHAT")]
    pub on_daemon_loss: Option<OnDaemonLoss>,
    /// Share the GPU as without ebb: no class, no turns
    #[arg(long, conflicts_with_all = ["class", "slo_p99", "priority", "weight", "name", "on_daemon_loss"])]
    pub no_daemon: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnDaemonLoss {
    /// Go on with what is known
    Continue,
    /// Put no work on the GPU until there is a daemon
    Block,
    /// End
    Exit,
}

#[derive(Debug, Args)]
pub struct ShowOptions {
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct VerdictOptions {
    /// Only this process, which may have ended [default: all that run]
    #[arg(value_name = "PID", conflicts_with_all = ["all", "forget"])]
    pub process: Option<u32>,
    /// Those that have ended too, as far as their ledgers are still there
    #[arg(long, conflicts_with = "forget")]
    pub all: bool,
    /// Throw away what was kept for later runs: rewritten code, and which kernels were found not to be what they seemed
    #[arg(long)]
    pub forget: bool,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct TraceOptions {
    /// Watch for so long; Ctrl-C ends it sooner and writes what there is
    #[arg(long, value_name = "TIME", default_value = "10s", conflicts_with = "last")]
    pub duration: Nanos,
    /// Watch nothing: write what tenants remember of the last while, such as 5s
    #[arg(long, value_name = "TIME")]
    pub last: Option<Nanos>,
    /// The file to write, `-` for standard output [default: ebb.pftrace, or ebb.json]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What is written: for ui.perfetto.dev, or Chrome's JSON
    #[arg(
        short,
        long,
        alias = "format",
        value_name = "perfetto|chrome",
        default_value = "perfetto",
        value_parser = trace_format
    )]
    pub output: TraceFormat,
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceFormat {
    /// Protocol buffers, as ui.perfetto.dev and its trace processor read them
    Perfetto,
    /// Chrome's JSON, which is larger and knows fewer kinds of tracks
    Chrome,
}

#[derive(Debug, Args)]
pub struct TenantName {
    /// A name, a tenant's number or a process's
    pub tenant: String,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct ChangeOptions {
    #[command(flatten)]
    pub tenant: TenantName,
    #[command(flatten)]
    pub terms: ChangedTerms,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct ChangedTerms {
    /// Its class: `latency` or `best-effort`
    #[arg(long, value_name = "CLASS")]
    pub class: Option<Class>,
    /// Its share among best-effort tenants: 1 to 1000
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub weight: Option<u32>,
    /// Its priority among latency tenants: 0 to 9
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=9))]
    pub priority: Option<u32>,
    /// The time that 99 of 100 of its bursts should stay below, or `none`
    #[arg(long, value_name = "TIME", value_parser = span_or_none)]
    pub slo_p99: Option<Nanos>,
    /// How much of a GPU's memory it may have, or `none`
    #[arg(long, value_name = "SIZE", value_parser = size_or_none)]
    pub mem: Option<Bytes>,
}

#[derive(Debug, Args)]
pub struct DaemonOptions {
    /// Serve all users of this machine, in /run/ebb
    #[arg(long, conflicts_with = "on_demand")]
    pub machine: bool,
    /// Go to the background, and end when there have been no tenants for a while
    #[arg(long)]
    pub on_demand: bool,
    /// End after so many seconds without tenants [default: never; 60 with --on-demand]
    #[arg(long, value_name = "SECONDS", env = "EBB_DAEMON_IDLE", hide_env = true)]
    pub idle: Option<u64>,
    /// Read this configuration instead of the usual one
    #[arg(long, value_name = "FILE", env = "EBB_DAEMON_CONFIG", hide_env = true)]
    pub config: Option<PathBuf>,
    /// How tenants share a GPU: isolated, shared or auto [default: the configuration's, else isolated]
    #[arg(long, env = "EBB_DAEMON_DOMAIN", hide_env = true)]
    pub domain: Option<Wanted>,
    /// Which policy decides: strict, gaps, slo, fair or deadline [default: the configuration's, else slo]
    #[arg(long, value_name = "KIND", env = "EBB_DAEMON_POLICY", hide_env = true)]
    pub policy: Option<Kind>,
    /// End when the machine's daemon comes, which will have the tenants
    #[arg(long, hide = true, requires = "on_demand")]
    pub make_room: bool,
    /// The one in the background (started by `ebb daemon --on-demand`)
    #[arg(long, hide = true)]
    pub detached: bool,
    /// Take the place of the daemon that runs, and its tenants
    ///
    /// One that `ebb run` started and that has no tenants is replaced without this.
    #[arg(long, conflicts_with = "on_demand")]
    pub replace: bool,
    #[command(subcommand)]
    pub verb: Option<DaemonVerb>,
}

#[derive(Debug, Subcommand)]
pub enum DaemonVerb {
    /// End your daemon. Tenants go on, by the board they have, and find the next one
    Stop {
        /// The machine's instead
        #[arg(long)]
        machine: bool,
    },
}

#[derive(Debug, Args)]
pub struct DoctorOptions {
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
    /// Let warnings count as failures
    #[arg(long)]
    pub strict: bool,
    /// Look at this driver library [default: the one installed]
    #[arg(long, value_name = "LIBCUDA")]
    pub driver: Option<PathBuf>,
    /// Look at this device instead of the machine's GPUs
    #[arg(long, value_enum, conflicts_with = "driver")]
    pub device: Option<Device>,
    /// A command to look at, which is not run
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub struct BundleOptions {
    /// Where it goes [default: ebb-support-TIME.tar.gz, here]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Keep names of users and tenants, command lines and values of variables
    #[arg(long)]
    pub full: bool,
}

#[derive(Debug, Args)]
pub struct DemoOptions {
    /// Seconds per phase; there are eight, and two of them are repeated in shorter rounds
    #[arg(long, default_value_t = 8.0, value_parser = seconds)]
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
    #[arg(long, default_value_t)]
    pub scene: Scene,
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
    Set(SetOptions),
}

#[derive(Debug, Args)]
pub struct SetOptions {
    #[command(flatten)]
    pub card: CardName,
    /// How contexts share the card: one at a time (isolated) or all at once (shared)
    #[arg(long)]
    pub domain: Option<Domain>,
    /// What changing from one context to another costs, in microseconds
    #[arg(long, value_name = "MICROSECONDS")]
    pub switch_cost: Option<u64>,
    /// The timeslice of one context, in microseconds; `ebb soft show` lists the contexts
    #[arg(long, value_name = "CONTEXT=MICROSECONDS", value_parser = slice)]
    pub timeslice: Vec<(u64, u64)>,
    /// Give a context no turn until it is enabled again; what it has under way is suspended
    #[arg(long, value_name = "CONTEXT")]
    pub disable: Vec<u64>,
    /// Let a disabled context go on, whoever disabled it
    #[arg(long, value_name = "CONTEXT")]
    pub enable: Vec<u64>,
    /// Take a context off the GPU now; it comes back when it is its turn
    #[arg(long, value_name = "CONTEXT")]
    pub preempt: Vec<u64>,
}

#[derive(Debug, Args)]
pub struct CardName {
    /// Name of the software GPU
    #[arg(long, env = "EBB_SOFTGPU", default_value = "default")]
    pub card: String,
}

fn span(text: &str) -> Result<Nanos, String> {
    match text.parse::<Nanos>() {
        Ok(Nanos::ZERO) => Err("a time above zero is wanted".to_owned()),
        Ok(span) => Ok(span),
        Err(error) => Err(error.to_string()),
    }
}

/// Zero for none.
fn span_or_none(text: &str) -> Result<Nanos, String> {
    if text == "none" { Ok(Nanos::ZERO) } else { span(text) }
}

/// Zero for none.
fn size_or_none(text: &str) -> Result<Bytes, String> {
    match text.parse::<Bytes>() {
        _ if text == "none" => Ok(Bytes::ZERO),
        Ok(Bytes::ZERO) => Err("an amount above zero is wanted, or `none`".to_owned()),
        Ok(size) => Ok(size),
        Err(error) => Err(error.to_string()),
    }
}

/// `-o` is the form of what is printed, with every verb. Who names a file is told how.
fn trace_format(text: &str) -> Result<TraceFormat, String> {
    TraceFormat::from_str(text, false)
        .map_err(|_| format!("perfetto or chrome is wanted; name the file with --out {text}"))
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.1..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.1 to 3600 is wanted".to_owned()),
    }
}

fn report(text: &OsStr) -> Result<ReportOption, String> {
    let mut parts = text.as_bytes().splitn(2, |&byte| byte == b':');
    let form = match parts.next() {
        Some(b"text") => Some(Output::Text),
        Some(b"json") => Some(Output::Json),
        _ => None,
    };
    let file = parts.next().map(|file| PathBuf::from(OsString::from_vec(file.to_owned())));
    match form {
        Some(form) if file.as_ref().is_none_or(|file| !file.as_os_str().is_empty()) => {
            Ok(ReportOption { form, file })
        }
        _ => Err("text, json, text:FILE or json:FILE is wanted".to_owned()),
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
    fn a_report_has_a_form_and_perhaps_a_file() {
        let stderr = |form| Ok(ReportOption { form, file: None });
        assert_eq!(report(OsStr::new("text")), stderr(Output::Text));
        assert_eq!(report(OsStr::new("json")), stderr(Output::Json));
        let file = Some(PathBuf::from("a:b"));
        assert_eq!(report(OsStr::new("json:a:b")), Ok(ReportOption { form: Output::Json, file }));
        for wrong in ["", "yaml", "json:", ":x"] {
            assert!(report(OsStr::new(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_follows_the_command_belongs_to_it() {
        let parse = |line: &str| match Arguments::try_parse_from(line.split(' ')).unwrap().verb {
            Verb::Run(options) => options,
            other => panic!("{other:?}"),
        };
        let options = parse("ebb run --report -- a --report=json -- b");
        assert_eq!(options.command, ["a", "--report=json", "--", "b"]);
        assert_eq!(options.report.unwrap().form, Output::Text);
        assert_eq!(parse("ebb run a --quiet").command, ["a", "--quiet"]);
        assert!(Arguments::try_parse_from(["ebb", "run"]).is_err());
    }

    #[test]
    fn terms_are_checked_where_they_are_typed() {
        let fails = |line: &str| {
            let error = Arguments::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            error.to_string()
        };
        assert!(fails("ebb run --class fast a").contains("latency, best-effort"));
        assert!(fails("ebb run --slo-p99 20 a").contains("20ms"));
        assert!(fails("ebb run --slo-p99 0s a").contains("above zero"));
        assert!(fails("ebb run --weight 0 a").contains("1..=1000"));
        assert!(fails("ebb run --priority 10 a").contains("0..=9"));
        assert!(fails("ebb run --mem much a").contains("20Gi"));
        assert!(fails("ebb run --mem 0 a").contains("above zero"));
        assert!(fails("ebb run --no-daemon --class latency a").contains("--no-daemon"));
        assert!(fails("ebb set train").contains("--class"));
        assert!(fails("ebb set --weight 3").contains("TENANT"));
        let set = Arguments::try_parse_from("ebb set train --weight 3 --slo-p99 none --mem 10Gi".split(' '))
            .unwrap()
            .verb;
        let Verb::Set(set) = set else { panic!("{set:?}") };
        assert_eq!((set.tenant.tenant.as_str(), set.terms.weight), ("train", Some(3)));
        assert_eq!((set.terms.slo_p99, set.terms.mem), (Some(Nanos::ZERO), Some(Bytes(10 << 30))));
    }

    /// The form of what is printed. Files and folders are named by `--out`.
    #[test]
    fn the_letter_o_means_one_thing() {
        fn look(command: &clap::Command, path: &str) {
            for argument in command.get_arguments().filter(|argument| argument.get_short() == Some('o')) {
                assert_eq!(argument.get_long(), Some("output"), "{path}");
                assert_eq!(argument.get_default_values().len(), 1, "{path}: a form has a default");
            }
            for verb in command.get_subcommands() {
                look(verb, &format!("{path} {}", verb.get_name()));
            }
        }
        look(&Arguments::command(), "ebb");
        let error = Arguments::try_parse_from(["ebb", "trace", "-o", "x.pftrace"]).unwrap_err().to_string();
        assert!(error.contains("--out x.pftrace"), "{error}");
        for line in ["ebb trace -o chrome --out x", "ebb trace --format chrome --out -"] {
            let Verb::Trace(options) = Arguments::try_parse_from(line.split(' ')).unwrap().verb else {
                panic!("{line}");
            };
            assert_eq!(options.output, TraceFormat::Chrome);
        }
    }

    #[test]
    fn timeslices_name_their_context() {
        assert_eq!(slice("3=2048"), Ok((3, 2048)));
        assert!(slice("2048").is_err());
        assert!(slice("3=0").is_err());
    }
}
