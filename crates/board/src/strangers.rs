//! Who is on the GPU besides the tenants of a board, as far as the daemon can see.

use std::sync::atomic::{AtomicU32, Ordering};

/// What the daemon found when it last looked who is on the GPU. By default nobody has looked, and anybody may be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrangersSeen {
    /// All processes on the GPU are known. Otherwise some are hidden, in another container for instance.
    pub all_known: bool,
    /// There are some to which best-effort work yields: programs without ebb, and latency tenants of other daemons.
    pub to_yield_to: bool,
    /// Those to which it yields keep the GPU busy, or may do so: nothing is left for others. Who is on the GPU only now and then
    /// keeps nobody from it.
    pub fill: bool,
    /// There are best-effort tenants of other daemons, with work. They take turns with ours by the GPU's lock, where both have
    /// the same.
    pub best_effort: bool,
}

const ALL_KNOWN: u32 = 1;
const TO_YIELD_TO: u32 = 2;
const BEST_EFFORT: u32 = 4;
const FILL: u32 = 8;

/// The same in the segment.
#[repr(transparent)]
pub(crate) struct StrangersWord(AtomicU32);

impl StrangersWord {
    pub(crate) fn write(&self, seen: StrangersSeen) {
        let bit = |is: bool, bit: u32| if is { bit } else { 0 };
        let word = bit(seen.all_known, ALL_KNOWN)
            | bit(seen.to_yield_to, TO_YIELD_TO)
            | bit(seen.best_effort, BEST_EFFORT)
            | bit(seen.fill, FILL);
        self.0.store(word, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> StrangersSeen {
        let word = self.0.load(Ordering::Relaxed);
        StrangersSeen {
            all_known: word & ALL_KNOWN != 0,
            to_yield_to: word & TO_YIELD_TO != 0,
            best_effort: word & BEST_EFFORT != 0,
            fill: word & FILL != 0,
        }
    }
}
