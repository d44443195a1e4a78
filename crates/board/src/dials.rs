//! The dials on a board: how boldly best-effort work uses the GPU. Every tenant reads them whenever it decides; the daemon turns
//! them, many times an hour.
//!
//! Each is a word of its own. Whoever reads while they are turned may find some before and some after: for one decision it goes
//! by dials that stood so a moment ago or will in a moment, each of them within its bounds.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use model::{Dials, Kind, Nanos};

use crate::board::Board;

#[repr(C)]
pub(crate) struct Dialled {
    /// One more than the place among all kinds; nought, and what this version does not know: the default.
    kind: AtomicU32,
    solo_share: AtomicU32,
    quiet: AtomicU64,
    threshold: AtomicU64,
    in_flight: AtomicU64,
    beside: AtomicU64,
    confine: AtomicU32,
    _unused: AtomicU32,
}

impl Dialled {
    pub(crate) fn write(&self, dials: &Dials) {
        let sane = dials.sane();
        let place = Kind::ALL.iter().position(|&kind| kind == sane.kind);
        let number = place.and_then(|place| u32::try_from(place + 1).ok()).unwrap_or(0);
        self.kind.store(number, Ordering::Relaxed);
        self.solo_share.store(sane.solo_share, Ordering::Relaxed);
        self.quiet.store(sane.quiet.0, Ordering::Relaxed);
        self.threshold.store(sane.threshold.0, Ordering::Relaxed);
        self.in_flight.store(sane.in_flight.0, Ordering::Relaxed);
        self.beside.store(sane.beside.0, Ordering::Relaxed);
        self.confine.store(sane.confine, Ordering::Relaxed);
    }

    /// Whatever is written there, brought within what makes sense.
    pub(crate) fn read(&self) -> Dials {
        let of = |word: &AtomicU64| Nanos(word.load(Ordering::Relaxed));
        let place = self.kind.load(Ordering::Relaxed).checked_sub(1);
        let kind = place.and_then(|place| Kind::ALL.get(usize::try_from(place).ok()?).copied());
        let dials = Dials {
            kind: kind.unwrap_or_default(),
            quiet: of(&self.quiet),
            threshold: of(&self.threshold),
            in_flight: of(&self.in_flight),
            beside: of(&self.beside),
            confine: self.confine.load(Ordering::Relaxed),
            solo_share: self.solo_share.load(Ordering::Relaxed),
        };
        dials.sane()
    }
}

impl Board {
    /// How the dials stand, brought within what makes sense.
    pub fn dials(&self) -> Dials {
        self.layout.header.dials.read()
    }

    /// Takes effect as seats look; [`announce`](Board::announce) makes them look now.
    pub fn set_dials(&self, dials: &Dials) {
        self.layout.header.dials.write(dials);
    }
}
