//! Several daemons, several users and programs without ebb on one card: who is told of whom.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::runtime::{Runtime, wait_for};
use common::users::{CARDS, SOMEBODY, as_user, of_somebody, shared_folder};
use common::{products, text};

/// A process, ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that computes on the card of a folder without ebb.
fn plain(runtime: &Runtime, cards: &Path, user: Option<u32>) -> Ended {
    let driver = products().join("softcuda/libcuda.so.1");
    let mut command = as_user(user, &runtime.command());
    command.args(["tenant", "--class", "best-effort", "--seed=1", "--seconds", "600", "--driver"]);
    command.arg(driver).env(CARDS, cards).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    writeln!(child.stdin.as_mut().unwrap(), "go").unwrap();
    Ended(child)
}

fn strangers(runtime: &Runtime) -> Option<Vec<i128>> {
    let report = runtime.report()?;
    let pids = report["gpus"].items().iter().flat_map(|gpu| gpu["strangers"].items().to_vec());
    Some(pids.map(|stranger| stranger["pid"].number()).collect())
}

#[test]
fn status_says_for_whom_best_effort_work_waits() {
    let (here, there) = (Runtime::new(), Runtime::new());
    let tenant = here.tenant("trainer", "best-effort", &[]);
    wait_for("a seat", || here.seat(&tenant).is_some());
    wait_for("a look at the card", || strangers(&here) == Some(Vec::new()));
    let plain = plain(&there, here.path(), None);
    wait_for("a stranger", || strangers(&here) == Some(vec![i128::from(plain.0.id())]));
    let said = format!("waits for: pid {} ebb (user ", plain.0.id());
    let page = || text(&here.ebb(&["status"]));
    wait_for("words about it", || page().contains(&said) && page().contains("not under ebb"));
    assert!(text(&here.ebb(&["top", "--once"])).contains(&said));
    drop(plain);
    wait_for("its end to be seen", || strangers(&here) == Some(Vec::new()));
    assert!(!page().contains("waits for: "));
    tenant.end();
}

#[test]
fn tenants_of_another_daemon_are_strangers_with_a_daemon() {
    let (here, there) = (Runtime::new(), Runtime::new());
    let tenant = here.tenant("trainer", "best-effort", &[]);
    let mut other = there.run(&["--class", "latency"], "tenant");
    other.args(["--class", "latency", "--seed=1", "--seconds", "600"]).env(CARDS, here.path());
    let mut other = Ended(other.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    writeln!(other.0.stdin.as_mut().unwrap(), "go").unwrap();
    let pid = i128::from(other.0.id());
    wait_for("a stranger", || strangers(&here).is_some_and(|pids| pids.contains(&pid)));
    let report = here.report().unwrap();
    let all = report["gpus"].items()[0]["strangers"].items().to_vec();
    let found = all.iter().find(|stranger| stranger["pid"].number() == pid).unwrap();
    assert_eq!(found["daemon"].text(), there.path().to_str().unwrap());
    wait_for("its seat there", || there.seats().iter().any(|seat| seat["pid"].number() == pid));
    drop(other);
    tenant.end();
}

#[test]
fn a_card_in_a_shared_folder_is_for_all_users() {
    let Some(theirs) = of_somebody() else { return };
    let cards = shared_folder();
    let ours = Runtime::new();
    let stranger = plain(&theirs, cards.path(), Some(SOMEBODY));
    let shown = text(&ours.command().args(["soft", "show"]).env(CARDS, cards.path()).output().unwrap());
    assert!(shown.contains(&format!(" {} ", stranger.0.id())), "{shown}");
    // The other way round: a card of root's, used by somebody else.
    let own = plain(&ours, cards.path(), None);
    let mut show = as_user(Some(SOMEBODY), &theirs.command());
    let shown = text(&show.args(["soft", "show"]).env(CARDS, cards.path()).output().unwrap());
    assert!(shown.contains(&format!(" {} ", own.0.id())), "{shown}");
}

#[test]
fn a_user_is_told_of_other_users_by_doctor_and_once_by_run() {
    let Some(theirs) = of_somebody() else { return };
    let mut daemon = as_user(Some(SOMEBODY), &theirs.command());
    let daemon = Ended(daemon.arg("daemon").stderr(Stdio::null()).spawn().unwrap());
    wait_for("their daemon", || theirs.path().join("ebb.sock").exists());
    let ours = Runtime::new();
    let named = format!("a daemon of ebb (pid {}, user {SOMEBODY})", daemon.0.id());
    let doctor = text(&ours.ebb(&["doctor", "--device", "soft"]));
    let line = doctor.lines().find(|line| line.contains("company")).unwrap();
    assert!(line.starts_with("note") && doctor.contains("ebb daemon --machine"), "{doctor}");

    let Some(first) = on_a_terminal(&ours) else { return };
    assert!(
        first.contains("others use this machine's GPU: ") && first.contains("a daemon of ebb (pid "),
        "{first}"
    );
    assert_eq!(first.lines().filter(|line| line.starts_with("ebb: ")).count(), 1, "{first}");
    assert!(first.contains("user 61") || first.contains(&named), "{first}");
    let second = on_a_terminal(&ours).unwrap();
    assert!(!second.contains("ebb: "), "{second}");
}

/// What `ebb run` says to a person; nothing where there is no `script` to be a terminal.
fn on_a_terminal(runtime: &Runtime) -> Option<String> {
    let ebb = PathBuf::from(env!("CARGO_BIN_EXE_ebb"));
    let plain = runtime.command();
    let mut command = Command::new("script");
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let words = format!("{} run --device soft -- true", ebb.display());
    command.args(["-qec", &words, "/dev/null"]).env("XDG_STATE_HOME", runtime.path());
    let output = command.stdin(Stdio::null()).output().ok();
    if output.is_none() {
        eprintln!("skipped: there is no `script`");
    }
    output.map(|output| String::from_utf8_lossy(&output.stdout).replace('\r', ""))
}

#[test]
fn nobody_is_told_where_no_person_reads() {
    let Some(theirs) = of_somebody() else { return };
    let mut daemon = as_user(Some(SOMEBODY), &theirs.command());
    let _daemon = Ended(daemon.arg("daemon").stderr(Stdio::null()).spawn().unwrap());
    wait_for("their daemon", || theirs.path().join("ebb.sock").exists());
    let ours = Runtime::new();
    let output = ours.ebb(&["run", "--device", "soft", "--", "true"]);
    assert_eq!(common::errors(&output), "");
}

/// A program that fills the card takes it all. What the tenant beside it has, and for whom it waits, is what it is told.
#[test]
fn gpu_time_beside_a_program_without_ebb_is_what_the_tenant_had() {
    let (here, there) = (Runtime::new(), Runtime::new());
    let tenant = here.tenant("trainer", "best-effort", &[]);
    let plain = plain(&there, here.path(), None);
    wait_for("words about it", || text(&here.ebb(&["status"])).contains("waits for: "));
    let card = || here.context(&tenant).map_or(0, |context| context["on_time_ns"].number());
    let said = || here.counter(&tenant, "gpu_ns");
    let mut looks = Vec::new();
    // What a tenant is told is up to two seconds old, and others use this machine too.
    let alike = (0..10).any(|_| {
        let (begin, before) = (Instant::now(), (card(), said()));
        wait_for("some time", || begin.elapsed() > Duration::from_secs(2));
        let span = begin.elapsed().as_nanos() as f64;
        let had = (card() - before.0) as f64 / span;
        let claimed = (said() - before.1) as f64 / span;
        looks.push(format!("had {had:.2}, said {claimed:.2}"));
        (had - claimed).abs() < 0.1 && had < 0.5
    });
    assert!(alike, "{looks:?}");
    let seat = here.seat(&tenant).unwrap();
    assert_eq!(seat["decision"]["why"].text(), "strangers");
    assert_eq!((seat["slice_state"].text(), seat["slice_ns"].number()), ("short", 1_000));
    wait_for("its share to be less than all", || {
        here.seat(&tenant).unwrap()["share_permille"].number() < 900
    });
    drop(plain);
    wait_for("the GPU for itself", || here.seat(&tenant).unwrap()["decision"]["why"].text() != "strangers");
    tenant.end();
}

/// With `starve_after`, best-effort work takes a tenth of the time beside a program that leaves it nothing.
#[test]
fn a_starving_tenant_gets_a_part_where_the_configuration_says_so() {
    let (here, there) = (Runtime::new(), Runtime::new());
    let settings = "schema_version = 1\n[token]\nstarve_after = \"200ms\"\n";
    std::fs::create_dir(here.path().join("ebb")).unwrap();
    std::fs::write(here.path().join("ebb/ebb.toml"), settings).unwrap();
    let _plain = plain(&there, here.path(), None);
    let tenant = here.tenant("trainer", "best-effort", &[]);
    wait_for("it to be starving", || {
        here.seat(&tenant).is_some_and(|seat| seat["slice_state"].text() == "starving")
    });
    let launches = || here.counter(&tenant, "launches");
    let before = launches();
    wait_for("something to get done", || launches() > before + 10);
    tenant.end();
}
