//! Time is one newtype in nanoseconds; no bare `u64` of time crosses a public function.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::Duration;

/// A moment or a span in nanoseconds. Which clock a moment belongs to is said by whoever hands it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    pub const ZERO: Nanos = Nanos(0);
    pub const MAX: Nanos = Nanos(u64::MAX);

    pub const fn from_micros(micros: u64) -> Nanos {
        Nanos(micros * 1_000)
    }

    pub const fn from_millis(millis: u64) -> Nanos {
        Nanos(millis * 1_000_000)
    }

    /// The span from `earlier` to `self`, zero if `earlier` is later: clocks of two threads may cross.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// The span stretched by a ratio, rounded down. It saturates where it does not fit, and when `over` is zero.
    pub fn scaled(self, by: u32, over: u32) -> Nanos {
        // Nearly every product fits, and to divide one that may not takes ten times as long.
        if let (Some(stretched), 1..) = (self.0.checked_mul(u64::from(by)), over) {
            return Nanos(stretched / u64::from(over));
        }
        let stretched = u128::from(self.0) * u128::from(by);
        match stretched.checked_div(u128::from(over)) {
            Some(span) => Nanos(u64::try_from(span).unwrap_or(u64::MAX)),
            None => Nanos::MAX,
        }
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 * 1e-3
    }
}

impl Add for Nanos {
    type Output = Nanos;

    /// Saturates, so that "for ever" plus a while is still for ever.
    fn add(self, span: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(span.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, span: Nanos) {
        *self = *self + span;
    }
}

impl Sub for Nanos {
    type Output = Nanos;

    fn sub(self, span: Nanos) -> Nanos {
        self.since(span)
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Nanos {
        Nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Duration {
        Duration::from_nanos(nanos.0)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Settings are round, and should read so; but nobody reads more than four digits.
            n if n >= 1_000_000_000 && n.is_multiple_of(1_000_000_000) => {
                write!(f, "{} s", n / 1_000_000_000)
            }
            n if (1_000_000..10_000_000_000).contains(&n) && n.is_multiple_of(1_000_000) => {
                write!(f, "{} ms", n / 1_000_000)
            }
            n if (1_000..10_000_000).contains(&n) && n.is_multiple_of(1_000) => write!(f, "{} µs", n / 1_000),
            n if n < 10_000 => write!(f, "{n} ns"),
            n if n < 10_000_000 => write!(f, "{:.1} µs", n as f64 * 1e-3),
            n if n < 10_000_000_000 => write!(f, "{:.1} ms", n as f64 * 1e-6),
            n => write!(f, "{:.2} s", n as f64 * 1e-9),
        }
    }
}

/// A text that is no span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSpan(pub String);

impl fmt::Display for NoSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no time; write a number and a unit, such as 500us, 20ms or 1s", self.0)
    }
}

impl std::error::Error for NoSpan {}

impl FromStr for Nanos {
    type Err = NoSpan;

    /// As people write spans: a whole number and a unit, with or without a space between.
    fn from_str(text: &str) -> Result<Nanos, NoSpan> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let scale = match unit.trim_start() {
            "ns" => Some(1),
            "us" | "µs" => Some(1_000),
            "ms" => Some(1_000_000),
            "s" => Some(1_000_000_000),
            _ => None,
        };
        let nanos =
            number.parse::<u64>().ok().zip(scale).and_then(|(number, scale)| number.checked_mul(scale));
        nanos.map(Nanos).ok_or_else(|| NoSpan(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Nanos>();
        assert_eq!(read("30ms"), Ok(Nanos::from_millis(30)));
        assert_eq!(read("500 us"), Ok(Nanos::from_micros(500)));
        assert_eq!(read("7µs"), read("7us"));
        assert_eq!(read("0s"), Ok(Nanos::ZERO));
        for wrong in ["", "30", "ms", "-1ms", "1.5ms", "1h", "99999999999999999999s", "18446744074s"] {
            assert!(read(wrong).unwrap_err().to_string().contains("20ms"), "{wrong}");
        }
    }

    #[test]
    fn spans_never_wrap() {
        assert_eq!(Nanos(3) - Nanos(5), Nanos::ZERO);
        assert_eq!(Nanos::MAX + Nanos(1), Nanos::MAX);
    }

    #[test]
    fn ratios_round_down_and_saturate() {
        assert_eq!(Nanos(10).scaled(2, 3), Nanos(6));
        assert_eq!(Nanos::MAX.scaled(3, 3), Nanos::MAX);
        assert_eq!(Nanos::MAX.scaled(3, 1), Nanos::MAX);
        assert_eq!(Nanos(1).scaled(1, 0), Nanos::MAX);
    }

    #[test]
    fn display_picks_the_unit_a_reader_wants() {
        let shown = |nanos| Nanos(nanos).to_string();
        assert_eq!(shown(950), "950 ns");
        assert_eq!(shown(9_999), "9999 ns");
        assert_eq!(shown(50_300), "50.3 µs");
        assert_eq!(shown(20_040_000), "20.0 ms");
        assert_eq!(shown(12_345_678_901), "12.35 s");
        assert_eq!(shown(12_346_000_000), "12.35 s");
    }

    #[test]
    fn round_times_read_round() {
        assert_eq!(Nanos::ZERO.to_string(), "0 ns");
        assert_eq!(Nanos::from_micros(1).to_string(), "1 µs");
        assert_eq!(Nanos::from_micros(500).to_string(), "500 µs");
        assert_eq!(Nanos::from_micros(2_048).to_string(), "2048 µs");
        assert_eq!(Nanos::from_millis(50).to_string(), "50 ms");
        assert_eq!(Nanos::from_millis(1_500).to_string(), "1500 ms");
        assert_eq!(Nanos::from_millis(60_000).to_string(), "60 s");
    }
}
