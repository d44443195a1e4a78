//! What can be typed after `ebb lab`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum LabVerb {
    /// List the built-in suites, or the scenarios of one
    List(ListOptions),
    /// Look for mistakes in scenario files
    Check(CheckOptions),
    /// Say what got better or worse between two sets of results, beyond noise
    ///
    /// The exit status is 0 if nothing got worse, 1 if something did, and 2 if they cannot be compared.
    Compare(CompareOptions),
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
