//! The isolated domain by the policy `strict`: best-effort work is off the GPU while a latency tenant has work, and nobody's death
//! keeps it there.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::ffi::CString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use board::link::{self, Registration};
use board::{Gpu, Label, Seat};
use common::runtime::{Runtime, Tenant, wait_for};
use model::{Class, Domain, Nanos};

const ROLE: &str = "EBB_TEST_SERVER";

/// A runtime folder whose daemon, once somebody needs one, has this policy.
fn strict() -> Runtime {
    let runtime = Runtime::new();
    fs::create_dir_all(runtime.path().join("ebb")).unwrap();
    let configuration = "schema_version = 1\n[policy]\nkind = \"strict\"\n";
    fs::write(runtime.path().join("ebb/ebb.toml"), configuration).unwrap();
    runtime
}

/// The GPU of the only board, by the name that reports give it.
fn gpu(runtime: &Runtime) -> String {
    let report = runtime.report().unwrap();
    let uuid = report["gpus"].items()[0]["uuid"].text().to_owned();
    uuid.trim_start_matches("GPU-").chars().filter(|c| *c != '-').collect()
}

/// A latency tenant that has work when it is told to, and never any on the GPU.
struct Server {
    seat: Seat,
    began: Nanos,
    _connection: OwnedFd,
}

impl Server {
    fn sit(folder: &Path, digits: &str) -> Server {
        let byte = |place: usize| u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).unwrap();
        let socket = CString::new(folder.join("ebb.sock").as_os_str().as_bytes()).unwrap();
        let registration = Registration {
            name: Label::new(b"server"),
            class: Class::Latency,
            ..Registration::new(Gpu(std::array::from_fn(byte)), 99)
        };
        let (connection, board, granted) =
            link::register(&socket, &registration, None, Nanos::from_millis(5_000)).unwrap();
        assert_eq!((granted.domain, granted.terms.class), (Domain::Isolated, Class::Latency));
        Server { seat: board.sit(granted.place).unwrap(), began: Nanos::ZERO, _connection: connection }
    }

    fn begin(&mut self) {
        self.began = board::now();
        self.seat.activate(self.began);
    }

    /// It is believed to have work as long as it shows life.
    fn lives(&self) {
        self.seat.beat(board::now());
    }

    fn end(&self) {
        self.seat.deactivate(board::now(), self.began);
    }
}

#[test]
#[ignore = "another role of this program, not a test"]
fn server() {
    let Some(folder) = std::env::var_os(ROLE) else { return };
    let mut server = Server::sit(Path::new(&folder), &std::env::var("GPU").unwrap());
    server.begin();
    println!("begun");
    loop {
        server.lives();
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A server in a process of its own, with a request that does not end, which can be killed.
fn start_server(runtime: &Runtime) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "server", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, runtime.path()).env("GPU", gpu(runtime)).env("EBB_RUNTIME_DIR", runtime.path());
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("begun")), "it came to its place");
    child
}

fn is_off(runtime: &Runtime, tenant: &Tenant) -> bool {
    runtime.context(tenant).is_some_and(|context| context["state"].text() == "disabled")
}

/// As the tenant itself counts it: the card adds it up only when a context leaves.
fn time_on_gpu(runtime: &Runtime, tenant: &Tenant) -> i128 {
    runtime.counter(tenant, "gpu_ns")
}

fn goes_on(runtime: &Runtime, tenant: &Tenant) {
    let before = time_on_gpu(runtime, tenant);
    wait_for(&format!("{} goes on", tenant.name), || time_on_gpu(runtime, tenant) > before);
}

fn best_effort(runtime: &Runtime, name: &str) -> Tenant {
    let tenant = runtime.tenant(name, "best-effort", &[]);
    wait_for("it works", || runtime.counter(&tenant, "gpu_ns") > 0);
    tenant
}

#[test]
fn best_effort_work_is_off_the_gpu_for_as_long_as_a_request_lasts() {
    let runtime = strict();
    let train = best_effort(&runtime, "train");
    let mut server = Server::sit(runtime.path(), &gpu(&runtime));
    for request in 1..=3 {
        goes_on(&runtime, &train);
        server.begin();
        wait_for("it is off", || {
            server.lives();
            is_off(&runtime, &train)
        });
        let seat = runtime.seat(&train).unwrap();
        assert_eq!(seat["decision"]["why"].text(), "latency-work");
        server.lives();
        let before = time_on_gpu(&runtime, &train);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!((is_off(&runtime, &train), time_on_gpu(&runtime, &train)), (true, before));
        server.end();
        wait_for("it goes on", || time_on_gpu(&runtime, &train) > before);
        let stops = runtime.counter(&train, "stops_switch");
        assert_eq!(stops, request, "one stop for each request");
    }
    train.end();
}

#[test]
fn a_server_that_is_killed_in_a_request_keeps_nobody_off_the_gpu() {
    let runtime = strict();
    let train = best_effort(&runtime, "train");
    let mut server = start_server(&runtime);
    wait_for("it is off", || is_off(&runtime, &train));
    server.kill().unwrap();
    server.wait().unwrap();
    goes_on(&runtime, &train);
    train.end();
}

#[test]
fn whoever_is_killed_while_it_is_off_the_gpu_leaves_it_to_the_next() {
    let runtime = strict();
    let mut tenants = [best_effort(&runtime, "one"), best_effort(&runtime, "two")];
    let mut server = Server::sit(runtime.path(), &gpu(&runtime));
    server.begin();
    wait_for("both are off", || {
        server.lives();
        tenants.iter().all(|tenant| is_off(&runtime, tenant))
    });
    // The holder of the token, who would have gone on first.
    wait_for("one of them has the token", || {
        server.lives();
        runtime.holder().is_some()
    });
    let holder = runtime.holder();
    if Some(i128::from(tenants[1].child.id())) == holder {
        tenants.reverse();
    }
    let [mut killed, survivor] = tenants;
    killed.kill();
    server.end();
    goes_on(&runtime, &survivor);
    survivor.end();
}
