//! Numbers for people: three figures that matter, thousands apart, and a word where there is no number.

/// What stands where a quantile is infinite: more requests were never served than the quantile leaves out.
pub const OVERLOAD: &str = "overload";
/// What stands where there is nothing to say.
pub const NONE: &str = "–";

/// Three significant figures, or all the digits before the point.
pub fn three(value: f64) -> String {
    if !value.is_finite() {
        return if value > 0.0 { "∞".into() } else { NONE.into() };
    }
    let size = value.abs();
    let decimals = match size {
        0.0 => 0,
        _ if size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ => 3,
    };
    grouped(value, decimals)
}

/// Microseconds as milliseconds, the unit of all latency columns.
pub fn millis(us: f64) -> String {
    three(us / 1000.0)
}

/// Microseconds in the unit that suits them, for places where they stand alone.
pub fn time(us: f64) -> String {
    match us {
        _ if us >= 999_500.0 => format!("{} s", three(us / 1e6)),
        _ if us >= 999.5 => format!("{} ms", three(us / 1e3)),
        _ => format!("{} µs", three(us)),
    }
}

/// A multiple: 1.03×.
pub fn times(ratio: f64) -> String {
    let decimals = match ratio {
        _ if ratio >= 99.95 => 0,
        _ if ratio >= 9.995 => 1,
        _ => 2,
    };
    format!("{}×", grouped(ratio, decimals))
}

/// A share of one as a percentage.
pub fn percent(share: f64) -> String {
    format!("{}%", grouped(share * 100.0, 1))
}

/// A share of what was to be attained. Close to the whole, the second decimal is where the difference is, and it is
/// cut and not rounded, so that 99.996% does not pass for 100%.
pub fn attained(share: f64) -> String {
    let value = share * 100.0;
    match value {
        _ if value >= 100.0 - 1e-9 => "100%".into(),
        // The nudge keeps what is meant to be 99.95 from being read as 99.9499999.
        _ if value >= 99.0 => format!("{:.2}%", (value * 100.0 + 1e-6).floor() / 100.0),
        _ => percent(share),
    }
}

/// A number at a tick of an axis: no more digits than it needs.
pub fn short(value: f64) -> String {
    let text = grouped(value, if value.abs() < 10.0 { 2 } else { 0 });
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Microseconds at a tick of an axis.
pub fn short_time(us: f64) -> String {
    match us {
        _ if us >= 1e6 => format!("{} s", short(us / 1e6)),
        _ if us >= 1e3 => format!("{} ms", short(us / 1e3)),
        _ => format!("{} µs", short(us)),
    }
}

/// A multiple at a tick of an axis.
pub fn short_times(ratio: f64) -> String {
    format!("{}×", short(ratio))
}

/// Percentage points, with their sign.
pub fn points(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() < 0.005 { "0.00".into() } else { format!("{value:+.2}").replace('-', "−") }
}

pub fn count(value: usize) -> String {
    grouped(value as f64, 0)
}

/// So many of something: `1 pair`, `1,056 pairs`.
pub fn many(value: usize, what: &str) -> String {
    format!("{} {what}{}", count(value), if value == 1 { "" } else { "s" })
}

/// A number with so many decimals and a comma between thousands.
pub fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{:.*}", decimals, value.abs());
    let (whole, rest) = plain.split_at(plain.find('.').unwrap_or(plain.len()));
    let mut text = String::new();
    if value < 0.0 && plain.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) {
        text.push('−');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

/// A figure that is infinite in overload.
pub fn finite(value: f64, show: fn(f64) -> String) -> String {
    if value.is_finite() { show(value) } else { OVERLOAD.into() }
}

/// A coordinate: a tenth of a pixel is finer than any screen.
pub fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".into(),
        Some(whole) => whole.into(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures_or_all_before_the_point() {
        assert_eq!(three(0.0), "0");
        assert_eq!(three(0.1234), "0.123");
        assert_eq!(three(0.99961), "1.00");
        assert_eq!(three(9.999), "10.0");
        assert_eq!(three(99.96), "100");
        assert_eq!(three(1234567.0), "1,234,567");
        assert_eq!(three(-12.34), "−12.3");
        assert_eq!(three(f64::INFINITY), "∞");
    }

    #[test]
    fn a_share_below_one_is_never_attained_in_full() {
        assert_eq!(attained(1.0), "100%");
        assert_eq!(attained(0.99999), "99.99%");
        assert_eq!(attained(0.9995), "99.95%");
        assert_eq!(attained(0.123), "12.3%");
        assert_eq!(percent(1.034), "103.4%");
    }

    #[test]
    fn ticks_have_no_more_digits_than_they_need() {
        assert_eq!([1.0, 1.05, 2.5, 30.0, 1000.0].map(short), ["1", "1.05", "2.5", "30", "1,000"]);
        assert_eq!([50.0, 2500.0, 3e6].map(short_time), ["50 µs", "2.5 ms", "3 s"]);
    }

    #[test]
    fn times_carry_their_unit() {
        assert_eq!(time(12.3), "12.3 µs");
        assert_eq!(time(1500.0), "1.50 ms");
        assert_eq!(time(2_500_000.0), "2.50 s");
        assert_eq!(times(1.034), "1.03×");
        assert_eq!(times(123.4), "123×");
        assert_eq!(points(-0.0123), "−1.23");
        assert_eq!(points(0.00001), "0.00");
        assert_eq!([many(1, "pair"), many(1056, "pair")], ["1 pair", "1,056 pairs"]);
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(px(12.04), "12");
        assert_eq!(px(-0.01), "0");
        assert_eq!(px(0.26), "0.3");
    }
}
