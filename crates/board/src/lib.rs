//! The shared segment of one GPU.
//!
//! All processes that share a GPU under ebb map one *board*. Each has a *seat* on it, given by the daemon, and from then on
//! they agree among themselves: who has the *token* (the right of one best-effort seat to put work on the GPU), who wants
//! it next, who has work that must not wait. The daemon is not on that path. It seats and unseats, changes terms, reads; it
//! may be killed, and everybody goes on.
//!
//! # Whom to trust
//!
//! Nobody. The segment is written by all of its tenants, and any of them may be broken or hostile. So every word is an
//! atomic and any bytes are a value; every number is brought within what can be before it is used; nothing is waited for
//! without a bound; and whoever is handed a file that is said to be a board makes certain that its size cannot change
//! before touching it. A hostile tenant can still lie about itself, take more than its share, and spoil the round for the
//! others, who then share the GPU as badly as they would without ebb. It cannot crash them, read their memory or hang
//! them, nor tell them who they are: class, limits, domain and pauses come on a tenant's own connection ([`link`]). Who must not be able to do even that needs another user's daemon, or a board for each user.
//!
//! # Death
//!
//! Any process may be killed at any instruction. No state is half of a pair whose other half could be missing: each
//! change that others depend on is one compare-and-exchange of one word. What a dead process held is freed by the daemon,
//! and if there is none, by whoever next wants it, after a grace.
//!
//! # A guest
//!
//! The tenant's half runs inside other people's programs: no heap, no lock, system calls only to sleep and to wake.
//!
//! * [`Board`], [`Settings`]: the segment, and the daemon's half; [`StrangersSeen`]: who else is on the GPU
//! * [`Seat`], [`Turn`], [`UsedTime`], [`Claim`]: the tenant's half
//! * [`StopWord`]: how a latency tenant stops a best-effort one where both are on the GPU at once
//! * [`Terms`], [`Change`]: what the daemon says of a seat, here as a copy for others; [`Condition`]: what a tenant says of itself
//! * [`model::Dials`]: how boldly best-effort work uses the GPU; [`Outlook`], [`Need`], [`Experience`]: what tenants say of what
//!   they expect, want and have seen, as advice; [`LatencySeat`], [`BestEffortSeat`]: as a policy reads it
//! * [`Tally`], [`Histogram`]: what is counted; [`Reading`]: all of it, checked
//! * [`link`]: how a tenant comes by its seat
//!
//! Inside: `layout` (the bytes), `segment` (the memory), `standing` (whose seat), `token` (whose turn), `activity` (who has
//! work that must not wait, and who stands still for it), `memory` (what the processes of a tenant have of it together), `bell`
//! (sleep and wake).

mod activity;
mod bell;
mod board;
mod claim;
mod condition;
mod dials;
mod error;
mod experience;
mod histogram;
mod landmarks;
mod layout;
pub mod link;
mod memory;
#[cfg(all(test, loom))]
mod models;
mod need;
mod outlook;
mod reading;
mod seat;
mod seat_set;
mod segment;
mod settings;
mod standing;
mod stop_word;
mod strangers;
mod sync;
mod tally;
mod terms;
mod text;
mod token;

pub use board::{Board, Gpu, Occupant, Place};
pub use claim::Claim;
pub use condition::{Condition, Rung, SliceState, Why};
pub use error::Error;
pub use experience::{Experience, Spans};
pub use histogram::{BUCKETS, Histogram, Snapshot};
pub use landmarks::{BOARD_BYTES, Landmark};
pub use layout::{SEATS, VERSION};
pub use need::{BestEffortSeat, Decided, Need};
pub use outlook::{LatencySeat, Outlook};
pub use reading::Reading;
pub use seat::{Seat, Turn, UsedTime};
pub use settings::Settings;
pub use stop_word::{HANDLE_BYTES, StopWord};
pub use strangers::StrangersSeen;
pub use tally::{Count, Figures, Tally};
pub use terms::{Change, HIGHEST_PRIORITY, HIGHEST_WEIGHT, Terms};
pub use text::Label;

/// The clock of all boards: time since the machine started.
#[cfg(not(all(test, loom)))]
pub fn now() -> model::Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    model::Nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
}

/// In the model checker no time passes, so that all its tries are alike.
#[cfg(all(test, loom))]
pub fn now() -> model::Nanos {
    models::NOW
}
