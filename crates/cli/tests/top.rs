//! `ebb top` as a person has it before them: in a terminal (of tmux, without a person), with tenants on the software GPU.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::json::{self, Value};
use common::runtime::{PATIENCE, Runtime, Tenant, wait_for};
use common::{errors, text};
use rustix::process::{Pid, Signal, kill_process};

/// A shell in a window of 80 by 24. It ends with its runtime folder, whose name is in its environment.
struct Window {
    socket: PathBuf,
}

impl Window {
    /// Nothing where there is no tmux.
    fn open(runtime: &Runtime) -> Option<Window> {
        let found = Command::new("tmux").arg("-V").stdout(Stdio::null()).status();
        if found.is_err() {
            eprintln!("skipped: there is no tmux on the PATH");
            return None;
        }
        let window = Window { socket: runtime.path().join("tmux") };
        let mut start = window.tmux();
        for (name, value) in runtime.command().get_envs() {
            match value {
                Some(value) => start.env(name, value),
                None => start.env_remove(name),
            };
        }
        start.args(["new-session", "-d", "-x", "80", "-y", "24"]);
        start.args(["env", "PS1=ready$ ", "bash", "--norc", "--noprofile"]);
        start.env("LC_ALL", "C.UTF-8").env_remove("TMUX").env_remove("NO_COLOR");
        assert!(start.status().unwrap().success(), "tmux does not start");
        window.await_text("ready$");
        Some(window)
    }

    fn tmux(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.socket);
        tmux
    }

    /// Presses keys, by the names that tmux has for them.
    fn press(&self, keys: &[&str]) {
        assert!(self.tmux().arg("send-keys").args(keys).status().unwrap().success());
    }

    /// Types a line into the shell.
    fn run(&self, line: &str) {
        assert!(self.tmux().args(["send-keys", "-l", line]).status().unwrap().success());
        self.press(&["Enter"]);
    }

    fn screen(&self) -> String {
        text(&self.tmux().args(["capture-pane", "-p"]).output().unwrap())
    }

    /// Waits for a screen that is as it should be, and says what was there instead.
    fn wait(&self, what: &str, is_right: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        loop {
            let screen = self.screen();
            if is_right(&screen) {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "never happened: {what}\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn await_text(&self, text: &str) {
        self.wait(text, |screen| screen.contains(text));
    }

    /// Waits for these lines, whatever the numbers in them.
    fn await_lines(&self, wanted: &[&str]) {
        let shown = |screen: &str| -> Vec<String> { screen.lines().map(masked).collect() };
        self.wait(&format!("{wanted:#?}"), |screen| {
            let shown = shown(screen);
            wanted.iter().all(|line| shown.iter().any(|shown| shown == line))
        });
    }

    fn top(&self, options: &str) {
        self.run(&format!("{} top {options}", env!("CARGO_BIN_EXE_ebb")));
    }
}

/// A line in which everything that depends on time and chance has been put aside.
fn masked(line: &str) -> String {
    const STATES: [&str; 4] = ["holding", "waiting", "running", "idle"];
    let word = |word: &str| {
        let bare = word.trim_end_matches(',');
        let number = bare.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '/');
        match bare {
            _ if bare.chars().all(|c| ('▁'..='█').contains(&c)) => None,
            _ if bare.starts_with("GPU-") => Some("GPU-#".to_owned()),
            _ if STATES.contains(&bare) && !word.ends_with(',') => Some("STATE".to_owned()),
            _ if number.len() == bare.len() => Some(word.to_owned()),
            // How many times as long as alone is not known for some time.
            _ if number == "x" || number.is_empty() && bare.contains('/') => None,
            _ => Some("#".to_owned()),
        }
    };
    let words: Vec<String> = line.split_whitespace().filter_map(word).collect();
    words.join(" ")
}

fn top_process(runtime: &Runtime) -> Option<Pid> {
    let processes = runtime.processes();
    processes.into_iter().find(|(_, words)| words.contains("ebb top")).map(|(pid, _)| pid)
}

fn seated(runtime: &Runtime, tenants: &[&Tenant]) {
    wait_for("all have seats", || tenants.iter().all(|tenant| runtime.seat(tenant).is_some()));
}

#[test]
fn tenants_are_shown_and_keys_do_what_they_say() {
    let runtime = Runtime::new();
    let Some(window) = Window::open(&runtime) else { return };
    let tenants = [
        runtime.tenant("alpha", "best-effort", &[]),
        runtime.tenant("beta", "best-effort", &["--weight", "2"]),
        runtime.tenant("server", "latency", &["--slo-p99", "1000s"]),
    ];
    seated(&runtime, &tenants.each_ref());
    window.top("--interval 200ms");
    window.await_text("by GPU");
    // Three columns to the left is the tenants' own.
    window.press(&["<", "<", "<", "Home"]);
    let head = "tenant class state GPU lately SLO p99, or stop p99 wait launch/s";
    let (alpha, beta, server) = (
        ">alpha best-eff STATE # switch # # #",
        "beta best-eff STATE # switch # # #",
        "server latency STATE # kept # – #",
    );
    window.await_lines(&[head, alpha, beta, server]);
    window.wait("rows by name", |screen| {
        let at = |name: &str| screen.find(name).unwrap_or(usize::MAX);
        screen.contains("by tenant") && at(">alpha") < at(" beta ") && at(" beta ") < at(" server ")
    });
    window.press(&["r"]);
    window.wait("rows by name, reversed", |screen| {
        let at = |name: &str| screen.find(name).unwrap_or(0);
        screen.contains("by tenant reversed") && at(" server ") < at(" beta ") && at(" beta ") < at(">alpha")
    });

    window.press(&["/", "S", "e", "r", "v"]);
    window.wait("the filter is shown", |screen| screen.contains("filter: Serv_"));
    window.await_lines(&[">server latency STATE # kept # – #"]);
    window.press(&["Enter"]);
    let has_row = |screen: &str, name: &str| {
        screen.lines().any(|line| line.get(1..).is_some_and(|l| l.starts_with(name)))
    };
    window
        .wait("the others are hidden", |screen| screen.contains("only `Serv`") && !has_row(screen, "alpha"));
    window.press(&["Escape"]);
    window.wait("all are shown again", |screen| !screen.contains("only") && has_row(screen, "alpha"));

    window.press(&["?"]);
    window.wait("help", |screen| screen.contains("keys") && screen.contains("reverse the order"));
    window.press(&["Escape"]);
    window.wait("the table again", |screen| !screen.contains("reverse the order"));
    let resize = ["resize-window", "-x", "40", "-y", "10"];
    assert!(window.tmux().args(resize).status().unwrap().success());
    window.wait("a small window", |screen| {
        let is_small = screen.lines().all(|line| line.chars().count() <= 40);
        is_small && has_row(screen, "server") && screen.contains("q quit") && screen.contains("…")
    });
    window.press(&["q"]);
    window.wait("the shell again", |screen| !screen.contains("by tenant"));
    tenants.into_iter().for_each(Tenant::end);
}

#[test]
fn a_tenant_is_paused_and_goes_on_and_shows_its_processes() {
    let runtime = Runtime::new();
    let Some(window) = Window::open(&runtime) else { return };
    let tenant = runtime.tenant("alpha", "best-effort", &[]);
    seated(&runtime, &[&tenant]);
    window.top("--interval 200ms");
    window.await_text(">alpha");
    let is = |state: &str| {
        let state = Value::Text(state.to_owned());
        runtime.seat(&tenant).is_some_and(|seat| seat["state"] == state)
    };
    window.press(&["p"]);
    window.await_text("pause alpha? y/n");
    window.press(&["y"]);
    window.await_text("paused alpha");
    wait_for("it is paused", || is("paused"));
    window.wait("so it is shown", |screen| screen.contains("best-eff  paused"));
    window.press(&["p"]);
    window.await_text("resume alpha? y/n");
    window.press(&["y"]);
    window.await_text("resumed alpha");
    wait_for("it goes on", || !is("paused"));
    window.wait("so it is shown", |screen| !screen.contains("best-eff  paused"));
    // Without the way that admins have, the answer is a refusal; nothing happens without a question.
    std::fs::rename(runtime.path().join("admin.sock"), runtime.path().join("elsewhere")).unwrap();
    window.press(&["p"]);
    window.await_text("pause alpha? y/n");
    window.press(&["n"]);
    window.await_text("q quit");
    window.press(&["p"]);
    window.await_text("pause alpha? y/n");
    window.press(&["y"]);
    window.await_text("alpha was not paused: ");
    assert!(!is("paused"));
    window.press(&["Enter"]);
    let pid = format!("   {} ", tenant.child.id());
    window.wait("its process", |screen| screen.lines().any(|line| line.starts_with(&pid)));
    tenant.end();
    window.await_text("no tenants");
}

/// What the terminal is set to, as the shell finds it; under a mark of its own.
fn settings(window: &Window, mark: &str) -> String {
    window.run(&format!("echo {mark}=$(stty -g | cksum)="));
    let found = |screen: &str| {
        let line =
            screen.lines().find_map(|line| line.strip_prefix(mark)?.strip_prefix('=')).map(str::to_owned);
        line.filter(|line| line.ends_with('='))
    };
    window.wait("settings", |screen| found(screen).is_some());
    found(&window.screen()).unwrap()
}

#[test]
fn the_terminal_is_given_back_however_it_ends() {
    let runtime = Runtime::new();
    let Some(window) = Window::open(&runtime) else { return };
    runtime.daemon();
    let before = settings(&window, "before");
    let starts = || {
        window.top("; echo status $?");
        window.await_text("no tenants");
    };
    let given_back = |status: &str, mark: &str| {
        window.wait("the shell's own screen", |screen| screen.contains(status) && screen.contains("before="));
        assert_eq!(settings(&window, mark), before);
        window.run("clear; echo before=");
        window.wait("a clear screen", |screen| !screen.contains(status) && screen.contains("before="));
    };
    starts();
    window.press(&["q"]);
    given_back("status 0", "quit");

    starts();
    kill_process(top_process(&runtime).unwrap(), Signal::TERM).unwrap();
    given_back("status 143", "terminated");

    // Ctrl-Z, and then a stop that nobody can be prepared for.
    window.top("");
    window.await_text("no tenants");
    window.press(&["C-z"]);
    window.wait("it is stopped", |screen| screen.contains("Stopped") && screen.contains("before="));
    assert_eq!(settings(&window, "stopped"), before);
    window.run("clear; fg");
    window.await_text("no tenants");
    kill_process(top_process(&runtime).unwrap(), Signal::STOP).unwrap();
    window.await_text("Stopped");
    window.run("fg");
    window.wait("it goes on", |screen| screen.contains("no tenants") && !screen.contains("Stopped"));
    window.press(&["C-c"]);
    window.wait("the shell again", |screen| !screen.contains("no tenants"));
    assert_eq!(settings(&window, "interrupted"), before);

    window.run("TERM=dumb; clear");
    window.top("; echo status $?");
    window.wait("a refusal", |screen| screen.contains("--once") && screen.contains("status 2"));
}

#[test]
fn a_daemon_that_goes_is_waited_for() {
    let runtime = Runtime::new();
    let Some(window) = Window::open(&runtime) else { return };
    let tenant = runtime.tenant("alpha", "best-effort", &[]);
    let daemon = runtime.daemon();
    seated(&runtime, &[&tenant]);
    window.top("--interval 100ms");
    window.await_text(">alpha");
    kill_process(daemon, Signal::KILL).unwrap();
    window.wait("it waits", |screen| screen.contains("no daemon; waiting") && screen.contains(">alpha"));
    let next = runtime.daemon();
    assert_ne!(next, daemon);
    let said = format!("daemon {} for the user", next.as_raw_nonzero());
    window.wait("it goes on", |screen| screen.contains(&said) && screen.contains(">alpha"));
    tenant.end();
}

#[test]
fn without_a_terminal_or_a_daemon_it_says_what_to_do() {
    let runtime = Runtime::new();
    let output = runtime.ebb(&["top"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(errors(&output).contains("needs a terminal") && errors(&output).contains("--once"));
    for output in [runtime.ebb(&["top", "--once"]), runtime.ebb(&["top", "--once", "-o", "json"])] {
        assert_eq!(output.status.code(), Some(1));
        let message = errors(&output);
        assert!(message.contains("no daemon answers") && message.contains("ebb daemon"), "{message}");
    }
}

#[test]
fn one_frame_is_printed_for_people_and_for_programs() {
    let runtime = Runtime::new();
    let tenants = [runtime.tenant("alpha", "best-effort", &[]), runtime.tenant("server", "latency", &[])];
    seated(&runtime, &tenants.each_ref());
    let frame = text(&runtime.ebb(&["top", "--once", "--interval", "100ms"]));
    assert!(frame.contains(" alpha ") && frame.contains(" server "), "{frame}");
    assert!(!frame.contains('\u{1b}') && !frame.contains("q quit"), "{frame}");
    let tenants_of = || {
        let whole = json::parse(&text(&runtime.ebb(&["top", "--once", "-o", "json", "--interval", "100ms"])));
        assert!(whole["interval_ns"].number() > 0 && whole["daemon"]["pid"].number() > 0);
        whole["gpus"].items()[0]["tenants"].items().to_vec()
    };
    wait_for("all have launched something between two reports", || {
        let rows = tenants_of();
        let at_work = |row: &Value| row["rates"] != Value::Null && row["rates"]["gpu_permille"].number() > 0;
        rows.len() == 2 && rows.iter().all(at_work)
    });
    tenants.into_iter().for_each(Tenant::end);
}
