//! The token, as the board keeps it: one best-effort tenant at a time, for a quantum, by weight.
//!
//! In the product this is not a policy's business: keepers pass it among each other. Here whoever schedules the isolated domain
//! holds one.

use model::Nanos;
use policy::token::{Claim, choose};
use policy::{Decision, Who};

use crate::{Facts, Scene, Scheduler};

/// How long the token stays with one tenant while others want it, as on the board.
pub const QUANTUM: Nanos = Nanos::from_millis(30);

#[derive(Clone, Debug, Default)]
pub struct Token {
    holder: Option<u32>,
    since: Nanos,
}

impl Token {
    /// Who has it now; it is passed on if it is time to.
    pub fn holder(&mut self, scene: &Scene) -> Option<u32> {
        let wants = |seat: u32| scene.tenants.iter().any(|facts| facts.seat == seat && facts.wants);
        let stays = self.holder.is_some_and(|seat| wants(seat) && scene.now < self.since + QUANTUM);
        if !stays {
            let claimants = || scene.tenants.iter().filter(|facts| facts.wants);
            let claim =
                |facts: &Facts| Claim { virtual_time: facts.virtual_time, wanted_since: facts.wanted_since };
            let next = choose(claimants().map(claim)).and_then(|place| claimants().nth(place));
            self.holder = next.map(|facts| facts.seat);
            self.since = scene.now;
        }
        self.holder
    }

    /// When to look again whether it is to be passed on; [`Nanos::MAX`]: nobody waits for it.
    pub fn again(&self, scene: &Scene) -> Nanos {
        let others = scene.tenants.iter().any(|facts| facts.wants && Some(facts.seat) != self.holder);
        if others { self.since + QUANTUM } else { Nanos::MAX }
    }
}

/// The isolated domain without a policy: whoever has the token runs whenever the hardware lets it.
#[derive(Clone, Debug, Default)]
pub struct Switch(Token);

impl Scheduler for Switch {
    fn name(&self) -> &'static str {
        "switch"
    }

    fn asks_in_gaps(&self) -> Option<Nanos> {
        None
    }

    fn decide(&mut self, scene: &Scene) -> Decision {
        let who = self.0.holder(scene).map_or(Who::Nobody, Who::One);
        Decision { again: self.0.again(scene), ..Decision::anything(who, Nanos::MAX) }
    }
}
