//! A best-effort tenant of the shared domain.
//!
//! All tenants are on the GPU together, so nobody takes turns. When this one may run, the policy says (`decision`). When it may
//! not, mostly because a latency tenant has work, it stops: kernels with
//! twins between their blocks (`guard`), everything else before it is handed over (`post`). Latency tenants raise our stop
//! word themselves, if they have opened it; we then hear of it when their work ends, and resume. Where one cannot, we look
//! at the board often enough to raise it ourselves.
//!
//! Twins cost a little. When no latency tenant has had work for a while, originals are launched.

use std::ptr;

use board::{Need, Seat, Terms};
use model::{Kind, Nanos};
use policy::{fair, token};

use super::decision::{self, Course};
use super::post::{Gate, Post, wait_awake};
use crate::guard::{self, Counts, Mode, Steward, Wish};
use crate::log::say;

/// A latency tenant that had no work for so long is taken to have left.
const A_WHILE: Nanos = Nanos::from_millis(1_000);
/// How often the board is looked at while nobody else raises our stop word: when there was work lately, and otherwise.
const LOOK: Nanos = Nanos::from_micros(100);
const LOOK_IDLE: Nanos = Nanos::from_millis(1);
const IDLE: Nanos = Nanos::from_millis(250);
/// To see what is in flight takes some microseconds, so it is not done at every look. In between it is thought to be as before,
/// and what was added.
const LOOK_THROUGH: Nanos = Nanos::from_millis(1);
/// So often is asked whether anything is left to do, of a program that does not wait for its work.
const LOOK_FOR_END: Nanos = Nanos::from_millis(100);
/// What comes so soon is waited for awake: to be woken takes longer.
const SOON: Nanos = Nanos::from_micros(120);

pub struct Shared {
    steward: Steward,
    /// What of the steward's counts is in the tally.
    told: Counts,
    /// Which stop word was published on which seat.
    published: Option<(u32, usize)>,
    /// Until when latency tenants had work, as far as we have resumed after it.
    resumed_after: Nanos,
    /// Work handed over at the last look.
    given: u64,
    /// When it was last seen what is in flight.
    looked_through: Nanos,
    /// Since when it has run that was not charged yet.
    runs_since: Option<Nanos>,
    /// When it was last seen whether anything is left to do, and how busy latency tenants had been at the last look.
    looked_for_end: Nanos,
    latency_busy: Option<Nanos>,
    on: bool,
}

impl Shared {
    pub fn new() -> Shared {
        Shared {
            steward: Steward::new(),
            told: Counts::default(),
            published: None,
            resumed_after: Nanos::ZERO,
            given: 0,
            looked_through: Nanos::ZERO,
            runs_since: None,
            looked_for_end: Nanos::ZERO,
            latency_busy: None,
            on: false,
        }
    }

    /// One look; gives how long to sleep.
    pub fn tend(&mut self, post: &Post, seat: &'static Seat, terms: &Terms, now: Nanos) -> Nanos {
        self.on = true;
        post.hear();
        self.account(post, seat, now);
        let board = seat.board();
        let last = board.latency_last_active(now);
        // Exact shares need tenants that can be stopped, also where there is no latency tenant.
        let fair = board.dials().kind == Kind::Fair;
        let lately = fair || last.is_some_and(|last| now.since(last) < A_WHILE);
        guard::set_mode(if lately { Mode::Guarded } else { Mode::Original });
        guard::want_sms(if lately { decision::confine(board) } else { 0 });
        post.set_bound(board.dials().in_flight);
        post.set_gate(if lately { Gate::Shared } else { Gate::Open });
        self.publish(post, seat);
        // Even if nothing is stopped yet: whoever's work ends may have stopped us without our knowing.
        seat.say_stopped(lately);
        let active = board.latency_active(now);
        let certificate = self.look_through(post, seat, now);
        let course = decision::course(seat, terms, certificate, now);
        seat.say_decision(course.why as u8, course.longest);
        post.tell_decided(course.why, course.runs, course.longest);
        self.charge(seat, terms, course.runs && certificate > Nanos::ZERO, now);
        if course.runs && last.is_some_and(|last| last > self.resumed_after) {
            self.steward.doubt();
            self.resumed_after = last.unwrap_or(now);
        }
        let wish = match course {
            Course { runs: true, .. } => Wish::Go,
            Course { confined: true, .. } => Wish::Confine,
            _ => Wish::Stop,
        };
        let again = &mut || !decision::course(seat, terms, certificate, board::now()).runs;
        let rest = self.steward.tend(Some(post.device()), wish, again, now);
        self.tell(seat);
        self.say_off(post, seat, certificate);
        let rest =
            rest.min(self.until_next_look(post, seat, lately && course.runs)).min(course.again.since(now));
        let awake = match () {
            () if rest <= SOON => rest.min(wait_awake()),
            () if active && rest >= IDLE => wait_awake(),
            () => Nanos::ZERO,
        };
        if awake == Nanos::ZERO {
            return rest;
        }
        let until = board::now() + awake;
        let mut still = board::now();
        while board.latency_active(still) == active && still < until && !post.is_asked() {
            std::hint::spin_loop();
            still = board::now();
        }
        // Of one whose work takes longer we shall hear.
        if active && still >= until { rest } else { Nanos::ZERO }
    }

    /// Sees how long it would take to stop what is in flight, and says so.
    fn look_through(&mut self, post: &Post, seat: &Seat, now: Nanos) -> Nanos {
        post.look_for_need();
        let before = post.certificate();
        if now.since(self.looked_through) > LOOK_THROUGH {
            self.looked_through = now;
            post.set_certificate(before, guard::certificate::in_flight(post.device()));
        }
        let certificate = post.certificate();
        // Originals have no certificate, but they are on the GPU as well.
        let works = certificate > Nanos::ZERO || post.given() != self.given;
        // One that is long and was handed over some time ago is there still.
        let runs = (works || post.work.is_open()) && !self.steward.is_stopped();
        post.say_need(seat, Need { wants: works || post.waiting(), runs, certificate, piece: None }, now);
        certificate
    }

    /// A stopped tenant is off the GPU and may sleep for long: a latency tenant that wants to see itself alone must not find it
    /// running. Work that is still leaving was there until now.
    fn say_off(&self, post: &Post, seat: &Seat, certificate: Nanos) {
        if !self.steward.is_stopped() {
            return;
        }
        let now = board::now();
        // What is handed over from here on waits, and says nothing.
        post.say_runs(false);
        post.look_for_need();
        post.say_need(seat, Need { wants: true, runs: false, certificate, piece: None }, now);
        if self.steward.is_stopping() {
            seat.say_ran(now);
        }
    }

    /// Counts the time for which there was work on the GPU since the last look. Where nothing runs beside a request, the time of requests
    /// is not ours, whether we have heard of them or not.
    fn account(&mut self, post: &Post, seat: &Seat, now: Nanos) {
        if now.since(self.looked_for_end) > LOOK_FOR_END {
            self.looked_for_end = now;
            post.look_for_end(now);
        }
        let latency_busy = seat.board().latency_busy(now);
        let alone = decision::beside(seat.board()) == Nanos::ZERO && decision::confine(seat.board()) == 0;
        let before = self.latency_busy.replace(latency_busy).unwrap_or(latency_busy);
        let others = if alone { latency_busy.since(before) } else { Nanos::ZERO };
        let spent = post.spent(now);
        if self.runs() {
            seat.count_gpu_time(spent.since(others));
        }
    }

    /// Whether it may be on the GPU now.
    pub fn runs(&self) -> bool {
        self.on && !self.steward.is_stopped()
    }

    /// Moves our virtual time by what we have used of the GPU since the last look.
    fn charge(&mut self, seat: &Seat, terms: &Terms, runs: bool, now: Nanos) {
        if let Some(since) = self.runs_since.take() {
            let weight = fair::weight(terms.weight, terms.priority);
            seat.advance(token::charge(now.since(since), weight, 1));
        }
        self.runs_since = runs.then_some(now);
    }

    /// Stops until it is tended again: the tenant is paused.
    pub fn pause(&mut self, post: &Post, seat: &Seat, now: Nanos) -> Nanos {
        let rest = self.steward.tend(Some(post.device()), Wish::Stop, &mut || true, now);
        if self.steward.is_stopped() {
            seat.say_need(Need::default(), now);
        }
        self.tell(seat);
        rest
    }

    /// The tenant is of another class, or the domain another: everything goes on, and cannot be stopped any more.
    pub fn leave(&mut self, post: &Post, seat: Option<&Seat>, now: Nanos) {
        if !self.on {
            return;
        }
        guard::set_mode(Mode::Off);
        if let Some(seat) = seat {
            seat.say_stopped(false);
            seat.forget_stop_word();
        }
        self.published = None;
        self.runs_since = None;
        self.steward.doubt();
        self.steward.tend(Some(post.device()), Wish::Go, &mut || false, now);
        self.on = !self.steward.is_at_rest();
    }

    /// How long nothing happens of which nobody would tell us.
    fn until_next_look(&mut self, post: &Post, seat: &Seat, may_be_stopped: bool) -> Nanos {
        let given = post.given();
        let works = std::mem::replace(&mut self.given, given) != given;
        match () {
            () if !may_be_stopped || seat.latency_seats_raise() => IDLE,
            () if works => LOOK,
            () => LOOK_IDLE,
        }
    }

    /// Lets latency tenants know our stop word, once there is one.
    fn publish(&mut self, post: &Post, seat: &'static Seat) {
        let Some(word) = guard::stop_word(post.device()) else {
            if self.published.take().is_some() {
                seat.forget_stop_word();
            }
            return;
        };
        let this = Some((word.generation, ptr::from_ref(seat).addr()));
        if self.published == this {
            return;
        }
        self.published = this;
        match word.handle() {
            Some(handle) => seat.publish_stop_word(handle, 0),
            None => {
                seat.forget_stop_word();
                say!("the stop word cannot be opened by others; it is raised on sight of the board");
            }
        }
    }

    fn tell(&mut self, seat: &Seat) {
        let (tally, counts, told) = (seat.tally(), self.steward.counts, self.told);
        tally.stops_guard.add(counts.stops - told.stops);
        tally.cut.add(counts.cut - told.cut);
        tally.relaunched.add(counts.relaunched - told.relaunched);
        tally.confined.add(counts.confined - told.confined);
        tally.rounds.add(counts.rounds - told.rounds);
        tally.watchdog.add(counts.watchdog - told.watchdog);
        tally.resumes.add(counts.resumes - told.resumes);
        self.told = counts;
        if let Some(long) = self.steward.drained() {
            tally.guard_times.record(long);
        }
    }
}
