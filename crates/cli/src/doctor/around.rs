//! What else is on this machine: MPS, containers, other preloads.

use installation::machine::{Mps, OtherPreload};
use installation::{Library, Machine};

use super::check::{Check, Status};

pub fn mps(machine: &Machine) -> Check {
    judge_mps(&machine.mps(std::env::var_os("CUDA_MPS_PIPE_DIRECTORY").as_deref()))
}

fn judge_mps(mps: &Mps) -> Check {
    const NAME: &str = "mps";
    let quit =
        "nothing to do if tenants may share one context's fate; else `echo quit | nvidia-cuda-mps-control`";
    match (mps.processes.as_slice(), &mps.pipes) {
        ([], None) => Check::ok(NAME, "no Multi-Process Service runs"),
        ([], Some(pipes)) => {
            let found =
                format!("there is a service's pipe in {}, and no service to be seen", pipes.display());
            let fix = "nothing to do if it runs outside this container; else remove the folder";
            Check::new(NAME, Status::Note, found, fix)
        }
        (processes, _) => {
            let processes: Vec<_> = processes.iter().map(u32::to_string).collect();
            let found = format!("the Multi-Process Service runs (process {})", processes.join(", "));
            Check::new(NAME, Status::Note, found, quit)
        }
    }
}

pub fn preloads(machine: &Machine, shim: Option<&Library>) -> Check {
    let mut others = machine.preloads(std::env::var_os("LD_PRELOAD").as_deref());
    // Under `ebb run` there is one more, which is none other.
    let ours = |other: &OtherPreload| {
        shim.is_some_and(|shim| other.path.canonicalize().is_ok_and(|path| path == shim.real_path))
    };
    others.retain(|other| !ours(other));
    judge_preloads(&others)
}

fn judge_preloads(others: &[OtherPreload]) -> Check {
    const NAME: &str = "other-preloads";
    let named = |other: &OtherPreload| {
        let product = other.interposer.map_or(String::new(), |product| format!(" of {product}"));
        format!("{}{product} ({})", other.path.display(), other.origin)
    };
    let list =
        |others: &[&OtherPreload]| others.iter().map(|other| named(other)).collect::<Vec<_>>().join(", ");
    let rivals: Vec<_> = others.iter().filter(|other| other.interposer.is_some()).collect();
    if !rivals.is_empty() {
        let found = format!("somebody else stands in for the driver: {}", list(&rivals));
        let fix = "use one of the two: take the other out of LD_PRELOAD or /etc/ld.so.preload";
        return Check::new(NAME, Status::Warning, found, fix);
    }
    let all: Vec<_> = others.iter().collect();
    match all.is_empty() {
        true => Check::ok(NAME, "none"),
        false => Check::ok(NAME, format!("none that is known to stand in for the driver; {}", list(&all))),
    }
}

pub fn container(machine: &Machine, driver: bool) -> Check {
    const NAME: &str = "container";
    let kubernetes = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    match machine.container(kubernetes) {
        None => Check::ok(NAME, "none seen"),
        Some(container) if driver => Check::ok(NAME, format!("inside {container}, with a driver")),
        Some(container) => {
            let found = format!("inside {container}, and no driver was given to it");
            let fix = "start it with the GPU (`docker run --gpus all`, a pod's `nvidia.com/gpu`), or use --device soft";
            Check::new(NAME, Status::Warning, found, fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use installation::machine::Origin;

    fn other(path: &str, interposer: Option<&'static str>) -> OtherPreload {
        OtherPreload { path: path.into(), origin: Origin::Environment, interposer }
    }

    #[test]
    fn rivals_are_called_by_name() {
        let check = judge_preloads(&[other("/a/libvgpu.so", Some("HAMi")), other("/a/libjemalloc.so", None)]);
        assert_eq!(check.status, Status::Warning);
        assert!(check.found.contains("/a/libvgpu.so of HAMi (LD_PRELOAD)"), "{}", check.found);
        assert!(!check.found.contains("jemalloc"), "{}", check.found);
        assert_eq!(judge_preloads(&[other("/a/libjemalloc.so", None)]).status, Status::Ok);
        assert_eq!(judge_preloads(&[]).status, Status::Ok);
    }

    #[test]
    fn a_service_is_noted_and_is_no_failure() {
        let mps = |processes: &[u32], pipes: Option<&str>| {
            judge_mps(&Mps { processes: processes.to_vec(), pipes: pipes.map(Into::into) })
        };
        assert_eq!(mps(&[], None).status, Status::Ok);
        assert_eq!(mps(&[], Some("/tmp/nvidia-mps")).status, Status::Note);
        let running = mps(&[8, 71], None);
        assert_eq!(running.status, Status::Note);
        assert!(running.found.contains("8, 71"), "{}", running.found);
    }
}
