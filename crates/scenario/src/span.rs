//! Spans of time as scenario files have them: a whole number and a unit, `20us`.
//!
//! What a person reads elsewhere is rounded; this is exact, because it is read again and is part of names.

use model::Nanos;
use serde::{Deserialize, Deserializer, Serializer};

/// The span in the largest unit in which it is a whole number.
pub fn written(span: Nanos) -> String {
    match span.0 {
        0 => "0us".to_owned(),
        n if n.is_multiple_of(1_000_000_000) => format!("{}s", n / 1_000_000_000),
        n if n.is_multiple_of(1_000_000) => format!("{}ms", n / 1_000_000),
        n if n.is_multiple_of(1_000) => format!("{}us", n / 1_000),
        n => format!("{n}ns"),
    }
}

/// The span times a factor, to the nearest nanosecond.
pub(crate) fn stretched(span: Nanos, factor: f64) -> Nanos {
    // Floats convert with saturation, so that no factor makes a long span short.
    Nanos((span.0 as f64 * factor).round() as u64)
}

/// For `#[serde(serialize_with)]`.
pub(crate) fn serialize<S: Serializer>(span: &Nanos, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(&written(*span))
}

/// For `#[serde(with)]` on a span that may be missing.
pub(crate) mod optional {
    use super::*;

    pub fn serialize<S: Serializer>(span: &Option<Nanos>, out: S) -> Result<S::Ok, S::Error> {
        match span {
            Some(span) => out.serialize_str(&written(*span)),
            None => out.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Nanos>, D::Error> {
        let text = Option::<String>::deserialize(input)?;
        text.map(|text| text.parse().map_err(serde::de::Error::custom)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_again(nanos: u64) {
            prop_assert_eq!(written(Nanos(nanos)).parse(), Ok(Nanos(nanos)));
        }
    }

    #[test]
    fn spans_are_written_short() {
        let all =
            [Nanos::ZERO, Nanos(15), Nanos::from_micros(1500), Nanos::from_millis(20), Nanos(1_000_000_000)];
        assert_eq!(all.map(written), ["0us", "15ns", "1500us", "20ms", "1s"]);
    }
}
