//! The instructions put before a kernel's own, for each architecture.
//!
//! They are written once (`donors/prologue.ptx` says how they work and why so), compiled for each architecture by
//! `cargo xtask donors`, and kept here as data, so that whoever uses ebb needs no compiler.
//!
//! One compilation serves kernels with any parameters. The control words lie behind the kernel's own, so all that depends
//! on the kernel is at which offset of constant bank 0 they are read; and the offset is a field of the instruction.
//! Which instructions and which field was found by compiling for parameters of several lengths and comparing.

mod data;

#[cfg(test)]
mod tests;

use crate::Control;
use crate::machine::{Generation, Word};

/// A prologue as machine code.
#[derive(Clone, Copy, Debug)]
pub struct Prologue {
    pub generation: Generation,
    /// The instructions, for a kernel with [`PAD`] bytes of parameters. Jumps are relative, so they may lie anywhere.
    words: &'static [Word],
    /// Which instructions read control words.
    control_reads: &'static [ControlRead],
    /// The instruction in whose place goes the kernel's own first instruction; in that of the one behind it, a jump to
    /// the kernel's second.
    pub end: usize,
    /// Which instructions are `EXIT`, the one behind `end` aside.
    pub exits: &'static [u16],
    /// How many registers of a thread it uses.
    pub registers: u32,
    /// How many barriers of a block it uses.
    pub barriers: u32,
    /// Where parameters begin in constant bank 0.
    pub parameter_base: u32,
    /// Most bytes that parameters may take up, the control words among them, for the offset to be where it is looked for.
    pub most_parameter_bytes: u32,
}

/// An instruction that reads a control word.
#[derive(Clone, Copy, Debug)]
struct ControlRead {
    /// Its number.
    word: u16,
    /// At which bit of its low half the offset in bytes begins.
    bit: u8,
}

/// How many bytes of parameters stand before the control words of a prologue as it is kept here.
const PAD: u32 = 8;

impl Prologue {
    /// The instructions for a kernel whose control words lie at `control_offset` among its parameters; none if that is
    /// too far.
    pub fn words(&self, control_offset: u32) -> Option<Vec<Word>> {
        let fits = control_offset.checked_add(Control::SIZE)? <= self.most_parameter_bytes;
        let aligned = control_offset.is_multiple_of(Control::ALIGNMENT);
        let distance = control_offset.checked_sub(PAD).filter(|_| fits && aligned)?;
        let mut words = self.words.to_vec();
        for read in self.control_reads {
            words[usize::from(read.word)][0] += u64::from(distance) << read.bit;
        }
        Some(words)
    }

    /// How many instructions it has.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// The prologue for machine code of `sm_<number>`. Compilation for each of these gives the same words for those that
/// share an entry.
pub fn for_architecture(number: u32) -> Option<&'static Prologue> {
    match number {
        80 => Some(&data::SM_80),
        86 | 88 | 89 => Some(&data::SM_86),
        90 => Some(&data::SM_90),
        100 | 103 => Some(&data::SM_100),
        120 | 121 => Some(&data::SM_120),
        _ => None,
    }
}
