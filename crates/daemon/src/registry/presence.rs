//! Who is really on the GPUs, for tenants and for the report.
//!
//! A tenant knows when it has work, not whether a stranger has the GPU meanwhile. What knows the GPU (NVIDIA's library, a
//! software GPU's card) tells which part of the last second each process was on it. From that follow, for each GPU: whether
//! best-effort work has somebody to yield to, which part of a tenant's time with work was time on the GPU, and how much of
//! the GPU strangers had.

use board::SliceState;
use model::Nanos;

use super::{BoardKey, Registry, Sitting, Table};
use crate::nvml::Found;
use crate::strangers;

/// A stranger that was seen at work is believed to be for this long: its work comes and goes.
const BELIEVED: Nanos = Nanos::from_millis(5_000);
/// Looks further apart than this are not held against each other.
const LONGEST_SPAN: Nanos = Nanos::from_millis(10_000);

impl Registry {
    /// Takes what was found, and tells the boards; what there is to say about it. What is known already changes nothing.
    pub fn take_survey(&mut self, found: Found) -> Vec<String> {
        if found.at.is_none() || found.at == self.surveyed {
            return Vec::new();
        }
        let span = self.surveyed.zip(found.at).map(|(before, at)| at.since(before));
        (self.survey, self.surveyed) = (found.survey, found.at);
        let boards: Vec<BoardKey> = self.tables.keys().copied().collect();
        for board in boards {
            self.tell_of_strangers(board, span.filter(|span| *span <= LONGEST_SPAN));
        }
        self.newly_lengthened()
    }

    fn tell_of_strangers(&mut self, key: BoardKey, span: Option<Nanos>) {
        let strangers = self.strangers(key.gpu);
        let Some(table) = self.tables.get_mut(&key) else { return };
        table.board.set_strangers(strangers::seen(strangers.as_deref()));
        if strangers.iter().flatten().any(|one| one.active == Some(true)) {
            table.board.say_stranger(board::now() + BELIEVED);
        }
        let on_gpu: u32 = strangers.iter().flatten().filter_map(|one| one.gpu_permille).sum();
        let span = span.unwrap_or(Nanos::ZERO);
        table.strangers_time += span.scaled(on_gpu, 1_000);
        let processes = self.survey.get(&key.gpu).and_then(|seen| seen.processes.as_ref());
        for sitting in self.sittings.values_mut().filter(|sitting| sitting.board == key) {
            let own = processes.and_then(|all| all.iter().find(|one| one.pid == sitting.pid));
            let own = own.and_then(|one| one.gpu_permille).filter(|_| on_gpu > 0);
            tell_presence(table, sitting, own, span);
        }
    }

    /// Tenants that have lengthened their slices since this was last asked, each told of once.
    fn newly_lengthened(&mut self) -> Vec<String> {
        let mut sentences = Vec::new();
        for sitting in self.sittings.values_mut().filter(|sitting| !sitting.told_of_slice) {
            let reading = self.tables.get(&sitting.board).and_then(|table| table.board.read(sitting.place));
            let state = reading.map(|reading| reading.condition.slice_state).unwrap_or_default();
            if state != SliceState::Short {
                sitting.told_of_slice = true;
                sentences.push(format!("{} (process {}) {}", sitting.name, sitting.pid, state.sentence()));
            }
        }
        sentences
    }
}

/// Tells a tenant which part of its time with work it was on the GPU: all of it, where nobody else was there.
fn tell_presence(table: &Table, sitting: &mut Sitting, on_gpu: Option<u32>, span: Nanos) {
    let Some(reading) = table.board.read(sitting.place) else { return };
    let Some(part) = on_gpu else {
        (sitting.pending, sitting.had) = (reading.figures.pending_ns, Nanos::ZERO);
        return table.board.set_presence(sitting.place, None);
    };
    sitting.had += span.scaled(part, 1_000);
    let pending = reading.figures.pending_ns.saturating_sub(sitting.pending);
    // A tenant counts now and then. Until it has, what it had is kept for when it does.
    if pending > 0 {
        let part = u128::from(sitting.had.0) * 1_000 / u128::from(pending);
        table.board.set_presence(sitting.place, Some(u32::try_from(part).unwrap_or(1_000)));
        (sitting.pending, sitting.had) = (reading.figures.pending_ns, Nanos::ZERO);
    }
}
