//! What can be done to one context from outside its work: the controls that NVIDIA's driver has for a channel
//! group, by the context's number.
//!
//! Whoever may open the card may ask, for its own contexts or for another process's. Nothing of a request lives in
//! the process that made it: a context stays disabled when the one who disabled it dies, and anybody can enable it.

use std::sync::atomic::Ordering::Relaxed;

use model::{Domain, Nanos};

use super::layout::ContextSlot;
use super::lock::Guard;
use super::{Card, ContextHandle, Error, now};

impl Card {
    /// The contexts of this process.
    pub fn own_contexts(&self) -> Vec<u64> {
        let _guard = self.lock();
        let own = |slot: &ContextSlot| slot.process.load(Relaxed) as usize == self.process + 1;
        self.live_contexts().filter(|(_, slot)| own(slot)).map(|(_, slot)| slot.id.load(Relaxed)).collect()
    }

    /// The timeslice that new contexts have.
    pub fn default_timeslice(&self) -> Nanos {
        Nanos(self.segment().settings.default_timeslice.load(Relaxed))
    }

    /// A context's timeslice.
    pub fn timeslice(&self, context: u64) -> Result<Nanos, Error> {
        let guard = self.lock();
        let (_, slot) = self.find(&guard, context)?;
        Ok(Nanos(slot.timeslice.load(Relaxed)))
    }

    /// Gives one context another timeslice, at once: a slice that has become too long ends now.
    pub fn set_timeslice(&self, context: u64, timeslice: Nanos) -> Result<(), Error> {
        let guard = self.lock();
        let (index, slot) = self.find(&guard, context)?;
        slot.timeslice.store(timeslice.0.max(1), Relaxed);
        self.timeslice_changed(&guard, index, now());
        Ok(())
    }

    /// Takes a context off the GPU now, in the middle of its blocks. It comes back when it is its turn, which is at
    /// once when nobody else waits, and in the shared domain; its state has to be brought back in any case, which
    /// costs a switch. A context that is not on the GPU is left as it is.
    pub fn preempt(&self, context: u64) -> Result<(), Error> {
        let guard = self.lock();
        let (index, slot) = self.find(&guard, context)?;
        if slot.begins.load(Relaxed) == 0 || !slot.competes() {
            return Ok(());
        }
        let now = now();
        self.take_off_chip(&guard, index, now);
        match self.domain() {
            Domain::Isolated => self.arbitrate(&guard, now),
            Domain::Shared => {
                self.segment().switches.fetch_add(1, Relaxed);
                self.turn_on(index, now + self.switch_cost());
            }
        }
        Ok(())
    }

    /// Gives a context no turn until it is enabled. Its blocks are suspended where they are and others have the GPU
    /// at once; work may still be submitted, and waits. Disabling twice is disabling once.
    pub fn disable(&self, context: u64) -> Result<(), Error> {
        let guard = self.lock();
        let (index, slot) = self.find(&guard, context)?;
        slot.disabled.store(1, Relaxed);
        let now = now();
        if slot.begins.load(Relaxed) != 0 {
            self.take_off_chip(&guard, index, now);
        }
        self.rebuild(&guard);
        self.settle_turns(&guard, now);
        // Its room is free now, for other contexts of this process too.
        self.wake_those_waiting_for_room(&guard);
        self.ring_own(u32::MAX);
        Ok(())
    }

    /// Lets a disabled context take part again.
    pub fn enable(&self, context: u64) -> Result<(), Error> {
        let guard = self.lock();
        let (index, slot) = self.find(&guard, context)?;
        let now = now();
        self.renew_slice(&guard, now);
        slot.disabled.store(0, Relaxed);
        self.rebuild(&guard);
        self.settle_turns(&guard, now);
        // Even when it is not its turn yet: its process must know when to look, and may have copies to do.
        self.ring_owner(index);
        Ok(())
    }

    /// Whether the context is disabled: one load.
    pub fn is_disabled(&self, context: &ContextHandle) -> bool {
        self.segment().contexts[context.index].is_disabled()
    }

    fn find(&self, _guard: &Guard<'_>, context: u64) -> Result<(usize, &ContextSlot), Error> {
        let found = self.live_contexts().find(|(_, slot)| slot.id.load(Relaxed) == context);
        found.ok_or(Error::NoContext(context))
    }

    /// Ends a turn so that nothing of the context's state is left on the chip.
    fn take_off_chip(&self, _guard: &Guard<'_>, index: usize, now: Nanos) {
        self.turn_off(index, now);
        let on_chip = &self.segment().on_chip;
        if on_chip.load(Relaxed) as usize == index + 1 {
            on_chip.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
