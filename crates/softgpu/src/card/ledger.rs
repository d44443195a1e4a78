//! The ledger: what is taken of each SM, by whom.
//!
//! Each context keeps a row of what its resident blocks take. In the isolated domain only that row counts: a
//! context that is off has left the SMs. In the shared domain the sum over all contexts counts; `totals`
//! holds it, and can be rebuilt from the rows at any time.
//!
//! A disabled context has left the SMs in either domain, so its row is not in the sum. Its suspended blocks keep their
//! SMs all the same, and when it is enabled they may meet others there. An SM that holds too much then gets no
//! new block, not even as the successor of one that ends, until it is within its limits again.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use model::{Domain, Nanos};

use super::layout::{NO_PRIORITY, SmUse};
use super::lock::Guard;
use super::{Card, ContextHandle, Properties, SmSet};

/// The priority under which blocks wait that are confined to some of the SMs: whoever leaves room wakes them, but nobody is kept
/// from an SM on their account, because nobody knows whether it would be one of theirs.
pub const CLAIMS_NOTHING: i32 = NO_PRIORITY - 1;

/// What one block takes of an SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    pub threads: u32,
    pub registers: u32,
    pub shared: u32,
}

impl Footprint {
    /// Registers are given to warps in units of 256, threads in whole warps, and every block pays the
    /// reserved shared memory.
    pub fn of(properties: &Properties, threads: u32, registers_per_thread: u32, shared: u32) -> Footprint {
        let warps = threads.div_ceil(32);
        Footprint {
            threads: warps * 32,
            registers: warps * (registers_per_thread * 32).next_multiple_of(256),
            shared: (shared + properties.shared_reserved_per_block).next_multiple_of(128),
        }
    }

    /// How many such blocks fit on one empty SM.
    pub fn blocks_per_sm(&self, properties: &Properties) -> u32 {
        let by = |limit: u32, each: u32| limit.checked_div(each).unwrap_or(u32::MAX);
        by(properties.threads_per_sm, self.threads)
            .min(by(properties.registers_per_sm, self.registers))
            .min(by(properties.shared_per_sm, self.shared))
            .min(properties.blocks_per_sm)
    }
}

impl SmUse {
    pub fn clear(&self) {
        for field in self.fields() {
            field.store(0, Relaxed);
        }
    }

    fn fields(&self) -> [&AtomicU32; 4] {
        [&self.threads, &self.registers, &self.shared, &self.blocks]
    }

    fn has_room(&self, each: &Footprint, properties: &Properties) -> bool {
        self.blocks.load(Relaxed) < properties.blocks_per_sm
            && self.threads.load(Relaxed) + each.threads <= properties.threads_per_sm
            && self.registers.load(Relaxed) + each.registers <= properties.registers_per_sm
            && self.shared.load(Relaxed) + each.shared <= properties.shared_per_sm
    }

    fn exceeds(&self, properties: &Properties) -> bool {
        self.blocks.load(Relaxed) > properties.blocks_per_sm
            || self.threads.load(Relaxed) > properties.threads_per_sm
            || self.registers.load(Relaxed) > properties.registers_per_sm
            || self.shared.load(Relaxed) > properties.shared_per_sm
    }

    fn add(&self, each: &Footprint) {
        let amounts = [each.threads, each.registers, each.shared, 1];
        for (field, amount) in self.fields().into_iter().zip(amounts) {
            field.store(field.load(Relaxed) + amount, Relaxed);
        }
    }

    fn subtract(&self, each: &Footprint) {
        let amounts = [each.threads, each.registers, each.shared, 1];
        for (field, amount) in self.fields().into_iter().zip(amounts) {
            field.store(field.load(Relaxed).saturating_sub(amount), Relaxed);
        }
    }

    fn subtract_all(&self, other: &SmUse) {
        for (field, part) in self.fields().into_iter().zip(other.fields()) {
            field.store(field.load(Relaxed).saturating_sub(part.load(Relaxed)), Relaxed);
        }
    }

    fn add_all(&self, other: &SmUse) {
        for (field, part) in self.fields().into_iter().zip(other.fields()) {
            field.store(field.load(Relaxed) + part.load(Relaxed), Relaxed);
        }
    }
}

impl Card {
    /// Takes room for up to `wanted` blocks and appends the SM of each to `places`. Blocks go round the SMs, or
    /// those `among` them, one at a time, as the hardware spreads them. Nothing is given while another context waits with a
    /// more urgent priority.
    pub fn place(
        &self,
        context: &ContextHandle,
        priority: i32,
        each: &Footprint,
        wanted: u64,
        among: Option<&SmSet>,
        places: &mut Vec<u32>,
    ) {
        let properties = self.properties();
        let guard = self.lock();
        let shared = self.domain() == Domain::Shared;
        if shared && self.more_urgent_elsewhere(context, priority) {
            return;
        }
        let segment = self.segment();
        let slot = &segment.contexts[context.index];
        let (own, counts) = (&slot.resident, !slot.is_disabled());
        let mut left = wanted;
        let mut progress = true;
        while left > 0 && progress {
            progress = false;
            for (sm, (own, total)) in (0..properties.sms).zip(own.iter().zip(&segment.totals)) {
                let taken = if shared && counts { total } else { own };
                let allowed = among.is_none_or(|some| some.contains(sm));
                if left > 0 && allowed && taken.has_room(each, &properties) {
                    own.add(each);
                    if counts {
                        total.add(each);
                    }
                    places.push(sm);
                    left -= 1;
                    progress = true;
                }
            }
        }
        drop(guard);
    }

    /// A block leaves an SM at this time. Whoever takes its room, of whichever context, begins no earlier: to be late is caught up, to have
    /// waited for others is not.
    pub fn leave(&self, sm: u32, machine: Nanos) {
        if self.domain() == Domain::Shared {
            self.segment().left_at[sm as usize].fetch_max(machine.0, Relaxed);
        }
    }

    /// When a block last left an SM, as far as that matters to other contexts.
    pub fn left_at(&self, sm: u32) -> Nanos {
        match self.domain() {
            Domain::Isolated => Nanos::ZERO,
            Domain::Shared => Nanos(self.segment().left_at[sm as usize].load(Relaxed)),
        }
    }

    /// Gives back the room of one block on each of `places`, and wakes processes that wait for room.
    pub fn release(&self, context: &ContextHandle, each: &Footprint, places: &[u32]) {
        let guard = self.lock();
        let segment = self.segment();
        let slot = &segment.contexts[context.index];
        for &sm in places {
            slot.resident[sm as usize].subtract(each);
            if !slot.is_disabled() {
                segment.totals[sm as usize].subtract(each);
            }
        }
        if self.domain() == Domain::Shared {
            if segment.overfull.load(Relaxed) != 0 {
                self.update_overfull(&guard);
            }
            self.wake_those_waiting_for_room(&guard);
        }
    }

    /// Says for which priority, if any, this context has blocks that wait for room. Whoever has to leave it to them is woken, since it may
    /// have lain down for longer than its blocks take.
    pub fn set_pending(&self, context: &ContextHandle, priority: Option<i32>) {
        let slot = &self.segment().contexts[context.index];
        let priority = priority.unwrap_or(NO_PRIORITY);
        if slot.pending.load(Relaxed) == priority {
            return;
        }
        let guard = self.lock();
        slot.pending.store(priority, Relaxed);
        let before = self.segment().best_pending.load(Relaxed);
        self.update_best_pending(&guard);
        if self.domain() == Domain::Shared && priority < before {
            self.wake_those_waiting_for_room(&guard);
        }
    }

    /// Whether blocks of another context wait for the room that this one's blocks leave.
    pub fn others_go_first(&self, context: &ContextHandle) -> bool {
        let segment = self.segment();
        let own = segment.contexts[context.index].pending.load(Relaxed);
        self.domain() == Domain::Shared && segment.best_pending.load(Relaxed) < own
    }

    /// Whether a block of this priority may take the room its predecessor leaves, without asking the ledger: not
    /// while more urgent blocks wait for room, nor while there is less than none.
    pub fn may_inherit(&self, context: &ContextHandle, priority: i32) -> bool {
        let segment = self.segment();
        match self.domain() {
            Domain::Isolated => segment.contexts[context.index].pending.load(Relaxed) >= priority,
            Domain::Shared => {
                segment.overfull.load(Relaxed) == 0 && segment.best_pending.load(Relaxed) >= priority
            }
        }
    }

    fn more_urgent_elsewhere(&self, context: &ContextHandle, priority: i32) -> bool {
        let others = self.enabled_contexts().filter(|(index, _)| *index != context.index);
        others.into_iter().any(|(_, slot)| slot.pending.load(Relaxed) < priority)
    }

    fn update_best_pending(&self, _guard: &Guard<'_>) {
        let best = self.enabled_contexts().map(|(_, slot)| slot.pending.load(Relaxed)).min();
        self.segment().best_pending.store(best.unwrap_or(NO_PRIORITY), Relaxed);
    }

    pub(super) fn wake_those_waiting_for_room(&self, _guard: &Guard<'_>) {
        let waiting = self.enabled_contexts().filter(|(_, slot)| slot.pending.load(Relaxed) != NO_PRIORITY);
        let mut processes = 0u64;
        for (_, slot) in waiting {
            processes |= 1 << (slot.process.load(Relaxed).wrapping_sub(1) & 63);
        }
        for process in (0..64).filter(|bit| processes >> bit & 1 != 0 && *bit != self.process) {
            self.ring(process);
        }
    }

    /// Takes all blocks of a context off the SMs.
    pub fn evict(&self, context: &ContextHandle) {
        let guard = self.lock();
        self.release_everything(&guard, context.index);
    }

    pub(super) fn release_everything(&self, guard: &Guard<'_>, index: usize) {
        let segment = self.segment();
        let slot = &segment.contexts[index];
        for (own, total) in slot.resident.iter().zip(&segment.totals) {
            if !slot.is_disabled() {
                total.subtract_all(own);
            }
            own.clear();
        }
        slot.pending.store(NO_PRIORITY, Relaxed);
        self.update_best_pending(guard);
        self.update_overfull(guard);
        self.wake_those_waiting_for_room(guard);
    }

    pub(super) fn update_overfull(&self, _guard: &Guard<'_>) {
        let properties = self.properties();
        let exceeded = self.segment().totals.iter().any(|total| total.exceeds(&properties));
        self.segment().overfull.store(u32::from(exceeded), Relaxed);
    }

    /// After a death in the middle of a change, or when a context was disabled or enabled: the rows of the living are
    /// the truth.
    pub(super) fn rebuild(&self, guard: &Guard<'_>) {
        let segment = self.segment();
        segment.totals.iter().for_each(SmUse::clear);
        for (_, slot) in self.enabled_contexts() {
            for (own, total) in slot.resident.iter().zip(&segment.totals) {
                total.add_all(own);
            }
        }
        self.update_best_pending(guard);
        self.update_overfull(guard);
        let runnable = self.live_contexts().filter(|(_, slot)| slot.competes()).count();
        segment.runnable.store(runnable as u32, Relaxed);
    }

    /// Blocks resident on each SM, over all contexts.
    pub fn resident_blocks(&self) -> Vec<u32> {
        let totals = &self.segment().totals[..self.properties().sms as usize];
        totals.iter().map(|total| total.blocks.load(Relaxed)).collect()
    }
}
