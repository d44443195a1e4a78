//! What best-effort tenants get of a GPU. Alone in its file, since others at work would disturb it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use common::runtime::{Runtime, wait_for};

/// Token time that is enough for a verdict: a hundred quanta.
const ENOUGH: i128 = 3_000_000_000;
/// A tenant that gets no CPU for a while cannot want the token, so one look may be wrong. A wrong policy always is.
const LOOKS: usize = 4;

#[test]
fn token_time_follows_the_weights() {
    let runtime = Runtime::new();
    let light = runtime.tenant("light", "best-effort", &["--weight", "1"]);
    let heavy = runtime.tenant("heavy", "best-effort", &["--weight", "3"]);
    let held = || [&light, &heavy].map(|tenant| runtime.counter(tenant, "held_ns"));
    wait_for("both have had the token", || held().iter().all(|&time| time > 0));
    let mut shares = Vec::new();
    while shares.len() < LOOKS {
        let (before, mut got) = (held(), [0, 0]);
        wait_for("they have had it for a while", || {
            let now = held();
            got = [now[0] - before[0], now[1] - before[1]];
            got[0] + got[1] >= ENOUGH
        });
        let permille = 1000 * got[1] / (got[0] + got[1]);
        shares.push(permille);
        if (700..=800).contains(&permille) {
            break;
        }
    }
    println!("weight 3 of 4 got {shares:?} thousandths of the token time");
    assert!(
        shares.iter().any(|share| (700..=800).contains(share)),
        "weight 3 of 4 got {shares:?} thousandths"
    );
    light.end();
    heavy.end();
}
