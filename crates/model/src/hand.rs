//! The dials that a person has set, in a configuration or for a simulation. They stay, whatever the controller of `slo` would make of them.

use crate::{Dials, Nanos};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hand {
    pub quiet: Option<Nanos>,
    pub threshold: Option<Nanos>,
    pub in_flight: Option<Nanos>,
    pub beside: Option<Nanos>,
    pub confine: Option<u32>,
    pub solo_share: Option<u32>,
}

impl Hand {
    /// These dials, with those that were set.
    pub fn over(&self, dials: Dials) -> Dials {
        Dials {
            kind: dials.kind,
            quiet: self.quiet.unwrap_or(dials.quiet),
            threshold: self.threshold.unwrap_or(dials.threshold),
            in_flight: self.in_flight.unwrap_or(dials.in_flight),
            beside: self.beside.unwrap_or(dials.beside),
            confine: self.confine.unwrap_or(dials.confine),
            solo_share: self.solo_share.unwrap_or(dials.solo_share),
        }
    }
}
