//! The card: what several processes share when they share one software GPU.
//!
//! Each process executes its own kernels in its own address space; what must be common lies in a small
//! segment, a file that every process maps: the settings, who is there, who has the
//! GPU now, what is taken of each SM, and a futex word per process to wake it. There is no server. Any process
//! may do any step of arbitration, so that none waits for another to be scheduled, and a process that dies is
//! noticed and cleared away by whoever stumbles over it.
//!
//! Two domains, as on a real GPU. *Isolated*: one context at a time has all SMs, for a timeslice of its own;
//! changing over costs `switch_cost`, and blocks are suspended wherever they are. *Shared*: all contexts run
//! at the same time and take room on the SMs from one ledger; priorities count across processes.

mod arbiter;
mod control;
mod error;
mod folder;
mod layout;
mod ledger;
mod liveness;
mod lock;
mod mapping;
mod sm_set;
mod survey;
#[cfg(any(test, feature = "trials"))]
pub mod trials;

use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use model::{Domain, Nanos};

use crate::memory::Quota;

pub use arbiter::Turn;
pub use error::Error;
pub use layout::{MAX_CONTEXTS, MAX_SMS};
pub use ledger::{CLAIMS_NOTHING, Footprint};
pub use sm_set::SmSet;
pub use survey::{CardCompany, CardFile, Occupant, card_files, survey};

use layout::{ContextSlot, MAX_PROCESSES, NO_PRIORITY, ProcessSlot, Segment};
use lock::{Guard, Taken};
use mapping::Mapping;

/// The figures of the device that every card has; they follow Hopper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    pub sms: u32,
    pub memory_bytes: u64,
    pub threads_per_sm: u32,
    pub blocks_per_sm: u32,
    pub registers_per_sm: u32,
    pub shared_per_sm: u32,
    pub shared_per_block: u32,
    pub shared_per_block_optin: u32,
    pub shared_reserved_per_block: u32,
    pub threads_per_block: u32,
    pub clock_khz: u32,
    pub uuid: [u8; 16],
}

/// What a new card is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    pub sms: u32,
    pub memory_bytes: u64,
    pub domain: Domain,
    pub timeslice: Nanos,
    pub switch_cost: Nanos,
}

impl Default for Defaults {
    /// An H200 as a stock driver runs it: 132 SMs, slices of 2,048 µs, 150 µs for a switch (measured); with
    /// memory that a laptop can promise.
    fn default() -> Defaults {
        Defaults {
            sms: 132,
            memory_bytes: 16 << 30,
            domain: Domain::Isolated,
            timeslice: Nanos::from_micros(2048),
            switch_cost: Nanos::from_micros(150),
        }
    }
}

impl Defaults {
    /// The defaults with what the environment says: `EBB_SOFTGPU_{SMS,MEMORY_MIB,DOMAIN,TIMESLICE_US,SWITCH_US}`.
    pub fn from_environment() -> Result<Defaults, Error> {
        let mut defaults = Defaults::default();
        if let Some(sms) = number("EBB_SOFTGPU_SMS", 1, MAX_SMS as u64)? {
            defaults.sms = u32::try_from(sms).expect("bounded by MAX_SMS");
        }
        if let Some(mebibytes) = number("EBB_SOFTGPU_MEMORY_MIB", 64, 1 << 20)? {
            defaults.memory_bytes = mebibytes << 20;
        }
        if let Some(micros) = number("EBB_SOFTGPU_TIMESLICE_US", 1, 10_000_000)? {
            defaults.timeslice = Nanos::from_micros(micros);
        }
        if let Some(micros) = number("EBB_SOFTGPU_SWITCH_US", 0, 1_000_000)? {
            defaults.switch_cost = Nanos::from_micros(micros);
        }
        if let Some(word) = variable("EBB_SOFTGPU_DOMAIN") {
            defaults.domain = word.parse().map_err(|error: model::UnknownWord| Error::Setting {
                variable: "EBB_SOFTGPU_DOMAIN",
                value: word,
                reason: error.to_string(),
            })?;
        }
        Ok(defaults)
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &'static str, least: u64, most: u64) -> Result<Option<u64>, Error> {
    let Some(value) = variable(name) else { return Ok(None) };
    match value.parse::<u64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
        _ => {
            let reason = format!("a whole number from {least} to {most} is wanted");
            Err(Error::Setting { variable: name, value, reason })
        }
    }
}

/// One context as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextView {
    pub id: u64,
    pub pid: u32,
    pub timeslice: Nanos,
    pub on_time: Nanos,
    pub runnable: bool,
    pub on: bool,
    pub disabled: bool,
}

/// The place of a card that was opened but has none.
const NOBODY: usize = usize::MAX;

/// A process's place at the card.
pub struct Card {
    mapping: Mapping,
    path: PathBuf,
    process: usize,
    /// When this process last looked for the dead.
    reaped: AtomicU64,
}

impl Card {
    /// The card's file, opened anew: nothing that is locked by its descriptor is locked by this one.
    pub fn open_again(&self) -> std::io::Result<File> {
        folder::open(&self.path)
    }

    /// A file on which best-effort tenants of the card meet, whichever daemon they are seated by. To read it is enough to
    /// lock it, so it needs no rights but those of the folder.
    pub fn lock_file(&self, which: usize) -> std::io::Result<File> {
        let mut path = self.path.clone().into_os_string();
        path.push([".turn", ".queue"][which.min(1)]);
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        options.open(&path).or_else(|_| {
            let file = options.write(true).create(true).mode(0o644).open(&path)?;
            // Whatever this process takes away from files that it makes, others have to open this one.
            file.set_permissions(Permissions::from_mode(0o644))?;
            Ok(file)
        })
    }

    /// Attaches this process to the card called `name` in the folder of cards, making the card if need be.
    pub fn attach(name: &str) -> Result<Arc<Card>, Error> {
        Card::attach_in(&folder::prepare()?, name, Defaults::from_environment()?)
    }

    /// The same in a folder of the caller's choice. A process attaches to a card once.
    pub fn attach_in(folder: &Path, name: &str, defaults: Defaults) -> Result<Arc<Card>, Error> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(allowed) {
            return Err(Error::Name(name.to_owned()));
        }
        // The layout is part of the name: after an upgrade the old file is in nobody's way, used or not.
        let path = folder.join(format!("softgpu-{name}.{}.card", layout::VERSION));
        let mapping = Mapping::open(&path, &defaults)?;
        let mut card = Card { mapping, path, process: NOBODY, reaped: AtomicU64::new(0) };
        let claimed = card.mapping.claim_process().or_else(|| {
            card.reap_dead();
            card.mapping.claim_process()
        });
        card.mapping.end_exclusion();
        card.process = claimed.ok_or(Error::Full { what: "processes", limit: MAX_PROCESSES })?;
        Ok(Arc::new(card))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn properties(&self) -> Properties {
        let settings = &self.segment().settings;
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&settings.uuid[0].load(Relaxed).to_le_bytes());
        uuid[8..].copy_from_slice(&settings.uuid[1].load(Relaxed).to_le_bytes());
        Properties {
            sms: settings.sms.load(Relaxed).clamp(1, MAX_SMS as u32),
            memory_bytes: settings.memory_bytes.load(Relaxed),
            threads_per_sm: 2048,
            blocks_per_sm: 32,
            registers_per_sm: 65_536,
            shared_per_sm: 228 << 10,
            shared_per_block: 48 << 10,
            shared_per_block_optin: 227 << 10,
            shared_reserved_per_block: 1 << 10,
            threads_per_block: 1024,
            clock_khz: 1_000_000,
            uuid,
        }
    }

    pub fn domain(&self) -> Domain {
        match self.segment().settings.domain.load(Acquire) {
            0 => Domain::Isolated,
            _ => Domain::Shared,
        }
    }

    pub fn set_domain(&self, domain: Domain) {
        let guard = self.lock();
        self.segment().settings.domain.store(u32::from(domain == Domain::Shared), Release);
        self.change_domain(&guard, domain, now());
    }

    pub fn switch_cost(&self) -> Nanos {
        Nanos(self.segment().settings.switch_cost.load(Relaxed))
    }

    pub fn set_switch_cost(&self, cost: Nanos) {
        self.segment().settings.switch_cost.store(cost.0, Relaxed);
    }

    /// How often a context's state was brought onto the GPU.
    pub fn switches(&self) -> u64 {
        self.segment().switches.load(Relaxed)
    }

    pub fn contexts(&self) -> Vec<ContextView> {
        let _guard = self.lock();
        self.live_contexts().map(|(_, slot)| self.view(slot)).collect()
    }

    fn view(&self, slot: &ContextSlot) -> ContextView {
        let process = slot.process.load(Relaxed) as usize;
        ContextView {
            id: slot.id.load(Relaxed),
            pid: self.segment().processes.get(process.wrapping_sub(1)).map_or(0, |p| p.pid.load(Relaxed)),
            timeslice: Nanos(slot.timeslice.load(Relaxed)),
            on_time: Nanos(slot.on_time.load(Relaxed)),
            runnable: slot.runnable.load(Relaxed) != 0,
            on: slot.begins.load(Relaxed) != 0,
            disabled: slot.is_disabled(),
        }
    }

    /// Takes a slot for a new context of this process.
    pub fn create_context(&self) -> Result<ContextHandle, Error> {
        let guard = self.lock();
        let segment = self.segment();
        let free = || segment.contexts.iter().position(|slot| slot.process.load(Relaxed) == 0);
        let index = free().or_else(|| {
            self.reap(&guard);
            free()
        });
        let index = index.ok_or(Error::Full { what: "contexts", limit: MAX_CONTEXTS })?;
        let slot = &segment.contexts[index];
        let id = self.free_id(&guard);
        slot.clear();
        slot.id.store(id, Relaxed);
        slot.timeslice.store(segment.settings.default_timeslice.load(Relaxed), Relaxed);
        let now = now();
        slot.off_at.store(now.0, Relaxed);
        slot.process.store(self.process as u32 + 1, Release);
        if self.domain() == Domain::Shared {
            self.turn_on(index, now);
        }
        Ok(ContextHandle { index, id })
    }

    /// A number that no other context has. The last one outlives its processes in the file, where it may be anything; 0 is no context.
    fn free_id(&self, _guard: &Guard<'_>) -> u64 {
        let segment = self.segment();
        let taken = |id| {
            let mut others = segment.contexts.iter().filter(|slot| slot.process.load(Relaxed) != 0);
            others.any(|slot| slot.id.load(Relaxed) == id)
        };
        loop {
            let id = segment.next_context_id.fetch_add(1, Relaxed).wrapping_add(1);
            if id != 0 && !taken(id) {
                return id;
            }
        }
    }

    pub fn destroy_context(&self, handle: &ContextHandle) {
        let guard = self.lock();
        self.drop_context(&guard, handle.index);
        self.arbitrate(&guard, now());
    }

    /// Bytes of device memory in use by all processes.
    pub fn memory_used(&self) -> u64 {
        self.segment()
            .processes
            .iter()
            .map(|process| process.used_bytes.load(Relaxed))
            .fold(0, u64::saturating_add)
    }

    /// Forgets processes that died and everything they held.
    pub fn reap_dead(&self) {
        let guard = self.lock();
        self.reap(&guard);
        self.arbitrate(&guard, now());
    }

    fn reap(&self, guard: &Guard<'_>) {
        for (index, process) in self.segment().processes.iter().enumerate() {
            let pid = process.pid.load(Relaxed);
            if pid != 0 && liveness::start_time(pid) != Some(process.started.load(Relaxed)) {
                self.forget_process(guard, index);
            }
        }
    }

    fn forget_process(&self, guard: &Guard<'_>, index: usize) {
        for (context, slot) in self.segment().contexts.iter().enumerate() {
            if slot.process.load(Relaxed) == index as u32 + 1 {
                self.drop_context(guard, context);
            }
        }
        let process = &self.segment().processes[index];
        process.used_bytes.store(0, Relaxed);
        process.started.store(0, Relaxed);
        process.pid.store(0, Release);
    }

    fn drop_context(&self, guard: &Guard<'_>, index: usize) {
        self.release_everything(guard, index);
        self.set_runnable_locked(guard, index, false);
        if self.segment().contexts[index].begins.load(Relaxed) != 0 {
            self.turn_off(index, now());
        }
        self.segment().contexts[index].clear();
    }

    fn live_contexts(&self) -> impl Iterator<Item = (usize, &ContextSlot)> {
        let slots = self.segment().contexts.iter().enumerate();
        slots.filter(|(_, slot)| slot.process.load(Relaxed) != 0)
    }

    fn enabled_contexts(&self) -> impl Iterator<Item = (usize, &ContextSlot)> {
        self.live_contexts().filter(|(_, slot)| !slot.is_disabled())
    }

    fn segment(&self) -> &Segment {
        self.mapping.segment()
    }

    fn own_process(&self) -> &ProcessSlot {
        &self.segment().processes[self.process]
    }

    fn lock(&self) -> Guard<'_> {
        match self.segment().lock.take() {
            Taken::Sound(guard) => guard,
            Taken::FromTheDead(guard) => {
                self.reap(&guard);
                self.rebuild(&guard);
                self.settle_turns(&guard, now());
                guard
            }
        }
    }
}

impl Quota for Card {
    /// Takes `bytes` of the device's memory for this process, if there are that many.
    fn charge(&self, bytes: u64) -> bool {
        let guard = self.lock();
        let limit = self.segment().settings.memory_bytes.load(Relaxed);
        let fits = || self.memory_used().checked_add(bytes).is_some_and(|sum| sum <= limit);
        if !fits() {
            self.reap(&guard);
        }
        let fits = fits();
        if fits {
            self.own_process().used_bytes.fetch_add(bytes, Relaxed);
        }
        fits
    }

    fn refund(&self, bytes: u64) {
        self.own_process().used_bytes.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        if self.process == NOBODY {
            return;
        }
        let guard = self.lock();
        self.forget_process(&guard, self.process);
        self.arbitrate(&guard, now());
    }
}

/// A context's place on the card.
#[derive(Clone, Copy, Debug)]
pub struct ContextHandle {
    index: usize,
    pub id: u64,
}

impl ContextSlot {
    fn is_disabled(&self) -> bool {
        self.disabled.load(Relaxed) != 0
    }

    /// Whether it takes part in the round.
    fn competes(&self) -> bool {
        self.runnable.load(Relaxed) != 0 && !self.is_disabled()
    }

    fn clear(&self) {
        self.runnable.store(0, Relaxed);
        self.begins.store(0, Relaxed);
        self.offset.store(0, Relaxed);
        self.off_at.store(0, Relaxed);
        self.on_time.store(0, Relaxed);
        self.pending.store(NO_PRIORITY, Relaxed);
        self.disabled.store(0, Relaxed);
        self.id.store(0, Relaxed);
        self.process.store(0, Release);
    }
}

/// The clock of arbitration: CLOCK_MONOTONIC, the same for all processes of a machine.
pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Wall-clock time, what `%globaltimer` shows.
pub fn wall() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests;
