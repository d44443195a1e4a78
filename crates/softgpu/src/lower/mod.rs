//! From PTX text to the dense program: the one place that knows what PTX means.
//!
//! [`compile`] reads a text, [`link`] several that refer to each other. Neither touches memory of a device;
//! both take time and memory linear in the text, whatever it says, up to limits named where they are checked.
//!
//! | file | subject |
//! |---|---|
//! | `module`, `declare` | names of modules, variables and their initial values, linking |
//! | `function`, `operand`, `words` | one body: scopes and labels; operands; modifiers |
//! | `table` | which file knows which instruction |
//! | `arithmetic`, `logic`, `moves`, `memory`, `atomic`, `spaces`, `control` | the instructions, by family |
//! | `raw`, `flow`, `live`, `allocate`, `encode`, `calls` | what they become: virtual registers, blocks, rows, the program |

mod allocate;
mod arithmetic;
mod atomic;
mod calls;
mod control;
mod declare;
mod encode;
mod error;
mod flow;
mod function;
mod live;
mod logic;
mod memory;
mod module;
mod moves;
mod operand;
mod raw;
mod spaces;
mod table;
#[cfg(test)]
mod tests;
mod words;

pub use error::{Error, Place};

use crate::isa::Image;

/// Makes a program of one module.
pub fn compile(text: &str) -> Result<Image, Error> {
    link(&[text])
}

/// Makes one program of several modules; what one declares `.extern` another defines.
pub fn link(texts: &[&str]) -> Result<Image, Error> {
    encode::link(texts)
}
