//! Whether boards still hold what we wrote there.
//!
//! Everybody who sits at a board can write all of it. What only the daemon writes and tenants go by is therefore held against
//! the books now and then, put back where it differs, and told. Who did it cannot be known, for memory has no author; but it
//! is one of those who sit there.

use std::collections::{BTreeMap, BTreeSet};

use board::{Occupant, Reading, Terms};
use model::Nanos;

use super::{BoardKey, Registry, Sitting};
use crate::uuid;

/// How often is looked while somebody sits somewhere.
const EVERY: Nanos = Nanos::from_millis(2_000);

/// After somebody has left, boards are looked at sooner: whatever it wrote there is the last of it. How much sooner is
/// bounded, since anybody can come and leave all the time.
const AFTER_A_DEPARTURE: Nanos = Nanos::from_millis(100);

/// So many of those who may have done it are named.
const NAMED: usize = 8;

impl Registry {
    /// Looks at all boards if it is time, and says what was put back.
    pub fn inspect_if_due(&mut self, now: Nanos) -> Vec<String> {
        match self.next_inspection() {
            Some(due) if due <= now => self.inspect(now),
            _ => Vec::new(),
        }
    }

    pub fn next_inspection(&self) -> Option<Nanos> {
        let span = if self.departed { AFTER_A_DEPARTURE } else { EVERY };
        (!self.sittings.is_empty()).then_some(self.inspected + span)
    }

    /// Looks at all boards now.
    pub fn inspect(&mut self, now: Nanos) -> Vec<String> {
        self.inspected = now;
        self.departed = false;
        let keys: Vec<BoardKey> = self.tables.keys().copied().collect();
        keys.into_iter().filter_map(|key| self.inspect_one(key)).collect()
    }

    fn inspect_one(&mut self, key: BoardKey) -> Option<String> {
        let mut found = self.mend_header(key);
        if self.mend_seats(key) {
            found.push("what is granted to whom");
        }
        if self.free_strangers(key) {
            found.push("seats that nobody was given");
        }
        if found.is_empty() {
            return None;
        }
        let table = self.tables.get_mut(&key)?;
        table.tampered += 1;
        table.board.announce();
        let there = self.sittings.values().filter(|sitting| sitting.board == key);
        let called = there.map(|one| format!("{} (process {} of user {})", one.name, one.pid, one.user));
        Some(format!(
            "the board of {} was written over and put back: {}; by one of {}",
            uuid::write(key.gpu),
            found.join(", "),
            called.take(NAMED).collect::<Vec<_>>().join(", ")
        ))
    }

    /// What holds for all seats.
    fn mend_header(&self, key: BoardKey) -> Vec<&'static str> {
        let Some(table) = self.tables.get(&key) else { return Vec::new() };
        let (mut found, gpu) = (Vec::new(), key.gpu);
        let policy = self.configuration.policy_of(gpu);
        let settings = policy.settings(self.configuration.token).sane();
        if !table.board.is_whole() || table.board.gpu() != gpu {
            found.push("what it is");
        }
        if table.board.settings() != settings {
            found.push("its settings");
        }
        if !found.is_empty() {
            table.board.restore(gpu, &settings);
        }
        let dials = table.controller.dials(&policy, self.domain()).sane();
        if table.board.dials() != dials {
            found.push("its dials");
            table.board.set_dials(&dials);
        }
        found
    }

    /// Who sits where, with which terms. A seat that is no longer taken is not taken again: its process asks for another.
    fn mend_seats(&self, key: BoardKey) -> bool {
        let Some(table) = self.tables.get(&key) else { return false };
        let readings: BTreeMap<_, _> = table.board.seats().collect();
        let mut mended = false;
        for sitting in self.sittings.values().filter(|sitting| sitting.board == key) {
            let tenant = self.tenants.get(&sitting.tenant).map_or(0, |tenant| tenant.number);
            let right = readings.get(&sitting.place).is_some_and(|one| is_right(one, sitting, tenant));
            if !right {
                let Terms { class, weight, priority, slo, memory, .. } = sitting.granted;
                let (name, program) = (sitting.label.as_bytes(), sitting.program.as_bytes());
                let pid = sitting.pid;
                let occupant = Occupant { pid, tenant, class, weight, priority, slo, memory, name, program };
                mended |= table.board.correct(sitting.place, &occupant, sitting.granted.paused);
            }
        }
        mended
    }

    /// Seats that are taken on the board and not in the books would be taken for ever.
    fn free_strangers(&self, key: BoardKey) -> bool {
        let Some(table) = self.tables.get(&key) else { return false };
        let there = self.sittings.values().filter(|sitting| sitting.board == key);
        let given: BTreeSet<_> = there.map(|sitting| sitting.place).collect();
        table.board.sweep(|place| given.contains(&place)) > 0
    }

    /// Who has a seat by the books and none on the board.
    pub(super) fn unseated(&self) -> impl Iterator<Item = &Sitting> {
        self.sittings.values().filter(|sitting| {
            let table = self.tables.get(&sitting.board);
            table.is_some_and(|table| table.board.pulse(sitting.place).is_none())
        })
    }
}

fn is_right(reading: &Reading, sitting: &Sitting, tenant: u64) -> bool {
    // Nought is how a board says that there is no objective, and no limit.
    let slo = sitting.granted.slo.filter(|slo| *slo != Nanos::ZERO);
    let memory = sitting.granted.memory.filter(|memory| memory.0 != 0);
    let granted = Terms { slo, memory, ..sitting.granted };
    let texts = reading.name == sitting.label.printable() && reading.program == sitting.program.printable();
    reading.pid == sitting.pid && reading.tenant == tenant && reading.terms == granted && texts
}
