//! What a kernel's instructions say about how its blocks depend on each other.
//!
//! Blocks that wait for each other do so by asking, again and again, for a word that another block will write. To see
//! such a write at all the question must be *strong*: a load that passes the caches of its SM by, or an atomic operation
//! whose result is used. So a strong question inside a loop is the sign of waiting, and nothing else can be. It is not
//! proof: a counter from which blocks draw their work looks the same. Such kernels lose nothing but a little time under
//! the ordered rule; a kernel that waits and was taken for one that does not would hang when it is cut.
//!
//! Where control flow cannot be followed (functions that are called, jumps by a register) every question counts as asked
//! in a loop.

use super::constant::{Place, Read};
use super::encoding::{Generation, WORD_BYTES, Word, opcode, opcode_of, operation, operation_of};

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// A block may wait for another one.
    pub may_wait: bool,
    /// It reaches for the memory in which a whole grid synchronises.
    pub synchronises_grid: bool,
}

/// Reads off the instructions of one section. Time is linear in their number, but for a logarithm of the loops.
pub fn facts(generation: Generation, text: &[u8]) -> Facts {
    let mut seen = Seen::default();
    let (words, _) = text.as_chunks::<16>();
    for (index, bytes) in words.iter().enumerate() {
        let (low, high) = bytes.split_at(8);
        let half = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("half of 16 bytes"));
        seen.look(generation, index as u64 * WORD_BYTES, [half(low), half(high)]);
    }
    seen.conclude(generation)
}

/// What is remembered on the way through the instructions.
#[derive(Default)]
struct Seen {
    /// Where strong questions are asked.
    questions: Vec<u64>,
    /// Where functions are called.
    calls: Vec<u64>,
    /// From where to where instructions may be repeated.
    loops: Vec<(u64, u64)>,
    /// A jump or call to a place that only a register knows.
    lost: bool,
    workspace: Workspace,
}

impl Seen {
    fn look(&mut self, generation: Generation, at: u64, word: Word) {
        match operation_of(word) {
            operation::LDG | operation::LD if is_strong(word) => self.questions.push(at),
            operation::ATOM
            | operation::ATOM_CAS
            | operation::ATOM_FLOAT
            | operation::ATOMG
            | operation::ATOMG_CAS
            | operation::ATOMG_FLOAT
                if is_strong(word) && has_result(word) =>
            {
                self.questions.push(at);
            }
            operation::BRA => {
                let back = generation.branch_target(at, word).filter(|target| *target <= at);
                self.loops.extend(back.map(|target| (target, at)));
            }
            operation::CALL_REL if opcode_of(word) == opcode::CALL_REL => self.calls.push(at),
            operation::CALL_REL | operation::CALL_ABS | operation::BRX | operation::JMX | operation::BRXU => {
                self.lost = true
            }
            _ => {}
        }
        if let Some(read) = Read::of(word[0]) {
            self.workspace.look(generation, read);
        }
    }

    fn conclude(mut self, generation: Generation) -> Facts {
        let anywhere = !self.questions.is_empty();
        self.loops.sort_unstable();
        let repeated = |places: &[u64], loops: &[(u64, u64)]| encloses_any(loops, places);
        let in_loop = anywhere && repeated(&self.questions, &self.loops);
        let called_in_loop = anywhere && repeated(&self.calls, &self.loops);
        Facts {
            may_wait: in_loop || called_in_loop || anywhere && self.lost,
            synchronises_grid: self.workspace.both(generation),
        }
    }
}

/// Whether one of the loops, sorted by where they begin, has one of the places in it. Places are in order.
fn encloses_any(loops: &[(u64, u64)], places: &[u64]) -> bool {
    let mut begun = loops.iter().peekable();
    let mut reach = None;
    places.iter().any(|place| {
        while let Some(&(_, end)) = begun.next_if(|(start, _)| start <= place) {
            reach = reach.max(Some(end));
        }
        reach >= Some(*place)
    })
}

/// In four bits: whether others may see or have made a change, and who.
fn is_strong(word: Word) -> bool {
    const WEAK: u64 = 0;
    const CONSTANT: u64 = 4;
    const WITHIN_BLOCK: u64 = 5;
    !matches!(word[1] >> 13 & 0xf, WEAK | CONSTANT | WITHIN_BLOCK)
}

/// Whether the result goes to a register, rather than to the one that is always zero.
fn has_result(word: Word) -> bool {
    word[0] >> 16 & 0xff != 0xff
}

/// The two halves of an address that the driver gives to cooperative launches. PTX calls them `%envreg1` and `%envreg2`.
#[derive(Clone, Copy, Default)]
struct Workspace {
    /// By offset in constant bank 0.
    fixed: [bool; 4],
    /// By offset behind a register: from `sm_100` on there is a set for each size of clusters.
    indexed: [bool; 2],
}

impl Workspace {
    const FIXED: [u64; 4] = [0x8c, 0x90, 0x44, 0x48];
    const INDEXED: [u64; 2] = [0x254, 0x258];

    fn look(&mut self, generation: Generation, read: Read) {
        if read.bank != 0 {
            return;
        }
        let (seen, offsets, offset): (&mut [bool], &[u64], u64) = match read.place {
            Place::Fixed(offset) => (&mut self.fixed, &Self::FIXED, offset),
            Place::Indexed { offset, .. } if generation == Generation::Hopper => {
                (&mut self.indexed, &Self::INDEXED, offset)
            }
            Place::Indexed { .. } => return,
        };
        for (seen, known) in seen.iter_mut().zip(offsets) {
            *seen |= *known == offset;
        }
    }

    fn both(self, generation: Generation) -> bool {
        let [a, b, c, d] = self.fixed;
        match generation {
            Generation::Ampere => a && b,
            Generation::Hopper => c && d || self.indexed == [true, true],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_enclose_what_lies_between_their_ends() {
        let loops = [(10, 20), (12, 15), (40, 40)];
        assert!(encloses_any(&loops, &[5, 18]));
        assert!(encloses_any(&loops, &[10]) && encloses_any(&loops, &[20]) && encloses_any(&loops, &[40]));
        assert!(!encloses_any(&loops, &[5, 9, 21, 39, 41]));
        assert!(!encloses_any(&[], &[1]) && !encloses_any(&loops, &[]));
    }

    #[test]
    fn nothing_follows_from_nothing() {
        assert_eq!(facts(Generation::Hopper, &[]), Facts::default());
        assert_eq!(facts(Generation::Ampere, &[0xff; 15]), Facts::default());
    }
}
