//! How fast kernels get on beside others.

use crate::score::{Grid, whole};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Of a kernel that has the room it needs, as a part of how fast it is alone.
    pub of_alone: f64,
    /// The share of the SMs that there are for it. Whoever needs no more is not slower for that.
    room: f64,
}

impl Rate {
    /// On all SMs.
    pub fn new(of_alone: f64) -> Rate {
        Rate { of_alone, room: 1.0 }
    }

    /// On some of them.
    pub fn within(room: f64, of_alone: f64) -> Rate {
        Rate { of_alone, room }
    }

    pub fn is_confined(self) -> bool {
        self.room < 1.0
    }

    pub fn is_as_alone(self) -> bool {
        self.of_alone == 1.0 && !self.is_confined()
    }

    /// The same, so many times slower.
    pub fn slowed(self, by: f64) -> Rate {
        Rate { of_alone: self.of_alone / by, ..self }
    }

    /// How fast this kernel is.
    pub fn of(self, grid: &Grid) -> f64 {
        let slowed = self.is_confined() && grid.share > self.room;
        if slowed { self.of_alone * self.room / grid.share } else { self.of_alone }
    }

    /// How long so much of this kernel takes.
    pub fn span(self, grid: &Grid, work: u64) -> u64 {
        whole(work as f64 / self.of(grid))
    }
}
