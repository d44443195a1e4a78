//! How far everybody gets between two events.
//!
//! Who has its part of the card to itself follows its score, and is found by bisection. Where kernels of several tenants meet, time is
//! walked kernel by kernel: a latency tenant's kernel waits for room, as the card's priorities allow, and runs at the rate that
//! is left for its level; best-effort work gets what room is left.

use model::Nanos;
use policy::{Decision, Who};

use super::crawl::crawl;
use super::waits::{Among, Strip};
use super::walk::Walk;
use super::{Crowd, Floor, waits_for_kernels};
use crate::cursor::Cursor;
use crate::rate::Rate;

/// Nobody is slower than this: a share of nought would never end.
pub(super) const SLOWEST: f64 = 0.001;

/// Whoever is confined may start what it wants there.
pub(super) const ANYTHING: Decision = Decision::anything(Who::All, Nanos::MAX);

impl Floor<'_, '_> {
    /// Who is in whose way from now on, and when that brings the next event.
    pub(super) fn arrange(&mut self) {
        self.meet();
        self.set_aside();
        self.crowd();
        for number in 0..self.requests {
            let seat = &mut self.seats[number];
            let lane = &mut self.lanes[number];
            let Some(cursor) = lane.cursor.as_mut().filter(|_| seat.awake) else { continue };
            let crowd = self.crowds[number];
            if seat.crowd != crowd {
                if seat.crowd.is_some() {
                    cursor.resume(&lane.score, self.now);
                    seat.room = None;
                }
                seat.crowd = crowd;
                seat.stale = true;
            }
            // A walk in several parts is rounded more often than one in one go.
            if seat.stale || seat.end <= self.now {
                self.plan(number);
            }
        }
    }

    /// Which best-effort tenants are on the card.
    fn meet(&mut self) {
        let on = |number: &usize| self.seats[*number].granted && self.lanes[*number].has_job(self.now);
        let now_on = (self.requests..self.lanes.len()).filter(on);
        let longest = self.desk.decision.longest;
        if self.beside.longest != longest || !now_on.clone().eq(self.beside.on.iter().copied()) {
            let mut on = std::mem::take(&mut self.on);
            on.clear();
            on.extend(now_on);
            self.on = std::mem::replace(&mut self.beside.on, on);
            self.beside.longest = longest;
            self.beside.epoch += 1;
            for seat in self.seats.iter_mut().filter(|seat| seat.crowd.is_some()) {
                seat.stale = true;
            }
        }
    }

    /// Which best-effort tenants get on with some of the SMs.
    fn set_aside(&mut self) {
        let (seats, lanes, now) = (&self.seats, &self.lanes, self.now);
        let on = |number: &usize| {
            seats[*number].confined > 0.0 && lanes[*number].has_job(now) && !lanes[*number].is_at_held()
        };
        self.aside.clear();
        self.aside.extend((self.requests..lanes.len()).filter(on));
    }

    /// When this tenant's job ends and when its next gap opens, as things stand.
    fn plan(&mut self, number: usize) {
        self.reckon(number);
        let lane = &self.lanes[number];
        let Some(cursor) = &lane.cursor else { return };
        let least = self.desk.in_gaps;
        let (end, coming) = match self.seats[number].crowd {
            None => {
                let gap = least.filter(|_| self.seats[number].gap.is_none());
                (cursor.end(&lane.score), gap.and_then(|least| cursor.next_gap(&lane.score, self.now, least)))
            }
            Some(crowd) => match least.and_then(|least| self.gap_beside(number, crowd, least)) {
                // What is behind the gap will be planned when that is over.
                Some(gap) => (Nanos::MAX, Some(gap)),
                None => {
                    let walked = Walk::new(self, number, crowd).go(Nanos::MAX);
                    let end = walked.until;
                    // Most often nothing comes between, and what was planned is what happens.
                    self.seats[number].planned = Some((self.now, walked));
                    (end, None)
                }
            },
        };
        let seat = &mut self.seats[number];
        (seat.end, seat.stale) = (end, false);
        seat.coming = coming;
    }

    /// The next gap of a tenant beside whom others have some of the SMs: in it they may have all. Who waits for others is not asked about
    /// gaps, which are filled already.
    fn gap_beside(&self, number: usize, crowd: Crowd, least: Nanos) -> Option<(Nanos, Nanos)> {
        let seen = !crowd.waits && !self.aside.is_empty() && self.seats[number].gap.is_none();
        seen.then(|| Walk::new(self, number, crowd).next_gap(least)).flatten()
    }

    /// How long each kernel of its job takes beside others, and how long it waits.
    fn reckon(&mut self, number: usize) {
        let (lane, seat) = (&self.lanes[number], &mut self.seats[number]);
        let (Some(cursor), Some(crowd)) = (&lane.cursor, seat.crowd) else { return };
        seat.paces.find(&lane.score, cursor, crowd.rate);
        if !crowd.waits {
            return;
        }
        let costs = &self.world.card.costs;
        let fifo = waits_for_kernels(self.world.sharing);
        for &other in &self.beside.on {
            self.strips[other].get_or_init(|| Strip::new(&self.lanes[other].score, fifo));
        }
        let among = Among {
            strips: &self.strips,
            on: &self.beside.on,
            longest: self.beside.longest.0,
            epoch: self.beside.epoch,
            mean: if fifo { costs.fifo_wait } else { costs.priority_wait },
        };
        seat.waits.find(lane.source, &lane.score, cursor.job, cursor.kernel(), &among);
    }

    /// For each latency tenant, how it gets on beside others; `None`: as if alone.
    fn crowd(&mut self) {
        self.crowds.fill(None);
        let busy = |number: &usize| self.seats[*number].awake && self.seats[*number].gap.is_none();
        self.order.clear();
        self.order.extend((0..self.requests).filter(busy));
        let waits = !self.beside.on.is_empty();
        let accompanied = waits || !self.aside.is_empty();
        if self.order.len() <= usize::from(!accompanied) {
            return;
        }
        let slower = self.slower();
        let lead = self.desk.decision.lead;
        let level = |number: usize| {
            let behind = lead.is_some_and(|lead| lead != number as u32);
            i64::from(self.lanes[number].priority) - i64::from(behind)
        };
        self.order.sort_by_key(|&number| (-level(number), number));
        let mut room = 1.0;
        for peers in self.order.chunk_by(|&a, &b| level(a) == level(b)) {
            let wanted: f64 = peers.iter().map(|&number| self.lanes[number].score.demand).sum();
            let rate = if wanted <= room { 1.0 } else { (room / wanted).max(SLOWEST) };
            room = f64::max(0.0, room - wanted);
            let rate = rate / slower;
            for &number in peers.iter().filter(|_| accompanied || rate < 1.0) {
                self.crowds[number] = Some(Crowd { rate, waits });
            }
        }
    }

    /// How much longer kernels of latency tenants take for what others do to caches and memory.
    fn slower(&self) -> f64 {
        let costs = &self.world.card.costs;
        match (self.aside.is_empty(), self.beside.on.is_empty()) {
            (true, true) => 1.0,
            (true, false) => costs.beside,
            (false, _) => costs.confined.max(costs.beside),
        }
    }

    /// Lets time pass.
    pub(super) fn settle(&mut self, to: Nanos) {
        let span = to.since(self.now);
        if span == Nanos::ZERO {
            return;
        }
        let taken = self.settle_latency(to);
        let left = (1.0 - taken / span.0 as f64 - self.room_aside()).max(0.0);
        let rate = Rate::new(left * self.rate_together());
        let mut used = Nanos::ZERO;
        for place in 0..self.beside.on.len() {
            let number = self.beside.on[place];
            used += self.advance(number, self.now, to, rate, &{ self.desk.decision });
            self.lanes[number].charge(span);
        }
        // Who is confined is not charged: it was not let on.
        for place in 0..self.aside.len() {
            let number = self.aside[place];
            used += self.advance(number, self.now, to, self.rate_aside(number), &ANYTHING);
        }
        if used > Nanos::ZERO {
            self.note_company(used);
        }
        self.now = to;
    }

    /// How much longer best-effort kernels take at the moment, where that is not a part of them.
    pub(super) fn tax(&self) -> f64 {
        match (self.means.whole_after, self.means.tax) {
            (Some(_), Some(tax)) if !self.whole => tax,
            _ => 1.0,
        }
    }

    /// How fast best-effort tenants get on if the card is theirs: they share its room.
    pub(super) fn rate_together(&self) -> f64 {
        if self.beside.on.len() < 2 {
            return 1.0;
        }
        let demand: f64 = self.beside.on.iter().map(|&number| self.lanes[number].score.demand).sum();
        1.0 / demand.max(1.0)
    }

    /// How fast a tenant gets on that has some of the SMs: who else has some has the same ones.
    pub(super) fn rate_aside(&self, number: usize) -> Rate {
        let room = self.seats[number].confined;
        let wanted = self.wanted_aside();
        Rate::within(room, if wanted <= room { 1.0 } else { room / wanted })
    }

    fn wanted_aside(&self) -> f64 {
        self.aside
            .iter()
            .map(|&number| self.lanes[number].score.demand.min(self.seats[number].confined))
            .sum()
    }

    /// The share of the card that those have.
    fn room_aside(&self) -> f64 {
        let room = self.aside.first().map_or(0.0, |&number| self.seats[number].confined);
        self.wanted_aside().min(room)
    }

    /// Latency tenants first. Returns the room that they took, times time.
    fn settle_latency(&mut self, to: Nanos) -> f64 {
        let mut taken = 0.0;
        for number in 0..self.requests {
            let seat = &self.seats[number];
            if !seat.awake || seat.gap.is_some() {
                continue;
            }
            if let Some(crowd) = seat.crowd {
                taken += self.walk(number, crowd, to);
                continue;
            }
            let lane = &mut self.lanes[number];
            let Some(cursor) = &mut lane.cursor else { continue };
            let before = cursor.done();
            cursor.run(&lane.score, to);
            lane.busy += Nanos(cursor.done() - before);
        }
        taken
    }

    fn walk(&mut self, number: usize, crowd: Crowd, to: Nanos) -> f64 {
        let planned = self.seats[number].planned.take();
        let planned = planned.filter(|(from, walked)| *from == self.now && walked.until == to);
        let walked = match planned {
            Some((_, walked)) => walked,
            None => Walk::new(self, number, crowd).go(to),
        };
        let lane = &mut self.lanes[number];
        let before = lane.cursor.as_ref().map_or(0, Cursor::done);
        lane.busy += Nanos(walked.cursor.done() - before);
        lane.waited(walked.waited, walked.longest_wait);
        lane.cursor = Some(walked.cursor);
        // Also if what is there waits for its host just then.
        lane.accompanied |= !self.aside.is_empty();
        self.seats[number].room = walked.room;
        walked.taken
    }

    /// Others did something while latency tenants had a request under way.
    fn note_company(&mut self, used: Nanos) {
        for (lane, seat) in self.lanes[..self.requests].iter_mut().zip(&mut self.seats) {
            lane.accompanied |= lane.cursor.is_some();
            if seat.gap.is_some() {
                lane.gaps.used += used;
                seat.filled = true;
            }
        }
    }

    /// A best-effort tenant on the card. Returns the work it did.
    pub(super) fn advance(
        &mut self,
        number: usize,
        from: Nanos,
        to: Nanos,
        rate: Rate,
        grant: &Decision,
    ) -> Nanos {
        let rate = rate.slowed(self.tax());
        let lane = &mut self.lanes[number];
        let certain = grant.longest >= lane.certificate;
        if certain && rate.is_as_alone() {
            lane.play(from, to)
        } else {
            crawl(lane, from, to, rate, grant, &self.world.card.costs)
        }
    }
}
