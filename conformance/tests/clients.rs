//! Programs that nobody here wrote for us: numba-cuda and tinygrad, unmodified, on the software GPU or on the driver
//! that `EBB_CONFORMANCE_DRIVER` names; and with the shim in front of it, found by the clients' own search for a driver.
//!
//! Each client is installed from PyPI, at pinned versions, into a virtual environment in cargo's target folder, once.
//! Where there is no suitable Python or no way to PyPI, the test says so and counts as ignored.

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use telemetry::Reading;

mod common;

struct Client {
    name: &'static str,
    /// The variable by which this client is told of a driver that is not installed.
    driver: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

/// How a client comes by a driver.
enum Way {
    /// It is told where the driver is.
    Told,
    /// It is told nothing, and the shim is preloaded.
    Preloaded,
}

const CLIENTS: &[Client] = &[
    Client {
        name: "numba",
        driver: "NUMBA_CUDA_DRIVER",
        environment: &[
            // The driver's own linker, reached through ctypes: the path on which PTX is handed over.
            ("NUMBA_CUDA_USE_NVIDIA_BINDING", "0"),
            ("NUMBA_CUDA_ENABLE_PYNVJITLINK", "0"),
            ("NUMBA_CUDA_WARN_ON_IMPLICIT_COPY", "0"),
            ("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0"),
        ],
    },
    Client {
        name: "tinygrad",
        driver: "CUDA_PATH",
        environment: &[
            ("DEV", "CUDA:PTX"),
            // Tensor cores are not part of what a software GPU offers, and a cache would hide what is tested.
            ("TC", "0"),
            ("CACHELEVEL", "0"),
        ],
    },
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One at a time: a client keeps the whole machine busy.
    arguments.test_threads.get_or_insert(1);
    let trials = CLIENTS.iter().flat_map(|client| {
        let (told, preloaded) =
            (format!("client/{}", client.name), format!("client/{}/preloaded", client.name));
        [
            Trial::ignorable_test(told, || run(client, Way::Told)),
            Trial::ignorable_test(preloaded, || run(client, Way::Preloaded)),
        ]
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn run(client: &Client, way: Way) -> Result<Completion, Failed> {
    let python = match install(client) {
        Ok(python) => python,
        Err(reason) => return Ok(Completion::ignored_with(reason)),
    };
    let runtime = tempfile::tempdir().expect("a temporary folder can be made");
    let mut command = Command::new(python);
    command.arg(folder().join(format!("{}_programs.py", client.name)));
    command.envs(client.environment.iter().copied());
    command.env("EBB_RUNTIME_DIR", runtime.path()).env("EBB_SOFTGPU", "clients");
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    let ledgers = runtime.path().join("ledgers");
    match way {
        Way::Told => drop(command.env(client.driver, common::driver())),
        Way::Preloaded => preload(&mut command, runtime.path(), &ledgers)?,
    }
    let output = command.output().expect("the installed Python can be started");
    if !output.status.success() {
        let (said, complained) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        return Err(format!("{}\n{said}\n{complained}", output.status).into());
    }
    match way {
        Way::Told => Ok(Completion::Completed),
        Way::Preloaded => counted(&ledgers),
    }
}

/// What `ebb run` sets: clients find the library by its name, which is taken, or by searching.
fn preload(command: &mut Command, folder: &Path, ledgers: &Path) -> Result<(), Failed> {
    let shim = folder.join("libcuda.so.1");
    symlink(common::built("shim"), &shim)?;
    symlink(&shim, folder.join("libcuda.so"))?;
    std::fs::create_dir(ledgers)?;
    command.env("LD_PRELOAD", shim).env("LD_LIBRARY_PATH", folder);
    command.env("EBB_DRIVER", common::driver()).env("EBB_RUN", ledgers);
    Ok(())
}

/// One process was attached, and has launched kernels that are all known by their names.
fn counted(ledgers: &Path) -> Result<Completion, Failed> {
    let mut files: Vec<_> = ledgers.read_dir()?.collect::<Result<_, _>>()?;
    files.retain(|file| Reading::is_called_so(&file.path()));
    let [file] = &files[..] else { return Err(format!("{} processes were attached", files.len()).into()) };
    let reading = Reading::open(&file.path())?;
    let listed: u64 = reading.kernels.iter().map(|kernel| kernel.total()).sum();
    if listed == 0 || listed != reading.kernels_run() {
        return Err(format!("{} kernels were run, {listed} of them by name", reading.kernels_run()).into());
    }
    Ok(Completion::Completed)
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
