//! The dials: everything about a policy that can be turned while it runs. They lie on the board, where the tenants read
//! them; whoever turns them (a person, or the controller of `slo`) does so slowly and from outside.

use std::str::FromStr;

use crate::{Nanos, UnknownWord};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dials {
    pub kind: Kind,
    /// For how long best-effort work stays away after a latency tenant's work is done: the next request may follow at once.
    pub quiet: Nanos,
    /// A gap inside a request is used if it is expected to last at least so long.
    pub threshold: Nanos,
    /// How much best-effort work, as time, may be in flight.
    pub in_flight: Nanos,
    /// While a latency tenant has work, what leaves the GPU as fast as this may run beside it; nought: nothing.
    pub beside: Nanos,
    /// While a latency tenant has work, what may not run beside it everywhere may run on so many SMs, in hundredths of all; nought:
    /// nowhere.
    pub confine: u32,
    /// Of requests, in thousandths: for so many best-effort work is kept away, to see how long they take alone.
    pub solo_share: u32,
}

/// Of a hundred SMs best-effort work has at most so many while a latency tenant has work: some are always left.
pub const MOST_CONFINED: u32 = 90;

/// Which policy decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Strict,
    Gaps,
    #[default]
    Slo,
    Fair,
    Deadline,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Strict, Kind::Gaps, Kind::Slo, Kind::Fair, Kind::Deadline];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Strict => "strict",
            Kind::Gaps => "gaps",
            Kind::Slo => "slo",
            Kind::Fair => "fair",
            Kind::Deadline => "deadline",
        }
    }
}

impl Dials {
    /// The same within what makes sense: whatever a hand, a file or a stray write has made of them, nothing waits for ever
    /// because of a dial, and nothing goes round without a pause.
    pub fn sane(self) -> Dials {
        let second = Nanos::from_millis(1_000);
        Dials {
            kind: self.kind,
            quiet: self.quiet.min(second),
            threshold: self.threshold.clamp(Nanos::from_micros(1), second),
            in_flight: self.in_flight.clamp(Nanos::from_micros(10), second),
            beside: self.beside.min(Nanos::from_millis(10)),
            confine: self.confine.min(MOST_CONFINED),
            solo_share: self.solo_share.min(1_000),
        }
    }
}

impl Default for Dials {
    fn default() -> Dials {
        Dials {
            kind: Kind::default(),
            quiet: Nanos::from_micros(80),
            threshold: Nanos::from_micros(50),
            in_flight: Nanos::from_millis(8),
            beside: Nanos::ZERO,
            confine: 0,
            solo_share: 10,
        }
    }
}

impl FromStr for Kind {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Kind, UnknownWord> {
        let known = Kind::ALL.into_iter().find(|kind| kind.name() == word);
        let expected = "strict, gaps, slo, fair, deadline";
        known.ok_or_else(|| UnknownWord { word: word.to_owned(), expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sane_dials_stay_as_they_are_and_others_become_sane() {
        assert_eq!(Dials::default().sane(), Dials::default());
        let kind = Kind::Gaps;
        let (most, least) = (Nanos::MAX, Nanos::ZERO);
        for any in [most, least] {
            let wild = Dials {
                kind,
                quiet: any,
                threshold: any,
                in_flight: any,
                beside: any,
                confine: u32::MAX,
                solo_share: u32::MAX,
            };
            let tame = wild.sane();
            assert_eq!(tame.sane(), tame);
            assert!(tame.threshold > least && tame.in_flight > least && tame.quiet < most, "{tame:?}");
            assert_eq!((tame.kind, tame.confine, tame.solo_share), (kind, MOST_CONFINED, 1_000));
        }
    }

    #[test]
    fn kinds_round_trip() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let error = "greedy".parse::<Kind>().unwrap_err().to_string();
        assert!(Kind::ALL.iter().all(|kind| error.contains(kind.name())), "{error}");
    }
}
