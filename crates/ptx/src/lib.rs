//! PTX text to spanned statements and back, without losing a byte.
//!
//! [`parse`] never fails: it gives a tree and the errors met on the way. The tree is *open in the opcode*: an
//! instruction is a guard, an opcode, its modifiers and its operands, whatever they are, so what this crate
//! has never heard of passes through. The nodes own no text, only [`Span`]s into the source, and [`Edits`]
//! splice new text between them; what no edit touches stays as it was, comments and blanks included.
//!
//! The text may come from anybody. Time and memory are linear in its length, nesting is bounded by
//! [`MAX_DEPTH`] and the list of errors by [`MAX_ERRORS`].
//!
//! ```
//! let parse = ptx::parse(".version 9.0\n.target sm_90\n.entry noop() { ret; }");
//! assert!(parse.errors.is_empty());
//! let ptx::Item::Function(noop) = &parse.module.items[2] else { panic!() };
//! assert_eq!(parse.module.text(noop.name), "noop");
//! assert_eq!(parse.module.print(), parse.module.source);
//! ```
#![forbid(unsafe_code)]

mod edit;
mod lines;
mod parser;
mod print;
pub mod syntax;
mod token;
mod verify;
mod walk;

pub use edit::{EditError, Edits};
pub use lines::Lines;
pub use parser::{Error, MAX_DEPTH, MAX_ERRORS, Parse, parse};
pub use syntax::*;
pub use token::{Token, TokenKind, tokens};
pub use verify::Misfit;
