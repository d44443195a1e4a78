//! The constant banks that all kernels of a file share.

use super::{CONSTANTS, Reach, function, named};
use crate::machine::constant::{Place, Read};
use cubin::File;
use std::ops::Range;

/// The bank of addresses.
const ADDRESSES: &str = ".nv.constant4";
const SLOT_BYTES: u64 = 8;

pub(super) struct Banks {
    /// Slots of bank 4 that matter, in order, no two at the same place.
    slots: Vec<Slot>,
    /// Where variables lie in bank 3, in order, without overlaps.
    constants: Vec<Range<u64>>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    offset: u64,
    reach: Reach,
    /// The section of the function whose address it holds.
    function: Option<usize>,
}

impl Banks {
    pub fn read(file: &File<'_>) -> Banks {
        let addresses = file.find(ADDRESSES);
        let relocations = addresses.into_iter().flat_map(|section| file.relocations_of(section));
        let slots = relocations.filter_map(|relocation| {
            let symbol = file.symbols().get(relocation.symbol)?;
            let (reach, function) = (named(file, symbol), function(file, symbol));
            let matters = reach != Reach::default() || function.is_some();
            matters.then_some(Slot { offset: relocation.offset, reach, function })
        });
        let constants = file.find(CONSTANTS);
        let variables = file.symbols().iter().filter(|symbol| {
            let inside = Some(symbol.section) == constants && symbol.is_object();
            inside && named(file, symbol).variables
        });
        let constants = variables.map(|symbol| symbol.value..symbol.value.saturating_add(symbol.size));
        Banks { slots: distinct(slots.collect()), constants: united(constants.collect()) }
    }

    /// Whether there is nothing in them that matters, as in most files.
    pub fn are_harmless(&self) -> bool {
        self.slots.is_empty() && self.constants.is_empty()
    }

    /// What these instructions reach through the banks. `call` is told the sections of functions.
    pub fn reached_by(&self, text: &[u8], mut call: impl FnMut(usize)) -> Reach {
        let mut reach = Reach::default();
        let mut anywhere = false;
        let mut touch = |reach: &mut Reach, slots: &[Slot]| {
            slots.iter().for_each(|slot| *reach |= slot.reach);
            slots.iter().filter_map(|slot| slot.function).for_each(&mut call);
        };
        for (index, word) in text.chunks_exact(16).map(low).enumerate() {
            match Read::of(word) {
                Some(Read { bank: 3, place }) => reach.variables |= self.has_variable(place),
                Some(Read { bank: 4, place }) => match offset(text, index, place) {
                    Some(offset) => touch(&mut reach, self.slots_at(offset)),
                    None => anywhere = true,
                },
                _ => {}
            }
        }
        if anywhere {
            touch(&mut reach, &self.slots);
        }
        reach
    }

    /// Whether there is a variable at that place of bank 3; behind an index, wherever it is.
    fn has_variable(&self, place: Place) -> bool {
        match place {
            Place::Fixed(offset) => {
                let behind = self.constants.partition_point(|range| range.start <= offset);
                self.constants[..behind].last().is_some_and(|range| offset < range.end)
            }
            Place::Indexed { .. } => !self.constants.is_empty(),
        }
    }

    /// The slots that have the byte at `offset`.
    fn slots_at(&self, offset: u64) -> &[Slot] {
        let first = self.slots.partition_point(|slot| slot.offset.saturating_add(SLOT_BYTES) <= offset);
        let behind = self.slots.partition_point(|slot| slot.offset <= offset);
        &self.slots[first..behind]
    }
}

/// Slots in order. Where two symbols are to fill in the same one, it may hold anything.
fn distinct(mut slots: Vec<Slot>) -> Vec<Slot> {
    slots.sort_unstable_by_key(|slot| slot.offset);
    slots.dedup_by(|later, first| {
        let same = later.offset == first.offset;
        first.reach.variables |= same;
        same
    });
    slots
}

/// The same bytes as ranges in order that do not overlap.
fn united(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|later, first| {
        let touching = later.start <= first.end;
        if touching {
            first.end = first.end.max(later.end);
        }
        touching
    });
    ranges
}

/// How far back an index is looked for.
const NEAR: usize = 256;

/// Which byte of bank 4 instruction `index` reads. Behind a register compilers read it only to call a function through
/// its slot, and they put the slot's number into the register a few instructions earlier.
fn offset(text: &[u8], index: usize, place: Place) -> Option<u64> {
    let (register, offset) = match place {
        Place::Fixed(offset) => return Some(offset),
        Place::Indexed { register, offset } => (register, offset),
    };
    let before = text[..index * 16].rchunks_exact(16).take(NEAR).map(low);
    let moves = before.filter(|word| (word >> 16) & 0xff == register);
    // MOV and IMAD.MOV, of an immediate.
    let mut moves = moves.filter(|word| matches!(word & 0xffff, 0x7802 | 0x7424));
    moves.next().map(|word| (word >> 32) + offset)
}

fn low(instruction: &[u8]) -> u64 {
    u64::from_le_bytes(*instruction.first_chunk().expect("an instruction has 16 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIABLE: Reach = Reach { variables: true, launches: false, functions: false, grid: false };
    const NONE: Reach = Reach { variables: false, ..VARIABLE };
    /// ULDC.64 UR4, c[0x4][0x8]
    const SECOND_SLOT: u64 = 0x0100_0200_0004_7ab9;
    /// MOV R0, 0x8 and MOV R0, 0x0
    const INDEX_8: u64 = 0x0000_0008_0000_7802;
    const INDEX_0: u64 = 0x0000_0000_0000_7802;
    /// LDC.64 R8, c[0x4][R0]
    const INDEXED: u64 = 0x0100_0000_0008_7b82;
    /// LDC R5, c[0x3][0x20] and LDC R5, c[0x3][R4+0x20]
    const CONSTANT: u64 = 0x00c0_0800_ff05_7b82;
    const CONSTANT_INDEXED: u64 = 0x00c0_0800_0405_7b82;

    fn text(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|low| [*low, 0]).flat_map(u64::to_le_bytes).collect()
    }

    /// A function in the first slot, a variable in the second.
    fn banks(constants: &[Range<u64>]) -> Banks {
        let function = Slot { offset: 0, reach: NONE, function: Some(7) };
        let variable = Slot { offset: 8, reach: VARIABLE, function: None };
        Banks { slots: distinct(vec![variable, function]), constants: united(constants.to_vec()) }
    }

    fn reached(banks: &Banks, words: &[u64]) -> (Reach, Vec<usize>) {
        let mut calls = Vec::new();
        let reach = banks.reached_by(&text(words), |called| calls.push(called));
        (reach, calls)
    }

    #[test]
    fn a_slot_leads_to_what_it_holds() {
        let banks = banks(&[]);
        assert_eq!(reached(&banks, &[SECOND_SLOT]), (VARIABLE, vec![]));
        assert_eq!(reached(&banks, &[INDEX_8, INDEX_0, INDEXED]), (NONE, vec![7]));
        assert_eq!(reached(&banks, &[INDEX_0, INDEX_8, INDEXED]), (VARIABLE, vec![]));
        assert_eq!(reached(&banks, &[INDEX_0]), (NONE, vec![]));
    }

    #[test]
    fn an_unknown_slot_may_be_any() {
        assert_eq!(reached(&banks(&[]), &[INDEXED]), (VARIABLE, vec![7]));
    }

    #[test]
    fn a_slot_that_is_filled_in_twice_may_hold_anything() {
        let function = |section| Slot { offset: 16, reach: NONE, function: Some(section) };
        let slots = distinct(vec![function(1), function(2)]);
        assert_eq!(slots.len(), 1);
        assert!(slots[0].reach.variables);
    }

    #[test]
    fn constants_are_variables_where_they_lie() {
        for (range, fixed) in [(0..0x20, false), (0x20..0x24, true), (0..0x21, true), (0x24..0x30, false)] {
            let banks = banks(&[range.clone(), 0x100..0x200]);
            assert_eq!(reached(&banks, &[CONSTANT]).0.variables, fixed, "{range:?}");
            assert!(reached(&banks, &[CONSTANT_INDEXED]).0.variables);
        }
        assert_eq!(reached(&banks(&[]), &[CONSTANT_INDEXED]), (NONE, vec![]));
    }
}
