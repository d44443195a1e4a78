//! Bodies of functions.

use super::cursor::Parser;
use super::directive::Where;
use crate::{Body, Directive, Guard, Instruction, Span, Statement, TokenKind};

impl Parser<'_> {
    /// From `{` to `}`.
    pub fn body(&mut self) -> Body {
        let start = self.bump().start;
        let mut statements = Vec::new();
        loop {
            match self.kind() {
                TokenKind::CloseBrace => {
                    self.bump();
                    break;
                }
                TokenKind::End => {
                    self.complain(Span { start, end: start + 1 }, "this `{` is never closed");
                    break;
                }
                TokenKind::Semicolon => drop(self.bump()),
                _ => statements.push(self.statement()),
            }
        }
        Body { span: self.since(start), statements }
    }

    fn statement(&mut self) -> Statement {
        let first = self.peek();
        match first.kind {
            TokenKind::OpenBrace => match self.nested(Self::body) {
                Some(body) => Statement::Scope(body),
                None => self.unknown(first.span),
            },
            TokenKind::Word if self.second().kind == TokenKind::Colon => {
                let name = self.bump();
                self.bump();
                let span = self.since(name.start);
                Statement::Label { span, name }
            }
            TokenKind::Word | TokenKind::At => self.instruction(),
            TokenKind::Dotted if self.at_variable() => Statement::Variable(self.local_variable()),
            TokenKind::Dotted => Statement::Directive(self.directive(Where::Elsewhere)),
            _ => {
                self.complain_expected("a statement");
                self.bump();
                self.skip_statement();
                self.unknown(first.span)
            }
        }
    }

    /// What was skipped since `first`, kept so that the tree still covers it.
    fn unknown(&self, first: Span) -> Statement {
        Statement::Directive(Directive { span: self.since(first.start), name: first, arguments: Vec::new() })
    }

    fn instruction(&mut self) -> Statement {
        let first = self.peek().span;
        let guard = match self.guard() {
            Ok(guard) => guard,
            Err(Broken) => {
                self.skip_statement();
                return self.unknown(first);
            }
        };
        let Some(opcode) = self.take(TokenKind::Word) else {
            self.complain_expected("an opcode");
            self.skip_statement();
            return self.unknown(first);
        };
        let mut modifiers = Vec::new();
        while let Some(dotted) = self.take(TokenKind::Dotted) {
            let start = dotted.start + 1;
            modifiers.push(Span { start, ..dotted });
        }
        let mut operands = Vec::new();
        let call = self.text(opcode) == "call";
        if !self.at(TokenKind::Semicolon) {
            while let Some(operand) = self.instruction_operand(call) {
                operands.push(operand);
                if !self.eat(TokenKind::Comma) {
                    break;
                }
            }
        }
        self.end_of_instruction();
        Statement::Instruction(Instruction {
            span: self.since(first.start),
            guard,
            opcode,
            modifiers,
            operands,
        })
    }

    /// A missing semicolon costs no more than its own line.
    fn end_of_instruction(&mut self) {
        if self.eat(TokenKind::Semicolon) {
            return;
        }
        self.complain_expected("`,` or `;`");
        if !self.peek().new_line {
            self.skip_statement();
        }
    }

    fn guard(&mut self) -> Result<Option<Guard>, Broken> {
        if !self.eat(TokenKind::At) {
            return Ok(None);
        }
        let negated = self.eat(TokenKind::Bang);
        match self.take(TokenKind::Word) {
            Some(register) => Ok(Some(Guard { negated, register })),
            None => {
                self.complain_expected("a predicate");
                Err(Broken)
            }
        }
    }
}

struct Broken;
