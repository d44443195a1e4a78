//! What is found out about kernels by running them. Twins that are held against their originals (`EBB_VERIFY=1`): right ones
//! are found right, wrong ones are found out and never used, and a program computes what it would compute alone in any case.
//! That the whole suite does is a test of `shim.rs`. And kernels that must not be cut: they are freed, and left alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

use conformance::runner::Launcher;
use conformance::suite::Outcome;
use guard::{Finding, Obstacle, Reason, Verdict};
use telemetry::{Counter, Reading};

mod common;

const TIMEOUT: Duration = Duration::from_secs(240);
const CASE: &str = "kernel/vector_add";

static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| common::built("softcuda"));
static SHIM: LazyLock<PathBuf> = LazyLock::new(|| common::built("shim"));
/// The same, in which twins can be made to subtract where they should add.
static FAILING_SHIM: LazyLock<PathBuf> = LazyLock::new(|| common::built_with("shim", "faults"));

/// What came of a case under the shim.
struct Run {
    outcome: Outcome,
    ledger: Reading,
    /// What is remembered for later runs.
    demotions: String,
}

impl Run {
    fn new(shim: &Path, case: &str, settings: &[(&str, &str)]) -> Run {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let place = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir(&path).expect("a folder can be made in our own");
            path.to_string_lossy().into_owned()
        };
        let (run, memory) = (place("run"), place("memory"));
        let (shim, driver) = (shim.to_string_lossy(), DRIVER.to_string_lossy());
        let surroundings = [
            ("LD_PRELOAD", &*shim),
            ("EBB_DRIVER", &*driver),
            ("EBB_RUN", &*run),
            ("EBB_RUNTIME_DIR", &*place("runtime")),
            ("EBB_GUARD_CACHE", &*memory),
            ("EBB_PROFILES", &*place("profiles")),
            ("EBB_GUARD", "now"),
        ];
        let settings = surroundings.iter().chain(settings);
        let environment: Vec<_> =
            settings.map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let launcher = Launcher {
            program: Path::new(env!("CARGO_BIN_EXE_conformance")),
            driver: Path::new("libcuda.so.1"),
            timeout: TIMEOUT,
            environment: &environment,
            forked: false,
        };
        let outcome = launcher.run(case).outcome;
        let files = fs::read_dir(run).expect("our own folder").flatten().map(|file| file.path());
        let mut ledgers = files.filter(|path| Reading::is_called_so(path));
        let ledger = ledgers.next().expect("the case has left a ledger");
        let ledger = Reading::open(&ledger).expect("a ledger that was just written");
        let demotions = fs::read_to_string(Path::new(&memory).join("demotions")).unwrap_or_default();
        Run { outcome, ledger, demotions }
    }

    /// What is said of every kernel that was launched.
    fn said(&self) -> Vec<(Option<Verdict>, Option<Finding>)> {
        let kernels = self.ledger.kernels.iter();
        let verdict = |number: Option<u8>| number.and_then(Verdict::from_number);
        let finding = |number: Option<u8>| number.and_then(Finding::from_number);
        kernels.map(|kernel| (verdict(kernel.verdict), finding(kernel.finding))).collect()
    }
}

#[test]
fn a_right_twin_is_verified_by_cutting_it() {
    let run = Run::new(&SHIM, CASE, &[("EBB_VERIFY", "1")]);
    assert_eq!(run.outcome, Outcome::Passed);
    assert!(!run.said().is_empty());
    for (verdict, finding) in run.said() {
        assert!(matches!(verdict, Some(Verdict::Guard(_))), "{verdict:?}");
        assert!(matches!(finding, Some(Finding::Equal { cuts: 1.. })), "{finding:?}");
    }
}

#[test]
fn without_being_asked_nobody_tries_anything() {
    let run = Run::new(&SHIM, CASE, &[]);
    assert_eq!(run.outcome, Outcome::Passed);
    assert!(run.said().iter().all(|(_, finding)| finding.is_none()));
}

#[test]
fn a_wrong_twin_is_found_out_and_never_used() {
    let wrong = Run::new(&FAILING_SHIM, CASE, &[("EBB_FAULT", "twin")]);
    assert!(matches!(wrong.outcome, Outcome::Failed(_)), "the twin must be wrong: {:?}", wrong.outcome);
    let verified = Run::new(&FAILING_SHIM, CASE, &[("EBB_FAULT", "twin"), ("EBB_VERIFY", "1")]);
    assert_eq!(verified.outcome, Outcome::Passed);
    assert!(!verified.said().is_empty());
    for said in verified.said() {
        assert_eq!(said, (Some(Verdict::Refuse(Reason::Differs)), Some(Finding::Differs)));
    }
    assert!(verified.ledger.kernels.iter().all(|kernel| kernel.guarded == 0));
    assert!(verified.demotions.contains(" differs "), "{:?}", verified.demotions);
}

#[test]
fn what_reaches_more_than_the_limit_is_guarded_unverified() {
    let run = Run::new(&SHIM, CASE, &[("EBB_VERIFY", "1"), ("EBB_VERIFY_LIMIT", "4096")]);
    assert_eq!(run.outcome, Outcome::Passed);
    for (verdict, finding) in run.said() {
        assert!(matches!(verdict, Some(Verdict::Guard(_))), "{verdict:?}");
        assert_eq!(finding, Some(Finding::Unknown(Obstacle::TooLarge)));
    }
}

#[test]
fn a_kernel_that_waits_for_the_program_is_not_waited_for() {
    let run = Run::new(&SHIM, "stream/query_and_synchronize", &[("EBB_VERIFY", "1")]);
    assert_eq!(run.outcome, Outcome::Passed);
    let said = run.said();
    assert!(
        said.iter().any(|(_, finding)| *finding == Some(Finding::Unknown(Obstacle::NeverQuiet))),
        "{said:?}"
    );
}

#[test]
fn blocks_that_wait_for_higher_ones_are_freed_and_their_kernel_is_not_cut_again() {
    // Where a storm hits is chance.
    let freed = ["storm:7", "storm:8", "storm:9"].iter().find_map(|storm| {
        let run = Run::new(&SHIM, "gate/first_block_waits_for_the_last", &[("EBB_GUARD", storm)]);
        assert_eq!(run.outcome, Outcome::Passed);
        (run.ledger.count(Counter::GuardWatchdog) > 0).then_some(run)
    });
    let run = freed.expect("some storm cuts it where it hurts");
    let refused = Some(Verdict::Refuse(Reason::WaitsForOthers));
    assert!(run.said().iter().any(|(verdict, _)| *verdict == refused), "{:?}", run.said());
    assert!(run.demotions.contains(" waits-for-others "), "{:?}", run.demotions);
}
