//! Device memory, which the processes of a tenant share under one limit.
//!
//! Every seat says how much its process has, and how much more it is just asking for. A process that wants more says so
//! first, then looks at what its siblings say, and takes it back if all of it together is too much. Because everybody says
//! before looking, of two who ask at once at least one sees the other: together they never go beyond the limit. Both may
//! see each other, and neither would get what one of them could have; so who finds that it is only others' *asking* that is
//! in its way lets them decide and looks again: the one in the lowest seat first.
//!
//! What a dead process had goes with its seat.

use model::Bytes;

use crate::layout;
use crate::seat::Seat;
use crate::standing::Standing;
use crate::sync::{AtomicU64, Ordering, fence, yield_now};

/// In the segment, in bytes.
#[repr(C)]
pub(crate) struct Taken {
    used: AtomicU64,
    /// On top of it, for as long as it takes to find out whether it may be.
    asking: AtomicU64,
}

/// So often somebody looks whether others have decided. Each look lasts a moment; who is stopped in the middle of asking
/// keeps its siblings waiting no longer than this.
const LOOKS: u32 = 256;

impl Taken {
    #[cfg(all(test, loom))]
    pub(crate) fn new() -> Taken {
        Taken { used: AtomicU64::new(0), asking: AtomicU64::new(0) }
    }

    pub(crate) fn clear(&self) {
        self.used.store(0, Ordering::Relaxed);
        self.asking.store(0, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> Bytes {
        Bytes(self.used.load(Ordering::Relaxed))
    }

    /// Says what is asked for, before looking at what others say.
    pub(crate) fn say_asking(&self, more: u64) {
        self.asking.store(more, Ordering::Relaxed);
        // SYNC(memory-ask): said before looked. Of two seats that ask, the one whose fence is second sees the other.
        fence(Ordering::SeqCst);
    }

    /// Asks no longer; `used` is what it has now, if that has changed.
    pub(crate) fn settle(&self, used: Option<u64>) {
        // Said to be used before it is no longer asked for: it may count twice, never not at all.
        if let Some(used) = used {
            self.used.store(used, Ordering::Relaxed);
        }
        // SYNC(memory-settle): who sees that nothing is asked sees what is used.
        self.asking.store(0, Ordering::Release);
    }

    /// What is used, and what is asked for.
    pub(crate) fn look(&self) -> (u64, u64) {
        // SYNC(memory-settle): pairs with the store in `settle`, so it is looked at first.
        let asking = self.asking.load(Ordering::Acquire);
        (self.used.load(Ordering::Relaxed), asking)
    }
}

/// What the siblings of a seat say.
#[derive(Clone, Copy, Default)]
struct Siblings {
    used: u64,
    asking: u64,
    /// The lowest seat among those who ask.
    first: Option<u16>,
}

impl Seat {
    /// Says how much memory this process has now.
    pub fn say_memory(&self, used: Bytes) {
        if self.is_mine() {
            self.own().heart.memory.used.store(used.0, Ordering::Relaxed);
        }
    }

    /// Whether a process that has `used` may have `more`, when its tenant may have `limit`. If so, it is said that it has.
    pub fn ask_memory(&self, used: Bytes, more: Bytes, limit: Bytes) -> bool {
        let (own, wanted) = (&self.own().heart.memory, used.0.saturating_add(more.0));
        let fits = |others: u64| wanted.saturating_add(others) <= limit.0;
        let first = |siblings: &Siblings| siblings.first.is_none_or(|first| first > self.place().seat);
        let (mut granted, mut gives_way) = (false, false);
        for _ in 0..LOOKS {
            if gives_way && !first(&self.siblings()) {
                yield_now();
                continue;
            }
            own.say_asking(more.0);
            let siblings = self.siblings();
            granted = fits(siblings.used.saturating_add(siblings.asking));
            if granted || !fits(siblings.used) {
                break;
            }
            // In the way is only what others ask for. The first of us keeps asking; the others are silent until it has
            // its answer.
            gives_way = !first(&siblings);
            if gives_way {
                own.settle(None);
            }
            yield_now();
        }
        own.settle(granted.then_some(wanted));
        granted
    }

    /// What the other processes of this tenant have on this GPU.
    pub fn memory_of_siblings(&self) -> Bytes {
        Bytes(self.siblings().used)
    }

    fn siblings(&self) -> Siblings {
        let tenant = self.own().tenant.load(Ordering::Relaxed);
        let others = self.board().layout.used().iter().zip(0u16..);
        let others = others.filter(|(_, number)| *number != self.place().seat);
        let siblings = others.filter(|(seat, _)| is_of(seat, tenant));
        siblings.fold(Siblings::default(), |sum, (seat, number)| {
            let (used, asking) = seat.heart.memory.look();
            Siblings {
                used: sum.used.saturating_add(used),
                asking: sum.asking.saturating_add(asking),
                first: sum.first.or((asking != 0).then_some(number)),
            }
        })
    }
}

fn is_of(seat: &layout::Seat, tenant: u64) -> bool {
    Standing::of(&seat.standing).is_taken() && seat.tenant.load(Ordering::Relaxed) == tenant
}
