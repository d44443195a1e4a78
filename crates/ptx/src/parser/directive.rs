//! Directives, as words.
//!
//! PTX does not end all of its directives with a semicolon, so where one ends is a matter of knowing it. The
//! known ones are told apart by shape below; an unknown one ends at its semicolon or with its line, unless a
//! comma says that it goes on.

use super::cursor::Parser;
use crate::{Directive, Span, TokenKind};

/// Where a directive stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Where {
    /// Between a function's parameters and its body: the next `;` or `{` is the function's.
    Header,
    Elsewhere,
}

#[derive(Clone, Copy)]
enum Shape {
    /// `.noreturn`
    Bare,
    /// `.attribute(.unified(1, 2))`
    Group,
    /// `.maxntid 256, 1, 1`
    List,
    /// `.pragma "nounroll";`
    Statement,
    /// `.file 1 "a.cu", 1700000000, 1234`
    File,
    /// `.loc 1 7 3, function_name $L__info_string0, inlined_at 1 18 3`
    Location,
    /// `.section .debug_info { … }`
    Section,
    /// Not known here.
    Line,
}

fn shape(name: &str) -> Shape {
    match name {
        ".noreturn" | ".explicitcluster" | ".blocksareclusters" => Shape::Bare,
        ".attribute" => Shape::Group,
        ".version" | ".target" | ".address_size" => Shape::List,
        ".maxntid" | ".reqntid" | ".maxnreg" | ".minnctapersm" | ".maxnctapersm" => Shape::List,
        ".reqnctapercluster" | ".maxclusterrank" => Shape::List,
        ".abi_preserve" | ".abi_preserve_control" => Shape::List,
        ".pragma" | ".alias" | ".branchtargets" | ".calltargets" | ".callprototype" => Shape::Statement,
        ".file" => Shape::File,
        ".loc" => Shape::Location,
        ".section" => Shape::Section,
        _ => Shape::Line,
    }
}

impl Parser<'_> {
    pub fn directive(&mut self, place: Where) -> Directive {
        let name = self.peek().span;
        let shape = shape(self.text(name));
        if matches!(shape, Shape::Line) {
            return self.line(place);
        }
        self.bump();
        let mut arguments = Vec::new();
        match shape {
            Shape::Bare | Shape::Line => {}
            Shape::Group if self.at(TokenKind::OpenParen) => self.argument(&mut arguments),
            Shape::Group => self.complain_expected("`(`"),
            Shape::List => self.words(&mut arguments),
            Shape::Statement => self.until_semicolon(&mut arguments),
            Shape::File => self.file(&mut arguments),
            Shape::Location => self.location(&mut arguments),
            Shape::Section => self.section(&mut arguments),
        }
        Directive { span: self.since(name.start), name, arguments }
    }

    /// `a, b, c`
    fn words(&mut self, arguments: &mut Vec<Span>) {
        loop {
            self.word(arguments, "an argument");
            if !self.eat(TokenKind::Comma) {
                return;
            }
        }
    }

    fn word(&mut self, arguments: &mut Vec<Span>, what: &str) {
        match self.kind() {
            TokenKind::Word | TokenKind::Number | TokenKind::Text => arguments.push(self.bump()),
            _ => self.complain_expected(what),
        }
    }

    fn number(&mut self, arguments: &mut Vec<Span>) {
        match self.take(TokenKind::Number) {
            Some(number) => arguments.push(number),
            None => self.complain_expected("a number"),
        }
    }

    fn until_semicolon(&mut self, arguments: &mut Vec<Span>) {
        loop {
            match self.kind() {
                TokenKind::Semicolon => {
                    self.bump();
                    return;
                }
                TokenKind::Comma => drop(self.bump()),
                TokenKind::End | TokenKind::OpenBrace | TokenKind::CloseBrace => {
                    self.complain_expected("`;`");
                    return;
                }
                _ => self.argument(arguments),
            }
        }
    }

    /// One token, or a whole group in parentheses.
    fn argument(&mut self, arguments: &mut Vec<Span>) {
        let start = self.peek().span.start;
        self.skip_group();
        arguments.push(self.since(start));
    }

    fn file(&mut self, arguments: &mut Vec<Span>) {
        self.number(arguments);
        self.word(arguments, "a file name");
        while self.eat(TokenKind::Comma) {
            self.number(arguments);
        }
    }

    fn location(&mut self, arguments: &mut Vec<Span>) {
        for _ in 0..3 {
            self.number(arguments);
        }
        while self.eat(TokenKind::Comma) {
            let inlined = self.at_text("inlined_at");
            self.word(arguments, "`function_name` or `inlined_at`");
            if inlined {
                for _ in 0..3 {
                    self.number(arguments);
                }
                continue;
            }
            self.word(arguments, "a label");
            if self.eat(TokenKind::Plus) {
                self.number(arguments);
            }
        }
    }

    /// What is in a section stays one piece: no pass reads debug tables.
    fn section(&mut self, arguments: &mut Vec<Span>) {
        match self.kind() {
            TokenKind::Dotted | TokenKind::Word => arguments.push(self.bump()),
            _ => self.complain_expected("the section's name"),
        }
        if self.at(TokenKind::OpenBrace) {
            self.argument(arguments);
        } else {
            self.complain_expected("`{`");
        }
    }

    /// A directive that nobody here knows.
    pub fn line(&mut self, place: Where) -> Directive {
        let name = self.bump();
        let mut arguments = Vec::new();
        loop {
            let next = self.peek();
            match next.kind {
                TokenKind::End | TokenKind::CloseBrace => break,
                TokenKind::Semicolon | TokenKind::OpenBrace if place == Where::Header => break,
                TokenKind::Semicolon => {
                    self.bump();
                    break;
                }
                TokenKind::Comma => drop(self.bump()),
                _ if next.new_line && !self.after_comma() => break,
                _ => self.argument(&mut arguments),
            }
        }
        Directive { span: self.since(name.start), name, arguments }
    }
}
