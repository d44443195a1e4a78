//! Hostile input, and what must hold of whatever is read from it. Fuzzers call this, and tests with drawn input.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use rustix::fs::MemfdFlags;

use crate::event::Event;
use crate::log::{BYTES, COURSE, MAGIC, RING, RINGS, VERSION};
use crate::poll::{COURSE_HEAD, EventReader, LAUNCH_HEADS, Polled};
use crate::ring::Head;

/// Any bytes as an event log, written by somebody who does not keep to the rules: what is read are events, in order, no more than
/// there is room for, and looking again and again comes to an end.
///
/// A log is long and mostly empty, so the input is pieces of it: where each begins (half of them among the heads), how long it is, and what
/// stands there. The log is looked at in the middle of the pieces and behind them; its beginning is right, or nothing would be read.
pub fn event_log(data: &[u8]) {
    let Ok(file) = rustix::fs::memfd_create("events", MemfdFlags::CLOEXEC).map(File::from) else { return };
    let put =
        |at: usize, bytes: &[u8]| file.write_all_at(bytes, at as u64).expect("memory can be written to");
    file.set_len(BYTES as u64).expect("there is room for a log");
    put(0, &MAGIC.to_ne_bytes());
    put(8, &VERSION.to_ne_bytes());
    let copy = file.try_clone().expect("there are descriptors");
    let mut reader = EventReader::begin(copy).expect("it can be read").expect("its beginning is right");
    let (before, behind) = data.split_at(data.len() / 2);
    scatter(before, put);
    let first = reader.poll();
    check(&first);
    assert_eq!(first.lost, 0, "nobody had asked for what was lost before");
    scatter(behind, put);
    for _ in 0..2 {
        check(&reader.poll());
    }
    check(&reader.poll_course());
    reader.skip();
    assert_eq!(reader.poll(), Polled::default(), "all of it was passed over");
    assert!((0..=u8::MAX).all(|post| reader.gpu(post).is_none() || usize::from(post) < crate::POSTS));
    // Who wrote it may also cut it short.
    file.set_len(data.len() as u64).expect("a file can be cut");
    check(&reader.poll());
    assert!(!reader.name.contains(model::text::is_hidden));
}

fn check(polled: &Polled) {
    assert!(polled.events.len() <= RINGS * RING + COURSE);
    assert!(polled.events.is_sorted_by_key(|event| event.time));
    assert!(polled.events.iter().all(|event| Event::from_words(event.words()).as_ref() == Some(event)));
}

fn scatter(pieces: &[u8], put: impl Fn(usize, &[u8])) {
    let mut rest = pieces;
    while let Some(([a, b, c, length], more)) = rest.split_first_chunk::<4>() {
        let place = usize::from(u16::from_le_bytes([*a, *b]));
        let place = match c % 4 {
            0 => LAUNCH_HEADS + place % (RINGS * size_of::<Head>()),
            1 => COURSE_HEAD,
            // Behind the magic and the version.
            _ => 12 + (place | usize::from(c >> 2) << 16) % (BYTES - 12),
        };
        let length = usize::from(*length).min(more.len()).min(BYTES - place);
        put(place, &more[..length]);
        rest = &more[length..];
    }
}

/// Events of any words, as somebody may have written them.
pub fn events(data: &[u8]) -> Vec<Event> {
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let words =
        data.chunks_exact(24).map(|event| [word(&event[..8]), word(&event[8..16]), word(&event[16..])]);
    words.filter_map(Event::from_words).collect()
}

/// The words of events, as [`events`] reads them.
pub fn bytes_of(events: &[Event]) -> Vec<u8> {
    events.iter().flat_map(|event| event.words()).flat_map(u64::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn heads_that_leap_are_counted_without_an_overflow() {
        // Two rings are read, and then say that as much was written as can be.
        let head = |ring: u16, value: u64| {
            let place = (ring * size_of::<Head>() as u16).to_le_bytes();
            [&[place[0], place[1], 0, 8], &value.to_ne_bytes()[..]].concat()
        };
        let before = [head(0, 1), head(1, 1)].concat();
        let behind = [head(0, u64::MAX), head(1, u64::MAX)].concat();
        event_log(&[before, behind].concat());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_log_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            event_log(&bytes);
        }

        #[test]
        fn any_words_are_events_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let read = events(&bytes);
            prop_assert_eq!(events(&bytes_of(&read)), read);
        }
    }
}
