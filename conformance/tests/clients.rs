//! Programs that nobody here wrote for us: numba-cuda and tinygrad, unmodified, on the software GPU or on the driver
//! that `EBB_CONFORMANCE_DRIVER` names.
//!
//! Each client is installed from PyPI, at pinned versions, into a virtual environment in cargo's target folder, once.
//! Where there is no suitable Python or no way to PyPI, the test says so and counts as ignored.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

mod common;

struct Client {
    name: &'static str,
    /// What must be set for this client to use the driver at this path.
    environment: fn(&Path) -> Vec<(&'static str, PathBuf)>,
}

const CLIENTS: &[Client] = &[
    Client {
        name: "numba",
        environment: |driver| {
            vec![
                ("NUMBA_CUDA_DRIVER", driver.to_owned()),
                // The driver's own linker, reached through ctypes: the path on which PTX is handed over.
                ("NUMBA_CUDA_USE_NVIDIA_BINDING", "0".into()),
                ("NUMBA_CUDA_ENABLE_PYNVJITLINK", "0".into()),
                ("NUMBA_CUDA_WARN_ON_IMPLICIT_COPY", "0".into()),
                ("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0".into()),
            ]
        },
    },
    Client {
        name: "tinygrad",
        environment: |driver| {
            vec![
                ("CUDA_PATH", driver.to_owned()),
                ("DEV", "CUDA:PTX".into()),
                // Tensor cores are not part of what a software GPU offers, and a cache would hide what is tested.
                ("TC", "0".into()),
                ("CACHELEVEL", "0".into()),
            ]
        },
    },
];

enum Outcome {
    Passed,
    Failed(String),
    Ignored(String),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    let wanted = |client: &&Client| {
        let name = format!("client/{}", client.name);
        filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str()))
    };
    let clients: Vec<&Client> = CLIENTS.iter().filter(wanted).collect();
    if arguments.iter().any(|word| word == "--list") {
        clients.iter().for_each(|client| println!("client/{}: test", client.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", clients.len());
    let started = Instant::now();
    let (mut passed, mut failed, mut ignored) = (0, 0, 0);
    let driver = if clients.is_empty() { PathBuf::new() } else { common::driver() };
    for client in &clients {
        match run(client, &driver) {
            Outcome::Passed => {
                passed += 1;
                println!("test client/{} ... ok", client.name);
            }
            Outcome::Ignored(reason) => {
                ignored += 1;
                println!("test client/{} ... ignored, {reason}", client.name);
            }
            Outcome::Failed(output) => {
                failed += 1;
                println!("test client/{} ... FAILED\n{output}", client.name);
            }
        }
    }
    println!(
        "\ntest result: {}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; {} filtered out; \
         finished in {:.2}s\n",
        if failed == 0 { "ok" } else { "FAILED" },
        CLIENTS.len() - clients.len(),
        started.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run(client: &Client, driver: &Path) -> Outcome {
    let python = match install(client) {
        Ok(python) => python,
        Err(reason) => return Outcome::Ignored(reason),
    };
    let runtime = tempfile::tempdir().expect("a temporary folder can be made");
    let script = folder().join(format!("{}_programs.py", client.name));
    let output = Command::new(python)
        .arg(script)
        .envs((client.environment)(driver))
        .env("EBB_RUNTIME_DIR", runtime.path())
        .env("EBB_SOFTGPU", "clients")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("the installed Python can be started");
    if output.status.success() {
        return Outcome::Passed;
    }
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Outcome::Failed(format!("{}\n{said}\n{complained}", output.status))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

/// The Python of an environment that holds the client, made now or on an earlier run.
fn install(client: &Client) -> Result<PathBuf, String> {
    let requirements = folder().join(format!("requirements-{}.txt", client.name));
    let wanted = std::fs::read_to_string(&requirements).map_err(|error| error.to_string())?;
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("client-{}", client.name));
    let (python, stamp) = (environment.join("bin/python"), environment.join("installed.txt"));
    // The stamp is written last, so an installation that broke off is made anew.
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    let make = ["-m".as_ref(), "venv".as_ref(), "--clear".as_ref(), environment.as_os_str()];
    quietly(Command::new("python3").args(make))
        .map_err(|why| format!("no Python environment can be made: {why}"))?;
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--retries",
        "1",
        "--timeout",
        "20",
        "-r",
    ];
    quietly(Command::new(&python).args(pip).arg(&requirements))
        .map_err(|why| format!("{} cannot be installed: {why}", client.name))?;
    std::fs::write(&stamp, wanted).map_err(|error| error.to_string())?;
    Ok(python)
}

/// Runs a command; of a failure only the last line is kept, which is where pip and venv say the reason.
fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let complained = String::from_utf8_lossy(&output.stderr);
    Err(complained.trim().lines().last().unwrap_or("it gave no reason").to_owned())
}
