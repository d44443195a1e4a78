//! Who runs next, and for how long.
//!
//! A policy is a pure function from what is known to what is decided: it reads no clock, takes no lock, allocates nothing and
//! remembers nothing; what must be remembered is handed in and handed back. So the same code decides inside a tenant's process,
//! in the daemon, in tests and in a simulator, and a decision can be repeated from a log. Any view has a decision, also one
//! that makes no sense: what lies on a board was written by others.
//!
//! Each file is one policy and opens with its idea.
//!
//! * [`View`]: what is known; [`Decision`]: what is decided; [`decide`]: from the one to the other
//! * [`strict`]: best-effort work only when no latency tenant has any
//! * [`gaps`]: and in the gaps inside a request, what fits
//! * [`slo`]: as much as a latency tenant can bear, and the controller that finds out how much that is
//! * [`fair`]: exact shares, one best-effort tenant at a time
//! * [`deadline`]: among latency tenants, the earliest deadline first
//! * [`solo`]: a request now and then that is seen alone
//! * [`confine`]: beside a request, on some of the SMs
//! * [`aside`]: how one of the isolated domain keeps away, by a lever that has its price
//! * [`domain`]: which domain and which rung suit a tenant
//! * [`token`]: which best-effort seat puts work on the GPU next
//! * [`mod@slice`]: how long the hardware lets a context run before it looks for another; [`lease`]: when a best-effort
//!   tenant gives up its short one

#![no_std]
#![forbid(unsafe_code)]

pub mod aside;
pub mod confine;
pub mod deadline;
mod decision;
pub mod domain;
pub mod fair;
pub mod gaps;
mod grant;
pub mod lease;
pub mod slice;
pub mod slo;
pub mod solo;
pub mod strict;
pub mod token;
mod view;

pub use decision::{Decision, Outstanding, Who, Why};
pub use model::{Dials, Forecast, Kind};
pub use view::{Activity, BestEffort, Latency, View};

/// What the policy that the dials name decides.
pub fn decide(view: &View) -> Decision {
    let view = &View { dials: view.dials.sane(), ..*view };
    let decision = solo::keep_away(view).unwrap_or_else(|| match view.dials.kind {
        Kind::Strict => strict::decide(view),
        Kind::Gaps => gaps::decide(view),
        Kind::Slo => slo::decide(view),
        Kind::Fair => fair::decide(view),
        Kind::Deadline => deadline::decide(view),
    });
    // Who leads is not a question of whether best-effort work stays away.
    let lead = if view.dials.kind == Kind::Deadline { deadline::lead(view) } else { None };
    Decision { lead, confined: confine::share(view, &decision), ..decision }
}
