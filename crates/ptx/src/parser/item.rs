//! What stands at module level, and declarations wherever they stand.

use super::cursor::{Parser, shortened};
use super::directive::Where;
use crate::{Declarator, Directive, Function, FunctionKind, Initialiser, Item, Span, TokenKind, Variable};

const LINKAGE: [&str; 4] = [".extern", ".visible", ".weak", ".common"];
const SPACES: [&str; 7] = [".reg", ".global", ".shared", ".const", ".local", ".param", ".sreg"];
const VECTORS: [&str; 4] = [".v2", ".v4", ".v8", ".v3"];

/// What a declaration is part of decides how it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Ends with a semicolon, may declare several names.
    Statement,
    /// Ends before the comma or parenthesis, declares one name.
    Parameter,
}

impl Parser<'_> {
    pub fn items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        loop {
            match self.kind() {
                TokenKind::End => return items,
                TokenKind::Semicolon => drop(self.bump()),
                TokenKind::Dotted => items.push(self.item()),
                // `@@DWARF …`: debug lines of the oldest compilers.
                TokenKind::At if self.second().kind == TokenKind::At => {
                    items.push(Item::Directive(self.line(Where::Elsewhere)));
                }
                _ => {
                    self.complain_expected("a directive, a variable or a function");
                    items.push(Item::Directive(self.junk()));
                }
            }
        }
    }

    /// What cannot stand where it stands, up to the next thing that can, as a directive without arguments.
    fn junk(&mut self) -> Directive {
        let start = self.peek().span.start;
        let name = self.peek().span;
        loop {
            self.skip_group();
            let next = self.peek();
            if next.kind == TokenKind::End || (next.kind == TokenKind::Dotted && next.new_line) {
                break;
            }
            if self.eat(TokenKind::Semicolon) {
                break;
            }
        }
        let span = self.since(start);
        let arguments = Vec::new();
        Directive { span, name, arguments }
    }

    fn item(&mut self) -> Item {
        let start = self.peek().span.start;
        let linkage = self.linkage();
        match self.peek_text() {
            ".entry" => Item::Function(self.function(start, linkage, FunctionKind::Entry)),
            ".func" => Item::Function(self.function(start, linkage, FunctionKind::Device)),
            text if SPACES.contains(&text) => Item::Variable(self.variable(start, linkage, Place::Statement)),
            _ if linkage.is_empty() => Item::Directive(self.directive(Where::Elsewhere)),
            _ => {
                self.complain_expected("a state space, `.func` or `.entry`");
                self.skip_statement();
                Item::Directive(Directive {
                    span: self.since(start),
                    name: linkage[0],
                    arguments: Vec::new(),
                })
            }
        }
    }

    fn linkage(&mut self) -> Vec<Span> {
        let mut linkage = Vec::new();
        while self.at(TokenKind::Dotted) && LINKAGE.contains(&self.peek_text()) {
            linkage.push(self.bump());
        }
        linkage
    }

    /// True before `.reg`, `.param` and so on, with or without `.extern` and the like.
    pub fn at_variable(&self) -> bool {
        let text = self.peek_text();
        self.at(TokenKind::Dotted) && (SPACES.contains(&text) || LINKAGE.contains(&text))
    }

    /// A declaration inside a body.
    pub fn local_variable(&mut self) -> Variable {
        let start = self.peek().span.start;
        let linkage = self.linkage();
        self.variable(start, linkage, Place::Statement)
    }

    fn variable(&mut self, start: u32, linkage: Vec<Span>, place: Place) -> Variable {
        let space = self.space();
        let mut variable = Variable {
            span: space,
            linkage,
            space,
            align: None,
            vector: None,
            ty: Span { start: 0, end: 0 },
            attributes: Vec::new(),
            declarators: Vec::new(),
        };
        let ty = self.variable_words(&mut variable);
        variable.ty = ty.unwrap_or_else(|| {
            self.complain_expected("a type");
            self.missing()
        });
        let complete = self.declarators(&mut variable.declarators, place);
        if place == Place::Statement && (!complete || !self.expect(TokenKind::Semicolon, "`;`")) {
            self.skip_statement();
        }
        variable.span = self.since(start);
        variable
    }

    fn space(&mut self) -> Span {
        if self.at(TokenKind::Dotted) && SPACES.contains(&self.peek_text()) {
            return self.bump();
        }
        self.complain_expected("a state space");
        self.missing()
    }

    /// The dotted words between the state space and the name; gives the type among them.
    fn variable_words(&mut self, variable: &mut Variable) -> Option<Span> {
        let mut ty = None;
        let mut pointer = false;
        while self.at(TokenKind::Dotted) {
            let text = self.peek_text();
            let start = self.peek().span.start;
            match text {
                // After `.ptr` the words are about what it points to.
                ".align" if pointer => {
                    self.bump();
                    self.alignment();
                    variable.attributes.push(self.since(start));
                }
                ".align" => {
                    self.bump();
                    variable.align = self.alignment();
                }
                ".attribute" => {
                    self.bump();
                    if self.at(TokenKind::OpenParen) {
                        self.skip_group();
                    }
                    variable.attributes.push(self.since(start));
                }
                _ if VECTORS.contains(&text) && variable.vector.is_none() => {
                    variable.vector = Some(self.bump());
                }
                ".ptr" | ".managed" | ".unified" => {
                    pointer |= text == ".ptr";
                    variable.attributes.push(self.bump());
                }
                _ if ty.is_none() => ty = Some(self.bump()),
                _ => variable.attributes.push(self.bump()),
            }
        }
        ty
    }

    fn alignment(&mut self) -> Option<u64> {
        let start = self.peek().span;
        let align = self.unsigned("an alignment")?;
        if !align.is_power_of_two() {
            self.complain(start, "an alignment is a power of two");
        }
        Some(align)
    }

    /// False when the rest of the statement must be skipped.
    fn declarators(&mut self, declarators: &mut Vec<Declarator>, place: Place) -> bool {
        loop {
            let Some(name) = self.take(TokenKind::Word) else {
                self.complain_expected("a name");
                return false;
            };
            declarators.push(self.declarator(name));
            if place == Place::Parameter || !self.eat(TokenKind::Comma) {
                return true;
            }
        }
    }

    fn declarator(&mut self, name: Span) -> Declarator {
        let mut count = None;
        if self.eat(TokenKind::Less) {
            count = self.register_count();
            self.expect(TokenKind::Greater, "`>`");
        }
        let mut dimensions = Vec::new();
        while self.eat(TokenKind::OpenBracket) {
            let open = self.at(TokenKind::CloseBracket);
            let dimension = if open { None } else { self.unsigned("a dimension") };
            dimensions.push(dimension);
            self.expect(TokenKind::CloseBracket, "`]`");
        }
        let initialiser = if self.eat(TokenKind::Equals) { self.initialiser() } else { None };
        Declarator { span: self.since(name.start), name, count, dimensions, initialiser }
    }

    fn register_count(&mut self) -> Option<u32> {
        let span = self.peek().span;
        let count = self.literal_number("a number of registers")?;
        let small = count.integer().and_then(|count| u32::try_from(count).ok());
        if small.is_none() {
            self.complain(span, "this cannot be a number of registers");
        }
        small
    }

    fn initialiser(&mut self) -> Option<Initialiser> {
        if self.at(TokenKind::OpenBrace) {
            return self.nested(Self::initialiser_list);
        }
        self.operand().map(Initialiser::Value)
    }

    fn initialiser_list(&mut self) -> Initialiser {
        self.bump();
        let mut list = Vec::new();
        while !self.at(TokenKind::CloseBrace) {
            let Some(element) = self.initialiser() else {
                break;
            };
            list.push(element);
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.expect(TokenKind::CloseBrace, "`,` or `}`");
        Initialiser::List(list)
    }

    fn function(&mut self, start: u32, linkage: Vec<Span>, kind: FunctionKind) -> Function {
        self.bump();
        let mut directives = self.header_directives();
        let returns = if self.at(TokenKind::OpenParen) { self.parameters() } else { Vec::new() };
        directives.extend(self.header_directives());
        let name = self.take(TokenKind::Word).unwrap_or_else(|| {
            self.complain_expected("the function's name");
            self.missing()
        });
        let list_start = self.peek().span.start;
        let has_list = self.at(TokenKind::OpenParen);
        let parameters = if has_list { self.parameters() } else { Vec::new() };
        let parameter_list = has_list.then(|| self.since(list_start));
        directives.extend(self.header_directives());
        let body = match self.kind() {
            TokenKind::OpenBrace => self.nested(Self::body),
            _ => {
                if !self.expect(TokenKind::Semicolon, "`{` or `;`") {
                    self.skip_to_item();
                }
                None
            }
        };
        Function {
            span: self.since(start),
            linkage,
            kind,
            name,
            returns,
            parameter_list,
            parameters,
            directives,
            body,
        }
    }

    /// `.maxntid 256, 1, 1`, `.noreturn` and so on. Only those that end in a semicolon of their own take one:
    /// any other semicolon ends the function's declaration.
    fn header_directives(&mut self) -> Vec<Directive> {
        let mut directives = Vec::new();
        while self.at(TokenKind::Dotted) && !self.at_item() {
            directives.push(self.directive(Where::Header));
        }
        directives
    }

    /// True before what can only begin the next item, as after a header cut short.
    fn at_item(&self) -> bool {
        matches!(self.peek_text(), ".entry" | ".func") || self.at_variable()
    }

    fn skip_to_item(&mut self) {
        while !self.at(TokenKind::End) {
            if self.at(TokenKind::Dotted) && self.peek().new_line {
                return;
            }
            if self.eat(TokenKind::Semicolon) {
                return;
            }
            self.skip_group();
        }
    }

    /// `(.param .u64 a, .param .u32 b)`
    fn parameters(&mut self) -> Vec<Variable> {
        self.bump();
        let mut parameters = Vec::new();
        while self.at_variable() {
            let start = self.peek().span.start;
            let linkage = self.linkage();
            parameters.push(self.variable(start, linkage, Place::Parameter));
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        if !self.at(TokenKind::CloseParen) {
            self.complain_expected("a parameter or `)`");
            self.skip_parameters();
        }
        self.eat(TokenKind::CloseParen);
        parameters
    }

    /// To the parenthesis that closes a broken list, but not out of the declaration.
    fn skip_parameters(&mut self) {
        while !matches!(
            self.kind(),
            TokenKind::End
                | TokenKind::CloseParen
                | TokenKind::Semicolon
                | TokenKind::OpenBrace
                | TokenKind::CloseBrace
        ) {
            self.skip_group();
        }
    }

    /// A number that counts something: a constant expression that is not negative.
    fn unsigned(&mut self, what: &str) -> Option<u64> {
        let start = self.peek().span;
        let value = self.constant(what)?;
        let span = self.since(start.start);
        if value.is_negative() || value.integer().is_none() {
            let text = shortened(self.text(span));
            self.complain(span, format!("{what} cannot be `{text}`"));
            return None;
        }
        value.integer()
    }
}
