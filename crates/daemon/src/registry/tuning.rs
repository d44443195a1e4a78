//! The controllers of all GPUs, and when they look.

use model::{Class, Kind, Nanos};

use super::{BoardKey, Registry, Sitting, Table};
use crate::configuration::Trace;
use crate::controller::{LOOK_EVERY, Unattainable};
use crate::traces::Member;

/// How often is looked where there is nothing to turn.
const SELDOM: Nanos = Nanos::from_millis(1_000);

impl Registry {
    /// Lets every controller look whose time has come; what there is to say about it.
    pub fn look(&mut self, now: Nanos) -> Vec<String> {
        let due: Vec<_> = self.tables.keys().filter(|key| self.pace(**key).is_some()).copied().collect();
        let mut sentences = Vec::new();
        for key in due {
            let pace = self.pace(key).unwrap_or(SELDOM);
            let Some(table) = self.tables.get_mut(&key) else { continue };
            if table.controller.looks_at(pace) > now {
                continue;
            }
            let policy = self.configuration.policy_of(key.gpu);
            let found = table.controller.look(&table.board, &policy, now);
            sentences.extend(found.iter().map(|one| self.sentence(key, one)));
        }
        sentences
    }

    /// Of each GPU where a request was late since this was last asked: the processes that share it.
    pub fn take_late(&mut self) -> Vec<Vec<Member>> {
        let late: Vec<_> = self
            .tables
            .iter_mut()
            .filter_map(|(key, table)| table.controller.take_late().then_some(*key))
            .collect();
        let members = |key| {
            let there = self.sittings.values().filter(move |sitting| sitting.board == key);
            there.map(|sitting| Member { pid: sitting.pid, user: sitting.user }).collect()
        };
        late.into_iter().map(members).collect()
    }

    /// What the configuration says of traces.
    pub fn trace(&self) -> Trace {
        self.configuration.trace
    }

    /// When a controller wants to look next.
    pub fn next_look(&self) -> Option<Nanos> {
        let looks =
            self.tables.iter().filter_map(|(key, table)| Some(table.controller.looks_at(self.pace(*key)?)));
        looks.min()
    }

    /// How often is looked at a GPU: often where dials are turned, seldom where there is only something to be told, and not
    /// at all where there is no latency tenant.
    fn pace(&self, key: BoardKey) -> Option<Nanos> {
        let of_class = |class| {
            let mut there = self.sittings.values().filter(|sitting: &&Sitting| sitting.board == key);
            there.any(|sitting| sitting.granted.class == class)
        };
        if !of_class(Class::Latency) {
            return None;
        }
        let turns = self.configuration.policy_of(key.gpu).kind == Kind::Slo && of_class(Class::BestEffort);
        Some(if turns { LOOK_EVERY } else { SELDOM })
    }

    fn sentence(&self, key: BoardKey, found: &Unattainable) -> String {
        let Unattainable { place, slo, alone } = *found;
        let of_place = |sitting: &&Sitting| sitting.board == key && sitting.place == place;
        let called = self.sittings.values().find(of_place);
        let name = called.map_or_else(String::new, |sitting| format!("{} ({}) ", sitting.name, sitting.pid));
        format!(
            "{name}cannot keep its objective even alone: p99 should be below {slo} and is {alone} alone; \
             it is held against what it takes alone instead"
        )
    }

    /// The policy of a GPU, and how its dials stand.
    pub(super) fn policy(&self, gpu: board::Gpu, table: &Table) -> crate::report::Policy {
        let (dials, policy) = (table.board.dials(), self.configuration.policy_of(gpu));
        crate::report::Policy {
            kind: dials.kind.name().to_owned(),
            level: table.controller.level(&policy),
            highest_level: policy::slo::LEVELS - 1,
            quiet_ns: dials.quiet.0,
            threshold_ns: dials.threshold.0,
            in_flight_ns: dials.in_flight.0,
            beside_ns: dials.beside.0,
            confine_percent: dials.confine,
            solo_share_permille: dials.solo_share,
            tolerance_permille: table.board.settings().tolerance,
        }
    }
}
