//! Amounts of memory are one newtype in bytes, written as people write them.

use std::fmt;
use std::str::FromStr;

/// An amount of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    pub const ZERO: Bytes = Bytes(0);
}

/// Each unit is 1,024 of the one before.
const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let power = self.0.checked_ilog2().map_or(0, |log| log as usize / 10).min(UNITS.len() - 1);
        let (one, unit) = (1u64 << (10 * power), UNITS[power]);
        // Limits are round, and should read so.
        match self.0.is_multiple_of(one) {
            true => write!(f, "{} {unit}", self.0 / one),
            false => write!(f, "{:.1} {unit}", self.0 as f64 / one as f64),
        }
    }
}

/// A text that is no amount of memory. It holds nothing, so that whoever has no heap can meet it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSize;

impl fmt::Display for NoSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount of memory is a whole number and a unit, such as 20Gi, 512Mi or 2027m")
    }
}

impl std::error::Error for NoSize {}

impl FromStr for Bytes {
    type Err = NoSize;

    /// A whole number, and perhaps one of k, m, g and t in either case, with or without `i`, `b` or `ib` behind it. All
    /// of them count by 1,024: those who write `2027m` into a container's environment mean that, and two meanings of one
    /// letter, depending on where it stands, would cost somebody 7 % of a card.
    fn from_str(text: &str) -> Result<Bytes, NoSize> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit = unit.strip_prefix(' ').unwrap_or(unit).as_bytes();
        let power = match unit.first().map(u8::to_ascii_lowercase) {
            None => 0,
            Some(letter) => {
                let power = b" kmgt".iter().position(|&known| known == letter && known != b' ');
                let rest = &unit[1..];
                let whole = [&b""[..], b"i", b"b", b"ib"].iter().any(|end| rest.eq_ignore_ascii_case(end));
                power.filter(|_| whole).ok_or(NoSize)?
            }
        };
        let number: u64 = number.parse().map_err(|_| NoSize)?;
        number.checked_mul(1 << (10 * power)).map(Bytes).ok_or(NoSize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_and_schedulers_write_them() {
        let read = |text: &str| text.parse::<Bytes>().map(|bytes| bytes.0);
        for same in ["20Gi", "20g", "20G", "20GiB", "20gb", "20 GiB", "20480m", "21474836480"] {
            assert_eq!(read(same), Ok(20 << 30), "{same}");
        }
        assert_eq!(read("2027m"), Ok(2027 << 20));
        assert_eq!(read("1t"), Ok(1 << 40));
        assert_eq!(read("0"), Ok(0));
        let wrong = ["", "Gi", "-1g", "1.5Gi", "20x", "20Gib5", "20%", "18446744073709551616", "99999999t"];
        for wrong in wrong {
            assert_eq!(read(wrong), Err(NoSize), "{wrong}");
        }
    }

    #[test]
    fn amounts_are_written_in_the_largest_unit_that_fits() {
        let written = |bytes| Bytes(bytes).to_string();
        assert_eq!(written(0), "0 bytes");
        assert_eq!(written(1023), "1023 bytes");
        assert_eq!(written(20 << 30), "20 GiB");
        assert_eq!(written(3 << 29), "1.5 GiB");
        assert_eq!(written(u64::MAX), "16777216.0 TiB");
    }

    #[test]
    fn what_is_written_of_a_round_amount_can_be_read() {
        for bytes in [512 << 20, 20 << 30, 3 << 40].map(Bytes) {
            assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
    }
}
