//! `hashing.cu`.

use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;

const SOURCE: Source = source!("hashing");

pub const CASES: &[Case] = &[
    Case::new("breadth/crc32", crc32),
    Case::new("breadth/sha256", sha256),
    Case::new("breadth/xorshift", xorshift),
    Case::new("breadth/philox", philox),
    Case::new("breadth/find_text", find_text),
];

/// Bit by bit, where the kernel goes by tables of four bits.
fn crc_of(text: &[u8]) -> u32 {
    !text.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ *byte as u32, |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

fn crc32(context: &Context<'_>) -> Result<()> {
    const N: usize = 300;
    const LENGTH: usize = 43;
    let text = Random::new(111).many(N * LENGTH, |r| r.u32() as u8);
    let want: Vec<u32> = text.chunks(LENGTH).map(crc_of).collect();
    Trial::new(SOURCE, "crc32")
        .threads(N)
        .input(&text)
        .value(LENGTH as i32)
        .output(&want)
        .value(N as i32)
        .run(context)
}

/// The first 32 bits of the fractions of the cube roots of the first 64 primes: exact integer arithmetic, so that
/// the table of the kernel is not simply repeated.
fn sha_constants() -> Vec<u32> {
    let primes = (2u128..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    let root = |p: u128| {
        // The largest x with x^3 <= p * 2^96 is the root times 2^32.
        (0..40).rev().fold(0u128, |x, bit| {
            let larger = x | 1 << bit;
            if larger.pow(3) <= p << 96 { larger } else { x }
        })
    };
    primes.take(64).map(|p| root(p) as u32).collect()
}

fn sha_block(words: &[u32], constants: &[u32]) -> [u32; 8] {
    let mut w = words.to_vec();
    for t in 16..64 {
        let s0 = w[t - 15].rotate_right(7) ^ w[t - 15].rotate_right(18) ^ w[t - 15] >> 3;
        let s1 = w[t - 2].rotate_right(17) ^ w[t - 2].rotate_right(19) ^ w[t - 2] >> 10;
        w.push(w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1));
    }
    let start =
        [0x6a09e667u32, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
    let mut s = start;
    for t in 0..64 {
        let [a, b, c, d, e, f, g, h] = s;
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let t1 = [s1, e & f ^ !e & g, constants[t], w[t]].iter().fold(h, |x, y| x.wrapping_add(*y));
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let t2 = s0.wrapping_add(a & b ^ a & c ^ b & c);
        s = [t1.wrapping_add(t2), a, b, c, d.wrapping_add(t1), e, f, g];
    }
    std::array::from_fn(|k| start[k].wrapping_add(s[k]))
}

fn sha256(context: &Context<'_>) -> Result<()> {
    const N: usize = 200;
    let blocks = Random::new(112).many(N, |r| [0; 16].map(|_: u32| r.u32()));
    let constants = sha_constants();
    let want: Vec<[u32; 8]> =
        blocks.iter().map(|block| sha_block(&block.map(u32::swap_bytes), &constants)).collect();
    Trial::new(SOURCE, "sha256").threads(N).input(&blocks).output(&want).value(N as i32).run(context)
}

fn xorshift(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    const STEPS: i32 = 20;
    let seeds = Random::new(113).many(N, |r| r.u64() | 1);
    let step = |mut x: u64| {
        x ^= x >> 12;
        x ^= x << 25;
        x ^ x >> 27
    };
    let want: Vec<u64> = seeds
        .iter()
        .map(|seed| (0..STEPS).fold(*seed, |x, _| step(x)).wrapping_mul(0x2545_f491_4f6c_dd1d))
        .collect();
    Trial::new(SOURCE, "xorshift")
        .threads(N)
        .input(&seeds)
        .output(&want)
        .value(STEPS)
        .value(N as i32)
        .run(context)
}

fn philox_of(mut c: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let products = [0xd251_1f53u64 * c[0] as u64, 0xcd9e_8d57u64 * c[2] as u64];
        let [high0, high1] = products.map(|p| (p >> 32) as u32);
        let [low0, low1] = products.map(|p| p as u32);
        c = [high1 ^ c[1] ^ key[0], low1, high0 ^ c[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    c
}

fn philox(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    let want: Vec<[u32; 4]> =
        (0..N as u32).map(|i| philox_of([i, 0, 42, 7], [0xdead_beef, 0x1234_5678])).collect();
    Trial::new(SOURCE, "philox")
        .threads(N)
        .output(&want)
        .value(0xdead_beefu32)
        .value(0x1234_5678u32)
        .value(N as i32)
        .run(context)
}

fn find_text(context: &Context<'_>) -> Result<()> {
    const N: usize = 4000;
    let word = b"abba";
    let text = Random::new(114).many(N, |r| b"ab"[r.below(2) as usize]);
    let found: Vec<usize> = (0..=N - word.len()).filter(|i| text[*i..].starts_with(word)).collect();
    let first = found.first().map_or(i32::MAX, |i| *i as i32);
    Trial::new(SOURCE, "find_text")
        .threads(N)
        .input(&text)
        .value(N as i32)
        .input(word)
        .value(word.len() as i32)
        .output(&[found.len() as i32])
        .changed(&[i32::MAX], &[first])
        .run(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_agree_with_published_values() {
        assert_eq!(crc_of(b"123456789"), 0xcbf4_3926);
        let mut abc = [0u32; 16];
        (abc[0], abc[15]) = (0x6162_6380, 24);
        assert_eq!(sha_block(&abc, &sha_constants())[0], 0xba78_16bf);
        // The first known answer of the Random123 library.
        assert_eq!(philox_of([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }
}
