//! Users who share the machine's daemon: each shows the GPU's file, and nobody is kept from it by a folder under its name.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::json::{self, Value};
use common::runtime::wait_for;
use common::{errors, private_folder, products, text};

/// Users that nobody is, one for each test.
const TENANT: u32 = 61_017;
const SQUATTED: u32 = 61_018;
const MOVING: u32 = 61_019;

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A machine with a daemon, a folder of cards that all users share, and a group whose members may connect.
struct Machine {
    folder: tempfile::TempDir,
    group: u32,
    daemon: Option<Ended>,
}

impl Machine {
    /// `None`, with a word, where this process cannot be several users.
    fn new() -> Option<Machine> {
        let root = rustix::process::geteuid().is_root();
        if !root || Command::new("setpriv").arg("--version").output().is_err() {
            eprintln!("skipped: only root can be several users, with setpriv");
            return None;
        }
        products();
        let folder = private_folder();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let cards = folder.path().join("cards");
        fs::create_dir(&cards).unwrap();
        fs::set_permissions(&cards, Permissions::from_mode(0o1777)).unwrap();
        let groups = fs::read_to_string("/etc/group").unwrap();
        let entry = |line: &str| {
            let mut parts = line.split(':');
            let (name, gid) = (parts.next()?.to_owned(), parts.nth(1)?.parse::<u32>().ok()?);
            (gid != 0).then_some((name, gid))
        };
        let (name, group) = groups.lines().find_map(entry).unwrap();
        let text = format!(
            "schema_version = 1\n[socket]\ngroup = \"{name}\"\n[metrics]\nlisten = \"127.0.0.1:0\"\n"
        );
        fs::write(folder.path().join("ebb.toml"), text).unwrap();
        Some(Machine { folder, group, daemon: None })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `ebb` as a user, without a runtime folder that somebody has named.
    fn ebb(&self, user: u32, home: Option<&Path>) -> Command {
        let plain = common::ebb(self.folder.path());
        let mut command = Command::new("setpriv");
        let ids = [format!("--reuid={user}"), format!("--regid={user}"), format!("--groups={}", self.group)];
        command.args(ids).arg("--").arg(plain.get_program());
        for (name, value) in plain.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        for name in ["EBB_RUNTIME_DIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"] {
            command.env_remove(name);
        }
        command.envs(home.map(|home| ("HOME", home)));
        command.env("EBB_MACHINE_DIR", self.path("run")).env("EBB_SOFTGPU_DIR", self.path("cards"));
        command.env_remove("EBB_PROFILES").env_remove("EBB_GUARD_CACHE");
        command
    }

    fn start(&mut self) {
        let mut command = self.ebb(0, Some(self.folder.path()));
        command.args(["daemon", "--machine", "--config"]).arg(self.path("ebb.toml"));
        self.daemon = Some(Ended(command.stderr(Stdio::null()).spawn().unwrap()));
        wait_for("the machine's daemon", || self.report().is_some());
    }

    fn report(&self) -> Option<Value> {
        let output = self.ebb(0, Some(self.folder.path())).args(["status", "-o", "json"]).output().unwrap();
        output.status.success().then(|| json::parse(&text(&output)))
    }

    /// A home of a user's own.
    fn home(&self, user: u32) -> PathBuf {
        let home = self.path(&format!("home-{user}"));
        fs::create_dir(&home).unwrap();
        chown(&home, Some(user), Some(user)).unwrap();
        home
    }

    fn tenant(&self, user: u32, options: &[&str]) -> Ended {
        let home = self.home(user);
        let mut command = self.ebb(user, Some(&home));
        command.env("XDG_RUNTIME_DIR", &home);
        command.args(["run", "--device", "soft"]).args(options);
        command.args(["--", env!("CARGO_BIN_EXE_ebb"), "tenant"]);
        command.args(["--driver", "libcuda.so.1", "--class", "best-effort", "--seed=1", "--seconds", "600"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        writeln!(child.stdin.as_mut().unwrap(), "go").unwrap();
        Ended(child)
    }
}

#[test]
fn a_tenant_of_any_user_shows_its_card_and_sits_with_the_others() {
    let Some(mut machine) = Machine::new() else { return };
    machine.start();
    let tenants = [0, TENANT].map(|user| machine.tenant(user, &[]));
    let seats = || {
        let report = machine.report().unwrap();
        let [gpu] = report["gpus"].items() else { return Vec::new() };
        assert_eq!(gpu["user"], Value::Null, "it is everybody's board");
        let mut users: Vec<_> = gpu["processes"].items().iter().map(|seat| seat["user"].number()).collect();
        users.sort_unstable();
        users
    };
    wait_for("both at one board", || seats() == [0, i128::from(TENANT)]);
    assert_eq!(machine.report().unwrap()["daemon"]["refused"].number(), 0);
    drop(tenants);
}

/// Even one that would rather end than be without a daemon is never without one.
#[test]
fn tenants_of_a_users_own_daemon_go_to_the_machines_when_it_comes() {
    let Some(mut machine) = Machine::new() else { return };
    let mut tenant = machine.tenant(MOVING, &["--on-daemon-loss", "exit"]);
    let own = machine.path(&format!("home-{MOVING}")).join("ebb/ebb.sock");
    wait_for("its own daemon", || own.exists());
    machine.start();
    wait_for("a seat at the machine's daemon", || {
        let report = machine.report().unwrap();
        let seats = report["gpus"].items().first().map(|gpu| gpu["processes"].items().to_vec());
        seats.is_some_and(|seats| seats.iter().any(|seat| seat["user"].number() == i128::from(MOVING)))
    });
    wait_for("its own daemon to end", || !own.exists());
    assert!(tenant.0.try_wait().unwrap().is_none(), "it goes on");
}

/// What lies under a user's name in folders where everybody can make one, for as long as the test lasts.
struct Squatted([PathBuf; 2]);

impl Squatted {
    fn new(user: u32, elsewhere: &Path) -> Squatted {
        let paths = ["/dev/shm", "/tmp"].map(|base| Path::new(base).join(format!("ebb-{user}")));
        drop(Squatted(paths.clone()));
        fs::create_dir(&paths[0]).unwrap();
        symlink(elsewhere, &paths[1]).unwrap();
        Squatted(paths)
    }
}

impl Drop for Squatted {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0[0]);
        let _ = fs::remove_file(&self.0[1]);
    }
}

#[test]
fn folders_under_a_users_name_keep_it_neither_from_the_machines_daemon_nor_from_its_own() {
    let Some(mut machine) = Machine::new() else { return };
    let trap = machine.path("trap");
    fs::create_dir(&trap).unwrap();
    chown(&trap, Some(SQUATTED), Some(SQUATTED)).unwrap();
    let squatted = Squatted::new(SQUATTED, &trap);
    let env = |machine: &Machine, home: Option<&Path>| {
        let output =
            machine.ebb(SQUATTED, home).args(["run", "--device", "soft", "--", "env"]).output().unwrap();
        let said = errors(&output);
        let socket =
            text(&output).lines().find_map(|line| line.strip_prefix("EBB_SOCKET=").map(str::to_owned));
        (socket, said)
    };
    // Its own daemon, in a folder where nobody else can be.
    let home = machine.home(SQUATTED);
    let (socket, said) = env(&machine, Some(&home));
    assert_eq!(socket.as_deref(), home.join(".local/state/ebb/run/ebb.sock").to_str(), "{said}");
    assert!(
        said.contains(&format!("not used: the folder {} belongs to another user", squatted.0[0].display())),
        "{said}"
    );
    assert!(
        said.contains(&format!("not used: the folder {} is a symbolic link", squatted.0[1].display())),
        "{said}"
    );
    assert_eq!(fs::read_dir(&trap).unwrap().count(), 0, "the link was not followed");
    text(&machine.ebb(SQUATTED, Some(&home)).args(["daemon", "stop"]).output().unwrap());
    // And where there is no folder at all, the machine's.
    machine.start();
    let (socket, said) = env(&machine, None);
    assert_eq!(socket.as_deref(), machine.path("run/ebb.sock").to_str(), "{said}");
    assert_eq!(said.matches("not used: ").count(), 1, "{said}");
    text(&machine.ebb(SQUATTED, None).arg("status").output().unwrap());
}
