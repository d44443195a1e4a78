//! Will tenants be seated, and how will they be stopped?

use std::fs;

use daemon::{Configuration, Error, Place, Scope, client, configuration_place};
use installation::Library;
use switch::driver::{self, Unknown};

use super::check::{Check, Status};
use crate::arguments::{Device, DoctorOptions};

/// A daemon that answers, or nothing that keeps one from being started.
pub fn daemon() -> Check {
    const NAME: &str = "daemon";
    let places = match Place::candidates() {
        Ok(places) => places,
        Err(error) => return Check::told(NAME, Status::Failed, &error),
    };
    for place in &places {
        match client::report(place) {
            Ok(report) => {
                let processes: usize = report.gpus.iter().map(|gpu| gpu.processes.len()).sum();
                let found = format!(
                    "answers in {}, for the {}, with {processes} processes seated",
                    place.folder().display(),
                    report.daemon.scope
                );
                return Check::ok(NAME, found);
            }
            Err(Error::NoDaemon { .. }) => {}
            Err(error) => return Check::told(NAME, Status::Warning, &error),
        }
    }
    match Place::own() {
        Ok(own) => judge_start(&own, &own_configuration()),
        Err(error) => Check::told(NAME, Status::Failed, &error),
    }
}

/// Whether one could be started at a place where none answers.
fn judge_start(place: &Place, configuration: &Result<(), Error>) -> Check {
    const NAME: &str = "daemon";
    if let Err(error) = configuration {
        let fix = "mend the file; a daemon does not start with it";
        return Check::new(NAME, Status::Warning, error.to_string(), fix);
    }
    if place.is_taken() {
        let found = format!("a daemon holds {} and does not answer", place.folder().display());
        return Check::new(NAME, Status::Warning, found, "end it: its number is in `ps -C ebb`");
    }
    Check::ok(NAME, format!("none runs; `ebb run` starts one in {}", place.folder().display()))
}

fn own_configuration() -> Result<(), Error> {
    let user = rustix::process::geteuid().as_raw();
    let Some(path) = configuration_place(Scope::User) else { return Ok(()) };
    Configuration::read(&path, false, Scope::User, user).map(drop)
}

/// What a best-effort tenant will get. Nothing to say where there is no driver.
pub fn switch(options: &DoctorOptions, library: Option<&Library>) -> Option<Check> {
    let library = library?;
    let software = library.exports.iter().any(|export| export.name == "ebb_softgpu_control");
    if software || options.device == Some(Device::Soft) {
        let found = "a software GPU: best-effort tenants are stopped in the middle of a kernel";
        return Some(Check::ok("switch", found));
    }
    Some(judge_switch(&fs::read(driver::VERSION_FILE).unwrap_or_default()))
}

fn judge_switch(version: &[u8]) -> Check {
    const NAME: &str = "switch";
    let lower = "best-effort tenants are stopped between launches only";
    let fix = "nothing to do if that is enough; else use a driver of the 580 line with open kernel modules";
    match driver::judge(version) {
        Ok(driver) => {
            let found = format!(
                "driver {} is known: best-effort tenants are stopped in the middle of a kernel",
                driver.version
            );
            Check::ok(NAME, found)
        }
        Err(unknown @ (Unknown::Line(_) | Unknown::Proprietary(_))) => {
            Check::new(NAME, Status::Note, format!("{lower}: {unknown}"), fix)
        }
        Err(unknown @ Unknown::Unreadable) => {
            Check::new(NAME, Status::Warning, format!("{lower}: {unknown}"), fix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tenant_gets_depends_on_the_driver() {
        let judged = |flavour: &str, version: &str| {
            judge_switch(
                format!("NVRM version: NVIDIA UNIX {flavour} for x86_64  {version}  Release\n").as_bytes(),
            )
        };
        let known = judged("Open Kernel Module", "580.159.04");
        assert_eq!((known.status, known.found.contains("in the middle of a kernel")), (Status::Ok, true));
        let newer = judged("Open Kernel Module", "595.45.01");
        assert_eq!((newer.status, newer.found.contains("between launches only")), (Status::Note, true));
        assert_eq!(judge_switch(b"").status, Status::Warning);
    }

    #[test]
    fn what_keeps_a_daemon_from_starting_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::at(folder.path());
        assert_eq!(judge_start(&place, &Ok(())).status, Status::Ok);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "looking leaves nothing behind");
        let wrong = Error::Configuration("/x:3: wrong".to_owned());
        assert_eq!(judge_start(&place, &Err(wrong)).found, "/x:3: wrong");
        let _lock = place.lock().unwrap();
        assert!(judge_start(&place, &Ok(())).found.contains("does not answer"));
    }
}
