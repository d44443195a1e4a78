//! How far everybody gets between two events.
//!
//! Who has its part of the card to itself follows its score, and is found by bisection. Where kernels of several tenants meet, time is
//! walked kernel by kernel: a latency tenant's kernel waits for room, as the card's priorities allow, and runs at the rate that
//! is left for its level; best-effort work gets what room is left.

use model::Nanos;
use policy::Decision;

use super::{Crowd, Floor, Seat, waits_for_kernels};
use crate::cursor::Cursor;
use crate::draw::Source;
use crate::lane::Lane;
use crate::score::Score;
use crate::{Costs, StopAt};

/// Nobody is slower than this: a share of nought would never end.
const SLOWEST: f64 = 0.001;

impl Floor<'_, '_> {
    /// Who is in whose way from now on, and when that brings the next event.
    pub(super) fn arrange(&mut self) {
        self.meet();
        let crowds = self.crowds();
        for number in 0..self.lanes.len() {
            let crowd = crowds.as_ref().and_then(|crowds| crowds[number]);
            let seat = &mut self.seats[number];
            let lane = &mut self.lanes[number];
            let Some(cursor) = lane.cursor.as_mut().filter(|_| seat.awake) else { continue };
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
        let on = |seat: &Seat, lane: &Lane| !lane.is_latency() && seat.granted && lane.has_job(self.now);
        let pairs = self.seats.iter().zip(&self.lanes).enumerate();
        let now_on = pairs.filter(|(_, (seat, lane))| on(seat, lane)).map(|(number, _)| number);
        let longest = self.desk.decision.longest;
        if !now_on.clone().eq(self.beside.on.iter().copied()) || self.beside.longest != longest {
            let on = now_on.collect();
            self.beside.on = on;
            self.beside.longest = longest;
            for seat in self.seats.iter_mut().filter(|seat| seat.crowd.is_some()) {
                seat.stale = true;
            }
        }
    }

    /// When this tenant's job ends and when its next gap opens, as things stand.
    fn plan(&mut self, number: usize) {
        let lane = &self.lanes[number];
        let Some(cursor) = &lane.cursor else { return };
        let least = self.desk.in_gaps;
        let (end, coming) = match self.seats[number].crowd {
            None => {
                let gap = least.filter(|_| self.seats[number].gap.is_none());
                (cursor.end(&lane.score), gap.and_then(|least| cursor.next_gap(&lane.score, self.now, least)))
            }
            Some(crowd) => {
                let mut walk = Walk::new(self, number, crowd);
                walk.go(Nanos::MAX);
                let walked = walk.done();
                let end = walked.until;
                // Most often nothing comes between, and what was planned is what happens.
                self.seats[number].planned = Some((self.now, walked));
                (end, None)
            }
        };
        let seat = &mut self.seats[number];
        (seat.end, seat.stale) = (end, false);
        seat.coming = coming;
    }

    /// For each tenant, how it gets on beside others; `None`: as if alone. And `None` for all of them if nobody meets anybody.
    fn crowds(&self) -> Option<Vec<Option<Crowd>>> {
        let busy = |number: &usize| self.seats[*number].awake && self.seats[*number].gap.is_none();
        let order = (0..self.lanes.len()).filter(busy);
        let alone = if self.beside.on.is_empty() { 1 } else { 0 };
        if order.clone().count() <= alone {
            return None;
        }
        let (mut order, mut crowds) = (order.collect::<Vec<_>>(), vec![None; self.lanes.len()]);
        let lead = self.desk.decision.lead;
        let level = |number: usize| {
            let behind = lead.is_some_and(|lead| lead != number as u32);
            i64::from(self.lanes[number].priority) - i64::from(behind)
        };
        order.sort_by_key(|&number| (-level(number), number));
        let waits = !self.beside.on.is_empty();
        let mut room = 1.0;
        for peers in order.chunk_by(|&a, &b| level(a) == level(b)) {
            let wanted: f64 = peers.iter().map(|&number| self.lanes[number].score.demand).sum();
            let rate = if wanted <= room { 1.0 } else { (room / wanted).max(SLOWEST) };
            room = f64::max(0.0, room - wanted);
            let rate = if waits { rate / self.world.card.costs.beside } else { rate };
            for &number in peers.iter().filter(|_| waits || rate < 1.0) {
                crowds[number] = Some(Crowd { rate, waits });
            }
        }
        Some(crowds)
    }

    /// Lets time pass.
    pub(super) fn settle(&mut self, to: Nanos) {
        let span = to.since(self.now);
        if span == Nanos::ZERO {
            return;
        }
        let taken = self.settle_latency(to);
        let left = (1.0 - taken / span.0 as f64).max(0.0);
        let rate = left * self.rate_together();
        let mut used = Nanos::ZERO;
        for place in 0..self.beside.on.len() {
            let number = self.beside.on[place];
            used += self.advance(number, self.now, to, rate, &{ self.desk.decision });
            self.lanes[number].charge(span);
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

    /// Latency tenants first. Returns the room that they took, times time.
    fn settle_latency(&mut self, to: Nanos) -> f64 {
        let mut taken = 0.0;
        for number in 0..self.lanes.len() {
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
            None => {
                let mut walk = Walk::new(self, number, crowd);
                walk.go(to);
                walk.done()
            }
        };
        let lane = &mut self.lanes[number];
        let before = lane.cursor.as_ref().map_or(0, Cursor::done);
        lane.busy += Nanos(walked.cursor.done() - before);
        lane.waited(walked.waited, walked.longest_wait);
        lane.cursor = Some(walked.cursor);
        self.seats[number].room = walked.room;
        walked.taken
    }

    /// Others did something while latency tenants had a request under way.
    fn note_company(&mut self, used: Nanos) {
        for (lane, seat) in self.lanes.iter_mut().zip(&mut self.seats) {
            lane.accompanied |= lane.is_latency() && lane.cursor.is_some();
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
        rate: f64,
        grant: &Decision,
    ) -> Nanos {
        let rate = rate / self.tax();
        let lane = &mut self.lanes[number];
        let certain = grant.longest >= lane.certificate;
        if certain && rate == 1.0 {
            lane.play(from, to)
        } else {
            crawl(lane, from, to, rate, grant, &self.world.card.costs)
        }
    }
}

/// Kernel by kernel: best-effort work at a rate, of which only what is admitted is started.
fn crawl(lane: &mut Lane, from: Nanos, to: Nanos, rate: f64, grant: &Decision, costs: &Costs) -> Nanos {
    let before = lane.busy;
    let mut now = from;
    loop {
        if rate < SLOWEST {
            break;
        }
        if lane.cursor.is_none() {
            if lane.next_begin() > to {
                break;
            }
            now = now.max(lane.next_begin());
            lane.begin(now);
        }
        let Some(cursor) = &mut lane.cursor else { break };
        let start = now.max(cursor.goes_on(&lane.score));
        if start >= to {
            break;
        }
        let done = cursor.done();
        let (moment, reached) = step(cursor, &lane.score, start, to, rate, grant, costs);
        cursor.set_done(&lane.score, reached);
        cursor.passed(&lane.score, cursor.kernel(), moment);
        lane.busy += Nanos(reached - done);
        if cursor.is_over(&lane.score) {
            lane.finish(moment);
        } else if reached == done || moment >= to {
            break;
        }
        now = moment;
    }
    if let Some(cursor) = &mut lane.cursor {
        // Whatever has not been done by now is done later.
        cursor.resume(&lane.score, to);
    }
    lane.busy - before
}

/// One kernel, from `start`: until when it ran, and the work done by then. It ends, or time is up, or it has to leave by itself.
fn step(
    cursor: &Cursor,
    score: &Score,
    start: Nanos,
    to: Nanos,
    rate: f64,
    grant: &Decision,
    costs: &Costs,
) -> (Nanos, u64) {
    let kernel = cursor.kernel();
    let grid = &score.grids[kernel];
    let done = cursor.done();
    let end = cursor.scaled(score.work[kernel + 1]);
    let certificate = costs.flag + Nanos(cursor.scaled(grid.longest_residue()));
    if done == cursor.scaled(score.work[kernel]) && certificate > grant.longest_at(start) {
        return (start, done);
    }
    let span = Nanos(((end - done) as f64 / rate).ceil() as u64);
    let leaves = match grid.stop {
        StopAt::Kernel => Nanos::MAX,
        _ => grant.leaves_at(certificate).max(start),
    };
    let reached = |at: Nanos| done + (at.since(start).0 as f64 * rate).ceil() as u64;
    if start + span <= to.min(leaves) {
        (start + span, end)
    } else if to <= leaves {
        (to, reached(to).min(end))
    } else {
        // It leaves at a boundary of blocks, after the moment at which it was told to by its own clock.
        let (block, first) = (cursor.scaled(grid.block).max(1), cursor.scaled(score.work[kernel]));
        let boundary = (reached(leaves) - first).next_multiple_of(block) + first;
        (to, boundary.clamp(done, end))
    }
}

/// A latency tenant's kernels among those of others, one after the other.
struct Walk<'f> {
    cursor: Cursor,
    score: &'f Score,
    lanes: &'f [Lane],
    on: &'f [usize],
    longest: Nanos,
    costs: &'f Costs,
    fifo: bool,
    source: Source,
    crowd: Crowd,
    now: Nanos,
    room: Option<(usize, Nanos)>,
    taken: f64,
    waited: Nanos,
    longest_wait: Nanos,
}

/// Where a walk has come to.
#[derive(Clone, Debug)]
pub(super) struct Walked {
    cursor: Cursor,
    until: Nanos,
    room: Option<(usize, Nanos)>,
    /// Room times time.
    taken: f64,
    waited: Nanos,
    longest_wait: Nanos,
}

impl<'f> Walk<'f> {
    fn new(floor: &'f Floor<'_, '_>, number: usize, crowd: Crowd) -> Walk<'f> {
        let lane = &floor.lanes[number];
        let cursor = lane.cursor.clone().expect("whoever walks has a job");
        Walk {
            cursor,
            score: &lane.score,
            lanes: &floor.lanes,
            on: &floor.beside.on,
            longest: floor.beside.longest,
            costs: &floor.world.card.costs,
            fifo: waits_for_kernels(floor.world.sharing),
            source: lane.source,
            crowd,
            now: floor.now,
            room: floor.seats[number].room,
            taken: 0.0,
            waited: Nanos::ZERO,
            longest_wait: Nanos::ZERO,
        }
    }

    fn done(self) -> Walked {
        let Walk { cursor, now, room, taken, waited, longest_wait, .. } = self;
        Walked { cursor, until: now, room, taken, waited, longest_wait }
    }

    /// Until `to`, or until the job is over.
    fn go(&mut self, to: Nanos) {
        let first = self.cursor.kernel();
        let mut under_way = self.cursor.under_way(self.score).is_some();
        for kernel in first..self.score.kernels() {
            let start =
                self.now.max(if under_way { self.now } else { self.cursor.start(self.score, kernel) });
            let start = if under_way || !self.crowd.waits { start } else { self.room_for(kernel, start, to) };
            if start >= to {
                break;
            }
            under_way = false;
            let (done, end) = (self.cursor.done(), self.cursor.scaled(self.score.work[kernel + 1]));
            let span = Nanos(((end - done) as f64 / self.crowd.rate).ceil() as u64);
            let stop = (start + span).min(to);
            self.taken += stop.since(start).0 as f64 * self.score.grids[kernel].share;
            self.now = stop;
            if start + span > to {
                let reached = done + (to.since(start).0 as f64 * self.crowd.rate).ceil() as u64;
                self.cursor.set_done(self.score, reached.min(end));
                break;
            }
            self.cursor.set_done(self.score, end);
            self.cursor.passed(self.score, kernel + 1, self.now);
        }
    }

    /// When there is room for a kernel that could start at `start`.
    fn room_for(&mut self, kernel: usize, start: Nanos, to: Nanos) -> Nanos {
        if let Some((_, at)) = self.room.filter(|&(which, _)| which == kernel) {
            return at.max(start);
        }
        if start >= to {
            return start;
        }
        let wait = self.wait(kernel);
        self.room = Some((kernel, start + wait));
        self.waited += wait;
        self.longest_wait = self.longest_wait.max(wait);
        start + wait
    }

    /// How long a kernel waits for what others have on the card: some kernel of theirs, the more likely the longer it takes.
    fn wait(&self, kernel: usize) -> Nanos {
        let (job, draw) = (self.cursor.job, kernel as u64 * 4);
        let which = if self.on.len() > 1 { self.source.below(1 + job, draw, self.on.len()) } else { 0 };
        let other = self.on[which];
        let other = &self.lanes[other].score;
        let at = (self.source.unit(1 + job, draw + 1) * other.total() as f64) as u64;
        let met = &other.grids[other.work.partition_point(|&work| work <= at).clamp(1, other.kernels()) - 1];
        let share = self.score.grids[kernel].share;
        if met.share + share <= 1.0 || Nanos(met.longest_residue()) > self.longest {
            return Nanos::ZERO;
        }
        let (span, mean) = if self.fifo {
            (met.duration, self.costs.fifo_wait)
        } else {
            (met.block, self.costs.priority_wait)
        };
        // Evenly between what makes this mean and all of it.
        let least = (2.0 * mean - 1.0).max(0.0);
        let drawn = least + (1.0 - least) * self.source.unit(1 + job, draw + 2);
        Nanos((span as f64 * drawn) as u64)
    }
}
