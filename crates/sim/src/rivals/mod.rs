//! The published systems as schedulers, so that they can be compared on equal terms: the same card, the same tenants, the same
//! moments. Each file is one of them, and opens with its idea, where that was read, and its known weakness.
//!
//! They are as their authors describe them, not as anybody's code: what a paper leaves open is filled in to its advantage (no host
//! is slow, no kernel refuses to be transformed).

mod fikit;
mod hummingbird;
mod reef;
mod tally;

use model::{Class, Nanos};
use policy::{Activity, Decision, Who, Why};

pub use fikit::Fikit;
pub use hummingbird::Hummingbird;
pub use reef::Reef;
pub use tally::Tally;

use crate::{Facts, Scene, Scheduler};

/// A published system, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rival {
    Fikit,
    Hummingbird,
    Tally,
    Reef,
    /// REEF on NVIDIA's cards, where it cannot kill.
    ReefN,
}

impl Rival {
    pub const ALL: [Rival; 5] = [Rival::Fikit, Rival::Hummingbird, Rival::Tally, Rival::Reef, Rival::ReefN];

    pub fn name(self) -> &'static str {
        match self {
            Rival::Fikit => "fikit",
            Rival::Hummingbird => "hummingbird",
            Rival::Tally => "tally",
            Rival::Reef => "reef",
            Rival::ReefN => "reef-n",
        }
    }

    /// As it is when it starts.
    pub fn scheduler(self) -> Box<dyn Scheduler> {
        match self {
            Rival::Fikit => Box::new(Fikit::default()),
            Rival::Hummingbird => Box::new(Hummingbird),
            Rival::Tally => Box::new(Tally),
            Rival::Reef => Box::new(Reef::killing()),
            Rival::ReefN => Box::new(Reef::waiting()),
        }
    }
}

fn latency<'a>(scene: &Scene<'a>) -> impl Iterator<Item = &'a Facts> + Clone {
    scene.tenants.iter().filter(|facts| facts.class == Class::Latency)
}

fn active<'a>(scene: &Scene<'a>) -> impl Iterator<Item = &'a Facts> + Clone {
    latency(scene).filter(|facts| matches!(facts.activity, Activity::Active { .. }))
}

/// Since when no latency tenant has had anything on the GPU; `None`: somebody has.
fn idle_since(scene: &Scene) -> Option<Nanos> {
    let mut last = Nanos::ZERO;
    for facts in latency(scene) {
        let since = match facts.activity {
            Activity::Idle { since } => since.unwrap_or_default(),
            // In a gap: since its last kernel ended.
            Activity::Active { .. } if facts.next_call.is_some() => facts.busy_until,
            Activity::Active { .. } => return None,
        };
        last = last.max(since);
    }
    Some(last)
}

fn anything(why: Why) -> Decision {
    Decision { why, ..Decision::anything(Who::All, Nanos::MAX) }
}

fn nobody() -> Decision {
    Decision::nobody(Why::LatencyWork, Nanos::MAX)
}
