//! How many streams may stand at gates at once.
//!
//! Streams share the hardware's queues, and one that waits at a gate holds up all others of its queue: also our own, which
//! would have to open the gate. On an H200 under MPS a client has two queues if it says nothing, and two waiting streams were
//! enough to stop everything for ever; with 8 queues, four stopped nobody else, and eight everybody. So there are fewer lanes
//! than queues, and work on streams that find no lane is held instead.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::control::LANES;
use crate::surroundings::variable;

/// What a client of MPS has that says nothing.
const BY_DEFAULT: usize = 2;
/// For our own streams and for copies.
const OTHERS: usize = 4;

/// Zero: not asked yet.
static LANES_AT_ONCE: AtomicUsize = AtomicUsize::new(0);

/// How many lanes a site may have.
#[inline]
pub fn lanes() -> usize {
    match LANES_AT_ONCE.load(Ordering::Relaxed) {
        0 => ask(),
        lanes => lanes,
    }
}

#[cold]
fn ask() -> usize {
    let served = variable(c"CUDA_MPS_PIPE_DIRECTORY").is_some();
    let queues = variable(c"CUDA_DEVICE_MAX_CONNECTIONS").and_then(|text| text.to_str().ok()?.parse().ok());
    let lanes = if served { lanes_for(queues.unwrap_or(BY_DEFAULT)) } else { LANES };
    LANES_AT_ONCE.store(lanes, Ordering::Relaxed);
    lanes
}

fn lanes_for(queues: usize) -> usize {
    queues.saturating_sub(OTHERS).clamp(1, LANES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_fewer_lanes_than_queues_and_always_one() {
        assert_eq!([0, 2, 8, 32, 1 << 40].map(lanes_for), [1, 1, 4, 28, LANES]);
    }
}
