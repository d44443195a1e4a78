//! A user's own daemon makes room for the machine's.
//!
//! One that `ebb run` has started is there because there was no other. When the machine's daemon comes later and lets the user
//! in, it can do more: it knows all users' tenants, so they hear of each other. The user's own then ends, and its tenants find
//! the machine's by themselves within half a second (`ebb run` has told them where it would be); the GPU does not wait for
//! them meanwhile, nor they for it.
//!
//! Who names a runtime folder wants the daemon that is in it. And nobody can change the domain in which its contexts were made,
//! so in the shared domain, which has an MPS of its own, everybody stays.

use model::{Domain, Nanos};

use crate::{Place, client};

/// How often it is looked whether there is one.
const LOOK_EVERY: Nanos = Nanos::from_millis(1_000);
/// One that has another domain is not asked again so soon, and one that is slow to answer neither: our own tenants wait meanwhile,
/// for up to two seconds.
const ASK_AGAIN: Nanos = Nanos::from_millis(60_000);
const SLOW: Nanos = Nanos::from_millis(100);

/// Looks for the machine's daemon.
pub(super) struct MachineWatch {
    machine: Place,
    next: Nanos,
}

impl MachineWatch {
    pub fn new() -> MachineWatch {
        MachineWatch { machine: Place::machine(), next: Nanos::ZERO }
    }

    /// Whether it is there, and would have the tenants of this domain.
    pub fn has_come(&mut self, domain: Domain, now: Nanos) -> bool {
        if now < self.next || domain == Domain::Shared {
            return false;
        }
        self.next = now + LOOK_EVERY;
        if !self.machine.socket().exists() {
            return false;
        }
        let report = client::report(&self.machine);
        let after = board::now();
        let patient = report.is_ok() || after.since(now) > SLOW;
        self.next = after + if patient { ASK_AGAIN } else { LOOK_EVERY };
        report.is_ok_and(|report| report.daemon.domain == domain.to_string())
    }
}
