//! The parser's position, its look-ahead and its complaints.

use super::{MAX_DEPTH, MAX_ERRORS};
use crate::{Span, TokenKind, tokens};

/// A token that means something. `new_line` is set when trivia with a line break stands before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexeme {
    pub kind: TokenKind,
    pub new_line: bool,
    pub span: Span,
}

pub(super) struct Parser<'s> {
    source: &'s str,
    lexemes: Vec<Lexeme>,
    /// Index of the next lexeme; the last one is `End` and is never passed.
    position: usize,
    depth: u32,
    complaints: Vec<(Span, String)>,
    unclosed_comment: Option<Span>,
}

impl<'s> Parser<'s> {
    pub fn new(source: &'s str) -> Parser<'s> {
        let mut parser = Parser {
            source,
            lexemes: Vec::with_capacity(source.len() / 4 + 1),
            position: 0,
            depth: 0,
            complaints: Vec::new(),
            unclosed_comment: None,
        };
        parser.read_tokens();
        parser
    }

    fn read_tokens(&mut self) {
        let mut new_line = true;
        let mut end = 0;
        for token in tokens(self.source) {
            end = token.span.end;
            if token.kind == TokenKind::BlockComment && !is_closed(self.text(token.span)) {
                self.unclosed_comment = Some(token.span);
            }
            if token.kind.is_trivia() {
                new_line |= self.text(token.span).contains('\n');
                continue;
            }
            self.lexemes.push(Lexeme { kind: token.kind, new_line, span: token.span });
            new_line = false;
        }
        self.lexemes.push(Lexeme { kind: TokenKind::End, new_line: true, span: Span { start: end, end } });
    }

    pub fn finish(mut self) -> Vec<(Span, String)> {
        if let Some(comment) = self.unclosed_comment {
            self.complain(comment, "this comment is never closed");
        }
        self.complaints
    }

    pub fn text(&self, span: Span) -> &'s str {
        &self.source[span.range()]
    }

    pub fn peek(&self) -> Lexeme {
        self.lexemes[self.position]
    }

    pub fn kind(&self) -> TokenKind {
        self.peek().kind
    }

    /// The lexeme after the next one.
    pub fn second(&self) -> Lexeme {
        let last = self.lexemes.len() - 1;
        self.lexemes[(self.position + 1).min(last)]
    }

    pub fn peek_text(&self) -> &'s str {
        self.text(self.peek().span)
    }

    pub fn at(&self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    /// True before a `Dotted` or `Word` that reads like this.
    pub fn at_text(&self, text: &str) -> bool {
        self.peek_text() == text
    }

    pub fn bump(&mut self) -> Span {
        let span = self.peek().span;
        if !self.at(TokenKind::End) {
            self.position += 1;
        }
        span
    }

    pub fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind) && kind != TokenKind::End;
        if found {
            self.position += 1;
        }
        found
    }

    pub fn take(&mut self, kind: TokenKind) -> Option<Span> {
        self.at(kind).then(|| self.bump())
    }

    /// Takes the token or says what is missing; true when it was there.
    pub fn expect(&mut self, kind: TokenKind, what: &str) -> bool {
        let found = self.eat(kind);
        if !found {
            self.complain_expected(what);
        }
        found
    }

    /// Where the last token taken ends.
    pub fn end(&self) -> u32 {
        match self.position.checked_sub(1) {
            Some(last) => self.lexemes[last].span.end,
            None => 0,
        }
    }

    pub fn after_comma(&self) -> bool {
        let last = self.position.checked_sub(1);
        last.is_some_and(|last| self.lexemes[last].kind == TokenKind::Comma)
    }

    /// From `start` to the end of the last token taken.
    pub fn since(&self, start: u32) -> Span {
        Span { start, end: self.end().max(start) }
    }

    /// An empty span after the last token taken, for what should stand there.
    pub fn missing(&self) -> Span {
        let end = self.end();
        Span { start: end, end }
    }

    /// Notes an error, unless one at the same place has said enough.
    pub fn complain(&mut self, span: Span, message: impl Into<String>) {
        if self.complaints.last().is_some_and(|(last, _)| last.start == span.start) {
            return;
        }
        let room = MAX_ERRORS - self.complaints.len();
        match room {
            0 => {}
            1 => self.complaints.push((span, "too many errors; the rest are not listed".to_owned())),
            _ => self.complaints.push((span, message.into())),
        }
    }

    pub fn complain_expected(&mut self, what: &str) {
        let next = self.peek();
        let found = match next.kind {
            TokenKind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", shortened(self.text(next.span))),
        };
        self.complain(next.span, format!("expected {what}, found {found}"));
    }

    /// Runs a rule one level deeper, unless that is too deep: then the bracketed group before us is skipped.
    pub fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth == MAX_DEPTH {
            let start = self.peek().span.start;
            self.skip_group();
            self.complain(self.since(start), "nested too deeply");
            return None;
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        Some(result)
    }

    /// True before a word that only ever stands at the head of an item.
    fn begins_item(&self) -> bool {
        matches!(self.peek_text(), ".entry" | ".func" | ".visible" | ".extern" | ".weak")
    }

    /// Skips one token, or everything up to the bracket that closes it. What parentheses and square brackets
    /// hold never has a semicolon, so a lost bracket costs no more than its statement.
    pub fn skip_group(&mut self) {
        let braces = self.at(TokenKind::OpenBrace);
        let mut open = 0_u32;
        loop {
            match self.kind() {
                TokenKind::OpenParen | TokenKind::OpenBrace | TokenKind::OpenBracket => open += 1,
                TokenKind::CloseParen | TokenKind::CloseBrace | TokenKind::CloseBracket => {
                    open = open.saturating_sub(1);
                }
                TokenKind::End => return,
                TokenKind::Semicolon if open > 0 && !braces => return,
                _ => {}
            }
            self.bump();
            if open == 0 {
                return;
            }
        }
    }

    /// Skips what is left of a broken statement: past its `;`, or up to the `}` around it or the next item.
    pub fn skip_statement(&mut self) {
        let mut open = 0_u32;
        loop {
            match self.kind() {
                TokenKind::End => return,
                TokenKind::Dotted if self.peek().new_line && self.begins_item() => return,
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::OpenBrace => open += 1,
                TokenKind::CloseBrace if open == 0 => return,
                TokenKind::CloseBrace => open -= 1,
                _ => {}
            }
            self.bump();
        }
    }
}

fn is_closed(comment: &str) -> bool {
    comment.len() >= 4 && comment.ends_with("*/")
}

/// Quotes of the text in messages stay short, whatever a token's length.
pub(super) fn shortened(text: &str) -> String {
    const LIMIT: usize = 40;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
