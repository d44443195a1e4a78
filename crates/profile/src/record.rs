//! What is known of one kernel.
//!
//! A record is a sum: that of two processes is merged from theirs, in any order, so that whoever has seen something says just
//! that, and need not know what is known already. What is not a sum is chosen by a rule that does not depend on the order
//! either.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use model::{Kernel, Nanos, Site};

use crate::Spans;

/// What a record is about: a kernel wherever it is launched, or at one place of a tenant's sequence.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub kernel: Kernel,
    pub site: Option<Site>,
}

/// Moments are nanoseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// How long it ran, of the launches that were timed.
    pub duration: Spans,
    /// How long its blocks ran.
    pub block: Spans,
    /// How long it was until the tenant's next launch, from its end.
    pub gap: Spans,
    /// All launches, timed or not.
    pub launches: u64,
    /// How often it was stopped, and how often that took longer than promised.
    pub stops: u64,
    pub broken: u64,
    pub certificate: Option<Certificate>,
    /// Why it was demoted, by reason.
    pub demotions: BTreeMap<Word, Demotion>,
    pub last_seen: Nanos,
}

/// How soon it can be got off the GPU, as promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub latency: Nanos,
    pub since: Nanos,
}

/// How often a kernel was demoted for one reason, and when last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demotion {
    pub count: u64,
    pub last: Nanos,
}

/// The name of a reason, such as `broke-certificate`. Which there are is known to those who find them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word(String);

const DAY: u64 = 86_400 * 1_000_000_000;

impl Record {
    /// Reasons that a record lists; the oldest go.
    pub const MOST_DEMOTIONS: usize = 8;

    pub fn merge(&mut self, other: &Record) {
        self.duration.merge(&other.duration);
        self.block.merge(&other.block);
        self.gap.merge(&other.gap);
        self.launches = self.launches.saturating_add(other.launches);
        self.stops = self.stops.saturating_add(other.stops);
        self.broken = self.broken.saturating_add(other.broken);
        self.certificate =
            self.certificate.into_iter().chain(other.certificate).max_by_key(Certificate::rank);
        for (reason, demotion) in &other.demotions {
            self.demotions.entry(reason.clone()).or_default().merge(*demotion);
        }
        self.last_seen = self.last_seen.max(other.last_seen);
        self.bound();
    }

    /// Notes that the kernel was demoted.
    pub fn demote(&mut self, reason: Word, when: Nanos) {
        self.demotions.entry(reason).or_default().merge(Demotion { count: 1, last: when });
        self.last_seen = self.last_seen.max(when);
        self.bound();
    }

    fn bound(&mut self) {
        while self.demotions.len() > Record::MOST_DEMOTIONS {
            let oldest =
                self.demotions.iter().min_by_key(|(reason, demotion)| (demotion.last, Reverse(*reason)));
            let Some((reason, _)) = oldest else { return };
            let reason = reason.clone();
            self.demotions.remove(&reason);
        }
    }

    /// Who is kept when there is no room for all, the greatest first. What was found out the hard way would cost somebody's
    /// time to find out again. Of the rest, what was launched most is needed most, but what nobody has seen for a week counts
    /// half. `now` is when the newest of all records was seen, so that no clock is asked.
    pub(crate) fn worth(&self, now: Nanos) -> impl Ord + use<> {
        let weeks = u32::try_from(now.since(self.last_seen).0 / (7 * DAY)).unwrap_or(u32::MAX);
        let seen = self.launches.max(self.duration.seen());
        let demoted = self.demotions.values().map(|demotion| demotion.last).max();
        (demoted, seen.checked_shr(weeks).unwrap_or(0), self.last_seen)
    }
}

impl Certificate {
    /// Of two promises that of the later day holds, since the kernel's times may have changed. Of one day the longer one:
    /// several processes promise at the same time, and each has seen only its own launches.
    fn rank(&self) -> impl Ord + use<> {
        (self.since.0 / DAY, self.latency, self.since)
    }
}

impl Demotion {
    fn merge(&mut self, other: Demotion) {
        self.count = self.count.saturating_add(other.count);
        self.last = self.last.max(other.last);
    }
}

impl Word {
    pub const LONGEST: usize = 40;

    /// Small letters, digits and hyphens.
    pub fn new(word: &str) -> Option<Word> {
        let fits = (1..=Word::LONGEST).contains(&word.len());
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (fits && word.bytes().all(plain)).then(|| Word(word.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::records;
    use proptest::prelude::*;

    #[test]
    fn promises_of_one_day_are_the_longest_and_a_later_day_begins_anew() {
        let promise = |latency, since| Record {
            certificate: Some(Certificate { latency: Nanos(latency), since: Nanos(since) }),
            ..Record::default()
        };
        let held = |records: [Record; 2]| {
            let [mut first, second] = records;
            first.merge(&second);
            first.certificate.unwrap().latency.0
        };
        assert_eq!(held([promise(50, DAY + 1), promise(40, DAY + 2)]), 50);
        assert_eq!(held([promise(40, DAY + 2), promise(50, DAY + 1)]), 50);
        assert_eq!(held([promise(50, DAY), promise(40, 2 * DAY)]), 40);
        assert_eq!(held([promise(50, DAY), Record::default()]), 50);
    }

    #[test]
    fn reasons_are_counted_and_the_oldest_go() {
        let mut record = Record::default();
        for (when, reason) in ["a", "b", "c", "d", "e", "f", "g", "h", "b", "i"].iter().enumerate() {
            record.demote(Word::new(reason).unwrap(), Nanos(when as u64));
        }
        let kept: Vec<_> = record.demotions.iter().map(|(word, d)| (word.as_str(), d.count)).collect();
        let expected = [("b", 2), ("c", 1), ("d", 1), ("e", 1), ("f", 1), ("g", 1), ("h", 1), ("i", 1)];
        assert_eq!(kept, expected);
        assert_eq!(record.last_seen, Nanos(9));
    }

    #[test]
    fn what_was_demoted_is_worth_most_and_what_is_old_and_rare_least() {
        let now = Nanos(100 * 7 * DAY);
        let seen = |launches, weeks: u64| Record {
            launches,
            last_seen: Nanos(now.0 - weeks * 7 * DAY),
            ..Record::default()
        };
        let mut demoted = seen(1, 90);
        demoted.demote(Word::new("differs").unwrap(), demoted.last_seen);
        let order = [seen(0, 70), seen(1 << 20, 64), seen(1 << 20, 4), seen(1 << 17, 0), demoted];
        assert!(order.is_sorted_by(|a, b| a.worth(now) < b.worth(now)));
    }

    #[test]
    fn a_reason_is_a_word() {
        let long = "x".repeat(41);
        for wrong in ["", "Two", "two words", "ü", "\n", &long] {
            assert_eq!(Word::new(wrong), None, "{wrong:?}");
        }
        assert_eq!(Word::new("broke-certificate").unwrap().as_str(), "broke-certificate");
    }

    proptest! {
        #[test]
        fn the_order_of_merging_does_not_matter([a, b, c] in [records(), records(), records()]) {
            let merged = |list: [&Record; 3]| {
                let mut sum = Record::default();
                list.iter().for_each(|record| sum.merge(record));
                sum
            };
            let sum = merged([&a, &b, &c]);
            for list in [[&a, &c, &b], [&b, &a, &c], [&c, &b, &a]] {
                prop_assert_eq!(&merged(list), &sum);
            }
            let mut pair = b.clone();
            pair.merge(&c);
            pair.merge(&a);
            prop_assert_eq!(&pair, &sum);
        }
    }
}
