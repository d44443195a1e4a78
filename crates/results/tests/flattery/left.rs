//! Best-effort rates over what requests leave of those alone.

use results::figures::Together;

use super::stage::{Part, Stage};
use super::{MILLISECOND, figures, served, trained, within};

/// Half of the time belongs to requests.
fn requests() -> Part {
    Part { gpu_us: 500.0, ..served(|_| 500) }
}

/// Iterations of so many milliseconds, of which the GPU works for some.
fn training(name: &'static str, each: u64, on_the_gpu: u64) -> Part {
    let gpu_us = (on_the_gpu * MILLISECOND) as f64;
    Part { name, gpu_us, ..trained(each * MILLISECOND, 1000 * MILLISECOND) }
}

fn stage() -> Stage {
    Stage::new(within(MILLISECOND))
}

fn together(stage: Stage, mode: &str) -> Together {
    figures(stage).scenarios[0].mode(mode).expect("it was run").together.clone()
}

fn is_about(found: Option<results::Estimate>, wanted: f64) {
    let found = found.expect("all parts are known").value;
    assert!((found - wanted).abs() < 1e-9, "{found} instead of {wanted}");
}

#[test]
fn one_tenant_by_its_rate_alone_whatever_it_uses() {
    for on_the_gpu in [10, 7] {
        let stage = stage().alone(0, requests()).alone(0, training("training", 10, on_the_gpu));
        let stage = stage.run("mps", 0, [requests(), training("training", 25, on_the_gpu)]);
        is_about(together(stage, "mps").of_left, 0.4 / 0.5);
    }
}

#[test]
fn one_that_waits_for_its_host_may_have_more_than_requests_leave() {
    let stage = stage().alone(0, requests()).alone(0, training("training", 10, 2));
    let together = together(stage.run("mps", 0, [requests(), training("training", 10, 2)]), "mps");
    is_about(together.of_left, 2.0);
    is_about(together.of_ideal, 1.0);
}

#[test]
fn of_two_tenants_the_one_that_uses_more_counts_for_more() {
    let alone = stage().alone(0, requests());
    let alone = alone.alone(0, training("large", 10, 10)).alone(0, training("small", 20, 5));
    let company = [requests(), training("large", 40, 10), training("small", 25, 5)];
    let together = together(alone.run("mps", 0, company), "mps");
    // A quarter of all the time and four fifths of a quarter of it. The two would use more than all of it, and are held against all.
    is_about(together.of_left, (0.25 + 0.8 * 0.25) / 0.5);
    is_about(together.of_ideal, (0.25 + 0.8 * 0.25) / 0.5);
}

#[test]
fn its_interval_is_that_of_ideal_on_another_scale() {
    let mut unsteady = training("training", 25, 2);
    unsteady.end.truncate(20);
    unsteady.start.truncate(20);
    let stage = stage().alone(0, requests()).alone(0, training("training", 10, 2));
    let together = together(stage.run("mps", 0, [requests(), unsteady]), "mps");
    let (ideal, left) = (together.of_ideal.unwrap(), together.of_left.unwrap());
    assert!(left.low < left.value && left.value < left.high, "{left:?}");
    for (ideal, left) in [(ideal.low, left.low), (ideal.value, left.value), (ideal.high, left.high)] {
        assert!((left - 2.0 * ideal).abs() < 1e-9, "{together:?}");
    }
}

#[test]
fn what_is_not_known_of_one_is_not_known_of_all() {
    let company = || [requests(), training("training", 20, 10), training("other", 20, 10)];
    let server = || stage().alone(0, requests());
    let one = || training("training", 10, 10);
    let other = || training("other", 10, 10);
    assert!(
        together(server().alone(0, one()).alone(0, other()).run("mps", 0, company()), "mps")
            .of_left
            .is_some()
    );
    assert_eq!(together(server().alone(0, one()).run("mps", 0, company()), "mps").of_left, None);
    let no_server = stage().alone(0, one()).alone(0, other());
    assert_eq!(together(no_server.run("mps", 0, company()), "mps").of_left, None);
}

#[test]
fn where_nothing_is_left_or_nobody_takes_it_there_is_no_share() {
    let busy = || Part { gpu_us: 1_000.0, ..served(|_| 1_000) };
    let one = || training("training", 10, 10);
    let full = stage().alone(0, busy()).alone(0, one()).run("mps", 0, [busy(), one()]);
    assert_eq!(together(full, "mps").of_left, None);
    let nobody = stage().alone(0, requests()).run("mps", 0, [requests()]);
    assert_eq!(together(nobody, "mps").of_left, None);
    let alone = stage().alone(0, requests()).alone(0, one());
    assert_eq!(together(alone, "alone").of_left, None);
}
