//! A daemon's home: its folder, the daemon that lives there now, if one does, and what it is asked.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::json::{self, Value};
use crate::common::{self, runtime::wait_for};

/// By this all processes of a stage are known, whatever becomes of those who started them.
pub const MARK: &str = "EBB_CAMPAIGN_MARK";

/// Whose daemon it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    User,
    Machine,
}

pub struct Home {
    owner: Owner,
    folder: PathBuf,
    cards: PathBuf,
    mark: PathBuf,
    daemon: Option<Child>,
    pub is_stopped: bool,
    starts: u32,
}

impl Home {
    pub fn new(stage: &Path, owner: Owner, name: &str, domain: &str) -> Home {
        let (folder, cards) = (stage.join(name), stage.join("cards"));
        fs::create_dir_all(folder.join("ebb")).unwrap();
        fs::create_dir_all(&cards).unwrap();
        for private in [&folder, &cards] {
            fs::set_permissions(private, fs::Permissions::from_mode(0o700)).unwrap();
        }
        let mut configuration = format!("schema_version = 1\ndomain = \"{domain}\"\nmps = false\n");
        if owner == Owner::Machine {
            // A port that nobody else has.
            configuration.push_str("[metrics]\nlisten = \"127.0.0.1:0\"\n");
        }
        fs::write(folder.join("ebb/ebb.toml"), configuration).unwrap();
        Home { owner, folder, cards, mark: stage.to_owned(), daemon: None, is_stopped: false, starts: 0 }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `ebb` as a user of this daemon calls it.
    pub fn ebb(&self) -> Command {
        let mut command = common::ebb(&self.folder);
        if self.owner == Owner::Machine {
            command.env_remove("EBB_RUNTIME_DIR").env("XDG_RUNTIME_DIR", &self.folder);
            command.env("EBB_MACHINE_DIR", self.run_folder());
        }
        command.env("EBB_SOFTGPU_DIR", &self.cards).env("EBB_SOFTGPU_SMS", "8");
        command.env(MARK, &self.mark);
        command
    }

    /// Where the daemon's sockets are.
    fn run_folder(&self) -> PathBuf {
        match self.owner {
            Owner::User => self.folder.clone(),
            Owner::Machine => self.folder.join("machine"),
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.run_folder().join("ebb.sock")
    }

    pub fn ask(&self, words: &[&str]) -> Output {
        self.ebb().args(words).output().unwrap()
    }

    pub fn report(&self) -> Option<Value> {
        let output = self.ask(&["status", "-o", "json"]);
        output.status.success().then(|| json::parse(&common::text(&output)))
    }

    /// The processes that have a seat; nothing where no daemon answers.
    pub fn seats(&self) -> Option<Vec<Value>> {
        let report = self.report()?;
        Some(report["gpus"].items().iter().flat_map(|gpu| gpu["processes"].items().to_vec()).collect())
    }

    /// Starts a daemon, in the place of the one that is there.
    pub fn start(&mut self) {
        let mut command = self.ebb();
        command.args(["daemon", "--replace"]);
        if self.owner == Owner::Machine {
            command.args(["--machine", "--config"]).arg(self.folder.join("ebb/ebb.toml"));
        }
        self.starts += 1;
        let log = File::create(self.folder.join(format!("daemon-{}.err", self.starts))).unwrap();
        let before = self.daemon.replace(command.stdin(Stdio::null()).stderr(log).spawn().unwrap());
        if let Some(mut before) = before {
            // One that cannot hear that it is to go would be waited for.
            let _ = kill_process(Pid::from_child(&before), Signal::CONT);
            let new = self.daemon.as_mut().expect("just started");
            wait_for("one of the two daemons goes", || {
                before.try_wait().unwrap().is_some() || new.try_wait().unwrap().is_some()
            });
            if before.try_wait().unwrap().is_none() {
                self.daemon = Some(before);
            }
        }
        self.is_stopped = false;
    }

    pub fn has_daemon(&mut self) -> bool {
        self.daemon.as_mut().is_some_and(|daemon| daemon.try_wait().unwrap().is_none())
    }

    /// Whether it would seat somebody who comes now.
    pub fn is_serving(&mut self) -> bool {
        !self.is_stopped && self.has_daemon() && self.report().is_some()
    }

    pub fn signal(&mut self, signal: Signal) {
        if !self.has_daemon() {
            return;
        }
        if let Some(daemon) = &self.daemon {
            kill_process(Pid::from_child(daemon), signal).unwrap();
            self.is_stopped = signal == Signal::STOP || self.is_stopped && signal != Signal::CONT;
        }
    }

    pub fn go_on(&mut self) {
        if self.is_stopped {
            self.signal(Signal::CONT);
        }
    }

    pub fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            daemon.wait().unwrap();
        }
        self.is_stopped = false;
    }

    /// Has it end, and sees that it does.
    pub fn end(&mut self) {
        self.go_on();
        self.signal(Signal::TERM);
        if let Some(mut daemon) = self.daemon.take() {
            wait_for("the daemon ends", || daemon.try_wait().unwrap().is_some());
        }
    }

    /// There is a daemon, and it answers.
    pub fn serve(&mut self) {
        self.go_on();
        for _ in 0..3 {
            if !self.has_daemon() {
                self.start();
            }
            let mut gone = false;
            wait_for("the daemon answers", || {
                gone = !self.has_daemon();
                gone || self.report().is_some()
            });
            if !gone {
                return;
            }
        }
        panic!("no daemon stays in {}", self.folder.display());
    }
}
