//! Twins: the rewritten kernels beside the program's own.
//!
//! A best-effort tenant of the shared domain launches, while somebody may want it to stop, not the kernel that the program
//! names but its *twin*, which has a prologue and one parameter more (`guard`). The program's own kernel stays as it was
//! loaded. To make a twin takes milliseconds to seconds: its image is found, unpacked, rewritten, loaded. That is the work
//! of the *smith*, a thread of this process. Until it has answered, and for kernels that it refuses, the original is
//! launched.
//!
//! * `place`: what a kernel's frame knows of its twin

mod place;

use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};

use cuda_abi::CUfunction;
use guard::{Parameter, Reason, Rule, Verdict};

use crate::frames::Frame;

pub use place::Place;

/// A kernel that can be stopped between its blocks.
pub struct Twin {
    /// A `CUkernel` of a library of ours.
    handle: usize,
    /// The kernel's own parameters, in order. The control words come behind them.
    pub parameters: &'static [Parameter],
    /// Where the control words lie in a packed buffer of parameters.
    pub control_offset: u32,
    /// The kernel that the program knows.
    pub frame: &'static Frame,
    /// The number of its verdict, which may become stricter.
    verdict: AtomicU8,
}

impl Twin {
    /// What to launch in place of the original: a kernel of a library, which any context takes for a function.
    pub fn kernel(&self) -> CUfunction {
        ptr::without_provenance_mut(self.handle)
    }

    /// The least strict rule under which it may be stopped.
    pub fn rule(&self) -> Rule {
        match Verdict::from_number(self.verdict.load(Ordering::Relaxed)) {
            Some(Verdict::Guard(rule)) => rule,
            _ => Rule::Ordered,
        }
    }
}

/// The twin of a kernel, if there is one by now. The first question for it has it made; nobody waits, but for tests that
/// want every launch guarded (`EBB_GUARD=now`).
#[inline]
pub fn of(frame: &'static Frame) -> Option<&'static Twin> {
    frame.place.twin()
}

/// Takes a twin out of use for good, in this process and in those to come.
pub fn demote(frame: &'static Frame, reason: Reason) {
    frame.place.refuse(reason);
}
