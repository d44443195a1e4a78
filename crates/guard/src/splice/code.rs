//! Instructions with a prologue behind them.

use crate::machine::encoding::{WORD_BYTES, Word, opcode, opcode_of, waiting_for_all};
use crate::prologue::Prologue;
use crate::verdict::Reason;

/// Instructions are fetched in lines of so many bytes, and sections of them begin with one.
const LINE: usize = 128;
const WORD: usize = WORD_BYTES as usize;

/// `NOP`, as compilers fill lines with it.
const NOP: Word = [0x7918, 0x000f_c000_0000_0000];

/// A kernel's instructions with the prologue behind them.
pub(super) struct Spliced {
    pub text: Vec<u8>,
    /// Where the prologue's `EXIT`s are.
    pub exits: Vec<u32>,
}

/// The first instruction of a kernel.
pub(super) fn first(text: &[u8]) -> Option<Word> {
    word(text, 0)
}

/// Puts `prologue` behind `text`, for control words that lie `control_offset` bytes behind the first parameter.
pub(super) fn splice(text: &[u8], prologue: &Prologue, control_offset: u32) -> Result<Spliced, Reason> {
    let displaced = first(text).filter(|_| text.len().is_multiple_of(WORD));
    let displaced = displaced.ok_or(Reason::UnknownBeginning)?;
    let words = prologue.words(control_offset).ok_or(Reason::ParametersTooLarge)?;
    let start = text.len().next_multiple_of(LINE);
    let at = |index: usize| start + index * WORD;
    // Behind the last instruction comes a jump to itself, as behind the last of a kernel.
    let end = at(words.len() + 1).next_multiple_of(LINE);
    // Records say in 32 bits where something is.
    u32::try_from(end).map_err(|_| Reason::UnknownRecords)?;

    let branch = |from: usize, to: usize| prologue.generation.branch(from as u64, to as u64);
    let mut out = Vec::with_capacity(end);
    out.extend_from_slice(text);
    if prologue.generation.has_overlap() {
        hold_back_the_next(&mut out);
    }
    fill(&mut out, start);
    for word in &words {
        append(&mut out, *word);
    }
    append(&mut out, branch(at(words.len()), at(words.len())));
    fill(&mut out, end);
    let last = at(prologue.end);
    put(&mut out, last, waiting_for_all(displaced));
    put(&mut out, last + WORD, branch(last + WORD, WORD));
    put(&mut out, 0, branch(0, start));
    let exits = prologue.exits.iter().map(|&index| at(index.into()) as u32).collect();
    Ok(Spliced { text: out, exits })
}

/// Whether the instructions would let the next launch begin before their own kernel has ended.
pub(super) fn lets_the_next_begin(text: &[u8]) -> bool {
    places(text).any(|at| word(text, at).is_some_and(|word| opcode_of(word) == opcode::PREEXIT))
}

/// A kernel may say, before it has ended, that the next launch can begin. The blocks of that would decide, wait for those that
/// still run, and run in turn, whatever the stop word says by then. So this kernel says nothing, and the next begins when
/// all blocks have ended.
fn hold_back_the_next(text: &mut [u8]) {
    for at in places(text) {
        if let Some([low, high]) = word(text, at).filter(|word| opcode_of(*word) == opcode::PREEXIT) {
            // The predicate stays, and what the scheduler is told.
            put(text, at, [low & !0xfff | opcode::NOP, high]);
        }
    }
}

fn places(text: &[u8]) -> impl Iterator<Item = usize> + use<> {
    (0..text.len()).step_by(WORD)
}

fn fill(out: &mut Vec<u8>, end: usize) {
    while out.len() < end {
        append(out, NOP);
    }
}

fn append(out: &mut Vec<u8>, word: Word) {
    out.extend(word.iter().flat_map(|half| half.to_le_bytes()));
}

fn put(out: &mut [u8], at: usize, word: Word) {
    for (place, half) in out[at..at + WORD].chunks_exact_mut(8).zip(word) {
        place.copy_from_slice(&half.to_le_bytes());
    }
}

fn word(text: &[u8], at: usize) -> Option<Word> {
    let (low, rest) = text.get(at..)?.split_first_chunk()?;
    let high = rest.first_chunk()?;
    Some([u64::from_le_bytes(*low), u64::from_le_bytes(*high)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prologue::for_architecture;

    const BEGINNING: Word = [0x0000_0a00_ff01_7b82, 0x000e_2200_0000_0800];
    const BODY: Word = [0x1234, 0x5678];
    const EXIT: Word = [0x794d, 0];

    fn words(text: &[u8]) -> Vec<Word> {
        (0..text.len()).step_by(WORD).map(|at| word(text, at).expect("it is there")).collect()
    }

    fn text(words: &[Word]) -> Vec<u8> {
        let mut text = Vec::new();
        words.iter().for_each(|word| append(&mut text, *word));
        text
    }

    #[test]
    fn the_kernel_goes_through_its_prologue_and_back() {
        for number in [80, 86, 90, 100, 120] {
            let prologue = for_architecture(number).expect("there is one");
            let spliced = splice(&text(&[BEGINNING, BODY, EXIT]), prologue, 24).expect("it can be done");
            let words = words(&spliced.text);
            let target = |index: usize| {
                let target = prologue.generation.branch_target((index * WORD) as u64, words[index]);
                target.map(|target| target as usize / WORD)
            };
            assert_eq!(target(0), Some(8), "the prologue begins with a line");
            assert_eq!(words[1..3], [BODY, EXIT], "nothing of the kernel moves");
            assert_eq!(words[3..8], [NOP; 5]);
            let end = 8 + prologue.end;
            assert_eq!(words[end], waiting_for_all(BEGINNING), "what was displaced comes last");
            assert_eq!(target(end + 1), Some(1), "and behind it the kernel goes on");
            let behind = 8 + prologue.len();
            assert_eq!(target(behind), Some(behind), "nothing runs on behind the prologue");
            assert!(words[behind + 1..].iter().all(|word| *word == NOP));
            assert!(spliced.text.len().is_multiple_of(LINE));
            assert!(!spliced.exits.is_empty());
            for exit in spliced.exits {
                assert_eq!(words[exit as usize / WORD][0] & 0xfff, 0x94d);
            }
        }
    }

    /// As ptxas 13.0 writes it, without a predicate, with one, and with the opposite of one.
    #[test]
    fn nobody_is_let_begin_before_the_end() {
        const PREEXIT: [Word; 3] = [
            [0x782d, 0x000f_e200_0000_0000],
            [0x082d, 0x000f_f000_0000_0000],
            [0x882d, 0x000f_e200_0000_0000],
        ];
        const INSTEAD: [Word; 3] = [
            [0x7918, 0x000f_e200_0000_0000],
            [0x0918, 0x000f_f000_0000_0000],
            [0x8918, 0x000f_e200_0000_0000],
        ];
        const ACQBULK: Word = [0x782e, 0x000f_e200_0000_0000];
        let kernel = text(&[&[BEGINNING], &PREEXIT[..], &[ACQBULK, EXIT]].concat());
        assert!(lets_the_next_begin(&kernel) && !lets_the_next_begin(&text(&[BEGINNING, ACQBULK, EXIT])));
        for number in [90, 100, 120] {
            let prologue = for_architecture(number).expect("there is one");
            let spliced = splice(&kernel, prologue, 24).expect("it can be done");
            let words = words(&spliced.text);
            assert_eq!(words[1..4], INSTEAD, "sm_{number}");
            assert_eq!(words[4..6], [ACQBULK, EXIT], "sm_{number}");
            assert!(!lets_the_next_begin(&spliced.text), "sm_{number}");
        }
        // Nobody knows what the same bits mean elsewhere.
        let prologue = for_architecture(86).expect("there is one");
        let spliced = splice(&kernel, prologue, 24).expect("it can be done");
        assert_eq!(words(&spliced.text)[1..4], PREEXIT);
    }

    #[test]
    fn what_is_no_list_of_instructions_is_left_alone() {
        let prologue = for_architecture(90).expect("there is one");
        for length in [0, 8, 15, 17, 24] {
            let spliced = splice(&vec![0; length], prologue, 8);
            assert_eq!(spliced.err(), Some(Reason::UnknownBeginning), "{length}");
        }
    }
}
