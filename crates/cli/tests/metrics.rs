//! What a daemon serves, held against what scripted tenants on the software GPU have really done.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;
#[path = "../../export/tests/exposition.rs"]
mod exposition;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use common::json::Value;
use common::runtime::{PATIENCE, Runtime, wait_for};
use common::{compiled, private_folder};
use exposition::Exposition;
use rustix::process::{Pid, Signal, kill_process};

/// A runtime folder whose daemon serves metrics.
fn serving(more: &str) -> Runtime {
    let runtime = Runtime::new();
    configure(&runtime, more);
    runtime
}

fn configure(runtime: &Runtime, more: &str) {
    fs::create_dir_all(runtime.path().join("ebb")).unwrap();
    let text = format!("schema_version = 1\n{more}\n[metrics]\nlisten = \"127.0.0.1:0\"\n");
    fs::write(runtime.path().join("ebb/ebb.toml"), text).unwrap();
}

/// A tenant that does what it is told.
struct Scripted {
    child: Child,
    input: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Scripted {
    fn start(runtime: &Runtime, program: &Path, options: &[&str]) -> Scripted {
        let mut command = runtime.command();
        command.env("EBB_GUARD_CACHE", runtime.path().join("guard"));
        command.args(["run", "--device", "soft"]).args(options).arg("--").arg(program);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, lines) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut scripted = Scripted { child, input, lines };
        assert_eq!(scripted.hear(), "ready");
        scripted
    }

    fn tell(&mut self, order: &str) {
        writeln!(self.input.as_mut().unwrap(), "{order}").unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until it is done; how many seconds that took, as it says itself.
    fn expect_done(&mut self) -> f64 {
        let line = self.hear();
        line.strip_prefix("done ").unwrap().parse::<f64>().unwrap() / 1e6
    }

    fn ask(&mut self, order: &str) -> f64 {
        self.tell(order);
        self.expect_done()
    }

    fn end(mut self) {
        self.input = None;
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address(runtime: &Runtime) -> String {
    let report = runtime.report().unwrap();
    let url = report["daemon"]["metrics"].text().to_owned();
    url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap().to_owned()
}

/// What is answered to these bytes.
fn answer(runtime: &Runtime, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address(runtime)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(bytes);
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    text
}

fn scrape(runtime: &Runtime) -> Exposition {
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: application/openmetrics-text\r\n\r\n";
    let answer = answer(runtime, request);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("application/openmetrics-text"), "{head}");
    Exposition::read(body)
}

fn of_tenant(runtime: &Runtime, metric: &str, tenant: &str) -> f64 {
    scrape(runtime).get(metric, &[("tenant", tenant)]).unwrap_or(-1.0)
}

const LAUNCHES: &str = "ebb_tenant_launches_total";
const GPU_TIME: &str = "ebb_tenant_gpu_time_seconds_total";

/// A reader that comes soon after another is given the same.
fn expect_launches(runtime: &Runtime, tenant: &str, launches: u32) {
    let launches = f64::from(launches);
    wait_for("all launches are counted", || of_tenant(runtime, LAUNCHES, tenant) >= launches);
    assert_eq!(of_tenant(runtime, LAUNCHES, tenant), launches, "{tenant}");
}

/// Waits until as much is counted as was done, and sees that it is not more. Kernels take their time exactly, but on a busy machine a program
/// hears late that they are done, and that time is its own as well: it says how long it all took.
fn expect_truth(runtime: &Runtime, tenant: &str, launches: u32, seconds: f64, took: f64) {
    expect_launches(runtime, tenant, launches);
    wait_for("all of the time is counted", || of_tenant(runtime, GPU_TIME, tenant) >= 0.95 * seconds);
    let counted = of_tenant(runtime, GPU_TIME, tenant);
    assert!(counted <= 1.05 * took, "{tenant}: {counted} s, and it was {seconds} s in {took} s");
}

/// In each domain and class: plain launches, and graphs, whose kernels count one by one; neither what is captured nor copies.
fn counts_what_was_done(configuration: &str) {
    let runtime = serving(configuration);
    let Some(program) = compiled(runtime.path(), "scripted.c", &[], "scripted") else { return };
    for class in ["latency", "best-effort"] {
        let mut tenant = Scripted::start(&runtime, &program, &["--class", class, "--name", class]);
        let took = tenant.ask("launch 20 40") + tenant.ask("copy 3") + tenant.ask("graph 4 5 40");
        expect_truth(&runtime, class, 40, 1.6, took);
        tenant.end();
        expect_truth(&runtime, class, 40, 1.6, took);
    }
}

#[test]
fn counts_are_the_truth_in_the_isolated_domain() {
    counts_what_was_done("");
}

#[test]
fn counts_are_the_truth_in_the_shared_domain() {
    counts_what_was_done("domain = \"shared\"\nmps = false");
}

#[test]
fn counts_are_the_truth_where_tenants_stop_each_other() {
    for domain in ["", "domain = \"shared\"\nmps = false"] {
        let runtime = serving(domain);
        let Some(program) = compiled(runtime.path(), "scripted.c", &[], "scripted") else { return };
        let mut search = Scripted::start(
            &runtime,
            &program,
            &["--class", "latency", "--name", "search", "--slo-p99", "30s"],
        );
        let start = |name| Scripted::start(&runtime, &program, &["--name", name]);
        let mut others = [start("one"), start("two")];
        others.iter_mut().for_each(|other| other.tell("launch 60 20"));
        let took: f64 = (0..10).map(|_| search.ask("launch 3 50")).sum();
        for other in &mut others {
            other.expect_done();
        }
        expect_truth(&runtime, "search", 30, 1.5, took);
        for name in ["one", "two"] {
            expect_launches(&runtime, name, 60);
        }
        let found = scrape(&runtime);
        let search = [("tenant", "search")];
        assert_eq!(found.get("ebb_slo_requests_total", &search), Some(10.0));
        assert_eq!(found.get("ebb_slo_violations_total", &search), Some(0.0));
        assert_eq!(found.get("ebb_slo_target_seconds", &search), Some(30.0));
        let latency = found.get("ebb_clients", &[("class", "latency")]);
        let best_effort = found.get("ebb_clients", &[("class", "best-effort")]);
        assert_eq!((latency, best_effort), (Some(1.0), Some(2.0)));
        if domain.is_empty() {
            let of = |rung| stops_of(&found, "one", rung) + stops_of(&found, "two", rung);
            assert!(of("hold") + of("switch") > 0.0, "nobody was stopped");
            // One at a time, and what is stopped is not on the GPU: each has used what its kernels take.
            for name in ["one", "two"] {
                expect_truth(&runtime, name, 60, 1.2, 1.2);
            }
            let harvested = scrape(&runtime).get("ebb_harvested_gpu_seconds_total", &[]).unwrap();
            assert!((2.28..2.52).contains(&harvested), "{harvested}");
        }
    }
}

fn stops_of(found: &Exposition, tenant: &str, rung: &str) -> f64 {
    found.get("ebb_preemptions_total", &[("tenant", tenant), ("rung", rung)]).unwrap()
}

#[test]
fn series_begin_at_nought_and_never_go_back() {
    let runtime = serving("");
    let Some(program) = compiled(runtime.path(), "scripted.c", &[], "scripted") else { return };
    let mut first = Scripted::start(&runtime, &program, &["--name", "train"]);
    wait_for("the tenant is known", || of_tenant(&runtime, LAUNCHES, "train") >= 0.0);
    let found = scrape(&runtime);
    let nought = [
        LAUNCHES,
        GPU_TIME,
        "ebb_resumes_total",
        "ebb_tenant_launch_wait_seconds_count",
        "ebb_tenant_launch_wait_seconds_sum",
    ];
    for name in nought {
        assert_eq!(found.get(name, &[("tenant", "train")]), Some(0.0), "{name}");
    }
    let reason = |found: &Exposition, reason| {
        found.get("ebb_client_disconnects_total", &[("reason", reason)]).unwrap()
    };
    assert_eq!((reason(&found, "exit"), reason(&found, "death")), (0.0, 0.0));
    assert_eq!(found.get("ebb_unmanaged_processes", &[]), None, "nobody knows that here");
    let mut before = found;
    let mut second = Scripted::start(&runtime, &program, &["--name", "train"]);
    let mut look = |what: &str| {
        let now = scrape(&runtime);
        for (series, value) in &before.values {
            let counts = series.name.ends_with("_total")
                || series.name.ends_with("_count")
                || series.name.ends_with("_bucket");
            let again = now.values.get(series);
            assert!(
                !counts || again.is_some_and(|again| again >= value),
                "{what}: {series:?}, {value}, then {again:?}"
            );
        }
        before = now;
    };
    first.ask("launch 5 10");
    look("one has worked");
    second.ask("launch 7 10");
    look("both have worked");
    first.end();
    wait_for("one has left", || reason(&scrape(&runtime), "exit") == 1.0);
    look("one has ended");
    expect_launches(&runtime, "train", 12);
    second.tell("die");
    wait_for("the other is dead", || reason(&scrape(&runtime), "death") == 1.0);
    look("the other was killed");
    expect_launches(&runtime, "train", 12);
    assert_eq!(scrape(&runtime).get("ebb_tenant_info", &[("tenant", "train")]), None, "it is not there");
    let mut third = Scripted::start(&runtime, &program, &["--name", "train"]);
    third.ask("launch 1 10");
    look("it has come again");
    expect_launches(&runtime, "train", 13);
}

#[test]
fn bad_readers_hurt_nobody() {
    let runtime = serving("");
    let Some(program) = compiled(runtime.path(), "scripted.c", &[], "scripted") else { return };
    let mut tenant = Scripted::start(&runtime, &program, &["--name", "train"]);
    let at = address(&runtime);
    let mut slow: Vec<_> = (0..100).map(|_| TcpStream::connect(&at).unwrap()).collect();
    for stream in &mut slow {
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ");
    }
    tenant.ask("launch 3 10");
    assert!(runtime.report().is_some(), "the daemon answers others meanwhile");
    let long = [b"GET /metrics HTTP/1.1\r\nX: ".to_vec(), vec![b'y'; 1 << 20]].concat();
    let hostile: [&[u8]; 4] =
        [b"\xff\xfe\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", &long, b"GET /metrics"];
    for bytes in hostile {
        let mut stream = TcpStream::connect(&at).unwrap();
        let _ = stream.write_all(bytes);
    }
    drop(slow);
    wait_for("metrics are served", || {
        answer(&runtime, b"GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 ")
    });
    expect_launches(&runtime, "train", 3);
    assert!(answer(&runtime, b"GET /other HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404 "));
    let elsewhere = answer(&runtime, b"GET /metrics HTTP/1.1\r\nHost: pointed-here.example\r\n\r\n");
    assert!(elsewhere.starts_with("HTTP/1.1 403 "), "{elsewhere}");
    tenant.end();
}

#[test]
fn a_users_daemon_serves_nothing_unless_it_is_told_to() {
    let runtime = Runtime::new();
    let daemon = runtime.daemon();
    assert_eq!(runtime.report().unwrap()["daemon"]["metrics"], Value::Null);
    configure(&runtime, "");
    kill_process(daemon, Signal::HUP).unwrap();
    wait_for("metrics are served", || runtime.report().unwrap()["daemon"]["metrics"] != Value::Null);
    assert_eq!(scrape(&runtime).get("ebb_config_last_reload_successful", &[]), Some(1.0));
    let good = fs::read_to_string(runtime.path().join("ebb/ebb.toml")).unwrap();
    fs::write(runtime.path().join("ebb/ebb.toml"), format!("{good}nonsense")).unwrap();
    kill_process(daemon, Signal::HUP).unwrap();
    wait_for("the reload fails", || {
        scrape(&runtime).get("ebb_config_last_reload_successful", &[]) == Some(0.0)
    });
}

/// A process that goes round ebb, and goes with the test.
struct Stray(Child);

impl Drop for Stray {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_process_that_is_no_tenant_is_counted_where_the_library_tells() {
    let runtime = serving("");
    let folder = private_folder();
    let options = ["-shared", "-fPIC"];
    let Some(program) = compiled(runtime.path(), "scripted.c", &[], "scripted") else { return };
    let Some(_library) = compiled(folder.path(), "nvml.c", &options, "libnvidia-ml.so.1") else { return };
    // The library must name the GPU as tenants do, so one is asked first.
    let tenant = Scripted::start(&runtime, &program, &[]);
    wait_for("a tenant has a seat", || !runtime.seats().is_empty());
    let uuid = runtime.report().unwrap()["gpus"].items()[0]["uuid"].text().to_owned();
    tenant.end();
    kill_process(runtime.daemon(), Signal::TERM).unwrap();
    wait_for("the first daemon has ended", || runtime.report().is_none());
    let stray = Stray(Command::new("sleep").arg("1000").spawn().unwrap());
    let mut daemon = runtime.command();
    daemon.arg("daemon").env("LD_LIBRARY_PATH", folder.path());
    daemon.env("FAKE_NVML_UUID", uuid).env("FAKE_NVML_PID", stray.0.id().to_string());
    let mut daemon = daemon.stderr(Stdio::null()).spawn().unwrap();
    wait_for("the daemon answers", || runtime.report().is_some());
    let _tenant = Scripted::start(&runtime, &program, &["--name", "train"]);
    wait_for("the stray is counted", || {
        scrape(&runtime).get("ebb_unmanaged_processes", &[("gpu", "5")]) == Some(1.0)
    });
    drop(stray);
    wait_for("nothing is known of who is gone", || {
        scrape(&runtime).get("ebb_unmanaged_processes", &[]).is_none()
    });
    kill_process(Pid::from_child(&daemon), Signal::TERM).unwrap();
    daemon.wait().unwrap();
}

#[test]
fn an_address_that_is_taken_is_tried_again() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let runtime = Runtime::new();
    fs::create_dir_all(runtime.path().join("ebb")).unwrap();
    let listen = taken.local_addr().unwrap();
    let text = format!("schema_version = 1\n[metrics]\nlisten = \"{listen}\"\n");
    fs::write(runtime.path().join("ebb/ebb.toml"), text).unwrap();
    runtime.daemon();
    let sentences = |report: &Value| format!("{:?}", report["sentences"]);
    let report = runtime.report().unwrap();
    assert!(sentences(&report).contains("it is tried again"), "{}", sentences(&report));
    drop(taken);
    wait_for("metrics are served after all", || {
        runtime.report().is_some_and(|report| report["daemon"]["metrics"] != Value::Null)
    });
    let report = runtime.report().unwrap();
    assert!(!sentences(&report).contains("There are no metrics"), "{}", sentences(&report));
}
