//! A scale on which short spans are told apart finely and long ones coarsely: each power of two is cut into the same number of
//! steps, so that a place on the scale knows a number within a fixed part of itself. Below the first power there is a step for
//! every number.

/// The step of a scale with 2^`cut` steps for each power of two on which a number lies. Steps are in the order of numbers.
pub(crate) const fn step(number: u64, cut: u32) -> u32 {
    match number.checked_ilog2() {
        Some(power) if power > cut => {
            let shift = power.wrapping_sub(cut);
            // The leading one of the mantissa counts as a power more: the scale goes on where the last power ended.
            (shift << cut).wrapping_add((number >> shift) as u32)
        }
        _ => number as u32,
    }
}

/// The smallest number on a step.
pub(crate) const fn start(step: u32, cut: u32) -> u64 {
    let shift = shift(step, cut);
    let mantissa = step.wrapping_sub(shift << cut) as u64;
    match mantissa.checked_shl(shift) {
        Some(start) if start >> shift == mantissa => start,
        _ => u64::MAX,
    }
}

/// How many numbers share a step.
pub(crate) const fn width(step: u32, cut: u32) -> u64 {
    match 1u64.checked_shl(shift(step, cut)) {
        Some(width) => width,
        None => u64::MAX,
    }
}

const fn shift(step: u32, cut: u32) -> u32 {
    (step >> cut).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_numbers_have_a_step_each() {
        for number in 0..64 {
            assert_eq!(u64::from(step(number, 5)), number);
            assert_eq!((start(number as u32, 5), width(number as u32, 5)), (number, 1));
        }
        assert_eq!((step(64, 5), step(65, 5), step(66, 5)), (64, 64, 65));
    }

    #[test]
    fn the_last_number_has_a_step_and_steps_behind_it_saturate() {
        assert_eq!(step(u64::MAX, 10), 54 * 1024 + 1023);
        assert_eq!(start(u32::from(u16::MAX), 10), u64::MAX);
    }

    proptest! {
        #[test]
        fn a_number_lies_on_its_step(number: u64, narrowed in 0u32..64, cut in 1u32..=10) {
            let number = number >> narrowed;
            let step = step(number, cut);
            let above = number - start(step, cut);
            prop_assert!(above < width(step, cut));
            prop_assert!(above <= number >> cut, "known within a part of itself");
        }

        #[test]
        fn steps_keep_the_order(low: u64, high: u64, narrowed in 0u32..64, cut in 1u32..=10) {
            let (low, high) = (low.min(high) >> narrowed, low.max(high) >> narrowed);
            prop_assert!(step(low, cut) <= step(high, cut));
        }
    }
}
