//! What this process holds.

use super::Home;
use super::account;
use super::table::{Entry, Key, Kind, NoRoom, Table};

pub(super) static HOLDINGS: Table = Table::new();

/// Remembers an allocation that is in the account already. What cannot be remembered could not be given back either, so
/// it is taken out of the account again.
pub fn keep(key: Key, home: Home, bytes: u64) -> Result<(), NoRoom> {
    let entry = Entry { device: home.device, bytes, of: home.context };
    match HOLDINGS.open().ok_or(NoRoom).and_then(|open| open.put(key, entry)) {
        // It ended without our noticing, for the driver gives out nothing twice.
        Ok(Some(gone)) => account::of(gone.device).refund(gone.bytes),
        Ok(None) => {}
        Err(no_room) => {
            account::of(home.device).refund(bytes);
            return Err(no_room);
        }
    }
    Ok(())
}

pub fn get(key: Key) -> Option<Entry> {
    HOLDINGS.open()?.get(key)
}

/// Takes what is about to be freed out of the book, before the driver can give it to somebody else. It stays in the account
/// until [`gone`].
pub fn take(key: Key) -> Option<Entry> {
    HOLDINGS.open()?.take(key)
}

/// What was taken is free.
pub fn gone(entry: Entry) {
    account::of(entry.device).refund(entry.bytes);
}

/// What was taken has not been freed after all.
pub fn put_back(key: Key, entry: Entry) {
    let back = HOLDINGS.open().ok_or(NoRoom).and_then(|open| open.put(key, entry));
    if back.is_err() {
        gone(entry);
    }
}

/// A context is gone, with everything that was allocated in it.
pub fn lose_context(context: u64) {
    let Some(open) = HOLDINGS.open() else { return };
    let dies = |key: Key, entry: Entry| {
        entry.of == context && matches!(key.kind, Kind::Pointer | Kind::Array | Kind::Mipmap)
    };
    open.take_all(dies, gone);
}

/// In the child of a fork.
pub fn in_child() {
    HOLDINGS.forget();
}
