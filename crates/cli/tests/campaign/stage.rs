//! A stage: one card, the daemons around it, the tenants of each, and attackers among them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::attacker;
use super::figures::{self, Figures};
use super::home::{Home, MARK, Owner};
use super::worker::{self, Shape};
use crate::common::json::{self, Value};
use crate::common::runtime::{PATIENCE, wait_for};
use crate::common::{errors, private_folder, text};

/// One of the tenants, which is started again when it was killed.
pub struct Tenant {
    pub home: usize,
    pub name: String,
    shape: Shape,
    child: Child,
    path: PathBuf,
    /// It was told to begin.
    begun: bool,
    pub is_stopped: bool,
}

impl Tenant {
    pub fn figures(&self) -> Figures {
        figures::read(&self.path.with_extension("figures"))
    }

    /// Lets it come to the GPU.
    pub fn begin(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            writeln!(self.child.stdin.as_mut().unwrap(), "go").unwrap();
        }
    }

    pub fn signal(&mut self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        self.is_stopped = signal == Signal::STOP;
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn said(&self) -> String {
        let said = fs::read_to_string(self.path.with_extension("err")).unwrap_or_default();
        let lines: Vec<&str> = said.lines().filter(|line| !line.contains("the limit of memory")).collect();
        lines[lines.len().saturating_sub(12)..].join("\n    ")
    }
}

pub struct Attacker {
    child: Child,
    path: PathBuf,
}

pub struct Stage {
    folder: tempfile::TempDir,
    pub homes: Vec<Home>,
    pub tenants: Vec<Tenant>,
    pub attackers: Vec<Attacker>,
    /// Tenants to be started when their daemon is there: `ebb run` would start another one.
    vacant: Vec<(usize, Shape)>,
    /// Commands that were given, and are not waited for.
    verbs: Vec<(String, Instant, Child)>,
    /// What those have done who are gone.
    past: Figures,
    stores: u64,
    started: u32,
    gpu: String,
}

impl Stage {
    /// Daemons, and tenants of each of these shapes at each of them.
    pub fn new(domain: &str, owners: &[Owner], shapes: &[Shape]) -> Stage {
        crate::common::products();
        let folder = private_folder();
        let homes = (0..).zip(owners).map(|(number, owner)| {
            Home::new(folder.path(), *owner, &format!("{owner:?}{number}").to_lowercase(), domain)
        });
        let homes: Vec<Home> = homes.collect();
        let mut stage = Stage {
            folder,
            homes,
            tenants: Vec::new(),
            attackers: Vec::new(),
            vacant: Vec::new(),
            verbs: Vec::new(),
            past: Figures::default(),
            stores: 0,
            started: 0,
            gpu: String::new(),
        };
        for home in 0..owners.len() {
            stage.homes[home].serve();
            for shape in shapes {
                let tenant = stage.start(home, *shape);
                stage.tenants.push(tenant);
            }
        }
        stage.tenants.iter_mut().for_each(Tenant::begin);
        stage.gpu = stage.find_gpu();
        stage
    }

    fn find_gpu(&self) -> String {
        let mut found = None;
        wait_for("somebody has a seat", || {
            let report = self.homes[0].report();
            found = report
                .and_then(|report| report["gpus"].items().first().map(|gpu| gpu["uuid"].text().to_owned()));
            found.is_some()
        });
        found.unwrap().trim_start_matches("GPU-").replace('-', "")
    }

    fn start(&mut self, home: usize, shape: Shape) -> Tenant {
        self.started += 1;
        let name = format!("{}-{}", shape.name(), self.started);
        let path = self.folder.path().join(&name);
        let mut command = self.homes[home].ebb();
        command.args(["run", "--device", "soft", "--class", shape.class(), "--name", &name]);
        command.args(["--mem", worker::LIMIT, "--quiet", "--"]).arg(std::env::current_exe().unwrap());
        command.args([worker::ROLE, "--exact", "--ignored", "--nocapture"]);
        command.env(worker::FIGURES, path.with_extension("figures")).env(worker::SHAPE, shape.name());
        command.env("EBB_LOG", "1").env("EBB_SOFTGPU_THREADS", "2");
        let log = File::create(path.with_extension("err")).unwrap();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().unwrap();
        Tenant { home, name, shape, child, path, begun: false, is_stopped: false }
    }

    /// Kills a tenant, at once and without its knowing.
    pub fn kill(&mut self, which: usize) {
        let mut tenant = self.tenants.remove(which);
        tenant.child.kill().unwrap();
        tenant.child.wait().unwrap();
        self.bury(&tenant);
        self.vacant.push((tenant.home, tenant.shape));
        self.fill();
    }

    /// Starts those who take the place of the killed, where a daemon is there to seat them.
    pub fn fill(&mut self) {
        for (home, shape) in std::mem::take(&mut self.vacant) {
            if !self.homes[home].is_serving() {
                self.vacant.push((home, shape));
                continue;
            }
            let tenant = self.start(home, shape);
            self.tenants.push(tenant);
        }
    }

    /// Everybody has come from `ebb run` to its program: who has not would start a daemon where there is none.
    pub fn settle(&mut self) {
        let program = std::env::current_exe().unwrap();
        let begin = Instant::now();
        wait_for("programs are started", || {
            // One that is stopped may hold the software GPU's lock, which a card does not know; then nobody can come.
            if begin.elapsed() > Duration::from_secs(1) {
                self.continue_all();
            }
            self.tenants.iter_mut().all(|tenant| {
                let running = fs::read_link(format!("/proc/{}/exe", tenant.child.id()));
                running.is_ok_and(|running| running == program) || tenant.child.try_wait().unwrap().is_some()
            })
        });
    }

    pub fn continue_all(&mut self) {
        self.tenants.iter_mut().for_each(|tenant| tenant.signal(Signal::CONT));
    }

    /// Adds up what one has done who is gone.
    fn bury(&mut self, tenant: &Tenant) {
        let Figures { done, wrong, beyond, refused } = tenant.figures();
        let past = &mut self.past;
        past.done += done;
        past.wrong += wrong;
        past.beyond += beyond;
        past.refused += refused;
    }

    /// What all tenants have done so far.
    pub fn sum(&self) -> Figures {
        self.tenants.iter().fold(self.past, |sum, tenant| {
            let Figures { done, wrong, beyond, refused } = tenant.figures();
            Figures {
                done: sum.done + done,
                wrong: sum.wrong + wrong,
                beyond: sum.beyond + beyond,
                refused: sum.refused + refused,
            }
        })
    }

    pub fn stores(&self) -> u64 {
        self.attackers.iter().fold(self.stores, |sum, one| sum + figures::read(&one.path).done)
    }

    /// An attacker comes to a daemon.
    pub fn let_in(&mut self, home: usize, class: &str) {
        self.started += 1;
        let path = self.folder.path().join(format!("attacker-{}.figures", self.started));
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args([attacker::ROLE, "--exact", "--ignored", "--nocapture"]);
        command.env(attacker::SOCKET, self.homes[home].socket()).env(attacker::GPU, &self.gpu);
        command.env(attacker::CLASS, class).env(attacker::FIGURES, &path).env(MARK, self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
        let child = command.spawn().unwrap();
        self.attackers.push(Attacker { child, path });
    }

    /// What one is told that has left already, it does not do.
    pub fn order(&mut self, which: usize, order: attacker::Order, seed: u64) {
        let commands = self.attackers[which].child.stdin.as_mut().unwrap();
        let _ = commands.write_all(order.line(seed).as_bytes());
    }

    /// An attacker leaves, by its own will or killed in the middle of what it does.
    pub fn send_away(&mut self, which: usize, killed: bool) {
        let mut attacker = self.attackers.remove(which);
        drop(attacker.child.stdin.take());
        if killed {
            attacker.child.kill().unwrap();
        }
        wait_for("the attacker leaves", || attacker.child.try_wait().unwrap().is_some());
        self.stores += figures::read(&attacker.path).done;
    }

    /// Gives a command about a tenant to its daemon, and does not wait.
    pub fn say(&mut self, which: usize, words: &[&str]) {
        let tenant = &self.tenants[which];
        let mut command = self.homes[tenant.home].ebb();
        command.arg(words[0]).arg(&tenant.name).args(&words[1..]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.verbs.push((format!("{words:?} {}", tenant.name), Instant::now(), child.unwrap()));
    }

    /// Every command was answered, or given up.
    pub fn hear_all(&mut self) {
        for (words, begin, mut child) in self.verbs.drain(..) {
            while child.try_wait().unwrap().is_none() {
                assert!(begin.elapsed() < PATIENCE, "ebb {words} never ends");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Everybody who was told to pause goes on, in the class that it began with: a program that always has work leaves
    /// nothing to others as a latency tenant. Whether anybody had to be told.
    pub fn restore_all(&mut self) -> bool {
        let mut told = false;
        for (number, home) in self.homes.iter().enumerate() {
            let seats = home.seats().unwrap_or_default();
            for tenant in self.tenants.iter().filter(|tenant| tenant.home == number) {
                let own = |seat: &&Value| seat["pid"].number() == i128::from(tenant.child.id());
                let Some(seat) = seats.iter().find(own) else { continue };
                if seat["state"].text() == "paused" {
                    home.ask(&["resume", &tenant.name]);
                    told = true;
                }
                if seat["class"].text() != tenant.shape.class() {
                    home.ask(&["set", &tenant.name, "--class", tenant.shape.class()]);
                    told = true;
                }
            }
        }
        told
    }

    /// A tenant that has ended, which none should.
    pub fn casualty(&mut self) -> Option<String> {
        self.tenants.iter_mut().find_map(|tenant| {
            let status = tenant.child.try_wait().unwrap()?;
            Some(format!("{} ended with {status}:\n    {}", tenant.name, tenant.said()))
        })
    }

    /// Whether the tenants of each daemon, and nobody else, have seats there. What is amiss otherwise.
    pub fn seating(&self) -> Result<(), String> {
        for (number, home) in self.homes.iter().enumerate() {
            let seats = home.seats().ok_or("no daemon answers")?;
            let mut sitting: Vec<i128> = seats.iter().map(|seat| seat["pid"].number()).collect();
            let here = self.tenants.iter().filter(|tenant| tenant.home == number);
            let mut wanted: Vec<i128> = here.map(|tenant| i128::from(tenant.child.id())).collect();
            sitting.sort_unstable();
            wanted.sort_unstable();
            if sitting != wanted {
                return Err(format!("daemon {number} has seats of {sitting:?} instead of {wanted:?}"));
            }
        }
        Ok(())
    }

    /// Ends everything in the ordinary way, and sees that nothing is left.
    pub fn end(mut self) {
        while !self.attackers.is_empty() {
            self.send_away(0, false);
        }
        for tenant in &mut self.tenants {
            drop(tenant.child.stdin.take());
        }
        for mut tenant in std::mem::take(&mut self.tenants) {
            let mut status = None;
            wait_for("the tenant ends", || {
                status = tenant.child.try_wait().unwrap();
                status.is_some()
            });
            assert!(status.unwrap().success(), "{}: {}", tenant.name, tenant.said());
            self.bury(&tenant);
        }
        for home in &mut self.homes {
            wait_for("all seats are free", || home.seats().is_some_and(|seats| seats.is_empty()));
            home.end();
        }
        let card = self.card();
        assert_eq!((&card["contexts"], card["memory_used"].number()), (&Value::List(Vec::new()), 0));
        wait_for("no process is left", || self.processes().is_empty());
        let sockets: Vec<PathBuf> =
            self.homes.iter().map(Home::socket).filter(|path| path.exists()).collect();
        assert_eq!(sockets, Vec::<PathBuf>::new(), "no socket is left");
    }

    fn card(&self) -> Value {
        json::parse(&text(&self.homes[0].ask(&["soft", "show", "-o", "json"])))
    }

    /// What the card says of all contexts.
    pub fn contexts(&self) -> Vec<Value> {
        self.card()["contexts"].items().to_vec()
    }

    fn processes(&self) -> BTreeMap<i32, String> {
        let wanted = [MARK.as_bytes(), b"=", self.folder.path().as_os_str().as_bytes()].concat();
        let pids = fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let read = |pid: i32, file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let marked = |pid: &i32| read(*pid, "environ").split(|&byte| byte == 0).any(|word| word == wanted);
        pids.filter(marked)
            .map(|pid| (pid, String::from_utf8_lossy(&read(pid, "cmdline")).replace('\0', " ")))
            .collect()
    }

    /// How things are, to find out why.
    pub fn picture(&self) -> String {
        let mut picture = String::new();
        for tenant in &self.tenants {
            let pid = tenant.child.id();
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            picture += &format!(
                "{} (process {pid}, state {state:?}): {:?}\n    {}\n",
                tenant.name,
                tenant.figures(),
                tenant.said()
            );
        }
        for home in &self.homes {
            let output = home.ask(&["status"]);
            picture +=
                &format!("{}:\n{}{}\n", home.folder().display(), lossy(&output.stdout), errors(&output));
        }
        picture += &lossy(&self.homes[0].ask(&["soft", "show"]).stdout);
        for (pid, words) in self.processes() {
            picture += &format!("process {pid}: {words}\n");
        }
        picture
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::env::var_os("EBB_CAMPAIGN_KEEP").is_some() && std::thread::panicking() {
            eprintln!("everything is left as it is, in {}", self.folder.path().display());
            self.folder.disable_cleanup(true);
            return;
        }
        for pid in self.processes().into_keys().filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let children = self.tenants.iter_mut().map(|tenant| &mut tenant.child);
        let children = children.chain(self.attackers.iter_mut().map(|attacker| &mut attacker.child));
        children.for_each(|child| drop(child.wait()));
    }
}
