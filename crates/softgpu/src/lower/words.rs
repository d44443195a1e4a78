//! The modifiers and operands of an instruction, taken one by one.

use ptx::Instruction;

use super::error::Error;
use super::function::Lowering;
use crate::isa::Type;

/// An instruction being lowered. Families take the words they understand; what is left over is an error.
pub(super) struct Words<'a> {
    instruction: &'a Instruction,
    left: Vec<&'a str>,
}

impl<'a> Words<'a> {
    pub(super) fn new(f: &Lowering<'a>, instruction: &'a Instruction) -> Words<'a> {
        let left = instruction.modifiers.iter().map(|span| f.text(*span)).collect();
        Words { instruction, left }
    }

    pub(super) fn instruction(&self) -> &'a Instruction {
        self.instruction
    }

    /// Takes a modifier if it is there.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.left.iter().position(|have| *have == word);
        found.map(|index| self.left.remove(index)).is_some()
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.left.contains(&word)
    }

    /// Takes the first modifier that is one of `words`.
    pub(super) fn any(&mut self, _: &Lowering<'_>, words: &[&str]) -> Option<&'a str> {
        let found = self.left.iter().position(|have| words.contains(have))?;
        Some(self.left.remove(found))
    }

    /// Takes every modifier for which `accept` holds.
    pub(super) fn drop_all(&mut self, accept: impl Fn(&str) -> bool) {
        self.left.retain(|word| !accept(word));
    }

    pub(super) fn optional_ty(&mut self) -> Option<Type> {
        let found = self.left.iter().position(|word| Type::named(word).is_some())?;
        Type::named(self.left.remove(found))
    }

    /// Takes the next type.
    pub(super) fn ty(&mut self, f: &Lowering<'_>) -> Result<Type, Error> {
        self.optional_ty().ok_or_else(|| match self.left.first() {
            Some(_) => self.unknown(f),
            None => f.invalid(self.instruction.span, format!("`{}` lacks a type", self.text(f))),
        })
    }

    /// All operands, of which there must be `N`; checks that no modifier is left.
    pub(super) fn operands<const N: usize>(&self, f: &Lowering<'_>) -> Result<&'a [ptx::Operand; N], Error> {
        self.operands_between(f, N, N)?
            .try_into()
            .map_err(|_| f.invalid(self.instruction.span, "wrong number of operands"))
    }

    pub(super) fn operands_between(
        &self,
        f: &Lowering<'_>,
        least: usize,
        most: usize,
    ) -> Result<&'a [ptx::Operand], Error> {
        if !self.left.is_empty() {
            return Err(self.unknown(f));
        }
        let operands = &self.instruction.operands[..];
        if operands.len() < least || operands.len() > most {
            let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let message = format!("`{}` takes {wanted} operands, not {}", self.text(f), operands.len());
            return Err(f.invalid(self.instruction.span, message));
        }
        Ok(operands)
    }

    /// The instruction as one line.
    pub(super) fn text(&self, f: &Lowering<'_>) -> String {
        const MOST: usize = 100;
        let mut text = String::new();
        for word in f.text(self.instruction.span).split_whitespace() {
            if text.len() > MOST {
                text.push('…');
                break;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.extend(word.chars().take(MOST));
        }
        text
    }

    /// A form of the instruction that is not known here.
    pub(super) fn unknown(&self, f: &Lowering<'_>) -> Error {
        f.unsupported(self.instruction.span, format!("`{}`", self.text(f)))
    }

    pub(super) fn mismatch(&self, f: &Lowering<'_>) -> Error {
        f.invalid(self.instruction.span, format!("the operands of `{}` do not fit its type", self.text(f)))
    }
}
