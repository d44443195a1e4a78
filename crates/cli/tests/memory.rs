//! Limits of memory, as a program under `ebb run` meets them.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;
#[path = "common/driver.rs"]
mod driver;
#[path = "common/hoarder.rs"]
mod hoarding;

use common::json::Value;
use common::runtime::{Runtime, wait_for};
use common::{errors, text};
use hoarding::Hoarder;

/// What the software GPU has, in mebibytes.
const CARD: u64 = 16 << 10;

#[test]
#[ignore = "a program that the other tests start"]
fn hoarder() {
    hoarding::program();
}

/// The program under `ebb run` with these options and variables.
fn start(runtime: &Runtime, options: &[&str], variables: &[(&str, &str)]) -> Hoarder {
    let mut command = runtime.command();
    command.args(["run", "--device", "soft"]).args(options).arg("--");
    Hoarder::start({
        command.envs(variables.iter().copied());
        command
    })
}

fn seat(runtime: &Runtime, hoarder: &Hoarder) -> Value {
    let own = |seat: &Value| seat["pid"].number() == i128::from(hoarder.pid());
    runtime.seats().into_iter().find(own).expect("it has a seat")
}

const MIB: i128 = 1 << 20;

#[test]
fn more_than_the_limit_is_out_of_memory_and_a_free_makes_room() {
    for options in [&["--mem", "1Gi"][..], &["--mem", "1Gi", "--no-daemon"]] {
        let runtime = Runtime::new();
        let mut hoarder = start(&runtime, options, &[]);
        assert_eq!(hoarder.info(), (1024, 1024));
        assert_eq!(hoarder.gets("total"), "1024");
        hoarder.is_refused("alloc 1025");
        let first = hoarder.gets("alloc 700");
        hoarder.is_refused("alloc 325");
        hoarder.gets("alloc 100");
        assert_eq!(hoarder.info(), (224, 1024));
        hoarder.does("works");
        hoarder.does(&format!("free {first}"));
        assert_eq!(hoarder.info(), (924, 1024));
        hoarder.gets("alloc 924");
        hoarder.is_refused("alloc 1");
        // A free that the driver refuses gives nothing back.
        assert_ne!(hoarder.ask("free 12345"), "ok");
        hoarder.is_refused("alloc 1");
        hoarder.does("reset");
        assert_eq!(hoarder.info(), (1024, 1024));
        hoarder.gets("alloc 1024");
        hoarder.end();
    }
}

#[test]
fn all_that_is_on_the_card_counts_by_whatever_means_it_was_had() {
    let runtime = Runtime::new();
    let mut hoarder = start(&runtime, &["--mem", "100Mi"], &[]);
    for (command, free) in
        [("alloc", "free"), ("managed", "free"), ("pitch", "free"), ("async", "free-async")]
    {
        let given = hoarder.gets(&format!("{command} 60"));
        for other in ["alloc", "managed", "pitch", "async", "create"] {
            hoarder.is_refused(&format!("{other} 50"));
        }
        assert_eq!(hoarder.info(), (40, 100), "{command}");
        hoarder.does(&format!("{free} {given}"));
        assert_eq!(hoarder.info(), (100, 100), "{command}");
    }
    // Physical memory stays for as long as it is mapped, whatever becomes of its handle.
    let handle = hoarder.gets("create 60");
    let address = hoarder.gets(&format!("map {handle} 60"));
    hoarder.does(&format!("release {handle}"));
    hoarder.is_refused("create 50");
    hoarder.does(&format!("unmap {address} 60"));
    let handle = hoarder.gets("create 100");
    hoarder.does(&format!("release {handle}"));
    // Memory of the host is not the card's.
    hoarder.gets("host 200");
    assert_eq!(hoarder.info(), (100, 100));
    hoarder.end();
}

#[test]
fn without_a_limit_the_card_is_seen_as_it_is_and_what_is_used_is_known() {
    let runtime = Runtime::new();
    let mut hoarder = start(&runtime, &[], &[]);
    assert_eq!(hoarder.info().1, CARD);
    hoarder.gets("alloc 300");
    let seat = seat(&runtime, &hoarder);
    assert_eq!(seat["memory_used_bytes"].number(), 300 * MIB);
    assert_eq!(seat["memory_limit_bytes"], Value::Null);
    assert!(hoarder.info().0 <= CARD - 300);
    let page = text(&runtime.ebb(&["status"]));
    assert!(page.contains("has 300 MiB of memory"), "{page}");
    hoarder.end();
}

#[test]
fn a_limit_is_shown_and_changed_while_the_tenant_runs() {
    let runtime = Runtime::new();
    let mut hoarder = start(&runtime, &["--mem", "1g", "--name", "hoarder"], &[]);
    hoarder.gets("alloc 800");
    hoarder.is_refused("alloc 800");
    let seen = seat(&runtime, &hoarder);
    assert_eq!(seen["memory_used_bytes"].number(), 800 * MIB);
    assert_eq!(seen["memory_limit_bytes"].number(), 1024 * MIB);
    assert_eq!(seen["counters"]["memory_denials"].number(), 1);
    let page = text(&runtime.ebb(&["status"]));
    assert!(page.contains("has 800 MiB of the 1 GiB of memory") && page.contains("denied once"), "{page}");
    let set = |limit: &str| assert!(runtime.ebb(&["set", "hoarder", "--mem", limit]).status.success());
    set("2Gi");
    assert_eq!(hoarder.info(), (1248, 2048));
    let second = hoarder.gets("alloc 800");
    // Lowered below what is used, a limit takes nothing away.
    set("100Mi");
    assert_eq!(hoarder.info(), (0, 100));
    hoarder.is_refused("alloc 1");
    hoarder.does(&format!("free {second}"));
    hoarder.is_refused("alloc 1");
    set("none");
    assert_eq!(hoarder.info().1, CARD);
    hoarder.gets("alloc 2000");
    assert_eq!(seat(&runtime, &hoarder)["memory_limit_bytes"], Value::Null);
    hoarder.end();
}

/// Variables by which two runs are one tenant.
const ONE_TENANT: [(&str, &str); 2] = [("EBB_TENANT", "00000000000000aa"), ("EBB_MEM_LIMIT", "1000m")];

#[test]
fn the_processes_of_a_tenant_have_one_limit_together() {
    let runtime = Runtime::new();
    let mut one = start(&runtime, &[], &ONE_TENANT);
    let mut two = start(&runtime, &[], &ONE_TENANT);
    let mut stranger = start(&runtime, &["--mem", "1000m"], &[]);
    assert_eq!((one.info(), two.info()), ((1000, 1000), (1000, 1000)));
    let first = one.gets("alloc 600");
    two.is_refused("alloc 500");
    assert_eq!((two.info(), stranger.info()), ((400, 1000), (1000, 1000)));
    two.gets("alloc 300");
    assert_eq!(one.info(), (100, 1000));
    one.is_refused("alloc 101");
    stranger.gets("alloc 1000");
    one.does(&format!("free {first}"));
    two.gets("alloc 700");
    one.is_refused("alloc 1");
    // What a process had goes with it, however it ends.
    two.kill();
    wait_for("room for the other", || one.ask("alloc 1000").starts_with("ok"));
    stranger.end();
    one.end();
}

#[test]
fn of_two_who_ask_at_once_one_gets_what_there_is() {
    let runtime = Runtime::new();
    let mut both = [start(&runtime, &[], &ONE_TENANT), start(&runtime, &[], &ONE_TENANT)];
    both.iter_mut().for_each(|hoarder| assert_eq!(hoarder.info().1, 1000));
    for _ in 0..100 {
        both.iter_mut().for_each(|hoarder| hoarder.say("alloc 600"));
        let answers: Vec<String> = both.iter_mut().map(Hoarder::hear).collect();
        let given: Vec<Option<&str>> = answers.iter().map(|answer| answer.strip_prefix("ok ")).collect();
        assert_eq!(given.iter().flatten().count(), 1, "{answers:?}");
        for (hoarder, given) in both.iter_mut().zip(given) {
            if let Some(given) = given {
                hoarder.does(&format!("free {given}"));
            }
        }
    }
    both.into_iter().for_each(Hoarder::end);
}

#[test]
fn tenants_that_start_together_each_see_their_own_share() {
    let runtime = Runtime::new();
    let mut all: Vec<Hoarder> = (0..4).map(|_| start(&runtime, &["--mem", "3Gi"], &[])).collect();
    all.iter_mut().for_each(|hoarder| hoarder.say("info"));
    assert!(all.iter_mut().all(|hoarder| hoarder.hear() == "ok 3072 3072"));
    // As a server that takes nine tenths of what it sees.
    all.iter_mut().for_each(|hoarder| hoarder.say("alloc 2764"));
    assert!(all.iter_mut().all(|hoarder| hoarder.hear().starts_with("ok ")));
    all.iter_mut().for_each(|hoarder| assert_eq!(hoarder.info(), (308, 3072)));
    all.into_iter().for_each(Hoarder::end);
}

#[test]
fn what_schedulers_say_counts_unless_somebody_says_otherwise() {
    const ALL: (&str, &str) = ("CUDA_DEVICE_MEMORY_LIMIT", "2027m");
    const FIRST: (&str, &str) = ("CUDA_DEVICE_MEMORY_LIMIT_0", "1g");
    const OWN: (&str, &str) = ("EBB_MEM_LIMIT", "512Mi");
    let runtime = Runtime::new();
    let total = |options: &[&str], variables: &[(&str, &str)]| {
        let mut hoarder = start(&runtime, options, variables);
        let (_, total) = hoarder.info();
        hoarder.end();
        total
    };
    assert_eq!(total(&[], &[ALL]), 2027);
    assert_eq!(total(&[], &[ALL, FIRST]), 1024);
    assert_eq!(total(&["--no-daemon"], &[ALL, FIRST, OWN]), 512);
    assert_eq!(total(&["--mem", "256Mi"], &[ALL, FIRST, OWN]), 256);
    assert_eq!(total(&["--mem", "none"], &[ALL, FIRST, OWN]), CARD);
}

#[test]
fn what_is_not_understood_is_refused() {
    let runtime = Runtime::new();
    let run = |options: &[&str], variables: &[(&str, &str)]| {
        let mut command = runtime.command();
        command.args(["run", "--device", "soft"]).args(options).args(["--", "true"]);
        command.envs(variables.iter().copied()).output().unwrap()
    };
    let wrong = run(&["--mem", "half"], &[]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(errors(&wrong).contains("20Gi"), "{}", errors(&wrong));
    for name in ["EBB_MEM_LIMIT", "CUDA_DEVICE_MEMORY_LIMIT", "CUDA_DEVICE_MEMORY_LIMIT_0"] {
        let wrong = run(&[], &[(name, "half")]);
        assert_eq!(wrong.status.code(), Some(125));
        assert!(errors(&wrong).contains(name) && errors(&wrong).contains("half"), "{}", errors(&wrong));
    }
}

#[test]
fn the_report_tells_of_denials_and_of_limits_that_the_shim_ignored() {
    let runtime = Runtime::new();
    let report = runtime.path().join("report.json");
    let report_to = format!("--report=json:{}", report.display());
    let mut hoarder = start(&runtime, &[&report_to, "--mem", "1Gi"], &[]);
    hoarder.is_refused("alloc 2000");
    hoarder.end();
    let said = common::json::parse(&std::fs::read_to_string(&report).unwrap());
    assert_eq!(said["total"]["allocations_denied"].number(), 1);
    assert_eq!(said["total"]["allocations_refused"].number(), 1);
    // A program that changes its environment reaches the shim with what `ebb run` would not have let pass.
    let mut command = runtime.command();
    command.args(["run", "--device", "soft", "--no-daemon", &report_to, "--", "env", "EBB_MEM_LIMIT=half"]);
    let mut hoarder = Hoarder::start(command);
    assert_eq!(hoarder.info().1, CARD);
    hoarder.end();
    let said = common::json::parse(&std::fs::read_to_string(&report).unwrap());
    let notes: Vec<&Value> =
        said["processes"].items().iter().flat_map(|process| process["notes"].items()).collect();
    assert!(notes.contains(&&Value::Text("limit_ignored".to_owned())), "{notes:?}");
}
