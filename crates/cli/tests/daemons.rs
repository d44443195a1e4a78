//! Several daemons on one card: their tenants know nothing of each other but the GPU's lock, and each gets its share.
//!
//! What a tenant gets is what it says itself, of results that it has checked. The machine may be busy with something else, so
//! one try may miss what a second one keeps; a wrong mechanism misses all.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use model::Nanos;
use tempfile::TempDir;

use common::runtime::{Runtime, wait_for};
use common::users::{CARDS, SOMEBODY, as_user, shared_folder};

const SECONDS: &str = "4";
const TRIES: usize = 5;

/// A user with a daemon of his own on the card of a folder.
struct Household {
    runtime: Runtime,
    user: Option<u32>,
    /// Its tenants see other files where the GPU's lock should be, as those of a container would.
    own_lock: bool,
}

/// A tenant that is ready to begin, ended with the test.
struct Ready {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Drop for Ready {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Ready {
    fn go(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap(), "go").unwrap();
    }

    fn report(mut self) -> lab::Report {
        let last = self.lines.by_ref().map(Result::unwrap).last().unwrap_or_default();
        assert!(self.child.wait().unwrap().success(), "{last}");
        let report: lab::Report = last.parse().unwrap();
        assert_eq!(report.right, report.done, "every result is right");
        report
    }
}

/// As many households as asked for, of different users where that can be.
fn households(count: u32) -> Vec<Household> {
    let root = rustix::process::geteuid().is_root();
    let able = root && Command::new("setpriv").arg("--version").output().is_ok();
    if !able {
        eprintln!("all daemons are of one user: only root can be several, with setpriv");
    }
    let household = |number: u32| {
        let (runtime, user) = (Runtime::new(), able.then_some(SOMEBODY + number));
        user.iter().for_each(|user| chown(runtime.path(), Some(*user), Some(*user)).unwrap());
        Household { runtime, user, own_lock: false }
    };
    (0..count).map(household).collect()
}

impl Household {
    fn tenant(&self, cards: &Path, class: &str, options: &[&str]) -> Ready {
        let plain = self.runtime.command();
        let mut command = match self.own_lock {
            true => self.behind_other_files(cards, &plain),
            false => as_user(self.user, &plain),
        };
        command.args(["run", "--device", "soft", "--class", class]).args(options);
        command.args([
            "--",
            env!("CARGO_BIN_EXE_ebb"),
            "tenant",
            "--driver",
            "libcuda.so.1",
            "--class",
            class,
        ]);
        command.args(["--seed", "1", "--seconds", SECONDS]).env(CARDS, cards);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        Ready { child, lines }
    }

    /// What `ebb status` says to this user.
    fn status(&self) -> String {
        let output = as_user(self.user, &self.runtime.command()).arg("status").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.runtime.path().join("daemon.log")).unwrap_or_default()
    }

    /// The same command where other files lie over those of the lock.
    fn behind_other_files(&self, cards: &Path, plain: &Command) -> Command {
        let script = "for end in turn queue; do for file in \"$0\"/*.$end; do \
                      mount --bind \"$1\" \"$file\" || exit 9; done; shift; done; \
                      shift; exec \"$@\"";
        let files = ["turn", "queue"].map(|end| self.runtime.path().join(format!("own.{end}")));
        files.iter().for_each(|file| drop(std::fs::File::create(file).unwrap()));
        let inner = as_user(self.user, plain);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]).arg(cards).args(files);
        command.arg("--").arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

/// All of them at once; what each did.
fn together(mut tenants: Vec<Ready>) -> Vec<lab::Report> {
    tenants.iter_mut().for_each(Ready::go);
    tenants.into_iter().map(Ready::report).collect()
}

/// Until one try is as it should be.
fn try_for(what: &str, mut once: impl FnMut() -> Result<(), String>) {
    let mut said = Vec::new();
    for _ in 0..TRIES {
        match once() {
            Ok(()) => return,
            Err(found) => said.push(found),
        }
    }
    panic!("{what}: {}", said.join("; "));
}

fn rates(reports: &[lab::Report]) -> Vec<f64> {
    reports.iter().map(lab::Report::rate).collect()
}

/// Nobody is without progress for longer than this.
const LONGEST_PAUSE: Nanos = Nanos::from_millis(1_000);

/// Each of the households has one best-effort tenant, and each tenant at least this part of what one has alone. The cards' folder.
fn each_has(households: &[Household], least: f64) -> TempDir {
    let cards = shared_folder();
    let one = |household: &Household| household.tenant(cards.path(), "best-effort", &[]);
    try_for("each has its part", || {
        let alone = together(vec![one(&households[0])])[0].rate();
        let reports = together(households.iter().map(one).collect());
        let (rates, pauses) = (rates(&reports), reports.iter().map(|report| report.longest_pause));
        let longest = pauses.max().unwrap_or_default();
        let found = format!("alone {alone:.0}/s, together {rates:.0?}/s, longest pause {longest}");
        println!("{found}");
        match rates.iter().all(|rate| *rate >= least * alone) && longest <= LONGEST_PAUSE {
            true => Ok(()),
            false => Err(found),
        }
    });
    cards
}

#[test]
fn tenants_of_two_daemons_have_half_each() {
    drop(each_has(&households(2), 0.45));
}

/// With other files in the place of the lock, neither knows of the other; only the slice that grows lets both go on.
#[test]
fn tenants_that_cannot_reach_the_lock_get_on_beside_each_other() {
    if !Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: only root can have mounts of its own, with unshare");
        return;
    }
    let mut two = households(2);
    two[1].own_lock = true;
    let cards = each_has(&two, 0.3);
    // And it is said: in status while it is so, and in the log.
    let mut tenants: Vec<_> =
        two.iter().map(|household| household.tenant(cards.path(), "best-effort", &[])).collect();
    tenants.iter_mut().for_each(Ready::go);
    let lengthened = "has a longer timeslice, because nothing got done with the short one";
    wait_for("somebody's slice is longer", || two.iter().any(|one| one.status().contains(lengthened)));
    drop(tenants);
    let logs: Vec<String> = two.iter().map(Household::log).collect();
    assert!(logs.iter().any(|log| log.contains(lengthened)), "{logs:?}");
}

#[test]
fn weights_hold_inside_each_of_three_daemons() {
    let (three, cards) = (households(3), shared_folder());
    try_for("three in four parts", || {
        let tenant = |place: usize, weight: &str| {
            three[place].tenant(cards.path(), "best-effort", &["--weight", weight])
        };
        let reports = together(vec![tenant(0, "1"), tenant(0, "3"), tenant(1, "1"), tenant(2, "1")]);
        let rates = rates(&reports);
        let (all, heavy) = (rates.iter().sum::<f64>(), rates[1] / (rates[0] + rates[1]));
        let parts = [rates[0] + rates[1], rates[2], rates[3]].map(|rate| rate / all);
        println!("daemons have {parts:.2?}, weight 3 of 4 has {heavy:.2}");
        let right = parts.iter().all(|part| (0.25..0.42).contains(part)) && (0.65..0.85).contains(&heavy);
        right.then_some(()).ok_or(format!("daemons have {parts:.2?}, weight 3 of 4 has {heavy:.2}"))
    });
}

#[test]
fn a_latency_tenant_is_as_if_alone_beside_best_effort_work_of_another_daemon() {
    let (two, cards) = (households(2), shared_folder());
    for own in &two {
        try_for("p99 within 1.25 times alone", || {
            let server = || own.tenant(cards.path(), "latency", &[]);
            let worker = |place: usize| two[place].tenant(cards.path(), "best-effort", &[]);
            let alone = together(vec![server()])[0].p99();
            let reports = together(vec![server(), worker(0), worker(1)]);
            let (beside, work) = (reports[0].p99(), rates(&reports[1..]));
            println!("p99 {alone} alone, {beside} beside work of both daemons ({work:.0?}/s)");
            let right = beside.0 * 4 <= alone.0 * 5 && work.iter().all(|rate| *rate > 0.0);
            right.then_some(()).ok_or(format!("{alone} alone, {beside} beside"))
        });
    }
}
