//! Daemons and tenants as processes of their own: this test program, started again in another role.

#![allow(dead_code, reason = "every test file uses a part of this")]

use std::ffi::CString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use board::link::{self, Granted, Registration};
use board::{Board, Gpu, Label};
use daemon::report::{Process, Report};
use daemon::{Options, Place, Scope, client};
use model::Nanos;
use rustix::process::{Pid, Signal, kill_process};

pub const GPU: Gpu = Gpu([0xab; 16]);

const ROLE: &str = "EBB_TEST_ROLE";
const ROLE_WORDS: [&str; 5] = ["--ignored", "--exact", "role", "--nocapture", "--test-threads=1"];

/// What this program does in its other roles; called from an ignored test, which is how it is started again.
pub fn play() {
    match std::env::var(ROLE).as_deref() {
        Ok("daemon") => serve(),
        Ok("tenant") => sit(false),
        Ok("parent") => sit(true),
        Ok("guest") => attend(),
        Ok("liar") => lie(),
        _ => {}
    }
}

fn serve() {
    let idle = std::env::var("IDLE").ok().map(|millis| Duration::from_millis(millis.parse().unwrap()));
    let configuration = std::env::var_os("CONFIGURATION").map(Into::into);
    let patient = std::env::var_os("PATIENT").is_some();
    let scope = if std::env::var_os("EBB_MACHINE_DIR").is_some() { Scope::Machine } else { Scope::User };
    let replace = std::env::var_os("REPLACE").is_some();
    let (domain, policy, metrics, cards) = (None, None, None, None);
    let card_files: Option<daemon::CardFiles> = Some(card_files);
    let options = Options {
        scope,
        idle,
        patient,
        makes_room: false,
        replace,
        configuration,
        domain,
        policy,
        metrics,
        cards,
        card_files,
    };
    match daemon::serve(&options) {
        Ok(outcome) => println!("outcome {outcome:?}"),
        Err(error) => println!("refused {error}"),
    }
}

/// Where the GPUs of tests are: files whose names begin as this does, each with the GPU's number behind it.
const CARD: &str = "card-";

/// Makes the file of a GPU, which everybody may open who has the mode for it.
pub fn make_card(folder: &Path, gpu: Gpu, mode: u32) -> std::path::PathBuf {
    let path = folder.join(format!("{CARD}{:02x}", gpu.0[0]));
    fs::write(&path, "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

fn card_files(folder: &Path) -> Vec<(Gpu, u64, u64)> {
    let card = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let number = u8::from_str_radix(name.strip_prefix(CARD)?, 16).ok()?;
        let facts = entry.metadata().ok()?;
        Some((Gpu([number; 16]), facts.dev(), facts.ino()))
    };
    fs::read_dir(folder).unwrap().flatten().filter_map(card).collect()
}

/// Takes a seat and stays; with a child that keeps the connection, if so asked.
fn sit(with_child: bool) {
    let place = Place::prepare(Scope::User).unwrap();
    let (connection, _, _) = register(&place, &registration("victim")).unwrap();
    let child = with_child.then(|| {
        rustix::io::fcntl_setfd(&connection, rustix::io::FdFlags::empty()).unwrap();
        Command::new("sleep").arg("60").spawn().unwrap().id()
    });
    println!("seated {}", child.unwrap_or(0));
    std::thread::sleep(Duration::from_secs(60));
}

/// Takes a seat, and writes anything over all of its board for as long as it lives.
fn lie() {
    let place = Place::at(Path::new(&std::env::var_os("EBB_RUNTIME_DIR").unwrap()));
    let (_connection, _, _) = register(&place, &registration("liar")).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let range = maps.lines().find(|line| line.contains("ebb-board")).unwrap().split(' ').next().unwrap();
    let (from, to) = range.split_once('-').unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let memory = fs::OpenOptions::new().write(true).open("/proc/self/mem").unwrap();
    println!("seated 0");
    let mut bytes = vec![0_u8; usize::try_from(number(to) - number(from)).unwrap()];
    let mut state = 1_u64;
    loop {
        for word in bytes.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        memory.write_all_at(&bytes, number(from)).unwrap();
    }
}

fn attend() {
    let place = Place::prepare(Scope::User).unwrap();
    let request = daemon::request::Request::Attend {
        tenant: "0000000000000001".to_owned(),
        class: "latency".to_owned(),
        weight: 1,
        priority: 0,
    };
    println!("seated {}", client::ask(&place, &request).unwrap().ok);
    std::thread::sleep(Duration::from_secs(60));
}

/// A process in a role, ended with this value.
pub struct Actor {
    pub child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Actor {
    pub fn start(folder: &Path, role: &str, settings: &[(&str, &str)]) -> Actor {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(ROLE_WORDS);
        Actor::of(command, folder, role, settings)
    }

    /// The daemon as a service manager starts it: with sockets that are open, as descriptors from 3 on.
    pub fn activated(folder: &Path, settings: &[(&str, &str)], sockets: [OwnedFd; 2]) -> Actor {
        // Away from where they are wanted, so that one does not overwrite the other.
        let sockets = sockets.map(|socket| rustix::io::fcntl_dupfd_cloexec(&socket, 100).unwrap());
        let mut command = Command::new("/bin/sh");
        // Only the process itself knows its number.
        command.args(["-c", "LISTEN_PID=$$ LISTEN_FDS=2 exec \"$@\"", "sh"]);
        command.arg(std::env::current_exe().unwrap()).args(ROLE_WORDS);
        let place = move || {
            for (socket, number) in sockets.iter().zip(3..) {
                // SAFETY: two descriptors of this process; nothing here uses the one that may be closed by it.
                if unsafe { libc::dup2(socket.as_raw_fd(), number) } < 0 {
                    return Err(std::io::Error::last_os_error());
                }
            }
            Ok(())
        };
        // SAFETY: makes system calls, and nothing else, between fork and the new program.
        unsafe { command.pre_exec(place) };
        Actor::of(command, folder, "daemon", settings)
    }

    fn of(mut command: Command, folder: &Path, role: &str, settings: &[(&str, &str)]) -> Actor {
        command.env("EBB_RUNTIME_DIR", folder).env("XDG_CONFIG_HOME", folder).env(ROLE, role);
        command.envs(settings.iter().copied()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(
            Stdio::from(fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap()),
        );
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Actor { child, lines }
    }

    /// What it says after a word, which must come.
    pub fn said(&mut self, word: &str) -> String {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            if let Some((_, rest)) = line.split_once(&format!("{word} ")) {
                return rest.trim_end().to_owned();
            }
            line.clear();
        }
        panic!("it ended without the word {word}");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A daemon in a folder of its own.
pub struct Daemon {
    pub actor: Actor,
    pub place: Place,
}

impl Daemon {
    pub fn start(folder: &Path) -> Daemon {
        Daemon::with(folder, &[])
    }

    pub fn configured(folder: &Path, text: &str) -> Daemon {
        let file = folder.join("ebb.toml");
        fs::write(&file, text).unwrap();
        Daemon::with(folder, &[("CONFIGURATION", file.to_str().unwrap())])
    }

    pub fn with(folder: &Path, settings: &[(&str, &str)]) -> Daemon {
        let daemon = Daemon { actor: Actor::start(folder, "daemon", settings), place: Place::at(folder) };
        wait_for("the daemon", || client::answers(&daemon.place));
        daemon
    }

    pub fn report(&self) -> Report {
        client::report(&self.place).unwrap()
    }

    /// What the daemon said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.place.folder().join("log")).unwrap()
    }

    pub fn processes(&self) -> Vec<Process> {
        self.report().gpus.into_iter().flat_map(|gpu| gpu.processes).collect()
    }

    pub fn process(&self, pid: u32) -> Option<Process> {
        self.processes().into_iter().find(|process| process.pid == pid)
    }
}

pub fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("ebb-daemon").tempdir().unwrap()
}

pub fn registration(name: &str) -> Registration {
    Registration { name: Label::new(name.as_bytes()), ..Registration::new(GPU, 1) }
}

pub fn register(place: &Place, what: &Registration) -> Result<(OwnedFd, Board, Granted), board::Error> {
    register_with(place, what, None)
}

/// The same, showing a file.
pub fn register_with(
    place: &Place,
    what: &Registration,
    shown: Option<&fs::File>,
) -> Result<(OwnedFd, Board, Granted), board::Error> {
    let socket = CString::new(place.socket().as_os_str().as_bytes()).unwrap();
    link::register(&socket, what, shown.map(|file| file.as_fd()), Nanos::from_millis(5_000))
}

pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..1500 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never happened: {what}");
}
