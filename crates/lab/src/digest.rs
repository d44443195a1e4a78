//! A computation of which every bit depends on all of it: whoever shares the GPU, its result must be the same.

use std::path::Path;

use crate::Error;
use crate::driver::Driver;

const SOURCE: &str = include_str!("../kernels/digest.ptx");
/// As the kernel has it.
const NUMBERS: usize = 4096;
const WORDS: usize = NUMBERS / 2;
const THREADS: u32 = 128;
/// Steps that are handed over at once.
const AHEAD: u32 = 20;

/// Computes so many steps and gives a number made of what came out on the way and in the end.
pub fn digest(path: &Path, steps: u32) -> Result<u64, Error> {
    let driver = Driver::open(path, 0)?;
    let step = driver.function(SOURCE, "step")?;
    let [mut from, mut to] = [driver.allocate(WORDS)?, driver.allocate(WORDS)?];
    driver.write(from, &seeds())?;
    let mut digest = 0xcbf2_9ce4_8422_2325;
    for number in 1..=steps {
        driver.launch(step, NUMBERS as u32 / THREADS, THREADS, 0, [from, to])?;
        (from, to) = (to, from);
        if number % AHEAD == 0 || number == steps {
            driver.synchronize()?;
            let words: [u64; WORDS] = driver.read(from)?;
            digest = words.iter().fold(digest, |digest, word| (digest ^ word).wrapping_mul(0x100_0000_01b3));
        }
    }
    Ok(digest)
}

/// Two different numbers between 0 and 1 in each word.
fn seeds() -> [u64; WORDS] {
    let number = |index: usize| u64::from(((index + 1) as f32 / (NUMBERS + 2) as f32).to_bits());
    std::array::from_fn(|word| number(2 * word) | number(2 * word + 1) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_all_different_and_inside() {
        let halves = |word: u64| [word as u32, (word >> 32) as u32].map(f32::from_bits);
        let numbers: Vec<f32> = seeds().into_iter().flat_map(halves).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(numbers[0] > 0.0 && numbers[NUMBERS - 1] < 1.0);
    }
}
