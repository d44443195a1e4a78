//! The keeper: one thread per post that does everything about sharing, so that the program's threads need not.
//!
//! It goes round: look after the connection to the daemon, after the slice of the process's channel groups, and after the
//! turn (`turn`) of a best-effort tenant or the bursts of a latency one; then it sleeps until its bell rings or something
//! is due. It never holds anything that a thread of the program waits for, but for the gate, which opens by itself when
//! the keeper is lost.

use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use board::{Condition, Need, Rung, Seat, SliceState, Terms, Why};
use model::{Class, Domain, Nanos};
use policy::slice;
use telemetry::What;

use super::lever::{Lever, Refusal};
use super::membership::Membership;
use super::post::{Gate, Post};
use super::raise::{Leisure, Raiser};
use super::shared::Shared;
use super::turn::{Footing, STOP_AGAIN, Turn};
use crate::log::say;
use crate::{channels, guard, memory, thread, twins};

/// How often a keeper looks round that has nothing to do.
const IDLE_ROUND: Nanos = Nanos::from_millis(250);

/// The program is ending, and the driver with it.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Hooks are off, so that nobody knows any more what is handed over.
static RETIRED: AtomicBool = AtomicBool::new(false);
/// Keepers that are at work, and may be calling the driver.
static AWAKE: AtomicU32 = AtomicU32::new(0);

/// The slice that was last asked for (`None`: the driver's own), and how many channels and contexts there were then.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Setting {
    slice: Option<Nanos>,
    channels: u32,
    contexts: u32,
}

pub struct Keeper {
    post: &'static Post,
    lever: Lever,
    membership: Membership,
    turn: Turn,
    shared: Shared,
    raiser: Raiser,
    setting: Option<Setting>,
    refusal: Option<Refusal>,
    paused: bool,
    /// The seat that was told of, and the class on it.
    seated: Option<(usize, Class)>,
    bursts_looked: Nanos,
    /// How much of what was handed over is in the tally.
    submissions: u64,
}

/// Starts the keeper of a post. `false` if there can be none.
pub fn start(post: &'static Post) -> bool {
    follow_the_end();
    let argument = ptr::from_ref(post).cast_mut().cast::<c_void>();
    thread::start(keep, argument)
}

/// Has the end of the program wait for threads that may be calling the driver.
pub fn follow_the_end() {
    static ONCE: AtomicBool = AtomicBool::new(false);
    if !ONCE.swap(true, Ordering::Relaxed) {
        // Registered after the driver's own, which came with its first context, and so called before it.
        // SAFETY: a function that may be called at any time.
        unsafe { libc::atexit(at_exit) };
    }
}

extern "C" fn keep(post: *mut c_void) -> *mut c_void {
    // SAFETY: what `start` gave is a post, which stays.
    let post: &'static Post = unsafe { &*post.cast_const().cast() };
    thread::begin(c"ebb-keeper");
    let kept = panic::catch_unwind(AssertUnwindSafe(|| Keeper::new(post).run()));
    let _awake = kept.unwrap_or_else(|_| {
        say!("the keeper of GPU {} failed; nothing is held back from now on", post.device());
        Awake::now()
    });
    post.set_gate(Gate::Open);
    post.introduce();
    guard::let_go(Some(post.device()));
    let_go();
    ptr::null_mut()
}

/// From now on this process shares the GPU without us. It must not be on it with the shortest slice, nor be kept off it:
/// what it does in the end may wait for work that was stopped.
fn let_go() {
    let lever = Lever::find();
    let ending = ENDING.load(Ordering::SeqCst);
    let _ = lever.slice(ending.then_some(slice::BESIDE_STRAYS));
    let _ = lever.resume();
}

/// Ends all keepers: this process is no tenant any more.
pub fn retire() {
    RETIRED.store(true, Ordering::SeqCst);
    super::ring_all();
}

extern "C" fn at_exit() {
    // By this thread: the keeper may not wake before the process is gone.
    super::farewell();
    ENDING.store(true, Ordering::SeqCst);
    super::ring_all();
    for _ in 0..100 {
        if AWAKE.load(Ordering::SeqCst) == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// In the child of a fork, which has no keepers.
pub fn in_child() {
    AWAKE.store(0, Ordering::Relaxed);
    RETIRED.store(false, Ordering::Relaxed);
}

/// A keeper that is at work: the program's end waits for it, for a while.
pub struct Awake(());

impl Awake {
    pub fn now() -> Awake {
        AWAKE.fetch_add(1, Ordering::SeqCst);
        Awake(())
    }

    pub fn is_over(&self) -> bool {
        ENDING.load(Ordering::SeqCst) || RETIRED.load(Ordering::SeqCst)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        AWAKE.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Keeper {
    fn new(post: &'static Post) -> Keeper {
        Keeper {
            post,
            lever: Lever::None(Why::NoBoard),
            membership: Membership::from_environment(post),
            turn: Turn::new(),
            shared: Shared::new(),
            raiser: Raiser::new(),
            setting: None,
            refusal: None,
            paused: false,
            seated: None,
            bursts_looked: Nanos::ZERO,
            submissions: 0,
        }
    }

    /// Until the program ends or hooks are off. It is awake still when it returns: there is something left to do.
    fn run(&mut self) -> Awake {
        let awake = loop {
            let awake = Awake::now();
            if awake.is_over() {
                break awake;
            }
            let seen = self.post.bell();
            let rest = self.round(board::now());
            drop(awake);
            self.post.rest(seen, rest);
        };
        // Nobody should have to wait until the process is gone.
        if let Some(seat) = self.post.seat() {
            self.turn.leave(seat, board::now());
        }
        awake
    }

    /// What threads have counted for themselves.
    fn count(&mut self, seat: &Seat) {
        let submissions = self.post.submissions();
        seat.tally().submissions.add(submissions.wrapping_sub(self.submissions));
        self.submissions = submissions;
        seat.tally().launches.add(self.post.early_launches());
        let runs = self.post.is_latency() || self.turn.runs() || self.shared.runs();
        self.post.say_runs(runs && !self.paused);
    }

    /// One round; gives how long to sleep.
    fn round(&mut self, now: Nanos) -> Nanos {
        let joined = self.membership.tend(self.post, now);
        self.post.introduce();
        if joined {
            self.turn.begin_anew(self.post);
            self.raiser.leave(&self.post.raise, None, self.leisure());
            memory::seated(self.post.device());
            // What is under way is news to the new board.
            if let Some(seat) = self.post.seat().filter(|_| self.post.bursts.is_open()) {
                seat.activate(now);
            }
        }
        let terms = self.membership.terms();
        self.turn.go_by(&terms, !self.membership.is_lost());
        self.post.be(terms.class);
        self.tell_seat(&terms);
        self.tend_words(&terms);
        self.find_lever(&terms);
        let rest = match (self.membership.seat(self.post), self.membership.keeps_waiting()) {
            (None, waits) if waits || terms.paused => {
                self.post.set_gate(Gate::Closed);
                IDLE_ROUND
            }
            // Others may still take turns on this board.
            (Some(seat), true) => self.pause(seat, now),
            (None, _) => {
                self.shared.leave(self.post, None, now);
                self.turn.abandon(now);
                self.paused = false;
                self.post.set_gate(Gate::Open);
                IDLE_ROUND
            }
            (Some(seat), false) => self.tend_seat(seat, &terms, now),
        };
        // After the turn: who has just lost it has left the GPU by now, and who has just got it is alone there.
        self.tend_slice(&terms, board::now());
        if let Some(seat) = self.post.seat() {
            seat.beat(now);
            seat.say(self.condition(&terms));
            self.count(seat);
        }
        rest.min(self.membership.due(now))
    }

    fn tend_seat(&mut self, seat: &'static Seat, terms: &Terms, now: Nanos) -> Nanos {
        if terms.paused {
            return self.pause(seat, now);
        }
        self.paused = false;
        if self.is_shared(terms) {
            self.turn.leave(seat, now);
            // A pause, or a turn before the class or the domain was another, may have left it disabled.
            if !self.turn.resume(seat, Some(self.lever)) {
                return STOP_AGAIN;
            }
            return self.shared.tend(self.post, seat, terms, now);
        }
        self.shared.leave(self.post, Some(seat), now);
        match terms.class {
            Class::BestEffort => self.turn.take(self.post, seat, self.lever_of_turn(), now),
            Class::Latency => {
                self.turn.leave(seat, now);
                self.post.set_gate(Gate::Open);
                let bursts = self.look_at_bursts(seat, now);
                if self.turn.resume(seat, Some(self.lever)) { bursts } else { STOP_AGAIN }
            }
        }
    }

    /// Says as what it has come to which seat, and when that changes.
    fn tell_seat(&mut self, terms: &Terms) {
        let Some(seat) = self.post.seat() else { return };
        let (class, domain) = (terms.class, self.membership.domain());
        let seated = Some((ptr::from_ref(seat).addr(), class));
        if self.seated != seated {
            self.seated = seated;
            thread::rename(board::link::thread_name(class));
            self.post.tell(What::Seated { class, domain });
        }
    }

    /// In the shared domain a latency tenant raises the stop words of the others.
    fn tend_words(&mut self, terms: &Terms) {
        let raise = &self.post.raise;
        let seat = self.post.seat().filter(|_| self.membership.domain() == Domain::Shared);
        match (seat, terms.class) {
            (Some(seat), Class::Latency) => {
                let news = self.raiser.tend(raise, seat, self.leisure());
                // A burst that is under way began before the new words were known.
                if news && self.post.bursts.is_open() {
                    raise.raise();
                }
            }
            _ if raise.is_on() || self.raiser.has_leftovers() => {
                self.raiser.leave(raise, self.post.seat(), self.leisure());
            }
            _ => {}
        }
    }

    fn leisure(&self) -> Leisure {
        match () {
            () if self.turn.is_stopped() => Leisure::Off,
            () if self.post.bursts.is_open() => Leisure::Busy,
            () => Leisure::Free,
        }
    }

    /// Bursts that nobody waits for end here.
    fn look_at_bursts(&mut self, seat: &Seat, now: Nanos) -> Nanos {
        if now.since(self.bursts_looked) >= IDLE_ROUND {
            self.bursts_looked = now;
            self.post.look_for_end(now);
            let mut idle_since = None;
            let unended = self.post.bursts.abandon(now, &mut |change| {
                if let super::burst::Change::Ended { idle: Some(since), .. } = change {
                    idle_since = Some(since);
                }
            });
            seat.tally().bursts_unended.add(unended);
            if let Some(since) = idle_since {
                self.post.end(seat, now, since);
            }
        }
        seat.count_gpu_time(self.post.spent(now));
        IDLE_ROUND
    }

    /// Keeps everything off the GPU: what comes waits at the gate, and what is there is stopped, if it can be.
    fn pause(&mut self, seat: &'static Seat, now: Nanos) -> Nanos {
        self.post.set_gate(Gate::Closed);
        if !std::mem::replace(&mut self.paused, true) {
            // A latency tenant had no use for one before.
            self.lever = Lever::find();
            if self.lever_of_turn().is_some_and(|lever| lever.stop().is_ok()) {
                self.post.tell(What::Stopped { rung: model::Rung::Switch, took: board::now().since(now) });
                self.turn.put_stopped();
            }
        }
        self.turn.leave(seat, now);
        // What is stopped is not on the GPU.
        self.post.spent(now);
        if self.turn.is_stopped() {
            // Disabled as a whole; it would not hear of a stop word either.
            seat.say_need(Need::default(), now);
            return IDLE_ROUND;
        }
        if self.is_shared(&self.membership.terms()) {
            return self.shared.pause(self.post, seat, now).min(IDLE_ROUND);
        }
        IDLE_ROUND
    }

    /// The lever moves the whole process. Where that is at work on several GPUs, the turn on one must not stop the others.
    fn lever_of_turn(&self) -> Option<Lever> {
        (!matches!(self.lever, Lever::None(_)) && super::is_alone()).then_some(self.lever)
    }

    /// A tenant that may have to leave the GPU knows by what means before it comes to that.
    fn find_lever(&mut self, terms: &Terms) {
        if terms.class == Class::BestEffort && matches!(self.lever, Lever::None(_)) {
            self.lever = Lever::find();
        }
    }

    /// The slice that this process should have; `None`: the driver's own.
    fn wanted_slice(&mut self, terms: &Terms, now: Nanos) -> Option<Nanos> {
        let seat = self.membership.seat(self.post);
        let strays = !super::is_alone() || seat.is_some_and(|seat| self.turn.beside_stray(seat, now));
        match (terms.class, seat.map(Seat::board)) {
            // Contexts that are on the GPU together share one slice.
            (_, Some(_)) if self.membership.domain() == Domain::Shared => None,
            (Class::BestEffort, None) => Some(slice::WITHOUT_BOARD),
            (Class::BestEffort, Some(_)) if strays => Some(slice::BESIDE_STRAYS),
            (Class::BestEffort, Some(_)) => match self.turn.footing(self.post) {
                Footing::Holder => Some(self.turn.slice(now)),
                // What is off the GPU needs no other slice than it has, and to set one takes the driver a while.
                Footing::Off => self.setting.map_or(Some(slice::BEST_EFFORT), |setting| setting.slice),
                Footing::Astray => Some(slice::BESIDE_STRAYS),
            },
            (Class::Latency, Some(board)) => {
                slice::timeslice(Class::Latency, terms.priority, board.highest_priority())
            }
            (Class::Latency, None) => None,
        }
    }

    /// Sets the slice of the process, and sets it again when there are new channels.
    fn tend_slice(&mut self, terms: &Terms, now: Nanos) {
        let wanted = self.wanted_slice(terms, now);
        let setting = Setting { slice: wanted, channels: channels::made(), contexts: super::arrivals() };
        // What nobody has changed is left alone.
        let untouched = self.setting.is_none() && wanted.is_none();
        if untouched || self.setting == Some(setting) {
            return;
        }
        self.lever = Lever::find();
        self.refusal = self.lever.slice(wanted).err();
        self.setting = Some(setting);
        // The short slice may be on trial.
        let lengthened =
            self.slice_state(terms) == SliceState::Lengthened && wanted != Some(slice::BEST_EFFORT);
        self.post.tell(What::Sliced { slice: wanted.unwrap_or(slice::DEFAULT), lengthened });
        say!("the slice of this process is {wanted:?}");
    }

    /// Whether this tenant is on the GPU together with others, and stops for them between blocks.
    fn is_shared(&self, terms: &Terms) -> bool {
        self.membership.domain() == Domain::Shared && terms.class == Class::BestEffort
    }

    /// Only who takes turns has a lease.
    fn slice_state(&self, terms: &Terms) -> SliceState {
        match (terms.class, self.membership.domain()) {
            (Class::BestEffort, Domain::Isolated) => self.turn.slice_state(),
            _ => SliceState::Short,
        }
    }

    fn condition(&self, terms: &Terms) -> Condition {
        let shared = self.post.seat().is_some() && self.is_shared(terms);
        let (rung, why, detail) = match (self.refusal, terms.class) {
            _ if shared => rung_of_guard(),
            (Some(refusal), Class::BestEffort) => (Rung::Hold, refusal.why, refusal.detail),
            (None, Class::BestEffort) => (Rung::Switch, Why::Ok, 0),
            (_, Class::Latency) => (Rung::None, Why::LatencyNeedsNone, 0),
        };
        let slice = self.setting.filter(|_| self.refusal.is_none()).and_then(|setting| setting.slice);
        let daemon_lost = self.membership.is_lost();
        let slice_state = self.slice_state(terms);
        Condition { rung, why, detail, daemon_lost, paused: self.paused, slice, slice_state }
    }
}

/// How a tenant of the shared domain is stopped: between blocks, unless none of its kernels can be.
fn rung_of_guard() -> (Rung, Why, u32) {
    match () {
        () if !twins::are_wanted() => (Rung::Hold, Why::Unprepared, 0),
        () if twins::all_refused() => (Rung::Hold, Why::Unguarded, 0),
        () => (Rung::Guard, Why::Ok, 0),
    }
}
