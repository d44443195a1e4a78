//! A lane: a stream with guarded launches, as the shim keeps it.
//!
//! Launches enter a lane under its lock, so that records, serials and the stream itself have one order. Behind them stand
//! *gates*. A gate is three memory operations of the stream: it says that it has arrived, waits until nothing in the lane
//! is cut, and says that it has passed. What comes behind a gate finds everything before it whole; and when a gate was
//! passed, the records before it are of no more use.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use cuda_abi::{CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUresult, CUstream};
use model::Nanos;

use super::driver::{self, Operations, ok};
use super::marks::{Cursor, has_passed};
use super::queues;
use super::record::Ring;
use super::site::{self, Site};
use crate::lock::{Held, Lock};
use crate::next;
use crate::tenancy::key::{self, Key};

/// How many places a stream may lie in.
const NEAR: usize = 8;

/// How a stream is ordered with the default stream that all threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// It is that stream.
    Legacy,
    /// The default stream of a thread: blocking, and only its own thread has a name for it.
    OfThread,
    Blocking,
    NonBlocking,
}

impl Kind {
    fn from_number(number: u8) -> Kind {
        [Kind::Legacy, Kind::OfThread, Kind::Blocking, Kind::NonBlocking][usize::from(number & 3)]
    }

    /// Whether what is put into the one stream waits for what was put into the other before.
    pub fn waits_for(self, other: Kind) -> bool {
        let blocking = |kind: Kind| kind != Kind::NonBlocking;
        (self == Kind::Legacy && blocking(other)) || (other == Kind::Legacy && blocking(self))
    }
}

/// What is kept of a lane.
pub struct State {
    /// Zero: nobody's.
    key: AtomicUsize,
    kind: AtomicU8,
    lock: Lock,
    /// The number of the last gate that was put.
    gates: AtomicU32,
    /// Launches since then.
    ungated: AtomicU32,
    /// Launches whose records are kept.
    in_flight: AtomicU32,
    pub ring: Ring,
    pub cursor: Cursor,
    /// The serial from which on the launches before the gate are to be made again, if some were made again already; else
    /// zero.
    pub remains: AtomicU32,
}

impl State {
    pub const fn new() -> State {
        State {
            key: AtomicUsize::new(0),
            kind: AtomicU8::new(0),
            lock: Lock::new(),
            gates: AtomicU32::new(0),
            ungated: AtomicU32::new(0),
            in_flight: AtomicU32::new(0),
            ring: Ring::new(),
            cursor: Cursor::new(),
            remains: AtomicU32::new(0),
        }
    }

    pub fn in_child(&self) {
        self.key.store(0, Ordering::Relaxed);
        self.ungated.store(0, Ordering::Relaxed);
        self.lock.reset();
    }
}

/// Lanes that have launches without a gate behind them.
static UNGATED: AtomicU32 = AtomicU32::new(0);

/// Whether there is a launch anywhere that has no gate behind it. One load, for every call that might need one.
#[inline(always)]
pub fn any_ungated() -> bool {
    UNGATED.load(Ordering::Relaxed) != 0
}

pub fn in_child() {
    UNGATED.store(0, Ordering::Relaxed);
}

/// A lane of a site.
#[derive(Clone, Copy)]
pub struct Lane {
    pub site: &'static Site,
    number: usize,
}

impl Lane {
    pub fn at(site: &'static Site, number: usize) -> Lane {
        Lane { site, number }
    }

    pub fn near(site: &'static Site, key: Key) -> impl Iterator<Item = Lane> {
        let lanes = queues::lanes();
        let first = key.place(lanes);
        (0..NEAR.min(lanes)).map(move |step| Lane { site, number: (first + step) % lanes })
    }

    /// The lane of a stream, if it has one.
    #[inline]
    pub fn of(key: Key) -> Option<Lane> {
        if key.is_legacy() || key.is_of_thread() {
            // Every context has default streams.
            return site::of(driver::current_context())?.lane(key);
        }
        site::all().find_map(|site| site.lane(key))
    }

    /// The lane of a stream that is about to have a guarded launch.
    #[inline]
    pub fn made_for(key: Key) -> Option<Lane> {
        Lane::of(key).or_else(|| Lane::make(key))
    }

    #[cold]
    fn make(key: Key) -> Option<Lane> {
        let (context, kind) = about(key)?;
        let site =
            if context == driver::current_context() { site::make(context) } else { site::of(context) }?;
        let lane = Lane::near(site, key).find(|lane| lane.claim(key))?;
        lane.state().kind.store(kind as u8, Ordering::Relaxed);
        Some(lane)
    }

    /// Takes a place that is free, or whose stream has nothing guarded in flight. Streams of threads that have ended would
    /// otherwise keep theirs for ever.
    fn claim(self, key: Key) -> bool {
        let state = self.state();
        let Some(_held) = state.lock.acquire() else { return false };
        let idle = !self.is_used() || !self.is_ungated() && self.has_passed(self.gates());
        if self.key() == key || !idle || state.ring.make().is_none() {
            return self.key() == key;
        }
        self.site.marks.give_back(self.number as u32, &state.cursor);
        self.site.control.set_counts(self.number, 0);
        [&state.gates, &state.ungated, &state.in_flight, &state.remains]
            .into_iter()
            .for_each(|count| count.store(0, Ordering::Relaxed));
        state.key.store(key.0, Ordering::Release);
        true
    }

    pub fn state(self) -> &'static State {
        &self.site.lanes[self.number]
    }

    pub fn number(self) -> usize {
        self.number
    }

    pub fn key(self) -> Key {
        Key(self.state().key.load(Ordering::Acquire))
    }

    pub fn is_used(self) -> bool {
        self.key() != Key(0)
    }

    pub fn kind(self) -> Kind {
        Kind::from_number(self.state().kind.load(Ordering::Relaxed))
    }

    /// The stream, by a name that the calling thread may use for it.
    pub fn stream(self) -> CUstream {
        driver::stream(self.key().handle())
    }

    pub fn lock(self) -> Option<Held<'static>> {
        self.state().lock.acquire()
    }

    pub fn in_flight(self) -> u32 {
        self.state().in_flight.load(Ordering::Relaxed)
    }

    /// The number of the last gate that was put.
    pub fn gates(self) -> u32 {
        self.state().gates.load(Ordering::Relaxed)
    }

    pub fn arrived(self) -> u32 {
        self.site.control.arrived(self.number).0
    }

    pub fn passed(self) -> u32 {
        self.site.control.passed(self.number).0
    }

    pub fn is_ungated(self) -> bool {
        self.state().ungated.load(Ordering::Relaxed) != 0
    }

    /// One more launch is in the stream. Under the lock.
    pub fn entered(self) -> u32 {
        let state = self.state();
        state.in_flight.fetch_add(1, Ordering::Relaxed);
        let ungated = state.ungated.fetch_add(1, Ordering::Relaxed) + 1;
        if ungated == 1 {
            UNGATED.fetch_add(1, Ordering::Relaxed);
        }
        ungated
    }

    /// Puts a gate behind the launches of the lane, if there is none.
    pub fn gate(self) {
        if self.is_ungated() {
            let _held = self.lock();
            self.put_gate();
        }
    }

    /// The same under the lock.
    pub fn put_gate(self) {
        let state = self.state();
        if state.ungated.load(Ordering::Relaxed) == 0 || !self.is_used() {
            return;
        }
        let (control, gate) = (&self.site.control, state.gates.load(Ordering::Relaxed).wrapping_add(1));
        let operations = Operations::new()
            .write(control.arrived(self.number).1, gate)
            .wait_for_zero(control.away(self.number))
            .write(control.passed(self.number).1, gate);
        let result = self.at_home(|| operations.give_to(self.stream()));
        if result != CUDA_SUCCESS {
            // The context has failed, and the program is about to hear of it.
            return crate::log::say!("no gate could be put: {result:?}");
        }
        state.gates.store(gate, Ordering::Release);
        state.ungated.store(0, Ordering::Relaxed);
        UNGATED.fetch_sub(1, Ordering::Relaxed);
    }

    /// Forgets launches that are known to be whole. Under the lock.
    pub fn free(self) {
        let state = self.state();
        let freed = state.ring.free(self.passed());
        state.in_flight.fetch_sub(freed, Ordering::Relaxed);
    }

    pub fn has_passed(self, gate: u32) -> bool {
        has_passed(self.passed(), gate)
    }

    /// Waits until a gate is passed. It may take as long as what stands before it; but not if nobody will ever pass.
    pub fn wait_for(self, gate: u32) {
        const SPIN: u32 = 4_000;
        const NAP: std::time::Duration = std::time::Duration::from_micros(20);
        const ASK: Nanos = Nanos::from_millis(50);
        let (mut looks, mut asked) = (0, Nanos::ZERO);
        while !self.has_passed(gate) {
            looks += 1;
            if looks < SPIN {
                std::hint::spin_loop();
                continue;
            }
            std::thread::sleep(NAP);
            let now = board::now();
            if now.since(asked) > ASK {
                if asked != Nanos::ZERO && (!self.is_used() || self.is_given_up()) {
                    return;
                }
                asked = now;
            }
        }
    }

    /// Waits until a gate is passed: as long as it takes while the site is stopped, and else for as long as there is patience
    /// left. What goes on and does not come to an end waits for the program, which is waiting here.
    pub fn wait_for_rest(self, gate: u32, patience: &mut Nanos) {
        const ASK: Nanos = Nanos::from_millis(50);
        let mut looked = board::now();
        let mut asked = looked;
        while !self.has_passed(gate) {
            let now = board::now();
            if !self.site.is_stopped() {
                *patience = patience.since(now.since(looked));
            }
            looked = now;
            if *patience == Nanos::ZERO {
                return;
            }
            if now.since(asked) > ASK {
                if !self.is_used() || self.site.control.is_dead() {
                    return;
                }
                asked = now;
            }
            std::hint::spin_loop();
        }
    }

    /// Whether nothing that is asked of the stream's context is done any more.
    fn is_given_up(self) -> bool {
        if self.site.control.is_dead() {
            return true;
        }
        if self.kind() == Kind::OfThread {
            return false;
        }
        // SAFETY: a stream that exists: who destroys it ends its lane first.
        let ask = || unsafe { next::call::cuStreamQuery(self.stream()) };
        let result = driver::relaxed(|| self.at_home(ask));
        result != CUDA_ERROR_NOT_READY && !self.has_passed_by(result)
    }

    /// Does something in the context of the lane, which need not be that of the thread: every context has a default stream
    /// of the same name.
    fn at_home(self, work: impl FnOnce() -> CUresult) -> CUresult {
        let home = self.site.context();
        if driver::current_context() == home {
            return work();
        }
        driver::within(home, || Some(work())).unwrap_or(CUDA_ERROR_INVALID_CONTEXT)
    }

    /// A stream without work has passed all its gates, or never will.
    fn has_passed_by(self, result: CUresult) -> bool {
        result == CUDA_SUCCESS && self.has_passed(self.gates())
    }

    /// The stream is about to end; everything in it was waited for.
    pub fn forget(self) {
        let state = self.state();
        let _held = state.lock.acquire();
        if state.ungated.swap(0, Ordering::Relaxed) != 0 {
            UNGATED.fetch_sub(1, Ordering::Relaxed);
        }
        self.site.marks.give_back(self.number as u32, &state.cursor);
        state.ring.clear();
        state.key.store(0, Ordering::Release);
        self.site.control.set_counts(self.number, self.gates());
    }
}

/// The context of a stream, and how it is ordered.
fn about(key: Key) -> Option<(usize, Kind)> {
    if key.is_legacy() {
        return Some((driver::current_context(), Kind::Legacy));
    }
    if key.is_of_thread() {
        return Some((driver::current_context(), Kind::OfThread));
    }
    const NON_BLOCKING: u32 = 1;
    let stream = driver::stream(key.handle());
    let (mut context, mut flags) = (std::ptr::null_mut(), 0);
    // SAFETY: a stream that the program is about to use, and a place for the answer.
    ok(unsafe { next::call::cuStreamGetCtx(stream, &mut context) })?;
    // SAFETY: a stream that the program is about to use, and a place for the answer.
    ok(unsafe { next::call::cuStreamGetFlags(stream, &mut flags) })?;
    let kind = if flags & NON_BLOCKING != 0 { Kind::NonBlocking } else { Kind::Blocking };
    Some((context.expose_provenance(), kind))
}

/// The key of a stream as a call names it.
#[inline]
pub fn key(stream: CUstream, per_thread: bool) -> Key {
    Key::new(stream.expose_provenance(), per_thread)
}

const _: () = assert!(key::LEGACY == 1 && key::PER_THREAD == 2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_legacy_stream_waits_for_others_and_they_for_it() {
        use Kind::{Blocking, Legacy, NonBlocking, OfThread};
        assert!(Legacy.waits_for(Blocking) && Blocking.waits_for(Legacy));
        assert!(Legacy.waits_for(OfThread) && OfThread.waits_for(Legacy));
        assert!(!Legacy.waits_for(NonBlocking) && !NonBlocking.waits_for(Legacy));
        assert!(!Blocking.waits_for(Blocking) && !Blocking.waits_for(OfThread));
    }

    #[test]
    fn kinds_are_numbered() {
        for kind in [Kind::Legacy, Kind::OfThread, Kind::Blocking, Kind::NonBlocking] {
            assert_eq!(Kind::from_number(kind as u8), kind);
        }
    }
}
