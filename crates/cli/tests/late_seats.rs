//! Tenants that come to their seat, or to the best-effort class, with work under way. Two of them must never have the short slice
//! at once: neither would finish anything for as long as both have it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use common::runtime::{Runtime, Tenant, wait_for};
use model::Nanos;
use rustix::process::{Signal, kill_process};

/// How long the GPU has been busy with a tenant, by what the card says: nobody needs a daemon for it.
fn time_on_gpu(runtime: &Runtime, tenant: &Tenant) -> i128 {
    runtime.context(tenant).map_or(0, |context| context["on_time_ns"].number())
}

fn all_work(runtime: &Runtime, tenants: &[Tenant]) {
    for tenant in tenants {
        let before = time_on_gpu(runtime, tenant);
        wait_for(&format!("{} works", tenant.name), || time_on_gpu(runtime, tenant) > before);
    }
}

/// Nobody stands still for this long, however busy the machine. Tenants whose slices met stood still for half a minute and more.
const HANG: Nanos = Nanos::from_millis(10_000);

/// They have seats, and take turns that come to an end.
fn all_take_turns(runtime: &Runtime, tenants: &[Tenant]) {
    wait_for("all have seats", || tenants.iter().all(|tenant| runtime.seat(tenant).is_some()));
    for tenant in tenants {
        let before = runtime.counter(tenant, "launches");
        let further = || runtime.counter(tenant, "launches") > before + 10;
        wait_for(&format!("{} gets things done", tenant.name), further);
    }
}

fn end_all(tenants: [Tenant; 2]) {
    let reports = tenants.map(Tenant::end_with_report);
    let longest = reports.map(|report| report.longest_pause);
    assert!(longest.iter().all(|pause| *pause < HANG), "{longest:?}");
}

#[test]
fn two_that_ran_unseated_beside_a_silent_daemon_go_on_when_it_seats_them() {
    let runtime = Runtime::new();
    let daemon = runtime.daemon();
    let mut tenants = [runtime.waiting_tenant("one"), runtime.waiting_tenant("two")];
    kill_process(daemon, Signal::STOP).unwrap();
    tenants.iter_mut().for_each(Tenant::come);
    all_work(&runtime, &tenants);
    kill_process(daemon, Signal::CONT).unwrap();
    all_take_turns(&runtime, &tenants);
    end_all(tenants);
}

#[test]
fn two_that_ran_unseated_without_a_daemon_go_on_when_another_seats_them() {
    let runtime = Runtime::new();
    let daemon = runtime.daemon();
    let mut tenants = [runtime.waiting_tenant("one"), runtime.waiting_tenant("two")];
    kill_process(daemon, Signal::KILL).unwrap();
    wait_for("it is gone", || runtime.report().is_none());
    tenants.iter_mut().for_each(Tenant::come);
    all_work(&runtime, &tenants);
    runtime.daemon();
    all_take_turns(&runtime, &tenants);
    end_all(tenants);
}

#[test]
fn two_latency_tenants_that_become_best_effort_with_work_go_on() {
    let runtime = Runtime::new();
    let tenant = |name| runtime.tenant_with_work_of("best-effort", name, "latency", &[]);
    let tenants = [tenant("one"), tenant("two")];
    all_work(&runtime, &tenants);
    for _ in 0..4 {
        for class in ["best-effort", "latency"] {
            let set =
                |tenant: &Tenant| runtime.command().args(["set", &tenant.name, "--class", class]).spawn();
            let both = [set(&tenants[0]).unwrap(), set(&tenants[1]).unwrap()];
            both.into_iter().for_each(|mut set| assert!(set.wait().unwrap().success()));
            all_take_turns(&runtime, &tenants);
        }
    }
    end_all(tenants);
}
