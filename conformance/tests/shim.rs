//! The shim is invisible: every case of the suite comes out through it as it does without it, however a program comes
//! by it, on many threads, in forks, and while the shim itself is failing.
//!
//! "As it does" is more than the outcome: what a case prints (raw codes, what kernels print) and what stands on its
//! standard error must be the same too. And so that a shim which is not there does not pass for one that is not seen,
//! every process must have left a ledger.

use conformance::context::PRIMARY;
use conformance::driver::BY_PROC_ADDRESS;
use conformance::runner::{Launcher, Report, crowd};
use conformance::suite::{self, Case, Outcome, Run};
use guard::Finding;
use libtest_mimic::{Arguments, Failed, Trial};
use model::{Domain, Kind};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use telemetry::{Counter, Note, Reading};

mod common;
#[path = "common/rival.rs"]
mod rival;

/// Debug builds on a loaded two-core machine need many times what a release build needs.
const TIMEOUT: Duration = Duration::from_secs(240);
/// Every case keeps several threads busy, so more cases at once only wait for each other.
const JOBS: usize = 2;
/// All of the software GPU's memory: a limit that changes nothing, since whoever reaches it has reached the card's.
const CARD: &str = "16Gi";
/// What is otherwise when launches are guarded or held. Which of two streams runs first is not what it was when the one was stopped; even if it was
/// not, the copy by which the case learns that the first has begun is the first of its process, and waits until guarded launches
/// have ended; and where twins are verified, the first launch of a kernel is waited for, so nothing is there to be overtaken. And of a
/// stream with guarded launches less lies in the driver's queue than would go in, so that nobody waits in there. What is made again is made
/// in a stream of ours, which has all SMs.
const NOT_IF_STOPPED: &[&str] = &[
    "stream/high_priority_overtakes_between_blocks",
    "gate/takes_a_thousand_launches_behind_it",
    "gate/keeps_who_launches_more_until_it_opens",
    "green/kernels_stay_on_the_sms_of_their_group",
];
/// As many as a data loader or a server may have.
const THREADS: usize = 64;

static DRIVER: LazyLock<PathBuf> = LazyLock::new(|| common::built("softcuda"));
static SHIM: LazyLock<PathBuf> = LazyLock::new(|| common::built("shim"));
static FAILING_SHIM: LazyLock<PathBuf> = LazyLock::new(|| common::built_with("shim", "faults"));
/// What comes of every case without the shim.
static WITHOUT: LazyLock<Reports> = LazyLock::new(|| Place::new(&DRIVER).run());

type Reports = BTreeMap<&'static str, Report>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Each of them has as many processes as the machine bears.
    arguments.test_threads.get_or_insert(1);
    let trials = vec![
        Trial::test("preloaded", || Place::preloaded(&SHIM).proves_invisible()),
        Trial::test("found_by_path", || Place::new(&SHIM).proves_invisible()),
        Trial::test("found_on_the_library_path", library_path),
        Trial::test("preloaded_and_round_it_by_path", round_it),
        Trial::test("by_proc_address", || Place::new(&SHIM).with(BY_PROC_ADDRESS, "1").proves_invisible()),
        Trial::test("forked", || Place { forked: true, ..Place::preloaded(&SHIM) }.proves_invisible()),
        Trial::test("switched_off", || Place::preloaded(&SHIM).with("EBB_DISABLE", "1").compared().map(drop)),
        Trial::test("preloaded_with_as_much_memory_as_there_is", || {
            Place::preloaded(&SHIM).with("EBB_MEM_LIMIT", CARD).proves_invisible()
        }),
        Trial::test("on_64_threads", threads),
        Trial::test("every_hook_panics", || fault("panic", Note::HooksOff, processes_with_a_context())),
        Trial::test("launches_panic", || fault("panic:cuLaunchKernel", Note::HooksOff, 100)),
        Trial::test("no_memory", || fault("memory", Note::OutOfMemory, 100)),
        Trial::test("no_room_on_the_disk", full_disk),
        Trial::test("as_a_best_effort_tenant_with_a_rival", || tenant("best-effort", "switch")),
        Trial::test("as_a_best_effort_tenant_that_can_only_be_held", || tenant("best-effort", "hold")),
        Trial::test("as_a_latency_tenant", || tenant("latency", "switch")),
        Trial::test("as_a_best_effort_tenant_beside_latency_tenants", beside_latency_tenants),
        Trial::test("every_launch_guarded", || guarded("now")),
        Trial::test("every_launch_guarded_and_stopped_at_random_moments", || guarded("storm:7")),
        Trial::test("every_launch_guarded_and_confined_at_random_moments", confined),
        Trial::test("every_twin_held_against_its_original", verified),
        Trial::test("proc_addresses_over_softcuda", || proc_addresses(&DRIVER)),
        Trial::test("proc_addresses_over_nullcuda", || proc_addresses(&common::built("nullcuda"))),
    ];
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A way for a program to come by a driver, and folders for what it leaves.
struct Place {
    driver: PathBuf,
    /// What must answer to the driver's name.
    shim: PathBuf,
    environment: Vec<(String, String)>,
    forked: bool,
    /// Cases that are about *when* something runs, which this way decides.
    except: &'static [&'static str],
    folder: tempfile::TempDir,
}

impl Place {
    fn new(driver: &Path) -> Place {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let run = folder.path().join("run");
        std::fs::create_dir(&run).expect("a folder can be made in our own");
        Place {
            driver: driver.to_owned(),
            shim: driver.to_owned(),
            environment: Vec::new(),
            forked: false,
            except: &[],
            folder,
        }
        .with("EBB_DRIVER", &*DRIVER)
        .with("EBB_RUN", run)
    }

    fn preloaded(shim: &Path) -> Place {
        let plain = Place::new(Path::new("libcuda.so.1")).with("LD_PRELOAD", shim);
        Place { shim: shim.to_owned(), ..plain }
    }

    fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Place {
        self.environment.push((name.to_owned(), value.as_ref().to_string_lossy().into_owned()));
        self
    }

    fn launcher<'a>(&'a self, environment: &'a [(String, String)]) -> Launcher<'a> {
        let program = Path::new(env!("CARGO_BIN_EXE_conformance"));
        Launcher { program, driver: &self.driver, timeout: TIMEOUT, environment, forked: self.forked }
    }

    /// Every case with a software GPU of its own, so that cases can run side by side.
    fn environment(&self, number: usize) -> Vec<(String, String)> {
        let runtime = self.folder.path().to_string_lossy().into_owned();
        let mut environment = self.environment.clone();
        environment.push(("EBB_PROFILES".to_owned(), format!("{runtime}/profiles")));
        environment.push(("EBB_RUNTIME_DIR".to_owned(), runtime));
        environment.push(("EBB_SOFTGPU".to_owned(), format!("shim-{number}")));
        environment
    }

    fn cases(&self) -> Vec<Case> {
        suite::all().into_iter().filter(|case| !self.except.contains(&case.name)).collect()
    }

    fn run(&self) -> Reports {
        let (cases, next, reports) = (self.cases(), AtomicUsize::new(0), Mutex::new(Reports::new()));
        std::thread::scope(|scope| {
            for _ in 0..JOBS {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(number) else { break };
                        let environment = self.environment(number);
                        let report = self.launcher(&environment).run(case.name);
                        reports.lock().expect("nothing panics meanwhile").insert(case.name, report);
                    }
                });
            }
        });
        reports.into_inner().expect("nothing panics meanwhile")
    }

    /// Runs every case and finds nothing that differs from the runs without the shim.
    fn compared(self) -> Result<Place, Failed> {
        self.answered_by_the_shim()?;
        let (with, without) = (self.run(), &*WITHOUT);
        agree(&with, without, seen).map(|()| self)
    }

    fn answered_by_the_shim(&self) -> Result<(), Failed> {
        let environment = self.environment(0);
        let library = self.launcher(&environment).library().map_err(|error| format!("{error:#}"))?;
        if library.canonicalize()? != self.shim.canonicalize()? {
            return Err(format!("{} is what the program has opened", library.display()).into());
        }
        Ok(())
    }

    /// And every process has left a ledger, into which hooks have counted.
    fn proves_invisible(self) -> Result<(), Failed> {
        self.counts_unseen().map(drop)
    }

    /// The same; and what the shim has counted.
    fn counts_unseen(self) -> Result<Vec<Reading>, Failed> {
        let place = self.compared()?;
        let ledgers = place.ledgers()?;
        let contexts = [Counter::ContextsCreated, Counter::PrimaryContextsRetained];
        let has_one = |ledger: &&Reading| contexts.iter().any(|counter| ledger.count(*counter) > 0);
        let counted = ledgers.iter().filter(has_one).count();
        let due = with_a_context(&place.cases());
        if counted < due {
            return Err(format!("only {counted} of {due} processes have counted their context").into());
        }
        let failed = ledgers.iter().find(|ledger| ledger.notes.contains(&Note::HooksOff));
        if failed.is_some() {
            return Err("a hook has failed".into());
        }
        Ok(ledgers)
    }

    fn ledgers(&self) -> Result<Vec<Reading>, Failed> {
        let files = std::fs::read_dir(self.folder.path().join("run"))?;
        let paths: Vec<PathBuf> = files.map(|file| file.map(|file| file.path())).collect::<Result<_, _>>()?;
        let ledgers = paths.iter().filter(|path| Reading::is_called_so(path));
        Ok(ledgers.map(|path| Reading::open(path)).collect::<Result<_, _>>()?)
    }
}

/// How many processes make a context for sure: the other cases begin without one, and some never make one.
fn processes_with_a_context() -> usize {
    with_a_context(&suite::all())
}

fn with_a_context(cases: &[Case]) -> usize {
    cases.iter().filter(|case| matches!(case.run, Run::Context(_))).count()
}

/// What a program and its user see of a case: how it ends and every line but the remarks, which hold measured times.
fn seen(report: &Report) -> (&Outcome, Vec<&str>) {
    (&report.outcome, report.output.lines().filter(|line| !line.starts_with("note: ")).collect())
}

fn agree<'a, T: PartialEq + Debug>(
    with: &'a Reports,
    without: &'a Reports,
    seen: impl Fn(&'a Report) -> T,
) -> Result<(), Failed> {
    let pairs = with.iter().map(|(name, report)| (name, seen(report), seen(&without[name])));
    let different: Vec<String> = pairs
        .filter(|(_, with, without)| with != without)
        .map(|(name, with, without)| format!("{name}: {with:?}, without the shim {without:?}"))
        .collect();
    if different.is_empty() { Ok(()) } else { Err(different.join("\n").into()) }
}

fn library_path() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    symlink(&*SHIM, folder.path().join("libcuda.so.1"))?;
    let place = Place::new(Path::new("libcuda.so.1")).with("LD_LIBRARY_PATH", folder.path());
    Place { shim: SHIM.clone(), ..place }.proves_invisible()
}

fn round_it() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("libcuda.so.1");
    symlink(&*DRIVER, &path)?;
    let place = Place { driver: path, ..Place::preloaded(&SHIM) }.compared()?;
    let said = place.ledgers()?.iter().filter(|ledger| ledger.notes.contains(&Note::OpenedByPath)).count();
    if said < suite::all().len() {
        return Err(format!("only {said} ledgers say that the driver was opened by its path").into());
    }
    Ok(())
}

/// Everything that can run beside others, at the same time in one process.
fn threads() -> Result<(), Failed> {
    let cases: Vec<Case> = suite::all().into_iter().filter(|case| !case.wants_a_process()).collect();
    let place = Place::preloaded(&SHIM);
    place.answered_by_the_shim()?;
    let (environment, reports) = (place.environment(0), Mutex::new(Reports::new()));
    crowd::run_all(&place.launcher(&environment), &cases, THREADS, JOBS, |case, report| {
        reports.lock().expect("nothing panics meanwhile").insert(case.name, report.clone());
    });
    let reports = reports.into_inner().expect("nothing panics meanwhile");
    agree(&reports, &WITHOUT, |report| &report.outcome)?;
    let contexts = place.ledgers()?.into_iter().map(|ledger| ledger.count(Counter::ContextsCreated)).max();
    if contexts < Some(cases.len() as u64) {
        return Err(format!("no process has counted its {} contexts", cases.len()).into());
    }
    Ok(())
}

/// A shim that fails inside, and says so in at least so many ledgers.
fn fault(what: &str, note: Note, least: usize) -> Result<(), Failed> {
    let place = Place::preloaded(&FAILING_SHIM).with("EBB_FAULT", what).compared()?;
    let ledgers = place.ledgers()?;
    let said = ledgers.iter().filter(|ledger| ledger.notes.contains(&note)).count();
    if said < least {
        return Err(format!("{said} of {} ledgers say {:?}", ledgers.len(), note.sentence()).into());
    }
    Ok(())
}

fn full_disk() -> Result<(), Failed> {
    let place = Place::preloaded(&FAILING_SHIM).with("EBB_FAULT", "disk").compared()?;
    match place.ledgers()?.len() {
        0 => Ok(()),
        count => Err(format!("{count} ledgers on a full disk").into()),
    }
}

/// A tenant computes as it would alone, whether it takes turns or is only looked at.
fn tenant(class: &str, rung: &str) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    // Under this policy requests are made way for as well, by whoever can.
    let kind = if rung == "switch" { Kind::Strict } else { Kind::Slo };
    let rival = rival::Rival::start(folder.path(), Domain::Isolated, kind);
    // A stream of high priority cannot overtake what waits with it at the gate; and of what can only be held little is handed over ahead.
    let except = if rung == "hold" { NOT_IF_STOPPED } else { &[] };
    let place = Place { except, ..Place::preloaded(&SHIM) };
    let place = place.with("EBB_SOCKET", rival.socket());
    let contexts = with_a_context(&place.cases()) as u64;
    place.with("EBB_CLASS", class).with("EBB_RUNG", rung).proves_invisible()?;
    let (turns, seats) = rival.figures();
    // Nobody waits for a seat who hands over no work, and the shortest are over before they have one. Rivals take their turns between
    // those of a process, so there is one for each, whatever the machine's speed.
    let (due, taken) = (contexts * 9 / 10, if class == "latency" { 0 } else { contexts });
    if seats < due || turns < taken {
        return Err(format!("{seats} of {contexts} processes were seated; rivals had {turns} turns").into());
    }
    Ok(())
}

/// A tenant of the shared domain computes as it would alone, though it stops whenever another has work.
fn beside_latency_tenants() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let rival = rival::Rival::start(folder.path(), Domain::Shared, Kind::Slo);
    let place = Place { except: NOT_IF_STOPPED, ..Place::preloaded(&SHIM) };
    let place =
        place.with("EBB_SOCKET", rival.socket()).with("EBB_GUARD", "now").with("EBB_GUARD_CACHE", "off");
    place.proves_invisible()?;
    // How often bursts and launches meet is a matter of the machine's speed; that they do is not.
    match (rival.figures(), rival.cut()) {
        ((0, _), _) | (_, 0) => Err("no launch was cut, or no burst was made: nothing was tried".into()),
        _ => Ok(()),
    }
}

/// A process whose launches can be stopped between blocks computes as it would alone, whether it is stopped or not.
fn guarded(how: &str) -> Result<(), Failed> {
    guarded_place(how).proves_invisible()
}

fn guarded_place(how: &str) -> Place {
    let place = Place { except: NOT_IF_STOPPED, ..Place::preloaded(&SHIM) };
    place.with("EBB_GUARD", how).with("EBB_GUARD_CACHE", "off")
}

/// A process whose launches are stopped and go on, on half of the SMs, computes as it would alone.
fn confined() -> Result<(), Failed> {
    let ledgers = guarded_place("storm:7:1500:700:50").with(PRIMARY, "1").counts_unseen()?;
    let confined: u64 = ledgers.iter().map(|ledger| ledger.count(Counter::GuardConfined)).sum();
    if confined < 10 {
        return Err(format!("only {confined} launches were made on some of the SMs").into());
    }
    println!("{confined} launches were made on some of the SMs");
    Ok(())
}

/// A process whose kernels are run several times over, cut and compared, computes as it would alone. No twin leaves anything
/// else than its kernel, and most can be compared.
fn verified() -> Result<(), Failed> {
    /// Which of two sets swallows the other depends on which block comes first; all blocks of the original come in order,
    /// most of the time. And which SM a block is on is never the same.
    const DEPENDS_ON_MORE: [&str; 2] = ["unite", "survey"];
    let place = Place { except: NOT_IF_STOPPED, ..Place::preloaded(&SHIM) }.with("EBB_VERIFY", "1");
    let place = place.with("EBB_GUARD", "now").with("EBB_GUARD_CACHE", "off").compared()?;
    let ledgers = place.ledgers()?;
    let kernels = ledgers.iter().flat_map(|ledger| &ledger.kernels);
    let kernels = kernels.filter(|kernel| !DEPENDS_ON_MORE.contains(&kernel.name.as_str()));
    let findings: Vec<Finding> =
        kernels.filter_map(|kernel| kernel.finding.and_then(Finding::from_number)).collect();
    let equal = findings.iter().filter(|finding| matches!(finding, Finding::Equal { .. })).count();
    let differ = findings.iter().filter(|finding| **finding == Finding::Differs).count();
    if differ > 0 || equal < findings.len() * 3 / 4 || equal < 200 {
        return Err(format!("{equal} of {} kernels were verified, {differ} differ", findings.len()).into());
    }
    Ok(())
}

fn proc_addresses(driver: &Path) -> Result<(), Failed> {
    let output = Command::new(env!("CARGO_BIN_EXE_conformance"))
        .arg("--driver")
        .arg(driver)
        .arg("--compare-proc-addresses")
        .arg(&*SHIM)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned().into())
}
