//! The chores of the workspace. `cargo xtask help` lists them.

mod check;
mod compare;
mod demo;
mod donors;
mod fetch;
mod kernels;
mod package;
mod twins;
mod workspace;

#[cfg(feature = "headers")]
mod r#gen;
/// `cargo demo` is built without bindgen, since it should start soon and never generates anything.
#[cfg(not(feature = "headers"))]
mod r#gen {
    pub fn run(_check: bool) -> anyhow::Result<()> {
        anyhow::bail!("this xtask was built without its feature `headers`; run `cargo xtask gen`")
    }
}

#[cfg(feature = "documentation")]
mod docs;
/// Nor does it read the documentation.
#[cfg(not(feature = "documentation"))]
mod docs {
    use std::path::Path;

    use anyhow::{Result, bail};

    pub fn run(_check_only: bool, _out: Option<&Path>) -> Result<()> {
        bail!("this xtask was built without its feature `documentation`; run `cargo xtask docs`")
    }

    pub fn check() -> Result<()> {
        run(true, None)
    }

    pub fn generate() -> Result<()> {
        run(true, None)
    }
}

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// The chores of the workspace: generate, compile, check, demonstrate.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Download the pinned CUDA headers, CUDA compiler, disassembler and libclang from PyPI into .cache/
    ///
    /// Needs python3 with pip. `gen` and `kernels` do this by themselves; nothing is downloaded twice. What is
    /// downloaded is never committed.
    FetchCuda,
    /// Generate crates/cuda-abi/src/generated from the CUDA headers
    ///
    /// Uses the libclang that LIBCLANG_PATH names, else one from PyPI.
    Gen {
        /// Write nothing; fail if the committed files are not what would be written
        #[arg(long)]
        check: bool,
    },
    /// Compile conformance/kernels/*.cu to PTX, two targets by two optimisation levels
    ///
    /// Uses the pinned nvcc (fetched) and the machine's gcc. A source may ask for flags and targets in its
    /// opening comment: `// nvcc: -rdc=true`, `// targets: compute_90`.
    Kernels {
        /// Write nothing; fail if the committed PTX is not what would be written
        #[arg(long)]
        check: bool,
        /// Only these sources, without `.cu`
        names: Vec<String>,
    },
    /// Compile the guard's prologues to tables of machine code, one for each architecture
    ///
    /// Uses the pinned ptxas (fetched).
    Donors {
        /// Write nothing; fail if the committed tables are not what would be written
        #[arg(long)]
        check: bool,
    },
    /// Compile the guard's test kernels, rewrite them, and disassemble what came out
    ///
    /// Uses the pinned nvcc and nvdisasm (fetched) and the machine's gcc.
    Twins {
        /// Write nothing; fail if the committed files are not what would be written
        #[arg(long)]
        check: bool,
    },
    /// Make a site of the documentation: HTML without scripts, with its Markdown beside it
    ///
    /// Fails if a link leads nowhere, if a page cannot be found from docs/README.md, or if an example names a command or an
    /// option of `ebb` that does not exist; `cargo xtask check` looks for the same.
    Docs {
        /// Write nothing
        #[arg(long, conflicts_with = "out")]
        check: bool,
        /// Where the site goes [default: docs in cargo's target folder]
        #[arg(long, value_name = "FOLDER")]
        out: Option<PathBuf>,
    },
    /// Write what of the documentation is generated: docs/cli.md from the command line, docs/llms.txt from docs/README.md
    GenDocs,
    /// Check what no compiler checks: arrows between crates, dependencies' reasons, licences, files, documentation
    Check {
        /// Also what `gen`, `kernels`, `donors` and `twins` check; skipped with a message where the wheels cannot be fetched
        #[arg(long)]
        all: bool,
        /// Like --all, but fail where the wheels cannot be fetched
        #[arg(long)]
        require_network: bool,
    },
    /// Build the command line, the shim and the software GPU, then run `ebb demo` (also: `cargo demo`)
    #[command(disable_help_flag = true)]
    Demo {
        /// Passed on to `ebb demo`, `--help` too
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build the software GPU and measure how fast it is on this machine (`ebb soft bench`)
    #[command(disable_help_flag = true)]
    Bench {
        /// Passed on to `ebb soft bench`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build ebb, a driver that does nothing and the software GPU, and measure what the shim adds to a call, in tenants too, to a guarded launch, and to a start
    BenchShim {
        /// `-o json` for a program to read
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Build the software driver and print the folder with its libcuda.so.1, for LD_LIBRARY_PATH
    Softcuda {
        /// The cargo profile to build with
        #[arg(long, default_value = "release")]
        profile: String,
    },
    /// Build the product and make of it a Debian package and a Python wheel, with sums and a bill of materials
    ///
    /// A release is built against an old libc where cargo-zigbuild and zig are there (`pip install cargo-zigbuild ziglang`).
    Package(package::Options),
    /// Build the shim and print the folder with its libcuda.so.1, where `ebb run` of the same profile finds it
    Shim {
        /// The cargo profile to build with
        #[arg(long, default_value = "release")]
        profile: String,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Result<()> {
    match chore {
        Chore::FetchCuda => fetch::everything(),
        Chore::Gen { check } => r#gen::run(check),
        Chore::Kernels { check, names } => kernels::run(check, &names),
        Chore::Donors { check } => donors::run(check),
        Chore::Twins { check } => twins::run(check),
        Chore::Docs { check, out } => docs::run(check, out.as_deref()),
        Chore::GenDocs => docs::generate(),
        Chore::Check { all, require_network } => {
            check::run(check::Extent { fetched: all || require_network, network_required: require_network })
        }
        Chore::Demo { arguments } => demo::run(&["demo"], &arguments),
        Chore::BenchShim { arguments } => demo::bench_shim(&arguments),
        Chore::Bench { arguments } => demo::run(&["soft", "bench"], &arguments),
        Chore::Package(options) => package::run(&options),
        Chore::Softcuda { profile } => demo::folder(demo::Stand::Softcuda, &profile),
        Chore::Shim { profile } => demo::folder(demo::Stand::Shim, &profile),
    }
}
