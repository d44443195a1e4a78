//! What came of holding a twin against its original, on the GPU (`ebb run --verify`).

use std::fmt;

/// What is known of a kernel's twin from trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finding {
    /// It left what the original leaves, bit for bit, though it was cut so often.
    Equal { cuts: u8 },
    /// It did not, and the original does twice the same.
    Differs,
    /// It could not be told.
    Unknown(Obstacle),
}

/// Why a kernel was not held against its twin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Obstacle {
    /// None of its parameters points to memory.
    NothingToCompare = 1,
    TooLarge = 2,
    /// The original alone leaves something else each time.
    NotDeterministic = 3,
    /// Something on the GPU did not end while it was waited for, or the kernel itself.
    NeverQuiet = 4,
    /// The driver would not copy what the kernel reaches, or not launch it once more.
    DriverRefused = 5,
    /// Its blocks waited for some that were turned away.
    Waits = 6,
}

impl Obstacle {
    pub const ALL: [Obstacle; 6] = [
        Obstacle::NothingToCompare,
        Obstacle::TooLarge,
        Obstacle::NotDeterministic,
        Obstacle::NeverQuiet,
        Obstacle::DriverRefused,
        Obstacle::Waits,
    ];

    /// For programs: a word that does not change.
    pub const fn name(self) -> &'static str {
        match self {
            Obstacle::NothingToCompare => "nothing-to-compare",
            Obstacle::TooLarge => "too-large",
            Obstacle::NotDeterministic => "not-deterministic",
            Obstacle::NeverQuiet => "never-quiet",
            Obstacle::DriverRefused => "driver-refused",
            Obstacle::Waits => "waits",
        }
    }

    /// For people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Obstacle::NothingToCompare => "no parameter points to memory",
            Obstacle::TooLarge => "it reaches too much memory",
            Obstacle::NotDeterministic => "the original itself leaves something else each time",
            Obstacle::NeverQuiet => "the GPU did not become quiet",
            Obstacle::DriverRefused => "the driver refused what it takes to compare",
            Obstacle::Waits => "its blocks waited for others when it was cut",
        }
    }
}

/// Numbers of the first case, by how often it was cut, begin with this one.
const EQUAL: u8 = 16;
const DIFFERS: u8 = 15;

impl Finding {
    /// The finding as a byte; 0 is none of them. More cuts than have a number are the most that have.
    pub fn number(self) -> u8 {
        match self {
            Finding::Equal { cuts } => EQUAL.saturating_add(cuts),
            Finding::Differs => DIFFERS,
            Finding::Unknown(obstacle) => obstacle as u8,
        }
    }

    pub fn from_number(number: u8) -> Option<Finding> {
        match number {
            DIFFERS => Some(Finding::Differs),
            EQUAL.. => Some(Finding::Equal { cuts: number - EQUAL }),
            _ => {
                let obstacle = Obstacle::ALL.into_iter().find(|&obstacle| obstacle as u8 == number);
                obstacle.map(Finding::Unknown)
            }
        }
    }

    /// What two trials of one kernel come to: one difference is enough, and so is one comparison.
    #[must_use]
    pub fn and(self, other: Finding) -> Finding {
        match (self, other) {
            (Finding::Differs, _) | (_, Finding::Differs) => Finding::Differs,
            (Finding::Equal { cuts }, Finding::Equal { cuts: more }) => {
                Finding::Equal { cuts: cuts.saturating_add(more) }
            }
            (equal @ Finding::Equal { .. }, Finding::Unknown(_)) => equal,
            (Finding::Unknown(_), other) => other,
        }
    }

    /// For programs: a word that does not change.
    pub const fn name(self) -> &'static str {
        match self {
            Finding::Equal { .. } => "verified",
            Finding::Differs => "differs",
            Finding::Unknown(obstacle) => obstacle.name(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Equal { cuts: 1 } => f.write_str("verified, cut once"),
            Finding::Equal { cuts } => write!(f, "verified, cut {cuts} times"),
            Finding::Differs => f.write_str("differs from the original"),
            Finding::Unknown(obstacle) => write!(f, "not verified: {}", obstacle.sentence()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_survives_as_a_number() {
        let unknown = Obstacle::ALL.map(Finding::Unknown);
        let others = [Finding::Differs, Finding::Equal { cuts: 0 }, Finding::Equal { cuts: 7 }];
        for finding in unknown.into_iter().chain(others) {
            assert_eq!(Finding::from_number(finding.number()), Some(finding));
        }
        assert_eq!(Finding::from_number(0), None);
        assert_eq!(
            Finding::Equal { cuts: u8::MAX }.number(),
            u8::MAX,
            "a number is a number, however many cuts"
        );
    }

    #[test]
    fn one_difference_is_enough_and_so_is_one_comparison() {
        let (equal, unknown) = (Finding::Equal { cuts: 2 }, Finding::Unknown(Obstacle::TooLarge));
        assert_eq!(equal.and(Finding::Differs), Finding::Differs);
        assert_eq!(Finding::Differs.and(equal), Finding::Differs);
        assert_eq!(unknown.and(equal), equal);
        assert_eq!(equal.and(unknown), equal);
        assert_eq!(equal.and(equal), Finding::Equal { cuts: 4 });
        assert_eq!(
            unknown.and(Finding::Unknown(Obstacle::DriverRefused)),
            Finding::Unknown(Obstacle::DriverRefused)
        );
    }
}
