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
    /// While a latency tenant has work, blocks up to this length may run beside it; nought: none.
    pub beside: Nanos,
    /// Of requests, in thousandths: for so many best-effort work is kept away, to see how long they take alone.
    pub solo_share: u32,
}

/// Which policy decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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

impl Default for Dials {
    fn default() -> Dials {
        Dials {
            kind: Kind::default(),
            quiet: Nanos::from_micros(100),
            threshold: Nanos::from_micros(50),
            in_flight: Nanos::from_millis(8),
            beside: Nanos::ZERO,
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
    fn kinds_round_trip() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        let error = "greedy".parse::<Kind>().unwrap_err().to_string();
        assert!(Kind::ALL.iter().all(|kind| error.contains(kind.name())), "{error}");
    }
}
