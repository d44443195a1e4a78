//! What the dashboard costs the daemon: with nobody looking, and open in three browsers.
//!
//! Twenty processes with seats, ledgers and event logs, which count and write down as tenants at work do; three streams that are read to their
//! end, and a page of a tenant and of verdicts that ask again and again, as open ones do.
//!
//! `cargo bench -p cli --bench dashboard`

#![expect(clippy::unwrap_used, reason = "a benchmark that meets the unexpected should stop there")]

use std::ffi::CString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use board::link::{self, Registration};
use board::{Gpu, Label, Seat};
use model::{Class, Nanos};
use telemetry::{Event, EventLog, Ledger, Stem, What};

const TENANTS: u64 = 20;
const STREAMS: usize = 3;
const FOR: Duration = Duration::from_secs(10);
const BAR: f64 = 2.0;
/// In a second, as Linux tells every program whatever its own clock does.
const TICKS: f64 = 100.0;

/// By these variables a process of a tenant knows that it is one.
const NUMBER: &str = "EBB_BENCH_TENANT";
const FOLDER: &str = "EBB_BENCH_FOLDER";

fn main() {
    if let (Ok(number), Some(folder)) = (std::env::var(NUMBER), std::env::var_os(FOLDER)) {
        return work(Path::new(&folder), number.parse().unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("ebb.toml"), "schema_version = 1\n[metrics]\nlisten = \"127.0.0.1:0\"\n").unwrap();
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_ebb"));
    daemon.args(["daemon", "--config"]).arg(at("ebb.toml")).env("EBB_RUNTIME_DIR", folder.path());
    let mut daemon = daemon.stderr(Stdio::null()).spawn().unwrap();
    while !at("ebb.sock").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = Arc::new(AtomicBool::new(false));
    let tenants: Vec<_> = (1..=TENANTS).map(|number| tenant(folder.path(), number)).collect();
    let (address, tenant) = found(folder.path());
    let alone = share(daemon.id());
    let bytes = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..STREAMS).map(|_| follow(&address, &bytes, &ended)).collect();
    let asking = ask_again(&address, &tenant, &ended);
    std::thread::sleep(Duration::from_secs(2));
    let before = bytes.load(Ordering::Relaxed);
    let watched = share(daemon.id());
    let each = (bytes.load(Ordering::Relaxed) - before) as f64 / STREAMS as f64 / FOR.as_secs_f64();
    ended.store(true, Ordering::Relaxed);
    println!("{TENANTS} tenants, {STREAMS} streams of {each:.0} bytes a second, bar {BAR} % of a core");
    for (what, share) in
        [("nobody looks", alone), ("three browsers", watched), ("the difference", watched - alone)]
    {
        println!("{what:<20} {share:>8.2} % {:>6.2} of the bar", share / BAR);
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    readers.into_iter().chain([asking]).for_each(|thread| thread.join().unwrap());
    for mut tenant in tenants {
        drop(tenant.stdin.take());
        tenant.wait().unwrap();
    }
}

/// How much of a core a process takes, in per cent, all its threads together.
fn share(process: u32) -> f64 {
    let (begin, before) = (Instant::now(), taken(process));
    std::thread::sleep(FOR);
    100.0 * (taken(process) - before) / begin.elapsed().as_secs_f64()
}

/// For how many seconds a process has run. Threads that have ended are in here too.
fn taken(process: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / TICKS
}

/// A process of a tenant, which ends with its input.
fn tenant(folder: &Path, number: u64) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.env(NUMBER, number.to_string()).env(FOLDER, folder).stdin(Stdio::piped());
    child.spawn().unwrap()
}

/// Counts what a tenant at work would, a hundred times a second, and writes down what is decided about it.
fn work(folder: &Path, number: u64) {
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let name = format!("tenant-{number}");
    let class = if number.is_multiple_of(4) { Class::Latency } else { Class::BestEffort };
    let slo = (class == Class::Latency).then_some(Nanos::from_millis(20));
    let registration = Registration::new(Gpu([1; 16]), number);
    let registration = Registration { name: Label::new(name.as_bytes()), class, slo, ..registration };
    let patience = Nanos::from_millis(60_000);
    let (_connection, board, granted) =
        link::register(&text(&folder.join("ebb.sock")), &registration, None, patience).unwrap();
    let seat = board.sit(granted.place).unwrap();
    let (folder, stem) = (text(folder), Stem::now());
    let _ledger = Ledger::create(&folder, stem, name.as_bytes()).unwrap();
    let log = EventLog::create(&folder, stem, number, name.as_bytes()).unwrap();
    let ended = std::thread::spawn(|| std::io::stdin().read(&mut [0]));
    for round in 0u64.. {
        count(&seat, class, number);
        let what =
            What::Decided { why: (round % 3) as u8, runs: round.is_multiple_of(2), longest: Nanos::MAX };
        log.write(&Event { time: board::now(), post: 0, what });
        std::thread::sleep(Duration::from_millis(10));
        if ended.is_finished() {
            return;
        }
    }
}

fn count(seat: &Seat, class: Class, number: u64) {
    let tally = seat.tally();
    tally.launches.add(number);
    tally.submissions.add(number);
    tally.gpu_ns.add(10_000_000 / TENANTS);
    match class {
        Class::Latency => {
            tally.bursts.add(1);
            tally.burst_times.record(Nanos::from_micros(200 * number));
        }
        Class::BestEffort => {
            tally.waits.add(1);
            tally.wait_times.record(Nanos::from_micros(30 * number));
        }
    }
}

/// Where the dashboard is, and the page of a tenant on it, when all have come.
fn found(folder: &Path) -> (String, String) {
    loop {
        let mut status = Command::new(env!("CARGO_BIN_EXE_ebb"));
        let output = status.args(["status", "-o", "json"]).env("EBB_RUNTIME_DIR", folder).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let gpu = &report["gpus"][0];
        let there: &[_] = gpu["processes"].as_array().map_or(&[], Vec::as_slice);
        if there.len() as u64 == TENANTS {
            let url = report["daemon"]["dashboard"].as_str().unwrap();
            let latency = there.iter().find(|one| one["class"] == "latency").unwrap();
            let [gpu, tenant] = [&gpu["uuid"], &latency["tenant"]].map(|text| text.as_str().unwrap());
            let address = url.trim_start_matches("http://").trim_end_matches('/');
            return (address.to_owned(), format!("/api/tenants/{gpu}/{tenant}"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn begin(address: &str, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream
}

/// An open page: reads all that comes.
fn follow(address: &str, bytes: &Arc<AtomicUsize>, ended: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let mut stream = begin(address, "/api/stream");
    let (bytes, ended) = (bytes.clone(), ended.clone());
    std::thread::spawn(move || {
        let mut piece = [0; 1 << 16];
        while let Ok(length @ 1..) = stream.read(&mut piece) {
            bytes.fetch_add(length, Ordering::Relaxed);
        }
        assert!(ended.load(Ordering::Relaxed), "the stream has ended");
    })
}

/// The pages of a tenant and of verdicts, which ask again every two and three seconds: here in turns, every second.
fn ask_again(address: &str, tenant: &str, ended: &Arc<AtomicBool>) -> std::thread::JoinHandle<()> {
    let (address, tenant, ended) = (address.to_owned(), tenant.to_owned(), ended.clone());
    std::thread::spawn(move || {
        for path in [tenant.as_str(), "/api/verdicts"].into_iter().cycle() {
            if ended.load(Ordering::Relaxed) {
                return;
            }
            let mut text = String::new();
            begin(&address, path).read_to_string(&mut text).unwrap();
            assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
            std::thread::sleep(Duration::from_secs(1));
        }
    })
}
