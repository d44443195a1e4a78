//! The dashboard in a real browser, with a daemon and tenants on the software GPU behind it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

#[path = "common/browser.rs"]
mod browser;
mod common;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use browser::Browser;
use common::private_folder;
use common::runtime::{PATIENCE, Runtime, Tenant, wait_for};
use rustix::process::{Signal, kill_process};
use serde_json::json;

const SECRET: &str = "nobody would guess this";
const CONTRAST: &str = include_str!("common/contrast.js");

/// A daemon that listens on a port of its own, which the next one finds free again.
struct Stage {
    runtime: Runtime,
    address: String,
}

impl Stage {
    fn set(more: &str) -> Stage {
        let runtime = Runtime::new();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let token = runtime.path().join("token");
        fs::write(&token, format!("{SECRET}\n")).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir_all(runtime.path().join("ebb")).unwrap();
        let more = more.replace("TOKEN", &token.display().to_string());
        let text = format!("schema_version = 1\n[metrics]\nlisten = \"127.0.0.1:{port}\"\n{more}");
        fs::write(runtime.path().join("ebb/ebb.toml"), text).unwrap();
        Stage { runtime, address: format!("localhost:{port}") }
    }

    fn tenants(&self) -> Vec<Tenant> {
        let tenant = |name, class, options: &[&str]| self.runtime.tenant(name, class, options);
        let mut tenants = vec![
            tenant("serve", "latency", &["--slo-p99", "20ms"]),
            tenant("train", "best-effort", &["--weight", "2", "--mem", "2GiB"]),
        ];
        // For the picture, which is to look like a machine at work.
        if std::env::var_os("EBB_SCREENSHOTS").is_some() {
            tenants.push(tenant("index", "best-effort", &[]));
            tenants.push(tenant("embed", "best-effort", &[]));
        }
        tenants
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address.replace("localhost", "127.0.0.1")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    fn post(&self, path: &str, headers: &str) -> String {
        self.ask(&format!("POST {path} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", self.address))
    }
}

const ADMIN: &str = "[dashboard]\nadmin_token_file = \"TOKEN\"\n";

/// Is true when this many tenants are in the table.
fn rows(count: usize) -> String {
    format!("document.querySelectorAll('main section table .name a').length === {count}")
}

fn focused(text: &str) -> String {
    format!("document.activeElement.textContent === '{text}'")
}

#[test]
fn it_is_driven_by_keyboard_follows_tenants_and_says_nothing_on_the_console() {
    let Some(mut browser) = Browser::start() else { return };
    let stage = Stage::set(ADMIN);
    let tenants = stage.tenants();
    browser.resize(1280, 720);
    browser.prefer("light");
    browser.open(&format!("http://{}/", stage.address));
    browser.wait("tenants are shown", &rows(tenants.len()));
    follows_the_minute(&mut browser);
    filters(&mut browser, tenants.len());
    opens_a_tenant(&mut browser);
    changes_its_theme(&mut browser);
    can_be_read_everywhere(&mut browser);
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
    pauses(&mut browser, &stage);
    waits_for_the_daemon(&mut browser, &stage);
}

/// The timeline has moved twice, and its table has the same.
fn follows_the_minute(browser: &mut Browser) {
    let path = "document.querySelector('.layer')?.getAttribute('d') ?? ''";
    for _ in 0..2 {
        let before = browser.text(path);
        browser.wait("the timeline moves", &format!("({path}) !== '{before}' && ({path}).length > 20"));
    }
    browser.value("document.querySelector('.minute summary').click()");
    browser.wait("it is a table too", "document.querySelectorAll('.minute tbody tr').length >= 2");
    browser.value("document.querySelector('.minute summary').click()");
    browser.value("document.querySelector('.timeline').focus()");
    browser.press("ArrowLeft");
    browser.wait("seconds can be gone through", "document.querySelector('.when').textContent === '1 s ago'");
    browser.value("document.activeElement.blur()");
    if std::env::var_os("EBB_SCREENSHOTS").is_some() {
        std::thread::sleep(Duration::from_secs(62));
    }
}

fn filters(browser: &mut Browser, tenants: usize) {
    browser.press("/");
    browser.wait("the filter has the focus", "document.activeElement.id === 'filter'");
    browser.write("train");
    browser.wait("one is left", &rows(1));
    assert_eq!(browser.text("document.querySelector('.name a').textContent"), "train");
    browser.write(" and nobody else");
    browser.wait("it says that there is none", "document.body.innerText.includes('No tenant matches')");
    browser.press("Escape");
    browser.wait("all are back", &rows(tenants));
    browser.press("Escape");
    browser.wait("the filter is left", "document.activeElement.id !== 'filter'");
}

fn opens_a_tenant(browser: &mut Browser) {
    browser.press("ArrowDown");
    browser.wait("the first tenant has the focus", &focused("serve"));
    browser.press("ArrowDown");
    browser.wait("the second tenant has the focus", "document.activeElement.textContent !== 'serve'");
    browser.press("ArrowUp");
    browser.wait("the first tenant has the focus again", &focused("serve"));
    browser.press("Enter");
    browser.wait("its page is open", "document.querySelector('h1')?.textContent === 'serve'");
    browser
        .wait("its curve is drawn", "document.querySelector('.curve .now')?.getAttribute('d').length > 50");
    browser.wait("the objective is drawn", "document.querySelector('.curve .slo line') !== null");
    browser.wait("its kernels are known", "document.querySelectorAll('main section table code').length >= 2");
    browser.prefer("dark");
    browser.resize(1280, 700);
    browser.picture("dashboard-tenant");
    browser.resize(1280, 720);
    browser.prefer("light");
    browser.press("Escape");
    browser.wait("it is left again", "document.querySelector('.timeline') !== null");
}

fn changes_its_theme(browser: &mut Browser) {
    let ground = "getComputedStyle(document.body).backgroundColor";
    browser.picture("dashboard-light");
    let light = browser.text(ground);
    browser.press("t");
    browser.wait("it is dark", &format!("{ground} !== '{light}'"));
    browser.picture("dashboard-dark");
    browser.value("window.before = true; location.reload(); 1");
    browser.wait("it is loaded again", "!window.before && document.querySelectorAll('.name a').length > 1");
    assert_eq!(browser.text("document.documentElement.dataset.theme"), "dark", "it is remembered");
    browser.press("t");
    browser.wait("it is light", &format!("{ground} === '{light}'"));
    browser.press("t");
    browser.wait("it is as the system is", "!('theme' in document.documentElement.dataset)");
}

/// Every page, dark and light, wide and narrow: all text has contrast, and nothing is wider than the window.
fn can_be_read_everywhere(browser: &mut Browser) {
    let tenant = browser.text("document.querySelector('.name a').getAttribute('href')");
    let pages = [
        ("#/", ".timeline"),
        (&tenant, ".curve .now"),
        ("#/verdicts", "tbody code"),
        ("#/decisions", "tbody .badge"),
    ];
    for (address, sign) in pages {
        browser.value(&format!("location.hash = '{address}'; 1"));
        browser.wait(address, &format!("document.querySelector('main {sign}') !== null"));
        for scheme in ["dark", "light"] {
            browser.prefer(scheme);
            let low = browser.value(CONTRAST);
            assert_eq!(low, json!([]), "{address} {scheme}");
        }
        for width in [360, 768, 1440] {
            browser.resize(width, 900);
            let fits = format!("document.documentElement.scrollWidth <= {width}");
            browser.wait(&format!("{address} fits into {width}"), &fits);
        }
    }
    browser.value("location.hash = '#/'; 1");
    browser.resize(360, 1240);
    browser.wait(
        "the overview is narrow",
        "document.querySelector('.timeline')?.getBoundingClientRect().width < 360",
    );
    browser.picture("dashboard-narrow");
    browser.resize(1440, 900);
}

/// With the token, and not without.
fn pauses(browser: &mut Browser, stage: &Stage) {
    let address =
        "[...document.querySelectorAll('.name a')].find((link) => link.textContent === 'train').click()";
    browser.value(address);
    browser.wait("the page of the other is open", "document.querySelector('h1')?.textContent === 'train'");
    browser.value("document.querySelector('.control button').click()");
    for (secret, said) in
        [("a wrong one, by far", "This is not the token."), (SECRET, "It is told to stand still.")]
    {
        browser.wait("it asks for the token", "document.getElementById('ask').open");
        browser.write(secret);
        browser.press("Enter");
        browser.wait(said, &format!("document.querySelector('.control').textContent.includes('{said}')"));
        if secret != SECRET {
            browser.value("document.querySelector('.control button').click()");
        }
    }
    browser.wait("it is paused", "document.querySelector('.kinds .state').textContent === 'paused'");
    assert!(stage.runtime.seats().iter().any(|seat| seat["state"].text() == "paused"));
    browser.value("document.querySelector('.control button').click()");
    browser.wait("it goes on", "document.querySelector('.kinds .state').textContent !== 'paused'");
}

fn waits_for_the_daemon(browser: &mut Browser, stage: &Stage) {
    kill_process(stage.runtime.daemon(), Signal::KILL).unwrap();
    browser
        .wait("it says so", "!document.getElementById('banner').hidden && document.body.matches('.stale')");
    let mut daemon = stage.runtime.command();
    let daemon = daemon.arg("daemon").stderr(Stdio::null()).spawn().unwrap();
    browser.wait("it is connected again", "document.getElementById('banner').hidden");
    kill_process(rustix::process::Pid::from_child(&daemon), Signal::TERM).unwrap();
    drop(daemon);
}

#[test]
fn nothing_is_changed_without_the_token_or_from_elsewhere() {
    let stage = Stage::set(ADMIN);
    let _tenant = stage.runtime.tenant("train", "best-effort", &[]);
    wait_for("it has a seat", || !stage.runtime.seats().is_empty());
    let seat = stage.runtime.seats().remove(0);
    let path = format!("/api/tenants/any/{}/pause", seat["tenant"].text());
    let bearer = format!("Authorization: Bearer {SECRET}\r\n");
    let status = |answer: String| answer.split(' ').nth(1).unwrap().to_owned();
    let state = || stage.runtime.seats()[0]["state"].text().to_owned();
    assert_eq!(status(stage.post(&path, "")), "401");
    assert_eq!(status(stage.post(&path, "Authorization: Bearer guess\r\n")), "401");
    assert_eq!(status(stage.post(&path, &format!("{bearer}Origin: http://elsewhere.example\r\n"))), "403");
    assert_ne!(state(), "paused");
    assert_eq!(status(stage.post(&path, &format!("{bearer}Origin: http://{}\r\n", stage.address))), "200");
    wait_for("it is paused", || state() == "paused");
    assert_eq!(status(stage.post(&path.replace("/pause", "/resume"), &bearer)), "200");
    wait_for("it goes on", || state() != "paused");
    assert_eq!(status(stage.post("/api/tenants/any/0123456789abcdef/pause", &bearer)), "409");
}

#[test]
fn without_a_token_it_can_only_be_read_and_it_can_be_left_out() {
    let stage = Stage::set("");
    stage.runtime.daemon();
    let refused = stage.post("/api/tenants/any/0/pause", &format!("Authorization: Bearer {SECRET}\r\n"));
    assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("admin_token_file"), "{refused}");
    let report = stage.runtime.report().unwrap();
    assert!(report["daemon"]["dashboard"].text().ends_with('/'));
    let stage = Stage::set("[dashboard]\nenabled = false\n");
    stage.runtime.daemon();
    let answer = stage.ask("GET / HTTP/1.0\r\n\r\n");
    assert!(answer.contains("Metrics are at /metrics"), "{answer}");
    assert_eq!(stage.runtime.report().unwrap()["daemon"]["dashboard"], common::json::Value::Null);
}

#[test]
fn a_token_that_others_can_read_is_refused_at_its_line() {
    let folder = private_folder();
    let (token, file) = (folder.path().join("token"), folder.path().join("ebb.toml"));
    fs::write(&token, SECRET).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let text = format!("schema_version = 1\n[dashboard]\nadmin_token_file = \"{}\"\n", token.display());
    fs::write(&file, text).unwrap();
    let mut daemon = common::ebb(folder.path());
    let output = daemon.args(["daemon", "--config"]).arg(&file).output().unwrap();
    let said = common::errors(&output);
    assert!(
        !output.status.success() && said.contains("ebb.toml:3: ") && said.contains("open to others"),
        "{said}"
    );
}
