//! The isolated domain: one context at a time on the GPU.
//!
//! The hardware goes round the contexts that have work. It leaves one when it has nothing to run, or when its slice is over and
//! another one has work; then it saves what is running in the middle of whatever it was doing, and loads the other. A switch that
//! has begun is ended: who becomes idle for a moment may find the GPU on its way to somebody else and back. Hosts go on meanwhile, so
//! a tenant that is bound by its host finds everything launched that it would have launched, and loses less than it waits.
//!
//! What a scheduler decides here is which best-effort context takes part in the round. To take one out, or to let it in again, is a call to
//! the driver that takes its time (the *lever*), and whoever makes it can change its mind when it is over, not before.

use model::{Class, Nanos};
use policy::slice;

use crate::desk::Desk;
use crate::draw::Source;
use crate::lane::Lane;
use crate::log::{Log, Stop};
use crate::{Ended, Sharing, World};

pub struct Contexts<'w, 's> {
    world: &'w World,
    lanes: Vec<Lane>,
    seats: Vec<Seat>,
    desk: Desk<'s>,
    source: Source,
    now: Nanos,
    events: u64,
    switches: u64,
    /// Whose context is loaded.
    owner: Option<usize>,
    slice_end: Nanos,
    /// Whether somebody else has been waiting for it to end.
    contended: bool,
    /// On the way to this context, loaded at that moment.
    switching: Option<(usize, Nanos)>,
}

#[derive(Clone, Debug)]
struct Seat {
    slice: Nanos,
    /// Whether its context takes part in the round.
    enabled: bool,
    /// What it will be, from when on.
    lever: Option<(Nanos, bool)>,
    awake: bool,
    wanted: bool,
    /// When it lost the GPU, or was last seen without.
    off_since: Nanos,
}

impl<'w, 's> Contexts<'w, 's> {
    pub fn new(world: &'w World, lanes: Vec<Lane>, desk: Desk<'s>) -> Contexts<'w, 's> {
        let highest =
            lanes.iter().filter(|lane| lane.is_latency()).map(|lane| lane.priority).max().unwrap_or(0);
        let seats = lanes.iter().map(|lane| Seat {
            slice: slice_of(world, lane, highest),
            enabled: lane.is_latency() || !world.sharing.is_scheduled(),
            lever: None,
            awake: false,
            wanted: false,
            off_since: Nanos::ZERO,
        });
        Contexts {
            world,
            seats: seats.collect(),
            lanes,
            desk,
            source: Source::named(world.seed, "switches"),
            now: Nanos::ZERO,
            events: 0,
            switches: 0,
            owner: None,
            slice_end: Nanos::ZERO,
            contended: false,
            switching: None,
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
        self.desk.into_log(self.lanes, until, self.events, self.switches)
    }

    /// Lets time pass: for the owner only, but for everybody's hosts.
    fn settle(&mut self, to: Nanos) {
        let span = to.since(self.now);
        for (lane, seat) in self.lanes.iter_mut().zip(&self.seats) {
            if !lane.is_latency() && seat.enabled && seat.wanted {
                lane.charge(span);
            }
        }
        if let Some(owner) = self.owner.filter(|&owner| self.switching.is_none() && self.seats[owner].enabled)
        {
            let lane = &mut self.lanes[owner];
            if !lane.is_latency() {
                let used = lane.play(self.now, to);
                if used > Nanos::ZERO {
                    let requests =
                        self.lanes.iter_mut().filter(|lane| lane.is_latency() && lane.cursor.is_some());
                    requests.for_each(|lane| lane.accompanied = true);
                }
            } else if let Some(cursor) = &mut lane.cursor {
                let before = cursor.done();
                cursor.run(&lane.score, to);
                lane.busy += Nanos(cursor.done() - before);
            }
        }
        self.now = to;
    }

    fn happen(&mut self) {
        let mut ask = self.now == Nanos::ZERO;
        ask |= self.let_levers_act();
        for seat in 0..self.lanes.len() {
            ask |= self.look_at(seat);
        }
        ask |= self.desk.again() <= self.now;
        if self.desk.next_tick() <= self.now {
            self.fill_facts();
            self.desk.tick(self.now);
            ask = true;
        }
        if ask {
            self.fill_facts();
            self.desk.ask(self.now);
            self.pull_levers();
        }
        self.hand_over();
    }

    /// Ends, begins, first calls. Whether a scheduler may want to know.
    fn look_at(&mut self, number: usize) -> bool {
        let mut news = false;
        let loaded = self.owner == Some(number) && self.switching.is_none();
        let (lane, seat) = (&mut self.lanes[number], &mut self.seats[number]);
        if lane.cursor.as_ref().is_some_and(|cursor| cursor.is_over(&lane.score)) {
            let alone = !lane.accompanied;
            if let Some(job) = lane.finish(self.now).filter(|_| lane.is_latency()) {
                let start = job.start.unwrap_or(job.due);
                self.desk.ended(&Ended { seat: number as u32, due: job.due, start, end: self.now, alone });
                (seat.awake, news) = (false, true);
            }
        }
        if lane.cursor.is_none() && lane.next_begin() <= self.now {
            lane.begin(if loaded { Nanos::ZERO } else { self.now });
        }
        if lane.is_latency() {
            let called = lane.cursor.as_ref().is_some_and(|cursor| cursor.call(&lane.score, 0) <= self.now);
            news |= called && !seat.awake;
            seat.awake |= called;
            return news;
        }
        let wants = lane.cursor.is_some();
        news = wants != seat.wanted;
        seat.wanted = wants;
        if news && wants {
            lane.wanted_since = self.now;
            self.level(number);
        }
        news
    }

    /// Who comes back starts no earlier than the least advanced of those present: nobody saves up for later.
    fn level(&mut self, number: usize) {
        let present = self.lanes.iter().zip(&self.seats).enumerate();
        let others =
            present.filter(|&(other, (lane, seat))| other != number && !lane.is_latency() && seat.wanted);
        if let Some(least) = others.map(|(_, (lane, _))| lane.virtual_time).min() {
            let lane = &mut self.lanes[number];
            lane.virtual_time = lane.virtual_time.max(least);
        }
    }

    fn fill_facts(&mut self) {
        if !self.desk.asked() {
            return;
        }
        for ((facts, lane), seat) in self.desk.facts.iter_mut().zip(&self.lanes).zip(&self.seats) {
            lane.tell(facts, self.now, seat.awake);
            facts.runs = seat.enabled;
        }
    }

    /// What the decision wants is on its way.
    fn pull_levers(&mut self) {
        if !self.world.sharing.is_scheduled() {
            return;
        }
        let (decision, costs) = (self.desk.decision, &self.world.card.costs);
        let mut free = self.now;
        let named = |number: usize, lane: &Lane| decision.admits(number as u32, lane.certificate, self.now);
        for (number, (lane, seat)) in self.lanes.iter().zip(&mut self.seats).enumerate() {
            if lane.is_latency() || named(number, lane) {
                continue;
            }
            if seat.lever.is_none() && seat.enabled {
                seat.lever = Some((self.now + costs.lever_off, false));
            }
            // Who is on its way in leaves again before another comes.
            free = free.max(match seat.lever {
                Some((at, true)) => at + costs.lever_off,
                Some((at, false)) => at,
                None => self.now,
            });
        }
        for (number, (lane, seat)) in self.lanes.iter().zip(&mut self.seats).enumerate() {
            if !lane.is_latency() && named(number, lane) && seat.lever.is_none() && !seat.enabled {
                seat.lever = Some((free + costs.lever_on, true));
            }
        }
    }

    /// Whether one did: whoever pulled it looks again when the call is over.
    fn let_levers_act(&mut self) -> bool {
        let mut acted = false;
        for number in 0..self.seats.len() {
            let Some((_, enabled)) = self.seats[number].lever.filter(|&(at, _)| at <= self.now) else {
                continue;
            };
            acted = true;
            let seat = &mut self.seats[number];
            (seat.enabled, seat.lever) = (enabled, None);
            if !enabled {
                seat.off_since = self.now;
                self.lanes[number].wanted_since = self.now;
            } else if self.owner == Some(number) && self.switching.is_none() {
                let lane = &mut self.lanes[number];
                if let Some(cursor) = &mut lane.cursor {
                    cursor.resume(&lane.score, self.now);
                }
            }
        }
        acted
    }

    fn has_work(&self, number: usize) -> bool {
        let lane = &self.lanes[number];
        self.seats[number].enabled
            && lane.cursor.as_ref().is_some_and(|cursor| cursor.has_work(&lane.score, self.now))
    }

    /// Who is next in the round with something to run.
    fn candidate(&self) -> Option<usize> {
        let count = self.lanes.len();
        let from = self.owner.map_or(0, |owner| owner + 1);
        (from..from + count).map(|place| place % count).find(|&n| Some(n) != self.owner && self.has_work(n))
    }

    /// Switches, where it is time to.
    fn hand_over(&mut self) {
        if let Some((next, at)) = self.switching {
            if at > self.now {
                return;
            }
            self.arrive(next);
        }
        let Some(next) = self.candidate() else {
            self.contended = false;
            return;
        };
        if let Some(owner) = self.owner.filter(|&owner| self.has_work(owner)) {
            self.renew_slice(owner);
            if self.now < self.slice_end {
                return;
            }
            self.leave(owner);
        }
        let costs = &self.world.card.costs;
        let off = if self.owner.is_some() { costs.switch_off } else { Nanos::ZERO };
        let mean = (off + costs.switch_on).0 as f64;
        let drawn = 2.0 * self.source.unit(0, self.switches) - 1.0;
        let span = Nanos((mean * (1.0 + costs.scatter * drawn)) as u64);
        self.switches += 1;
        self.switching = Some((next, self.now + span));
    }

    /// While nobody else had work, one slice followed another: who comes now waits for the rest of the last.
    fn renew_slice(&mut self, owner: usize) {
        if !std::mem::replace(&mut self.contended, true) {
            let (over, slice) = (self.now.since(self.slice_end).0, self.seats[owner].slice.0.max(1));
            self.slice_end += Nanos(over.div_ceil(slice) * slice);
        }
    }

    /// The context is loaded, and goes on.
    fn arrive(&mut self, next: usize) {
        (self.owner, self.switching, self.contended) = (Some(next), None, false);
        self.slice_end = self.now + self.seats[next].slice;
        let off_since = self.seats[next].off_since;
        let lane = &mut self.lanes[next];
        let Some(cursor) = &mut lane.cursor else { return };
        let since = cursor.wants_from(&lane.score).max(off_since);
        cursor.resume(&lane.score, self.now);
        lane.waited(self.now.since(since), self.now.since(since));
    }

    /// It has to leave in the middle of its work.
    fn leave(&mut self, owner: usize) {
        let costs = &self.world.card.costs;
        self.seats[owner].off_since = self.now;
        let lane = &mut self.lanes[owner];
        lane.stops.push(Stop { at: self.now, latency: costs.switch_off });
    }

    fn next_event(&self) -> Nanos {
        let mut next = self.desk.again().min(self.desk.next_tick());
        for seat in &self.seats {
            next = next.min(seat.lever.map_or(Nanos::MAX, |(at, _)| at));
        }
        if let Some((_, at)) = self.switching {
            next = next.min(at);
        }
        for number in 0..self.lanes.len() {
            next = next.min(self.lane_event(number));
        }
        next
    }

    fn lane_event(&self, number: usize) -> Nanos {
        let (lane, seat) = (&self.lanes[number], &self.seats[number]);
        let Some(cursor) = &lane.cursor else { return lane.next_begin() };
        let mut next = Nanos::MAX;
        if lane.is_latency() && !seat.awake {
            next = cursor.call(&lane.score, 0);
        }
        let loaded = self.owner == Some(number) && self.switching.is_none();
        if !loaded {
            let wants = cursor.wants_from(&lane.score);
            let news = seat.enabled && self.switching.is_none() && wants > self.now;
            return if news { next.min(wants) } else { next };
        }
        if lane.is_latency() || lane.next_due().is_some() {
            next = next.min(cursor.end(&lane.score));
        }
        if self.has_work(number) && self.candidate().is_some() {
            next = next.min(self.slice_end).min(cursor.busy_until(&lane.score, self.now));
        }
        next
    }
}

fn slice_of(world: &World, lane: &Lane, highest: u32) -> Nanos {
    let costs = &world.card.costs;
    match (world.sharing, lane.class) {
        (Sharing::Isolated, Class::BestEffort) => costs.best_effort_slice,
        (Sharing::Isolated, Class::Latency) => {
            slice::timeslice(Class::Latency, lane.priority, highest).unwrap_or(costs.slice)
        }
        _ => costs.slice,
    }
}
