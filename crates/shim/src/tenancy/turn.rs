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
//!
//! The token is the board's, and there may be several boards for one GPU. So who has the token also takes the GPU's own lock
//! (`gpu_lock`) before its work goes there. And since not even that reaches everybody, the short slice is a lease
//! (`policy::lease`): it is kept only while work gets done.
//!
//! **Invariant of the short slice:** a tenant has it only while it holds the token or has nothing on the GPU. A tenant that
//! comes to a board with work under way, because it ran unseated or was of another class, is taken off the GPU first. Where
//! that cannot be done it is [`Footing::Astray`], and has a slice with which it and the holder both get on.

use board::{Claim, Need, Place, Seat, Settings, SliceState, StrangersSeen, Terms, UsedTime};
use model::{Nanos, Rung};
use rustix::io::Errno;
use rustix::process::Pid;
use telemetry::What;

use policy::lease::{GpuCompany, Progress, SliceLease};

use super::aside::{Price, SWITCH};
use super::gpu_lock::{Asked, GpuLock, LONGEST_TURN};
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
/// How often a holder looks whether its work gets done, and whether another board's tenant waits for the GPU.
const SAMPLE: Nanos = Nanos::from_millis(25);
/// Best-effort tenants that share a lock show it within this.
const SHARES_LOCK: Nanos = Nanos::from_millis(2_000);
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

/// How a best-effort tenant stands to the GPU, which decides about its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Footing {
    /// It holds the token.
    Holder,
    /// It has nothing on the GPU.
    Off,
    /// It has work on the GPU without the token, and could not be taken off.
    Astray,
}

pub struct Turn {
    state: State,
    lock: GpuLock,
    lease: SliceLease,
    /// How often the slice was lengthened, as far as it is counted.
    lengthened: u64,
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
    /// What the daemon has granted.
    terms: Terms,
    sees_strangers: bool,
    /// Whoever had the token and lost it without a sign of life: its work may still be on the GPU.
    stray: Option<Stray>,
    looked: Nanos,
    latency_busy: Nanos,
}

impl Turn {
    pub fn new() -> Turn {
        Turn {
            state: State::Idle,
            lock: GpuLock::new(),
            lease: SliceLease::default(),
            lengthened: 0,
            since: Nanos::ZERO,
            held_back: false,
            wanted: Nanos::ZERO,
            contended: None,
            given: 0,
            idle_since: None,
            stopped: false,
            price: Price::new(),
            terms: Terms::default(),
            sees_strangers: false,
            stray: None,
            looked: Nanos::ZERO,
            latency_busy: Nanos::ZERO,
        }
    }

    /// What the daemon has granted, from now on, and whether it is there to say who else is on the GPU.
    pub fn go_by(&mut self, terms: &Terms, sees_strangers: bool) {
        (self.terms, self.sees_strangers) = (*terms, sees_strangers);
    }

    fn used(&self, span: Nanos) -> UsedTime {
        UsedTime::new(span, self.terms.weight)
    }

    /// The board is another: whatever was held there is no more. A holder keeps its state until its next look, which finds
    /// that the new token is not its own and takes what is in flight off the GPU, as when somebody has taken the token.
    pub fn begin_anew(&mut self, post: &Post) {
        if self.state == State::Waiting {
            self.state = State::Idle;
            // Who was next for the GPU was so as the holder of the old token. The new one's may be somebody else, who waits
            // for the same place.
            self.lock.give_back(board::now());
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
            let astray = self.leave_the_gpu(post, seat, lever);
            if !post.waiting() && !self.stopped {
                return if astray { STOP_AGAIN } else { IDLE };
            }
            seat.want(now);
            self.wait(post, now);
        }
        if self.state == State::Waiting {
            // Into queues that stand still, threads may run ahead.
            post.set_gate(if self.stopped { Gate::Open } else { Gate::Closed });
            let (before, taken) = (seat.board().token(), seat.tally().taken_over.get());
            match seat.try_hold(now) {
                board::Turn::Others { look_again } => {
                    // It may have had the token, and been next for the GPU: that is the new holder's place now.
                    self.lock.give_back(now);
                    return look_again;
                }
                board::Turn::Mine { .. } => {
                    if seat.tally().taken_over.get() != taken {
                        self.stray = before.map(|(place, _)| Stray { place, lost: now, back: None });
                    }
                    match self.lock.ask(post.device(), now) {
                        Asked::Wait(rest) => return rest,
                        Asked::Without if self.lock.is_without() => self.lease.expect_company(now),
                        Asked::Without | Asked::Held => {}
                    }
                }
            }
            // With a lever, whether to go on yet is a question for the policy.
            if lever.is_none() && !self.resume(seat, None) {
                return STOP_AGAIN;
            }
            self.begin(post, seat, now);
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
            seat.leave(now, self.used(used), &mut choose);
            self.lock.give_back(now);
            self.state = State::Idle;
        }
    }

    /// There is no board any more by which to take turns: whatever was stopped for others goes on.
    pub fn abandon(&mut self, now: Nanos) {
        self.state = State::Idle;
        self.lock.give_back(now);
        if self.stopped && Lever::find().resume().is_ok() {
            tell_only(What::Resumed { rung: Rung::Switch });
            self.stopped = false;
        }
    }

    /// How this tenant stands to the GPU now.
    pub fn footing(&self, post: &Post) -> Footing {
        match self.state {
            State::Holding | State::Draining { .. } => Footing::Holder,
            _ if self.stopped || !has_work(post) => Footing::Off,
            _ => Footing::Astray,
        }
    }

    /// Whether the slice is the short one, and why not.
    pub fn slice_state(&self) -> SliceState {
        match (self.lease.is_lengthened(), self.lease.starving_since()) {
            (true, _) => SliceState::Lengthened,
            (false, Some(_)) => SliceState::Starving,
            (false, None) => SliceState::Short,
        }
    }

    /// The slice that the lease gives.
    pub fn slice(&self, now: Nanos) -> Nanos {
        self.lease.slice(now)
    }

    /// One who holds no token must not be on the GPU. What is there is taken off, if it can be; whether some of it is left.
    fn leave_the_gpu(&mut self, post: &Post, seat: &Seat, lever: Option<Lever>) -> bool {
        if self.footing(post) != Footing::Astray {
            return false;
        }
        self.stopped = lever.is_some_and(|lever| self.price.stop(lever, seat).is_ok());
        say!("work was on the GPU without the token; taken off it: {}", self.stopped);
        !self.stopped
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
        self.lock.give_back(board::now());
        self.state = State::Idle;
    }

    /// Work is off the GPU, and goes on with the next turn.
    pub fn put_stopped(&mut self) {
        self.stopped = true;
    }

    /// Whether work is kept off the GPU.
    pub fn is_stopped(&self) -> bool {
        self.stopped
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
        let look = match lever {
            Some(lever) => self.make_way(seat, lever, now).min(SAMPLE),
            // Who was away for a request when the lever was lost would stay away.
            None if !self.resume(seat, None) => return STOP_AGAIN,
            None => SAMPLE,
        };
        let (others_here, others_elsewhere) = (seat.others_want(), self.lock.is_wanted(now));
        if !others_here && !others_elsewhere {
            self.contended = None;
            post.set_gate(Gate::Open);
            return look;
        }
        // Others of another daemon have patience for so long only, whatever is set here.
        let quantum = if others_elsewhere { settings.quantum.min(LONGEST_TURN) } else { settings.quantum };
        // The quantum counts from when somebody else wanted the token: before, it harmed nobody to keep it. But nobody
        // waits longer than a quantum for one who has had the GPU for long.
        let contended = *self.contended.get_or_insert(now);
        let begun = self.since.max(contended.since(quantum));
        if self.idle_since.is_some_and(|since| now.since(since) >= settings.idle) {
            return self.begin_to_drain(post, now);
        }
        if now.since(begun) < quantum {
            post.set_gate(if lever.is_some() { Gate::Open } else { Gate::Bounded });
            return look.min(settings.idle).min((begun + quantum).since(now));
        }
        let used = self.used(now.since(self.since));
        if !others_elsewhere && seat.heir(now, used, &mut choose) == Some(seat.place()) {
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
        let aside = self.price.look(seat, &self.terms, self.stopped, now);
        let off = aside.off || self.lease.rests(now);
        match (self.stopped, off, idle) {
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
        self.lock.give_back(now);
        let used = now.since(self.since);
        let wants_more = post.waiting() || self.stopped;
        let charged = self.used(used);
        let _ = match wants_more {
            true => seat.pass(now, charged, &mut choose),
            false => seat.leave(now, charged, &mut choose),
        };
        post.tell_at(now, What::Given { held: used });
        self.state = State::Idle;
        if wants_more {
            self.wait(post, now);
        }
    }

    /// Who else may be on the GPU.
    fn company(&self, seat: &Seat, now: Nanos) -> GpuCompany {
        // What a daemon that is gone has said last is no news.
        let seen = if self.sees_strangers { seat.board().strangers() } else { StrangersSeen::default() };
        // Others that work and never want our lock have another one, as containers with a sysfs of their own do.
        let other_lock = seen.best_effort && self.lock.unshared_for(now) > SHARES_LOCK;
        match self.lock.is_held() && !other_lock {
            // With the lock, best-effort tenants of other daemons are off the GPU. Without it they may be what is in the way.
            true if seen.to_yield_to => {
                GpuCompany::Yield { fill: seen.fill, starve_after: seat.board().settings().starve_after }
            }
            true if seen.all_known => GpuCompany::Nobody,
            _ => GpuCompany::Unknown,
        }
    }

    /// Looks how busy the GPU is with this tenant. While a latency tenant has work, it is the GPU's only in name.
    fn account(&mut self, post: &Post, seat: &Seat, now: Nanos) {
        post.look_for_need();
        let given = post.given();
        let handed_over = given.wrapping_sub(self.given);
        let moves = handed_over != 0;
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
        post.say_need(seat, Need { wants: busy, runs, certificate: SWITCH, piece: None }, now);
        if !self.stopped {
            seat.count_gpu_time(spent.since(latency_busy.since(self.latency_busy)));
        }
        // Off the GPU, or beside a latency tenant, it is no wonder that nothing gets done.
        let ran =
            if runs && latency_busy <= self.latency_busy { now.since(self.looked) } else { Nanos::ZERO };
        let company = self.company(seat, now);
        // Into queues that stand still threads run ahead, which is no progress.
        let given = if self.stopped { 0 } else { handed_over };
        self.lease.look(&Progress { ran, given, done: !busy }, company, now);
        let lengthened = self.lease.lengthened();
        tally
            .slices_lengthened
            .add(lengthened.wrapping_sub(std::mem::replace(&mut self.lengthened, lengthened)));
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

/// Whether something that was handed over may still be on the GPU, or is on its way there.
fn has_work(post: &Post) -> bool {
    !super::is_quiet() || post.streams.work() != Work::Done
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
