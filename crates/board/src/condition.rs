//! What a tenant says about itself: how it can be stopped, and why not better.

use std::sync::atomic::{AtomicU64, Ordering};

use model::Nanos;

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal, $sentence:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name { #[default] $($(#[$vdoc])* $variant,)* }

        impl $name {
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// For programs.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// For people.
            pub fn sentence(self) -> &'static str {
                match self { $($name::$variant => $sentence,)* }
            }

            fn number(self) -> u8 {
                u8::try_from($name::ALL.iter().position(|&one| one == self).unwrap_or(0)).unwrap_or(0)
            }

            fn of(number: u8) -> Option<$name> {
                $name::ALL.get(usize::from(number)).copied()
            }
        }
    };
}

numbered! {
    /// The means by which a tenant can be stopped.
    Rung {
        None = "none", "is not stopped";
        /// Between launches.
        Hold = "hold", "is stopped between launches";
        /// Between the blocks of a kernel.
        Guard = "guard", "is stopped between the blocks of a kernel";
        /// In the middle of a kernel.
        Switch = "switch", "is stopped in the middle of a kernel";
    }
}

numbered! {
    /// Why a tenant has the rung it has.
    Why {
        /// Nobody has said anything yet, or something that this version does not know.
        Unsaid = "unsaid", "has not said why";
        Ok = "ok", "all is as it should be";
        UnknownDriver = "unknown_driver", "this kernel driver has not been tried with ebb";
        NotPreloaded = "not_preloaded", "the library was not preloaded, so it did not see the driver's objects";
        Refused = "refused", "the driver refused to set the timeslice";
        NoBoard = "no_board", "there is no board, so nobody takes turns";
        SwitchedOff = "switched_off", "the switch was turned off by a setting";
        Mps = "mps", "under MPS all contexts share one timeslice";
        LatencyNeedsNone = "latency", "latency tenants are not stopped";
        /// In the shared domain, where the guard is all there is.
        Unguarded = "unguarded", "none of its kernels can be stopped between blocks; `ebb verdicts` says why";
        Unprepared = "unprepared", "its kernels were not prepared for the guard, which is off or came after it began as a latency tenant";
    }
}

numbered! {
    /// Whether a best-effort tenant has the short timeslice, with which it makes way for everybody.
    SliceState {
        Short = "short", "makes way for everybody";
        /// Somebody else may be on the GPU that nobody knows.
        Lengthened = "lengthened", "has a longer timeslice, because nothing got done with the short one: \
            somebody else may be on the GPU whom this daemon does not know";
        /// As the setting says that it should.
        Starving = "starving", "takes an ordinary timeslice for a tenth of the time, because its work stood still for `token.starve_after`";
    }
}

/// What a tenant says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    pub rung: Rung,
    pub why: Why,
    /// More about why, as a number: a status of the driver, for example.
    pub detail: u32,
    /// It works by the board alone: the daemon is gone.
    pub daemon_lost: bool,
    /// It holds everything, as it was told to.
    pub paused: bool,
    /// The timeslice that the driver accepted; `None`: its default.
    pub slice: Option<Nanos>,
    pub slice_state: SliceState,
}

const DAEMON_LOST: u8 = 1;
const PAUSED: u8 = 2;

/// A condition in the segment. All but the slice are one word, so that a reader never sees half of it.
#[repr(C)]
pub(crate) struct Said {
    word: AtomicU64,
    /// Nought: the driver's default.
    slice: AtomicU64,
}

impl Said {
    pub(crate) fn write(&self, condition: &Condition) {
        let lost = if condition.daemon_lost { DAEMON_LOST } else { 0 };
        let paused = if condition.paused { PAUSED } else { 0 };
        let [a, b, c, d] = condition.detail.to_le_bytes();
        let state = condition.slice_state.number();
        let bytes = [condition.rung.number(), condition.why.number(), lost | paused, state, a, b, c, d];
        self.slice.store(condition.slice.map_or(0, |slice| slice.0), Ordering::Relaxed);
        self.word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }

    /// What is said, as far as it makes sense.
    pub(crate) fn read(&self) -> Condition {
        let [rung, why, flags, state, a, b, c, d] = self.word.load(Ordering::Relaxed).to_le_bytes();
        let slice = self.slice.load(Ordering::Relaxed);
        Condition {
            rung: Rung::of(rung).unwrap_or_default(),
            why: Why::of(why).unwrap_or_default(),
            detail: u32::from_le_bytes([a, b, c, d]),
            daemon_lost: flags & DAEMON_LOST != 0,
            paused: flags & PAUSED != 0,
            slice: (slice != 0).then_some(Nanos(slice)),
            slice_state: SliceState::of(state).unwrap_or_default(),
        }
    }
}
