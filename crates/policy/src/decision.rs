//! What a policy decides.
//!
//! A grant is a length, and a moment. The length: whatever can be taken off the GPU as fast as that may be started, because it
//! is gone soon enough whenever somebody comes. The moment: what takes longer may be started as well if it is off the GPU
//! again by then. A length of nought and no moment stop everybody; [`Nanos::MAX`] lets anything run. What lies between is
//! what the published systems have separate words for: a gap that is filled with what fits (a moment, the end of the gap),
//! a slack that is spent on short blocks beside a request (a length), an arrival that is expected (both).
//!
//! Seen from a moment ahead, a grant only ever shrinks. So a tenant that was let in may use it without asking for each launch,
//! and whoever is late to ask again is too strict, never too bold.

use model::Nanos;

/// Who may run, and what they may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    pub who: Who,
    /// What leaves the GPU as fast as this may be started at any time.
    pub longest: Nanos,
    /// What takes longer may be started if it will have left by this moment.
    pub until: Nanos,
    /// How much work, as time, one tenant may have handed over of which it does not know that it is done.
    pub in_flight: Nanos,
    /// And how many pieces of it: launches, or parts of one. Two keep the GPU busy without a host round trip between them:
    /// one runs, one waits behind it.
    pub pieces: u32,
    /// Ask again at this moment at the latest, even if nothing happens.
    pub again: Nanos,
    /// The latency tenant that goes first among those that have work; the others are as if one level lower.
    pub lead: Option<u32>,
    /// What may not be started may run all the same on so many SMs, in hundredths of all; nought: on none.
    pub confined: u32,
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
    /// What it has cannot be stopped in time; it has waited long enough to run a piece of it nevertheless.
    Waited,
}

/// What a tenant has handed over and not yet seen done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outstanding {
    pub pieces: u32,
    pub time: Nanos,
    /// The part of that time which would run to its end even if the tenant were stopped now.
    pub held: Nanos,
}

impl Decision {
    /// Nobody runs, until something happens or `again`.
    pub const fn nobody(why: Why, again: Nanos) -> Decision {
        Decision {
            who: Who::Nobody,
            longest: Nanos::ZERO,
            until: Nanos::ZERO,
            in_flight: Nanos::ZERO,
            pieces: 0,
            again,
            lead: None,
            confined: 0,
            why,
        }
    }

    /// Anything may run, until something happens.
    pub const fn anything(who: Who, in_flight: Nanos) -> Decision {
        Decision {
            who,
            longest: Nanos::MAX,
            until: Nanos::MAX,
            in_flight,
            pieces: u32::MAX,
            again: Nanos::MAX,
            lead: None,
            confined: 0,
            why: Why::Idle,
        }
    }

    /// Whether this seat is meant.
    pub fn names(&self, seat: u32) -> bool {
        match self.who {
            Who::Nobody => false,
            Who::One(one) => one == seat,
            Who::All => true,
        }
    }

    /// The longest that anything started at this moment may take to get off the GPU.
    pub fn longest_at(&self, at: Nanos) -> Nanos {
        self.longest.max(self.until.since(at))
    }

    /// Whether this seat may start, at this moment, what takes so long to get off.
    pub fn admits(&self, seat: u32, certificate: Nanos, at: Nanos) -> bool {
        let longest = self.longest_at(at);
        self.names(seat) && longest > Nanos::ZERO && certificate <= longest
    }

    /// Whether this seat may hand over, at this moment, one more piece behind what it has outstanding. What can only be held
    /// adds up: the last of it is off when all before it has run. Something may always be handed over when nothing is
    /// outstanding, however long it takes altogether: how long it would take to stop it is what counts.
    pub fn takes(&self, seat: u32, certificate: Nanos, piece: Nanos, before: Outstanding, at: Nanos) -> bool {
        let room = before.pieces == 0 || before.time + piece <= self.in_flight;
        room && before.pieces < self.pieces && self.admits(seat, before.held + certificate, at)
    }

    /// When a tenant with this certificate has to begin to leave by itself; [`Nanos::MAX`]: not before it is told to.
    pub fn leaves_at(&self, certificate: Nanos) -> Nanos {
        if certificate <= self.longest { Nanos::MAX } else { self.until.since(certificate) }
    }
}

impl Why {
    pub const ALL: [Why; 10] = [
        Why::Idle,
        Why::NothingToDo,
        Why::LatencyWork,
        Why::Quiet,
        Why::Gap,
        Why::ShortGap,
        Why::NearArrival,
        Why::Slack,
        Why::Solo,
        Why::Waited,
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
            Why::Waited => "waited",
        }
    }
}
