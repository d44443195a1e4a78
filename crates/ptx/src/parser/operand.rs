//! Operands of instructions and values of initialisers.

use super::cursor::Parser;
use super::expression::WARP_SIZE;
use super::literal::Constant;
use crate::{Operand, Span, TokenKind};

impl Parser<'_> {
    /// The parentheses of a call hold its arguments, those of anything else an expression.
    pub fn instruction_operand(&mut self, call: bool) -> Option<Operand> {
        if call && self.at(TokenKind::OpenParen) {
            let start = self.peek().span.start;
            let elements = self.nested(|p| p.group(TokenKind::CloseParen, "`,` or `)`"))?;
            let span = self.since(start);
            return Some(Operand::List { span, elements });
        }
        self.operand()
    }

    /// `None`, and an error, when there is none.
    pub fn operand(&mut self) -> Option<Operand> {
        let start = self.peek().span.start;
        match self.kind() {
            TokenKind::Word if self.at_text(WARP_SIZE) => self.literal(),
            TokenKind::Word => self.named(),
            TokenKind::OpenBracket => self.nested(Self::address)?,
            TokenKind::OpenBrace => {
                let elements = self.nested(|p| p.group(TokenKind::CloseBrace, "`,` or `}`"))?;
                let span = self.since(start);
                if self.at(TokenKind::Pipe) {
                    return self.pair(span);
                }
                Some(Operand::Vector { span, elements })
            }
            TokenKind::Bang if self.second().kind == TokenKind::Word => {
                self.bump();
                let register = self.name();
                let span = self.since(start);
                Some(Operand::Not { span, register })
            }
            TokenKind::Minus if self.second().kind == TokenKind::Word => {
                self.bump();
                let register = self.name();
                let span = self.since(start);
                Some(Operand::Negated { span, register })
            }
            TokenKind::Number if self.second().kind == TokenKind::OpenParen => {
                let mask = self.bump();
                self.apply(mask)
            }
            _ => self.literal(),
        }
    }

    /// A name with its selectors: `%tid.x`, `%r1.b0`. Called before a word.
    fn name(&mut self) -> Span {
        let mut name = self.bump();
        while self.at(TokenKind::Dotted) && self.peek().span.start == name.end {
            name.end = self.bump().end;
        }
        name
    }

    fn named(&mut self) -> Option<Operand> {
        let name = self.name();
        match self.kind() {
            TokenKind::Pipe => self.pair(name),
            TokenKind::OpenParen => self.apply(name),
            TokenKind::Equals => self.property(name),
            TokenKind::OpenBracket => self.element(name),
            TokenKind::Plus | TokenKind::Minus => {
                let offset = self.offset()?;
                let span = self.since(name.start);
                Some(Operand::Offset { span, base: name, offset })
            }
            _ => Some(Operand::Name(name)),
        }
    }

    /// `name[4]`; a subscript that is a register is not understood.
    fn element(&mut self, base: Span) -> Option<Operand> {
        let start = self.bump().start;
        let index = self.constant("a constant subscript")?;
        let closed = self.expect(TokenKind::CloseBracket, "`]`");
        let Some(index) = index.integer().map(u64::cast_signed) else {
            self.complain(self.since(start), "a subscript is an integer");
            return None;
        };
        let span = self.since(base.start);
        closed.then_some(Operand::Element { span, base, index })
    }

    fn pair(&mut self, first: Span) -> Option<Operand> {
        self.bump();
        if !self.at(TokenKind::Word) {
            self.complain_expected("a register");
            return None;
        }
        let second = self.name();
        let span = self.since(first.start);
        Some(Operand::Pair { span, first, second })
    }

    /// `generic(name)`, `0xFF(name)`
    fn apply(&mut self, function: Span) -> Option<Operand> {
        let argument = self.nested(|p| {
            p.bump();
            let argument = p.operand();
            p.expect(TokenKind::CloseParen, "`)`");
            argument
        })??;
        let argument = self.outer_offset(argument)?;
        Some(self.applied(function, argument))
    }

    /// `addr_mode_0 = wrap` in the initialiser of a sampler.
    fn property(&mut self, function: Span) -> Option<Operand> {
        let argument = self.nested(|p| {
            p.bump();
            p.operand()
        })??;
        Some(self.applied(function, argument))
    }

    fn applied(&self, function: Span, argument: Operand) -> Operand {
        Operand::Apply { span: self.since(function.start), function, argument: Box::new(argument) }
    }

    /// `generic(name)+8` is `generic(name+8)`.
    fn outer_offset(&mut self, argument: Operand) -> Option<Operand> {
        if !matches!(self.kind(), TokenKind::Plus | TokenKind::Minus) {
            return Some(argument);
        }
        let more = self.offset()?;
        let (base, offset) = match argument {
            Operand::Name(base) => (base, more),
            Operand::Offset { base, offset, .. } => (base, offset.wrapping_add(more)),
            other => {
                self.complain(other.span(), "an offset counts from a name");
                return None;
            }
        };
        let span = self.since(base.start);
        Some(Operand::Offset { span, base, offset })
    }

    /// The elements between two brackets, the first of which is next.
    fn group(&mut self, close: TokenKind, expected: &str) -> Vec<Operand> {
        self.bump();
        let mut elements = Vec::new();
        while !self.at(close) {
            let Some(element) = self.operand() else {
                break;
            };
            elements.push(element);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(close, expected);
        elements
    }

    fn address(&mut self) -> Option<Operand> {
        let start = self.bump().start;
        let base = match self.kind() {
            TokenKind::Word => Operand::Name(self.name()),
            _ => self.operand()?,
        };
        let mut offset = 0;
        if matches!(self.kind(), TokenKind::Plus | TokenKind::Minus) {
            offset = self.offset()?;
        }
        let mut rest = Vec::new();
        while self.eat(TokenKind::Comma) {
            rest.push(self.operand()?);
        }
        self.expect(TokenKind::CloseBracket, "`]`");
        let span = self.since(start);
        Some(Operand::Address { span, base: Box::new(base), offset, rest })
    }

    /// `+8`, `-8`, `+-8`, `+4*2-1`
    fn offset(&mut self) -> Option<i64> {
        let start = self.peek().span.start;
        let mut sum = 0_i64;
        loop {
            let negative = match self.kind() {
                TokenKind::Plus => false,
                TokenKind::Minus => true,
                _ => return Some(sum),
            };
            self.bump();
            let term = self.term()?;
            let Some(value) = term.integer().map(u64::cast_signed) else {
                self.complain(self.since(start), "an offset is an integer");
                return None;
            };
            sum = if negative { sum.wrapping_sub(value) } else { sum.wrapping_add(value) };
        }
    }

    fn literal(&mut self) -> Option<Operand> {
        let start = self.peek().span.start;
        let value = self.constant("an operand")?;
        let span = self.since(start);
        Some(match value {
            Constant::Signed(value) => Operand::Integer { span, value: value.cast_unsigned() },
            Constant::Unsigned(value) => Operand::Integer { span, value },
            Constant::Single(bits) => Operand::Float { span, bits: bits.into(), double: false },
            Constant::Double(value) => Operand::Float { span, bits: value.to_bits(), double: true },
        })
    }
}
