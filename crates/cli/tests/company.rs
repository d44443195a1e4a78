//! What tenants compute in company.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use common::runtime::{Runtime, wait_for};
use common::text;

#[test]
fn results_are_the_same_bit_for_bit_in_company() {
    let runtime = Runtime::new();
    let digest = |options: &[&str]| {
        let mut command = runtime.run(options, "digest");
        text(&command.args(["--steps", "600"]).output().unwrap())
    };
    let alone = digest(&["--no-daemon"]);
    assert_eq!(digest(&[]), alone, "as the only tenant");
    let rival = runtime.tenant("rival", "best-effort", &[]);
    let server = runtime.tenant("server", "latency", &[]);
    wait_for("they have their seats", || runtime.seats().len() == 2);
    for options in [&[][..], &["--weight", "7"], &["--class", "latency"]] {
        assert_eq!(digest(options), alone, "{options:?}");
    }
    assert!(runtime.counter(&rival, "passes") > 0, "they took turns");
    assert!(runtime.counter(&server, "bursts") > 0, "it answered requests meanwhile");
}
