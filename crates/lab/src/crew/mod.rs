//! The crew: worker processes that are started when they are needed and kept while they may be needed again.
//!
//! To load a framework and a model takes longer than to measure one, so a worker serves every run of a campaign that
//! wants the same tenants in the same surroundings, and ends after the last of them. How many live at once is bounded:
//! memory is, too. When there are too many, those go whose next use is furthest away.
//!
//! * `protocol`: the words
//! * `worker`: one process, and a conversation in which every wait has a bound
//! * `roster`: who lives, who is needed next, who goes
//! * `stop`: somebody wants an end

mod protocol;
mod roster;
mod stop;
mod worker;

pub use protocol::{Gpu, Order, Ran, Ready, ReadyTenant, Reply, Spec, Stream, TenantSpec, class_word};
pub use roster::{Place, Roster};
pub use stop::Stop;
pub(crate) use worker::die_with_parent;
pub use worker::{Start, Worker};
