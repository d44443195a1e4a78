//! The account of a device: how much of it is used, against its limit.

use std::sync::atomic::{AtomicU64, Ordering};

use board::Seat;
use model::Bytes;

use super::{MOST, limit};
use crate::lock::Lock;
use crate::tenancy;
use crate::watch::Watch;

pub struct Account {
    device: usize,
    /// Held while something is charged: what is compared with the limit must not change meanwhile.
    lock: Lock,
    used: AtomicU64,
    /// What the environment says; [`UNREAD`] before it was looked at.
    asked: AtomicU64,
    /// The primary context, if it was ever retained.
    primary: AtomicU64,
}

const UNREAD: u64 = u64::MAX;
const NONE: u64 = 0;

static ACCOUNTS: [Account; MOST] = {
    let mut accounts = [const { Account::new(0) }; MOST];
    let mut device = 0;
    while device < MOST {
        accounts[device].device = device;
        device += 1;
    }
    accounts
};

/// What became of a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charged {
    Yes,
    /// It would go beyond the limit.
    Denied,
    /// It cannot be counted now.
    Not,
}

/// What a device has for a process that has a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    pub limit: u64,
    pub left: u64,
}

/// The account of a device, of which there are no more than [`MOST`].
pub fn of(device: usize) -> &'static Account {
    &ACCOUNTS[device]
}

impl Account {
    const fn new(device: usize) -> Account {
        Account {
            device,
            lock: Lock::new(),
            used: AtomicU64::new(0),
            asked: AtomicU64::new(UNREAD),
            primary: AtomicU64::new(0),
        }
    }

    /// Counts an allocation that is about to be made.
    pub fn charge(&self, bytes: u64, watch: &Watch) -> Charged {
        let seat = self.seat();
        let limit = self.limit(watch);
        let Some(_held) = self.lock.acquire() else { return Charged::Not };
        let (used, sum) = (self.used(), self.used().saturating_add(bytes));
        let granted = match (limit, seat) {
            (None, _) => true,
            (Some(limit), Some(seat)) => seat.ask_memory(Bytes(used), Bytes(bytes), Bytes(limit)),
            (Some(limit), None) => sum <= limit,
        };
        if granted {
            self.set(sum, seat);
            return Charged::Yes;
        }
        if let Some(seat) = seat {
            seat.tally().memory_denials.add(1);
        }
        Charged::Denied
    }

    /// Counts off what was charged.
    pub fn refund(&self, bytes: u64) {
        self.correct(bytes, 0);
    }

    /// What was charged turns out to be so much.
    pub fn correct(&self, charged: u64, bytes: u64) {
        let seat = self.seat();
        let Some(_held) = self.lock.acquire() else { return };
        self.set(self.used().saturating_sub(charged).saturating_add(bytes), seat);
    }

    /// Says on the board what is used.
    pub fn publish(&self) {
        self.correct(0, 0);
    }

    /// Under the lock, so that what is said is the latest.
    fn set(&self, used: u64, seat: Option<&Seat>) {
        self.used.store(used, Ordering::Relaxed);
        if let Some(seat) = seat {
            seat.say_memory(Bytes(used));
        }
    }

    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// What there is for this process, where there is a limit.
    pub fn room(&self, watch: &Watch) -> Option<Room> {
        let seat = self.seat();
        let limit = self.limit(watch)?;
        let siblings = seat.map_or(Bytes::ZERO, Seat::memory_of_siblings);
        Some(Room { limit, left: limit.saturating_sub(self.used().saturating_add(siblings.0)) })
    }

    /// How much there may be: what the daemon has granted, and without one what the environment says.
    fn limit(&self, watch: &Watch) -> Option<u64> {
        let granted = i32::try_from(self.device).ok().and_then(tenancy::granted_memory);
        granted.unwrap_or_else(|| self.asked(watch)).map(|Bytes(limit)| limit)
    }

    fn seat(&self) -> Option<&'static Seat> {
        tenancy::seat_at(i32::try_from(self.device).ok()?)
    }

    /// What the environment asked for.
    pub fn asked(&self, watch: &Watch) -> Option<Bytes> {
        let known = match self.asked.load(Ordering::Relaxed) {
            UNREAD => {
                let read = limit::of_environment(Some(self.device), Some(watch));
                let read = read.map_or(NONE, |Bytes(limit)| limit);
                self.asked.store(read, Ordering::Relaxed);
                read
            }
            known => known,
        };
        (known != NONE).then_some(Bytes(known))
    }

    pub fn primary(&self) -> u64 {
        self.primary.load(Ordering::Relaxed)
    }

    pub fn set_primary(&self, context: u64) {
        self.primary.store(context, Ordering::Relaxed);
    }
}

/// In the child of a fork, which has nothing on any device.
pub fn in_child() {
    for account in &ACCOUNTS {
        account.lock.reset();
        account.used.store(0, Ordering::Relaxed);
        account.primary.store(0, Ordering::Relaxed);
    }
}
