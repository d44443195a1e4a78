//! The driver behind the shim: is there one, does it answer, do we know it?

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use installation::Library;
use installation::driver::Search;
use installation::machine::{Devices, Node};
use lab::{Gpu, Probe};

use super::ask::{Answer, Question};
use super::check::{Check, Status};
use crate::arguments::{Device, DoctorOptions};
use crate::beside;

/// The first driver of CUDA 12, below which frameworks of today do not start either.
const OLDEST: i32 = 12000;
/// The header from which the shim's tables are made.
const KNOWN: i32 = cuda_abi::CUDA_VERSION as i32;

const DRIVER: &str = "driver";

/// The driver that was named by an option or by the variable.
pub fn named(options: &DoctorOptions) -> Result<Option<PathBuf>> {
    if options.device == Some(Device::Soft) {
        return beside::software_driver().map(Some);
    }
    Ok(match &options.driver {
        Some(path) => Some(std::path::absolute(path)?),
        None => std::env::var_os("EBB_DRIVER").filter(|value| !value.is_empty()).map(PathBuf::from),
    })
}

pub fn find(options: &DoctorOptions, checks: &mut Vec<Check>) -> Option<Library> {
    let named = match named(options) {
        Ok(Some(path)) if !path.is_absolute() => {
            let found = format!("EBB_DRIVER is {}, which is not an absolute path", path.display());
            checks.push(Check::new(
                DRIVER,
                Status::Failed,
                found,
                "set it to the full path of a libcuda.so.1",
            ));
            return None;
        }
        Ok(named) => named,
        Err(error) => {
            checks.push(Check::told(DRIVER, Status::Failed, &format!("{error:#}")));
            return None;
        }
    };
    let search = Search::here(named.as_deref().map(Path::as_os_str));
    for (source, error) in &search.refused {
        checks.push(match search.found {
            Some(_) => Check::told(DRIVER, Status::Note, &format!("passed over, from {source}: {error}")),
            None => Check::told(DRIVER, Status::Failed, error),
        });
    }
    let Some((source, library)) = search.found else {
        // A file that was named and refused has its line already.
        checks.extend(match (named, search.shims.first()) {
            (Some(_), Some(shim)) => Some(own(shim)),
            (Some(_), None) => None,
            (None, _) => Some(missing()),
        });
        return None;
    };
    let version = library.version().map_or(String::new(), |version| format!(" ({version})"));
    let source = if named.is_some() { "by name".to_owned() } else { format!("through {source}") };
    checks.push(Check::ok(DRIVER, format!("found {}{version} {source}", library.path.display())));
    Some(library)
}

fn own(shim: &Path) -> Check {
    let found = format!("{} is ebb's own library", shim.display());
    Check::new(DRIVER, Status::Failed, found, "name the driver that should stand behind it")
}

fn missing() -> Check {
    let fix = "install NVIDIA's driver, or name its libcuda.so.1 with --driver or EBB_DRIVER; without a GPU, use --device soft";
    Check::new(DRIVER, Status::Failed, "there is no NVIDIA driver on this machine", fix)
}

/// Starts the driver in another process, without anything in front of it.
pub fn answers(driver: &Library, checks: &mut Vec<Check>) -> Option<Probe> {
    const NAME: &str = "answers";
    let path: OsString = driver.path.clone().into();
    let question = Question { driver: &path, set: Vec::new(), unset: &["LD_PRELOAD", "EBB_RUN"] };
    let failed = |found: String, fix: &str| Check::new(NAME, Status::Failed, found, fix);
    let again = "install the driver again, or name another with --driver";
    let (check, probe) = match question.ask() {
        Err(error) => (Check::told(NAME, Status::Failed, &format!("{error:#}")), None),
        Ok((_, Answer::Refused(reason))) => {
            (failed(format!("the driver cannot be used: {reason}"), again), None)
        }
        Ok((_, Answer::Crashed { signal })) => {
            (failed(format!("the driver crashed with signal {signal} when it was started"), again), None)
        }
        Ok((_, Answer::Silent)) => {
            let fix = "look into `dmesg` for messages of NVRM, and restart the machine if the GPU hangs";
            (failed("the driver did not answer within a minute".to_owned(), fix), None)
        }
        Ok((_, Answer::Probe(probe))) => (started(&probe), Some(probe)),
    };
    checks.push(check);
    probe
}

/// What to do about the answers of `cuInit` that people meet.
fn started(probe: &Probe) -> Check {
    let fix = match probe.init {
        0 => return Check::ok("answers", format!("it starts, and serves CUDA {}", readable(probe.version))),
        34 => {
            "this is the stand-in for linking from the CUDA toolkit: take `stubs` folders out of LD_LIBRARY_PATH"
        }
        100 => "see the check `gpu`, and CUDA_VISIBLE_DEVICES",
        3 | 999 => "load the kernel modules (`nvidia-modprobe -u -c0`), and see the check `gpu`",
        802 => "start NVIDIA's fabric manager, which this machine's GPUs wait for",
        803 => "restart the machine, so that the kernel module is of the library's version",
        804 => "take the folder `compat` of the CUDA toolkit out of LD_LIBRARY_PATH: this GPU cannot use it",
        _ => "run `nvidia-smi`, which names most problems of an installation",
    };
    let found = format!("the driver loads, but cuInit answers {} ({})", probe.init_name, probe.init);
    Check::new("answers", Status::Failed, found, fix)
}

/// CUDA writes 13.1 as 13010.
fn readable(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Nothing to say where the driver did not tell.
pub fn version(version: i32) -> Option<Check> {
    (version > 0).then(|| judge_version(version))
}

fn judge_version(version: i32) -> Check {
    let (here, known) = (readable(version), readable(KNOWN));
    if version < OLDEST {
        let found =
            format!("the driver serves CUDA {here}, and ebb is made for {} and later", readable(OLDEST));
        return Check::new("version", Status::Warning, found, "install a newer driver");
    }
    if version > KNOWN {
        let found = format!("the driver serves CUDA {here}, newer than {known}, which this ebb knows");
        let fix = "nothing to do; functions that came later are not seen (see the check `exports`), a newer ebb may";
        return Check::new("version", Status::Note, found, fix);
    }
    Check::ok("version", format!("CUDA {here} is known (up to {known})"))
}

/// Nothing to say where there is neither a version of the library nor a module.
pub fn kernel_module(library: Option<&str>, module: Option<&str>, works: bool) -> Option<Check> {
    const NAME: &str = "kernel-module";
    let module = module?;
    let Some(library) = library else { return Some(Check::ok(NAME, format!("{module} is loaded"))) };
    if library == module {
        return Some(Check::ok(NAME, format!("{module} is loaded, as the library wants")));
    }
    let found = format!("the library is of version {library}, the kernel module of {module}");
    Some(if works {
        let fix = "nothing to do if this is the toolkit's `compat` library; else restart the machine";
        Check::new(NAME, Status::Note, found, fix)
    } else {
        let fix = "restart the machine after an update of the driver; in a container, start it again";
        Check::new(NAME, Status::Failed, found, fix)
    })
}

pub fn gpu(gpus: &[Gpu], devices: &Devices, module: bool) -> Check {
    const NAME: &str = "gpu";
    let refusal = |node: &Node| Some(format!("{} ({})", node.path.display(), node.refusal.as_ref()?));
    let closed: Vec<_> = devices.all().filter_map(refusal).collect();
    if !gpus.is_empty() {
        return seen(gpus);
    }
    let failed = |found: &str, fix: &str| Check::new(NAME, Status::Failed, found, fix);
    if !closed.is_empty() {
        let fix =
            "join the group that owns the nodes (`ls -l /dev/nvidia*`), or in a container allow the devices";
        failed(&format!("device nodes cannot be opened: {}", closed.join(", ")), fix)
    } else if devices.windows.is_some() {
        failed("there is /dev/dxg, but no GPU", "update the driver of Windows")
    } else if devices.gpus.is_empty() && !module {
        let fix = "if the machine has one, install NVIDIA's driver and load it (`modprobe nvidia`); else use --device soft";
        failed("there is no GPU: NVIDIA's kernel module is not loaded", fix)
    } else if devices.gpus.is_empty() {
        let fix = "in a container, start it with the GPU (`--gpus all`); else run `nvidia-modprobe -u -c0`";
        failed("the kernel module is loaded, but there is no node /dev/nvidia0", fix)
    } else if devices.uvm.is_none() {
        let fix = "run `nvidia-modprobe -u -c0`, or in a container allow the device";
        failed("there is no node /dev/nvidia-uvm, without which CUDA does not start", fix)
    } else {
        let fix = "see the check `answers`, and whether CUDA_VISIBLE_DEVICES hides it";
        failed("there are device nodes, but the driver shows no GPU", fix)
    }
}

/// GPUs that the driver shows need nothing else.
pub fn seen(gpus: &[Gpu]) -> Check {
    Check::ok("gpu", gpus.iter().map(describe).collect::<Vec<_>>().join(", "))
}

fn describe(gpu: &Gpu) -> String {
    let Gpu { name, capability: (major, minor), memory_bytes, .. } = gpu;
    format!("{name} (compute {major}.{minor}, {} MiB)", memory_bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn probe(init: u32) -> Probe {
        Probe { version: 13000, init, init_name: "WORD".into(), gpus: Vec::new() }
    }

    fn node(path: &str, refusal: Option<io::Error>) -> Node {
        Node { path: path.into(), refusal }
    }

    #[test]
    fn versions_are_judged_by_the_header() {
        let judged = |number| version(number).unwrap();
        assert_eq!(judged(KNOWN).status, Status::Ok);
        assert_eq!(judged(OLDEST).status, Status::Ok);
        assert_eq!(judged(KNOWN + 10).status, Status::Note);
        assert_eq!(version(0), None);
        let old = judged(11080);
        assert_eq!(old.status, Status::Warning);
        assert!(old.found.contains("CUDA 11.8"), "{}", old.found);
    }

    #[test]
    fn a_mismatch_with_the_kernel_fails_only_what_does_not_work() {
        let judged = |library, works| kernel_module(library, Some("580.95.05"), works).unwrap().status;
        assert_eq!(judged(Some("580.95.05"), false), Status::Ok);
        assert_eq!(judged(Some("590.44.01"), true), Status::Note);
        assert_eq!(judged(Some("590.44.01"), false), Status::Failed);
        assert_eq!(judged(None, false), Status::Ok);
        assert_eq!(kernel_module(Some("580.95.05"), None, false), None);
    }

    #[test]
    fn a_gpu_that_is_not_there_is_told_from_one_that_cannot_be_reached() {
        let refused = || Some(io::Error::from(io::ErrorKind::PermissionDenied));
        let gpus = |refusal| vec![node("/dev/nvidia0", refusal)];
        let uvm = || Some(node("/dev/nvidia-uvm", None));
        let found = |devices: Devices, module| gpu(&[], &devices, module).found;
        assert!(found(Devices::default(), false).contains("not loaded"));
        assert!(found(Devices::default(), true).contains("no node /dev/nvidia0"));
        assert!(found(Devices { gpus: gpus(None), ..Devices::default() }, true).contains("nvidia-uvm"));
        let closed = Devices { gpus: gpus(refused()), uvm: uvm(), ..Devices::default() };
        assert!(found(closed, true).contains("/dev/nvidia0 (permission denied)"));
        let open = Devices { gpus: gpus(None), uvm: uvm(), ..Devices::default() };
        assert!(found(open, true).contains("shows no GPU"));
    }

    #[test]
    fn a_gpu_that_answers_is_described() {
        let card =
            Gpu { name: "NVIDIA H200".into(), capability: (9, 0), memory_bytes: 1 << 37, compute_mode: 0 };
        let check = gpu(&[card], &Devices::default(), true);
        assert_eq!(
            (check.status, check.found.as_str()),
            (Status::Ok, "NVIDIA H200 (compute 9.0, 131072 MiB)")
        );
    }

    #[test]
    fn every_refusal_to_start_has_a_fix() {
        for code in [3, 34, 100, 802, 803, 804, 999, 1] {
            let check = started(&probe(code));
            assert_eq!(check.status, Status::Failed);
            assert!(check.fix.is_some() && check.found.contains(&format!("({code})")), "{}", check.found);
        }
        assert_eq!(started(&probe(0)).status, Status::Ok);
    }
}
