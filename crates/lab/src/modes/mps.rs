//! NVIDIA's multi-process service: a control daemon of the campaign's own.
//!
//! The daemon detaches itself and starts a server when the first client comes, so neither is a child of ours. Both are
//! ended by a *warden*, a few lines of shell that wait for the end of their standard input: it ends when the campaign
//! does, in whatever way, and then the warden asks the daemon to quit, kills what does not go, and removes its folder.
//!
//! Where somebody else's service runs, ours is not started. Two could be had side by side, but then the other's clients
//! are on the same GPU, unseen by us, and every figure would be theirs too; and a service that somebody depends on is
//! not to be put at risk by an experiment. The other modes do not meet it: they look for a daemon in an empty folder.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use installation::Machine;
use installation::machine::Mps as Seen;
use model::Class;

use super::{Absence, Environment, Surroundings};

const CONTROL: &str = "nvidia-cuda-mps-control";
const PIPES: &str = "CUDA_MPS_PIPE_DIRECTORY";
const LOGS: &str = "CUDA_MPS_LOG_DIRECTORY";
/// Where the program lies when it is not on the path, as in containers that are given the driver.
const PLACES: [&str; 4] = ["/usr/local/nvidia/bin", "/usr/bin", "/usr/local/bin", "/opt/nvidia/bin"];
/// A socket's name may have 107 bytes, and the daemon adds to the folder's.
const LONGEST_FOLDER: usize = 80;
const PATIENCE: Duration = Duration::from_secs(15);
/// For a warden: longer than all its own patience.
const FAREWELL: Duration = Duration::from_secs(40);

/// `$0` is the control program, `$1` the folder. Numbers of processes are believed only while their names fit.
const WARDEN: &str = r#"
cat > /dev/null
pids="$(cat "$1/pipe/nvidia-cuda-mps-control.pid" 2> /dev/null) $(echo get_server_list | timeout 5 "$0" 2> /dev/null)"
there() { for pid in $pids; do grep -qs '^nvidia-cuda-mps' "/proc/$pid/comm" && return 0; done; return 1; }
end() { for pid in $pids; do grep -qs '^nvidia-cuda-mps' "/proc/$pid/comm" && kill "$1" "$pid"; done; }
await() { n=0; while there && [ $n -lt 60 ]; do sleep 0.1; n=$((n + 1)); done; }
echo quit | timeout 10 "$0" > /dev/null 2>&1
await; there && { end -TERM; await; }; there && { end -KILL; await; }
rm -rf "$1"
"#;

/// The mode: a client of the daemon, perhaps with priorities.
pub struct Mps {
    pub daemon: Rc<Daemon>,
    /// Whether clients have priorities, and their streams.
    pub priorities: bool,
}

/// Dropped, it is ended and its folder is gone.
pub struct Daemon {
    folder: PathBuf,
    warden: Child,
}

/// Whether the service can be had on this machine, as far as can be seen without starting it.
pub fn judge() -> Result<(), Absence> {
    let seen = Machine::here().mps(std::env::var_os(PIPES).as_deref());
    foreign(&seen)?;
    control().map(drop)
}

impl Daemon {
    /// `folder` is made, and goes with the daemon.
    pub fn start(folder: &Path) -> Result<Daemon, Absence> {
        let control = control()?;
        if folder.as_os_str().len() > LONGEST_FOLDER {
            let folder = folder.display();
            return Err(Absence(format!(
                "{folder} is too long a name for sockets; EBB_RUNTIME_DIR names another"
            )));
        }
        for part in ["pipe", "log"] {
            let part = folder.join(part);
            std::fs::create_dir_all(&part)
                .map_err(|error| Absence(format!("{}: {error}", part.display())))?;
        }
        let warden = warden(&control, folder).map_err(|error| Absence(format!("no shell: {error}")))?;
        // From here on the end of this value ends whatever has been started.
        let daemon = Daemon { folder: folder.to_owned(), warden };
        daemon.control(&control, &["-d"], "")?;
        let deadline = Instant::now() + PATIENCE;
        while let Err(absence) = daemon.control(&control, &[], "get_server_list\n") {
            if Instant::now() > deadline {
                return Err(absence);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(daemon)
    }

    /// Says something to the daemon by the program that is made for it.
    fn control(&self, program: &Path, arguments: &[&str], said: &str) -> Result<(), Absence> {
        use std::io::Write as _;
        let refused = |reason: String| Absence(format!("{CONTROL} does not answer: {reason}"));
        let mut command = Command::new("timeout");
        command.arg("20").arg(program).args(arguments).envs(variables(&self.folder));
        // The daemon keeps the output of the command that starts it: a pipe would never end.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| refused(error.to_string()))?;
        if let Some(mut input) = child.stdin.take() {
            let _ = input.write_all(said.as_bytes());
        }
        match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(refused(status.to_string())),
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

impl Surroundings for Mps {
    fn environment(&self, class: Class) -> Environment {
        let mut environment: Environment =
            variables(&self.daemon.folder).map(|(name, value)| (name.into(), Some(value))).to_vec();
        if self.priorities {
            // Zero is normal, and there is nothing above.
            let below_normal = if class == Class::Latency { "0" } else { "1" };
            environment.push(("CUDA_MPS_CLIENT_PRIORITY".into(), Some(below_normal.into())));
        }
        environment
    }

    /// A client's fault is every client's fault, and may end the server.
    fn is_fragile(&self) -> bool {
        true
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.warden.stdin.take());
        let deadline = Instant::now() + FAREWELL;
        while matches!(self.warden.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.warden.kill();
        let _ = self.warden.wait();
    }
}

fn variables(folder: &Path) -> [(&'static str, OsString); 2] {
    [(PIPES, folder.join("pipe").into()), (LOGS, folder.join("log").into())]
}

/// In a group of its own: what a terminal sends to ours must not end it before its work is done.
fn warden(control: &Path, folder: &Path) -> std::io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(WARDEN).arg(control).arg(folder).envs(variables(folder)).process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
}

fn control() -> Result<PathBuf, Absence> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(PLACES.map(PathBuf::from));
    let found = places.map(|place| place.join(CONTROL)).find(|program| program.is_file());
    found.ok_or_else(|| Absence(format!("there is no {CONTROL} on this machine")))
}

/// Refuses where a service of somebody else runs. One that was killed leaves its socket behind, which refuses calls.
fn foreign(seen: &Seen) -> Result<(), Absence> {
    if let Some(pid) = seen.processes.first() {
        return Err(Absence(format!("MPS is already running, started by someone else (process {pid})")));
    }
    match &seen.pipes {
        Some(folder) if answers(&folder.join("control")) => {
            let folder = folder.display();
            Err(Absence(format!("MPS is already running, started by someone else (it answers in {folder})")))
        }
        _ => Ok(()),
    }
}

fn answers(socket: &Path) -> bool {
    match UnixStream::connect(socket) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_service_of_somebody_else_is_seen_and_named() {
        let folder = tempfile::tempdir().unwrap();
        let seen = |processes, pipes| Seen { processes, pipes };
        let running = foreign(&seen(vec![71], None)).unwrap_err().to_string();
        assert!(running.contains("someone else") && running.contains("71"), "{running}");
        let listener = std::os::unix::net::UnixListener::bind(folder.path().join("control")).unwrap();
        let pipes = Some(folder.path().to_owned());
        assert!(foreign(&seen(vec![], pipes.clone())).is_err());
        drop(listener);
        assert_eq!(foreign(&seen(vec![], pipes)), Ok(()), "what the dead leave behind is no service");
        assert_eq!(foreign(&seen(vec![], None)), Ok(()));
    }

    #[test]
    fn a_warden_ends_the_daemon_and_what_it_left_when_its_input_ends() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("d");
        std::fs::create_dir_all(folder.join("pipe")).unwrap();
        // A daemon that notes what it is told.
        let (control, said) = (place.path().join("control"), place.path().join("said"));
        std::fs::write(&control, format!("#!/bin/sh\ncat >> {}\n", said.display())).unwrap();
        std::fs::set_permissions(&control, std::fs::Permissions::from_mode(0o755)).unwrap();
        let daemon = Daemon { warden: warden(&control, &folder).unwrap(), folder: folder.clone() };
        let mps = Mps { daemon: Rc::new(daemon), priorities: true };
        let priority = |class| mps.environment(class).pop().unwrap().1.unwrap();
        assert_eq!((priority(Class::Latency), priority(Class::BestEffort)), ("0".into(), "1".into()));
        drop(mps);
        assert_eq!(std::fs::read_to_string(said).unwrap(), "get_server_list\nquit\n");
        assert!(!folder.exists());
    }
}
