//! The terms of a tenant: what the daemon grants it, and may change while it runs.

use std::sync::atomic::{AtomicU64, Ordering};

use model::{Bytes, Class, Nanos};

/// What the daemon says of a seat now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    pub class: Class,
    /// 1 to 1,000: the share among best-effort tenants.
    pub weight: u32,
    /// 0 to 9, higher goes first; among latency tenants.
    pub priority: u32,
    /// The latency of a burst that 99 of 100 should stay below.
    pub slo: Option<Nanos>,
    /// How much of the GPU's memory all processes of the tenant may have together.
    pub memory: Option<Bytes>,
    /// Told to hold everything until told otherwise.
    pub paused: bool,
}

/// One thing that the daemon changes about a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Class(Class),
    Weight(u32),
    Priority(u32),
    Slo(Option<Nanos>),
    Memory(Option<Bytes>),
    Paused(bool),
}

pub const HIGHEST_WEIGHT: u32 = 1000;
pub const HIGHEST_PRIORITY: u32 = 9;

impl Default for Terms {
    fn default() -> Terms {
        Terms { class: Class::BestEffort, weight: 1, priority: 0, slo: None, memory: None, paused: false }
    }
}

impl Terms {
    pub(crate) fn with(self, change: Change) -> Terms {
        match change {
            Change::Class(class) => Terms { class, ..self },
            Change::Weight(weight) => Terms { weight, ..self },
            Change::Priority(priority) => Terms { priority, ..self },
            Change::Slo(slo) => Terms { slo, ..self },
            Change::Memory(memory) => Terms { memory, ..self },
            Change::Paused(paused) => Terms { paused, ..self },
        }
    }
}

/// Terms in the segment. All but the objective and the limit are one word, so that a reader never sees half a change.
#[repr(C)]
pub(crate) struct Written {
    word: AtomicU64,
    /// Nought: none.
    slo: AtomicU64,
    /// In bytes; nought: no limit.
    memory: AtomicU64,
}

const LATENCY: u64 = 1;
const PAUSED: u64 = 2;

impl Written {
    pub(crate) fn write(&self, terms: &Terms) {
        let class = if terms.class == Class::Latency { LATENCY } else { 0 };
        let paused = if terms.paused { PAUSED } else { 0 };
        let weight = u64::from(terms.weight.clamp(1, HIGHEST_WEIGHT)) << 16;
        let priority = u64::from(terms.priority.min(HIGHEST_PRIORITY)) << 8;
        self.slo.store(terms.slo.map_or(0, |slo| slo.0), Ordering::Relaxed);
        self.memory.store(terms.memory.map_or(0, |memory| memory.0), Ordering::Relaxed);
        self.word.store(weight | priority | class | paused, Ordering::Relaxed);
    }

    /// Whatever is written there, brought within what may be.
    pub(crate) fn read(&self) -> Terms {
        let word = self.word.load(Ordering::Relaxed);
        let [flags, priority, low, high, ..] = word.to_le_bytes();
        let slo = self.slo.load(Ordering::Relaxed);
        let memory = self.memory.load(Ordering::Relaxed);
        Terms {
            class: if u64::from(flags) & LATENCY != 0 { Class::Latency } else { Class::BestEffort },
            weight: u32::from(u16::from_le_bytes([low, high])).clamp(1, HIGHEST_WEIGHT),
            priority: u32::from(priority).min(HIGHEST_PRIORITY),
            slo: (slo != 0).then_some(Nanos(slo)),
            memory: (memory != 0).then_some(Bytes(memory)),
            paused: u64::from(flags) & PAUSED != 0,
        }
    }
}
