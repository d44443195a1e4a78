//! The turn of a best-effort tenant: when it may hand over work.
//!
//! Best-effort tenants of one GPU would switch each other off and on without end, so one at a time holds the token. A
//! tenant wants it when a thread waits at the gate, opens the gate when it has it, and gives it on when its quantum is over
//! or it has nothing to do; but only if somebody else wants it, and never with work on the GPU: two of them there together
//! would stand still.
//!
//! With a lever, a turn ends when the quantum does: what is on the GPU is taken off it in the middle of a kernel, and goes
//! on with the next turn. The gate stays open meanwhile. The program's threads run ahead into queues that stand still, so
//! that the next turn begins with work at hand and a program that is slower than the GPU loses nothing by waiting.
//!
//! A holder with a lever also stays off the GPU for as long as the policy wants it to, where that pays (`aside`). It keeps the token
//! meanwhile: whoever else had it would have to stay away as well.
//!
//! Without one, the gate is closed and what is in flight is waited for; so that this does not take long, the time in flight
//! is bounded for as long as somebody else wants the token.

use board::{Claim, Need, Place, Seat, Settings};
use model::{Nanos, Rung};
use rustix::io::Errno;
use rustix::process::Pid;
use telemetry::What;

use super::aside::{Price, SWITCH};
use super::lever::Lever;
use super::post::{Gate, Post};
use super::streams::Work;
use super::tell::tell_only;
use crate::log::say;

/// How often is looked whether a stream is done, when somebody waits for it.
const DRAIN_LOOK: Nanos = Nanos::from_micros(50);
/// Beyond the time that may be in flight.
const DRAIN_MARGIN: Nanos = Nanos::from_millis(2);
/// Without a lever, the longest time that others wait for work that does not end.
const DRAIN_AT_MOST: Nanos = Nanos::from_millis(250);
/// When to try again what the driver refused.
pub const STOP_AGAIN: Nanos = Nanos::from_millis(10);
/// A process that comes to life again takes its work off the GPU within this.
const COMING_BACK: Nanos = Nanos::from_millis(50);
/// Work of which nothing is done for so long may be standing still, because somebody is on the GPU out of turn.
const STUCK: Nanos = Nanos::from_millis(250);
/// How long one steps aside then.
const ASIDE: std::time::Duration = std::time::Duration::from_millis(20);
/// How often a holder that nobody waits for looks how busy it is.
const SAMPLE: Nanos = Nanos::from_millis(100);
const IDLE: Nanos = Nanos::from_millis(250);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Waiting,
    Holding,
    /// The gate is closed, and what is in flight is waited for.
    Draining {
        from: Nanos,
    },
}

pub struct Turn {
    state: State,
    /// When the token came, and since when it was wanted.
    since: Nanos,
    /// The last turn was ended by waiting for what was in flight.
    held_back: bool,
    wanted: Nanos,
    /// When somebody else began to want it.
    contended: Option<Nanos>,
    /// The count of work at the last look, and since when nothing was in flight.
    given: u64,
    idle_since: Option<Nanos>,
    /// Work was taken off the GPU, and waits for the next turn, or for the end of a request.
    stopped: bool,
    price: Price,
    /// Whoever had the token and lost it without a sign of life: its work may still be on the GPU.
    stray: Option<Stray>,
    /// Since when there has been work and no sign that any of it was done.
    stuck_since: Option<Nanos>,
    looked: Nanos,
    latency_busy: Nanos,
}

impl Turn {
    pub fn new() -> Turn {
        Turn {
            state: State::Idle,
            since: Nanos::ZERO,
            held_back: false,
            wanted: Nanos::ZERO,
            contended: None,
            given: 0,
            idle_since: None,
            stopped: false,
            price: Price::new(),
            stray: None,
            stuck_since: None,
            looked: Nanos::ZERO,
            latency_busy: Nanos::ZERO,
        }
    }

    /// The board is another: whatever was held there is no more. A holder keeps its state until its next look, which finds
    /// that the new token is not its own and takes what is in flight off the GPU, as when somebody has taken the token.
    pub fn begin_anew(&mut self, post: &Post) {
        if self.state == State::Waiting {
            self.state = State::Idle;
        }
        post.set_gate(Gate::Closed);
    }

    /// One look; gives how long to sleep.
    pub fn take(&mut self, post: &Post, seat: &Seat, lever: Option<Lever>, now: Nanos) -> Nanos {
        let settings = seat.board().settings();
        post.set_bound(seat.board().dials().in_flight);
        let holding = matches!(self.state, State::Holding | State::Draining { .. });
        if holding && seat.holds().is_none() {
            post.tell(What::Given { held: now.since(self.since) });
            self.lose(post, seat, lever);
            withdraw(seat, now);
        }
        if self.state == State::Idle {
            post.set_gate(Gate::Closed);
            if !post.waiting() && !self.stopped {
                return IDLE;
            }
            seat.want(now);
            self.wait(post, now);
        }
        if self.state == State::Waiting {
            // Into queues that stand still, threads may run ahead.
            post.set_gate(if self.stopped { Gate::Open } else { Gate::Closed });
            let (before, taken) = (seat.board().token(), seat.tally().taken_over.get());
            match seat.try_hold(now) {
                board::Turn::Others { look_again } => return look_again,
                // With a lever, whether to go on yet is a question for the policy.
                board::Turn::Mine { .. } if lever.is_none() && !self.resume(seat, None) => return STOP_AGAIN,
                board::Turn::Mine { .. } => self.begin(post, seat, now),
            }
            if seat.tally().taken_over.get() != taken {
                self.stray = before.map(|(place, _)| Stray { place, lost: now, back: None });
            }
        }
        self.account(post, seat, now);
        match self.state {
            State::Draining { from } => self.drain(post, seat, lever, from, now),
            _ => self.hold(post, seat, lever, &settings, now),
        }
    }

    /// Gives up the turn, whatever it was: the tenant is paused, or of another class by now.
    pub fn leave(&mut self, seat: &Seat, now: Nanos) {
        if self.state != State::Idle {
            withdraw(seat, now);
            let used = if self.state == State::Waiting { Nanos::ZERO } else { now.since(self.since) };
            // Also who waits gives up something, after no time at all.
            tell_only(What::Given { held: used });
            seat.leave(now, used, &mut choose);
            self.state = State::Idle;
        }
    }

    /// Whether one who lost the token may still have work on the GPU.
    pub fn beside_stray(&mut self, seat: &Seat, now: Nanos) -> bool {
        let gone = self.stray.as_mut().is_some_and(|stray| stray.is_gone(seat, now));
        self.stray.take_if(|_| gone);
        self.stray.is_some()
    }

    /// Somebody took the token, because this process showed no life. Two must not be on the GPU together.
    fn lose(&mut self, post: &Post, seat: &Seat, lever: Option<Lever>) {
        post.set_gate(Gate::Closed);
        self.stopped = self.stopped || lever.is_some_and(|lever| self.price.stop(lever, seat).is_ok());
        say!("the token was lost; what was on the GPU has left it: {}", self.stopped);
        self.state = State::Idle;
    }

    /// Work is off the GPU, and goes on with the next turn.
    pub fn put_stopped(&mut self) {
        self.stopped = true;
    }

    /// Whether it may be on the GPU now.
    pub fn runs(&self) -> bool {
        matches!(self.state, State::Holding | State::Draining { .. }) && !self.stopped
    }

    /// Lets what was stopped go on. Whether it does: a tenant that holds the token and stands still must try again.
    pub fn resume(&mut self, seat: &Seat, lever: Option<Lever>) -> bool {
        // Also if the process has come to work on several GPUs meanwhile, and would not be stopped any more.
        let resumed = !self.stopped || lever.unwrap_or_else(Lever::find).resume().is_ok();
        if self.stopped && resumed {
            tell_only(What::Resumed { rung: Rung::Switch });
        }
        seat.tally().refusals.add(u64::from(!resumed));
        seat.tally().resumes.add(u64::from(self.stopped && resumed));
        self.stopped = !resumed;
        resumed
    }

    fn wait(&mut self, post: &Post, now: Nanos) {
        self.state = State::Waiting;
        self.wanted = now;
        post.tell_at(now, What::Wanted);
    }

    fn begin(&mut self, post: &Post, seat: &Seat, now: Nanos) {
        post.tell_at(now, What::Held { waited: now.since(self.wanted) });
        self.state = State::Holding;
        self.since = now;
        seat.tally().resumes.add(u64::from(std::mem::take(&mut self.held_back)));
        // Whatever there was to do before, it was not on the GPU.
        post.spent(now);
        self.contended = None;
        self.idle_since = None;
        self.stuck_since = None;
        self.given = post.given();
        self.looked = now;
        self.latency_busy = seat.board().latency_busy(now);
    }

    fn hold(
        &mut self,
        post: &Post,
        seat: &Seat,
        lever: Option<Lever>,
        settings: &Settings,
        now: Nanos,
    ) -> Nanos {
        let stuck = self.stuck_since.is_some_and(|since| now.since(since) > STUCK);
        if let Some(lever) = lever.filter(|_| stuck && seat.has_company()) {
            self.step_aside(seat, lever);
        }
        let look = match lever {
            Some(lever) => self.make_way(seat, lever, now).min(SAMPLE),
            // Who was away for a request when the lever was lost would stay away.
            None if !self.resume(seat, None) => return STOP_AGAIN,
            None => SAMPLE,
        };
        if !seat.others_want() {
            self.contended = None;
            post.set_gate(Gate::Open);
            return look;
        }
        // The quantum counts from when somebody else wanted the token: before, it harmed nobody to keep it. But nobody
        // waits longer than a quantum for one who has had the GPU for long.
        let contended = *self.contended.get_or_insert(now);
        let begun = self.since.max(contended.since(settings.quantum));
        if self.idle_since.is_some_and(|since| now.since(since) >= settings.idle) {
            return self.begin_to_drain(post, now);
        }
        if now.since(begun) < settings.quantum {
            post.set_gate(if lever.is_some() { Gate::Open } else { Gate::Bounded });
            return look.min(settings.idle).min((begun + settings.quantum).since(now));
        }
        let used = now.since(self.since);
        if seat.heir(now, used, &mut choose) == Some(seat.place()) {
            // Nobody else has a better claim: there is no reason to stop for another quantum.
            let own = seat.place();
            seat.pass(now, used, &mut |claims| claims.iter().position(|claim| claim.place == own));
            self.since = now;
            return Nanos::ZERO;
        }
        match lever {
            Some(lever) if self.stopped || self.price.stop(lever, seat).is_ok() => {
                self.end_stopped(post, seat, now)
            }
            _ => self.begin_to_drain(post, now),
        }
    }

    /// Is off the GPU while the policy wants it to be, where that pays. How long nothing happens of which nobody would tell us.
    fn make_way(&mut self, seat: &Seat, lever: Lever, now: Nanos) -> Nanos {
        let idle = self.idle_since.map(|since| now.since(since));
        let listens = !self.stopped && idle.is_none() && self.price.is_worth_hearing(seat, now);
        // Before we look, so that nothing is missed that happens while we do.
        seat.say_listening(listens);
        seat.say_stopped(self.stopped);
        let aside = self.price.look(seat, self.stopped, now);
        match (self.stopped, aside.off, idle) {
            (true, false, _) if self.resume(seat, Some(lever)) => Nanos::ZERO,
            (false, true, None) if self.price.stop(lever, seat).is_ok() => {
                self.stopped = true;
                seat.tally().stops_switch.add(1);
                Nanos::ZERO
            }
            (true, false, _) | (false, true, None) => STOP_AGAIN,
            // A process without work is left alone: calls that nobody watches may need the GPU too. When it has work again,
            // nobody tells; who has had none for long need not be asked often.
            (false, true, Some(idle)) => idle.clamp(self.price.get(), STOP_AGAIN),
            _ if listens || self.stopped => aside.again.since(now),
            _ => self.price.look_unheard(seat, now).unwrap_or(SAMPLE).min(aside.again.since(now)),
        }
    }

    /// Nothing moves. If somebody is on the GPU out of turn, he can only leave it while we are not there.
    fn step_aside(&mut self, seat: &Seat, lever: Lever) {
        say!("nothing is done; stepping aside");
        if self.price.stop(lever, seat).is_ok() {
            std::thread::sleep(ASIDE);
            self.stopped = true;
            self.resume(seat, Some(lever));
        }
        self.stuck_since = None;
    }

    /// Everything is off the GPU: the turn is over.
    fn end_stopped(&mut self, post: &Post, seat: &Seat, from: Nanos) -> Nanos {
        let now = board::now();
        // Who was away for a request has been counted then.
        seat.tally().stops_switch.add(u64::from(!self.stopped));
        self.stopped = true;
        seat.tally().handover_times.record(now.since(from));
        self.give_on(post, seat, now);
        Nanos::ZERO
    }

    fn begin_to_drain(&mut self, post: &Post, now: Nanos) -> Nanos {
        post.set_gate(Gate::Closed);
        post.tell_at(now, What::Stopping { rung: Rung::Hold });
        self.state = State::Draining { from: now };
        Nanos::ZERO
    }

    fn drain(&mut self, post: &Post, seat: &Seat, lever: Option<Lever>, from: Nanos, now: Nanos) -> Nanos {
        let long = now.since(from);
        let work = if super::is_quiet() { post.streams.work() } else { Work::Pending };
        if work != Work::Done {
            let patience = match (lever, work) {
                (None, Work::Pending) => DRAIN_AT_MOST,
                // What cannot be asked about is most likely done after the time that may be in flight, and a little more.
                _ => seat.board().dials().in_flight + DRAIN_MARGIN,
            };
            if long < patience {
                return DRAIN_LOOK;
            }
            match lever.map(|lever| self.price.stop(lever, seat)) {
                Some(Ok(())) => return self.end_stopped(post, seat, from),
                Some(Err(_)) => {
                    // With the shortest slices on both sides nobody would get on: better that the others wait.
                    seat.tally().refusals.add(1);
                    return STOP_AGAIN;
                }
                None => say!("work was not done after {} ns; others go on beside it", long.0),
            }
        }
        post.tell_at(now, What::Stopped { rung: Rung::Hold, took: long });
        seat.tally().stops_hold.add(1);
        seat.tally().handover_times.record(long);
        seat.tally().hold_times.record(long);
        self.held_back = true;
        self.give_on(post, seat, now);
        Nanos::ZERO
    }

    /// Gives the token to whoever is next, which may be this tenant again.
    fn give_on(&mut self, post: &Post, seat: &Seat, now: Nanos) {
        withdraw(seat, now);
        let used = now.since(self.since);
        let wants_more = post.waiting() || self.stopped;
        let _ =
            if wants_more { seat.pass(now, used, &mut choose) } else { seat.leave(now, used, &mut choose) };
        post.tell_at(now, What::Given { held: used });
        self.state = State::Idle;
        if wants_more {
            self.wait(post, now);
        }
    }

    /// Looks how busy the GPU is with this tenant. While a latency tenant has work, it is the GPU's only in name.
    fn account(&mut self, post: &Post, seat: &Seat, now: Nanos) {
        let given = post.given();
        let moves = given != self.given;
        // A thread that is inside the driver may keep others from asking it. Off the GPU nothing comes to an end, so there is nothing to ask;
        // and who asked could wait for a thread that holds the driver's locks and itself waits for the GPU, as one that gives memory back may.
        // Then nobody would be left to let them on again.
        let busy = self.stopped || moves || !super::is_quiet() || post.streams.work() != Work::Done;
        self.given = given;
        self.idle_since = if busy { None } else { self.idle_since.or(Some(now)) };
        let latency_busy = seat.board().latency_busy(now);
        let tally = seat.tally();
        tally.held_ns.add(now.since(self.looked).0);
        let runs = busy && !self.stopped;
        if !busy && post.given() == given {
            post.all_done(now);
        }
        let spent = post.spent(now);
        seat.say_need(Need { wants: busy, runs, certificate: SWITCH, piece: None }, now);
        if !self.stopped {
            tally.gpu_ns.add(spent.since(latency_busy.since(self.latency_busy)).0);
        }
        // Off the GPU, or beside a latency tenant, it is no wonder that nothing moves.
        let moves = moves || !runs || latency_busy > self.latency_busy;
        self.stuck_since = if moves { None } else { self.stuck_since.or(Some(now)) };
        self.looked = now;
        self.latency_busy = latency_busy;
    }
}

/// A tenant that may have work on the GPU without having the token.
#[derive(Clone, Copy)]
struct Stray {
    place: Place,
    lost: Nanos,
    /// When it was seen to be alive again.
    back: Option<Nanos>,
}

impl Stray {
    /// Dead, or alive for long enough to have noticed.
    fn is_gone(&mut self, seat: &Seat, now: Nanos) -> bool {
        let Some((pid, beat)) = seat.board().pulse(self.place) else { return true };
        if beat > self.lost {
            return now.since(*self.back.get_or_insert(now)) > COMING_BACK;
        }
        let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
        process.is_some_and(|process| rustix::process::test_kill_process(process) == Err(Errno::SRCH))
    }
}

/// Takes back what only a holder says on the board.
fn withdraw(seat: &Seat, now: Nanos) {
    seat.say_stopped(false);
    seat.say_listening(false);
    seat.say_need(Need::default(), now);
}

fn choose(claims: &[Claim]) -> Option<usize> {
    policy::token::choose(claims.iter().map(|claim| policy::token::Claim {
        virtual_time: claim.virtual_time,
        wanted_since: claim.wanted_since,
    }))
}
