use daemon::report::{
    AloneSamples, Asked, Counters, Daemon, Decision, DomainChoice, Gpu, Holder, Mps, Policy, Process, Report,
    Requests, Settings, State, Times,
};

use super::{list, page};
use crate::users::UserNames;

fn names() -> UserNames {
    UserNames::known(&[(1000, "ada")])
}

fn times(count: u64, p50: u64, p99: u64) -> Times {
    Times { count, p50_ns: Some(p50), p99_ns: Some(p99) }
}

fn process(pid: u32, tenant: &str, name: &str) -> Process {
    Process {
        pid,
        user: 1000,
        tenant: tenant.to_owned(),
        name: name.to_owned(),
        program: format!("/usr/bin/{name}"),
        seat: 0,
        class: "best-effort".to_owned(),
        weight: 1,
        priority: 0,
        slo_p99_ns: None,
        lowered: false,
        asked: Asked { class: "best-effort".to_owned(), weight: 1, priority: 0 },
        state: State::Idle,
        rung: "switch".to_owned(),
        why: "ok".to_owned(),
        reason: "is stopped in the middle of a kernel".to_owned(),
        detail: 0,
        requests: None,
        objective: None,
        unattainable_p99_ns: None,
        decision: None,
        slice_ns: Some(1000),
        slice_state: "short".to_owned(),
        memory_used_bytes: 0,
        memory_limit_bytes: None,
        share_permille: 0,
        heartbeat_age_ns: Some(1_000_000),
        daemon_lost: false,
        counters: Counters::default(),
        bursts: Times::default(),
        waits: Times::default(),
        handovers: Times::default(),
        guard_stops: Times::default(),
    }
}

fn report(gpus: Vec<Gpu>, sentences: &[&str]) -> Report {
    let daemon = Daemon {
        survey_age_ns: None,
        pid: 700,
        generation: "00000000000000aa".to_owned(),
        scope: "user".to_owned(),
        folder: "/run/user/1000/ebb".to_owned(),
        uptime_ns: 61_000_000_000,
        configuration: None,
        config_files: vec!["/etc/ebb/ebb.toml".to_owned(), "/etc/ebb/conf.d/50-apply.toml".to_owned()],
        config_generation: 3,
        config_ok: true,
        config_error: None,
        config_loaded_ns: 1_790_000_000_000_000_000,
        config_age_ns: 7_000_000_000,
        refused: 0,
        turned_away: 0,
        malformed: 0,
        domain: "isolated".to_owned(),
        domain_choice: None,
        mps: None,
        metrics: None,
        dashboard: None,
    };
    let sentences = sentences.iter().map(|sentence| (*sentence).to_owned()).collect();
    Report { version: "0.1.0".to_owned(), daemon, gpus, sentences }
}

fn decision(why: &str, reason: &str, longest_ns: Option<u64>) -> Option<Decision> {
    Some(Decision { why: why.to_owned(), reason: reason.to_owned(), longest_ns })
}

fn policy() -> Policy {
    Policy {
        kind: "slo".to_owned(),
        level: Some(8),
        highest_level: 16,
        quiet_ns: 100_000,
        threshold_ns: 50_000,
        in_flight_ns: 8_000_000,
        beside_ns: 0,
        confine_percent: 0,
        solo_share_permille: 10,
        tolerance_permille: 50,
    }
}

fn busy() -> Report {
    let counters = Counters {
        gpu_ns: 3_200_000_000,
        held_ns: 3_500_000_000,
        waits: 12,
        wait_ns: 400_000_000,
        passes: 11,
        stops_hold: 12,
        stops_switch: 1,
        preempted: 250,
        ..Counters::default()
    };
    let train = Process {
        state: State::Holding,
        memory_used_bytes: 3 << 29,
        memory_limit_bytes: Some(20 << 30),
        share_permille: 761,
        counters,
        waits: times(12, 28_000_000, 41_000_000),
        decision: decision("idle", "no latency tenant has work or is about to", None),
        ..process(1990, "00000000000000ab", "train")
    };
    let helper = Process {
        state: State::Paused,
        rung: "hold".to_owned(),
        why: "unknown_driver".to_owned(),
        reason: "is stopped between launches: this kernel driver has not been tried with ebb".to_owned(),
        slice_ns: None,
        lowered: true,
        ..process(1991, "00000000000000ab", "train")
    };
    let bursts = Counters { gpu_ns: 1_000_000_000, bursts: 900, slo_missed: 4, ..Counters::default() };
    let serve = Process {
        user: 61_001,
        class: "latency".to_owned(),
        priority: 5,
        slo_p99_ns: Some(20_000_000),
        state: State::Running,
        rung: "none".to_owned(),
        why: "latency".to_owned(),
        reason: "is not stopped, being a latency tenant".to_owned(),
        slice_ns: None,
        share_permille: 239,
        counters: bursts,
        bursts: times(900, 1_300_000, 2_100_000),
        requests: Some(Requests {
            all: times(512, 1_300_000, 2_100_000),
            alone: times(164, 1_250_000, 2_000_000),
            alone_samples: AloneSamples { seen: 164, needed: 100 },
            slowdown_p50_permille: Some(1_040),
            slowdown_p99_permille: Some(1_050),
            in_line: false,
        }),
        ..process(2000, "00000000000000cd", "serve")
    };
    let settings =
        Settings { quantum_ns: 30_000_000, in_flight_ns: 8_000_000, idle_ns: 500_000, grace_ns: 50_000_000 };
    let token = Some(Holder { pid: 1990, name: "train".to_owned(), held_ns: 12_000_000 });
    let (uuid, domain) = ("GPU-00".to_owned(), "isolated".to_owned());
    let policy = Some(policy());
    let gpu = Gpu {
        uuid,
        domain,
        policy,
        settings,
        user: None,
        tampered: 0,
        token,
        processes: vec![train, helper, serve],
        strangers: None,
    };
    report(
        vec![gpu],
        &["train (1991) is stopped between launches: this kernel driver has not been tried with ebb."],
    )
}

#[test]
fn a_page_of_nobody() {
    insta::assert_snapshot!(page::text(&report(Vec::new(), &[]), &names()));
}

#[test]
fn a_page_of_tenants() {
    insta::assert_snapshot!(page::text(&busy(), &names()));
}

/// The same in the shared domain, after a stop, and with an MPS that had to be started anew.
fn shared() -> Report {
    let mut report = busy();
    report.daemon.domain = "shared".to_owned();
    let reason = "nearly all work that was seen stops between blocks sooner than by a switch".to_owned();
    report.daemon.domain_choice = Some(DomainChoice { why: "guard-is-faster".to_owned(), reason });
    report.daemon.mps = Some(Mps {
        pipes: "/run/user/1000/ebb/mps/pipe".to_owned(),
        up: true,
        faults: 1,
        restarts: 1,
        victims: vec!["infer (77)".to_owned()],
    });
    let gpu = &mut report.gpus[0];
    (gpu.domain, gpu.token) = ("shared".to_owned(), None);
    let train = &mut gpu.processes[0];
    (train.state, train.rung) = (State::Idle, "guard".to_owned());
    train.reason = "is stopped between the blocks of a kernel".to_owned();
    train.counters =
        Counters { stops_guard: 41, cut: 60, relaunched: 66, rounds: 43, watchdog: 1, ..Counters::default() };
    train.counters.memory_denials = 2;
    train.guard_stops = times(41, 30_000, 210_000);
    train.decision = decision("slack", "a latency tenant has slack for short blocks", Some(20_000));
    gpu.processes[1].decision = decision("latency-work", "a latency tenant has work", Some(0));
    gpu.processes[2].unattainable_p99_ns = Some(25_000_000);
    gpu.processes[2].objective = Some("unattainable".to_owned());
    gpu.policy = Some(Policy { level: Some(12), beside_ns: 20_000, ..policy() });
    report
}

#[test]
fn a_page_of_the_shared_domain() {
    insta::assert_snapshot!(page::text(&shared(), &names()));
}

/// A policy that has no controller, and a latency tenant that was never alone and has requests waiting.
fn strict() -> Report {
    let mut report = busy();
    let gpu = &mut report.gpus[0];
    gpu.policy = Some(Policy { kind: "strict".to_owned(), level: None, ..policy() });
    let all = times(512, 1_300_000, 2_100_000);
    let alone_samples = AloneSamples { seen: 37, needed: 100 };
    gpu.processes[2].requests = Some(Requests { all, alone_samples, in_line: true, ..Requests::default() });
    gpu.processes[2].objective = Some("kept".to_owned());
    report
}

#[test]
fn a_page_of_a_policy_without_a_controller() {
    insta::assert_snapshot!(page::text(&strict(), &names()));
}

/// A daemon of before there were policies.
#[test]
fn a_report_without_policies_is_read() {
    let mut report = busy();
    report.gpus[0].policy = None;
    for process in &mut report.gpus[0].processes {
        (process.requests, process.decision, process.objective) = (None, None, None);
    }
    let mut older: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    let gpu = older["gpus"][0].as_object_mut().unwrap();
    assert!(gpu.remove("policy").is_some());
    for process in gpu["processes"].as_array_mut().unwrap() {
        for key in ["requests", "objective", "unattainable_p99_ns", "decision"] {
            assert!(process.as_object_mut().unwrap().remove(key).is_some());
        }
    }
    assert_eq!(serde_json::from_value::<Report>(older).unwrap(), report);
}

#[test]
fn a_list_of_processes() {
    insta::assert_snapshot!(list::text(&busy(), &names()));
}

#[test]
fn the_report_for_programs() {
    insta::assert_snapshot!(busy().json());
}

#[test]
fn the_list_for_programs() {
    insta::assert_snapshot!(list::json(&busy()).to_string());
}
