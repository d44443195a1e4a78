//! What a decision changes.

use model::Nanos;
use policy::Decision;

use super::{Floor, Leaving};
use crate::StopAt;
use crate::log::Stop;
use crate::residue::Residue;

impl Floor<'_, '_> {
    pub(super) fn decide(&mut self) {
        self.fill_facts();
        let before = self.desk.decision;
        self.desk.ask(self.now);
        if self.world.sharing.is_scheduled() {
            for seat in self.requests..self.lanes.len() {
                self.turn(seat, &before);
            }
        }
    }

    pub(super) fn fill_facts(&mut self) {
        if !self.desk.asked() {
            return;
        }
        for ((facts, lane), seat) in self.desk.facts.iter_mut().zip(&self.lanes).zip(&self.seats) {
            lane.tell(facts, self.now, seat.awake);
            facts.runs = seat.granted;
            facts.next_call = seat.gap.map(|(_, call)| call);
            if let Some((opened, _)) = seat.gap {
                facts.busy_until = opened;
            }
        }
    }

    /// One best-effort tenant, after a decision.
    fn turn(&mut self, seat: usize, before: &Decision) {
        let decision = self.desk.decision;
        let named = decision.names(seat as u32) && decision.longest_at(self.now) > Nanos::ZERO;
        let granted = self.seats[seat].granted;
        if granted && (!named || !self.may_go_on(seat)) {
            self.stop(seat, before);
        }
        if named && !granted {
            let again = std::mem::take(&mut self.seats[seat].again);
            let back = self.now.max(self.seats[seat].off_at) + self.world.card.costs.resume + again;
            self.seats[seat].granted = true;
            self.lanes[seat].keep_off(back);
        } else if granted && !named {
            self.seats[seat].granted = false;
            self.lanes[seat].wanted_since = self.now;
        }
    }

    /// Whether what runs at the moment could be started now.
    fn may_go_on(&self, seat: usize) -> bool {
        let lane = &self.lanes[seat];
        let decision = &self.desk.decision;
        if decision.longest >= lane.certificate {
            return true;
        }
        let Some(cursor) = &lane.cursor else { return true };
        let Some(running) = cursor.under_way(&lane.score) else { return true };
        let flag = self.world.card.costs.flag;
        let grid = &lane.score.grids[running.kernel];
        let left = match grid.stop {
            StopAt::Kernel => Residue::of(cursor, &lane.score, running, false, 1.0).last,
            _ => Nanos(cursor.scaled(grid.longest_residue())),
        };
        flag + left <= decision.longest_at(self.now)
    }

    /// Takes a best-effort tenant off the GPU. Until its blocks see the flag it runs as it did, by the decision `before`.
    fn stop(&mut self, seat: usize, before: &Decision) {
        let costs = &self.world.card.costs;
        let seen = self.now + costs.flag;
        let (flag, thousand) = (costs.flag, costs.turned_away.0);
        let rate = self.rate_together();
        self.advance(seat, self.now, seen, rate, before);
        let (whole, tax) = (self.whole, self.tax());
        let lane = &mut self.lanes[seat];
        self.seats[seat].off_at = seen;
        let Some(cursor) = &mut lane.cursor else { return };
        let Some(running) = cursor.under_way(&lane.score) else { return };
        let grid = &lane.score.grids[running.kernel];
        let certificate = flag + Nanos(cursor.scaled(grid.longest_residue()));
        let left_by_itself = grid.stop != StopAt::Kernel && before.leaves_at(certificate) <= self.now;
        let not_begun = cursor.goes_on(&lane.score) > seen;
        if left_by_itself || not_begun {
            return;
        }
        let residue = Residue::of(cursor, &lane.score, running, whole, rate).stretched(tax);
        lane.busy += Nanos(residue.done.saturating_sub(cursor.done()));
        lane.wasted += Nanos(cursor.done().saturating_sub(residue.done));
        cursor.set_done(&lane.score, residue.done);
        let off = seen + residue.last;
        cursor.resume(&lane.score, off);
        let over = cursor.is_over(&lane.score);
        let blocks = u64::from(grid.blocks) * thousand / 1_000;
        let part = residue.done.saturating_sub(cursor.scaled(lane.score.work[running.kernel])) as f64;
        let ran = (part / cursor.scaled(grid.duration).max(1) as f64).min(1.0);
        lane.stops.push(Stop { at: self.now, latency: off.since(self.now) });
        if over {
            lane.finish(off);
        }
        // The rest of its blocks is turned away now; when it comes back, those that ran leave before the others begin.
        self.seats[seat].off_at = off + Nanos((blocks as f64 * (1.0 - ran)) as u64);
        self.seats[seat].again = if ran < 1.0 { Nanos((blocks as f64 * ran) as u64) } else { Nanos::ZERO };
        self.leaving.push(Leaving { first: seen + residue.first, last: off });
        self.let_wait();
    }

    /// Latency tenants that are about to start a kernel wait until there is room for it.
    fn let_wait(&mut self) {
        for seat in 0..self.requests {
            if self.seats[seat].awake {
                self.wait_for_room(seat);
            }
        }
    }

    pub(super) fn wait_for_room(&mut self, seat: usize) {
        self.leaving.retain(|leaving| leaving.last > self.now);
        let lane = &mut self.lanes[seat];
        let Some(cursor) = &mut lane.cursor else { return };
        if cursor.under_way(&lane.score).is_some() {
            return;
        }
        let kernel = cursor.kernel();
        let Some(grid) = lane.score.grids.get(kernel) else { return };
        let free = self.leaving.iter().map(|leaving| {
            let span = leaving.last.since(leaving.first).0 as f64;
            leaving.first + Nanos((span * grid.share) as u64)
        });
        let Some(free) = free.max() else { return };
        let planned = cursor.next_start(&lane.score);
        if free > planned {
            cursor.resume(&lane.score, free);
            lane.waited(free.since(planned), free.since(planned));
            self.seats[seat].stale = true;
        }
    }
}
