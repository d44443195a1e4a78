//! Against what an H200 answered.
//!
//! `card.txt` holds PTX instructions, one a line with the types of destination and operands, each
//! followed by lines `operands = result` in hexadecimal. They were run on the card as they stand.

use crate::numeric::*;

const CARD: &str = include_str!("card.txt");

/// The instruction of one heading, taken apart.
struct Instruction<'a> {
    text: &'a str,
    /// Dot-separated parts of `text`.
    parts: Vec<&'a str>,
    types: Vec<&'a str>,
}

impl<'a> Instruction<'a> {
    fn parse(line: &'a str) -> Instruction<'a> {
        let mut words = line.split(' ');
        let text = words.next().unwrap();
        Instruction { text, parts: text.split('.').collect(), types: words.collect() }
    }

    fn has(&self, modifier: &str) -> bool {
        self.parts.contains(&modifier)
    }

    fn rounding(&self) -> Rounding {
        let of = |part: &&str| match *part {
            "rz" | "rzi" => Some(Rounding::Zero),
            "rm" | "rmi" => Some(Rounding::Down),
            "rp" | "rpi" => Some(Rounding::Up),
            "rna" => Some(Rounding::NearestAway),
            _ => None,
        };
        self.parts.iter().find_map(of).unwrap_or(Rounding::Nearest)
    }

    /// What this room answers, in as many bits as the card's register held.
    fn answer(&self, x: &[u64]) -> u64 {
        let last = *self.parts.last().unwrap();
        if self.parts[0] == "cvt" {
            return conversion(self, x);
        }
        match last {
            "f16" => self.arithmetic::<f16>(x).to_bits64(),
            "bf16" => self.arithmetic::<bf16>(x).to_bits64(),
            "f32" if self.has("approx") || self.has("full") => self.approximation(x).to_bits64(),
            "f32" => self.arithmetic::<f32>(x).to_bits64(),
            "f64" if self.text == "rcp.approx.ftz.f64" => {
                approximate_recip_f64(f64::from_bits(x[0])).to_bits()
            }
            "f64" if self.has("approx") => approximate_rsqrt_f64(f64::from_bits(x[0])).to_bits(),
            _ => self.arithmetic::<f64>(x).to_bits64(),
        }
    }

    fn arithmetic<F: Float>(&self, x: &[u64]) -> F {
        let ftz = self.has("ftz");
        let r = self.rounding();
        let operand = |i: usize| F::of_bits64(x[i]).flush_if(ftz);
        if ftz {
            let raw = |i: usize| F::of_bits64(x[i]);
            let saturate = |x: F| if self.has("sat") { x.saturate() } else { x };
            match self.parts[0] {
                "mul" => return saturate(raw(0).mul_ftz(raw(1), r)),
                "fma" if !self.has("relu") => return saturate(raw(0).fma_ftz(raw(1), raw(2), r)),
                "div" => return raw(0).div_ftz(raw(1), r),
                _ => {}
            }
        }
        let how = MinMax { propagate_nan: self.has("NaN"), xorsign_abs: self.has("xorsign") };
        let result = match self.parts[0] {
            "add" => operand(0).add(operand(1), r),
            "sub" => operand(0).sub(operand(1), r),
            "mul" => operand(0).mul(operand(1), r),
            "fma" => operand(0).fma(operand(1), operand(2), r),
            "div" => operand(0).div(operand(1), r),
            "rcp" => operand(0).reciprocal(r),
            "sqrt" => operand(0).square_root(r),
            "min" => operand(0).smaller(operand(1), how),
            "max" => operand(0).larger(operand(1), how),
            "neg" => operand(0).negated(),
            "abs" => operand(0).absolute(),
            "copysign" => copysign(operand(0), operand(1)),
            "tanh" => approximate_tanh_of(operand(0)),
            "ex2" => approximate_exp2_of(operand(0), ftz),
            other => panic!("{other}"),
        };
        let result = result.flush_if(ftz);
        let result = if self.has("relu") { result.relu() } else { result };
        if self.has("sat") { result.saturate() } else { result }
    }

    fn approximation(&self, x: &[u64]) -> f32 {
        let ftz = self.has("ftz");
        let a = f32::of_bits64(x[0]);
        match self.parts[0] {
            "rcp" => approximate_recip(a, ftz),
            "sqrt" => approximate_sqrt(a, ftz),
            "rsqrt" => approximate_rsqrt(a, ftz),
            "sin" => approximate_sin(a, ftz),
            "cos" => approximate_cos(a, ftz),
            "lg2" => approximate_log2(a, ftz),
            "ex2" => approximate_exp2(a, ftz),
            "tanh" => approximate_tanh(a),
            "div" if self.has("full") => full_range_divide(a, f32::of_bits64(x[1]), ftz),
            "div" => approximate_divide(a, f32::of_bits64(x[1]), ftz),
            other => panic!("{other}"),
        }
    }
}

fn integer(name: &str) -> Option<Integer> {
    let bits = name.get(1..)?.parse().ok()?;
    match &name[..1] {
        "u" => Some(Integer { bits, signed: false }),
        "s" => Some(Integer { bits, signed: true }),
        _ => None,
    }
}

fn conversion(i: &Instruction<'_>, x: &[u64]) -> u64 {
    let [to, from] = [i.parts[i.parts.len() - 2], i.parts[i.parts.len() - 1]];
    let relu = i.has("relu");
    let single = |k: usize| f32::of_bits64(x[k]);
    let halves = || [f16::from_bits((x[0] >> 16) as u16).to_f32(), f16::from_bits(x[0] as u16).to_f32()];
    match (to, from) {
        ("e4m3x2", "f32") => pack_e4m3x2(single(0), single(1), relu) as u64,
        ("e5m2x2", "f32") => pack_e5m2x2(single(0), single(1), relu) as u64,
        ("e4m3x2", _) => pack_e4m3x2(halves()[0], halves()[1], relu) as u64,
        ("e5m2x2", _) => pack_e5m2x2(halves()[0], halves()[1], relu) as u64,
        (_, "e4m3x2") => unpack_e4m3x2(x[0] as u16, relu) as u64,
        (_, "e5m2x2") => unpack_e5m2x2(x[0] as u16, relu) as u64,
        ("tf32", _) => {
            let x = if relu { single(0).relu() } else { single(0) };
            tf32_from(x, i.rounding(), i.has("satfinite")) as u64
        }
        _ => match (integer(to), integer(from)) {
            (Some(to), Some(from)) => convert_integer(x[0], from, to, i.has("sat")),
            (Some(to), None) => match from {
                "f16" => to_integer::<f16>(i, x[0], to),
                "bf16" => to_integer::<bf16>(i, x[0], to),
                "f32" => to_integer::<f32>(i, x[0], to),
                _ => to_integer::<f64>(i, x[0], to),
            },
            (None, Some(from)) => match to {
                "f16" => integer_to_float::<f16>(x[0], from, i.rounding()).to_bits64(),
                "bf16" => integer_to_float::<bf16>(x[0], from, i.rounding()).to_bits64(),
                "f32" => integer_to_float::<f32>(x[0], from, i.rounding()).to_bits64(),
                _ => integer_to_float::<f64>(x[0], from, i.rounding()).to_bits64(),
            },
            (None, None) => match from {
                "f16" => from_float::<f16>(i, x[0], to),
                "bf16" => from_float::<bf16>(i, x[0], to),
                "f32" => from_float::<f32>(i, x[0], to),
                _ => from_float::<f64>(i, x[0], to),
            },
        },
    }
}

fn to_integer<F: Float>(i: &Instruction<'_>, x: u64, to: Integer) -> u64 {
    float_to_integer(F::of_bits64(x).flush_if(i.has("ftz")), to, i.rounding())
}

fn from_float<A: Float>(i: &Instruction<'_>, x: u64, to: &str) -> u64 {
    match to {
        "f16" => between::<A, f16>(i, x),
        "bf16" => between::<A, bf16>(i, x),
        "f32" => between::<A, f32>(i, x),
        _ => between::<A, f64>(i, x),
    }
}

fn between<A: Float, B: Float>(i: &Instruction<'_>, x: u64) -> u64 {
    let x = A::of_bits64(x);
    let integral = i.parts.iter().any(|part| part.len() == 3 && part.starts_with('r') && part.ends_with('i'));
    let result: B = if integral {
        convert_float(round_integral(x.flush_if(i.has("ftz")), i.rounding()), Rounding::Nearest)
    } else if i.has("satfinite") {
        round_satfinite(x.to_f64(), i.rounding())
    } else if i.has("ftz") {
        convert_float_ftz(x, i.rounding())
    } else {
        convert_float(x, i.rounding())
    };
    let result = if i.has("relu") { result.relu() } else { result };
    (if i.has("sat") { result.saturate() } else { result }).to_bits64()
}

/// How far an approximation may lie from the card's own: in units of the last place of the result,
/// or absolutely where PTX bounds it absolutely.
fn close_enough(i: &Instruction<'_>, x: &[u64], want: u64, got: u64) -> bool {
    let (want_value, got_value, ulps) = match *i.parts.last().unwrap() {
        "f16" => (f16::of_bits64(want).to_f64(), f16::of_bits64(got).to_f64(), 4.0 / 1024.0),
        "bf16" => (bf16::of_bits64(want).to_f64(), bf16::of_bits64(got).to_f64(), 2.0 / 128.0),
        "f32" => (f32::of_bits64(want).to_f64(), f32::of_bits64(got).to_f64(), 4.0 / (1 << 23) as f64),
        _ => (f64::from_bits(want), f64::from_bits(got), 1.0 / (1 << 19) as f64),
    };
    let trigonometric = matches!(i.parts[0], "sin" | "cos");
    if !want_value.is_finite() || !got_value.is_finite() || (want_value == 0.0 && !trigonometric) {
        return false;
    }
    let error = (want_value - got_value).abs();
    match i.parts[0] {
        // Bounded for small arguments only.
        "sin" | "cos" => f32::of_bits64(x[0]).abs() > 3.2 || error < 1.0e-6,
        "lg2" => error < 1.0e-6 || error <= ulps * want_value.abs(),
        "tanh" => error <= ulps.max(2.0f64.powi(-10)) * want_value.abs().max(2.0f64.powi(-20)),
        _ => error <= ulps * want_value.abs().max(f32::MIN_POSITIVE as f64),
    }
}

#[test]
fn every_instruction_gives_what_the_card_gave() {
    let mut instruction = None;
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in CARD.lines().filter(|line| !line.starts_with('#')) {
        let Some(row) = line.strip_prefix(' ') else {
            instruction = Some(Instruction::parse(line));
            continue;
        };
        let i = instruction.as_ref().unwrap();
        let (operands, want) = row.split_once(" = ").unwrap();
        let x: Vec<u64> = operands.split(' ').map(|word| u64::from_str_radix(word, 16).unwrap()).collect();
        let want = u64::from_str_radix(want, 16).unwrap();
        // Destinations narrower than a register come back as the register.
        let width = match i.types[0] {
            "u8" | "s8" | "u32" | "s32" | "f32" | "b32" => 32,
            "u64" | "s64" | "f64" => 64,
            _ => 16,
        };
        let got = i.answer(&x) & (u64::MAX >> (64 - width));
        count += 1;
        let approximate = i.has("approx") || i.has("full");
        if got != want && !(approximate && close_enough(i, &x, want, got)) {
            wrong.push(format!("{}: {row}, not {got:x}", i.text));
        }
    }
    assert!(count > 1000, "the file was read");
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}
