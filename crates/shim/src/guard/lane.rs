//! A lane: a stream with guarded launches, as the shim keeps it.
//!
//! Launches enter a lane under its lock, so that records, serials and the stream itself have one order. Behind them stand
//! *gates*. A gate is three memory operations of the stream: it says that it has arrived, waits until nothing in the lane
//! is cut, and says that it has passed. What comes behind a gate finds everything before it whole; and when a gate was
//! passed, the records before it are of no more use. A gate may also *hold*: it waits until nobody stops this process, for work
//! that cannot be stopped itself and must not begin now.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use cuda_abi::{CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_READY, CUDA_SUCCESS, CUresult, CUstream};
use model::Nanos;

use super::driver::{self, Here, Operations, ok};
use super::marks::{Cursor, has_passed};
use super::overlap::Last;
use super::pace::Pace;
use super::queues;
use super::record::Ring;
use super::site::{self, Site};
use crate::lock::{Held, Lock};
use crate::next;
use crate::tenancy::key::{self, Key};

/// How many places a stream may lie in.
const NEAR: usize = 8;
/// What may lie in one stream at once. The driver's own queue takes 1,020 entries, on an H200 and as a client of MPS alike: a launch, a gate,
/// a copy, a fill and an event that is timed are one each (`benchmarks/guard/programs/gates.cu`). Nothing must wait inside the driver, with
/// the lane's lock and the driver's own, for a stream that stands at a gate: whoever opens it needs them. Some are left for what several
/// threads put at once.
const MOST_ENTRIES: u32 = 840;
/// Of several streams two may share a queue.
const MOST_OF_SEVERAL: u32 = MOST_ENTRIES / 2;
/// Gates of which it is known how many entries lie before them: all that may be in a stream, and a power of two, for numbers come round.
const GATES_KNOWN: usize = 1024;
const _: () = assert!(GATES_KNOWN.is_power_of_two() && GATES_KNOWN > MOST_ENTRIES as usize);
/// What lies between the launch that is cut and the next gate is turned away, launch by launch and block by block, and keeps the GPU
/// busy meanwhile: on an H200 so long. A gate costs it 3 µs, and is put as soon as there would be so much to turn away.
const TURNED_AWAY: Nanos = Nanos::from_micros(2);
const BLOCKS_TURNED_AWAY_IN_A_MICROSECOND: u64 = 1_700;
const MOST_TURNED_AWAY: Nanos = Nanos::from_micros(150);

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
    /// The number of the last one that waits for the stop word as well.
    held: AtomicU32,
    /// Entries of the stream, ever, and how many there were up to each of the last gates.
    entries: AtomicU32,
    entries_at: [AtomicU32; GATES_KNOWN],
    /// Launches behind the last gate, and how long it would take to turn them away, in nanoseconds.
    ungated: AtomicU32,
    turned_away: AtomicU64,
    pub last: Last,
    pub ring: Ring,
    pub cursor: Cursor,
}

impl State {
    pub const fn new() -> State {
        State {
            key: AtomicUsize::new(0),
            kind: AtomicU8::new(0),
            lock: Lock::new(),
            gates: AtomicU32::new(0),
            held: AtomicU32::new(0),
            entries: AtomicU32::new(0),
            entries_at: [const { AtomicU32::new(0) }; GATES_KNOWN],
            ungated: AtomicU32::new(0),
            turned_away: AtomicU64::new(0),
            last: Last::new(),
            ring: Ring::new(),
            cursor: Cursor::new(),
        }
    }

    /// So many entries more are in the stream; how many there were ever. Whoever counts has the lock, so it need not be done in one step.
    pub fn count(&self, entries: u32) -> u32 {
        let all = self.entries.load(Ordering::Relaxed).wrapping_add(entries);
        self.entries.store(all, Ordering::Relaxed);
        all
    }

    /// How many entries there were up to a gate.
    fn entries_at(&self, gate: u32) -> &AtomicU32 {
        &self.entries_at[gate as usize % GATES_KNOWN]
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
    pub fn of(key: Key, here: &Here) -> Option<Lane> {
        if key.is_legacy() || key.is_of_thread() {
            // Every context has default streams.
            return site::of(here.context())?.lane(key);
        }
        site::all().find_map(|site| site.lane(key))
    }

    /// The lane of a stream that is about to have a guarded launch.
    #[inline]
    pub fn made_for(key: Key, here: &Here) -> Option<Lane> {
        Lane::of(key, here).or_else(|| Lane::make(key, here))
    }

    #[cold]
    fn make(key: Key, here: &Here) -> Option<Lane> {
        let (context, kind) = about(key, here)?;
        let site = if context == here.context() { site::make(context) } else { site::of(context) }?;
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
        [&state.gates, &state.held, &state.ungated, &state.entries, state.entries_at(0)]
            .into_iter()
            .for_each(|count| count.store(0, Ordering::Relaxed));
        state.last.clear();
        // Put there first: who finds it nobody's yet passes it over.
        self.site.used.put(self.number);
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

    /// One more launch is in the stream, of so many blocks. Whether there should be a gate behind it. Under the lock.
    pub fn entered(self, blocks: u64) -> bool {
        let state = self.state();
        state.count(1);
        let first = state.ungated.fetch_add(1, Ordering::Relaxed) == 0;
        if first {
            self.site.ungated.put(self.number);
            UNGATED.fetch_add(1, Ordering::Relaxed);
        }
        let before = if first { 0 } else { state.turned_away.load(Ordering::Relaxed) };
        let turned_away = before + time_to_turn_away(blocks).0;
        state.turned_away.store(turned_away, Ordering::Relaxed);
        turned_away >= MOST_TURNED_AWAY.0
    }

    /// Puts a gate behind the launches of the lane, if there is none.
    pub fn gate(self) {
        if !self.is_ungated() {
            return;
        }
        // Who cannot have it must not put one: between a launch and its record it would be taken for a gate behind that launch.
        match self.lock() {
            Some(_held) => self.put_gate(&Here::new()),
            None => crate::log::say!("no gate could be put: a launch does not come to its end"),
        }
    }

    /// The same under the lock.
    pub fn put_gate(self, here: &Here) {
        if self.is_ungated() && self.is_used() {
            self.put(false, here);
        }
    }

    /// Has what comes next in the stream wait until the stop word is lowered too, if it is raised. What comes behind that waits with
    /// it. `false`: it cannot be done, or there is no more room behind it.
    pub fn hold(self, key: Key, here: &Here) -> bool {
        let Some(_held) = self.lock() else { return false };
        if self.key() != key {
            return false;
        }
        if self.is_full() && !self.has_passed(self.gates()) {
            return false;
        }
        let held = self.state().held.load(Ordering::Relaxed);
        let is_held = held == self.gates() && !self.is_ungated() && !self.has_passed(held);
        is_held || self.put(true, here)
    }

    /// Something that is neither a launch of ours nor a gate comes into the stream.
    pub fn count(self) {
        let _held = self.lock();
        self.state().count(1);
    }

    /// The same for launches, under the lock: it is enough that something before them waits.
    pub fn hold_back(self, here: &Here) {
        let held = self.state().held.load(Ordering::Relaxed);
        if !is_pending(held, self.gates(), self.passed()) {
            self.put(true, here);
        }
    }

    /// A gate, which waits for the stop word too if it `holds`. Under the lock.
    fn put(self, holds: bool, here: &Here) -> bool {
        let (state, control) = (self.state(), &self.site.control);
        let last = state.gates.load(Ordering::Relaxed);
        let gate = last.wrapping_add(1);
        if self.has_passed(last) {
            // Nothing that lies in the stream by now waits for us, but for the few launches since that gate.
            state.entries_at(last).store(state.count(0), Ordering::Relaxed);
        }
        let mut operations = Operations::new()
            .write(control.arrived(self.number).1, gate)
            .wait_for_zero(control.away(self.number));
        if holds {
            operations = operations.wait_for_zero(control.stop());
        }
        let operations = operations.write(control.passed(self.number).1, gate);
        let result = self.at_home(here, || operations.give_to(self.stream()));
        if result != CUDA_SUCCESS {
            // The context has failed, and the program is about to hear of it.
            crate::log::say!("no gate could be put: {result:?}");
            return false;
        }
        let entries = state.count(1);
        // Before the gate's number: who finds that it was passed wants to know.
        state.entries_at(gate).store(entries, Ordering::Relaxed);
        state.gates.store(gate, Ordering::Release);
        state.last.clear();
        if holds {
            state.held.store(gate, Ordering::Relaxed);
        }
        self.has_none_ungated();
        true
    }

    fn has_none_ungated(self) {
        if self.state().ungated.swap(0, Ordering::Relaxed) != 0 {
            self.site.ungated.take_out(self.number);
            UNGATED.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Forgets launches that are known to be whole. Under the lock.
    pub fn free(self) {
        self.state().ring.free(self.passed());
    }

    /// Waits while too much of the lane is in its stream: until the oldest gate is passed.
    pub fn make_room(self) {
        if self.is_full() {
            let _ = self.wait_for_oldest();
        }
    }

    /// Waits until the oldest gate is passed. `None`: all of them were, or this one never will be.
    pub fn wait_for_oldest(self) -> Option<()> {
        self.gate();
        let gate = oldest(self.gates(), self.passed())?;
        self.wait_for(gate);
        self.has_passed(gate).then_some(())
    }

    fn is_full(self) -> bool {
        let state = self.state();
        let before = state.entries_at(self.passed()).load(Ordering::Relaxed);
        let alone = self.site.used.but(self.number).next().is_none();
        let most = if alone { MOST_ENTRIES } else { MOST_OF_SEVERAL };
        state.entries.load(Ordering::Relaxed).wrapping_sub(before) >= most
    }

    pub fn has_passed(self, gate: u32) -> bool {
        has_passed(self.passed(), gate)
    }

    /// Waits until a gate is passed. It may take as long as what stands before it; but not if nobody will ever pass.
    pub fn wait_for(self, gate: u32) {
        const ASK: Nanos = Nanos::from_millis(50);
        let (mut pace, mut asked) = (Pace::default(), Nanos::ZERO);
        while !self.has_passed(gate) {
            if !pace.slept() {
                continue;
            }
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
        let mut pace = Pace::default();
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
            pace.slept();
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
        let result = driver::relaxed(|| self.at_home(&Here::new(), ask));
        result != CUDA_ERROR_NOT_READY && !self.has_passed_by(result)
    }

    /// Does something in the context of the lane, which need not be that of the thread: every context has a default stream
    /// of the same name.
    fn at_home(self, here: &Here, work: impl FnOnce() -> CUresult) -> CUresult {
        let home = self.site.context();
        if here.context() == home {
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
        self.has_none_ungated();
        self.site.marks.give_back(self.number as u32, &state.cursor);
        state.ring.clear();
        state.key.store(0, Ordering::Release);
        self.site.used.take_out(self.number);
        self.site.control.set_counts(self.number, self.gates());
    }
}

/// The oldest of so many gates, if not all of them are passed: who waits for one that nobody has put waits for ever.
fn oldest(gates: u32, passed: u32) -> Option<u32> {
    (!has_passed(passed, gates)).then(|| passed.wrapping_add(1))
}

/// Whether a gate was put and has not been passed. One from long ago is neither, though numbers have come round since.
fn is_pending(gate: u32, gates: u32, passed: u32) -> bool {
    (1..=gates.wrapping_sub(passed)).contains(&gate.wrapping_sub(passed))
}

fn time_to_turn_away(blocks: u64) -> Nanos {
    TURNED_AWAY + Nanos::from_micros(blocks / BLOCKS_TURNED_AWAY_IN_A_MICROSECOND)
}

/// The context of a stream, and how it is ordered.
fn about(key: Key, here: &Here) -> Option<(usize, Kind)> {
    if key.is_legacy() {
        return Some((here.context(), Kind::Legacy));
    }
    if key.is_of_thread() {
        return Some((here.context(), Kind::OfThread));
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
    fn a_gate_comes_behind_few_large_grids_or_many_small_ones() {
        let launches = |blocks| MOST_TURNED_AWAY.0.div_ceil(time_to_turn_away(blocks).0);
        assert_eq!([1, 2_112, 33_792, 1 << 20].map(launches), [75, 50, 8, 1]);
    }

    #[test]
    fn nobody_waits_for_a_gate_that_is_not_there() {
        assert_eq!([oldest(7, 4), oldest(7, 6), oldest(7, 7)], [Some(5), Some(7), None]);
        assert_eq!(oldest(7, 8), None, "put and passed since the gates were counted");
        assert_eq!([oldest(1, u32::MAX), oldest(0, u32::MAX)], [Some(0), Some(0)], "numbers come round");
    }

    #[test]
    fn a_gate_is_pending_between_being_put_and_being_passed() {
        assert_eq!([4, 5, 7, 8].map(|gate| is_pending(gate, 7, 4)), [false, true, true, false]);
        assert!(!is_pending(7, 7, 7) && !is_pending(0, 7, 7) && !is_pending(0, 1 << 31, 1 << 31));
        assert!(is_pending(0, 1, u32::MAX), "numbers come round");
    }

    #[test]
    fn kinds_are_numbered() {
        for kind in [Kind::Legacy, Kind::OfThread, Kind::Blocking, Kind::NonBlocking] {
            assert_eq!(Kind::from_number(kind as u8), kind);
        }
    }
}
