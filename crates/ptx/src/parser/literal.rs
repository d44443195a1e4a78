//! Numbers as PTX writes them.

/// A constant: 64 bits and what they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Constant {
    Signed(i64),
    Unsigned(u64),
    /// Bits of an f32.
    Single(u32),
    Double(f64),
}

impl Constant {
    /// The bits of an integer, `None` of a float.
    pub fn integer(self) -> Option<u64> {
        match self {
            Constant::Signed(value) => Some(value.cast_unsigned()),
            Constant::Unsigned(value) => Some(value),
            Constant::Single(_) | Constant::Double(_) => None,
        }
    }

    pub fn is_negative(self) -> bool {
        matches!(self, Constant::Signed(value) if value < 0)
    }
}

/// Why a literal has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadLiteral {
    #[error("this is not a number")]
    Malformed,
    #[error("this number does not fit 64 bits")]
    TooLarge,
    #[error("`0f` takes 8 hexadecimal digits")]
    SingleDigits,
    #[error("`0d` takes 16 hexadecimal digits")]
    DoubleDigits,
}

pub(super) fn number(text: &str) -> Result<Constant, BadLiteral> {
    let prefix = text.get(..2).unwrap_or("");
    let rest = text.get(2..).unwrap_or("");
    match prefix {
        "0f" | "0F" => hexadecimal_float(rest, 8, BadLiteral::SingleDigits).map(single),
        "0d" | "0D" => hexadecimal_float(rest, 16, BadLiteral::DoubleDigits)
            .map(|bits| Constant::Double(f64::from_bits(bits))),
        "0x" | "0X" => integer(rest, 16),
        "0b" | "0B" => integer(rest, 2),
        _ if text.contains('.') || text.contains(['e', 'E']) => {
            let value: f64 = text.parse().map_err(|_| BadLiteral::Malformed)?;
            Ok(Constant::Double(value))
        }
        _ if text.len() > 1 && text.starts_with('0') && text != "0U" => integer(&text[1..], 8),
        _ => integer(text, 10),
    }
}

fn hexadecimal_float(digits: &str, count: usize, wrong: BadLiteral) -> Result<u64, BadLiteral> {
    if digits.len() != count || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong);
    }
    u64::from_str_radix(digits, 16).map_err(|_| wrong)
}

fn single(bits: u64) -> Constant {
    let low = u32::try_from(bits).expect("eight hexadecimal digits are 32 bits");
    Constant::Single(low)
}

/// Integers are signed unless they say `U` or need the 64th bit.
fn integer(text: &str, radix: u32) -> Result<Constant, BadLiteral> {
    let digits = text.strip_suffix('U').unwrap_or(text);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(BadLiteral::Malformed);
    }
    let value = u64::from_str_radix(digits, radix).map_err(|_| BadLiteral::TooLarge)?;
    match i64::try_from(value) {
        Ok(signed) if digits.len() == text.len() => Ok(Constant::Signed(signed)),
        _ => Ok(Constant::Unsigned(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling() {
        assert_eq!(number("0"), Ok(Constant::Signed(0)));
        assert_eq!(number("0U"), Ok(Constant::Unsigned(0)));
        assert_eq!(number("42"), Ok(Constant::Signed(42)));
        assert_eq!(number("017"), Ok(Constant::Signed(15)));
        assert_eq!(number("0x1FU"), Ok(Constant::Unsigned(31)));
        assert_eq!(number("0b101"), Ok(Constant::Signed(5)));
        assert_eq!(number("0xFFFFFFFFFFFFFFFF"), Ok(Constant::Unsigned(u64::MAX)));
        assert_eq!(number("0f3F800000"), Ok(Constant::Single(0x3f80_0000)));
        assert_eq!(number("0d3FF0000000000000"), Ok(Constant::Double(1.0)));
        assert_eq!(number("1.5"), Ok(Constant::Double(1.5)));
        assert_eq!(number("2e3"), Ok(Constant::Double(2000.0)));
    }

    #[test]
    fn what_is_no_number() {
        assert_eq!(number("09"), Err(BadLiteral::Malformed));
        assert_eq!(number("0x"), Err(BadLiteral::Malformed));
        assert_eq!(number("12ab"), Err(BadLiteral::Malformed));
        assert_eq!(number("0f3F8"), Err(BadLiteral::SingleDigits));
        assert_eq!(number("0d3F800000"), Err(BadLiteral::DoubleDigits));
        assert_eq!(number("18446744073709551616"), Err(BadLiteral::TooLarge));
    }
}
