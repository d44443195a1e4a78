//! A report in a real browser: it must say nothing on the console, and its script must run to its end.

mod common;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use common::{hostile, page, swept};
use results::Archive;

/// Where a Chromium may be.
fn browser() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let folders = std::env::var_os("PATH")?;
    let all = std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name)));
    all.into_iter().find(|path| path.is_file())
}

/// The page's document after its script, and what the browser said meanwhile.
fn open(browser: &PathBuf, archive: &Archive) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder for the page");
    let file = folder.path().join("report.html");
    std::fs::write(&file, page(archive)).expect("the page is written");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--v=0", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .output()
        .expect("the browser starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_page_opens_without_a_word_on_the_console() {
    let Some(browser) = browser() else {
        eprintln!("skipped: there is no Chromium on the PATH");
        return;
    };
    for archive in [swept(), hostile()] {
        let (document, said) = open(&browser, &archive);
        let console: Vec<&str> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(console.is_empty(), "{console:#?}");
        assert!(document.contains("data-ready=\"yes\""), "the script did not run to its end");
        assert!(document.contains("aria-label=\"Contents\"") && !document.contains("<title>taken"));
        // The script turns the heads of sortable tables into buttons.
        assert!(document.contains("<th scope=\"col\"><button type=\"button\">suite</button></th>"));
    }
}
