//! A control daemon of ours, from its start to its end.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::logs::{self, Event, Tail};
use crate::warden::{self, End};
use crate::{Error, control};

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

impl Access {
    /// Of the folder.
    fn mode(self) -> u32 {
        if self == Access::Owner { 0o700 } else { 0o755 }
    }
}

/// Dropped, it is ended and its folder is gone; or, where clients are to outlast its owner, when the last of them has gone.
#[derive(Debug)]
pub struct Service {
    folder: PathBuf,
    program: PathBuf,
    end: End,
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
        check(folder)?;
        Service::begin(program, folder, access, End::Now)
    }

    /// The same, for an owner that comes and goes while clients stay: the service outlasts it for as long as there are clients, and the
    /// next owner with the same folder takes it over.
    pub fn keep(program: &Path, folder: &Path, access: Access) -> Result<Service, Error> {
        check(folder)?;
        match Service::take_over(program, folder, access) {
            Some(service) => Ok(service),
            None => Service::begin(program, folder, access, End::WithLastClient),
        }
    }

    fn begin(program: &Path, folder: &Path, access: Access, end: End) -> Result<Service, Error> {
        if folder.exists() {
            warden::clear(program, folder).map_err(Error::NoShell)?;
        }
        make(folder, access)?;
        // From here on the end of this value ends whatever has been started.
        let mut service = Service::posted(program, folder, end)?;
        service.launch()?;
        Ok(service)
    }

    /// A warden of ours, and nothing that it would end yet.
    fn posted(program: &Path, folder: &Path, end: End) -> Result<Service, Error> {
        let owner = format!("{} {:?}", std::process::id(), SystemTime::now());
        let path = folder.join(warden::OWNER);
        fs::write(&path, &owner).map_err(|source| Error::Folder { path, source })?;
        Ok(Service {
            folder: folder.to_owned(),
            program: program.to_owned(),
            end,
            warden: warden::post(program, folder, &owner, end).map_err(Error::NoShell)?,
            control: None,
            control_log: Tail::new(&folder.join("log/control.log")),
            server_log: Tail::new(&folder.join("log/server.log")),
        })
    }

    /// The service that an owner has left in the folder, if it is there for the same users, serves, and has clients: one without is ended any
    /// moment.
    fn take_over(program: &Path, folder: &Path, access: Access) -> Option<Service> {
        let mode = fs::metadata(folder).ok()?.permissions().mode() & 0o777;
        let left = number_in(folder).filter(|pid| mode == access.mode() && is_control(*pid))?;
        let mut service = Service::posted(program, folder, End::WithLastClient).ok()?;
        if service.has_clients() && service.is_well() {
            service.control = Some(left);
            // What has happened before is known to those whom it concerned.
            while !service.control_log.lines().is_empty() || !service.server_log.lines().is_empty() {}
            return Some(service);
        }
        service.end();
        None
    }

    /// Ends it now, whoever is there.
    pub fn end(mut self) {
        let _ = self.warden.kill();
        let _ = warden::clear(&self.program, &self.folder);
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
        self.control = number_in(&self.folder);
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

    fn servers(&self) -> Option<Vec<u32>> {
        Some(numbers(&self.ask("get_server_list\n").ok()?))
    }

    /// Whether anybody is served.
    fn has_clients(&self) -> bool {
        let of = |server: &u32| {
            self.ask(&format!("get_client_list {server}\n")).is_ok_and(|list| !numbers(&list).is_empty())
        };
        self.servers().is_some_and(|servers| servers.iter().any(of))
    }

    /// Whether all servers that there are serve. One that has met a fault does not until its clients have gone.
    pub fn is_well(&self) -> bool {
        let Some(servers) = self.servers() else { return false };
        servers.iter().all(|server| {
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
        let stays = self.end == End::WithLastClient && self.has_clients();
        drop(self.warden.stdin.take());
        if stays {
            return;
        }
        let deadline = Instant::now() + FAREWELL;
        while matches!(self.warden.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.warden.kill();
        let _ = self.warden.wait();
    }
}

/// Before anything is made or ended.
fn check(folder: &Path) -> Result<(), Error> {
    let fits = folder.as_os_str().len() <= LONGEST_FOLDER;
    fits.then_some(()).ok_or_else(|| Error::LongFolder(folder.to_owned()))
}

fn numbers(text: &str) -> Vec<u32> {
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// The number of the control daemon, by the file that it writes.
fn number_in(folder: &Path) -> Option<u32> {
    fs::read_to_string(folder.join("pipe/nvidia-cuda-mps-control.pid")).ok()?.trim().parse().ok()
}

fn make(folder: &Path, access: Access) -> Result<(), Error> {
    let mode = access.mode();
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
