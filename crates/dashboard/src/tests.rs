//! What a daemon might say, for the tests of this crate; and the page as its readers meet it.

use std::time::Duration;

use daemon::picture::Picture;
use daemon::report::{Process, Report};
use daemon::scene::Scene;
use export::Asker;
use model::Nanos;
use serde_json::{Value, json};
use web::{Method, Metrics, Next, Pages, Request};

use crate::Dashboard;
use crate::chronicle::Line;
use crate::document::Document;

/// A process, of which only name and class are said.
pub fn process(name: &str, class: &str) -> Process {
    let nothing = json!({"count": 0, "p50_ns": null, "p99_ns": null});
    let counters =
        ["submissions", "gpu_ns", "held_ns", "wait_ns", "waits", "passes", "stops_hold", "stops_switch"];
    let more = [
        "preempted",
        "taken_over",
        "lost",
        "bursts",
        "burst_ns",
        "bursts_unended",
        "slo_missed",
        "daemon_losses",
        "refusals",
    ];
    let counters: Value = counters
        .iter()
        .chain(&more)
        .map(|name| ((*name).to_owned(), json!(0)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let text = json!({
        "pid": name.len(), "user": 0, "tenant": format!("{:016x}", name.len()), "name": name, "program": name, "seat": 0,
        "class": class, "weight": 1, "priority": 0, "slo_p99_ns": null, "lowered": false,
        "asked": {"class": class, "weight": 1, "priority": 0}, "state": "idle", "rung": "switch", "why": "ok",
        "reason": "is stopped", "detail": 0, "slice_ns": null, "share_permille": 0, "heartbeat_age_ns": null,
        "daemon_lost": false, "counters": counters, "bursts": nothing, "waits": nothing, "handovers": nothing,
    });
    serde_json::from_value(text).unwrap()
}

/// A moment at which these processes are on a GPU.
pub fn picture(processes: Vec<Process>) -> Picture {
    let mut report: Report = serde_json::from_value(json!({
        "version": "1",
        "daemon": {"pid": 1, "generation": "1", "scope": "user", "folder": "/", "uptime_ns": 5_000_000_000u64,
                   "configuration": null, "refused": 0},
        "gpus": [{"uuid": "GPU-1", "domain": "isolated", "token": null, "processes": [],
                  "settings": {"quantum_ns": 1, "in_flight_ns": 1, "idle_ns": 1, "grace_ns": 1}}],
        "sentences": [],
    }))
    .unwrap();
    report.gpus[0].processes = processes;
    let (at, unix_ns) = (Nanos::from_millis(100_000), 1_700_000_000_000_000_000);
    Picture { report, at, unix_ns, bursts: Vec::new(), indices: vec![("GPU-1".to_owned(), 3)] }
}

/// The picture a second later, in which the first process has had the GPU for half of it.
fn later(before: &Picture) -> Picture {
    let mut now = before.clone();
    now.report.daemon.uptime_ns += 1_000_000_000;
    now.unix_ns += 1_000_000_000;
    if let Some(process) = now.report.gpus[0].processes.first_mut() {
        process.counters.gpu_ns += 500_000_000;
        process.counters.submissions += 20;
    }
    now
}

fn data(event: &str) -> Value {
    let line = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    serde_json::from_str(line).unwrap()
}

#[test]
fn everything_comes_first_and_then_what_has_changed() {
    let first = picture(vec![process("trainer", "best-effort"), process("serve", "latency")]);
    let mut document = Document::new(&first, &Scene::new(None, &first.report), true, 4, Vec::new());
    let all = document.all();
    assert!(all.starts_with("event: all\n") && all.ends_with("\n\n") && all.lines().count() == 3);
    let all = data(&all);
    assert_eq!((&all["number"], &all["admin"]), (&json!(4), &json!(true)));
    assert_eq!((&all["gpus"][0]["index"], all["rows"].as_array().unwrap().len()), (&json!(3), 2));
    assert_eq!(all["moments"][0]["points"], json!([]), "there is nothing to compare with");
    let second = later(&first);
    let scene = Scene::new(Some(&first.report), &second.report);
    let news = data(&document.advance(&second, &scene, &[]));
    assert_eq!((&news["number"], &news["rows"], &news["gpus"]), (&json!(5), &json!([]), &Value::Null));
    let point = &news["moment"]["points"][0];
    assert_eq!((&point["share"], &point["launches"]), (&json!(500), &json!(20)));
    let load = &news["moment"]["loads"][0];
    assert_eq!(
        [&load["latency"], &load["best_effort"], &load["idle"]],
        [0, 500, 500].map(|part| json!(part)).each_ref()
    );
    let line = |count| Line {
        id: 9,
        since_ms: 1,
        unix_ms: 2,
        tenant: "5".to_owned(),
        name: "serve".to_owned(),
        kind: "run",
        words: "idle".to_owned(),
        count,
        longest_ns: None,
    };
    let news = data(&document.advance(&second, &scene, &[line(1)]));
    assert_eq!((&news["decisions"][0]["count"], &news["grown"]), (&json!(1), &json!([])));
    let news = data(&document.advance(&second, &scene, &[line(2)]));
    assert_eq!((&news["decisions"], &news["grown"]), (&json!([]), &json!([[9, 2, 2, null]])));
    assert_eq!(data(&document.all())["decisions"][0]["count"], json!(2));
    let mut third = later(&second);
    third.report.gpus[0].processes.remove(0);
    third.report.gpus[0].processes[0].slo_p99_ns = Some(9);
    let scene = Scene::new(Some(&second.report), &third.report);
    let news = data(&document.advance(&third, &scene, &[]));
    assert_eq!(news["gone"], json!([["GPU-1", "0000000000000007"]]));
    let rows = news["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["name"], &rows[0]["slo_ns"]), (1, &json!("serve"), &json!(9)));
}

#[test]
fn a_name_cannot_end_an_event() {
    let hostile = picture(vec![process("a\n\nevent: all\ndata: {}</script>", "latency")]);
    let document = Document::new(&hostile, &Scene::new(None, &hostile.report), false, 1, Vec::new());
    assert_eq!(document.all().lines().count(), 3);
}

fn request(method: Method, path: &str) -> Request {
    let (host, origin) = (Some("localhost:1".to_owned()), None);
    Request {
        method,
        path: path.to_owned(),
        accept: String::new(),
        host,
        origin,
        authorization: None,
        body: Vec::new(),
    }
}

/// A dashboard, and who answers its questions with this.
fn site(picture: Picture) -> (Dashboard, std::thread::JoinHandle<()>) {
    let (viewer, gallery): (Asker<Picture>, _) = export::desk().unwrap();
    let (asker, _) = export::desk().unwrap();
    let site = Dashboard::new(viewer, Metrics::new(asker), None);
    let thread = std::thread::spawn(move || {
        let mut now = picture;
        for _ in 0..600 {
            std::thread::sleep(Duration::from_millis(10));
            now = later(&now);
            gallery.answer(|| now.clone());
        }
    });
    (site, thread)
}

#[test]
fn pages_are_where_they_should_be_and_nothing_can_be_changed() {
    let (site, _thread) = site(picture(vec![process("serve", "latency")]));
    let status = |method, path: &str| site.page(&request(method, path)).status;
    assert_eq!(status(Method::Get, "/"), 200);
    assert_eq!(status(Method::Get, "/nothing"), 404);
    assert_eq!(status(Method::Get, "/api/tenants/GPU-1/0000000000000005"), 200);
    assert_eq!(status(Method::Get, "/api/tenants/GPU-2/0000000000000005"), 404);
    assert_eq!(status(Method::Get, "/api/verdicts"), 200);
    assert_eq!(status(Method::Head, "/api/stream"), 200);
    assert_eq!(status(Method::Post, "/"), 405);
    assert_eq!(status(Method::Post, "/metrics"), 405);
    let refused = site.page(&request(Method::Post, "/api/tenants/GPU-1/5/pause"));
    assert_eq!(refused.status, 403);
    assert!(String::from_utf8(refused.body).unwrap().contains("admin_token_file"));
}

#[test]
fn a_watcher_hears_everything_and_then_news() {
    let (site, _thread) = site(picture(vec![process("serve", "latency")]));
    let mut stream = site.page(&request(Method::Get, "/api/stream")).stream.unwrap();
    let mut next = || loop {
        match stream.next(Duration::from_secs(5)) {
            Next::Piece(piece) => return Some(piece.lines().next().unwrap().to_owned()),
            Next::Nothing => {}
            Next::End => return None,
        }
    };
    assert_eq!(next().as_deref(), Some("event: all"));
    assert_eq!(next().as_deref(), Some("event: news"));
    drop(site);
    assert_eq!(next(), None, "it ends with the dashboard");
}
