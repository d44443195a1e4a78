//! `ebb lab run` on the software GPU, as a user runs it: what it writes down, what it does not do twice, and what it
//! leaves behind when a tenant or the lab itself is killed.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use common::{errors, private_folder, text};
use results::Archive;
use results::record::Run;
use rustix::process::{Pid, Signal, kill_process};

/// Far more than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A folder with scenarios, a runtime folder and results.
struct Lab {
    folder: tempfile::TempDir,
}

fn scenario(arrival: &str, milliseconds: u32) -> String {
    format!(
        r#"
schema = 1
title = "Short requests beside grids"
duration = "{milliseconds}ms"
warmup = "200ms"
repetitions = 1

[soft]
slowdown = 10

[[tenant]]
name = "requests"
class = "latency"
workload = {{ model = "burst", launches = 2, blocks = 132, block = "20us" }}
arrival = {arrival}

[[tenant]]
name = "grids"
class = "best-effort"
workload = {{ model = "grid", blocks = 132, block = "500us" }}
"#
    )
}

const STEADY: &str = r#"{ process = "poisson", rate = 400 }"#;

impl Lab {
    fn new(files: &[(&str, String)]) -> Lab {
        common::products();
        let lab = Lab { folder: private_folder() };
        fs::create_dir(lab.suite()).unwrap();
        fs::create_dir(lab.runtime()).unwrap();
        for (name, text) in files {
            fs::write(lab.suite().join(name), text).unwrap();
        }
        lab
    }

    fn steady(milliseconds: u32) -> Lab {
        Lab::new(&[("steady.toml", scenario(STEADY, milliseconds))])
    }

    fn suite(&self) -> PathBuf {
        self.folder.path().join("tried")
    }

    fn runtime(&self) -> PathBuf {
        self.folder.path().join("r")
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = common::ebb(&self.runtime());
        command.args(["lab", "run", "--device", "soft", "--grace", "1"]).arg(self.suite());
        command.arg("--out").arg(self.out()).args(words);
        command
    }

    /// Runs to the end, which must be a good one.
    fn run(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        text(&output) + &errors(&output)
    }

    fn archive(&self) -> Archive {
        Archive::read(&[self.out()]).unwrap()
    }

    fn bytes(&self) -> usize {
        fs::read(self.out().join(results::FILE)).unwrap().len()
    }

    /// The processes that have to do with this lab, by the folder in their words: number, words.
    fn processes(&self) -> Vec<(u32, String)> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let runtime = self.runtime().display().to_string();
        pids.filter_map(|pid| {
            let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            words.contains(&runtime).then_some((pid, words))
        })
        .collect()
    }

    /// The process that hosts a tenant of this class.
    fn worker(&self, class: &str) -> Pid {
        let worker = self.processes().into_iter().find_map(|(pid, words)| {
            let spec = words.split_whitespace().find(|word| word.ends_with(".json"))?;
            let hosted = fs::read_to_string(spec).ok()?;
            hosted.contains(&format!("\"class\":\"{class}\"")).then_some(pid)
        });
        Pid::from_raw(i32::try_from(worker.expect("the worker lives")).unwrap()).unwrap()
    }

    fn expect_nobody(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left behind: {left:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A campaign under way.
struct Going {
    ebb: Child,
    lines: BufReader<ChildStderr>,
}

impl Going {
    fn start(mut command: Command) -> Going {
        let mut ebb =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(ebb.stderr.take().unwrap());
        Going { ebb, lines }
    }

    /// Waits for a line that says this.
    fn hears(&mut self, wanted: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap();
            assert!(read > 0, "`{wanted}` was never said, but {all}");
            if line.contains(wanted) {
                return line;
            }
            all += &line;
        }
    }

    fn finish(mut self) -> (Option<i32>, String) {
        let rest: Vec<String> = self.lines.lines().map_while(Result::ok).collect();
        (self.ebb.wait().unwrap().code(), rest.join("\n"))
    }
}

fn dues(run: &Run) -> Vec<(String, Option<Vec<u64>>)> {
    run.tenants.iter().map(|tenant| (tenant.name.clone(), tenant.due_us.clone())).collect()
}

#[test]
fn a_suite_runs_in_every_mode_with_the_same_requests_and_is_not_run_twice() {
    let lab = Lab::steady(500);
    let said = lab.run(&[]);
    let archive = lab.archive();
    let modes: BTreeSet<&str> = archive.runs.iter().map(|run| run.mode.as_str()).collect();
    let expected = ["alone", "ebb-isolated", "ebb-shared", "mps", "mps-priority", "streams", "timeslice"];
    assert_eq!(modes, BTreeSet::from(expected), "{said}");
    assert!(archive.failures.is_empty() && archive.remarks.is_empty(), "{:?}", archive.remarks);
    assert_eq!(archive.runs.len(), 8, "one alone for each tenant");
    let shared: Vec<_> = archive.runs.iter().filter(|run| run.mode != "alone").collect();
    assert!(shared.iter().all(|run| dues(run) == dues(shared[0])), "the same requests in every mode");
    for run in &archive.runs {
        assert!(
            run.tenants.iter().all(|tenant| tenant.end_us.len() > 2 && tenant.wrong.is_empty()),
            "{run:?}"
        );
        assert!(run.tenants.iter().all(|tenant| tenant.gpu_us > 0.0));
        // What a run costs beyond the time it offers requests for, and beyond the last of them.
        let offered = run.until_us as f64 * 1e-6;
        assert!(run.wall_s >= offered, "{} s", run.wall_s);
    }
    let ebb = archive.runs.iter().find(|run| run.mode == "ebb-isolated").unwrap();
    let status = ebb.ebb.as_ref().unwrap().to_string();
    assert!(status.contains("burst-2x132x20us"), "{status}");
    assert_eq!(archive.machines[0].device.sms, 132);
    let bytes = lab.bytes();
    assert!(lab.run(&[]).contains("0 runs to make, 8 are there already"));
    assert_eq!(lab.bytes(), bytes, "nothing is written where nothing is measured");
    // Another repetition is a repetition more, not all of it again; its requests are others.
    let more = lab.run(&["--repetitions", "2", "--mode", "timeslice", "--mode", "alone"]);
    assert!(more.contains("3 runs to make, 3 are there already"), "{more}");
    let archive = lab.archive();
    let timesliced: Vec<_> = archive.runs_of("tried", "steady", "timeslice");
    assert_eq!(timesliced.len(), 2);
    assert_ne!(dues(timesliced[0]), dues(timesliced[1]));
    assert!(!lab.out().join("logs").exists(), "nobody wants to read what went right");
    lab.expect_nobody();
    assert!(fs::read_dir(lab.runtime()).unwrap().flatten().all(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        !name.starts_with("run-")
    }));
}

#[test]
fn ebb_is_measured_under_each_policy_and_no_run_is_taken_for_that_of_another() {
    let lab = Lab::steady(300);
    let both = ["--mode", "ebb-isolated", "--mode", "ebb-shared", "--policy", "strict", "--policy", "gaps"];
    let said = lab.run(&both);
    let archive = lab.archive();
    let modes: BTreeSet<&str> = archive.runs.iter().map(|run| run.mode.as_str()).collect();
    let expected = ["ebb-isolated:gaps", "ebb-isolated:strict", "ebb-shared:gaps", "ebb-shared:strict"];
    assert_eq!(modes, BTreeSet::from(expected), "{said} {:?}", archive.failures);
    assert_eq!(archive.scenarios[0].modes, expected);
    for run in &archive.runs {
        let policy = run.mode.split(':').next_back().unwrap();
        let status = run.ebb.as_ref().unwrap().to_string();
        assert!(status.contains(&format!("\"{policy}\"")), "{}: {status}", run.mode);
        assert!(run.tenants.iter().all(|tenant| tenant.end_us.len() > 2 && tenant.slo_us.is_none()));
    }
    // The table has each in a line of its own, and the same command has nothing left to do.
    assert!(expected.iter().all(|mode| said.contains(&format!("  {mode} "))), "{said}");
    assert!(lab.run(&both).contains("0 runs to make, 4 are there already"));
    let plain = lab.run(&["--mode", "ebb-isolated"]);
    assert!(plain.contains("1 runs to make"), "{plain}");
    assert!(lab.archive().runs.iter().any(|run| run.mode == "ebb-isolated"));
    lab.expect_nobody();
}

#[test]
fn an_slo_is_told_as_a_multiple_of_the_p99_alone_or_refused_where_that_is_not_known() {
    let lab = Lab::steady(300);
    let told = ["--mode", "ebb-isolated", "--policy", "slo", "--slo", "1.5"];
    let said = refusal(&lab, &told);
    assert!(said.contains("requests of tried/steady") && said.contains("`alone`"), "{said}");
    let said = lab.run(&[&["--mode", "alone"], told.as_slice()].concat());
    let archive = lab.archive();
    let figures = results::Figures::of(&archive);
    let of = |mode: &str| figures.scenarios[0].mode(mode).and_then(|mode| mode.latency_of("requests"));
    let alone = of("alone").unwrap().arrival.p99.unwrap();
    let ebb = archive.runs.iter().find(|run| run.mode == "ebb-isolated:slo:1.5x").unwrap();
    let slo = ebb.tenants.iter().find(|tenant| tenant.name == "requests").unwrap().slo_us;
    assert_eq!(slo, Some(alone.0 * 3 / 2 / 1000), "{said}");
    assert!(ebb.tenants.iter().all(|tenant| (tenant.name == "requests") == tenant.slo_us.is_some()));
    let status = ebb.ebb.as_ref().unwrap().to_string();
    assert!(status.contains(&(alone.0 * 3 / 2).to_string()), "{status}");
    let kept = of("ebb-isolated:slo:1.5x").unwrap().told.unwrap();
    assert!(kept.alone >= 0.99 && kept.kept <= 1.0, "{kept:?}");
    assert!(said.contains("requests told ") && said.contains(" in it, alone "), "{said}");
    // What is there alone need not be made again.
    let again = lab.run(&["--mode", "ebb-isolated", "--slo", "2"]);
    assert!(lab.archive().runs.iter().any(|run| run.mode == "ebb-isolated:2x"), "{again}");
}

#[test]
fn two_runs_with_one_seed_offer_the_same_requests_at_the_same_times() {
    let requests = |words: &[&str]| {
        let lab = Lab::steady(300);
        lab.run(&[&["--mode", "timeslice"], words].concat());
        lab.archive().runs.iter().map(dues).collect::<Vec<_>>()
    };
    let first = requests(&[]);
    assert!(first[0][0].1.as_ref().unwrap().len() > 5);
    assert_eq!(first, requests(&[]));
    assert_ne!(first, requests(&["--seed", "2"]));
}

#[test]
fn a_load_is_a_share_of_what_the_tenant_can_do_alone_and_is_found_once() {
    let lab = Lab::new(&[("loaded.toml", scenario(r#"{ process = "uniform", load = 0.5 }"#, 300))]);
    let said = lab.run(&["--mode", "timeslice"]);
    let archive = lab.archive();
    let capacity = archive.calibrations[0].per_s;
    let rate = archive.scenarios[0].tenants[0].rate.unwrap();
    assert!((rate / capacity - 0.5).abs() < 1e-9, "{rate} of {capacity}: {said}");
    let again = lab.run(&["--mode", "streams"]);
    assert!(!again.contains("alone serves"), "{again}");
    assert_eq!(lab.archive().scenarios[0].tenants[0].rate, Some(rate));
}

const THRICE: [&str; 4] = ["--mode", "timeslice", "--repetitions", "3"];

/// Three repetitions of time-slicing; in the second, something happens to the best-effort tenant.
fn lost(harm: Signal) -> (Lab, String) {
    let lab = Lab::steady(1500);
    let mut going = Going::start(lab.command(&THRICE));
    going.hears("[1/3]");
    // Into the next run, which takes longer than this.
    std::thread::sleep(Duration::from_millis(600));
    kill_process(lab.worker("best-effort"), harm).unwrap();
    let said = going.hears("[2/3]");
    let (status, rest) = going.finish();
    assert_eq!(status, Some(0), "{rest}");
    (lab, said)
}

#[test]
fn a_tenant_that_is_killed_costs_its_run_and_nothing_else() {
    let (lab, said) = lost(Signal::KILL);
    assert!(said.contains("FAILED: grids: was ended by signal 9"), "{said}");
    let archive = lab.archive();
    assert_eq!((archive.runs.len(), archive.failures.len()), (2, 1));
    assert_eq!(archive.failures[0].tenant.as_deref(), Some("grids"));
    assert!(archive.failures[0].reason.contains("signal 9"));
    lab.expect_nobody();
    // It is tried again when the campaign goes on.
    let again = lab.run(&THRICE);
    assert!(again.contains("1 runs to make, 2 are there already"), "{again}");
    assert!(lab.archive().failures.is_empty());
}

#[test]
fn a_tenant_that_hangs_costs_its_run_and_is_ended() {
    let (lab, said) = lost(Signal::STOP);
    assert!(said.contains("FAILED: grids: did not answer in time"), "{said}");
    let archive = lab.archive();
    assert_eq!((archive.runs.len(), archive.failures.len()), (2, 1));
    assert!(lab.out().join("logs").exists(), "somebody may want to know more");
    lab.expect_nobody();
}

/// A campaign that has made its first run and is in its second.
fn in_the_middle(lab: &Lab) -> Going {
    let mut going = Going::start(lab.command(&["--mode", "timeslice", "--mode", "ebb-isolated"]));
    going.hears("[1/2]");
    std::thread::sleep(Duration::from_millis(300));
    assert!(!lab.processes().is_empty());
    going
}

#[test]
fn an_interrupt_ends_everything_and_keeps_what_was_measured() {
    for (signal, expected) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let lab = Lab::steady(1000);
        let going = in_the_middle(&lab);
        kill_process(Pid::from_child(&going.ebb), signal).unwrap();
        let (status, rest) = going.finish();
        assert_eq!(status, Some(expected), "{rest}");
        lab.expect_nobody();
        assert_eq!(lab.archive().runs.len(), 1);
        let again = lab.run(&["--mode", "timeslice", "--mode", "ebb-isolated"]);
        assert!(again.contains("1 runs to make, 1 are there already"), "{again}");
    }
}

#[test]
fn nothing_outlives_a_lab_that_is_killed() {
    let lab = Lab::steady(1000);
    let mut going = in_the_middle(&lab);
    going.ebb.kill().unwrap();
    going.ebb.wait().unwrap();
    lab.expect_nobody();
    assert_eq!(lab.archive().runs.len(), 1);
}

#[test]
fn what_would_not_end_in_time_is_not_begun() {
    let lab = Lab::steady(300);
    let said = lab.run(&["--budget", "1s"]);
    assert!(said.contains("0 runs made, 8 left to do"), "{said}");
    let said = lab.run(&["--budget", "600s", "--mode", "timeslice"]);
    assert!(said.contains("1 runs made.") && lab.archive().runs.len() == 1, "{said}");
}

fn refusal(lab: &Lab, words: &[&str]) -> String {
    let output = lab.command(words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(!lab.out().exists(), "nothing was begun");
    errors(&output)
}

#[test]
fn what_makes_no_sense_is_said_before_anything_starts() {
    let lab = Lab::new(&[("bad.toml", scenario(STEADY, 1000).replace("burst", "brust"))]);
    let said = refusal(&lab, &[]);
    assert!(said.contains("bad.toml:") && said.contains("`brust` is no model"), "{said}");
    let lab = Lab::steady(1000);
    let said = refusal(&lab, &["nowhere"]);
    assert!(said.contains("no suite called `nowhere`") && said.contains("disb-a"), "{said}");
    let said = refusal(&lab, &["--scenario", "stedy"]);
    assert!(said.contains("no scenario called `stedy`") && said.contains("steady"), "{said}");
    let said = refusal(&lab, &["--mode", "latency-only"]);
    assert!(said.contains("two or more latency tenants"), "{said}");
    let said = refusal(&lab, &["--mode", "timeslice", "--policy", "strict"]);
    assert!(said.contains("ebb-isolated and ebb-shared"), "{said}");
    for (option, word, wanted) in
        [("--policy", "strct", "strict, gaps, slo, fair, deadline"), ("--slo", "0.5", "from 1 to 100")]
    {
        let output = lab.command(&[option, word]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(errors(&output).contains(wanted) && !lab.out().exists(), "{}", errors(&output));
    }
}

#[test]
fn without_a_gpu_the_lab_says_so_and_what_to_do_instead() {
    if Path::new("/proc/driver/nvidia").exists() {
        eprintln!("skipped: this machine has a GPU");
        return;
    }
    let lab = Lab::steady(300);
    let output = common::ebb(&lab.runtime())
        .args(["lab", "run", "--device", "gpu"])
        .arg(lab.suite())
        .arg("--out")
        .arg(lab.out())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("--device soft"), "{}", errors(&output));
}

/// A Python that has everything and computes nothing, and an MPS daemon that only listens. Both note what they meet.
const PYTHON: &str = r#"#!/bin/sh
[ "$1" = -c ] && exit 0
echo "$(grep -o '"class":"[a-z-]*"' "$2" | tr '\n' ' ')${CUDA_MPS_CLIENT_PRIORITY-none} $CUDA_MPS_PIPE_DIRECTORY" >> NOTES
sed 's/"model":"[a-z0-9]*"/"model":"fake"/g' "$2" > "$2.fake"
exec python3 "$(dirname "$1")/fake.py" "$2.fake"
"#;
const MPS_CONTROL: &str = r#"#!/bin/sh
[ "$1" = -d ] && { echo "start $CUDA_MPS_PIPE_DIRECTORY" >> NOTES; exit 0; }
read word && echo "$word" >> NOTES
"#;

fn program(path: &Path, text: &str, notes: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::write(path, text.replace("NOTES", notes.to_str().unwrap())).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The software GPU in the place of NVIDIA's driver, to try what is done around a real one.
#[test]
fn on_a_gpu_frameworks_are_started_in_every_mode_and_mps_is_our_own_and_ended() {
    let models = scenario(r#"{ process = "uniform", rate = 100 }"#, 300)
        .replace(r#"model = "burst", launches = 2, blocks = 132, block = "20us""#, r#"model = "vgg19""#)
        .replace(
            r#"model = "grid", blocks = 132, block = "500us""#,
            r#"model = "resnet50", task = "training""#,
        );
    let lab = Lab::new(&[("models.toml", models)]);
    let at = |name: &str| lab.folder.path().join(name);
    program(&at("python"), PYTHON, &at("started"));
    program(&at("nvidia-cuda-mps-control"), MPS_CONTROL, &at("told"));
    let path = std::env::join_paths(
        [lab.folder.path().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let output = common::ebb(&lab.runtime())
        .args(["lab", "run", "--out"])
        .arg(lab.out())
        .arg(lab.suite())
        .arg("--python")
        .arg(at("python"))
        .env("PATH", path.unwrap())
        .env("LD_LIBRARY_PATH", common::products().join("softcuda"))
        .output()
        .unwrap();
    let said = text(&output) + &errors(&output);
    let archive = lab.archive();
    let modes: BTreeSet<&str> = archive.runs.iter().map(|run| run.mode.as_str()).collect();
    let expected = ["alone", "ebb-isolated", "ebb-shared", "mps", "mps-priority", "streams", "timeslice"];
    assert_eq!(modes, BTreeSet::from(expected), "{said} {:?}", archive.failures);
    let absent: BTreeSet<&str> = archive.absent.iter().map(|absent| absent.mode.as_str()).collect();
    assert_eq!(absent, BTreeSet::from(["hami", "nvshare", "xsched", "xsched-timeslice"]));
    let told = fs::read_to_string(at("told")).unwrap();
    let services: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("start ")).collect();
    assert_eq!(services.len(), 2, "one for both modes of MPS, and one of ebb's daemon: {told}");
    assert_eq!(told.matches("quit").count(), 2, "{told}");
    assert!(services.iter().all(|pipes| !Path::new(pipes).exists()));
    let (of_ebb, of_mps): (Vec<&str>, Vec<&str>) =
        services.iter().partition(|pipes| pipes.contains("ebb-shared"));
    let pipes = of_mps[0];
    let started = fs::read_to_string(at("started")).unwrap();
    let started: Vec<&str> = started.lines().collect();
    // Plain, streams, and two each of both modes of MPS and both of ebb's.
    assert_eq!(started.len(), 2 + 1 + 4 + 4, "{started:?}");
    assert_eq!(started.iter().filter(|line| line.ends_with(of_ebb[0])).count(), 2);
    assert_eq!(started.iter().filter(|line| line.ends_with(pipes)).count(), 4);
    let with = |priority: &str, class: &str| {
        let starts = format!("\"class\":\"{class}\" {priority} ");
        started.iter().any(|line| line.starts_with(&starts) && line.ends_with(pipes))
    };
    assert!(with("0", "latency") && with("1", "best-effort"), "{started:?}");
    lab.expect_nobody();
}
