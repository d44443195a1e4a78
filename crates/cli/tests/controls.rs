//! `ebb soft set` on the contexts of tenants at work, each a process of its own.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Output, Stdio};
use std::time::{Duration, Instant};

use common::json::{self, Value};
use common::{errors, private_folder, text};

struct Tenant {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Drop for Tenant {
    fn drop(&mut self) {
        // A test that fails must not leave it behind; one that has ended cannot be killed, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Tenant {
    /// A best-effort tenant that has its context and its first order.
    fn start(runtime: &Path, seconds: u32) -> Tenant {
        let driver = common::products().join("softcuda/libcuda.so.1");
        let mut command = common::ebb(runtime);
        command.args(["tenant", "--class", "best-effort", "--seed", "1", "--seconds", &seconds.to_string()]);
        command.arg("--driver").arg(driver).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut tenant = Tenant { child, lines };
        assert_eq!(tenant.lines.next().unwrap().unwrap(), "ready");
        writeln!(tenant.child.stdin.as_mut().unwrap(), "go").unwrap();
        tenant
    }

    fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// What `ebb soft show` says about its context, if it has one.
    fn context(&self, runtime: &Path) -> Option<Value> {
        let shown = json::parse(&text(&soft(runtime, &["show", "-o", "json"])));
        let own = |context: &&Value| context["pid"].number() == i128::from(self.child.id());
        shown["contexts"].items().iter().find(own).cloned()
    }

    fn state(&self, runtime: &Path) -> Option<Value> {
        self.context(runtime).map(|context| context["state"].clone())
    }

    fn number(&self, runtime: &Path) -> String {
        self.context(runtime).unwrap()["id"].number().to_string()
    }

    fn time_on_gpu(&self, runtime: &Path) -> i128 {
        self.context(runtime).unwrap()["on_time_ns"].number()
    }
}

fn soft(runtime: &Path, arguments: &[&str]) -> Output {
    common::ebb(runtime).arg("soft").args(arguments).output().unwrap()
}

fn set(runtime: &Path, arguments: &[&str]) {
    text(&soft(runtime, &[&["set"], arguments].concat()));
}

fn word(text: &str) -> Option<Value> {
    Some(Value::Text(text.to_owned()))
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed().as_secs() < 60, "it never came true");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A tenant that was disabled in the middle of its work. A machine too busy to do that in time gets more of it.
fn disabled_tenant(runtime: &Path) -> (Tenant, String, Duration) {
    for seconds in [2, 8, 32] {
        let mut tenant = Tenant::start(runtime, seconds);
        let number = tenant.number(runtime);
        while !tenant.has_ended() {
            if tenant.state(runtime) == word("running")
                && soft(runtime, &["set", "--disable", &number]).status.success()
            {
                return (tenant, number, Duration::from_secs(seconds.into()));
            }
        }
    }
    panic!("no tenant could be disabled before it had ended");
}

fn percent(line: &str) -> u128 {
    line.strip_prefix("progress ")
        .and_then(|percent| percent.parse().ok())
        .expect("a tenant says its progress")
}

#[test]
fn a_tenant_disabled_in_the_middle_stands_still_and_ends_right() {
    for domain in ["isolated", "shared"] {
        let runtime = private_folder();
        let runtime = runtime.path();
        set(runtime, &["--domain", domain]);
        let (mut tenant, number, span) = disabled_tenant(runtime);
        assert_eq!(tenant.state(runtime), word("disabled"));
        let before = tenant.time_on_gpu(runtime);
        // It would end after this time, if it could only finish what it has begun.
        std::thread::sleep(span);
        assert!(!tenant.has_ended());
        assert_eq!(tenant.time_on_gpu(runtime), before);
        let shown = text(&soft(runtime, &["show"]));
        assert!(shown.lines().any(|line| line.ends_with("disabled")), "{shown}");
        set(runtime, &["--enable", &number, "--preempt", &number]);
        let report = tenant.lines.by_ref().map(Result::unwrap).last().unwrap();
        assert!(tenant.child.wait().unwrap().success());
        assert!(report.parse::<lab::Report>().unwrap().all_right(), "{report}");
    }
}

#[test]
fn others_go_on_beside_a_disabled_tenant_and_its_death_leaves_nothing() {
    for domain in ["isolated", "shared"] {
        let runtime = private_folder();
        let runtime = runtime.path();
        set(runtime, &["--domain", domain]);
        let begin = Instant::now();
        let (mut survivor, mut victim) = (Tenant::start(runtime, 60), Tenant::start(runtime, 60));
        let number = victim.number(runtime);
        wait_for(|| victim.state(runtime) != word("idle"));
        set(runtime, &["--disable", &number]);
        // Of its sixty seconds the survivor says every hundredth; one that is later than now was said after now.
        let so_far = begin.elapsed().as_millis() / 600;
        survivor.lines.by_ref().find(|line| percent(line.as_ref().unwrap()) > so_far).unwrap().unwrap();
        assert_eq!(victim.state(runtime), word("disabled"));
        victim.child.kill().unwrap();
        victim.child.wait().unwrap();
        assert_eq!(victim.context(runtime), None);
        let refused = errors(&soft(runtime, &["set", "--enable", &number]));
        assert!(refused.contains(&format!("no context {number}")), "{refused}");
        wait_for(|| survivor.state(runtime) == word("running"));
        survivor.child.kill().unwrap();
        survivor.child.wait().unwrap();
        let shown = json::parse(&text(&soft(runtime, &["show", "-o", "json"])));
        assert_eq!((&shown["contexts"], shown["memory_used"].number()), (&Value::List(Vec::new()), 0));
    }
}

#[test]
fn a_request_that_cannot_be_done_changes_nothing() {
    let folder = private_folder();
    let runtime = folder.path();
    let tenant = Tenant::start(runtime, 600);
    let number = tenant.number(runtime);
    for verb in ["--disable", "--enable", "--preempt"] {
        let refused = soft(runtime, &["set", "--disable", &number, verb, "999", "--switch-cost", "7"]);
        let message = errors(&refused);
        assert!(!refused.status.success() && message.contains("no context 999"), "{message}");
        assert!(message.contains("ebb soft show") && message.lines().count() == 1, "{message}");
        let refused = soft(runtime, &["set", verb, "three"]);
        assert!(errors(&refused).contains("three"), "{}", errors(&refused));
    }
    let message = errors(&soft(runtime, &["set", "--disable", &number, "--enable", &number]));
    assert!(message.contains("disabled and enabled at once"), "{message}");
    assert_ne!(tenant.state(runtime), word("disabled"));
    let shown = json::parse(&text(&soft(runtime, &["show", "-o", "json"])));
    assert_ne!(shown["switch_cost_ns"].number(), 7000);
}
