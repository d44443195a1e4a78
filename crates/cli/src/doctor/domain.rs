//! How tenants will share a GPU, and what the shared domain needs.

use daemon::{Configuration, Place, Scope, client, configuration_place, domain_choice};
use lab::Gpu;
use model::Domain;
use mps::Foreign;

use super::check::{Check, Status};
use crate::arguments::{Device, DoctorOptions};

const NAME: &str = "domain";

/// `nvidia-smi`'s words for what `cuDeviceGetAttribute` answers.
const PROHIBITED: i32 = 2;
const EXCLUSIVE: i32 = 3;

/// What was seen of the machine.
struct Seen<'a> {
    /// A real GPU needs MPS.
    mps_needed: bool,
    control: bool,
    /// A service that is not the daemon's own.
    foreign: Option<Foreign>,
    gpus: &'a [Gpu],
}

pub fn check(options: &DoctorOptions, gpus: &[Gpu]) -> Check {
    let Configured { domain, own_mps, chosen } = configured();
    let seen = Seen {
        mps_needed: options.device != Some(Device::Soft) && !gpus.is_empty(),
        control: mps::find().is_ok(),
        // While the daemon has one, the processes that can be seen are most likely its own.
        foreign: if own_mps { None } else { mps::foreign() },
        gpus,
    };
    let check = match domain {
        Domain::Isolated => judge_isolated(&seen),
        Domain::Shared => judge_shared(&seen),
    };
    said_with(check, chosen)
}

/// A check that also says why it is this domain.
fn said_with(mut check: Check, chosen: Option<String>) -> Check {
    if let Some(reason) = chosen {
        check.found = format!("{}; chosen by itself: {reason}", check.found);
    }
    check
}

/// How tenants share a GPU here.
struct Configured {
    domain: Domain,
    /// Whether a daemon has an MPS of its own.
    own_mps: bool,
    /// Why it is this domain, where it was left open.
    chosen: Option<String>,
}

/// The domain of the daemon that answers, else of the one that would be started.
fn configured() -> Configured {
    let places = Place::candidates().unwrap_or_default();
    if let Some(report) = places.iter().find_map(|place| client::report(place).ok()) {
        let daemon = report.daemon;
        return Configured {
            domain: daemon.domain.parse().unwrap_or_default(),
            own_mps: daemon.mps.is_some(),
            chosen: daemon.domain_choice.map(|choice| choice.reason),
        };
    }
    let user = rustix::process::geteuid().as_raw();
    let read = |path: &std::path::PathBuf| Configuration::read(path, false, Scope::User, user).ok();
    let configuration = configuration_place(Scope::User).as_ref().and_then(read);
    let own = Place::own().map(|own| own.mps()).unwrap_or_default();
    let automatic = configuration.as_ref().filter(|there| there.automatic);
    let choice = automatic.map(|configuration| domain_choice(configuration, &own));
    let written = configuration.map_or_else(Domain::default, |configuration| configuration.token.domain);
    Configured {
        domain: choice.map_or(written, |choice| choice.domain),
        own_mps: false,
        chosen: choice.map(|choice| choice.because.sentence().to_owned()),
    }
}

fn judge_isolated(seen: &Seen<'_>) -> Check {
    let in_mode = |mode| seen.gpus.iter().any(|gpu| gpu.compute_mode == mode);
    if in_mode(EXCLUSIVE) || in_mode(PROHIBITED) {
        let found = "isolated, but a GPU's compute mode lets at most one process have a context";
        return Check::new(NAME, Status::Warning, found, "as root: `nvidia-smi -c DEFAULT`");
    }
    Check::ok(NAME, "isolated: one context at a time, and nobody's fault is another's")
}

fn judge_shared(seen: &Seen<'_>) -> Check {
    if !seen.mps_needed {
        return Check::ok(NAME, "shared: all contexts at once, on the software GPU");
    }
    if !seen.control {
        let found = format!("shared, but {}", mps::Error::NoControl);
        return Check::new(NAME, Status::Failed, found, "install it, or use `domain = \"isolated\"`");
    }
    if seen.gpus.iter().any(|gpu| gpu.compute_mode == PROHIBITED) {
        let found = "shared, but a GPU's compute mode lets nobody have a context";
        return Check::new(NAME, Status::Failed, found, "as root: `nvidia-smi -c DEFAULT`");
    }
    if let Some(foreign) = &seen.foreign {
        let found = format!(
            "shared, and MPS of someone else runs ({foreign}): ebb leaves it alone, and its clients take turns with ebb's"
        );
        let fix =
            "end it if it is not needed; in compute mode EXCLUSIVE_PROCESS only one of the two gets the GPU";
        return Check::new(NAME, Status::Warning, found, fix);
    }
    let found = "shared: all contexts at once, under MPS; a fault of one tenant is everybody's";
    Check::new(NAME, Status::Note, found, "nothing to do if that is wanted; else `domain = \"isolated\"`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(compute_mode: i32) -> Gpu {
        Gpu { name: "NVIDIA H200".into(), capability: (9, 0), memory_bytes: 1 << 37, compute_mode }
    }

    #[test]
    fn what_the_shared_domain_needs_and_costs_is_said_beforehand() {
        let gpus = [gpu(0)];
        let well = || Seen { mps_needed: true, control: true, foreign: None, gpus: &gpus };
        let fine = judge_shared(&well());
        assert_eq!((fine.status, fine.found.contains("everybody's")), (Status::Note, true));
        let missing = judge_shared(&Seen { control: false, ..well() });
        assert_eq!((missing.status, missing.found.contains("package")), (Status::Failed, true));
        let foreign = judge_shared(&Seen { foreign: Some(Foreign::Process(71)), ..well() });
        assert_eq!((foreign.status, foreign.found.contains("process 71")), (Status::Warning, true));
        let closed = judge_shared(&Seen { gpus: &[gpu(PROHIBITED)], ..well() });
        assert_eq!(closed.status, Status::Failed);
        let exclusive = judge_shared(&Seen { gpus: &[gpu(EXCLUSIVE)], ..well() });
        assert_eq!(exclusive.status, Status::Note, "one server for all is one process");
        let soft = judge_shared(&Seen { mps_needed: false, control: false, ..well() });
        assert_eq!(soft.status, Status::Ok);
    }

    #[test]
    fn a_domain_that_was_left_open_is_told_with_its_reason() {
        let check = || Check::ok(NAME, "isolated");
        assert_eq!(said_with(check(), None).found, "isolated");
        let told = said_with(check(), Some("a switch is fast enough".to_owned()));
        assert_eq!(told.found, "isolated; chosen by itself: a switch is fast enough");
    }

    #[test]
    fn the_isolated_domain_needs_a_gpu_that_takes_several_processes() {
        let status = |gpus: &[Gpu]| {
            judge_isolated(&Seen { mps_needed: true, control: false, foreign: None, gpus }).status
        };
        assert_eq!(status(&[gpu(0)]), Status::Ok);
        assert_eq!(status(&[gpu(0), gpu(EXCLUSIVE)]), Status::Warning);
    }
}
