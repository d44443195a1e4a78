//! Physical memory, which is made, mapped, unmapped and released.
//!
//! It is on the card for as long as anybody holds it: a handle that was not released, or a place where it is mapped. Most
//! programs release a handle as soon as it is mapped, and the driver may then use the number again; so what is held has a
//! number of ours, and handles and mappings lead to it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::holdings::{self, HOLDINGS};
use super::table::{Entry, Key, Kind, NoRoom, Open};
use super::{Home, account};

/// Numbers of ours. Nought is memory that we do not count: that of another process, say.
static NEXT: AtomicU64 = AtomicU64::new(1);
const NOT_OURS: u64 = 0;

fn handle(number: u64) -> Key {
    Key { kind: Kind::Handle, number }
}

fn mapping(number: u64) -> Key {
    Key { kind: Kind::Mapping, number }
}

fn physical(number: u64) -> Key {
    Key { kind: Kind::Physical, number }
}

/// Memory was made, and is in the account. A handle's entry says how often it has to be released.
pub fn made(made: u64, home: Home, bytes: u64) -> Result<(), NoRoom> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let result = HOLDINGS.open().ok_or(NoRoom).and_then(|open| {
        let Home { device, .. } = home;
        open.put(physical(number), Entry { device, bytes, of: 1 })?;
        let leads = open.put(handle(made), Entry { device, bytes: 1, of: number });
        if leads.is_err() {
            open.take(physical(number));
        }
        leads
    });
    if result.is_err() {
        account::of(home.device).refund(bytes);
    }
    result.map(drop)
}

/// A handle that is about to be released, taken out of the book before the driver can use its number again.
pub struct Releasing {
    handle: u64,
    number: u64,
    device: usize,
}

pub fn release(released: u64) -> Option<Releasing> {
    let open = HOLDINGS.open()?;
    let entry = open.take(handle(released))?;
    if entry.bytes > 1 {
        // There was room a moment ago.
        let _ = open.put(handle(released), Entry { bytes: entry.bytes - 1, ..entry });
    }
    Some(Releasing { handle: released, number: entry.of, device: entry.device })
}

impl Releasing {
    /// The driver has released it.
    pub fn done(self) {
        if let Some(open) = HOLDINGS.open() {
            let_go(&open, self.number);
        }
    }

    /// It has not.
    pub fn undone(self) {
        let Some(open) = HOLDINGS.open() else { return };
        let held = open.get(handle(self.handle)).map_or(0, |entry| entry.bytes);
        let entry = Entry { device: self.device, bytes: held + 1, of: self.number };
        let _ = open.put(handle(self.handle), entry);
    }
}

pub fn mapped(address: u64, bytes: u64, from: u64) {
    let Some(open) = HOLDINGS.open() else { return };
    let leads = open.get(handle(from)).map_or(Entry::default(), |entry| entry);
    let entry = Entry { device: leads.device, bytes, of: leads.of };
    if open.put(mapping(address), entry).is_ok() {
        hold(&open, leads.of);
    }
}

/// Everything that was mapped from one address on is no longer: one mapping, or several that lie side by side.
pub fn unmapped(address: u64, bytes: u64) {
    let Some(open) = HOLDINGS.open() else { return };
    let (mut at, end) = (address, address.saturating_add(bytes));
    while at < end
        && let Some(entry) = open.take(mapping(at))
    {
        let_go(&open, entry.of);
        at = at.saturating_add(entry.bytes.max(1));
    }
}

/// A handle was given out for what is mapped at an address, and will have to be released too.
pub fn retained(given: u64, address: u64) {
    let Some(open) = HOLDINGS.open() else { return };
    let holds = |key: Key, entry: Entry| {
        key.kind == Kind::Mapping && address.checked_sub(key.number).is_some_and(|at| at < entry.bytes)
    };
    let Some((_, entry)) = open.find(holds).filter(|(_, entry)| entry.of != NOT_OURS) else { return };
    let held = open.get(handle(given)).map_or(0, |entry| entry.bytes);
    let leads = Entry { device: entry.device, bytes: held + 1, of: entry.of };
    if open.put(handle(given), leads).is_ok() {
        hold(&open, entry.of);
    }
}

fn hold(open: &Open<'_>, number: u64) {
    if let Some(entry) = open.get(physical(number)) {
        let _ = open.put(physical(number), Entry { of: entry.of + 1, ..entry });
    }
}

/// One who held it does not any more; the last one gives it back.
fn let_go(open: &Open<'_>, number: u64) {
    let Some(entry) = open.take(physical(number)) else { return };
    match entry.of {
        0 | 1 => holdings::gone(entry),
        held => _ = open.put(physical(number), Entry { of: held - 1, ..entry }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// A device for each test, since all share one book.
    fn make(device: usize, number: u64) {
        let account = account::of(device);
        account.correct(0, MIB);
        made(number, Home { device, context: 0 }, MIB).unwrap();
    }

    fn used(device: usize) -> u64 {
        account::of(device).used()
    }

    #[test]
    fn memory_that_is_mapped_outlives_its_handle() {
        make(10, 0x10);
        mapped(0x100_0000, MIB, 0x10);
        release(0x10).unwrap().done();
        assert_eq!(used(10), MIB);
        // The driver uses the number again.
        make(10, 0x10);
        assert_eq!(used(10), 2 * MIB);
        unmapped(0x100_0000, MIB);
        assert_eq!(used(10), MIB);
        release(0x10).unwrap().done();
        assert_eq!(used(10), 0);
        assert!(release(0x10).is_none());
    }

    #[test]
    fn one_unmapping_may_end_several_mappings() {
        (0..3).for_each(|number| {
            make(11, 0x20 + number);
            mapped(0x200_0000 + number * MIB, MIB, 0x20 + number);
            release(0x20 + number).unwrap().done();
        });
        unmapped(0x200_0000, 2 * MIB);
        assert_eq!(used(11), MIB);
        unmapped(0x200_0000 + 2 * MIB, MIB);
        assert_eq!(used(11), 0);
    }

    #[test]
    fn a_handle_that_was_asked_for_again_has_to_be_released_again() {
        make(12, 0x30);
        mapped(0x300_0000, MIB, 0x30);
        retained(0x30, 0x300_0000 + 4096);
        unmapped(0x300_0000, MIB);
        release(0x30).unwrap().done();
        assert_eq!(used(12), MIB);
        release(0x30).unwrap().undone();
        release(0x30).unwrap().done();
        assert_eq!(used(12), 0);
    }

    #[test]
    fn what_belongs_to_others_is_not_ours() {
        mapped(0x400_0000, MIB, 0x40);
        retained(0x40, 0x400_0000);
        assert!(release(0x40).is_none());
        unmapped(0x400_0000, MIB);
        assert_eq!(used(0), 0);
    }
}
