//! What a campaign tells whoever watches it.

use std::time::Duration;

use results::record::Run;

use crate::modes::Way;

/// Which run is meant.
#[derive(Clone, Copy, Debug)]
pub struct Label<'a> {
    pub suite: &'a str,
    pub scenario: &'a str,
    pub mode: Way,
    pub repetition: u32,
    /// The tenant, in the mode `alone`.
    pub tenant: Option<&'a str>,
    /// Its place among all runs of this campaign that are still to be made, from 1.
    pub number: usize,
    pub of: usize,
}

#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Everything is planned: so many runs to make, so many already there.
    Planned {
        runs: usize,
        done: usize,
        left: Duration,
    },
    /// A mode cannot be had, in one scenario or anywhere.
    Absent {
        mode: Way,
        scenario: Option<&'a str>,
        reason: &'a str,
    },
    /// Workers are being started.
    Starting {
        workers: usize,
    },
    /// How many requests a workload can serve by itself.
    Calibrated {
        workload: &'a str,
        per_s: f64,
    },
    Begun {
        label: Label<'a>,
        left: Duration,
    },
    Ended {
        label: Label<'a>,
        run: &'a Run,
    },
    Failed {
        label: Label<'a>,
        tenant: Option<&'a str>,
        reason: &'a str,
    },
}
