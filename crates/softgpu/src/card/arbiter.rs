//! Whose turn it is.
//!
//! In the isolated domain one context has the GPU. It keeps it while nobody else has grids to run, slice after
//! slice; otherwise it is off as soon as its timeslice is over, and the next in the round begins `switch_cost` later.
//! So whoever comes to a GPU that another has for itself waits for what is left of the slice under way, as measured
//! on an H200 (a burst of 0.24 ms beside endless work: p50 1.2 ms, p99 2.5 ms, with slices of 2 ms). Whoever
//! has a reason to look (a context that became runnable or idle, a slice that ended) does the step, in
//! whichever process it is; the others learn of it by reading their slot.
//!
//! A context's *context time* runs only while it is on. `offset` is what separates it from the machine's
//! clock; a turn that begins adds the time spent off.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use model::{Domain, Nanos};
use rustix::thread::futex;

use super::layout::{MAX_CONTEXTS, NO_PRIORITY, ProcessSlot};
use super::lock::Guard;
use super::{Card, ContextHandle, now};

/// How often a process that has to share looks whether the others live; it costs microseconds.
pub(super) const REAP_EVERY: Nanos = Nanos::from_millis(20);

/// A context's standing at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// On since `begins` (which may lie ahead, while the switch goes on); context time is monotonic time less
    /// `offset`.
    On { begins: Nanos, offset: Nanos },
    /// Off; context time stands at `at`.
    Off { at: Nanos },
}

impl Card {
    pub fn turn(&self, context: &ContextHandle) -> Turn {
        let slot = &self.segment().contexts[context.index];
        // SYNC(turn): pairs with the release in `turn_on`; an offset read here belongs to this turn.
        match slot.begins.load(Acquire) {
            0 => Turn::Off { at: Nanos(slot.off_at.load(Relaxed)) - Nanos(slot.offset.load(Relaxed)) },
            begins => Turn::On { begins: Nanos(begins), offset: Nanos(slot.offset.load(Relaxed)) },
        }
    }

    /// Whether the turn that began at `begins` still goes on: one load, for the path between two blocks.
    pub fn is_on_since(&self, context: &ContextHandle, begins: Nanos) -> bool {
        self.segment().contexts[context.index].begins.load(Relaxed) == begins.0
    }

    /// Says whether the context has grids to run, and settles whose turn it is.
    pub fn set_runnable(&self, context: &ContextHandle, runnable: bool) {
        let guard = self.lock();
        let now = now();
        if runnable {
            self.renew_slice(&guard, now);
        }
        self.set_runnable_locked(&guard, context.index, runnable);
        self.arbitrate(&guard, now);
    }

    /// Begins as many slices anew as went by while nobody else wanted the GPU.
    pub(super) fn renew_slice(&self, _guard: &Guard<'_>, now: Nanos) {
        let segment = self.segment();
        let current = (segment.current.load(Relaxed) as usize).checked_sub(1);
        let alone = segment.runnable.load(Relaxed) == 1;
        let Some(slot) = current.map(|index| &segment.contexts[index]).filter(|_| alone) else { return };
        let (end, slice) = (segment.slice_end.load(Relaxed), slot.timeslice.load(Relaxed).max(1));
        if slot.competes() && end <= now.0 {
            let over = (now.0 - end) / slice + 1;
            segment.slice_end.store(end.saturating_add(over.saturating_mul(slice)), Relaxed);
        }
    }

    pub(super) fn set_runnable_locked(&self, _guard: &Guard<'_>, index: usize, runnable: bool) {
        let slot = &self.segment().contexts[index];
        let before = slot.competes();
        slot.runnable.store(u32::from(runnable), Relaxed);
        match (before, slot.competes()) {
            (false, true) => _ = self.segment().runnable.fetch_add(1, Relaxed),
            (true, false) => _ = self.segment().runnable.fetch_sub(1, Relaxed),
            _ => {}
        }
    }

    /// When somebody should next look whose turn it is: the end of the slice, if anyone waits for it. Who waits for
    /// room on the SMs should look now and then whether those who have it still live.
    pub fn next_arbitration(&self) -> Option<Nanos> {
        let segment = self.segment();
        match self.domain() {
            Domain::Isolated if segment.runnable.load(Relaxed) > 1 => {
                Some(Nanos(segment.slice_end.load(Relaxed)))
            }
            Domain::Shared if segment.best_pending.load(Relaxed) != NO_PRIORITY => {
                Some(Nanos(self.reaped.load(Relaxed)) + REAP_EVERY)
            }
            _ => None,
        }
    }

    /// Ends a slice that is over. Cheap when none is.
    ///
    /// The dead do not say that they have nothing to run any more. On a card they would be gone with their process, so
    /// whoever has to share looks after them.
    pub fn arbitrate_if_due(&self, now: Nanos) {
        if self.next_arbitration().is_some_and(|due| due <= now) {
            let guard = self.lock();
            if now.since(Nanos(self.reaped.load(Relaxed))) >= REAP_EVERY {
                self.reaped.store(now.0, Relaxed);
                self.reap(&guard);
            }
            self.arbitrate(&guard, now);
        }
    }

    pub(super) fn arbitrate(&self, _guard: &Guard<'_>, now: Nanos) {
        if self.domain() == Domain::Shared {
            return;
        }
        let segment = self.segment();
        let current = (segment.current.load(Relaxed) as usize).checked_sub(1);
        let working = current.filter(|&index| segment.contexts[index].competes());
        match (working, self.next_in_round()) {
            (Some(index), Some(next)) if next != index => {
                if Nanos(segment.slice_end.load(Relaxed)) <= now {
                    self.switch(Some(index), next, now);
                }
            }
            (None, Some(next)) => self.switch(current, next, now),
            (None, None) => {
                if let Some(index) = current {
                    self.turn_off(index, now);
                }
            }
            (Some(_), _) => {}
        }
    }

    /// The competing context after the last one that had the GPU.
    fn next_in_round(&self) -> Option<usize> {
        let contexts = &self.segment().contexts;
        let start = self.segment().last.load(Relaxed) as usize;
        (0..MAX_CONTEXTS).map(|step| (start + step) % MAX_CONTEXTS).find(|&index| contexts[index].competes())
    }

    fn switch(&self, from: Option<usize>, to: usize, now: Nanos) {
        if let Some(index) = from {
            self.turn_off(index, now);
        }
        let segment = self.segment();
        let resident = segment.on_chip.load(Relaxed) as usize == to + 1;
        let first = segment.last.load(Relaxed) == 0;
        let begins = if resident || first { now } else { now + self.switch_cost() };
        if !resident {
            segment.switches.fetch_add(1, Relaxed);
        }
        segment.current.store(to as u32 + 1, Relaxed);
        segment.last.store(to as u32 + 1, Relaxed);
        segment.on_chip.store(to as u32 + 1, Relaxed);
        let slice = Nanos(segment.contexts[to].timeslice.load(Relaxed));
        segment.slice_end.store((begins + slice).0, Relaxed);
        self.turn_on(to, begins);
    }

    pub(super) fn turn_on(&self, index: usize, begins: Nanos) {
        let slot = &self.segment().contexts[index];
        // Context time goes on where it stopped, also when the turn before was called off before it began.
        let stopped = Nanos(slot.off_at.load(Relaxed)) - Nanos(slot.offset.load(Relaxed));
        slot.offset.store((begins - stopped).0, Relaxed);
        // SYNC(turn): publishes the offset written above.
        slot.begins.store(begins.0.max(1), Release);
        self.ring_owner(index);
    }

    pub(super) fn turn_off(&self, index: usize, now: Nanos) {
        let segment = self.segment();
        let slot = &segment.contexts[index];
        let begins = Nanos(slot.begins.swap(0, Relaxed));
        slot.on_time.fetch_add(now.since(begins).0, Relaxed);
        slot.off_at.store(now.max(begins).0, Release);
        if segment.current.load(Relaxed) as usize == index + 1 {
            segment.current.store(0, Relaxed);
        }
    }

    pub(super) fn timeslice_changed(&self, guard: &Guard<'_>, index: usize, now: Nanos) {
        let segment = self.segment();
        if segment.current.load(Relaxed) as usize == index + 1 {
            let slot = &segment.contexts[index];
            let end = Nanos(slot.begins.load(Relaxed)) + Nanos(slot.timeslice.load(Relaxed));
            segment.slice_end.store(end.0, Relaxed);
        }
        self.arbitrate(guard, now);
    }

    pub(super) fn change_domain(&self, guard: &Guard<'_>, domain: Domain, now: Nanos) {
        self.segment().current.store(0, Relaxed);
        self.settle_turns(guard, now);
        if domain == Domain::Shared {
            self.update_overfull(guard);
        }
    }

    /// Gives every context the turn it should have, whatever it had before.
    pub(super) fn settle_turns(&self, guard: &Guard<'_>, now: Nanos) {
        let current = self.segment().current.load(Relaxed) as usize;
        for (index, slot) in self.live_contexts() {
            let due = match self.domain() {
                Domain::Shared => !slot.is_disabled(),
                Domain::Isolated => current == index + 1 && slot.competes(),
            };
            match (slot.begins.load(Relaxed) != 0, due) {
                (false, true) => self.turn_on(index, now),
                (true, false) => self.turn_off(index, now),
                _ => {}
            }
        }
        self.arbitrate(guard, now);
    }

    pub(super) fn ring_owner(&self, context: usize) {
        let process = self.segment().contexts[context].process.load(Relaxed) as usize;
        if let Some(process) = process.checked_sub(1) {
            self.ring(process);
        }
    }

    pub(super) fn ring(&self, process: usize) {
        if let Some(slot) = self.segment().processes.get(process) {
            ring(slot, u32::MAX);
        }
    }

    /// The value to hand to `sleep`: read it before looking for work.
    pub fn doorbell(&self) -> u32 {
        // SYNC(doorbell): pairs with the release in `ring`; work published before the ring is seen after it.
        self.own_process().doorbell.load(Acquire)
    }

    /// Wakes up to `threads` idle threads of this process.
    pub fn ring_own(&self, threads: u32) {
        ring(self.own_process(), threads);
    }

    /// Sleeps until the doorbell no longer reads `seen`, or `until` (monotonic) has come.
    pub fn sleep(&self, seen: u32, until: Option<Nanos>) {
        let timeout = until.map(|until| {
            let span = until.since(now()).0;
            let (seconds, nanos) = (span / 1_000_000_000, span % 1_000_000_000);
            rustix::time::Timespec { tv_sec: seconds as i64, tv_nsec: nanos as i64 }
        });
        let slot = self.own_process();
        slot.sleepers.fetch_add(1, Relaxed);
        // SYNC(sleepers): either the ringer sees this sleeper, or the kernel sees the rung bell below.
        fence(SeqCst);
        // Every way of coming back (rung, time-out, signal) means the same: look again.
        let _ = futex::wait(&slot.doorbell, futex::Flags::empty(), seen, timeout.as_ref());
        slot.sleepers.fetch_sub(1, Relaxed);
    }
}

fn ring(process: &ProcessSlot, threads: u32) {
    // SYNC(doorbell): publishes whatever the caller wrote before ringing.
    process.doorbell.fetch_add(1, Release);
    // SYNC(sleepers): see `sleep`.
    fence(SeqCst);
    if process.sleepers.load(Relaxed) > 0 {
        let _ = futex::wake(&process.doorbell, futex::Flags::empty(), threads.min(i32::MAX as u32));
    }
}
