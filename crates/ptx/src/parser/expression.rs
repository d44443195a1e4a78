//! Constant expressions, with C's precedences, evaluated as they are read.
//!
//! Integers are 64 bits wide, signed or unsigned, and wrap; an operation is unsigned when either side is.

use super::cursor::Parser;
use super::literal::{Constant, number};
use crate::{Span, TokenKind};

/// Precedence of `*`, `/` and `%`: what a term of a sum is made of.
const PRODUCT: u8 = 10;

/// The one name that is a constant.
pub(super) const WARP_SIZE: &str = "WARP_SZ";

fn precedence(operator: &str) -> Option<u8> {
    Some(match operator {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | ">" | "<=" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => PRODUCT,
        _ => return None,
    })
}

impl Parser<'_> {
    /// A whole expression; `what` names it when there is none.
    pub fn constant(&mut self, what: &str) -> Option<Constant> {
        let condition = self.binary(1, what)?;
        if !self.eat(TokenKind::Question) {
            return Some(condition);
        }
        self.nested(|p| {
            let yes = p.constant(what)?;
            if !p.expect(TokenKind::Colon, "`:`") {
                return None;
            }
            let no = p.constant(what)?;
            Some(if is_true(condition) { yes } else { no })
        })?
    }

    /// What may stand between the signs of a sum.
    pub fn term(&mut self) -> Option<Constant> {
        self.binary(PRODUCT, "a number")
    }

    /// One literal.
    pub fn literal_number(&mut self, what: &str) -> Option<Constant> {
        let Some(span) = self.take(TokenKind::Number) else {
            self.complain_expected(what);
            return None;
        };
        match number(self.text(span)) {
            Ok(value) => Some(value),
            Err(reason) => {
                self.complain(span, reason.to_string());
                None
            }
        }
    }

    fn binary(&mut self, lowest: u8, what: &str) -> Option<Constant> {
        let start = self.peek().span.start;
        let mut left = self.unary(what)?;
        loop {
            let operator = self.peek_text();
            let Some(level) = precedence(operator).filter(|level| *level >= lowest) else {
                return Some(left);
            };
            self.bump();
            let right = self.binary(level + 1, "a number")?;
            left = self.combine(start, operator, left, right)?;
        }
    }

    fn combine(&mut self, start: u32, operator: &str, l: Constant, r: Constant) -> Option<Constant> {
        let result = match (l.integer(), r.integer()) {
            (Some(_), Some(_)) => integers(operator, l, r),
            _ => floats(operator, as_f64(l), as_f64(r)),
        };
        if result.is_none() {
            let span = self.since(start);
            self.complain(span, format!("`{operator}` has no value here"));
        }
        result
    }

    fn unary(&mut self, what: &str) -> Option<Constant> {
        match self.kind() {
            TokenKind::Number => self.literal_number(what),
            TokenKind::Dotted if self.at_fraction() => self.fraction(),
            TokenKind::Word if self.at_text(WARP_SIZE) => {
                self.bump();
                Some(Constant::Signed(32))
            }
            TokenKind::Minus | TokenKind::Plus | TokenKind::Bang | TokenKind::Tilde => {
                self.nested(|p| p.signed(what))?
            }
            TokenKind::OpenParen => self.nested(|p| p.parenthesis(what))?,
            _ => {
                self.complain_expected(what);
                None
            }
        }
    }

    /// `.5`, which looks like a modifier.
    fn at_fraction(&self) -> bool {
        self.peek_text().as_bytes().get(1).is_some_and(u8::is_ascii_digit)
    }

    fn fraction(&mut self) -> Option<Constant> {
        let span = self.bump();
        let value = number(self.text(span));
        if let Err(reason) = value {
            self.complain(span, reason.to_string());
        }
        value.ok()
    }

    fn signed(&mut self, what: &str) -> Option<Constant> {
        let sign = self.peek().kind;
        let span = self.bump();
        let value = self.unary(what)?;
        let result = match sign {
            TokenKind::Minus => Some(negate(value)),
            TokenKind::Plus => Some(value),
            TokenKind::Bang => Some(truth(!is_true(value))),
            _ => value.integer().map(|bits| like(value, !bits)),
        };
        if result.is_none() {
            self.complain(span, "`~` is for integers");
        }
        result
    }

    /// `(expression)`, or a cast before its operand: `(.u64)-1`.
    fn parenthesis(&mut self, what: &str) -> Option<Constant> {
        self.bump();
        if let Some(ty) = self.take(TokenKind::Dotted) {
            self.expect(TokenKind::CloseParen, "`)`");
            let value = self.unary(what)?;
            return self.cast(ty, value);
        }
        let value = self.constant(what)?;
        self.expect(TokenKind::CloseParen, "`)`").then_some(value)
    }

    fn cast(&mut self, ty: Span, value: Constant) -> Option<Constant> {
        let bits = value.integer();
        match (self.text(ty), bits) {
            (".s64", Some(bits)) => Some(Constant::Signed(bits.cast_signed())),
            (".u64", Some(bits)) => Some(Constant::Unsigned(bits)),
            (".f64", _) => Some(Constant::Double(as_f64(value))),
            _ => {
                self.complain(ty, "constants are cast to `.s64`, `.u64` or `.f64`");
                None
            }
        }
    }
}

fn truth(value: bool) -> Constant {
    Constant::Signed(value.into())
}

fn is_true(value: Constant) -> bool {
    match value.integer() {
        Some(bits) => bits != 0,
        None => as_f64(value) != 0.0,
    }
}

fn negate(value: Constant) -> Constant {
    match value {
        Constant::Signed(value) => Constant::Signed(value.wrapping_neg()),
        Constant::Unsigned(value) => Constant::Unsigned(value.wrapping_neg()),
        Constant::Single(bits) => Constant::Single(bits ^ 0x8000_0000),
        Constant::Double(value) => Constant::Double(-value),
    }
}

/// Bits as an integer of the same signedness as `model`.
fn like(model: Constant, bits: u64) -> Constant {
    match model {
        Constant::Unsigned(_) => Constant::Unsigned(bits),
        _ => Constant::Signed(bits.cast_signed()),
    }
}

/// The literals in question are written by people; the nearest f64 is what they mean.
#[expect(clippy::cast_precision_loss)]
fn as_f64(value: Constant) -> f64 {
    match value {
        Constant::Signed(value) => value as f64,
        Constant::Unsigned(value) => value as f64,
        Constant::Single(bits) => f32::from_bits(bits).into(),
        Constant::Double(value) => value,
    }
}

fn integers(operator: &str, l: Constant, r: Constant) -> Option<Constant> {
    let (a, b) = (l.integer()?, r.integer()?);
    let (x, y) = (a.cast_signed(), b.cast_signed());
    let signed = matches!((l, r), (Constant::Signed(_), Constant::Signed(_)));
    let model = if signed { l } else { Constant::Unsigned(0) };
    let bits = |bits| Some(like(model, bits));
    let order = if signed { x.cmp(&y) } else { a.cmp(&b) };
    match operator {
        "+" => bits(a.wrapping_add(b)),
        "-" => bits(a.wrapping_sub(b)),
        "*" => bits(a.wrapping_mul(b)),
        "/" | "%" if b == 0 => None,
        "/" if signed => bits(x.wrapping_div(y).cast_unsigned()),
        "/" => bits(a / b),
        "%" if signed => bits(x.wrapping_rem(y).cast_unsigned()),
        "%" => bits(a % b),
        "&" => bits(a & b),
        "|" => bits(a | b),
        "^" => bits(a ^ b),
        "<<" | ">>" => shift(operator, l, b),
        "<" => Some(truth(order.is_lt())),
        ">" => Some(truth(order.is_gt())),
        "<=" => Some(truth(order.is_le())),
        ">=" => Some(truth(order.is_ge())),
        "==" => Some(truth(a == b)),
        "!=" => Some(truth(a != b)),
        "&&" => Some(truth(a != 0 && b != 0)),
        "||" => Some(truth(a != 0 || b != 0)),
        _ => None,
    }
}

/// A shift has the type of what is shifted.
fn shift(operator: &str, l: Constant, by: u64) -> Option<Constant> {
    let by = u32::try_from(by).ok().filter(|by| *by < 64)?;
    Some(match (operator, l) {
        ("<<", _) => like(l, l.integer()? << by),
        (_, Constant::Signed(value)) => Constant::Signed(value >> by),
        _ => like(l, l.integer()? >> by),
    })
}

#[expect(clippy::float_cmp, reason = "the source asks for exactly this comparison")]
fn floats(operator: &str, a: f64, b: f64) -> Option<Constant> {
    Some(match operator {
        "+" => Constant::Double(a + b),
        "-" => Constant::Double(a - b),
        "*" => Constant::Double(a * b),
        "/" => Constant::Double(a / b),
        "<" => truth(a < b),
        ">" => truth(a > b),
        "<=" => truth(a <= b),
        ">=" => truth(a >= b),
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "&&" => truth(a != 0.0 && b != 0.0),
        "||" => truth(a != 0.0 || b != 0.0),
        _ => return None,
    })
}
