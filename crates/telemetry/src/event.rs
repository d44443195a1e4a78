//! Something that happened to a process, and how it is four words.
//!
//! The stamp is the ring's. Then the time; then the kind, the post, a small number and a larger one; then a length. What
//! they mean depends on the kind. Kinds belong to the version of the log (`log::VERSION`).

use model::{Class, Domain, Nanos, Rung};

use crate::ring::Words;

/// No place in the ledger: the kernel is not listed there.
pub const NO_KERNEL: u32 = u32::MAX;

/// The process is no tenant, or not yet.
pub const NO_POST: u8 = u8::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// On the board's clock.
    pub time: Nanos,
    /// On which of its GPUs, as a place in the log's table of them.
    pub post: u8,
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A kernel was handed over: which, by its place in the ledger, and to which stream, by a number that tells streams apart.
    Launch { kernel: u32, stream: u16, blocks: u64 },
    /// A graph was handed over.
    Graph { stream: u16, kernels: u64 },
    /// A launch was timed. The event's time is when it was handed over: it began no earlier.
    Timed { kernel: u32, stream: u16, took: Nanos },
    /// A latency tenant has work, having had none.
    Active,
    /// It has none any more, after so long.
    Idle { lasted: Nanos },
    /// A request of a latency tenant was answered, so long after it began.
    Request { lasted: Nanos, late: bool, objective: Option<Nanos>, slowdown_permille: Option<u16> },
    /// A latency tenant has raised the stop words of others.
    Raised,
    /// This process begins to leave the GPU.
    Stopping { rung: Rung },
    /// Nothing of it is on the GPU any more, so long after it began to leave.
    Stopped { rung: Rung, took: Nanos },
    /// It goes on.
    Resumed { rung: Rung },
    /// It wants the token.
    Wanted,
    /// It has the token, after so long.
    Held { waited: Nanos },
    /// It has given the token on, after so long.
    Given { held: Nanos },
    /// A thread of the program was held up so long before it could hand over work.
    Waited { lasted: Nanos },
    /// What the policy says to it is another than before: the number of the reason, and what it may start.
    Decided { why: u8, runs: bool, longest: Nanos },
    /// It has a seat, or another class on it.
    Seated { class: Class, domain: Domain },
    /// Its daemon is gone.
    Left,
    /// It has another timeslice; `lengthened` because nothing got done with the short one.
    Sliced { slice: Nanos, lengthened: bool },
}

/// The words of an event by name.
struct Parts {
    kind: u8,
    post: u8,
    small: u16,
    number: u32,
    long: u64,
}

impl Event {
    /// Whether it is one of those of which there are many.
    #[inline]
    pub fn is_launch(&self) -> bool {
        matches!(self.what, What::Launch { .. } | What::Graph { .. } | What::Timed { .. })
    }

    #[inline(always)]
    pub(crate) fn words(&self) -> Words {
        let Parts { kind, post, small, number, long } = self.parts();
        let what = u64::from(kind) | u64::from(post) << 8 | u64::from(small) << 16 | u64::from(number) << 32;
        [self.time.0, what, long]
    }

    /// What the words say; `None` where they say nothing.
    pub(crate) fn from_words([time, what, long]: Words) -> Option<Event> {
        let parts = Parts {
            kind: what as u8,
            post: (what >> 8) as u8,
            small: (what >> 16) as u16,
            number: (what >> 32) as u32,
            long,
        };
        Some(Event { time: Nanos(time), post: parts.post, what: parts.what()? })
    }

    #[inline(always)]
    fn parts(&self) -> Parts {
        let post = self.post;
        let parts = |kind, small, number, long| Parts { kind, post, small, number, long };
        let rung = |rung: Rung| u32::from(rung.number());
        match self.what {
            What::Launch { kernel, stream, blocks } => parts(1, stream, kernel, blocks),
            What::Graph { stream, kernels } => parts(2, stream, NO_KERNEL, kernels),
            What::Timed { kernel, stream, took } => parts(3, stream, kernel, took.0),
            What::Active => parts(4, 0, 0, 0),
            What::Idle { lasted } => parts(5, 0, 0, lasted.0),
            What::Request { lasted, late, objective, slowdown_permille } => {
                let kind = if late { 7 } else { 6 };
                parts(kind, slowdown_permille.unwrap_or(0), micros(objective), lasted.0)
            }
            What::Raised => parts(8, 0, 0, 0),
            What::Stopping { rung: by } => parts(9, 0, rung(by), 0),
            What::Stopped { rung: by, took } => parts(10, 0, rung(by), took.0),
            What::Resumed { rung: by } => parts(11, 0, rung(by), 0),
            What::Wanted => parts(12, 0, 0, 0),
            What::Held { waited } => parts(13, 0, 0, waited.0),
            What::Given { held } => parts(14, 0, 0, held.0),
            What::Waited { lasted } => parts(15, 0, 0, lasted.0),
            What::Decided { why, runs, longest } => parts(16, runs.into(), why.into(), longest.0),
            What::Seated { class, domain } => {
                parts(17, u16::from(class == Class::Latency), u32::from(domain == Domain::Shared), 0)
            }
            What::Left => parts(18, 0, 0, 0),
            What::Sliced { slice, lengthened } => parts(19, lengthened.into(), 0, slice.0),
        }
    }
}

impl Parts {
    fn what(&self) -> Option<What> {
        let (stream, kernel, span) = (self.small, self.number, Nanos(self.long));
        let rung = || u8::try_from(self.number).ok().and_then(Rung::from_number);
        Some(match self.kind {
            1 => What::Launch { kernel, stream, blocks: self.long },
            2 => What::Graph { stream, kernels: self.long },
            3 => What::Timed { kernel, stream, took: span },
            4 => What::Active,
            5 => What::Idle { lasted: span },
            6 | 7 => What::Request {
                lasted: span,
                late: self.kind == 7,
                objective: (self.number > 0).then(|| Nanos::from_micros(self.number.into())),
                slowdown_permille: (self.small > 0).then_some(self.small),
            },
            8 => What::Raised,
            9 => What::Stopping { rung: rung()? },
            10 => What::Stopped { rung: rung()?, took: span },
            11 => What::Resumed { rung: rung()? },
            12 => What::Wanted,
            13 => What::Held { waited: span },
            14 => What::Given { held: span },
            15 => What::Waited { lasted: span },
            16 => {
                What::Decided { why: u8::try_from(self.number).ok()?, runs: self.small != 0, longest: span }
            }
            17 => What::Seated {
                class: if self.small != 0 { Class::Latency } else { Class::BestEffort },
                domain: if self.number != 0 { Domain::Shared } else { Domain::Isolated },
            },
            18 => What::Left,
            19 => What::Sliced { slice: span, lengthened: self.small != 0 },
            _ => return None,
        })
    }
}

/// In whole microseconds, and never nought: that means none.
fn micros(span: Option<Nanos>) -> u32 {
    span.map_or(0, |span| u32::try_from(span.0 / 1_000).unwrap_or(u32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_what() -> impl Strategy<Value = What> {
        let span = || any::<u64>().prop_map(Nanos);
        let rung = || (0u8..5).prop_map(|number| Rung::from_number(number).unwrap());
        let objective = proptest::option::of((1u64..=u64::from(u32::MAX)).prop_map(Nanos::from_micros));
        prop_oneof![
            (any::<u32>(), any::<u16>(), any::<u64>()).prop_map(|(kernel, stream, blocks)| What::Launch {
                kernel,
                stream,
                blocks
            }),
            (any::<u16>(), any::<u64>()).prop_map(|(stream, kernels)| What::Graph { stream, kernels }),
            (any::<u32>(), any::<u16>(), span()).prop_map(|(kernel, stream, took)| What::Timed {
                kernel,
                stream,
                took
            }),
            Just(What::Active),
            span().prop_map(|lasted| What::Idle { lasted }),
            (span(), any::<bool>(), objective, proptest::option::of(1u16..)).prop_map(
                |(lasted, late, objective, slowdown_permille)| What::Request {
                    lasted,
                    late,
                    objective,
                    slowdown_permille
                }
            ),
            Just(What::Raised),
            rung().prop_map(|rung| What::Stopping { rung }),
            (rung(), span()).prop_map(|(rung, took)| What::Stopped { rung, took }),
            rung().prop_map(|rung| What::Resumed { rung }),
            Just(What::Wanted),
            span().prop_map(|waited| What::Held { waited }),
            span().prop_map(|held| What::Given { held }),
            span().prop_map(|lasted| What::Waited { lasted }),
            (any::<u8>(), any::<bool>(), span()).prop_map(|(why, runs, longest)| What::Decided {
                why,
                runs,
                longest
            }),
            (any::<bool>(), any::<bool>()).prop_map(|(latency, shared)| What::Seated {
                class: if latency { Class::Latency } else { Class::BestEffort },
                domain: if shared { Domain::Shared } else { Domain::Isolated },
            }),
            Just(What::Left),
            (span(), any::<bool>()).prop_map(|(slice, lengthened)| What::Sliced { slice, lengthened }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(what in any_what(), time: u64, post: u8) {
            let event = Event { time: Nanos(time), post, what };
            prop_assert_eq!(Event::from_words(event.words()), Some(event));
        }

        #[test]
        fn any_words_are_an_event_or_none(words: [u64; 3]) {
            // What is read is a value of its own: written again, it reads the same.
            if let Some(event) = Event::from_words(words) {
                prop_assert_eq!(Event::from_words(event.words()), Some(event));
            }
        }
    }
}
