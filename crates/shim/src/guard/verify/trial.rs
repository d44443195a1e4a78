//! The twin, cut at random moments until it is whole.
//!
//! It runs in a stream of ours, with words of its own to look at: whoever stops and resumes this process does not come in
//! between. The stop word is raised a random while after the launch, as long as the original took at most, and sooner the
//! next time if that was too late. Then all its blocks have left sooner or later, the word is lowered, and what was turned away is launched again, to be cut again.

use std::sync::atomic::{AtomicU64, Ordering};

use cuda_abi::{CUDA_SUCCESS, CUdeviceptr, CUstream};
use guard::Rule;
use model::Nanos;

use super::window::{end_stream, make_stream, wait_for};
use crate::guard::driver::{Operations, ok};
use crate::guard::record::Launch;
use crate::guard::storm::Draw;
use crate::next;

/// So often a run is cut at most; then it is left alone.
const MOST_CUTS: u32 = 4;
/// Where the words lie. Those that blocks look at are a cache line apart.
const ZERO: u64 = 128;
const AWAY: u64 = 256;
const FREED_AWAY: u64 = 384;
const MARKS: u64 = 512;

/// How long a run may take beyond what the original took, before its blocks are taken to wait for each other.
const PATIENCE: Nanos = Nanos::from_millis(500);
/// How long blocks that were given what they wait for may take to leave.
const FREED: Nanos = Nanos::from_millis(10_000);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All blocks have run, and it was cut so often.
    Whole { cuts: u8 },
    /// Some blocks left only when those that had been turned away were run beside them.
    Freed,
    /// They did not even then.
    Stuck,
    /// The context has failed.
    Failed,
}

pub struct Trial {
    device: CUdeviceptr,
    marks_bytes: usize,
    /// The twin's, that of the words, and one beside the twin.
    run: CUstream,
    control: CUstream,
    beside: CUstream,
    /// How long the original took.
    span: Nanos,
    /// In which time after a launch the word is raised.
    moments: Nanos,
    draw: Draw,
}

/// Moments differ from trial to trial, and are the same when a program does the same again.
static SEED: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);

impl Trial {
    /// In the calling thread's context. `None`: it cannot be had.
    pub fn make(launch: &Launch) -> Option<Trial> {
        const CELLS: u64 = 16;
        let bytes = if launch.rule == Rule::Ordered { CELLS } else { launch.blocks() * 4 };
        let marks_bytes = usize::try_from(bytes).ok()?;
        let mut device: CUdeviceptr = 0;
        // SAFETY: a place for the answer.
        ok(unsafe { next::call::cuMemAlloc_v2(&mut device, MARKS as usize + marks_bytes) })?;
        let null = std::ptr::null_mut();
        let draw = Draw::new(SEED.fetch_add(2, Ordering::Relaxed));
        let mut trial = Trial {
            device,
            marks_bytes,
            run: null,
            control: null,
            beside: null,
            span: Nanos::ZERO,
            moments: Nanos::ZERO,
            draw,
        };
        trial.run = make_stream(false)?;
        trial.beside = make_stream(false)?;
        trial.control = make_stream(true)?;
        Some(trial)
    }

    pub fn took(&mut self, span: Nanos) {
        (self.span, self.moments) = (span, span);
    }

    /// Runs the twin once, cut at random moments. `turned_away`: the first time, before any of its blocks has begun. `None`:
    /// the driver refused something.
    pub fn run(&mut self, launch: &mut Launch, turned_away: bool) -> Option<End> {
        launch.attempts = 0;
        launch.marks = self.device + MARKS;
        // Marks are cleared before every run, so one number serves for all.
        launch.serial = 1;
        self.clear()?;
        loop {
            let first = launch.attempts == 0;
            self.set_stop(u32::from(first && turned_away))?;
            self.attempt(launch)?;
            if launch.attempts < MOST_CUTS {
                pause(Nanos(self.draw.below(self.moments.0.max(1))));
                self.set_stop(1)?;
            }
            let patience = Nanos(PATIENCE.0.saturating_add(self.span.0.saturating_mul(4)));
            if wait_for(self.run, patience).is_none() {
                return Some(if is_dead(self.control) { End::Failed } else { self.free(launch) });
            }
            if self.away()? == 0 {
                if launch.attempts == 0 {
                    // It was over before the word was raised.
                    self.moments = Nanos(self.moments.0 / 2);
                }
                return Some(End::Whole { cuts: launch.attempts as u8 });
            }
            launch.attempts += 1;
        }
    }

    fn clear(&self) -> Option<()> {
        let bytes = MARKS as usize + self.marks_bytes;
        // SAFETY: our own memory and stream.
        ok(unsafe { next::call::cuMemsetD8Async(self.device, 0, bytes, self.run) })?;
        wait_for(self.run, PATIENCE)
    }

    fn set_stop(&self, value: u32) -> Option<()> {
        ok(Operations::new().write(self.device, value).give_to(self.control))?;
        wait_for(self.control, PATIENCE)
    }

    /// Launches what has not run yet.
    fn attempt(&self, launch: &mut Launch) -> Option<()> {
        let away = self.device + AWAY;
        ok(Operations::new().write(away, 0).give_to(self.run))?;
        clear_cell(launch, self.run)?;
        ok(launch.make(self.run, self.device, away))
    }

    /// Blocks wait for some that were turned away: those are run beside them, and no stop turns them away again.
    fn free(&self, launch: &mut Launch) -> End {
        launch.attempts += 1;
        let made = clear_cell(launch, self.beside)
            .and_then(|()| ok(launch.make(self.beside, self.device + ZERO, self.device + FREED_AWAY)));
        let left = made.and_then(|()| wait_for(self.beside, FREED)).and_then(|()| wait_for(self.run, FREED));
        if left.is_some() { End::Freed } else { End::Stuck }
    }

    /// The number of the launch, if blocks of it were turned away; else zero.
    fn away(&self) -> Option<u32> {
        let mut away = 0_u32;
        // SAFETY: as many bytes on both sides; the call returns when they are there.
        ok(unsafe { next::call::cuMemcpyDtoH_v2((&raw mut away).cast(), self.device + AWAY, 4) })?;
        Some(away)
    }
}

/// Whether a stream without work does not even say so.
fn is_dead(stream: CUstream) -> bool {
    // SAFETY: a stream of ours.
    unsafe { next::call::cuStreamQuery(stream) != CUDA_SUCCESS }
}

/// The cell of an attempt must be zero before it.
fn clear_cell(launch: &Launch, stream: CUstream) -> Option<()> {
    if launch.rule == Rule::Plain {
        return Some(());
    }
    // SAFETY: a cell of ours, which no attempt under way uses.
    ok(unsafe { next::call::cuMemsetD8Async(launch.cell(), 0, 8, stream) })
}

impl Drop for Trial {
    fn drop(&mut self) {
        [self.run, self.control, self.beside]
            .into_iter()
            .filter(|stream| !stream.is_null())
            .for_each(end_stream);
        // SAFETY: our own memory, which nobody uses any more: all launches that knew it have ended.
        let _ = unsafe { next::call::cuMemFree_v2(self.device) };
    }
}

/// Too short a while to sleep, mostly.
fn pause(long: Nanos) {
    const SLEEP: Nanos = Nanos::from_millis(1);
    let began = board::now();
    while board::now().since(began) < long {
        if long > SLEEP {
            std::thread::sleep(SLEEP.into());
        } else {
            std::hint::spin_loop();
        }
    }
}
