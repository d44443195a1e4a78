//! What can be typed after `ebb profile`.

use clap::{Args, Subcommand, ValueEnum};

use crate::arguments::Output;

#[derive(Debug, Subcommand)]
pub enum ProfileVerb {
    /// List the kernels that are known, those that keep the GPU busy longest first
    #[command(after_help = LIST_HELP)]
    List(ListOptions),
    /// Show all that is known of one kernel, in every shape it is launched in
    Show(ShowOptions),
    /// Print every record, for programs
    Export(ExportOptions),
    /// Throw away all that is known; it is learned anew
    Clear(ClearOptions),
}

const LIST_HELP: &str = "\
Times are of launches that were timed. `block`: one block of the kernel. `gap`: from its end to the
tenant's next launch. `stops in`: what is promised from the block times seen; none where the kernel
can only be held before it begins. `sites`: places in a program's recurring sequence of which the
times are known apart.";

#[derive(Debug, Args)]
pub struct Platforms {
    /// Only GPUs with this in their name [default: all]
    #[arg(long, value_name = "NAME")]
    pub gpu: Option<String>,
}

#[derive(Debug, Args)]
pub struct ListOptions {
    #[command(flatten)]
    pub platforms: Platforms,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct ShowOptions {
    /// Its id as `ebb profile list` shows it, its name, or a part of its name
    pub kernel: String,
    #[command(flatten)]
    pub platforms: Platforms,
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct ExportOptions {
    #[command(flatten)]
    pub platforms: Platforms,
    #[arg(short, long, value_enum, default_value_t = Form::Json)]
    pub output: Form,
}

/// How records are exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    Json,
    Csv,
}

#[derive(Debug, Args)]
pub struct ClearOptions {
    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,
}
