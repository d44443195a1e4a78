//! A control daemon of ours, from its start to its end.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::logs::{self, Event, Tail};
use crate::{Error, control, warden};

/// A socket's name may have 107 bytes, and the daemon adds to the folder's.
const LONGEST_FOLDER: usize = 80;
const PATIENCE: Duration = Duration::from_secs(15);
/// For a warden: longer than all its own patience.
const FAREWELL: Duration = Duration::from_secs(40);

/// Who may become a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever may enter the folder that the service's own lies in, and is served by MPS: one user at a time.
    Everybody,
    Owner,
}

/// Dropped, it is ended and its folder is gone.
#[derive(Debug)]
pub struct Service {
    folder: PathBuf,
    program: PathBuf,
    warden: Child,
    /// The control daemon's number.
    control: Option<u32>,
    control_log: Tail,
    server_log: Tail,
}

impl Service {
    /// Starts a control daemon and returns when it answers. `program` is what [`find`](crate::find) found. `folder` is made, after what was left there has been ended,
    /// and goes with the service.
    pub fn start(program: &Path, folder: &Path, access: Access) -> Result<Service, Error> {
        if folder.as_os_str().len() > LONGEST_FOLDER {
            return Err(Error::LongFolder(folder.to_owned()));
        }
        if folder.exists() {
            warden::clear(program, folder).map_err(Error::NoShell)?;
        }
        make(folder, access)?;
        let warden = warden::post(program, folder).map_err(Error::NoShell)?;
        // From here on the end of this value ends whatever has been started.
        let mut service = Service {
            folder: folder.to_owned(),
            program: program.to_owned(),
            warden,
            control: None,
            control_log: Tail::new(&folder.join("log/control.log")),
            server_log: Tail::new(&folder.join("log/server.log")),
        };
        service.launch()?;
        Ok(service)
    }

    fn launch(&mut self) -> Result<(), Error> {
        self.say(&["-d"], "")?;
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.say(&[], "get_server_list\n") {
            if Instant::now() > deadline {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let number = fs::read_to_string(self.pipes().join("nvidia-cuda-mps-control.pid"));
        self.control = number.ok().and_then(|text| text.trim().parse().ok());
        Ok(())
    }

    /// What a client must find in its environment.
    pub fn variables(&self) -> [(&'static str, OsString); 2] {
        warden::variables(&self.folder)
    }

    pub fn pipes(&self) -> PathBuf {
        self.folder.join("pipe")
    }

    /// What has happened since the last look.
    pub fn look(&mut self) -> Vec<Event> {
        let faults =
            self.server_log.lines().iter().filter_map(|line| logs::of_server(line)).collect::<Vec<_>>();
        let ends = self.control_log.lines();
        let ends = ends.iter().filter_map(|line| logs::of_control(line));
        let gone = self.control.take_if(|pid| !is_control(*pid)).map(|_| Event::ControlGone);
        faults.into_iter().chain(ends).chain(gone).collect()
    }

    /// Whether all servers that there are serve. One that has met a fault does not until its clients have gone.
    pub fn is_well(&self) -> bool {
        let Ok(servers) = self.ask("get_server_list\n") else { return false };
        let mut servers = servers.lines().filter_map(|line| line.trim().parse::<u32>().ok());
        servers.all(|server| {
            self.ask(&format!("get_server_status {server}\n")).is_ok_and(|state| !state.contains("FAULT"))
        })
    }

    fn say(&self, arguments: &[&str], said: &str) -> Result<(), Error> {
        // The daemon keeps the output of the command that starts it: a pipe would never end.
        self.run(arguments, said, Stdio::null).map(drop)
    }

    fn ask(&self, question: &str) -> Result<String, Error> {
        self.run(&[], question, Stdio::piped)
    }

    /// Says something to the daemon by the program that is made for it.
    fn run(&self, arguments: &[&str], said: &str, output: fn() -> Stdio) -> Result<String, Error> {
        let silent = |reason: String| Error::Silent { reason, said: self.last_words() };
        let mut command = Command::new("timeout");
        command.arg("20").arg(&self.program).args(arguments).envs(self.variables());
        command.stdin(Stdio::piped()).stdout(output()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| silent(error.to_string()))?;
        if let Some(mut input) = child.stdin.take() {
            let _ = input.write_all(said.as_bytes());
        }
        match child.wait_with_output() {
            Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            Ok(output) => Err(silent(output.status.to_string())),
            Err(error) => Err(silent(error.to_string())),
        }
    }

    /// The last line of the daemon's log.
    fn last_words(&self) -> Option<String> {
        let log = fs::read_to_string(self.folder.join("log/control.log")).ok()?;
        log.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
    }
}

impl Drop for Service {
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

fn make(folder: &Path, access: Access) -> Result<(), Error> {
    let mode = if access == Access::Owner { 0o700 } else { 0o755 };
    for path in [folder.to_owned(), folder.join("pipe"), folder.join("log")] {
        let made = fs::DirBuilder::new().recursive(true).mode(mode).create(&path);
        // What this process makes is narrower by default.
        let made = made.and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)));
        made.map_err(|source| Error::Folder { path, source })?;
    }
    Ok(())
}

/// A number is the control daemon's only while its name fits. The dead keep theirs until somebody asks for them, but have no
/// words any more.
fn is_control(pid: u32) -> bool {
    let has = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let name = has("comm");
    !name.is_empty() && control::CONTROL.starts_with(name.trim_end()) && !has("cmdline").is_empty()
}
