//! What overlaps, side by side.

use model::Nanos;

/// For spans in the order in which they begin: the first lane that is free again.
#[derive(Debug, Default)]
pub struct Lanes(Vec<Nanos>);

impl Lanes {
    /// The lane of a span, as a number from nought.
    pub fn place(&mut self, from: Nanos, until: Nanos) -> usize {
        // What took no time is shown as a nanosecond.
        let until = until.max(from + Nanos(1));
        let lane = self.0.iter().position(|free| *free <= from).unwrap_or(self.0.len());
        if lane == self.0.len() {
            self.0.push(until);
        } else {
            self.0[lane] = until;
        }
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_lies_beside_and_what_does_not_behind() {
        let mut lanes = Lanes::default();
        let mut place = |from, until| lanes.place(Nanos(from), Nanos(until));
        assert_eq!(
            [place(0, 10), place(5, 20), place(10, 12), place(12, 12), place(12, 30)],
            [0, 1, 0, 0, 2]
        );
        assert_eq!(place(13, 14), 0);
    }
}
