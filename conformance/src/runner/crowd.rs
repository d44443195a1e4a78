//! Many cases at the same time, on the threads of one process.
//!
//! The process is a child again, so that what befalls it is told and not suffered. It takes the cases from a queue
//! and says of each what came of it as soon as that is known; a case of which nothing was said has failed with the
//! process.

use super::{FAILED, Launcher, Report, SKIPPED, judge};
use crate::driver::Driver;
use crate::suite::{Case, Outcome};
use std::collections::HashMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitStatus;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Stand round what is said of a case; nothing else that a case may print holds them.
const BEGIN: char = '\u{1}';
const BETWEEN: char = '\u{2}';
const END: char = '\u{3}';

/// Runs the cases that do no lasting harm in one child on `threads` threads, the others as usual; calls `done` for
/// each.
pub fn run_all(
    launcher: &Launcher<'_>,
    cases: &[Case],
    threads: usize,
    jobs: usize,
    done: impl Fn(&Case, &Report) + Sync,
) {
    let (alone, together): (Vec<Case>, Vec<Case>) = cases.iter().partition(|case| case.wants_a_process());
    run_together(launcher, &together, threads, &done);
    super::run_all(launcher, &alone, jobs, done);
}

fn run_together(launcher: &Launcher<'_>, cases: &[Case], threads: usize, done: &impl Fn(&Case, &Report)) {
    if cases.is_empty() {
        return;
    }
    let count = threads.to_string();
    let mut arguments = vec!["--crowd", &count, "--"];
    arguments.extend(cases.iter().map(|case| case.name));
    let rounds = u32::try_from(cases.len().div_ceil(threads)).unwrap_or(u32::MAX);
    let timeout = launcher.timeout.saturating_mul(rounds);
    let (told, rest) = match launcher.start(&arguments, timeout) {
        Ok(ending) => (heard(&ending.stdout), silence(ending.status, &ending.stderr, timeout)),
        Err(error) => (HashMap::new(), format!("could not run the cases: {error:#}")),
    };
    for case in cases {
        let nothing = || Report {
            outcome: Outcome::Failed(rest.clone()),
            output: String::new(),
            elapsed: Duration::ZERO,
        };
        done(case, &told.get(case.name).cloned().unwrap_or_else(nothing));
    }
}

/// Why nothing was said of a case.
fn silence(status: Option<ExitStatus>, stderr: &str, timeout: Duration) -> String {
    match judge(status, "", stderr, timeout) {
        Outcome::Failed(reason) => format!("the process of all threads: {reason}"),
        Outcome::Passed | Outcome::Skipped(_) => "the process of all threads did not mention it".to_owned(),
    }
}

/// The child's side: runs the cases on `threads` threads and tells of each.
pub fn serve(driver: &Driver, cases: &[Case], threads: usize) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let started = Instant::now();
                    let outcome = catch_unwind(AssertUnwindSafe(|| case.execute(driver)))
                        .unwrap_or_else(|_| Outcome::Failed("panicked".to_owned()));
                    tell(case.name, &outcome, started.elapsed());
                }
            });
        }
    });
}

fn tell(name: &str, outcome: &Outcome, elapsed: Duration) {
    let (status, reason) = match outcome {
        Outcome::Passed => (0, ""),
        Outcome::Failed(reason) => (FAILED, reason.as_str()),
        Outcome::Skipped(reason) => (SKIPPED, reason.as_str()),
    };
    let micros = elapsed.as_micros();
    let text = format!("{BEGIN}{name}{BETWEEN}{status}{BETWEEN}{micros}{BETWEEN}{reason}{END}\n");
    // Kernels of other threads print too, so it goes out in one piece.
    let mut out = std::io::stdout().lock();
    // A parent that no longer listens needs no telling.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn heard(stdout: &str) -> HashMap<String, Report> {
    let pieces = stdout.split(BEGIN).skip(1).filter_map(|piece| piece.split_once(END));
    pieces.filter_map(|(piece, _)| understand(piece)).collect()
}

fn understand(piece: &str) -> Option<(String, Report)> {
    let mut parts = piece.splitn(4, BETWEEN);
    let name = parts.next()?.to_owned();
    let status: u8 = parts.next()?.parse().ok()?;
    let elapsed = Duration::from_micros(parts.next()?.parse().ok()?);
    let reason = parts.next()?.to_owned();
    let outcome = match status {
        0 => Outcome::Passed,
        SKIPPED => Outcome::Skipped(reason),
        _ => Outcome::Failed(reason),
    };
    Some((name, Report { outcome, output: String::new(), elapsed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard_among_other_noise() {
        let stdout = "noise \u{1}a/b\u{2}0\u{2}1500\u{2}\u{3}\nmore\n\u{1}c/d\u{2}10\u{2}7\u{2}two\nlines\u{3}\n\u{1}e/f\u{2}0";
        let heard = heard(stdout);
        assert_eq!(heard.len(), 2);
        assert_eq!(heard["a/b"].outcome, Outcome::Passed);
        assert_eq!(heard["a/b"].elapsed, Duration::from_micros(1500));
        assert_eq!(heard["c/d"].outcome, Outcome::Failed("two\nlines".into()));
    }
}
