//! What one store on a board can do to another tenant: nothing that lasts. Who a tenant is, it hears from the daemon alone.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

#[path = "common/attacker.rs"]
mod attacking;
mod common;
#[path = "common/driver.rs"]
mod driver;
#[path = "common/hoarder.rs"]
#[allow(dead_code, reason = "every test file uses a part of this")]
mod hoarding;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use attacking::{Attacker, LATENCY, PAUSED, WEIGHT_ONE};
use common::json::Value;
use common::runtime::{Runtime, Tenant, wait_for};
use common::text;
use hoarding::Hoarder;
use rustix::process::{Signal, kill_process};

const ISOLATED: u32 = 0;
const SHARED: u32 = 1;

/// The program of one test, not a test.
#[test]
#[ignore = "another role of this program, not a test"]
fn hoarder() {
    hoarding::program();
}

fn of_domain(domain: &str) -> Runtime {
    let runtime = Runtime::new();
    fs::create_dir_all(runtime.path().join("ebb")).unwrap();
    let configuration = format!("schema_version = 1\ndomain = \"{domain}\"\nmps = false\n");
    fs::write(runtime.path().join("ebb/ebb.toml"), configuration).unwrap();
    runtime
}

fn attacker(runtime: &Runtime) -> Attacker {
    Attacker::sit(runtime.path(), &runtime.report().unwrap())
}

fn seated(runtime: &Runtime, tenant: &Tenant) -> Value {
    wait_for("a seat", || runtime.seat(tenant).is_some());
    runtime.seat(tenant).unwrap()
}

/// Frees the seat of a tenant, and waits until it has another one.
fn unseat(runtime: &Runtime, attacker: &Attacker, tenant: &Tenant) -> Value {
    let seat = seated(runtime, tenant)["seat"].number();
    let generation = attacker.generation(seat);
    attacker.vacate(seat);
    // Another seat, or the same one with another occupation.
    wait_for("another seat", || {
        let now = runtime.seat(tenant).map(|seat| seat["seat"].number());
        now.is_some_and(|now| now != seat || attacker.generation(now) != generation)
    });
    seated(runtime, tenant)
}

fn goes_on(runtime: &Runtime, tenant: &Tenant, counter: &str) {
    let before = runtime.counter(tenant, counter);
    wait_for("it goes on", || runtime.counter(tenant, counter) > before + 20);
}

#[test]
fn a_domain_that_somebody_writes_on_the_board_stops_nobody() {
    for (domain, written) in [("shared", ISOLATED), ("isolated", SHARED)] {
        let runtime = of_domain(domain);
        let trains = ["one", "two"].map(|name| runtime.tenant(name, "best-effort", &[]));
        let serve = runtime.tenant("serve", "latency", &[]);
        trains.iter().for_each(|train| goes_on(&runtime, train, "launches"));
        let attacker = attacker(&runtime);
        let right = attacker.domain();
        for _ in 0..3 {
            attacker.write_domain(written);
            // The daemon puts it back, at the latest when somebody asks for a report.
            wait_for("the word is put back", || runtime.report().is_some() && attacker.domain() == right);
        }
        drop(attacker);
        trains.iter().for_each(|train| goes_on(&runtime, train, "launches"));
        goes_on(&runtime, &serve, "bursts");
        serve.end();
        trains.into_iter().for_each(Tenant::end);
    }
}

#[test]
fn forged_terms_are_not_what_a_tenant_registers_with() {
    let runtime = Runtime::new();
    let serve = runtime.tenant("serve", "latency", &["--slo-p99", "40ms", "--priority", "3"]);
    let before = seated(&runtime, &serve);
    let attacker = attacker(&runtime);
    attacker.demote(before["seat"].number());
    let after = unseat(&runtime, &attacker, &serve);
    drop(attacker);
    for key in ["class", "weight", "priority", "slo_p99_ns", "asked", "memory_limit_bytes", "lowered"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    goes_on(&runtime, &serve, "bursts");
    serve.end();
}

#[test]
fn what_an_admin_changed_holds_at_another_seat_and_with_another_daemon() {
    let runtime = Runtime::new();
    let train = runtime.tenant("train", "best-effort", &[]);
    seated(&runtime, &train);
    text(&runtime.ebb(&["set", "train", "--weight", "7", "--mem", "8Gi"]));
    text(&runtime.ebb(&["pause", "train"]));
    let holds = |seat: &Value| {
        let told = (seat["weight"].number(), seat["memory_limit_bytes"].number());
        assert_eq!((told, seat["state"].text()), ((7, 8 << 30), "paused"));
    };
    let attacker = attacker(&runtime);
    attacker.demote(seated(&runtime, &train)["seat"].number());
    holds(&unseat(&runtime, &attacker, &train));
    drop(attacker);
    let daemon = runtime.report().unwrap()["daemon"]["pid"].number();
    kill_process(rustix::process::Pid::from_raw(i32::try_from(daemon).unwrap()).unwrap(), Signal::KILL)
        .unwrap();
    runtime.daemon();
    holds(&seated(&runtime, &train));
    text(&runtime.ebb(&["resume", "train"]));
    goes_on(&runtime, &train, "launches");
    train.end();
}

#[test]
fn a_seat_that_somebody_frees_is_no_lost_daemon() {
    let runtime = Runtime::new();
    let mut train = runtime.tenant("train", "best-effort", &["--on-daemon-loss", "exit"]);
    let serve = runtime.tenant("serve", "latency", &["--on-daemon-loss", "block"]);
    let attacker = attacker(&runtime);
    for _ in 0..3 {
        for tenant in [&train, &serve] {
            let seat = unseat(&runtime, &attacker, tenant);
            assert_eq!(seat["counters"]["daemon_losses"].number(), 0);
            assert_eq!(seat["daemon_lost"], Value::Bool(false));
        }
    }
    drop(attacker);
    assert!(train.child.try_wait().unwrap().is_none(), "it was not told to end");
    goes_on(&runtime, &train, "launches");
    goes_on(&runtime, &serve, "bursts");
    serve.end();
    train.end();
}

/// Does something while terms are written on the board all the time.
fn while_written(attacker: &Attacker, seats: &[i128], word: u64, act: impl FnOnce()) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for seat in seats {
                    attacker.write_terms(*seat, word);
                    attacker.ring(*seat);
                }
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        act();
        over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn terms_that_somebody_writes_without_end_pause_nobody_and_demote_nobody() {
    let runtime = Runtime::new();
    let serve = runtime.tenant("serve", "latency", &[]);
    let train = runtime.tenant("train", "best-effort", &[]);
    let seats = [&serve, &train].map(|tenant| seated(&runtime, tenant)["seat"].number());
    let attacker = attacker(&runtime);
    for word in [WEIGHT_ONE | PAUSED | LATENCY, WEIGHT_ONE | PAUSED, WEIGHT_ONE] {
        while_written(&attacker, &seats, word, || {
            goes_on(&runtime, &serve, "bursts");
            goes_on(&runtime, &train, "launches");
        });
    }
    drop(attacker);
    serve.end();
    train.end();
}

#[test]
fn a_limit_that_somebody_writes_denies_nothing() {
    let runtime = Runtime::new();
    let mut run = runtime.command();
    run.args(["run", "--device", "soft", "--name", "victim", "--"]);
    let mut hoarder = Hoarder::start(run);
    let total = hoarder.info();
    let own = |seat: &Value| seat["pid"].number() == i128::from(hoarder.child.id());
    wait_for("a seat", || runtime.seats().iter().any(own));
    let seat = runtime.seats().iter().find(|seat| own(seat)).unwrap()["seat"].number();
    let attacker = attacker(&runtime);
    for _ in 0..5 {
        attacker.write_memory(seat, 1);
        assert_eq!(hoarder.info().1, total.1);
        let given = hoarder.gets("alloc 64");
        hoarder.does(&format!("free {given}"));
    }
    // What the daemon says holds from the moment at which it has said so.
    text(&runtime.ebb(&["set", "victim", "--mem", "32Mi"]));
    hoarder.is_refused("alloc 64");
    attacker.write_memory(seat, 0);
    hoarder.is_refused("alloc 64");
    text(&runtime.ebb(&["set", "victim", "--mem", "none"]));
    hoarder.gets("alloc 64");
    hoarder.end();
}
