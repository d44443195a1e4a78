//! Many tenants that come and are killed at any moment leave nothing: no seat, no process, no room on the card, and no file but the
//! ledgers of the last of them.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::json::{self, Value};
use common::runtime::{Runtime, wait_for};
use common::text;

/// As many as a card has room for, with some to spare.
const AT_ONCE: usize = 24;

/// So many ledgers of tenants that have ended are kept, as `docs/guard.md` says.
const KEPT: usize = 16;

/// How many come in all.
const NUMBER: u64 = 1000;

/// A tenant, and when it is to be killed.
struct Mortal {
    child: Child,
    at: Instant,
}

#[test]
fn a_thousand_tenants_started_and_killed_at_random_leave_nothing() {
    let runtime = Runtime::new();
    let mut living: Vec<Mortal> = Vec::new();
    let mut chance = Chance(1);
    for index in 0..NUMBER {
        while living.len() >= AT_ONCE {
            bury(&mut living);
            std::thread::sleep(Duration::from_millis(2));
        }
        living.push(start(&runtime, index, &mut chance));
    }
    while !living.is_empty() {
        bury(&mut living);
        std::thread::sleep(Duration::from_millis(2));
    }
    wait_for("all seats are free", || runtime.report().is_some() && runtime.seats().is_empty());
    let shown = runtime.ebb(&["soft", "show", "-o", "json"]);
    let card = json::parse(&text(&shown));
    assert_eq!((&card["contexts"], card["memory_used"].number()), (&Value::List(Vec::new()), 0));
    wait_for("the daemon ends", || runtime.processes().is_empty());
    let names =
        fs::read_dir(runtime.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> =
        names.filter(|name| !name.starts_with("softgpu-") && !name.starts_with("daemon.")).collect();
    assert_eq!(left, ["ledgers"]);
    let ledgers = fs::read_dir(runtime.path().join("ledgers")).unwrap();
    let ledgers = ledgers.filter(|entry| {
        entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "ledger")
    });
    // Those who come remove what is too much of those who have gone; those who go remove nothing.
    assert!(ledgers.count() <= KEPT + AT_ONCE + 1);
}

/// A tenant of any class that works for a moment, or is killed before, while it starts, waits or works.
fn start(runtime: &Runtime, index: u64, chance: &mut Chance) -> Mortal {
    let class = if chance.below(4) == 0 { "latency" } else { "best-effort" };
    let mut command = runtime.run(&["--class", class, "--name", &format!("tenant-{index}")], "tenant");
    command.args(["--class", class, "--seed", &index.to_string(), "--seconds", "0.2"]);
    command.env("EBB_DAEMON_IDLE", "1");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    // It finds the word when it is ready for it, if it ever is.
    writeln!(child.stdin.as_mut().unwrap(), "go").unwrap();
    Mortal { child, at: Instant::now() + Duration::from_millis(chance.below(1000)) }
}

/// Kills those whose time has come.
fn bury(living: &mut Vec<Mortal>) {
    living.retain_mut(|mortal| {
        if mortal.at <= Instant::now() {
            mortal.child.kill().unwrap();
            mortal.child.wait().unwrap();
            return false;
        }
        match mortal.child.try_wait().unwrap() {
            None => true,
            Some(status) => {
                assert!(status.success(), "a tenant that was left alone ended with {status}");
                false
            }
        }
    });
}

/// splitmix64: the same crowd every time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }
}
