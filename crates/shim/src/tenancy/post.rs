//! A post: this process on one GPU, as its threads see it.
//!
//! Threads that hand over work pass the post's gate and leave their marks; everything else is done by the post's keeper, a
//! thread of its own. They meet in a few words of memory and in two futexes: the gate, on which threads wait for the
//! keeper, and the bell, on which the keeper waits for them.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use board::{Gpu, Need, Seat};
use cuda_abi::CUstream;
use model::{Class, Nanos};
use policy::slo;
use rustix::thread::futex;
use rustix::time::Timespec;
use telemetry::What;

use super::burst::{Bursts, Change};
use super::decision;
use super::flight::Flight;
use super::granted::PublishedTerms;
use super::key::Key;
use super::mark::Mark;
use super::meter::Meter;
use super::outlook::Prospect;
use super::raise::Raise;
use super::streams::{self, Streams};
use super::{Inside, Work};
use crate::{arena, guard};

/// What threads find at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Gate {
    Open,
    /// Open, while no more than a bounded time of work is in flight.
    Bounded,
    Closed,
    /// Bounded, while no latency tenant has work.
    Shared,
}

/// A thread that waits at the gate looks again so often.
const LOOK: Nanos = Nanos::from_millis(20);
/// A keeper that has done nothing for so many looks is taken for lost, and the gate is opened: a tenant that is not held
/// back is better than one that hangs.
const PATIENCE: u32 = 250;
/// A thread that waits until it may run beside a latency tenant looks again so often, and no longer than this.
const BESIDE_LOOK: Nanos = Nanos::from_micros(20);
const LONGEST_BESIDE: Nanos = Nanos::from_millis(30_000);
/// The daemon is waited for a little longer than the keeper waits for its first answer.
const INTRODUCED_WITHIN: Nanos = Nanos::from_millis(1_500);
/// How long it is waited until the keeper has heard what the daemon has said.
const HEARD_WITHIN: Nanos = Nanos::from_millis(5);
/// How often it is looked whether enough work has been done.
const NAP: Nanos = Nanos::from_micros(100);

pub struct Post {
    device: AtomicI32,
    gpu: [AtomicU64; 2],
    class: AtomicU32,
    gate: AtomicU32,
    /// Threads at the gate.
    waiting: AtomicU32,
    /// Counts what was handed over.
    given: AtomicU64,
    /// What had been handed over when a guarded launch was last made.
    stoppable: AtomicU64,
    /// Whether a thread has something that must not run beside a latency tenant's work, and the keeper should stop first.
    asked: AtomicBool,
    /// Counts the keeper's rounds.
    rounds: AtomicU32,
    /// How much time may be in flight.
    in_flight: AtomicU64,
    /// How long it takes to stop what may be on the GPU, of guarded launches.
    certificate: AtomicU64,
    /// The bell, until there is a seat with one.
    bell: AtomicU32,
    seat: AtomicPtr<Seat>,
    /// Whether the daemon has been asked for a seat, and has answered or not been found.
    introduced: AtomicU32,
    pub streams: Streams,
    pub flight: Flight,
    pub bursts: Bursts,
    /// When there is work, of either class. Unlike a request, which others stop for, it is not given up for lasting long.
    pub(super) work: Bursts,
    /// For how long there was.
    pub(super) meter: Meter,
    /// Whether work that there is may be on the GPU, as the keeper last knew.
    pub(super) runs: AtomicBool,
    /// Whether the board says that there is some.
    pub(super) says_runs: AtomicBool,
    /// When the work began that was under way at the keeper's last look.
    pub(super) under_way: AtomicU64,
    /// Kernels that were launched before there was a seat to count them on.
    pub(super) launches: AtomicU64,
    pub raise: Raise,
    pub prospect: Prospect,
    pub granted: PublishedTerms,
    /// Counts how often the keeper has listened to the daemon.
    listened: AtomicU32,
}

impl Post {
    pub const fn new() -> Post {
        Post {
            device: AtomicI32::new(-1),
            gpu: [AtomicU64::new(0), AtomicU64::new(0)],
            class: AtomicU32::new(0),
            gate: AtomicU32::new(Gate::Open as u32),
            waiting: AtomicU32::new(0),
            given: AtomicU64::new(0),
            stoppable: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            rounds: AtomicU32::new(0),
            in_flight: AtomicU64::new(u64::MAX),
            certificate: AtomicU64::new(0),
            bell: AtomicU32::new(0),
            seat: AtomicPtr::new(ptr::null_mut()),
            introduced: AtomicU32::new(0),
            streams: Streams::new(),
            flight: Flight::new(),
            bursts: Bursts::new(),
            work: Bursts::new(),
            meter: Meter::new(),
            runs: AtomicBool::new(true),
            says_runs: AtomicBool::new(false),
            under_way: AtomicU64::new(0),
            launches: AtomicU64::new(0),
            raise: Raise::new(),
            prospect: Prospect::new(),
            granted: PublishedTerms::new(),
            listened: AtomicU32::new(0),
        }
    }

    /// Before anybody can see it.
    pub fn prepare(&self, device: i32, gpu: Gpu, class: Class) {
        let (low, high) = gpu.0.split_at(8);
        for (word, half) in self.gpu.iter().zip([low, high]) {
            word.store(u64::from_le_bytes(half.try_into().expect("half of sixteen")), Ordering::Relaxed);
        }
        self.seat.store(ptr::null_mut(), Ordering::Relaxed);
        self.introduced.store(0, Ordering::Relaxed);
        self.granted.forget();
        self.waiting.store(0, Ordering::Relaxed);
        // The child of a fork has done nothing yet.
        self.launches.store(0, Ordering::Relaxed);
        self.bursts.forget();
        self.work.forget();
        self.meter.take();
        self.be(class);
        // The first work waits for the keeper, who is about to ask for the token.
        self.set_gate(if class == Class::BestEffort { Gate::Closed } else { Gate::Open });
        self.device.store(device, Ordering::Release);
    }

    pub fn device(&self) -> i32 {
        self.device.load(Ordering::Acquire)
    }

    pub fn gpu(&self) -> Gpu {
        let mut bytes = [0; 16];
        for (half, word) in bytes.chunks_exact_mut(8).zip(&self.gpu) {
            half.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        Gpu(bytes)
    }

    pub fn be(&self, class: Class) {
        self.class.store(u32::from(class == Class::Latency), Ordering::Relaxed);
    }

    #[inline]
    pub fn is_latency(&self) -> bool {
        self.class.load(Ordering::Relaxed) != 0
    }

    pub fn seat(&self) -> Option<&'static Seat> {
        // SYNC(post-seat): pairs with the store in `sit`.
        let seat = self.seat.load(Ordering::Acquire);
        // SAFETY: null, or a seat in the arena, which stays.
        (!seat.is_null()).then(|| unsafe { &*seat })
    }

    /// The daemon has been asked.
    pub fn introduce(&self) {
        if self.introduced.swap(1, Ordering::AcqRel) == 0 {
            let _ = futex::wake(&self.introduced, futex::Flags::PRIVATE, i32::MAX.unsigned_abs());
        }
    }

    /// The seat, once it is known whether there is one. Asking takes a moment, and is waited for only so long.
    pub fn seat_when_introduced(&self) -> Option<&'static Seat> {
        if self.introduced.load(Ordering::Acquire) == 0 {
            self.await_introduction();
        }
        self.seat()
    }

    #[cold]
    fn await_introduction(&self) {
        let began = board::now();
        while self.introduced.load(Ordering::Acquire) == 0 && board::now().since(began) < INTRODUCED_WITHIN {
            sleep(&self.introduced, 0, LOOK);
        }
    }

    /// Has threads use this seat from now on.
    pub fn sit(&self, seat: Seat) -> Option<&'static Seat> {
        let placed = arena::place(seat)?;
        // SYNC(post-seat): whoever sees the seat sees what it is.
        self.seat.store(ptr::from_ref(placed).cast_mut(), Ordering::Release);
        Some(placed)
    }

    /// The keeper has heard all that the daemon had said.
    pub fn listened(&self) {
        // SYNC(listened): a thread that sees the count sees what was heard.
        self.listened.fetch_add(1, Ordering::Release);
    }

    /// Has the keeper listen to the daemon, and waits for that, though not for long.
    #[cold]
    pub fn have_heard(&self) {
        // SYNC(listened): pairs with the count in `listened`.
        let (before, began) = (self.listened.load(Ordering::Acquire), board::now());
        self.ring();
        while self.listened.load(Ordering::Acquire) == before && board::now().since(began) < HEARD_WITHIN {
            std::thread::sleep(NAP.into());
        }
    }

    pub fn set_bound(&self, in_flight: Nanos) {
        self.in_flight.store(in_flight.0, Ordering::Relaxed);
    }

    pub fn set_gate(&self, gate: Gate) {
        // SYNC(gate): who passes sees what the keeper did before it opened.
        let before = self.gate.swap(gate as u32, Ordering::SeqCst);
        if before != gate as u32 {
            let _ = futex::wake(&self.gate, futex::Flags::PRIVATE, i32::MAX.unsigned_abs());
        }
    }

    pub fn waiting(&self) -> bool {
        self.waiting.load(Ordering::Acquire) != 0
    }

    /// What a best-effort tenant has handed over.
    pub fn given(&self) -> u64 {
        self.given.load(Ordering::Acquire)
    }

    /// What was handed over in all, whatever the class was then.
    pub fn submissions(&self) -> u64 {
        self.given().wrapping_add(self.bursts.work())
    }

    /// A thread is about to hand over work. That of a latency tenant passes no gate.
    #[inline]
    pub fn pass(
        &'static self,
        work: Work,
        could_hold: &dyn Fn() -> bool,
        hold: &dyn Fn() -> bool,
    ) -> Option<Inside> {
        if self.is_latency() && self.gate() != Gate::Closed as u32 {
            let known = !self.raise.is_on() || self.bursts.is_open();
            return if known { None } else { self.announce() };
        }
        let inside = Inside::enter();
        if self.gate() == Gate::Open as u32 {
            return Some(inside);
        }
        drop(inside);
        Some(self.wait_at_gate(work, could_hold, hold))
    }

    /// The first work of a burst, in the shared domain: the others stop while it is on its way.
    #[cold]
    fn announce(&'static self) -> Option<Inside> {
        // What goes into a graph is not work yet.
        if streams::is_capturing() {
            return None;
        }
        self.burst(self.bursts.announce(board::now()));
        Some(Inside::Announced(self))
    }

    /// The driver has answered for the work that was announced.
    pub fn answered(&self) {
        self.burst(self.bursts.withdraw(board::now));
    }

    #[inline]
    fn gate(&self) -> u32 {
        // SYNC(gate): pairs with the swap in `set_gate`; SYNC(inside): see `Inside::enter`.
        self.gate.load(Ordering::SeqCst)
    }

    #[cold]
    fn wait_at_gate(&self, work: Work, could_hold: &dyn Fn() -> bool, hold: &dyn Fn() -> bool) -> Inside {
        let began = board::now();
        let (mut closed, mut held) = (false, false);
        let (mut rounds, mut looks) = (self.rounds.load(Ordering::Relaxed), 0);
        let inside = loop {
            let inside = Inside::enter();
            let gate = self.gate();
            let shared = gate == Gate::Shared as u32;
            let must_hold = shared && self.must_hold() && !(work == Work::Transfer && self.is_confined());
            let waits_here = must_hold && !(self.is_sure_to_stop() && hold());
            held |= waits_here;
            let bounded = gate == Gate::Bounded as u32 || shared && !waits_here;
            if gate == Gate::Open as u32 || bounded && self.has_room() {
                break inside;
            }
            drop(inside);
            if gate != Gate::Closed as u32 {
                // What only a thread can wait for, it waits for no less when everything has stopped.
                if waits_here && could_hold() {
                    self.ask_to_stop(Nanos::ZERO);
                }
                sleep(&self.gate, gate, NAP);
                continue;
            }
            if !closed {
                self.waiting.fetch_add(1, Ordering::AcqRel);
                closed = true;
            }
            self.ring();
            sleep(&self.gate, gate, LOOK);
            let now = self.rounds.load(Ordering::Relaxed);
            looks = if now == rounds { looks + 1 } else { 0 };
            rounds = now;
            if looks > PATIENCE {
                crate::log::say!("the keeper of GPU {} is lost; nothing is held back", self.device());
                self.set_gate(Gate::Open);
            }
        };
        if closed {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        if closed || held {
            self.count_wait(began);
        }
        inside
    }

    fn count_wait(&self, began: Nanos) {
        let Some(seat) = self.seat() else { return };
        let (tally, waited) = (seat.tally(), board::now().since(began));
        tally.waits.add(1);
        tally.wait_ns.add(waited.0);
        tally.wait_times.record(waited);
        self.tell_at(began + waited, What::Waited { lasted: waited });
    }

    /// Whether a latency tenant has work, in the shared domain. Asked by every thread for itself: a keeper would hear of it
    /// later.
    fn must_hold(&self) -> bool {
        self.seat().is_some_and(|seat| seat.board().latency_active(board::now()))
    }

    /// Whether a latency tenant that has work has raised our stop word, or the keeper. Then work may be handed over that waits for the word,
    /// and the program goes on: one that is bound by its launches needs that time as much as the GPU's.
    fn is_sure_to_stop(&self) -> bool {
        let raised =
            |seat: &Seat| seat.latency_seats_raise() && decision::beside(seat.board()) == Nanos::ZERO;
        self.seat().is_some_and(raised) || guard::is_stopped(self.device())
    }

    /// Whether what is stopped goes on, on some of the SMs. By the dial, and not by what the keeper has done about it: what was made to wait
    /// for the end of a request, in the moment before he knew of it, would hold up everything behind it until then.
    fn is_confined(&self) -> bool {
        self.seat().is_some_and(|seat| decision::confine(seat.board()) > 0)
            && guard::has_siding(self.device())
    }

    /// Where short work may run beside a latency tenant's, everything has to be stopped before something longer can wait on the GPU's
    /// side of a gate. Has the keeper do that, who finds on the board how long it is.
    fn ask_to_stop(&self, certificate: Nanos) {
        let Some(seat) = self.seat() else { return };
        let beside = decision::beside(seat.board());
        if beside == Nanos::ZERO || guard::is_stopped(self.device()) {
            return;
        }
        self.certify(seat, certificate.max(beside + Nanos(1)));
        if !self.asked.swap(true, Ordering::AcqRel) {
            self.ring();
        }
    }

    /// Whether somebody has asked to stop.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The keeper has heard it.
    pub fn hear(&self) {
        self.asked.store(false, Ordering::Relaxed);
    }

    /// A guarded launch is about to be made of what takes so long to stop. Beside a latency tenant's work only what is short may be
    /// started, where the policy lets anything run there at all; otherwise the stop word takes care of it. Nobody waits
    /// for ever: one piece in two hundred times its length does little harm.
    ///
    /// Whether it would find the stop word raised. It had better wait for that on the GPU's side of a gate: launches that come one by one,
    /// each only to be turned away, take a latency tenant's time as long as its request lasts.
    #[inline]
    pub fn wait_beside(&self, certificate: Nanos) -> bool {
        self.stoppable.store(self.given.load(Ordering::Relaxed), Ordering::Relaxed);
        let Some(seat) = self.seat() else { return false };
        let is_long = |seat: &Seat| {
            let beside = decision::beside(seat.board());
            beside != Nanos::ZERO && certificate > beside
        };
        if is_long(seat) {
            self.wait_until_idle(seat, certificate, &is_long);
        }
        self.certify(seat, certificate);
        self.gate.load(Ordering::Relaxed) == Gate::Shared as u32
            && self.must_hold()
            && self.is_sure_to_stop()
            && !self.is_confined()
    }

    #[cold]
    fn wait_until_idle(&self, seat: &Seat, certificate: Nanos, is_long: &dyn Fn(&Seat) -> bool) {
        let began = board::now();
        let patience = certificate.scaled(slo::PATIENCE, 1).min(LONGEST_BESIDE);
        let mut now = began;
        let is_stopped = || guard::is_stopped(self.device());
        while seat.board().latency_active(now)
            && is_long(seat)
            && !is_stopped()
            && now.since(began) < patience
        {
            self.ask_to_stop(certificate);
            std::thread::sleep(BESIDE_LOOK.into());
            now = board::now();
        }
        if now != began {
            self.count_wait(began);
        }
    }

    /// From now on something may be on the GPU that takes so long to stop, and whoever wants to know finds it on the board.
    fn certify(&self, seat: &Seat, certificate: Nanos) {
        if self.certificate.load(Ordering::Relaxed) < certificate.0
            && self.certificate.fetch_max(certificate.0, Ordering::AcqRel) < certificate.0
        {
            seat.say_need(Need { wants: true, runs: true, certificate, piece: None }, board::now());
        }
    }

    /// How long it takes to stop what may be on the GPU: the longest since the keeper last looked through it.
    pub fn certificate(&self) -> Nanos {
        Nanos(self.certificate.load(Ordering::Acquire))
    }

    /// The keeper has looked through it. Who has started something longer meanwhile is not overruled.
    pub fn set_certificate(&self, before: Nanos, now: Nanos) {
        let _ = self.certificate.compare_exchange(before.0, now.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether less is in flight than may be. What cannot be stopped is at most what lies between two guarded launches, because the
    /// second holds up all behind it; so only what came behind the last of them counts.
    fn has_room(&self) -> bool {
        let held = self.stoppable.load(Ordering::Relaxed);
        self.flight.time(self.given(), held).0 <= self.in_flight.load(Ordering::Relaxed)
    }

    /// A thread has handed over work.
    #[inline]
    pub fn handed_over(&self, stream: CUstream, per_thread: bool) {
        let key = Key::new(stream.addr(), per_thread);
        self.streams.mark(key);
        self.work.given(key, board::now);
        if self.is_latency() {
            return self.burst(self.bursts.given(key, board::now));
        }
        let given = self.given.fetch_add(1, Ordering::Release) + 1;
        if !self.says_runs.load(Ordering::Relaxed) {
            self.say_running();
        }
        let gate = self.gate.load(Ordering::Relaxed);
        if gate == Gate::Bounded as u32 || gate == Gate::Shared as u32 {
            self.flight.mark(stream, per_thread, given, board::now());
        }
    }

    /// The program marks the beginning of a request: the others may leave the GPU while it is being prepared.
    pub fn begin_request(&self) -> Option<Mark> {
        let (mark, change) = self.bursts.mark(board::now())?;
        self.burst(change);
        Some(mark)
    }

    pub fn end_request(&self, mark: Mark) {
        let change = self.bursts.end_mark(mark, board::now());
        self.burst(change);
        if let (true, Some(seat)) = (change != Change::None, self.seat()) {
            seat.tally().marked.add(1);
        }
    }

    /// Tells the board what has become of a burst.
    #[inline]
    pub fn burst(&self, change: Change) {
        if change != Change::None {
            self.say_burst(change);
        }
    }

    #[cold]
    fn say_burst(&self, change: Change) {
        let Some(seat) = self.seat() else { return };
        match change {
            Change::None => {}
            Change::Began { at } => {
                self.tell_at(at, What::Active);
                self.begin(seat, at);
            }
            Change::Withdrawn { at, since } => {
                self.tell_at(at, What::Idle { lasted: at.since(since) });
                self.end(seat, at, since);
            }
            Change::Ended { at, lasted, idle } => {
                let tally = seat.tally();
                tally.bursts.add(1);
                tally.burst_ns.add(lasted.0);
                tally.burst_times.record(lasted);
                let objective = self.objective();
                let late = objective.is_some_and(|slo| lasted > slo);
                tally.slo_missed.add(u64::from(late));
                let slowdown_permille = self.prospect.slowdown(lasted);
                self.tell_at(at, What::Request { lasted, late, objective, slowdown_permille });
                if let Some(since) = idle {
                    self.tell_at(at, What::Idle { lasted: at.since(since) });
                    let objective = self.objective();
                    let tell = self.prospect.ended(seat, at, at.since(since), self.bursts.work(), objective);
                    self.end(seat, at, since);
                    if tell {
                        seat.wake_unsuspecting();
                    }
                }
            }
        }
    }

    fn objective(&self) -> Option<Nanos> {
        self.granted.get().and_then(|(terms, _)| terms.slo)
    }

    fn begin(&self, seat: &Seat, at: Nanos) {
        seat.activate(at);
        if is_in_the_way(seat, at) {
            if self.raise.is_on() {
                self.tell_at(at, What::Raised);
            }
            if self.raise.raise() {
                self.ring();
            }
        }
        if self.raise.is_on() {
            seat.wake_unsuspecting();
        }
        self.prospect.began(seat, at, self.bursts.work());
    }

    /// The process is idle, unless another thread has begun meanwhile and was told of first.
    pub fn end(&self, seat: &Seat, at: Nanos, since: Nanos) {
        seat.deactivate(at, since);
        if self.bursts.is_open() {
            self.begin(seat, at);
        }
    }

    /// Wakes the keeper.
    pub fn ring(&self) {
        match self.seat() {
            Some(seat) => seat.ring(),
            None => {
                self.bell.fetch_add(1, Ordering::AcqRel);
                let _ = futex::wake(&self.bell, futex::Flags::PRIVATE, 1);
            }
        }
    }

    /// What the bell says now, for `rest`.
    pub fn bell(&self) -> u32 {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        self.seat().map_or_else(|| self.bell.load(Ordering::Acquire), Seat::bell)
    }

    /// The keeper's sleep: until somebody rings, and no longer than this.
    pub fn rest(&self, seen: u32, at_most: Nanos) {
        match self.seat() {
            Some(seat) => seat.wait(seen, at_most),
            None => sleep(&self.bell, seen, at_most),
        }
    }
}

/// Whether a best-effort tenant must leave the GPU for a latency tenant that has work now. What is short enough may run beside it, if the
/// policy says so.
fn is_in_the_way(seat: &Seat, now: Nanos) -> bool {
    let beside = decision::beside(seat.board());
    beside == Nanos::ZERO || seat.board().best_effort_tenants(now).any(|tenant| tenant.certificate > beside)
}

/// For how long the end of a latency tenant's work is waited for awake. Most requests are shorter, to be woken takes longer than
/// many gaps last, and what is not handed over when a request ends is idle time of the GPU. A machine with few processors has
/// better uses for them.
pub fn wait_awake() -> Nanos {
    const AWAKE: Nanos = Nanos::from_millis(3);
    const ENOUGH: libc::c_long = 4;
    // SAFETY: a question that may be asked at any time.
    let processors = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    if processors < ENOUGH { Nanos::ZERO } else { AWAKE }
}

fn sleep(word: &AtomicU32, while_it_is: u32, at_most: Nanos) {
    const SECOND: u64 = 1_000_000_000;
    let (seconds, nanos) = (at_most.0 / SECOND, at_most.0 % SECOND);
    let span = Timespec { tv_sec: seconds.cast_signed(), tv_nsec: nanos.cast_signed() };
    let _ = futex::wait(word, futex::Flags::PRIVATE, while_it_is, Some(&span));
}
