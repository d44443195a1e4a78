//! Twins held against their originals, on the GPU, while the program runs (`ebb run --verify`).
//!
//! With `EBB_VERIFY=1` the first launches of every guarded kernel become trials. The program is held still and the GPU
//! becomes quiet; the memory that the kernel can reach is kept; the original runs, and what it leaves is kept too. Then,
//! each time from the same beginning, the twin runs and is cut at random moments. What it leaves must be what the original
//! left, bit for bit. If it is not, and the original leaves the same each time, the twin is never used again. In the end
//! the memory is as after one run of the original, and that is the launch that the program asked for.
//!
//! Whatever stands in the way of a trial is written down, and the launch is made as without one. A trial does not look at
//! the stop word of other tenants: it begins while the process may run, and then takes its time.
//!
//! * `book`: which launches are tried, and what came of it
//! * `still`: the program held still, and the GPU quiet
//! * `reach`: the memory that a kernel can get at
//! * `copies`: what is kept of it, and how it is compared; `window`: how the host sees it
//! * `trial`: the twin, cut at random moments

mod book;
mod copies;
mod reach;
mod still;
mod trial;
mod window;

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use cuda_abi::{CUDA_SUCCESS, CUresult};
use guard::{Finding, Obstacle, Reason};
use model::Nanos;

use super::driver::{self, Here};
use super::lane::Lane;
use super::record::Launch;
use crate::log::say;
use crate::surroundings::variable;
use crate::tenancy::{self, key::Key};
use crate::twins;
use crate::watch::Watch;

use copies::{Copies, Moment};
use reach::Reach;
use still::{Still, wait_for_all};
pub use still::{disturbs_trials, pass};
use trial::{End, Trial};
use window::Window;

/// How often the twin runs from the same beginning.
const RUNS: u32 = 3;
/// How often the original must leave the same before its twin is blamed for leaving something else.
const WITNESSES: u32 = 3;
/// How long the GPU may take to become quiet before a trial.
const QUIET: Nanos = Nanos::from_millis(2_000);
/// How long an original may take. One that waits for what the program does after the launch takes for ever.
const LONGEST: Nanos = Nanos::from_millis(3_000);

const UNASKED: u8 = 0;
const NO: u8 = 1;
const YES: u8 = 2;
static ASKED: AtomicU8 = AtomicU8::new(UNASKED);

/// The GPU did not become quiet, and is not waited for once more: no more trials in this process.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Whether the environment asks for trials. One load, but for the first time.
#[inline(always)]
fn is_asked() -> bool {
    match ASKED.load(Ordering::Relaxed) {
        UNASKED => ask(),
        answer => answer == YES,
    }
}

#[cold]
fn ask() -> bool {
    let asked = variable(c"EBB_VERIFY").is_some_and(|value| value == c"1");
    ASKED.store(if asked { YES } else { NO }, Ordering::Relaxed);
    asked
}

/// In the child of a fork, which has tried nothing.
pub fn in_child() {
    GIVEN_UP.store(false, Ordering::Relaxed);
    still::in_child();
    book::in_child();
}

/// Makes a trial of a launch of a twin, if one is due. `true`: the original was launched by it, and all is done.
#[inline(always)]
pub fn verify(launch: &mut Launch, key: Key, watch: &'static Watch, original: &dyn Fn() -> CUresult) -> bool {
    is_asked() && try_out(launch, key, watch, original)
}

#[cold]
fn try_out(launch: &mut Launch, key: Key, watch: &'static Watch, original: &dyn Fn() -> CUresult) -> bool {
    // To wait for everything would spoil a capture.
    if GIVEN_UP.load(Ordering::Relaxed) || watch.frames.captures.load(Ordering::Relaxed) != 0 {
        return false;
    }
    let here = Here::new();
    let is_here = Lane::made_for(key, &here).is_some_and(|lane| lane.site.context() == here.context());
    let Some(page) = is_here.then(|| book::page(launch)).flatten() else { return false };
    // It begins when the process may put work on the GPU.
    drop(tenancy::admit(tenancy::Work::Kernels, || false, || false));
    let mut answer = None;
    let finding = driver::relaxed(|| {
        let _still = Still::hold().ok_or(Obstacle::NeverQuiet)?;
        become_quiet(QUIET)?;
        compare(launch, original, &mut answer)
    })
    .unwrap_or_else(Finding::Unknown);
    launch.attempts = 0;
    if answer.is_some_and(|answer| answer != CUDA_SUCCESS) {
        // A launch that the driver refuses is none, and says nothing about the kernel.
        page.give_back(launch);
        return false;
    }
    say!("{}: {finding}", String::from_utf8_lossy(launch.frame.name));
    page.add(finding, launch.frame, watch);
    answer.is_some()
}

/// Waits until nothing runs in the thread's context. If that takes too long, it may take as long the next time.
fn become_quiet(at_most: Nanos) -> Result<(), Obstacle> {
    wait_for_all(at_most).ok_or_else(|| {
        GIVEN_UP.store(true, Ordering::Relaxed);
        Obstacle::NeverQuiet
    })
}

/// Holds the twin against the original. Once the driver has answered its launch, memory is left as the original leaves it.
fn compare(
    launch: &mut Launch,
    original: &dyn Fn() -> CUresult,
    answer: &mut Option<CUresult>,
) -> Result<Finding, Obstacle> {
    let mut window = Window::make().ok_or(Obstacle::DriverRefused)?;
    let reach = Reach::of(launch, &mut window)?;
    let mut copies = Copies::make(&reach, &mut window)?;
    let mut trial = Trial::make(launch).ok_or(Obstacle::DriverRefused)?;
    copies.keep(Moment::Before).ok_or(Obstacle::DriverRefused)?;
    let began = board::now();
    if *answer.insert(original()) != CUDA_SUCCESS {
        return Err(Obstacle::DriverRefused);
    }
    let finding = become_quiet(LONGEST).and_then(|()| {
        trial.took(board::now().since(began));
        copies.keep(Moment::After).ok_or(Obstacle::DriverRefused)?;
        let finding = runs(launch, original, &mut copies, &mut trial);
        match (finding, copies.put_back(Moment::After)) {
            (Ok(Finding::Equal { .. }), None) => Err(Obstacle::DriverRefused),
            _ => finding,
        }
    });
    if finding == Err(Obstacle::NeverQuiet) {
        // To give back memory would be to wait for what does not end, which may even use some of it.
        copies.abandon();
        std::mem::forget(trial);
        std::mem::forget(window);
    }
    finding
}

fn runs(
    launch: &mut Launch,
    original: &dyn Fn() -> CUresult,
    copies: &mut Copies<'_>,
    trial: &mut Trial,
) -> Result<Finding, Obstacle> {
    let mut cuts = 0_u8;
    for run in 0..RUNS {
        copies.put_back(Moment::Before).ok_or(Obstacle::DriverRefused)?;
        // A short kernel may never be hit: in the last run at least all its blocks are turned away once.
        match trial.run(launch, run + 1 == RUNS).ok_or(Obstacle::DriverRefused)? {
            End::Whole { cuts: more } => cuts = cuts.saturating_add(more),
            End::Freed => {
                twins::demote(launch.frame, Reason::WaitsForOthers);
                return Err(Obstacle::Waits);
            }
            End::Stuck => {
                twins::demote(launch.frame, Reason::WaitsForOthers);
                GIVEN_UP.store(true, Ordering::Relaxed);
                return Err(Obstacle::NeverQuiet);
            }
            End::Failed => {
                // The original ran from the same beginning without harm.
                twins::demote(launch.frame, Reason::Differs);
                return Ok(Finding::Differs);
            }
        }
        if !copies.are_as(Moment::After).ok_or(Obstacle::DriverRefused)? {
            return blame(launch, original, copies);
        }
    }
    Ok(Finding::Equal { cuts })
}

/// The twin has left something else. So it is at fault, unless the original does not always leave the same either.
fn blame(
    launch: &Launch,
    original: &dyn Fn() -> CUresult,
    copies: &mut Copies<'_>,
) -> Result<Finding, Obstacle> {
    for _ in 0..WITNESSES {
        copies.put_back(Moment::Before).ok_or(Obstacle::DriverRefused)?;
        if original() != CUDA_SUCCESS {
            return Err(Obstacle::DriverRefused);
        }
        become_quiet(LONGEST)?;
        if !copies.are_as(Moment::After).ok_or(Obstacle::DriverRefused)? {
            return Err(Obstacle::NotDeterministic);
        }
    }
    twins::demote(launch.frame, Reason::Differs);
    Ok(Finding::Differs)
}
