//! One launch, as its blocks see it, and what runs it: the clock and the outcome of a turn.

use std::sync::{Arc, Mutex, PoisonError};

use model::{Dim3, Nanos};

use super::Kernel;
use crate::card::SmSet;
use crate::error::FaultReport;

/// A kernel with its geometry and arguments, shared by all of its blocks.
#[derive(Debug)]
pub struct Launch {
    pub kernel: Kernel,
    pub grid: Dim3,
    pub block: Dim3,
    pub dynamic_shared: u32,
    /// The parameter buffer in the layout of [`Kernel::parameters`]; shorter than the kernel's is padded with
    /// zeroes.
    pub parameters: Box<[u8]>,
    /// Address of the workspace of a cooperative launch (`%envreg1`, `%envreg2`), else 0. Its second 32-bit
    /// word is the grid barrier and must start as zero.
    pub grid_workspace: u64,
    pub grid_id: u64,
    /// Number of SMs, for `%nsmid`.
    pub sm_count: u32,
    /// The only SMs that its blocks may be on, if it is confined.
    pub sms: Option<SmSet>,
    /// Bytes of stack a thread may use beyond what the call graph says, as set by `cuCtxSetLimit`.
    pub stack_limit: u32,
    /// Where device-side `printf` goes.
    pub output: Arc<Output>,
}

/// Text printed by kernels of one context, waiting for the next synchronisation.
#[derive(Debug, Default)]
pub struct Output {
    text: Mutex<Vec<u8>>,
}

/// As on a card, output nobody collects is dropped once the buffer is full; this is CUDA's default size.
const OUTPUT_BYTES: usize = 1 << 20;

impl Output {
    /// Takes what has been printed so far.
    pub fn drain(&self) -> Vec<u8> {
        std::mem::take(&mut *self.text.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// False when there was no room.
    pub(crate) fn push(&self, text: &[u8]) -> bool {
        let mut buffer = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = buffer.len() + text.len() <= OUTPUT_BYTES;
        if fits {
            buffer.extend_from_slice(text);
        }
        fits
    }
}

/// The clocks a kernel can read, and the one by which it sleeps.
pub trait Clock {
    /// Context time, in which `nanosleep` is counted: it stands still while the context is off the GPU.
    fn now(&mut self) -> Nanos;
    /// The SM's clock, which `clock` and `clock64` read: it goes on, as on a card.
    fn ticks(&mut self) -> Nanos {
        self.now()
    }
    /// Told how many instructions were executed since it was last told, so that a clock need not be read to know
    /// that next to no time has passed.
    fn executed(&mut self, _instructions: u32) {}
    /// `%globaltimer`: nanoseconds since the Unix epoch.
    fn wall(&mut self) -> Nanos;
}

/// How a turn of a block ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// No warp can go on before `until` (context time).
    Sleeping {
        until: Nanos,
    },
    /// The budget is spent, or every warp that could run is polling memory.
    Runnable,
    /// Every warp waits for another that will never come: hangs, as on a card.
    Blocked,
    Faulted(Box<FaultReport>),
}
