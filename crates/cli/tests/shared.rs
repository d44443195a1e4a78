//! The shared domain on the software GPU: a latency tenant raises the stop words of others.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::ffi::CString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use board::link::{self, Registration};
use board::{Gpu, Label, Seat};
use common::json;
use common::runtime::{Runtime, Tenant, wait_for};
use common::text;
use model::{Domain, Nanos};
use softgpu::memory::{AddressSpace, ContextId, DevicePointer, Unlimited, Word};

const ROLE: &str = "EBB_TEST_VICTIM";

/// A runtime folder whose daemon, once somebody needs one, has the shared domain.
fn shared() -> Runtime {
    let runtime = Runtime::new();
    fs::create_dir_all(runtime.path().join("ebb")).unwrap();
    let configuration = "schema_version = 1\ndomain = \"shared\"\nmps = false\n";
    fs::write(runtime.path().join("ebb/ebb.toml"), configuration).unwrap();
    runtime
}

/// The GPU of the only board, by the name that reports give it.
fn gpu(runtime: &Runtime) -> Gpu {
    let report = runtime.report().unwrap();
    let uuid = report["gpus"].items()[0]["uuid"].text().to_owned();
    let digits: String = uuid.trim_start_matches("GPU-").chars().filter(|c| *c != '-').collect();
    let byte = |place: usize| u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).unwrap();
    Gpu(std::array::from_fn(byte))
}

/// A best-effort tenant that has memory and a stop word in it, and does nothing else.
struct Victim {
    space: AddressSpace,
    memory: DevicePointer,
    seat: Seat,
    _connection: OwnedFd,
}

/// Where in its memory the word lies.
const OFFSET: u64 = 96;

impl Victim {
    fn sit(folder: &Path, gpu: Gpu) -> Victim {
        let socket = CString::new(folder.join("ebb.sock").as_os_str().as_bytes()).unwrap();
        let registration = Registration { name: Label::new(b"victim"), ..Registration::new(gpu, 99) };
        let (connection, board, granted) =
            link::register(&socket, &registration, None, Nanos::from_millis(5_000)).unwrap();
        assert_eq!(board.domain(), Domain::Shared);
        let space = AddressSpace::new(1 << 24, Arc::new(Unlimited)).unwrap();
        let memory = space.allocate(ContextId(1), 1 << 16).unwrap();
        Victim { space, memory, seat: board.sit(granted.place).unwrap(), _connection: connection }
    }

    fn publish(&self) {
        let handle = self.space.export(self.memory).unwrap().to_bytes();
        self.seat.publish_stop_word(handle, OFFSET);
    }

    fn word(&self) -> u64 {
        self.space.load_word(self.memory.0 + OFFSET, Word::Four).unwrap()
    }

    fn lower(&self) {
        self.space.store_word(self.memory.0 + OFFSET, Word::Four, 0).unwrap();
    }
}

#[test]
#[ignore = "another role of this program, not a test"]
fn victim() {
    let Some(folder) = std::env::var_os(ROLE) else { return };
    let digits = std::env::var("GPU").unwrap();
    let gpu =
        Gpu(std::array::from_fn(|place| u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).unwrap()));
    let victim = Victim::sit(Path::new(&folder), gpu);
    victim.publish();
    println!("published");
    loop {
        victim.lower();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A victim in a process of its own, which can be killed.
fn start_victim(runtime: &Runtime, gpu: Gpu) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "victim", "--nocapture", "--test-threads=1"]);
    let digits: String = gpu.0.iter().map(|byte| format!("{byte:02x}")).collect();
    command.env(ROLE, runtime.path()).env("GPU", digits).env("EBB_RUNTIME_DIR", runtime.path());
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("published")), "it came to its place");
    child
}

/// The rung of a tenant, and why.
fn rung(runtime: &Runtime, tenant: &Tenant) -> (String, String) {
    let seat = runtime.seat(tenant);
    let word = |key: &str| seat.as_ref().map_or(String::new(), |seat| seat[key].text().to_owned());
    (word("rung"), word("why"))
}

/// What earlier runs have found out makes the guard refuse the one kernel that tenants of the demo have.
fn demote_all(runtime: &Runtime) {
    let report = runtime.path().join("report.json");
    let option = format!("--report=json:{}", report.display());
    let mut command = runtime.run(&["--no-daemon", &option], "tenant");
    command.args(["--class", "best-effort", "--seed", "1", "--seconds", "0.3"]).env("EBB_GUARD", "now");
    assert!(command.stdin(Stdio::null()).output().unwrap().status.success());
    let report = json::parse(&fs::read_to_string(report).unwrap());
    let cache = runtime.path().join("guard");
    let twins = fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path());
    let keys: Vec<String> = twins
        .filter(|path| path.extension().is_some_and(|end| end == "twin"))
        .map(|path| path.file_name().unwrap().to_str().unwrap().split('-').next().unwrap().to_owned())
        .collect();
    let names: Vec<&str> = report["kernels"].items().iter().map(|kernel| kernel["name"].text()).collect();
    let lines = keys
        .iter()
        .flat_map(|key| names.iter().map(move |name| format!("{key} waits-for-others 1763222400 {name}\n")));
    fs::write(cache.join("demotions"), lines.collect::<String>()).unwrap();
}

#[test]
fn a_tenant_whose_kernels_are_all_refused_does_not_claim_to_stop_between_blocks() {
    let runtime = shared();
    demote_all(&runtime);
    let server = runtime.tenant("server", "latency", &[]);
    let train = runtime.tenant("train", "best-effort", &[]);
    let wanted = ("hold".to_owned(), "unguarded".to_owned());
    wait_for("it says that it is held", || rung(&runtime, &train) == wanted);
    let page = text(&runtime.ebb(&["status"]));
    assert!(
        page.contains("is stopped between launches: none of its kernels can be stopped between blocks"),
        "{page}"
    );
    let verdicts = text(&runtime.ebb(&["verdicts"]));
    assert!(
        verdicts.contains("in the shared domain it is stopped between launches: none of its"),
        "{verdicts}"
    );
    [server, train].into_iter().for_each(Tenant::end);
}

#[test]
fn verdicts_of_the_isolated_domain_say_that_they_do_not_matter_there() {
    let runtime = Runtime::new();
    let train = runtime.tenant("train", "best-effort", &[]);
    wait_for("it is stopped by switches", || rung(&runtime, &train).0 == "switch");
    let page = text(&runtime.ebb(&["verdicts"]));
    let line = "in the isolated domain it is stopped in the middle of a kernel; verdicts matter in the shared domain only";
    assert!(page.contains(line), "{page}");
    let listed = json::parse(&text(&runtime.ebb(&["verdicts", "-o", "json"])));
    assert!(listed["processes"].items().iter().any(|process| process["domain"].text() == "isolated"));
    train.end();
}

#[test]
fn a_latency_tenant_raises_a_word_in_another_process() {
    let runtime = shared();
    let server = runtime.tenant("server", "latency", &[]);
    wait_for("it has its seat", || runtime.seat(&server).is_some());
    let victim = Victim::sit(runtime.path(), gpu(&runtime));
    assert_eq!(victim.word(), 0);
    assert!(!victim.seat.latency_seats_raise(), "it was shown no word yet");
    victim.publish();
    wait_for("it says that it raises the word", || victim.seat.latency_seats_raise());
    for _ in 0..3 {
        wait_for("it raises the word", || victim.word() == 1);
        // Each burst raises it again, whatever became of it meanwhile.
        victim.lower();
    }
    victim.seat.forget_stop_word();
    assert!(!victim.seat.latency_seats_raise());
    server.end();
}

#[test]
fn the_end_of_a_burst_wakes_who_is_stopped() {
    let runtime = shared();
    let server = runtime.tenant("server", "latency", &[]);
    wait_for("it has its seat", || runtime.seat(&server).is_some());
    let victim = Victim::sit(runtime.path(), gpu(&runtime));
    victim.seat.say_stopped(true);
    let before = victim.seat.bell();
    wait_for("the bell rings", || victim.seat.bell() != before);
    server.end();
}

#[test]
fn a_best_effort_tenant_that_is_killed_takes_nobody_along() {
    let runtime = shared();
    let server = runtime.tenant("server", "latency", &[]);
    wait_for("it has its seat", || runtime.seat(&server).is_some());
    let gpu = gpu(&runtime);
    for _ in 0..3 {
        let mut victim = start_victim(&runtime, gpu);
        wait_for("both sit", || runtime.seats().len() == 2);
        let bursts = runtime.counter(&server, "bursts");
        wait_for("the server answers", || runtime.counter(&server, "bursts") > bursts + 5);
        victim.kill().unwrap();
        victim.wait().unwrap();
        wait_for("its seat is free", || runtime.seats().len() == 1);
        let bursts = runtime.counter(&server, "bursts");
        wait_for("the server goes on", || runtime.counter(&server, "bursts") > bursts + 5);
    }
    server.end();
}

#[test]
fn a_handle_that_means_nothing_is_left_alone() {
    let runtime = shared();
    let server = runtime.tenant("server", "latency", &[]);
    wait_for("it has its seat", || runtime.seat(&server).is_some());
    let victim = Victim::sit(runtime.path(), gpu(&runtime));
    victim.seat.publish_stop_word([0xab; 64], 0);
    let bursts = runtime.counter(&server, "bursts");
    wait_for("the server goes on", || runtime.counter(&server, "bursts") > bursts + 5);
    assert!(!victim.seat.latency_seats_raise());
    let handle = victim.space.export(victim.memory).unwrap().to_bytes();
    victim.seat.publish_stop_word(handle, 1 << 40);
    let bursts = runtime.counter(&server, "bursts");
    wait_for("the server goes on", || runtime.counter(&server, "bursts") > bursts + 5);
    assert!(!victim.seat.latency_seats_raise(), "the word would not lie in that memory");
    server.end();
}

#[test]
fn a_best_effort_tenant_stops_between_blocks_and_both_are_right() {
    let runtime = shared();
    let train = runtime.tenant("train", "best-effort", &[]);
    let serve = runtime.tenant("serve", "latency", &[]);
    wait_for("it is stopped", || runtime.counter(&train, "stops_guard") > 3);
    let seat = runtime.seat(&train).unwrap();
    assert_eq!(seat["rung"].text(), "guard", "{seat:?}");
    wait_for("launches are cut and made again", || runtime.counter(&train, "relaunched") > 0);
    serve.end();
    train.end();
}

#[test]
fn the_card_runs_all_contexts_at_once() {
    let runtime = shared();
    let output = runtime.ebb(&["run", "--device", "soft", "--", "true"]);
    assert_eq!(common::errors(&output), "");
    let shown = common::text(&runtime.ebb(&["soft", "show"]));
    assert!(shown.contains("domain       shared"), "{shown}");
    let report = runtime.report().unwrap();
    assert_eq!(report["daemon"]["domain"].text(), "shared");
    assert!(matches!(report["daemon"]["mps"], common::json::Value::Null), "a software GPU needs no MPS");
}

#[test]
fn a_best_effort_tenant_that_was_paused_goes_on_when_it_is_resumed() {
    let runtime = shared();
    let server = runtime.tenant("server", "latency", &[]);
    let train = runtime.tenant("train", "best-effort", &[]);
    let launches = || runtime.counter(&train, "launches");
    for _ in 0..3 {
        let before = launches();
        wait_for("it works", || launches() > before + 3);
        assert!(runtime.ebb(&["pause", "train"]).status.success());
        let is_paused = || runtime.seat(&train).is_some_and(|seat| seat["state"].text() == "paused");
        wait_for("it is paused", is_paused);
        assert!(runtime.ebb(&["resume", "train"]).status.success());
    }
    let before = launches();
    wait_for("it goes on", || launches() > before + 3);
    server.end();
    train.end();
}
