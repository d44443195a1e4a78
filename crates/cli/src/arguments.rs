//! What can be typed.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser as _};
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
    /// Run a command with ebb in front of the CUDA driver
    ///
    /// ebb adds its library to the command's environment and then becomes the command: same process, same status,
    /// same terminal. With a report it stays as the command's parent, passes signals on, and exits with the
    /// command's status.
    Run(RunOptions),
    /// Look for what would keep ebb from working here, and say how to mend it
    #[command(after_long_help = crate::doctor::CHECKS)]
    Doctor(DoctorOptions),
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
    /// Do not warn when ebb cannot see the command
    #[arg(short, long)]
    pub quiet: bool,
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

Exit status:
  that of the command; 128+N if signal N ended it; 125 if ebb failed, 126 if the command cannot be
  executed, 127 if it cannot be found";

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
    fn timeslices_name_their_context() {
        assert_eq!(slice("3=2048"), Ok((3, 2048)));
        assert!(slice("2048").is_err());
        assert!(slice("3=0").is_err());
    }
}
