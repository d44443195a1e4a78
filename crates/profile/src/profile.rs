//! All that is known on one platform, in memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::Nanos;

use crate::codec::{self, Payload};
use crate::frame::{self, Damage, Frames};
use crate::{Batch, Key, Record};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    records: BTreeMap<Key, Record>,
}

impl Profile {
    pub fn get(&self, key: &Key) -> Option<&Record> {
        self.records.get(key)
    }

    /// In the order of keys, the same in every process.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &Record)> {
        self.records.iter()
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Adds what somebody has seen to what is known.
    pub fn merge(&mut self, key: Key, record: &Record) {
        self.records.entry(key).or_default().merge(record);
    }

    /// The same with all of a batch.
    pub fn take_in(&mut self, batch: &Batch) {
        self.take_in_frames(batch.as_bytes());
    }

    /// What some frames say; and what of them says nothing.
    pub(crate) fn take_in_frames(&mut self, bytes: &[u8]) -> Damage {
        let mut frames = Frames::of(bytes);
        let mut wrong = Damage::default();
        for payload in frames.by_ref() {
            match codec::read(payload) {
                Some(Payload::Record(record)) => self.merge(record.0, &record.1),
                Some(Payload::Other) => {}
                None => wrong.add(frame::length(payload.len())),
            }
        }
        frames.damage.and(wrong)
    }

    /// The frames of the most useful records that find room, in so many bytes and so many at most, in the order of keys.
    pub(crate) fn frames(&self, room: usize, most: usize) -> Vec<u8> {
        let newest = self.records.values().map(|record| record.last_seen).max().unwrap_or(Nanos::ZERO);
        let mut by_worth: Vec<_> = self.records.iter().collect();
        by_worth.sort_by_cached_key(|(_, record)| Reverse(record.worth(newest)));
        let mut left = room;
        let mut chosen = Vec::new();
        for (key, record) in by_worth.into_iter().take(most) {
            let Some(payload) = codec::write(&key.kernel.borrowed(), key.site, record) else { continue };
            // The first that finds no room is the end: what follows is worth less, however small.
            let Some(rest) = left.checked_sub(frame::length(payload.len())) else { break };
            left = rest;
            chosen.push((key, payload));
        }
        chosen.sort_by_key(|(key, _)| *key);
        let mut bytes = Vec::with_capacity(room - left);
        for (_, payload) in chosen {
            frame::write(&mut bytes, &payload);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{gemm, kernel, keys, records};
    use proptest::prelude::*;

    const ALL: usize = usize::MAX >> 1;

    fn read(frames: &[u8]) -> (Profile, Damage) {
        let mut profile = Profile::default();
        let damage = profile.take_in_frames(frames);
        (profile, damage)
    }

    #[test]
    fn batches_add_up() {
        let (key, record) = gemm();
        let mut batch = Batch::new();
        for _ in 0..2 {
            batch.add(&key.kernel.borrowed(), None, &record).unwrap();
        }
        let mut profile = Profile::default();
        profile.take_in(&batch);
        profile.take_in(&batch);
        let known = profile.get(&key).unwrap();
        assert_eq!((known.launches, known.duration.seen(), profile.len()), (4000, 20, 1));
    }

    #[test]
    fn the_least_useful_go_when_there_is_no_room() {
        let mut profile = Profile::default();
        for launches in 1..=100 {
            let record = Record { launches, ..Record::default() };
            profile.merge(kernel(&format!("k{launches:03}")), &record);
        }
        let whole = profile.frames(ALL, ALL);
        let half = profile.frames(whole.len() / 2, ALL);
        assert!(half.len() <= whole.len() / 2);
        let kept = read(&half).0;
        assert!((45..=50).contains(&kept.len()) && kept.iter().all(|(_, record)| record.launches > 50));
        assert_eq!(read(&profile.frames(ALL, 3)).0.len(), 3);
        assert_eq!(profile.frames(0, ALL), []);
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(list in prop::collection::vec((keys(), records()), 0..8)) {
            let mut profile = Profile::default();
            list.into_iter().for_each(|(key, record)| profile.merge(key, &record));
            prop_assert_eq!(read(&profile.frames(ALL, ALL)), (profile, Damage::default()));
        }

        #[test]
        fn a_damaged_record_is_lost_alone(at: prop::sample::Index, bit in 0..8u8) {
            let mut profile = Profile::default();
            ["a", "b", "c", "d"].iter().for_each(|name| profile.merge(kernel(name), &gemm().1));
            let mut frames = profile.frames(ALL, ALL);
            let at = at.index(frames.len());
            frames[at] ^= 1_u8 << bit;
            let (kept, damage) = read(&frames);
            prop_assert_eq!((kept.len(), damage.places), (3, 1));
            prop_assert!(kept.iter().all(|(key, record)| profile.get(key) == Some(record)));
        }
    }
}
