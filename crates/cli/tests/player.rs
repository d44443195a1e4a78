//! `ebb lab tenant`, as the lab starts it: synthetic tenants on the software GPU, told what to do by lines of JSON.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use common::private_folder;
use serde_json::{Value, json};

const BURST: &str = r#"{"model":"burst","launches":3,"blocks":264,"block":"200us","gap":"100us"}"#;
const GRID: &str = r#"{"model":"grid","blocks":1056,"block":"1ms"}"#;
/// Two parts, of kernels that fill the card, that leave room on it, and with many waves of short blocks.
const PROFILE: &str = r#"{"schema":1,"workload":"llama-inference-eager-b1-p512-o4","recorded":{},"sms":132,"parts":[
{"name":"prefill","times":1,"host_us":500,"kernels":[[0,50000,128,16,10],[300,200,256,8,300]]},
{"name":"decode","times":3,"host_us":400,"kernels":[[0,10,64,32,100],[200,132,1024,1,500]]}]}"#;

struct Player {
    child: Child,
    input: Option<ChildStdin>,
    lines: BufReader<ChildStdout>,
}

impl Player {
    fn start(folder: &Path, spec: &str) -> Player {
        fs::write(folder.join("spec.json"), spec).unwrap();
        let driver = common::products().join("softcuda/libcuda.so.1");
        let mut command: Command = common::ebb(folder);
        command.args(["lab", "tenant"]).arg(folder.join("spec.json")).arg("--driver").arg(driver);
        command.arg("--profiles").arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (input, lines) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Player { child, input, lines }
    }

    fn tell(&mut self, order: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{order}").unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }

    fn ask(&mut self, order: &Value) -> Value {
        self.tell(order);
        self.hear()
    }

    fn end(&mut self) -> ExitStatus {
        self.input = None;
        self.child.wait().unwrap()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn tenant(name: &str, class: &str, workload: &str) -> String {
    format!(r#"{{"name":"{name}","class":"{class}","workload":{workload},"stream":"normal"}}"#)
}

fn spec(tenants: &[String], slowdown: f64) -> String {
    format!(r#"{{"tenants":[{}],"slowdown":{slowdown},"tiny":false}}"#, tenants.join(","))
}

/// A little ahead, so that everybody has heard of it.
fn soon() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap() + 100_000_000
}

fn run(tenant: usize, due_us: &Value, until_us: u64, drain_us: u64) -> Value {
    json!({"do": "run", "tenant": tenant, "begin_ns": soon(), "due_us": due_us, "until_us": until_us, "drain_us": drain_us})
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect()
}

#[test]
fn requests_are_served_in_order_when_they_are_due_and_every_one_is_right() {
    let folder = private_folder();
    let mut player = Player::start(folder.path(), &spec(&[tenant("b", "latency", BURST)], 2.0));
    let ready = player.hear();
    // Three launches, 264 small blocks of 400 µs at once.
    assert_eq!(ready["tenants"][0]["gpu_us"], 1200.0, "{ready}");
    assert_eq!(ready["gpu"]["name"], "ebb software GPU");
    assert_eq!(player.ask(&json!({"do": "prepare", "tenant": 0})), json!({"say": "prepared", "tenant": 0}));
    let due = [1000, 1500, 30_000];
    let ran = player.ask(&run(0, &json!(due), 50_000, 1_000_000));
    let (start, end) = (numbers(&ran["start_us"]), numbers(&ran["end_us"]));
    assert_eq!((start.len(), end.len()), (3, 3), "{ran}");
    for number in 0..3 {
        assert!(start[number] >= due[number], "{ran}");
        assert!(number == 0 || start[number] >= end[number - 1], "one at a time: {ran}");
        assert!(end[number] - start[number] >= 1200, "{ran}");
    }
    assert_eq!(ran["wrong"], json!([]));
    assert_eq!(ran.get("checks"), None, "{ran}");
    assert!(player.end().success());
}

#[test]
fn what_has_not_begun_when_the_run_is_drained_stays_unserved() {
    let folder = private_folder();
    let mut player = Player::start(folder.path(), &spec(&[tenant("g", "latency", GRID)], 1.0));
    player.hear();
    // Each takes 8 ms; all ten are due at once, and 20 ms are given.
    let ran = player.ask(&run(0, &json!(vec![0; 10]), 10_000, 10_000));
    let (start, end) = (numbers(&ran["start_us"]), numbers(&ran["end_us"]));
    assert_eq!(start.len(), end.len());
    // None at all where this machine had no time for us; never more than fit.
    assert!(end.len() <= 3 && start.iter().all(|start| *start <= 20_000), "{ran}");
    // Nobody is served who comes after the end.
    let ran = player.ask(&run(0, &json!([1_000_000_000]), 10_000, 10_000));
    assert_eq!(ran["end_us"], json!([]));
}

#[test]
fn iterations_are_checked_by_their_numbers_and_stop_when_told() {
    let folder = private_folder();
    let mut player = Player::start(folder.path(), &spec(&[tenant("g", "best-effort", GRID)], 1.0));
    player.hear();
    let mut checks = Vec::new();
    for _ in 0..2 {
        let ran = player.ask(&run(0, &Value::Null, 100_000, 0));
        let (start, end) = (numbers(&ran["start_us"]), numbers(&ran["end_us"]));
        assert!(start.iter().all(|start| *start < 100_000), "{ran}");
        assert!((2..=15).contains(&end.len()), "8 ms each: {ran}");
        assert!(end.windows(2).all(|pair| pair[1] >= pair[0] + 7_900), "one after another on the GPU: {ran}");
        // The next is handed over before one has ended, wherever this machine had time for it.
        assert!((1..start.len()).any(|next| start[next] < end[next - 1]), "{ran}");
        assert_eq!(ran["wrong"], json!([]));
        checks.push(ran["checks"].as_array().unwrap().clone());
    }
    let common = checks[0].len().min(checks[1].len());
    assert_eq!(checks[0][..common], checks[1][..common]);
    assert_ne!(checks[0][0], checks[0][1]);
}

#[test]
fn a_profile_is_replayed_part_by_part_and_token_by_token() {
    let folder = private_folder();
    fs::write(folder.path().join("llama-inference-eager-b1-p512-o4.json"), PROFILE).unwrap();
    let llama = r#"{"model":"llama","output":4}"#;
    let mut player = Player::start(folder.path(), &spec(&[tenant("l", "latency", llama)], 4.0));
    let ready = player.hear();
    // 24 waves of 10 µs and 300 µs; then three times 100 µs and 500 µs; four times as slow.
    assert_eq!(ready["tenants"][0]["gpu_us"], (240.0 + 300.0 + 3.0 * 600.0) * 4.0, "{ready}");
    let ran = player.ask(&run(0, &json!([0, 20_000]), 50_000, 1_000_000));
    assert_eq!((&ran["tokens"], &ran["wrong"]), (&json!([4, 4]), &json!([])), "{ran}");
    for number in 0..2 {
        let [start, first, end] = ["start_us", "first_us", "end_us"].map(|key| numbers(&ran[key])[number]);
        // The second kernel is handed over at 300 µs and takes as long; a token has 200 µs and 500 µs.
        assert!(first - start >= 4 * 600, "{ran}");
        assert!(end - first >= 3 * 4 * 700, "{ran}");
    }
}

#[test]
fn tenants_of_one_process_run_beside_each_other() {
    let folder = private_folder();
    let tenants = [tenant("b", "latency", BURST), tenant("g", "best-effort", GRID)];
    let mut player = Player::start(folder.path(), &spec(&tenants, 1.0));
    assert_eq!(player.hear()["tenants"].as_array().unwrap().len(), 2);
    player.tell(&run(0, &json!([10_000, 60_000]), 100_000, 1_000_000));
    player.tell(&run(1, &Value::Null, 100_000, 0));
    let mut replies = [player.hear(), player.hear()];
    replies.sort_by_key(|reply| reply["tenant"].as_u64());
    for (tenant, reply) in replies.iter().enumerate() {
        assert_eq!((&reply["say"], &reply["tenant"]), (&json!("ran"), &json!(tenant)), "{reply}");
        assert_eq!(reply["wrong"], json!([]));
    }
    assert_eq!(numbers(&replies[0]["end_us"]).len(), 2);
    let iterations = numbers(&replies[1]["end_us"]);
    assert!(iterations.len() >= 2, "{iterations:?}");
}

#[test]
fn a_closed_loop_says_how_much_a_tenant_can_do() {
    let folder = private_folder();
    let mut player = Player::start(folder.path(), &spec(&[tenant("g", "latency", GRID)], 1.0));
    player.hear();
    let told = player.ask(&json!({"do": "calibrate", "tenant": 0, "seconds": 0.3}));
    let per_second = told["per_s"].as_f64().unwrap();
    // A request is 8 ms of the GPU, whatever else this machine does.
    assert!(per_second > 1.0 && per_second <= 126.0, "{told}");
    assert!(told["count"].as_u64().unwrap() >= 1);
    let refused = player.ask(&json!({"do": "calibrate", "tenant": 0, "seconds": -1.0}));
    assert_eq!((&refused["say"], &refused["tenant"]), (&json!("error"), &json!(0)));
}

#[test]
fn the_end_of_its_input_ends_it_in_the_middle_of_a_run() {
    let folder = private_folder();
    let mut player = Player::start(folder.path(), &spec(&[tenant("g", "best-effort", GRID)], 1.0));
    player.hear();
    player.tell(&run(0, &Value::Null, 600_000_000, 0));
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(player.child.try_wait().unwrap(), None, "it should be at work");
    assert!(player.end().success());
}

#[test]
fn orders_that_mean_nothing_are_refused_and_the_next_is_obeyed() {
    let folder = private_folder();
    let mut player = Player::start(folder.path(), &spec(&[tenant("b", "latency", BURST)], 1.0));
    player.hear();
    for order in [
        json!({"do": "dance", "tenant": 0}),
        json!({"do": "prepare", "tenant": 7}),
        json!({"do": "record", "tenant": 0}),
        json!([1, 2]),
        json!({"do": "run", "tenant": 0, "begin_ns": -1, "due_us": null, "until_us": 1, "drain_us": 1}),
    ] {
        let reply = player.ask(&order);
        assert_eq!(reply["say"], "error", "{order}: {reply}");
    }
    assert_eq!(player.ask(&json!({"do": "prepare", "tenant": 0}))["say"], "prepared");
}

#[test]
fn a_specification_that_cannot_be_played_is_an_error_with_its_reason() {
    let folder = private_folder();
    fs::write(folder.path().join("vgg19-inference-eager-b1.json"), r#"{"schema":1,"sms":0}"#).unwrap();
    let one = |workload: &str| spec(&[tenant("t", "latency", workload)], 1.0);
    let cases = [
        ("{".to_owned(), "EOF"),
        (spec(&[], 1.0), "no tenant"),
        (spec(&[tenant("t", "latency", BURST)], 0.0), "slowdown is 0"),
        (spec(&[tenant("t", "urgent", BURST)], 1.0), "urgent"),
        (one(r#"{"model":"vgg99"}"#), "vgg99"),
        (one(r#"{"model":"grid","blocks":0,"block":"1ms"}"#), "blocks is 0"),
        (one(r#"{"model":"vgg19","batch":7}"#), "ebb lab record vgg19-inference-eager-b7"),
        (one(r#"{"model":"vgg19"}"#), "missing field `workload`"),
        (spec(&[tenant("t", "latency", r#"{"model":"grid","blocks":1,"block":"1s"}"#)], 30.0), "slowdown"),
        // One that cannot be played is enough.
        (spec(&[tenant("b", "latency", BURST), tenant("u", "urgent", GRID)], 1.0), "u: class"),
    ];
    for (spec, reason) in cases {
        let mut player = Player::start(folder.path(), &spec);
        let said = player.hear();
        assert_eq!(said["say"], "error", "{spec}: {said}");
        assert!(said["reason"].as_str().unwrap().contains(reason), "{reason}: {said}");
        assert_eq!(player.child.wait().unwrap().code(), Some(1), "{spec}");
    }
}
