//! What a decision changes.

use model::Nanos;
use policy::Decision;

use super::pace::ANYTHING;
use super::{Floor, Leaving};
use crate::StopAt;
use crate::log::Stop;
use crate::rate::Rate;
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
            facts.runs = seat.is_let_in();
            facts.next_call = seat.gap.map(|(_, call)| call);
            if let Some((opened, _)) = seat.gap {
                facts.busy_until = opened;
            }
        }
    }

    /// One best-effort tenant, after a decision.
    fn turn(&mut self, seat: usize, before: &Decision) {
        let (granted, confined) = self.course(seat);
        let was_granted = self.seats[seat].granted;
        let was_confined = self.seats[seat].confined > 0.0;
        if was_granted && (!granted || !self.may_go_on(seat)) {
            self.stop(seat, before);
        }
        if was_confined && confined == 0.0 {
            self.call_back(seat);
        }
        let place = &mut self.seats[seat];
        (place.granted, place.confined) = (granted, confined);
        if granted && !was_granted || confined > 0.0 && !was_confined {
            let again = std::mem::take(&mut place.again);
            let back = self.now.max(place.off_at) + self.world.card.costs.resume + again;
            self.lanes[seat].keep_off(back);
        }
        if was_granted && !granted {
            self.lanes[seat].wanted_since = self.now;
        }
    }

    /// Whether a best-effort tenant may be on the GPU, and otherwise on which share of the SMs.
    fn course(&self, seat: usize) -> (bool, f64) {
        let (decision, certificate) = (&self.desk.decision, self.lanes[seat].certificate);
        if decision.confined > 0 && !decision.admits(seat as u32, certificate, self.now) {
            return (false, f64::from(decision.confined) / 100.0);
        }
        (decision.names(seat as u32) && decision.longest_at(self.now) > Nanos::ZERO, 0.0)
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
        let rate = Rate::new(self.rate_together());
        let Some(leaving) = self.leave(seat, rate, before) else { return };
        self.lanes[seat].stops.push(Stop { at: self.now, latency: leaving.last.since(self.now) });
        self.leaving.push(leaving);
        self.let_wait();
    }

    /// What is on some of the SMs goes on with all of them, or not at all. Nobody waits for its blocks.
    fn call_back(&mut self, seat: usize) {
        self.leave(seat, self.rate_aside(seat), &ANYTHING);
    }

    /// A best-effort tenant leaves where it is. When its blocks have, if any ran.
    fn leave(&mut self, seat: usize, rate: Rate, before: &Decision) -> Option<Leaving> {
        let costs = &self.world.card.costs;
        let seen = self.now + costs.flag;
        let (flag, thousand) = (costs.flag, costs.turned_away.0);
        self.advance(seat, self.now, seen, rate, before);
        let (whole, tax) = (self.whole, self.tax());
        let lane = &mut self.lanes[seat];
        self.seats[seat].off_at = seen;
        let cursor = lane.cursor.as_mut()?;
        let running = cursor.under_way(&lane.score)?;
        let grid = &lane.score.grids[running.kernel];
        let certificate = flag + Nanos(cursor.scaled(grid.longest_residue()));
        let left_by_itself = grid.stop != StopAt::Kernel && before.leaves_at(certificate) <= self.now;
        let not_begun = cursor.goes_on(&lane.score) > seen;
        if left_by_itself || not_begun {
            return None;
        }
        let residue = Residue::of(cursor, &lane.score, running, whole, rate.of(grid)).stretched(tax);
        lane.busy += Nanos(residue.done.saturating_sub(cursor.done()));
        lane.wasted += Nanos(cursor.done().saturating_sub(residue.done));
        cursor.set_done(&lane.score, residue.done);
        let off = seen + residue.last;
        cursor.resume(&lane.score, off);
        let over = cursor.is_over(&lane.score);
        let blocks = u64::from(grid.blocks) * thousand / 1_000;
        let part = residue.done.saturating_sub(cursor.scaled(lane.score.work[running.kernel])) as f64;
        let ran = (part / cursor.scaled(grid.duration).max(1) as f64).min(1.0);
        if over {
            lane.finish(off);
        }
        // The rest of its blocks is turned away now; when it comes back, those that ran leave before the others begin.
        self.seats[seat].off_at = off + Nanos((blocks as f64 * (1.0 - ran)) as u64);
        self.seats[seat].again = if ran < 1.0 { Nanos((blocks as f64 * ran) as u64) } else { Nanos::ZERO };
        Some(Leaving { first: seen + residue.first, last: off })
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
