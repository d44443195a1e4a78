//! The files of a bundle. What cannot be had is a file that says why, so that nobody wonders whether it was forgotten.

use std::fs;
use std::process::{Command, Stdio};

use daemon::report::Report;
use daemon::{Place, Scope};
use profile::Store;

use super::redact::Redactor;
use crate::arguments::{DoctorOptions, Output};
use crate::profile::kept::Kept;
use crate::users::UserNames;
use crate::verdicts::{account, found};
use crate::{doctor, status};

/// How the only line of a file begins that could not be filled.
pub const ABSENT: &str = "not here: ";

/// So much of a log, from its end.
const LOG: usize = 256 << 10;
/// And so many lines of a journal.
const LINES: &str = "2000";

/// Names of users only where everything is wanted. Otherwise their numbers are others, too, and would find the wrong names.
fn names(redactor: &Redactor, report: &Report) -> UserNames {
    if redactor.is_full() { UserNames::of(report) } else { UserNames::default() }
}

pub fn collect(mut redactor: Redactor) -> Vec<(&'static str, String)> {
    let found = status::find();
    let place = found.as_ref().ok().map(|(place, _)| place.clone());
    let report = found.map(|(_, report)| redactor.report(report)).map_err(|error| error.to_string());
    let scope = report.as_ref().map_or(Scope::User, scope);
    let mut files = vec![
        ("about.txt", about(redactor.is_full())),
        ("versions.txt", versions()),
        ("status.json", told(&report, |report| format!("{}\n", report.json()))),
        ("status.txt", told(&report, |report| status::page(report, &names(&redactor, report)))),
        ("doctor.txt", doctor::page(&plain_doctor())),
        ("configuration.toml", configuration(&redactor, report.as_ref().ok(), scope)),
        ("daemon.log", log(place.as_ref(), scope)),
        ("verdicts.txt", verdicts()),
        ("profiles.txt", profiles()),
        ("environment.txt", redactor.environment(std::env::vars_os())),
    ];
    for (_, text) in &mut files {
        *text = redactor.clean(text);
    }
    files
}

pub fn promise(full: bool) -> &'static str {
    if full {
        "It has names of users and tenants, command lines and variables: look at it before you give it away."
    } else {
        "Names of users and tenants, command lines and values of variables were replaced (--full keeps them)."
    }
}

fn about(full: bool) -> String {
    format!(
        "What `ebb support-bundle` found on one machine, at one moment.\n{}\n\
         status: who shares the GPUs. doctor: what would keep ebb from working. configuration: the file the daemon\n\
         has read. daemon.log: the end of what it said. verdicts: of each process under ebb, how many kernels can be\n\
         stopped and how. profiles: what is known of kernels, as numbers of them.\n",
        promise(full)
    )
}

fn told(report: &Result<Report, String>, text: impl Fn(&Report) -> String) -> String {
    report.as_ref().map_or_else(|error| format!("{ABSENT}{error}\n"), text)
}

fn scope(report: &Report) -> Scope {
    if report.daemon.scope == "machine" { Scope::Machine } else { Scope::User }
}

fn plain_doctor() -> DoctorOptions {
    DoctorOptions { output: Output::Text, strict: false, driver: None, device: None, command: Vec::new() }
}

fn versions() -> String {
    let mut text = format!("ebb {} ({})\n", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    for (what, path) in [
        ("kernel", "/proc/sys/kernel/osrelease"),
        ("driver", "/proc/driver/nvidia/version"),
        ("system", "/etc/os-release"),
    ] {
        let found = fs::read_to_string(path).unwrap_or_else(|error| format!("{ABSENT}{path}: {error}"));
        text.push_str(&format!("\n{what}:\n{}\n", found.trim()));
    }
    text
}

/// The file that the daemon has read; without a daemon the one that it would.
fn configuration(redactor: &Redactor, report: Option<&Report>, scope: Scope) -> String {
    let told = report.and_then(|report| report.daemon.configuration.clone()).map(Into::into);
    let Some(path) = told.or_else(|| daemon::configuration_place(scope)) else {
        return format!("{ABSENT}no place for it is known\n");
    };
    match fs::read_to_string(&path) {
        Ok(text) => redactor.configuration(&text),
        Err(error) => format!("{ABSENT}{}: {error}\n", path.display()),
    }
}

/// Of a service the journal has it, if we may read that.
fn log(place: Option<&Place>, scope: Scope) -> String {
    if scope == Scope::Machine {
        let mut journal = Command::new("journalctl");
        journal.args(["--unit=ebb.service", "--no-pager", "--quiet", "--lines", LINES]);
        let output = journal.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let said = output.ok().filter(|output| output.status.success() && !output.stdout.is_empty());
        return match said {
            Some(output) => tail(&output.stdout),
            None => format!("{ABSENT}the journal of ebb.service cannot be read by you, or is empty\n"),
        };
    }
    let usual = || Place::prepare(Scope::User).ok();
    let Some(path) = place.cloned().or_else(usual).map(|place| place.log()) else {
        return format!("{ABSENT}there is no runtime folder\n");
    };
    fs::read(&path).map_or_else(|error| format!("{ABSENT}{}: {error}\n", path.display()), |log| tail(&log))
}

/// The end, from the beginning of a line.
fn tail(bytes: &[u8]) -> String {
    let cut = bytes.len().saturating_sub(LOG);
    let text = String::from_utf8_lossy(&bytes[cut..]).into_owned();
    if cut == 0 { text } else { text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned()) }
}

/// Numbers only: names of kernels tell what somebody computes.
fn verdicts() -> String {
    let found = match found::all() {
        Ok(found) if found.is_empty() => return format!("{ABSENT}no process has a ledger\n"),
        Ok(found) => found,
        Err(error) => return format!("{ABSENT}{error:#}\n"),
    };
    let mut text = String::new();
    for found in found {
        let state = if found.is_alive { "runs" } else { "has ended" };
        text.push_str(&format!("process {} {state}\n", found.reading.pid));
        for (kind, sum) in account::sums(&found.reading.kernels) {
            let account::Sum { kernels, launches, guarded, cut, gpu_ns } = sum;
            text.push_str(&format!(
                "  {}: {kernels} kernels, {launches} launches, {guarded} guarded, {cut} cut, {gpu_ns} ns\n",
                kind.words()
            ));
        }
    }
    text
}

fn profiles() -> String {
    let Some(store) = Store::of_this_user() else { return format!("{ABSENT}none are kept\n") };
    let kept = match Kept::read(&store, None) {
        Ok(kept) if kept.platforms.is_empty() => return format!("{ABSENT}nothing is known of any kernel\n"),
        Ok(kept) => kept,
        Err(error) => return format!("{ABSENT}{error:#}\n"),
    };
    let mut text = String::new();
    for known in &kept.platforms {
        let platform = &known.platform;
        text.push_str(&format!(
            "{}, driver {}, ebb {}: {} kernels, {} bytes, {} damaged\n",
            platform.gpu(),
            platform.driver(),
            platform.ebb(),
            known.kernels.len(),
            known.bytes,
            known.damage.bytes
        ));
    }
    text.push_str(&format!("{} demoted by the guard\n", kept.demoted.len()));
    kept.remarks.iter().for_each(|remark| text.push_str(&format!("{remark}\n")));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_log_there_are_whole_lines_from_the_end() {
        let log: String = (0..100_000).map(|line| format!("line {line}\n")).collect();
        let end = tail(log.as_bytes());
        assert!(end.len() <= LOG && end.starts_with("line ") && end.ends_with("line 99999\n"));
        assert_eq!(tail(b"short"), "short");
    }
}
