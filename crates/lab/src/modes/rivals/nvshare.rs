//! nvshare: a preloaded library and a scheduler that hands the whole GPU from process to process.
//!
//! Whoever launches first has the GPU until it has been idle for some seconds, or until its quantum is over and somebody
//! else waits. There are no priorities. The quantum is 30 seconds unless it is told otherwise, and then a whole run could
//! pass in one; it is set to the shortest that there is, one second.
//!
//! Library and scheduler meet at a fixed place that takes root to make, so there is one scheduler to a machine; a new one
//! would take the place of another without asking, so where one answers, ours is not started.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use model::Class;
use serde_json::Value;

use super::super::{Absence, Environment, Service, Surroundings};
use super::{Parts, preload, process_named, remark};

pub const PARTS: Parts = Parts {
    product: "nvshare",
    libraries: &["libnvshare.so"],
    programs: &["nvshare-scheduler", "nvsharectl"],
};

/// Where its library and its scheduler meet.
pub const SOCKET: &str = "/var/run/nvshare/scheduler.sock";

const REMARKS: &[&str] = &[
    "one tenant at a time has the GPU, for a quantum of 1 s (its default is 30 s); there are no priorities",
    "extensible launches (cuLaunchKernelEx), graphs and stream-ordered allocations do not wait for the GPU",
    "allocations become managed memory",
];

const QUANTUM: &str = "1";
const PATIENCE: Duration = Duration::from_secs(10);

pub struct Nvshare {
    library: PathBuf,
    // In this order: the scheduler ends before its place is cleared.
    _scheduler: Service,
    _place: Place,
}

impl Nvshare {
    pub fn start(path: &Path, folder: &Path, socket: &Path) -> Result<Nvshare, Absence> {
        let [scheduler, control] = [0, 1].map(|part| path.join(PARTS.programs[part]));
        if UnixStream::connect(socket).is_ok() {
            let who = process_named("/proc".as_ref(), PARTS.programs[0]);
            let who = who.map_or(String::new(), |pid| format!(" (process {pid})"));
            return Err(Absence(format!(
                "nvshare's scheduler is already running, started by someone else{who}"
            )));
        }
        let words = [scheduler.into_os_string()];
        let mut service =
            Service::start("nvshare's scheduler", &words, &Vec::new(), &folder.join("scheduler.log"))?;
        let place = Place { socket: socket.to_owned() };
        // To set the quantum is also to see that it is up.
        service.await_up(PATIENCE, || set_quantum(&control)).map_err(|Absence(reason)| {
            Absence(format!("{reason}; it needs the folder of {}, which root may make", socket.display()))
        })?;
        Ok(Nvshare { library: path.join(PARTS.libraries[0]), _scheduler: service, _place: place })
    }
}

impl Surroundings for Nvshare {
    fn environment(&self, _class: Class) -> Environment {
        preload(&self.library)
    }

    fn status(&self) -> Option<Value> {
        Some(remark(PARTS.product, REMARKS))
    }
}

fn set_quantum(control: &Path) -> bool {
    let mut command = Command::new(control);
    command.args(["-T", QUANTUM]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The scheduler leaves its socket behind, and with it the folder.
struct Place {
    socket: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
        if let Some(folder) = self.socket.parent() {
            // Fails, as it should, where something else lies in it.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A scheduler that waits for its end and a control program that notes what it is told.
    fn build(scheduler: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let control = format!("#!/bin/sh\necho \"$@\" > {}\n", told.display());
        for (name, script) in [(PARTS.programs[0], scheduler), (PARTS.programs[1], &control)] {
            let program = folder.path().join(name);
            fs::write(&program, script).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    #[test]
    fn the_quantum_is_short_and_nothing_stays_behind() {
        let build = build("#!/bin/sh\nexec sleep 600\n");
        let place = build.path().join("place");
        fs::create_dir(&place).unwrap();
        let socket = place.join("scheduler.sock");
        let nvshare = Nvshare::start(build.path(), build.path(), &socket).unwrap();
        assert_eq!(fs::read_to_string(build.path().join("told")).unwrap(), "-T 1\n");
        for class in [Class::Latency, Class::BestEffort] {
            let environment = nvshare.environment(class);
            assert_eq!(environment[0].0, "LD_PRELOAD");
            let library = build.path().join("libnvshare.so");
            assert!(
                environment[0].1.as_ref().unwrap().to_str().unwrap().starts_with(library.to_str().unwrap())
            );
        }
        fs::write(&socket, "").unwrap();
        drop(nvshare);
        assert!(!place.exists());
    }

    #[test]
    fn a_scheduler_of_somebody_else_is_left_alone() {
        let build = build("#!/bin/sh\nexec sleep 600\n");
        let socket = build.path().join("scheduler.sock");
        let _listener = UnixListener::bind(&socket).unwrap();
        let refused = Nvshare::start(build.path(), build.path(), &socket).err().unwrap().to_string();
        assert!(refused.contains("someone else"), "{refused}");
        assert!(socket.exists());
    }
}
