//! Instructions as words: the few forms that are read or written.
//!
//! An instruction has 128 bits on every architecture known here: a low and a high half. The opcode is in the lowest 12
//! bits and says where operands come from as well; the guarding predicate follows it. The highest bits (from 41 of the
//! high half) tell the scheduler how long to wait.

use std::ops::RangeInclusive;

/// An instruction: low half, high half.
pub type Word = [u64; 2];

/// How many bytes an instruction has.
pub const WORD_BYTES: u64 = 16;

/// Opcodes, with the form of their operands.
pub mod opcode {
    pub const BRA: u64 = 0x947;
    /// By a uniform predicate.
    pub const BRA_UNIFORM: u64 = 0x547;
    /// To a fixed place.
    pub const CALL_REL: u64 = 0x944;
    pub const EXIT: u64 = 0x94d;
    pub const NANOSLEEP: u64 = 0x95d;
    pub const BAR: u64 = 0xb1d;
    pub const B2R: u64 = 0x31c;
    pub const NOP: u64 = 0x918;
    /// Lets the launch behind begin, if it was launched so, as soon as all blocks have come here or ended. From `sm_90` on.
    pub const PREEXIT: u64 = 0x82d;
}

/// What an instruction does, wherever its operands are: nine bits of its opcode.
pub mod operation {
    pub const BRA: u64 = 0x147;
    pub const BRX: u64 = 0x149;
    pub const JMX: u64 = 0x14c;
    pub const BRXU: u64 = 0x158;
    pub const CALL_ABS: u64 = 0x143;
    pub const CALL_REL: u64 = 0x144;
    pub const LD: u64 = 0x180;
    pub const LDG: u64 = 0x181;
    pub const ATOM: u64 = 0x18a;
    pub const ATOM_CAS: u64 = 0x18b;
    pub const ATOM_FLOAT: u64 = 0x1a2;
    pub const ATOMG_FLOAT: u64 = 0x1a3;
    pub const ATOMG: u64 = 0x1a8;
    pub const ATOMG_CAS: u64 = 0x1a9;
}

pub const fn operation_of(word: Word) -> u64 {
    word[0] & 0x1ff
}

/// Twelve bits that say what an instruction does and where its operands are.
pub const fn opcode_of(word: Word) -> u64 {
    word[0] & 0xfff
}

/// Architectures that encode alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// `sm_80` to `sm_89`
    Ampere,
    /// From `sm_90` on.
    Hopper,
}

impl Generation {
    const AMPERE: RangeInclusive<u32> = 80..=89;
    const HOPPER: RangeInclusive<u32> = 90..=129;

    /// The generation of `sm_<number>`, if its encodings have been looked at.
    pub fn of(number: u32) -> Option<Generation> {
        match number {
            _ if Self::AMPERE.contains(&number) => Some(Generation::Ampere),
            _ if Self::HOPPER.contains(&number) => Some(Generation::Hopper),
            _ => None,
        }
    }

    /// Whether launches may begin before the one before them is complete.
    pub fn has_overlap(self) -> bool {
        self == Generation::Hopper
    }

    /// Whether this is what kernels begin with: the stack pointer, from constant bank 0 into `R1`. Nothing else is in a
    /// register then, which is why a prologue may use them all.
    pub fn is_beginning(self, word: Word) -> bool {
        match self {
            // IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] and MOV R1, c[0x0][0x28]
            Generation::Ampere => matches!(word[0], 0x0000_0a00_ff01_7624 | 0x0000_0a00_0001_7a02),
            // LDC R1, c[0x0][0x28], and with 0x37c from sm_100 on.
            Generation::Hopper => matches!(word[0], 0x0000_0a00_ff01_7b82 | 0x0000_df00_ff01_7b82),
        }
    }

    /// A jump from the instruction at byte `from` to the one at `to`.
    pub fn branch(self, from: u64, to: u64) -> Word {
        let distance = to.wrapping_sub(from + WORD_BYTES);
        match self {
            // A field of 50 bits, in bytes, from bit 32 on.
            Generation::Ampere => {
                [BRANCH[0] | distance << 32, BRANCH[1] | (distance >> 32) & mask(DISTANCE_BITS - 32)]
            }
            // In units of four bytes: the lowest 8 bits apart, at bit 16, the rest from bit 34 on.
            Generation::Hopper => {
                let units = ((distance as i64) >> 2) as u64;
                let rest = units >> 8;
                [BRANCH[0] | (units & 0xff) << 16 | rest << 34, BRANCH[1] | (rest >> 30) & mask(18)]
            }
        }
    }

    /// Where the jump at byte `from` goes, if it is a jump to a fixed place.
    pub fn branch_target(self, from: u64, word: Word) -> Option<u64> {
        let distance = match (self, opcode_of(word)) {
            (Generation::Ampere, opcode::BRA) => {
                sign_extend(word[0] >> 32 | (word[1] & mask(18)) << 32, DISTANCE_BITS)
            }
            (Generation::Hopper, opcode::BRA | opcode::BRA_UNIFORM) => {
                let rest = word[0] >> 34 | (word[1] & mask(18)) << 30;
                sign_extend((word[0] >> 16) & 0xff | rest << 8, 56) << 2
            }
            _ => return None,
        };
        Some((from + WORD_BYTES).wrapping_add_signed(distance))
    }
}

/// `BRA` to the next instruction, as ptxas schedules an unconditional jump.
const BRANCH: Word = [0x7947, 0x000f_ea00_0380_0000];
/// Width of the distance of a jump before `sm_90`.
const DISTANCE_BITS: u32 = 50;

const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

const fn sign_extend(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

/// The instruction, told to wait until all that is under way in its warp has arrived.
pub const fn waiting_for_all(word: Word) -> Word {
    [word[0], word[1] | 0x3f << 52]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where ptxas put a jump, where it goes, and its words but for the schedule and the predicate.
    const SEEN: [(Generation, u64, u64, Word); 6] = [
        (Generation::Ampere, 0x90, 0x220, [0x0000_0180_0000_0947, 0x000f_f200_0380_0000]),
        (Generation::Ampere, 0x620, 0x4e0, [0xffff_feb0_0000_2947, 0x000f_ea00_0383_ffff]),
        (Generation::Ampere, 0x7f0, 0x7f0, [0xffff_fff0_0000_7947, 0x000f_c000_0383_ffff]),
        (Generation::Hopper, 0xb0, 0x240, [0x0000_0000_0060_0947, 0x000f_f000_0380_0000]),
        (Generation::Hopper, 0x210, 0x8f0, [0x0000_0004_00b4_1947, 0x003f_d800_0380_0000]),
        (Generation::Hopper, 0x7b0, 0x670, [0xffff_fffc_00ac_2947, 0x000f_ea00_0383_ffff]),
    ];

    #[test]
    fn jumps_are_those_of_the_assembler() {
        let bare = |word: Word| [word[0] | 0x7000, word[1] & mask(41)];
        for (generation, from, to, word) in SEEN {
            assert_eq!(bare(generation.branch(from, to)), bare(word), "{generation:?} {from:#x}");
        }
    }

    #[test]
    fn jumps_are_read_as_they_are_written() {
        for (generation, from, to, word) in SEEN {
            assert_eq!(generation.branch_target(from, word), Some(to), "{generation:?} {from:#x}");
        }
        for generation in [Generation::Ampere, Generation::Hopper] {
            for (from, to) in [(0, 0x20_0000), (0x1234_5670, 0x10), (0x80, 0x90)] {
                assert_eq!(generation.branch_target(from, generation.branch(from, to)), Some(to));
            }
        }
    }

    #[test]
    fn only_known_architectures_have_a_generation() {
        assert_eq!(Generation::of(75), None);
        assert_eq!(Generation::of(86), Some(Generation::Ampere));
        assert_eq!(Generation::of(90), Some(Generation::Hopper));
        assert_eq!(Generation::of(120), Some(Generation::Hopper));
    }
}
