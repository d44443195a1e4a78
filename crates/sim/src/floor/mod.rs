//! The shared domain: everybody's kernels on one card at the same time.
//!
//! Between two events nothing changes who runs beside whom. An event is a latency tenant's first call, the end of its request, a gap
//! that opens or closes (if the scheduler is asked in gaps), a best-effort tenant that begins to want, and whatever moment the
//! scheduler has named. Best-effort iterations are no events: they are played through when time is settled.
//!
//! * this file: which event is next, and what happens at one
//! * `turns`: what a decision changes: who is stopped, who waits for whom, who goes on
//! * `pace`: how far everybody gets between two events; `walk`: a request among kernels of others, `waits`: what it waits for;
//!   `crawl`: best-effort work beside others

mod crawl;
mod pace;
mod turns;
mod waits;
mod walk;

use std::cell::OnceCell;

use model::Nanos;

use crate::desk::Desk;
use crate::lane::Lane;
use crate::log::Log;
use crate::{Ended, Means, Sharing, World};

pub struct Floor<'w, 's> {
    world: &'w World,
    means: Means,
    /// Latency tenants first.
    lanes: Vec<Lane>,
    /// How many of them are latency tenants.
    requests: usize,
    seats: Vec<Seat>,
    /// What others meet of each tenant, if they ever do.
    strips: Vec<OnceCell<waits::Strip>>,
    desk: Desk<'s>,
    now: Nanos,
    events: u64,
    /// Room that becomes free because somebody leaves.
    leaving: Vec<Leaving>,
    /// Whether best-effort work runs as it was written, because nobody was there for long.
    whole: bool,
    /// Since when no latency tenant has been awake.
    quiet_since: Nanos,
    /// Which best-effort tenants are on, and what they may start: what latency tenants may have to wait for.
    beside: Beside,
    /// Which of them get on with some of the SMs: nobody waits for them.
    aside: Vec<usize>,
    /// For each latency tenant, how it gets on beside others.
    crowds: Vec<Option<Crowd>>,
    /// Room to write lists in, which are made at every event.
    order: Vec<usize>,
    on: Vec<usize>,
}

/// What the floor knows of a tenant.
#[derive(Clone, Debug, Default)]
struct Seat {
    /// Best-effort: whether it may be on the GPU.
    granted: bool,
    /// Best-effort: otherwise, which share of the SMs it may have.
    confined: f64,
    /// Best-effort: when it will have left, if it was told to.
    off_at: Nanos,
    /// Best-effort: how long blocks that ran already take to leave when their kernel is launched again.
    again: Nanos,
    /// Best-effort: whether it had a job when last looked at.
    wanted: bool,
    /// Latency: whether its job has made its first call.
    awake: bool,
    /// Latency: the gap it is in, if the scheduler is asked in gaps: since when, until which call.
    gap: Option<(Nanos, Nanos)>,
    /// Latency: whether others did anything in that gap.
    filled: bool,
    /// Latency: the next gap to come.
    coming: Option<(Nanos, Nanos)>,
    /// Latency: whether others are in its way, and how fast it gets on then.
    crowd: Option<Crowd>,
    /// Latency: the kernel that waits for room among others, and until when.
    room: Option<(usize, Nanos)>,
    /// Latency: how long its job's kernels wait for room among others.
    waits: waits::Waits,
    /// Latency: how long they take beside others.
    paces: walk::Paces,
    /// Latency: from when on, how far it gets beside others, if nothing comes between.
    planned: Option<(Nanos, walk::Walked)>,
    /// Latency: when its job ends, as things stand.
    end: Nanos,
    /// Latency: whether `end` and `coming` have to be found anew.
    stale: bool,
}

/// How a latency tenant gets on beside others.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Crowd {
    rate: f64,
    /// Whether its kernels have to wait for room.
    waits: bool,
}

/// Best-effort work that may be anywhere on the card.
#[derive(Clone, Debug, Default, PartialEq)]
struct Beside {
    on: Vec<usize>,
    longest: Nanos,
    /// How often this has changed.
    epoch: u64,
}

#[derive(Clone, Copy, Debug)]
struct Leaving {
    first: Nanos,
    last: Nanos,
}

impl<'w, 's> Floor<'w, 's> {
    pub fn new(world: &'w World, lanes: Vec<Lane>, means: Means, desk: Desk<'s>) -> Floor<'w, 's> {
        let scheduled = world.sharing.is_scheduled();
        let requests = lanes.partition_point(Lane::is_latency);
        let seats = lanes.iter().map(|lane| Seat {
            granted: !scheduled && !lane.is_latency(),
            end: Nanos::MAX,
            stale: true,
            ..Seat::default()
        });
        Floor {
            world,
            means,
            requests,
            seats: seats.collect(),
            strips: lanes.iter().map(|_| OnceCell::new()).collect(),
            lanes,
            desk,
            now: Nanos::ZERO,
            events: 0,
            leaving: Vec::new(),
            whole: false,
            quiet_since: Nanos::ZERO,
            beside: Beside::default(),
            aside: Vec::new(),
            crowds: vec![None; requests],
            order: Vec::with_capacity(requests),
            on: Vec::new(),
        }
    }

    pub fn play(mut self) -> Log {
        let until = self.world.until;
        loop {
            self.happen();
            // Time passes, whatever anybody says: what is due at this moment has happened.
            let next = self.next_event().max(self.now + Nanos(1));
            if next >= until {
                break;
            }
            self.settle(next);
            self.events += 1;
        }
        self.settle(until);
        self.happen();
        self.desk.into_log(self.lanes, until, self.events, 0)
    }

    /// Everything that is due at this moment.
    fn happen(&mut self) {
        let mut ask = self.now == Nanos::ZERO;
        for seat in 0..self.requests {
            ask |= self.look_at(seat);
        }
        for seat in self.requests..self.lanes.len() {
            ask |= self.wish(seat);
        }
        ask |= self.desk.again() <= self.now;
        self.consolidate();
        if self.desk.next_tick() <= self.now {
            self.fill_facts();
            self.desk.tick(self.now);
            ask = true;
        }
        if ask {
            self.decide();
        }
        self.arrange();
    }

    /// A latency tenant: whether anything happened to it that a scheduler may want to know.
    fn look_at(&mut self, seat: usize) -> bool {
        let mut news = self.finish(seat);
        let lane = &mut self.lanes[seat];
        if lane.cursor.is_none() && lane.next_begin() <= self.now {
            lane.begin(Nanos::ZERO);
            self.seats[seat].stale = true;
        }
        let Some(cursor) = &lane.cursor else { return news };
        if !self.seats[seat].awake && cursor.call(&lane.score, 0) <= self.now {
            self.seats[seat].awake = true;
            self.seats[seat].stale = true;
            self.wait_for_room(seat);
            news = true;
        }
        news | self.look_for_gap(seat)
    }

    /// Ends the job that is over.
    fn finish(&mut self, seat: usize) -> bool {
        let lane = &mut self.lanes[seat];
        if !lane.cursor.as_ref().is_some_and(|cursor| cursor.is_over(&lane.score)) {
            return false;
        }
        let alone = !lane.accompanied;
        if let Some(job) = lane.finish(self.now) {
            let start = job.start.unwrap_or(job.due);
            self.desk.ended(&Ended { seat: seat as u32, due: job.due, start, end: self.now, alone });
        }
        let place = &mut self.seats[seat];
        (place.awake, place.gap, place.room, place.end) = (false, None, None, Nanos::MAX);
        place.stale = true;
        true
    }

    /// Gaps that open and close.
    fn look_for_gap(&mut self, seat: usize) -> bool {
        let place = &mut self.seats[seat];
        if let Some((_, call)) = place.gap.filter(|&(_, call)| call <= self.now) {
            let (since, _) = place.gap.take().unwrap_or((call, call));
            let gaps = &mut self.lanes[seat].gaps;
            gaps.idle += call.since(since);
            gaps.filled += u64::from(std::mem::take(&mut place.filled));
            place.stale = true;
            return true;
        }
        match place.coming {
            Some((opens, call)) if place.gap.is_none() && opens <= self.now && call > self.now => {
                place.gap = Some((opens, call));
                place.coming = None;
                self.lanes[seat].gaps.seen += 1;
                true
            }
            _ => false,
        }
    }

    /// A best-effort tenant: whether it began or ceased to want.
    fn wish(&mut self, seat: usize) -> bool {
        let wants = self.lanes[seat].has_job(self.now);
        let place = &mut self.seats[seat];
        let changed = wants != place.wanted;
        place.wanted = wants;
        if changed && wants {
            self.lanes[seat].wanted_since = self.now;
            self.level(seat);
        }
        changed
    }

    /// Who comes back starts no earlier than the least advanced of those present: nobody saves up for later.
    fn level(&mut self, seat: usize) {
        let others = self
            .lanes
            .iter()
            .enumerate()
            .filter(|&(other, lane)| other != seat && !lane.is_latency() && self.seats[other].wanted);
        if let Some(least) = others.map(|(_, lane)| lane.virtual_time).min() {
            let lane = &mut self.lanes[seat];
            lane.virtual_time = lane.virtual_time.max(least);
        }
    }

    /// Originals instead of stoppable pieces when nobody has been there for long.
    fn consolidate(&mut self) {
        let awake = self.seats.iter().any(|seat| seat.awake);
        if awake {
            self.quiet_since = Nanos::MAX;
        } else if self.quiet_since == Nanos::MAX {
            self.quiet_since = self.now;
        }
        let after = self.means.whole_after.unwrap_or(Nanos::MAX);
        let whole = !awake && self.quiet_since + after <= self.now;
        // What runs as a whole goes on as a whole until it has been stopped.
        self.whole = whole || (self.whole && awake && self.seats.iter().any(|seat| seat.granted));
    }

    fn next_event(&self) -> Nanos {
        let mut next = self.desk.again().min(self.desk.next_tick());
        if let Some(after) = self.means.whole_after.filter(|_| !self.whole) {
            next = next.min(self.quiet_since + after);
        }
        let mut all = self.seats.iter().zip(&self.lanes);
        for (seat, lane) in all.by_ref().take(self.requests) {
            next = next.min(seat.latency_event(lane));
        }
        for (seat, lane) in all {
            next = next.min(seat.best_effort_event(lane));
        }
        next
    }
}

impl Seat {
    /// Whether it may be on the GPU, or on a part of it.
    fn is_let_in(&self) -> bool {
        self.granted || self.confined > 0.0
    }

    fn latency_event(&self, lane: &Lane) -> Nanos {
        let Some(cursor) = &lane.cursor else { return lane.next_begin() };
        if !self.awake {
            return cursor.call(&lane.score, 0);
        }
        let gap = match (self.gap, self.coming) {
            (Some((_, call)), _) => call,
            (None, Some((opens, _))) => opens,
            (None, None) => Nanos::MAX,
        };
        self.end.min(gap)
    }

    /// A tenant without a job begins to want when its next one is due; one whose last job ends ceases to.
    fn best_effort_event(&self, lane: &Lane) -> Nanos {
        match &lane.cursor {
            None if self.wanted => Nanos::MAX,
            None => lane.next_begin(),
            Some(cursor) if self.is_let_in() && lane.next_due().is_some() => cursor.end(&lane.score),
            Some(_) => Nanos::MAX,
        }
    }
}

/// Whether kernels of a latency tenant wait for whole kernels of others, or for their running blocks.
fn waits_for_kernels(sharing: Sharing) -> bool {
    sharing == Sharing::Mps
}
