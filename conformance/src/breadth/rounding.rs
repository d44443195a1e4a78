//! `rounding.cu`.

use super::reference::{Toward, directed, product, sign_of_sum};
use super::trial::Trial;
use crate::context::Context;
use crate::module::Source;
use crate::numbers::Random;
use crate::source;
use crate::suite::Case;
use anyhow::Result;
use std::cmp::Ordering;

const SOURCE: Source = source!("rounding");

pub const CASES: &[Case] = &[
    Case::new("breadth/directed_f32", directed_f32),
    Case::new("breadth/directed_f64", directed_f64),
    Case::new("breadth/float_to_integer", float_to_integer),
    Case::new("breadth/integer_to_float", integer_to_float),
    Case::new("breadth/float_to_float", float_to_float),
    Case::new("breadth/special_values", special_values),
    Case::new("breadth/parts_of_floats", parts_of_floats),
];

const ALL: [Toward; 3] = [Toward::Zero, Toward::Down, Toward::Up];

/// How the exact results of the operations compare with their roundings to nearest, in the order of the kernel:
/// sum, difference, product, fused product, quotient, root, reciprocal. f32 values are exact in f64, so both
/// kernels share it.
fn orders(x: f64, y: f64, z: f64, nearest: [f64; 7]) -> [Ordering; 7] {
    let [p, e] = product(x, y);
    let over = |dividend: f64, quotient: f64| {
        let [p, e] = product(quotient, y);
        let order = sign_of_sum(&[dividend, -p, -e]);
        if y < 0.0 { order.reverse() } else { order }
    };
    let [square, rest] = product(nearest[5], nearest[5]);
    [
        sign_of_sum(&[x, y, -nearest[0]]),
        sign_of_sum(&[x, -y, -nearest[1]]),
        sign_of_sum(&[p, e, -nearest[2]]),
        sign_of_sum(&[p, e, z, -nearest[3]]),
        over(x, nearest[4]),
        sign_of_sum(&[z, -square, -rest]),
        over(1.0, nearest[6]),
    ]
}

macro_rules! directed_case {
    ($name:ident, $type:ident, $kernel:literal, $seed:literal) => {
        fn $name(context: &Context<'_>) -> Result<()> {
            const N: usize = 700;
            let mut random = Random::new($seed);
            let [x, y] = [0; 2].map(|_| random.many(N, |r| r.$type(-30.0, 30.0)));
            let z = random.many(N, |r| r.$type(0.001, 100.0));
            let mut want = Vec::new();
            for i in 0..N {
                let (x, y, z) = (x[i], y[i], z[i]);
                let nearest = [x + y, x - y, x * y, x.mul_add(y, z), x / y, z.sqrt(), 1.0 / y];
                let orders = orders(x as f64, y as f64, z as f64, nearest.map(|x| x as f64));
                let of = |k: usize, toward| directed(nearest[k], orders[k], toward);
                want.extend((0..5).flat_map(|k| ALL.map(|toward| of(k, toward))));
                want.extend([of(5, Toward::Zero), of(5, Toward::Down), of(6, Toward::Up)]);
            }
            Trial::new(SOURCE, $kernel)
                .threads(N)
                .input(&x)
                .input(&y)
                .input(&z)
                .exactly(&want)
                .value(N as i32)
                .run(context)
        }
    };
}
directed_case!(directed_f32, f32, "directed_f32", 31);
directed_case!(directed_f64, f64, "directed_f64", 32);

fn float_to_integer(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    let mut random = Random::new(33);
    let scale = |r: &mut Random| 2.0f64.powi(r.below(70) as i32 - 4);
    let x = random.many(N, |r| (r.f64(-1.0, 1.0) * scale(r)) as f32);
    let y = random.many(N, |r| r.f64(-1.0, 1.0) * scale(r));
    let want: Vec<[i64; 12]> = (0..N)
        .map(|i| {
            let (x, y) = (x[i], y[i]);
            [
                x.round_ties_even() as i32 as i64,
                x as i32 as i64,
                x.ceil() as i32 as i64,
                x.floor() as i32 as i64,
                x.round_ties_even() as u32 as i64,
                x as i64,
                x.floor() as u64 as i64,
                y.round_ties_even() as i32 as i64,
                y as u32 as i64,
                y.floor() as i64,
                y.ceil() as u64 as i64,
                x as i32 as i8 as i64 + y as u32 as u16 as i64,
            ]
        })
        .collect();
    Trial::new(SOURCE, "float_to_integer")
        .threads(N)
        .input(&x)
        .input(&y)
        .output(&want)
        .value(N as i32)
        .run(context)
}

fn integer_to_float(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    let x = Random::new(34).many(N, |r| {
        let by = r.below(64);
        r.u64() as i64 >> by
    });
    let single = |x: i128, nearest: f32, toward| directed(nearest, x.cmp(&(nearest as i128)), toward);
    let double = |x: i128, nearest: f64, toward| directed(nearest, x.cmp(&(nearest as i128)), toward);
    let want: Vec<[f32; 6]> = x
        .iter()
        .map(|&x| {
            let (int, unsigned) = (x as i32, x as u32);
            [
                single(int as i128, int as f32, Toward::Zero),
                single(unsigned as i128, unsigned as f32, Toward::Up),
                single(x as i128, x as f32, Toward::Down),
                x as u64 as f32,
                x as i8 as f32,
                x as u16 as f32,
            ]
        })
        .collect();
    let wide: Vec<[f64; 4]> = x
        .iter()
        .map(|&x| {
            let unsigned = x as u64;
            [
                double(x as i128, x as f64, Toward::Zero),
                double(unsigned as i128, unsigned as f64, Toward::Up),
                x as f64,
                x as u32 as f64,
            ]
        })
        .collect();
    Trial::new(SOURCE, "integer_to_float")
        .threads(N)
        .input(&x)
        .output(&want)
        .output(&wide)
        .value(N as i32)
        .run(context)
}

fn float_to_float(context: &Context<'_>) -> Result<()> {
    const N: usize = 1000;
    let x = Random::new(35).many(N, |r| r.f64(-1.0, 1.0) * 2.0f64.powi(r.below(300) as i32 - 160));
    let narrow = |x: f64, toward| {
        let nearest = x as f32;
        directed(nearest, x.partial_cmp(&(nearest as f64)).expect("both are numbers"), toward)
    };
    let want: Vec<f32> = x
        .iter()
        .flat_map(|&x| [x as f32, narrow(x, Toward::Zero), narrow(x, Toward::Up), narrow(x, Toward::Down)])
        .collect();
    let integral: Vec<f64> = x
        .iter()
        .flat_map(|&x| [x.floor(), x.ceil(), x.trunc(), x.round_ties_even(), (x as f32).floor() as f64])
        .collect();
    Trial::new(SOURCE, "float_to_float")
        .threads(N)
        .input(&x)
        .exactly(&want)
        .exactly(&integral)
        .value(N as i32)
        .run(context)
}

fn special_values(context: &Context<'_>) -> Result<()> {
    let corners = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        f32::MIN_POSITIVE,
        -1e-45,
        3e-39,
        f32::MAX,
        f32::MIN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        2e9,
    ];
    let pairs = || corners.iter().flat_map(|&x| corners.iter().map(move |&y| (x, y)));
    let x: Vec<f32> = pairs().map(|(x, _)| x).collect();
    let y: Vec<f32> = pairs().map(|(_, y)| y).collect();
    let want: Vec<f32> = pairs().flat_map(|(x, y)| functions(x, y)).collect();
    let classes: Vec<u32> = pairs()
        .map(|(x, y)| {
            let unordered = x.is_nan() || y.is_nan();
            [
                x.is_nan(),
                x.is_infinite(),
                x.is_finite(),
                x.is_sign_negative(),
                x < y,
                x >= y,
                x != y,
                !matches!(x.partial_cmp(&y), Some(Ordering::Less)),
                unordered,
            ]
            .iter()
            .rev()
            .fold(0, |bits, flag| bits << 1 | *flag as u32)
        })
        .collect();
    Trial::new(SOURCE, "special_values")
        .threads(x.len())
        .input(&x)
        .input(&y)
        .exactly(&want)
        .output(&classes)
        .value(x.len() as i32)
        .run(context)
}

/// fmin, fmax, copysign, saturate, fabs, nextafter, fdim. Of two zeros the negative is the smaller.
fn functions(x: f32, y: f32) -> [f32; 7] {
    let smaller = |x: f32, y: f32| match (x.is_nan(), y.is_nan()) {
        (true, _) => y,
        (_, true) => x,
        _ if x.total_cmp(&y).is_lt() => x,
        _ => y,
    };
    let next = match x.partial_cmp(&y) {
        None => f32::NAN,
        Some(Ordering::Equal) => y,
        Some(Ordering::Less) => x.next_up(),
        Some(Ordering::Greater) => x.next_down(),
    };
    let difference = match x.partial_cmp(&y) {
        None => f32::NAN,
        Some(Ordering::Greater) => x - y,
        _ => 0.0,
    };
    let saturated = if x > 0.0 { x.min(1.0) } else { 0.0 };
    [smaller(x, y), -smaller(-x, -y), x.copysign(y), saturated, y.abs(), next, difference]
}

fn parts_of_floats(context: &Context<'_>) -> Result<()> {
    const N: usize = 600;
    let mut random = Random::new(36);
    let a = random.many(N, |r| r.f32(-1.0, 1.0) * 2.0f32.powi(r.below(60) as i32 - 30));
    let b = random.many(N, |r| r.f64(-1.0, 1.0) * 2.0f64.powi(r.below(400) as i32 - 200));
    // The exponent e of 0.5 <= |x| / 2^e < 1.
    let exponent = |x: f64| (x.to_bits() >> 52 & 0x7ff) as i32 - 1022;
    let scaled = |x: f64, by: i32| x * 2.0f64.powi(by);
    let want: Vec<f32> = (0..N)
        .flat_map(|i| {
            let x = a[i] as f64;
            let moved = scaled(x, i as i32 % 41 - 20);
            [scaled(x, -exponent(x)), moved, x.fract().copysign(x), x.trunc()].map(|x| x as f32)
        })
        .collect();
    let wide: Vec<f64> =
        (0..N).flat_map(|i| [scaled(b[i], -exponent(b[i])), scaled(b[i], i as i32 % 61 - 30)]).collect();
    let exponents: Vec<i32> =
        (0..N).flat_map(|i| [exponent(a[i] as f64), exponent(b[i]), exponent(a[i] as f64) - 1]).collect();
    Trial::new(SOURCE, "parts_of_floats")
        .threads(N)
        .input(&a)
        .input(&b)
        .exactly(&want)
        .exactly(&wide)
        .output(&exponents)
        .value(N as i32)
        .run(context)
}
