//! What a policy decides.
//!
//! A grant is a length: nothing may be started now that would take longer than that to get off the GPU again. Nought stops
//! everybody; [`Nanos::MAX`] lets anything run. What lies between is what the published systems have separate words for: a
//! gap that is filled with what fits, a slack that is spent on short blocks beside a request.

use model::Nanos;

/// Who may run, how long what they start may last, and until when this holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub who: Who,
    /// Nothing may be started whose certificate is longer.
    pub longest: Nanos,
    /// From this moment on what was started must be on its way off: it is stopped then if nobody asks before.
    pub until: Nanos,
    /// Ask again at this moment at the latest, even if nothing happens.
    pub again: Nanos,
    /// The latency tenant that goes first among those that have work; the others are as if one level lower.
    pub lead: Option<u32>,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    Nobody,
    /// The best-effort tenant of this seat.
    One(u32),
    All,
}

/// The reason of a decision, for whoever asks why a tenant does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// No latency tenant has work, and none is about to.
    Idle,
    /// Nobody wants to run.
    NothingToDo,
    /// A latency tenant has work.
    LatencyWork,
    /// A latency tenant had work until a moment ago.
    Quiet,
    /// A latency tenant leaves the GPU alone for a while, inside a request.
    Gap,
    /// A gap that is too short to be used.
    ShortGap,
    /// A latency tenant's next request is near: only what can be stopped in time is started.
    NearArrival,
    /// A latency tenant has slack that short blocks may use.
    Slack,
    /// Kept away so that a request can be seen as it is alone.
    Solo,
}

impl Decision {
    /// Nobody runs, until something happens or `again`.
    pub const fn nobody(why: Why, again: Nanos) -> Decision {
        Decision { who: Who::Nobody, longest: Nanos::ZERO, until: Nanos::MAX, again, lead: None, why }
    }

    /// Whether what takes so long to get off may be started by this seat.
    pub fn admits(&self, seat: u32, certificate: Nanos) -> bool {
        let named = match self.who {
            Who::Nobody => false,
            Who::One(one) => one == seat,
            Who::All => true,
        };
        named && certificate <= self.longest && self.longest > Nanos::ZERO
    }
}

impl Why {
    pub const ALL: [Why; 9] = [
        Why::Idle,
        Why::NothingToDo,
        Why::LatencyWork,
        Why::Quiet,
        Why::Gap,
        Why::ShortGap,
        Why::NearArrival,
        Why::Slack,
        Why::Solo,
    ];

    /// In a word, as files and programs name it.
    pub fn name(self) -> &'static str {
        match self {
            Why::Idle => "idle",
            Why::NothingToDo => "nothing-to-do",
            Why::LatencyWork => "latency-work",
            Why::Quiet => "quiet",
            Why::Gap => "gap",
            Why::ShortGap => "short-gap",
            Why::NearArrival => "near-arrival",
            Why::Slack => "slack",
            Why::Solo => "solo",
        }
    }
}
