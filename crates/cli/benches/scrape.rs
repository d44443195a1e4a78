//! What it takes to read the metrics of a daemon with a hundred tenants, and what of that its one thread is kept for.
//!
//! `cargo bench -p cli --bench scrape`

#![expect(clippy::unwrap_used, reason = "a benchmark that meets the unexpected should stop there")]

use std::ffi::CString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use board::link::{self, Registration};
use board::{Gpu, Label};
use model::Nanos;

const TENANTS: u64 = 100;
const SCRAPES: u32 = 30;
/// Readers that come sooner are given what the last one was given.
const APART: Duration = Duration::from_millis(120);
const BAR_MS: f64 = 10.0;

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("ebb.toml"), "schema_version = 1\n[metrics]\nlisten = \"127.0.0.1:0\"\n").unwrap();
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_ebb"));
    daemon.args(["daemon", "--config"]).arg(at("ebb.toml")).env("EBB_RUNTIME_DIR", folder.path());
    let mut daemon = daemon.stderr(Stdio::null()).spawn().unwrap();
    while !at("ebb.sock").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let tenants: Vec<_> = (1..=TENANTS).map(|number| seat(&at("ebb.sock"), number)).collect();
    let address = address(folder.path());
    let length = scrape(&address);
    let thread = || kept(daemon.id());
    let (before, mut times) = (thread(), Vec::new());
    for _ in 0..SCRAPES {
        std::thread::sleep(APART);
        let begin = Instant::now();
        let again = scrape(&address);
        times.push(begin.elapsed().as_secs_f64() * 1e3);
        // Times and counts of the daemon itself have grown by a digit here and there.
        assert!(again.abs_diff(length) < length / 100, "{again} bytes after {length}");
    }
    let daemons = (thread() - before) / f64::from(SCRAPES);
    times.sort_by(f64::total_cmp);
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    println!("{TENANTS} tenants, {length} bytes, bar {BAR_MS} ms");
    for (what, took) in [("median", median), ("worst", worst), ("the daemon's thread", daemons)] {
        println!("{what:<20} {took:>8.2} ms {:>6.2} of the bar", took / BAR_MS);
    }
    drop(tenants);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

/// A tenant that has counted something in every bucket.
fn seat(socket: &Path, number: u64) -> OwnedFd {
    let socket = CString::new(socket.as_os_str().as_bytes()).unwrap();
    let name = Label::new(format!("tenant-{number}").as_bytes());
    let registration = Registration { name, ..Registration::new(Gpu([1; 16]), number) };
    let (connection, board, granted) =
        link::register(&socket, &registration, None, Nanos::from_millis(60_000)).unwrap();
    let seat = board.sit(granted.place).unwrap();
    (10..40).for_each(|power| seat.tally().wait_times.record(Nanos(1 << power)));
    seat.tally().launches.add(number);
    connection
}

fn address(folder: &Path) -> String {
    let mut status = Command::new(env!("CARGO_BIN_EXE_ebb"));
    let output = status.args(["status", "-o", "json"]).env("EBB_RUNTIME_DIR", folder).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let url = report["daemon"]["metrics"].as_str().unwrap();
    url.trim_start_matches("http://").trim_end_matches("/metrics").to_owned()
}

/// Reads everything; how many bytes that is, but for what changes with the time.
fn scrape(address: &str) -> usize {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200 "));
    let body = text.split_once("\r\n\r\n").unwrap().1;
    body.lines().filter(|line| !line.contains("_idle_")).map(|line| line.len() + 1).sum()
}

/// For how many milliseconds the first thread of a process has run.
fn kept(process: u32) -> f64 {
    let times = fs::read_to_string(format!("/proc/{process}/task/{process}/schedstat")).unwrap();
    times.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e6
}
