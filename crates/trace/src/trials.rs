//! Hostile input, and what must hold of whatever is made of it. Fuzzers call this, and tests with drawn input.

use std::collections::BTreeMap;

use model::Nanos;
use telemetry::trials::events;

use crate::{Source, Story, assemble, chrome, perfetto};

/// Any bytes as the events of two processes: tracks have parents before them, marks lie on tracks, end after they begin, do not
/// overlap where they have an end, are none from before the beginning, and both files can be written.
pub fn assembly(data: &[u8]) {
    let Some(([since, split], rest)) = data.split_first_chunk::<2>() else { return };
    let since = Nanos(u64::from(*since) << 4);
    let (first, second) = rest.split_at(rest.len() * usize::from(*split) / 256);
    let gpus = || BTreeMap::from([(0, [0xab; 16]), (1, [0xcd; 16])]);
    let source = |pid, name: &str, data| Source {
        pid,
        name: name.to_owned(),
        gpus: gpus(),
        kernels: BTreeMap::from([(3, "gemm".to_owned())]),
        events: events(data),
        lost: pid.into(),
    };
    check(&assemble(vec![source(7, "server", first), source(8, "", second)], since), since);
}

fn check(story: &Story, since: Nanos) {
    for (number, track) in story.tracks.iter().enumerate() {
        assert!(track.parent.is_none_or(|parent| parent.0 < number));
    }
    let mut ends: BTreeMap<_, Nanos> = BTreeMap::new();
    for mark in &story.marks {
        assert!(mark.track.0 < story.tracks.len());
        assert!(mark.until.unwrap_or(mark.from) >= since);
        let Some(until) = mark.until else { continue };
        let end = ends.entry(mark.track).or_default();
        assert!(*end <= mark.from && mark.from <= until, "{mark:?} begins before {end:?}");
        *end = until;
    }
    assert!(story.marks.is_sorted_by_key(|mark| mark.from));
    let json: serde_json::Value = serde_json::from_str(&chrome::write(story)).expect("it is JSON");
    assert!(json.is_object() || json.is_array());
    assert!(story.tracks.is_empty() || !perfetto::write(story, perfetto::Clocks::default()).is_empty());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_events_are_too_odd(
            head: [u8; 2],
            // The kind of an event is the first byte of its second word; most are few.
            words in proptest::collection::vec((any::<u64>(), 0u64..32, any::<u64>(), any::<u64>()), 0..40),
            small: bool,
        ) {
            let mut data = head.to_vec();
            for (time, kind, more, long) in words {
                let (time, long) = if small { (time % 1000, long % 1000) } else { (time, long) };
                for word in [time, kind | (more << 8), long] {
                    data.extend(word.to_le_bytes());
                }
            }
            assembly(&data);
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            assembly(&bytes);
        }
    }
}
