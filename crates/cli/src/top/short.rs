//! Numbers in as few characters as say enough: two or three digits and a unit.

use model::Nanos;

/// Units of time by their length, the longest first.
const UNITS: [(u64, &str); 3] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs")];

pub fn time(span: Nanos) -> String {
    let (number, unit) = parts(span);
    format!("{number}{unit}")
}

/// Two times as one, with the first one's unit left out where it is the second's.
pub fn against(span: Nanos, bound: Nanos) -> String {
    let ((number, unit), (most, of)) = (parts(span), parts(bound));
    if unit == of { format!("{number}/{most}{of}") } else { format!("{number}{unit}/{most}{of}") }
}

fn parts(span: Nanos) -> (String, &'static str) {
    // 999.6 µs are 1 ms: the unit is chosen by what is left after rounding.
    let unit =
        UNITS.into_iter().find(|(length, _)| span.0.saturating_mul(1_000) >= length * 999 + length / 2);
    match unit {
        Some((length, unit)) => (digits(span.0 as f64 / length as f64), unit),
        None => (span.0.to_string(), "ns"),
    }
}

/// A tenth where there is room for it.
fn digits(number: f64) -> String {
    let tenth = (number * 10.0).round() / 10.0;
    if tenth < 10.0 && tenth.fract() != 0.0 { format!("{tenth:.1}") } else { format!("{number:.0}") }
}

pub fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

pub fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate < 9_999.5 => digits(rate),
        rate if rate < 999_500.0 => format!("{}k", digits(rate / 1e3)),
        rate => format!("{}M", digits(rate / 1e6)),
    }
}

/// How many times as long as alone.
pub fn times(permille: u64) -> String {
    match permille {
        ..10_000 => format!("{}.{:02}x", permille / 1_000, permille % 1_000 / 10),
        _ => format!("{}x", permille / 1_000),
    }
}

pub fn bytes(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(size, _)| bytes >= *size) {
        Some((size, unit)) => format!("{}{unit}", digits(bytes as f64 / size as f64)),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_or_three_digits() {
        let shown = |nanos| time(Nanos(nanos));
        let cases = [
            (0, "0ns"),
            (950, "950ns"),
            (999_400, "999µs"),
            (999_600, "1ms"),
            (2_140_000, "2.1ms"),
            (9_970_000, "10ms"),
            (61_000_000_000, "61s"),
        ];
        for (nanos, wanted) in cases {
            assert_eq!(shown(nanos), wanted);
        }
        assert_eq!(shown(u64::MAX), "18446744074s");
    }

    #[test]
    fn a_time_against_its_bound_names_a_common_unit_once() {
        assert_eq!(against(Nanos(2_100_000), Nanos(20_000_000)), "2.1/20ms");
        assert_eq!(against(Nanos(310_000), Nanos(20_000_000)), "310µs/20ms");
    }

    #[test]
    fn rates_shares_and_sizes_stay_short() {
        assert_eq!(
            ["0", "0.3", "12", "9999", "10k", "1M"],
            [0.0, 0.3, 12.4, 9_999.0, 9_999.6, 1e6].map(rate)[..]
        );
        assert_eq!([percent(0.0), percent(0.237), percent(1.0)], ["0%", "24%", "100%"]);
        assert_eq!([times(1_049), times(12_345)], ["1.04x", "12x"]);
        assert_eq!([bytes(12), bytes(1 << 20), bytes((5 << 30) / 2)], ["12B", "1MiB", "2.5GiB"]);
    }
}
