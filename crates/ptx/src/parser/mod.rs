//! From tokens to the tree, by recursive descent.
//!
//! Every rule makes progress or leaves the token to its caller, and a rule that meets what it does not expect
//! says so once and skips to the end of the statement. So the work is linear in the number of tokens, and one
//! bad line costs one error.

mod cursor;
mod directive;
mod expression;
mod item;
mod literal;
mod operand;
mod statement;

use crate::{Lines, Module, Span};
use cursor::Parser;

/// How deep scopes, lists, operands and expressions may nest, all together.
pub const MAX_DEPTH: u32 = 128;

/// How many errors are told; a text with more is surely not PTX.
pub const MAX_ERRORS: usize = 64;

/// What became of a text: the tree of all that was understood, and what was not.
#[derive(Clone, Debug)]
pub struct Parse {
    pub module: Module,
    pub errors: Vec<Error>,
}

/// Something in the text that is not PTX as we know it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct Error {
    pub message: String,
    pub span: Span,
    /// From one.
    pub line: u32,
    /// From one, in bytes.
    pub column: u32,
}

/// Reads a module. Never fails: whatever the text is, the tree prints it again.
pub fn parse(source: impl Into<String>) -> Parse {
    let source = source.into();
    if u32::try_from(source.len()).is_err() {
        let error = Error {
            message: "the text is longer than 4 GiB".to_owned(),
            span: Span { start: 0, end: 0 },
            line: 1,
            column: 1,
        };
        let items = Vec::new();
        return Parse { module: Module { source, items }, errors: vec![error] };
    }
    let mut parser = Parser::new(&source);
    let items = parser.items();
    let complaints = parser.finish();
    let errors = locate(&source, complaints);
    Parse { module: Module { source, items }, errors }
}

fn locate(source: &str, complaints: Vec<(Span, String)>) -> Vec<Error> {
    if complaints.is_empty() {
        return Vec::new();
    }
    let lines = Lines::new(source);
    let with_place = |(span, message): (Span, String)| {
        let (line, column) = lines.line_column(span.start);
        Error { message, span, line, column }
    };
    complaints.into_iter().map(with_place).collect()
}
