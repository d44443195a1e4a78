//! Programs that nobody here wrote for us: numba-cuda and tinygrad, unmodified, on the software GPU or on the driver
//! that `EBB_CONFORMANCE_DRIVER` names.
//!
//! Each client is installed from PyPI, at pinned versions, into a virtual environment in cargo's target folder, once.
//! Where there is no suitable Python or no way to PyPI, the test says so and counts as ignored.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

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

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One at a time: a client keeps the whole machine busy.
    arguments.test_threads.get_or_insert(1);
    let trials = CLIENTS.iter().map(|client| {
        Trial::ignorable_test(format!("client/{}", client.name), || run(client, &common::driver()))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn run(client: &Client, driver: &Path) -> Result<Completion, Failed> {
    let python = match install(client) {
        Ok(python) => python,
        Err(reason) => return Ok(Completion::ignored_with(reason)),
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
        return Ok(Completion::Completed);
    }
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Err(format!("{}\n{said}\n{complained}", output.status).into())
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
