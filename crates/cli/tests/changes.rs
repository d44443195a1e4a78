//! What an admin changes while tenants work: they stand still and go on, change places, and compute the same all the while.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::time::Duration;

use common::json::Value;
use common::runtime::{Runtime, Tenant, wait_for};
use common::text;

/// How long the GPU has been busy with a tenant, by what the card says.
fn time_on_gpu(runtime: &Runtime, tenant: &Tenant) -> i128 {
    runtime.context(tenant).map_or(0, |context| context["on_time_ns"].number())
}

fn works(runtime: &Runtime, tenant: &Tenant) {
    let before = time_on_gpu(runtime, tenant);
    wait_for(&format!("{} works", tenant.name), || time_on_gpu(runtime, tenant) > before);
}

fn state(runtime: &Runtime, tenant: &Tenant) -> Value {
    runtime.seat(tenant).map_or(Value::Null, |seat| seat["state"].clone())
}

/// It is on the GPU no more, not even with what it had there.
fn stands_still(runtime: &Runtime, tenant: &Tenant) {
    let paused = Value::Text("paused".to_owned());
    wait_for(&format!("{} says that it is paused", tenant.name), || state(runtime, tenant) == paused);
    let before = time_on_gpu(runtime, tenant);
    // No wait can show that something does not happen; this is many times what a request or a turn takes.
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(time_on_gpu(runtime, tenant), before, "{} is paused and on the GPU", tenant.name);
}

#[test]
fn a_paused_tenant_of_either_class_leaves_the_gpu_and_goes_on_when_resumed() {
    let runtime = Runtime::new();
    let tenants = [
        runtime.tenant("server", "latency", &[]),
        runtime.tenant("one", "best-effort", &[]),
        runtime.tenant("two", "best-effort", &[]),
    ];
    tenants.iter().for_each(|tenant| works(&runtime, tenant));
    for tenant in &tenants {
        assert!(text(&runtime.ebb(&["pause", &tenant.name])).starts_with("paused "));
        stands_still(&runtime, tenant);
        let others = tenants.iter().filter(|other| other.name != tenant.name);
        others.for_each(|other| works(&runtime, other));
        assert!(text(&runtime.ebb(&["resume", &tenant.name])).starts_with("resumed "));
        tenants.iter().for_each(|tenant| works(&runtime, tenant));
    }
    tenants.into_iter().for_each(Tenant::end);
}

#[test]
fn a_tenant_that_changes_its_class_changes_how_it_is_stopped() {
    let runtime = Runtime::new();
    let tenants = [runtime.tenant("one", "best-effort", &[]), runtime.tenant("two", "best-effort", &[])];
    tenants.iter().for_each(|tenant| works(&runtime, tenant));
    let is = |rung: &str| {
        let rung = Value::Text(rung.to_owned());
        runtime.seat(&tenants[0]).is_some_and(|seat| seat["rung"] == rung)
    };
    wait_for("it is stopped by switches", || is("switch"));
    for (class, rung) in [("latency", "none"), ("best-effort", "switch")] {
        assert!(runtime.ebb(&["set", "one", "--class", class]).status.success());
        wait_for(&format!("as {class} its rung is {rung}"), || is(rung));
        tenants.iter().for_each(|tenant| works(&runtime, tenant));
    }
    tenants.into_iter().for_each(Tenant::end);
}

#[test]
fn of_two_latency_tenants_the_lower_has_a_shorter_slice_while_the_higher_is_there() {
    let runtime = Runtime::new();
    let higher = runtime.tenant("higher", "latency", &["--priority", "3"]);
    let lower = runtime.tenant("lower", "latency", &["--priority", "2"]);
    [&higher, &lower].into_iter().for_each(|tenant| works(&runtime, tenant));
    let slice = |tenant: &Tenant| runtime.seat(tenant).map(|seat| seat["slice_ns"].clone());
    wait_for("the lower yields", || slice(&lower) == Some(Value::Number(512_000)));
    assert_eq!(slice(&higher), Some(Value::Null), "the higher keeps the driver's own");
    assert!(runtime.ebb(&["set", "lower", "--priority", "3"]).status.success());
    wait_for("equals share as ever", || slice(&lower) == Some(Value::Null));
    assert!(runtime.ebb(&["set", "lower", "--priority", "1"]).status.success());
    wait_for("two levels lower", || slice(&lower) == Some(Value::Number(128_000)));
    higher.end();
    wait_for("alone it need not yield", || slice(&lower) == Some(Value::Null));
    works(&runtime, &lower);
    lower.end();
}
