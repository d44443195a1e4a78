//! Frames as they stand on a terminal, from reports as a daemon writes them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use daemon::report::{Report, State};
use daemon::request::Request;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};

use super::columns::Column;
use super::desk::{Desk, Mode};
use super::keys::{Demand, press};
use super::once;
use super::view::{self, Look};
use daemon::scene::{Rates, Scene, Verdict};

/// `base` with more members, or others.
fn with(mut base: Value, more: Value) -> Value {
    let members = more.as_object().expect("an object").clone();
    for (key, value) in members {
        base[key] = value;
    }
    base
}

fn times(p99: u64) -> Value {
    json!({"count": 100, "p50_ns": p99 / 2, "p99_ns": p99})
}

fn counters(gpu_ms: u64, submissions: u64, preempted: u64) -> Value {
    let names = [
        "held_ns",
        "wait_ns",
        "waits",
        "passes",
        "stops_hold",
        "stops_switch",
        "taken_over",
        "lost",
        "bursts",
        "burst_ns",
        "bursts_unended",
        "slo_missed",
        "daemon_losses",
        "refusals",
    ];
    let base = names.into_iter().map(|name| (name.to_owned(), json!(0))).collect();
    let more = json!({"gpu_ns": gpu_ms * 1_000_000, "submissions": submissions, "preempted": preempted});
    with(Value::Object(base), more)
}

fn process(pid: u32, tenant: &str, name: &str, more: Value) -> Value {
    let nothing = json!({"count": 0, "p50_ns": null, "p99_ns": null});
    let base = json!({
        "pid": pid, "user": 1000, "tenant": tenant, "name": name, "program": format!("/usr/bin/{name}"),
        "seat": 0, "class": "best-effort", "weight": 1, "priority": 0, "slo_p99_ns": null, "lowered": false,
        "asked": {"class": "best-effort", "weight": 1, "priority": 0}, "state": "idle", "rung": "switch",
        "why": "ok", "reason": "is stopped in the middle of a kernel", "detail": 0, "slice_ns": 1000,
        "share_permille": 0, "heartbeat_age_ns": 1_000_000, "daemon_lost": false,
        "counters": counters(0, 0, 0), "bursts": nothing, "waits": nothing, "handovers": nothing,
        "guard_stops": nothing,
    });
    with(base, more)
}

fn gpu(uuid: &str, processes: &[Value]) -> Value {
    json!({
        "uuid": uuid, "domain": "isolated", "token": null, "processes": processes,
        "settings": {"quantum_ns": 1, "in_flight_ns": 1, "idle_ns": 1, "grace_ns": 1},
        "policy": {"kind": "slo", "level": 8, "highest_level": 16, "quiet_ns": 1, "threshold_ns": 1,
            "in_flight_ns": 1, "beside_ns": 0, "confine_percent": 0, "solo_share_permille": 10, "tolerance_permille": 50},
    })
}

fn report(uptime_ms: u64, gpus: &[Value], sentences: &[&str]) -> Value {
    json!({
        "version": "0.1.0", "gpus": gpus, "sentences": sentences,
        "daemon": {"pid": 700, "generation": "00000000000000aa", "scope": "user", "folder": "/run/ebb",
            "uptime_ns": uptime_ms * 1_000_000, "configuration": null, "refused": 0, "domain": "isolated"},
    })
}

fn read(report: Value) -> Report {
    serde_json::from_value(report).expect("a report")
}

fn latency(slo: Option<u64>, p99: u64, slowdown: Option<u64>) -> Value {
    let requests = json!({"all": times(p99), "alone": times(1_000_000),
        "slowdown_p50_permille": slowdown, "slowdown_p99_permille": slowdown});
    json!({"class": "latency", "slo_p99_ns": slo, "requests": requests, "rung": "none", "why": "latency"})
}

#[test]
fn how_many_were_seen_alone_is_said_until_it_is_known_what_they_take() {
    let unknown = json!({"all": times(2_100_000), "alone": {"count": 37, "p50_ns": null, "p99_ns": null},
        "alone_samples": {"seen": 37, "needed": 100}, "slowdown_p50_permille": null, "slowdown_p99_permille": null});
    let serve = with(latency(Some(20_000_000), 2_100_000, None), json!({"requests": unknown}));
    let first = gpu("GPU-1", &[process(2000, "00000000000000cd", "serve", serve)]);
    let report = read(report(60_000, &[first], &[]));
    let scene = Scene::new(None, &report);
    let figures = &scene.gpus[0].tenants[0].figures;
    let cell = Column::Objective.cell(figures, 60);
    assert!(Column::Objective.cell(figures, 22).ends_with(" 37/100"));
    assert!(cell.starts_with("kept ") && cell.ends_with(" alone: not known yet (37 of 100)"), "{cell}");
}

/// Two GPUs at work, as they are after so many seconds.
fn busy(seconds: u64) -> Report {
    let at_work = |gpu_ms, submissions, preempted| {
        counters(gpu_ms * seconds, submissions * seconds, preempted * seconds)
    };
    let train = |gpu_ms, state: &str| {
        json!({"counters": at_work(gpu_ms, 20_500, 250), "state": state, "weight": 3,
            "handovers": times(312_000), "waits": times(41_000_000)})
    };
    let serve = with(
        latency(Some(20_000_000), 2_100_000, Some(1_050)),
        json!({"counters": at_work(200, 900, 0), "state": "running", "priority": 5}),
    );
    let lowered = json!({"lowered": true, "rung": "hold", "state": "paused"});
    let first = [
        process(1990, "00000000000000ab", "train", train(400, "holding")),
        process(1991, "00000000000000ab", "train", with(train(100, "waiting"), json!({"seat": 1}))),
        process(2000, "00000000000000cd", "serve", serve),
        process(2100, "00000000000000ce", "notebook-of-somebody-else", lowered),
    ];
    let late = latency(Some(950_000), 9_900_000, Some(1_560));
    let hopeless =
        with(latency(Some(1_000_000), 3_000_000, Some(1_010)), json!({"unattainable_p99_ns": 2_900_000}));
    let guarded = json!({"rung": "guard", "guard_stops": times(14_000), "daemon_lost": true});
    let second = [
        process(3000, "00000000000000d0", "chat", with(late, json!({"counters": at_work(30, 40, 0)}))),
        process(3001, "00000000000000d1", "search", hopeless),
        process(3002, "00000000000000d2", "embed", with(guarded, json!({"counters": at_work(800, 9, 0)}))),
    ];
    let token = json!({"token": {"pid": 1990, "name": "train", "held_ns": 12_000_000}});
    let gpus = [
        with(gpu("GPU-3f2a9c10-0000-0000-0000-000000000000", &first), token),
        with(gpu("GPU-77777777-0000-0000-0000-000000000000", &second), json!({"domain": "shared"})),
    ];
    let sentences =
        ["embed (3002) has lost its daemon and works by the board alone.", "2 registrations were refused."];
    read(report(60_000 + 1_000 * seconds, &gpus, &sentences))
}

/// A desk that has seen some seconds of it.
fn desk() -> Desk {
    let mut desk = Desk::new();
    (1..5).for_each(|second| desk.take(Some(busy(second))));
    desk
}

fn type_keys(desk: &mut Desk, keys: &str) -> Demand {
    let press = |desk: &mut Desk, key| press(desk, KeyEvent::new(key, KeyModifiers::NONE));
    let code = |key| match key {
        '\n' => KeyCode::Enter,
        '\u{1b}' => KeyCode::Esc,
        '\u{8}' => KeyCode::Backspace,
        letter => KeyCode::Char(letter),
    };
    keys.chars().map(|key| press(desk, code(key))).last().unwrap_or(Demand::Nothing)
}

const LIVE: Look = Look { colours: true, live: true };

fn terminal(desk: &Desk, width: u16, height: u16, look: Look) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view::draw(frame, desk, look)).unwrap();
    terminal
}

fn frame(desk: &Desk, width: u16, height: u16) -> String {
    once::lines(terminal(desk, width, height, LIVE).backend().buffer())
}

#[test]
fn an_ordinary_window() {
    insta::assert_snapshot!(frame(&desk(), 80, 24));
}

#[test]
fn a_wide_window_with_the_processes_of_a_tenant() {
    let mut desk = desk();
    type_keys(&mut desk, "\n");
    insta::assert_snapshot!(frame(&desk, 120, 30));
}

#[test]
fn a_small_window() {
    insta::assert_snapshot!(frame(&desk(), 40, 10));
}

#[test]
fn help_lies_over_the_table() {
    let mut desk = desk();
    type_keys(&mut desk, "?");
    insta::assert_snapshot!(frame(&desk, 80, 24));
    insta::assert_snapshot!(frame(&desk, 40, 10));
    assert_eq!(type_keys(&mut desk, "\u{1b}"), Demand::Nothing);
    assert_eq!(desk.mode, Mode::Table);
}

#[test]
fn a_daemon_that_has_gone_is_waited_for_and_comes_back() {
    let mut desk = desk();
    desk.take(None);
    insta::assert_snapshot!(frame(&desk, 80, 24));
    let dim = terminal(&desk, 80, 24, LIVE).backend().buffer().content()[80 * 3 + 1].modifier;
    assert!(dim.contains(Modifier::DIM), "{dim:?}");
    desk.take(Some(busy(9)));
    assert!(!frame(&desk, 80, 24).contains("no daemon"));
}

#[test]
fn nobody_is_there() {
    let mut desk = Desk::new();
    assert!(frame(&desk, 80, 24).contains("asking the daemon"));
    desk.take(Some(read(report(1, &[gpu("GPU-00", &[])], &[]))));
    insta::assert_snapshot!(frame(&desk, 80, 5));
}

#[test]
fn one_frame_for_paper_and_one_for_programs() {
    insta::assert_snapshot!(once::text(&desk(), 100));
    let whole = once::json(&desk());
    assert_eq!(whole["interval_ns"], 1_000_000_000_u64);
    // Everything that `ebb status` says is there, under the same keys.
    let status: Value = serde_json::from_str(&busy(4).json()).unwrap();
    assert!(contains(&whole, &status), "{whole}");
    let gpu = &whole["gpus"][0];
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&json!({
            "idle_permille": gpu["idle_permille"], "degraded": gpu["degraded"], "tenants": gpu["tenants"],
            "rates of the second process": gpu["processes"][1]["rates"],
        }))
        .unwrap()
    );
}

/// Whether one value has everything that another has.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(key, value)| whole.get(key).is_some_and(|whole| contains(whole, value)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| contains(whole, part))
        }
        (whole, part) => whole == part,
    }
}

#[test]
fn no_window_is_too_small() {
    let (mut help, mut answered, table) = (desk(), desk(), desk());
    type_keys(&mut help, "?");
    answered.message = Some("no ".repeat(40));
    let empty = Desk::new();
    for desk in [&table, &help, &answered, &empty] {
        for width in (0..=50).chain([80, 123, 250]) {
            (0..=8).for_each(|height| drop(terminal(desk, width, height, LIVE)));
            once::text(desk, width);
        }
    }
}

#[test]
fn memory_has_a_column_where_it_is_counted() {
    let mut desk = desk();
    let wide = |desk: &Desk| frame(desk, 140, 24);
    assert!(!wide(&desk).contains("memory"));
    let tenants = &mut desk.scene.as_mut().unwrap().gpus[0].tenants;
    tenants[0].figures.memory = Some((5 << 29, Some(20 << 30)));
    tenants[1].figures.memory = Some((12 << 20, None));
    assert!(wide(&desk).contains("memory") && wide(&desk).contains(" 2.5GiB/20GiB "), "{}", wide(&desk));
    assert!(wide(&desk).contains(" 12MiB "));
}

#[test]
fn users_have_a_column_where_there_are_several() {
    let mut desk = desk();
    let head = |text: &str| text.lines().nth(1).unwrap().to_owned();
    assert!(!head(&frame(&desk, 100, 24)).contains("user"));
    let mut two = busy(6);
    two.gpus[0].processes[2].user = 0;
    two.gpus[0].processes[3].user = 61_001;
    desk.take(Some(two));
    let text = frame(&desk, 100, 24);
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(head(&text).contains("user"), "{text}");
    assert!(row("serve").contains(" root "), "{text}");
    assert!(row("notebook").contains(" 61001 "), "who has no name has a number: {text}");
}

#[test]
fn names_are_cut_where_they_end_whatever_is_in_them() {
    let names = ["漢字漢字漢字漢字漢字漢字漢字", "a\u{1b}[31mred\u{7}\n", "", "e\u{301}e\u{301}"];
    let processes: Vec<Value> =
        (0..).zip(names).map(|(i, name)| process(i, &format!("{i:016x}"), name, json!({}))).collect();
    let mut desk = Desk::new();
    desk.take(Some(read(report(1, &[gpu("GPU-é-0123456", &processes)], &[]))));
    for width in 1..100 {
        let text = frame(&desk, width, 24);
        assert!(!text.contains(['\u{1b}', '\u{7}']), "{text}");
    }
    assert!(frame(&desk, 80, 24).contains("漢字漢字漢… best-eff"), "{}", frame(&desk, 80, 24));
}

#[test]
fn rates_are_what_counters_rose_by_in_the_daemons_own_time() {
    let scene = |before: Option<Report>, now: &Report| Scene::new(before.as_ref(), now);
    let train = |scene: &Scene| scene.gpus[0].tenants[0].clone();
    let now = busy(4);
    assert_eq!(train(&scene(None, &now)).figures.rates, None);
    assert_eq!(scene(None, &now).gpus[0].idle, None);
    let later = scene(Some(busy(2)), &now);
    let rates = train(&later).figures.rates.unwrap();
    let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
    assert!(
        close(rates.gpu, 0.5) && close(rates.launches, 41_000.0) && close(rates.preemptions, 500.0),
        "{rates:?}"
    );
    let of_second = train(&later).processes[1].figures.rates.unwrap();
    assert!(close(of_second.gpu, 0.1), "{of_second:?}");
    assert!(close(later.gpus[0].idle.unwrap(), 0.3), "{:?}", later.gpus[0].idle);
    // Another daemon counts from the beginning, as does a process that has begun anew; nothing follows from the same moment.
    let mut other = busy(2);
    other.daemon.generation = "00000000000000bb".to_owned();
    assert_eq!(scene(Some(other), &now), scene(None, &now));
    assert_eq!(train(&scene(Some(busy(5)), &now)).figures.rates, None);
    assert_eq!(train(&scene(Some(busy(4)), &now)).figures.rates, None);
    let mut restarted = busy(2);
    restarted.gpus[0].processes[0].counters.gpu_ns = u64::MAX;
    let rates = train(&scene(Some(restarted), &now)).figures.rates;
    assert!(rates.is_some_and(|Rates { gpu, .. }| close(gpu, 0.1)), "{rates:?}");
}

#[test]
fn of_several_processes_the_liveliest_and_the_worst_count() {
    let mut report = busy(1);
    let processes = &mut report.gpus[0].processes;
    let mut other = processes[2].clone();
    other.pid = 2001;
    other.state = State::Idle;
    other.lowered = true;
    other.requests.as_mut().unwrap().all.p99_ns = Some(25_000_000);
    processes.push(other);
    let scene = Scene::new(None, &report);
    let tenants = &scene.gpus[0].tenants;
    let serve = tenants.iter().find(|tenant| tenant.name == "serve").unwrap();
    assert_eq!(serve.processes.len(), 2);
    assert_eq!((serve.figures.state, serve.figures.lowered), (State::Running, true));
    assert_eq!(serve.figures.service.unwrap().verdict(), Some(Verdict::Missed));
    assert_eq!(tenants[0].figures.state, State::Holding);
    assert!(scene.gpus[1].degraded && !scene.gpus[0].degraded);
}

fn names(desk: &Desk) -> Vec<String> {
    let text = frame(desk, 80, 24);
    let row = |line: &str| line.contains("best-eff") || line.contains("latency");
    let first = |line: &str| line.trim_start_matches(['>', ' ']).split([' ', '…']).next().unwrap().to_owned();
    text.lines().filter(|line| row(line)).map(first).collect()
}

#[test]
fn rows_are_ordered_within_their_gpu() {
    let mut desk = desk();
    assert_eq!(names(&desk), ["train", "serve", "notebook-o", "embed", "chat", "search"]);
    type_keys(&mut desk, "r");
    assert_eq!(names(&desk), ["notebook-o", "serve", "train", "search", "chat", "embed"]);
    // By SLO: what cannot be kept, what is missed, what is kept, what has none.
    type_keys(&mut desk, "s");
    assert!(frame(&desk, 80, 24).contains("by SLO"));
    assert_eq!(names(&desk), ["serve", "notebook-o", "train", "search", "chat", "embed"]);
    type_keys(&mut desk, "<<<<");
    assert!(frame(&desk, 80, 24).contains("by tenant"));
    assert_eq!(names(&desk), ["notebook-o", "serve", "train", "chat", "embed", "search"]);
    type_keys(&mut desk, "<r>");
    assert_eq!(names(&desk)[0], "notebook-o", "a new order is not reversed");
}

#[test]
fn a_filter_is_typed_and_cleared() {
    let mut desk = desk();
    assert_eq!(type_keys(&mut desk, "/SErq\u{8}"), Demand::Nothing);
    assert_eq!(names(&desk), ["serve"], "a name is found in either case, and q is a letter here");
    assert!(frame(&desk, 80, 24).lines().last().unwrap().starts_with("filter: SEr_"));
    type_keys(&mut desk, "\n");
    assert!(frame(&desk, 80, 24).contains("only `SEr`"));
    assert_eq!(type_keys(&mut desk, "\u{1b}"), Demand::Nothing, "it clears the filter first");
    assert_eq!(names(&desk).len(), 6);
    type_keys(&mut desk, "/zzz");
    assert!(frame(&desk, 80, 24).contains("no name with `zzz` in it"));
    type_keys(&mut desk, "\u{1b}");
    assert_eq!((names(&desk).len(), type_keys(&mut desk, "\u{1b}")), (6, Demand::Quit));
}

/// The row that is marked.
fn selected(desk: &Desk, height: u16) -> String {
    let text = frame(desk, 80, height);
    let marked: Vec<&str> = text.lines().filter(|line| line.starts_with('>')).collect();
    assert_eq!(marked.len(), 1, "{text}");
    marked[0][1..].split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_selection_stays_with_its_tenant_and_in_sight() {
    let mut desk = desk();
    assert_eq!(selected(&desk, 24), "train");
    type_keys(&mut desk, "jjjj");
    assert_eq!(selected(&desk, 24), "chat");
    type_keys(&mut desk, "r");
    assert_eq!((selected(&desk, 24), selected(&desk, 6)), ("chat".to_owned(), "chat".to_owned()));
    type_keys(&mut desk, "rjjjjjj");
    assert_eq!(selected(&desk, 24), "search");
    let mut without = busy(6);
    without.gpus[1].processes.retain(|process| process.name != "search");
    desk.take(Some(without));
    assert_eq!(selected(&desk, 24), "chat", "what stands before it is as good");
    type_keys(&mut desk, "kkkkkkkkk\njj");
    assert_eq!(selected(&desk, 24), "1991");
    type_keys(&mut desk, "\n");
    assert_eq!(selected(&desk, 24), "train", "a process that is hidden cannot be selected");
}

#[test]
fn a_selection_that_nobody_made_stays_with_its_tenant_too() {
    let mut desk = desk();
    assert_eq!(selected(&desk, 24), "train");
    let mut moved = busy(6);
    moved.gpus[0].processes[2].counters.gpu_ns += 3_000_000_000;
    desk.take(Some(moved));
    assert_eq!((names(&desk)[0].as_str(), selected(&desk, 24).as_str()), ("serve", "train"));
    let Demand::Change(change) = type_keys(&mut desk, "py") else { panic!("nothing is asked") };
    assert_eq!(change.name, "train");
    let mut fresh = Desk::new();
    fresh.take(Some(busy(1)));
    let seen = selected(&fresh, 24);
    type_keys(&mut fresh, "p");
    fresh.take(Some(busy(2)));
    let Demand::Change(change) = type_keys(&mut fresh, "y") else { panic!("nothing is asked") };
    assert_eq!(change.name[..8], seen[..8], "who was seen when the key was pressed");
    assert!(selected(&fresh, 24).starts_with(&seen[..8]));
}

#[test]
fn pausing_a_latency_tenant_is_asked_about_in_its_own_words() {
    let mut desk = desk();
    type_keys(&mut desk, "jp");
    let question = "pause serve, a latency tenant whose requests will wait? y/n";
    assert!(frame(&desk, 80, 24).contains(question), "{}", frame(&desk, 80, 24));
    assert_eq!(type_keys(&mut desk, "\n"), Demand::Nothing, "only a yes is one");
    let Demand::Change(change) = type_keys(&mut desk, "py") else { panic!("nothing is asked") };
    assert_eq!((change.pause, change.latency), (true, true));
}

#[test]
fn a_tenant_is_paused_when_that_was_confirmed() {
    let mut desk = desk();
    type_keys(&mut desk, "p");
    assert!(frame(&desk, 80, 24).contains("pause train? y/n"));
    assert_eq!(type_keys(&mut desk, "n"), Demand::Nothing);
    let Demand::Change(change) = type_keys(&mut desk, "py") else { panic!("nothing is asked") };
    assert_eq!(change.request(), Request::Pause { target: "00000000000000ab".to_owned() });
    desk.message = Some("train was not paused: only an admin may".to_owned());
    assert!(frame(&desk, 80, 24).lines().last().unwrap().contains("only an admin may"));
    assert!(frame(&desk, 20, 10).ends_with("train was not\npaused: only an\nadmin may\n"));
    type_keys(&mut desk, "jj");
    assert!(!frame(&desk, 80, 24).contains("only an admin may"), "until the next key");
    let Demand::Change(change) = type_keys(&mut desk, "py") else { panic!("nothing is asked") };
    assert_eq!(change.request(), Request::Resume { target: "00000000000000ce".to_owned() });
    let nobody = &mut Desk::new();
    assert_eq!((type_keys(nobody, "p"), &nobody.mode), (Demand::Nothing, &Mode::Table));
}

#[test]
fn control_keys_work_in_every_mode() {
    for before in ["", "/", "?", "p"] {
        for (letter, wanted) in [('c', Demand::Quit), ('z', Demand::Suspend)] {
            let mut desk = desk();
            type_keys(&mut desk, before);
            let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
            assert_eq!(press(&mut desk, key), wanted, "{before}");
        }
    }
}

#[test]
fn without_colours_nothing_is_coloured_and_nothing_else_is_different() {
    let desk = desk();
    let draw = |colours| terminal(&desk, 80, 24, Look { colours, live: true }).backend().buffer().clone();
    let (coloured, plain) = (draw(true), draw(false));
    let plain_colours = |cell: &ratatui::buffer::Cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset);
    assert!(plain.content().iter().all(plain_colours) && !coloured.content().iter().all(plain_colours));
    let coloured_ones: Vec<Color> = coloured.content().iter().map(|cell| cell.fg).collect();
    assert!(coloured_ones.contains(&Color::Green) && coloured_ones.contains(&Color::Red));
    let rest = |cells: &ratatui::buffer::Buffer| -> Vec<_> {
        cells.content().iter().map(|cell| (cell.symbol().to_owned(), cell.modifier)).collect()
    };
    assert_eq!(rest(&coloured), rest(&plain));
}
