//! The program held still, and the GPU quiet.
//!
//! A trial takes memory back to what it was, more than once. What another thread did to it meanwhile would be lost. So in a
//! process with trials every call that may change memory, or end it, is counted while it is under way, and waits while
//! there is a trial. A process without trials pays a load.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cuda_abi::{CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUevent};
use model::Nanos;
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::guard::driver::{self, ok};
use crate::guard::order::{self, Touch};
use crate::{hooks, next};

/// How long others may take to come back from the driver.
const PATIENCE: Nanos = Nanos::from_millis(2_000);

/// Calls under way.
static INSIDE: AtomicU32 = AtomicU32::new(0);
static CLOSED: AtomicU32 = AtomicU32::new(NO);
const NO: u32 = 0;
const YES: u32 = 1;

/// Whether the function of that name may change or end memory that kernels reach.
pub const fn disturbs_trials(name: &str) -> bool {
    hooks::hands_over_work(name)
        || order::begins_one(name, &["cuLaunchKernel", "cuStreamWriteValue", "cuStreamBatchMemOp"])
        || order::contains(name, "Async")
        || matches!(order::touch(name), Touch::Ends | Touch::EndsStreams)
}

/// A call that is under way.
pub struct Inside(());

impl Drop for Inside {
    fn drop(&mut self) {
        leave();
    }
}

/// A thread is about to make a call that counts. What it is given is held until the driver has answered.
#[inline(always)]
pub fn pass() -> Option<Inside> {
    if super::is_asked() { Some(enter()) } else { None }
}

/// SYNC(still): a thread counts itself, then looks whether there is a trial; who makes a trial says so, then looks at the
/// count. All four in one order, so either the thread finds the trial or the trial finds the thread.
fn enter() -> Inside {
    /// Longer than a trial of what may be large and slow. Who has waited so long goes on: better a trial that is spoilt
    /// than a program that hangs.
    const SECONDS: u32 = 120;
    for _ in 0..SECONDS {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        if CLOSED.load(Ordering::SeqCst) == NO {
            return Inside(());
        }
        leave();
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        let _ = futex::wait(&CLOSED, futex::Flags::PRIVATE, YES, Some(&second));
    }
    INSIDE.fetch_add(1, Ordering::SeqCst);
    Inside(())
}

fn leave() {
    INSIDE.fetch_sub(1, Ordering::SeqCst);
}

/// As long as it lives, no other thread is inside, and none comes in.
pub struct Still(());

impl Still {
    /// For a thread that is inside itself. `None`: others do not come back. What the GPU has been given may go on, and has a
    /// gate behind it where it may be cut.
    pub fn hold() -> Option<Still> {
        // It would wait for itself, and two that want to be alone for each other.
        leave();
        let began = board::now();
        let is_late = || board::now().since(began) > PATIENCE;
        // SYNC(still): see `enter`.
        while CLOSED.compare_exchange(NO, YES, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            nap();
            if is_late() {
                std::mem::forget(enter());
                return None;
            }
        }
        let still = Still(());
        while INSIDE.load(Ordering::SeqCst) != 0 {
            nap();
            if is_late() {
                return None;
            }
        }
        order::gate_all();
        Some(still)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        CLOSED.store(NO, Ordering::SeqCst);
        let _ = futex::wake(&CLOSED, futex::Flags::PRIVATE, i32::MAX.unsigned_abs());
        // The call in which the trial was made goes on.
        std::mem::forget(enter());
    }
}

/// In the child of a fork, where nobody is inside.
pub fn in_child() {
    INSIDE.store(0, Ordering::Relaxed);
    CLOSED.store(NO, Ordering::Relaxed);
}

fn nap() {
    std::thread::sleep(Duration::from_micros(20));
}

/// Asks again and again until something is so. `None`: it is not within this time.
pub fn wait_until(at_most: Nanos, mut is_so: impl FnMut() -> Option<bool>) -> Option<()> {
    const SPIN: Nanos = Nanos::from_millis(1);
    let began = board::now();
    while !is_so()? {
        let waited = board::now().since(began);
        if waited > at_most {
            return None;
        }
        if waited > SPIN {
            nap();
        }
    }
    Some(())
}

/// Waits for everything that was given to the thread's context. Behind launches that may be cut stands a gate.
pub fn wait_for_all(at_most: Nanos) -> Option<()> {
    const WITHOUT_TIMES: u32 = 2;
    let mut event: CUevent = ptr::null_mut();
    // SAFETY: a place for the answer.
    ok(unsafe { next::call::cuEventCreate(&mut event, WITHOUT_TIMES) })?;
    let context = ptr::with_exposed_provenance_mut(driver::current_context());
    // SAFETY: the thread's own context, and an event of ours.
    let recorded = ok(unsafe { next::call::cuCtxRecordEvent(context, event) });
    let happened = recorded.and_then(|()| {
        wait_until(at_most, || {
            // SAFETY: an event of ours.
            match unsafe { next::call::cuEventQuery(event) } {
                CUDA_SUCCESS => Some(true),
                CUDA_ERROR_NOT_READY => Some(false),
                _ => None,
            }
        })
    });
    // SAFETY: an event of ours, which nobody uses any more.
    let _ = unsafe { next::call::cuEventDestroy_v2(event) };
    happened
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_or_ends_memory_counts() {
        let counted =
            ["cuLaunchKernel_ptsz", "cuMemcpyHtoD_v2", "cuMemsetD8_v2", "cuMemFree_v2", "cuGraphLaunch"];
        assert!(counted.into_iter().all(disturbs_trials));
        assert!(
            ["cuMemFreeAsync", "cuModuleUnload", "cuStreamWriteValue32_v2"].into_iter().all(disturbs_trials)
        );
    }

    #[test]
    fn what_only_waits_or_asks_does_not() {
        let others = ["cuStreamSynchronize", "cuCtxSynchronize", "cuEventRecord", "cuMemAlloc_v2", "cuInit"];
        assert!(!others.into_iter().any(disturbs_trials));
    }

    #[test]
    fn what_never_comes_to_be_is_not_waited_for_for_ever() {
        assert_eq!(wait_until(Nanos::from_millis(2), || Some(false)), None);
        assert_eq!(wait_until(Nanos::from_millis(2_000), || None), None);
        assert_eq!(wait_until(Nanos::ZERO, || Some(true)), Some(()));
    }
}
