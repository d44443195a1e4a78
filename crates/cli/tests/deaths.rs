//! Who dies under load takes nobody along: the daemon, the holder of the token, a latency tenant, one that sleeps.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::time::{Duration, Instant};

use common::json::Value;
use common::runtime::{Runtime, Tenant, wait_for};
use rustix::process::{Signal, kill_process};

/// Two best-effort tenants that take turns, and one that answers requests.
fn trio(runtime: &Runtime) -> [Tenant; 3] {
    let tenants = [
        runtime.tenant("one", "best-effort", &[]),
        runtime.tenant("two", "best-effort", &[]),
        runtime.tenant("server", "latency", &[]),
    ];
    wait_for("everybody works", || tenants.iter().all(|tenant| work_of(runtime, tenant) > 0));
    tenants
}

/// A figure that grows while a tenant of either class works, by what the board says.
fn work_of(runtime: &Runtime, tenant: &Tenant) -> i128 {
    runtime.counter(tenant, "gpu_ns") + runtime.counter(tenant, "bursts")
}

fn goes_on(runtime: &Runtime, tenant: &Tenant) {
    let before = work_of(runtime, tenant);
    wait_for(&format!("{} goes on", tenant.name), || work_of(runtime, tenant) > before);
}

/// How long the GPU has been busy with a tenant, by what the card says: nobody needs a daemon for it.
fn time_on_gpu(runtime: &Runtime, tenant: &Tenant) -> i128 {
    runtime.context(tenant).map_or(0, |context| context["on_time_ns"].number())
}

/// Kills the daemon and sees everybody work without one.
fn bereave(runtime: &Runtime, tenants: &[Tenant]) {
    kill_process(runtime.daemon(), Signal::KILL).unwrap();
    wait_for("it is gone", || runtime.report().is_none());
    for tenant in tenants {
        let before = time_on_gpu(runtime, tenant);
        wait_for("it goes on without a daemon", || time_on_gpu(runtime, tenant) > before);
    }
    assert!(runtime.report().is_none(), "nobody started another");
}

#[test]
fn a_killed_daemon_stops_nobody() {
    let runtime = Runtime::new();
    let tenants = trio(&runtime);
    bereave(&runtime, &tenants);
    tenants.into_iter().for_each(Tenant::end);
}

#[test]
fn the_daemon_after_a_killed_one_seats_everybody_again() {
    let runtime = Runtime::new();
    let tenants = trio(&runtime);
    let number = |tenant: &Tenant| runtime.seat(tenant).unwrap()["tenant"].clone();
    let numbers: Vec<Value> = tenants.iter().map(number).collect();
    for losses in 1..=3 {
        bereave(&runtime, &tenants);
        runtime.daemon();
        wait_for("they have their seats again", || runtime.seats().len() == 3);
        assert_eq!(tenants.iter().map(number).collect::<Vec<_>>(), numbers);
        tenants.iter().for_each(|tenant| goes_on(&runtime, tenant));
        for seat in runtime.seats() {
            assert_eq!(seat["daemon_lost"], Value::Bool(false), "{seat:?}");
            assert_eq!(seat["counters"]["daemon_losses"].number(), losses, "{seat:?}");
        }
    }
    tenants.into_iter().for_each(Tenant::end);
}

#[test]
fn whoever_wishes_so_stands_still_or_ends_without_a_daemon() {
    let runtime = Runtime::new();
    let blocked = runtime.tenant("blocked", "best-effort", &["--on-daemon-loss", "block"]);
    let mut ending = runtime.tenant("ending", "best-effort", &["--on-daemon-loss", "exit"]);
    wait_for("both work", || [&blocked, &ending].iter().all(|tenant| work_of(&runtime, tenant) > 0));
    kill_process(runtime.daemon(), Signal::KILL).unwrap();
    // Not `wait`, which would tell it to end.
    let mut status = None;
    wait_for("a signal ended it", || {
        status = ending.child.try_wait().unwrap();
        status.is_some()
    });
    assert!(!status.unwrap().success());
    let stands_still = || {
        let before = time_on_gpu(&runtime, &blocked);
        std::thread::sleep(Duration::from_millis(200));
        time_on_gpu(&runtime, &blocked) == before
    };
    wait_for("it stands still", stands_still);
    runtime.daemon();
    wait_for("it has its seat again", || runtime.seat(&blocked).is_some());
    goes_on(&runtime, &blocked);
    blocked.end();
}

#[test]
fn the_token_of_a_killed_holder_goes_to_the_next() {
    let runtime = Runtime::new();
    let [one, two, server] = trio(&runtime);
    let mut tenants = [one, two];
    let mut holder = None;
    wait_for("one of them has the token", || {
        let pid = runtime.holder();
        holder = tenants.iter().position(|tenant| Some(i128::from(tenant.child.id())) == pid);
        holder.is_some()
    });
    if holder == Some(1) {
        tenants.reverse();
    }
    let [mut holder, survivor] = tenants;
    holder.kill();
    goes_on(&runtime, &survivor);
    goes_on(&runtime, &server);
    assert_eq!(runtime.seats().len(), 2, "the seat of the dead is free");
    survivor.end();
    server.end();
}

#[test]
fn a_killed_latency_tenant_leaves_the_gpu_to_others() {
    let runtime = Runtime::new();
    let [one, two, _server] = trio(&runtime);
    for round in 0..3 {
        let mut victim = runtime.tenant(&format!("victim-{round}"), "latency", &[]);
        wait_for("it is in the middle of a burst", || {
            runtime.seat(&victim).is_some_and(|seat| seat["state"] == Value::Text("running".to_owned()))
        });
        victim.kill();
        wait_for("its seat is free", || runtime.seat(&victim).is_none());
        goes_on(&runtime, &one);
        goes_on(&runtime, &two);
    }
    one.end();
    two.end();
}

#[test]
fn a_holder_that_is_stopped_loses_the_token_and_comes_back_later() {
    let runtime = Runtime::new();
    let sleeper = runtime.tenant("sleeper", "best-effort", &[]);
    let other = runtime.tenant("other", "best-effort", &[]);
    wait_for("both take turns", || [&sleeper, &other].iter().all(|t| runtime.counter(t, "passes") > 0));
    // It may just have passed the token on. And the software GPU has no server: a process that is stopped while it holds
    // the card's lock stops everybody, which a card does not know. Both are rare, so another try finds it elsewhere.
    let before = runtime.counter(&other, "taken_over");
    let taken_over = || {
        let begin = Instant::now();
        while runtime.counter(&other, "taken_over") == before && begin.elapsed() < Duration::from_secs(3) {
            std::thread::sleep(Duration::from_millis(10));
        }
        runtime.counter(&other, "taken_over") > before
    };
    for attempt in 1.. {
        wait_for("it has the token", || runtime.holder() == Some(i128::from(sleeper.child.id())));
        sleeper.signal(Signal::STOP);
        if taken_over() {
            break;
        }
        sleeper.signal(Signal::CONT);
        assert!(attempt < 10, "the other one never got the token");
    }
    goes_on(&runtime, &other);
    assert!(runtime.counter(&sleeper, "lost") > 0, "what it lost is counted");
    sleeper.signal(Signal::CONT);
    goes_on(&runtime, &sleeper);
    goes_on(&runtime, &other);
    other.end();
    sleeper.end();
}
