//! Device-side printf.

use super::access::Memory;
use super::address::GENERIC;
use super::lanes::each_lane;
use super::machine::{Flow, Machine};
use crate::error::Access;
use crate::isa::{Instruction, Slot};

/// Longer strings are cut: a card's buffer is no larger.
const MOST_TEXT: usize = 1 << 16;

/// `vprintf`: format `a`, packed arguments `b`, the number of arguments or -1 to `d`.
pub(crate) fn printf(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    if m.trial.is_some() {
        return Flow::Fault;
    }
    for lane in each_lane(mask) {
        let format = m.source::<u64>(i.a).get(lane);
        let arguments = m.source::<u64>(i.b).get(lane);
        let (text, count) = match (Formatter { m, lane, arguments, count: 0 }).format(format) {
            Ok(done) => done,
            Err(address) => return m.illegal_address(lane, address, 1, Access::Read),
        };
        let printed = m.launch.output.push(&text);
        if i.d != Slot::NONE {
            let result = if printed { count } else { u32::MAX };
            m.target::<u32>(i.d).set(lane, result);
        }
    }
    Flow::Next
}

struct Formatter<'a, 'b> {
    m: &'a Machine<'b>,
    lane: usize,
    /// Where the next argument lies.
    arguments: u64,
    count: u32,
}

/// Text, or the address that could not be read.
type Text = Result<Vec<u8>, u64>;

/// `%-8.3ld` in parts.
#[derive(Default)]
struct Directive {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
}

impl Formatter<'_, '_> {
    fn byte(&self, address: u64) -> Result<u8, u64> {
        let place = self.m.place::<GENERIC>(self.lane, address, 1, Access::Read).ok_or(address)?;
        // SAFETY: `place` is valid for one byte.
        Ok(unsafe { u8::load(place) } as u8)
    }

    fn string(&self, start: u64) -> Text {
        let mut text = Vec::new();
        for offset in 0..MOST_TEXT as u64 {
            match self.byte(start.wrapping_add(offset))? {
                0 => break,
                byte => text.push(byte),
            }
        }
        Ok(text)
    }

    /// The next argument; each is aligned to its size.
    fn argument(&mut self, size: u64) -> Result<u64, u64> {
        self.arguments = self.arguments.next_multiple_of(size);
        let mut value = 0;
        for offset in (0..size).rev() {
            value = value << 8 | u64::from(self.byte(self.arguments + offset)?);
        }
        self.arguments += size;
        self.count += 1;
        Ok(value)
    }

    fn format(mut self, format: u64) -> Result<(Vec<u8>, u32), u64> {
        let format = self.string(format)?;
        let mut text = Vec::new();
        let mut rest = format.iter().copied().peekable();
        while let Some(byte) = rest.next() {
            if byte != b'%' {
                text.push(byte);
                continue;
            }
            let mut directive = Directive::default();
            let conversion = loop {
                match rest.next() {
                    Some(b'-') => directive.left = true,
                    Some(b'+') => directive.plus = true,
                    Some(b' ') => directive.space = true,
                    Some(b'#') => directive.alternate = true,
                    Some(b'0') if directive.width == 0 && directive.precision.is_none() => {
                        directive.zero = true
                    }
                    Some(b'*') => {
                        let value = self.argument(4)? as usize & 0xffff;
                        *directive.precision.as_mut().unwrap_or(&mut directive.width) = value;
                    }
                    Some(digit @ b'0'..=b'9') => {
                        let number = directive.precision.as_mut().unwrap_or(&mut directive.width);
                        *number = (*number * 10 + usize::from(digit - b'0')).min(0xffff);
                    }
                    Some(b'.') => directive.precision = Some(0),
                    Some(b'l' | b'j' | b'z' | b't' | b'L') => directive.long = true,
                    Some(b'h') => {}
                    other => break other,
                }
            };
            match conversion {
                None => break,
                Some(b'%') => text.push(b'%'),
                Some(conversion) => text.extend(self.convert(conversion, &directive)?),
            }
        }
        Ok((text, self.count))
    }

    fn convert(&mut self, conversion: u8, directive: &Directive) -> Text {
        let size = if directive.long { 8 } else { 4 };
        Ok(match conversion {
            b'd' | b'i' => {
                let raw = self.argument(size)?;
                let value = if directive.long { raw as i64 } else { i64::from(raw as i32) };
                directive.number(value < 0, value.unsigned_abs().to_string(), "")
            }
            b'u' => directive.number(false, self.argument(size)?.to_string(), ""),
            b'x' => directive.number(false, format!("{:x}", self.argument(size)?), "0x"),
            b'X' => directive.number(false, format!("{:X}", self.argument(size)?), "0X"),
            b'o' => directive.number(false, format!("{:o}", self.argument(size)?), "0"),
            b'p' => directive.pad(format!("{:#x}", self.argument(8)?).into_bytes()),
            b'c' => directive.pad(vec![self.argument(4)? as u8]),
            b's' => {
                let start = self.argument(8)?;
                let mut text = if start == 0 { b"(null)".to_vec() } else { self.string(start)? };
                text.truncate(directive.precision.unwrap_or(MOST_TEXT));
                directive.pad(text)
            }
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => {
                let value = f64::from_bits(self.argument(8)?);
                let text = float_text(value.abs(), conversion, directive.precision.unwrap_or(6));
                directive.number(value.is_sign_negative(), text, "")
            }
            other => vec![b'%', other],
        })
    }
}

impl Directive {
    fn number(&self, negative: bool, mut digits: String, prefix: &str) -> Vec<u8> {
        let sign = match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let prefix = if self.alternate && digits != "0" { prefix } else { "" };
        let whole = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        if let (Some(precision), true) = (self.precision, whole) {
            digits = format!("{digits:0>precision$}");
        } else if self.zero && !self.left {
            let width = self.width.saturating_sub(sign.len() + prefix.len());
            digits = format!("{digits:0>width$}");
        }
        self.pad(format!("{sign}{prefix}{digits}").into_bytes())
    }

    fn pad(&self, mut text: Vec<u8>) -> Vec<u8> {
        let missing = self.width.saturating_sub(text.len());
        match self.left {
            true => text.extend(std::iter::repeat_n(b' ', missing)),
            false => drop(text.splice(0..0, std::iter::repeat_n(b' ', missing))),
        }
        text
    }
}

/// A value that is not negative, as C writes it.
fn float_text(value: f64, conversion: u8, precision: usize) -> String {
    let text = match conversion {
        _ if value.is_nan() => "nan".to_owned(),
        _ if value.is_infinite() => "inf".to_owned(),
        b'f' | b'F' => format!("{value:.precision$}"),
        b'e' | b'E' => exponent_text(value, precision),
        _ => shortest_text(value, precision.max(1)),
    };
    if conversion.is_ascii_uppercase() { text.to_uppercase() } else { text }
}

/// `1.5e+03`: two digits of exponent at least.
fn exponent_text(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// `%g`: the shorter of both forms, without zeroes at the end.
fn shortest_text(value: f64, precision: usize) -> String {
    let scientific = exponent_text(value, precision - 1);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let (digits, rest) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        return format!("{}e{rest}", trim(digits));
    }
    let decimals = (precision as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{value:.decimals$}"))
}
