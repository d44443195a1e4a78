use super::*;
use crate::machine::encoding::{WORD_BYTES, opcode, opcode_of};

const ARCHITECTURES: [u32; 9] = [80, 86, 88, 89, 90, 100, 103, 120, 121];

fn all() -> impl Iterator<Item = (u32, &'static Prologue)> {
    ARCHITECTURES.into_iter().map(|number| (number, for_architecture(number).expect("it has one")))
}

#[test]
fn architectures_that_were_not_looked_at_have_none() {
    for number in [0, 75, 87, 101, 110, 130] {
        assert!(for_architecture(number).is_none(), "sm_{number}");
    }
}

#[test]
fn a_prologue_belongs_to_the_generation_of_its_architecture() {
    for (number, prologue) in all() {
        assert_eq!(Generation::of(number), Some(prologue.generation));
    }
}

/// Whoever puts it into a kernel replaces the two instructions at its end, and lists its exits.
#[test]
fn ends_and_exits_are_where_they_are_said_to_be() {
    for (number, prologue) in all() {
        let opcodes: Vec<u64> = prologue.words.iter().copied().map(opcode_of).collect();
        assert_eq!(opcodes[prologue.end..][..2], [opcode::NANOSLEEP, opcode::EXIT], "sm_{number}");
        let exits = (0..opcodes.len()).filter(|&at| opcodes[at] == opcode::EXIT && at != prologue.end + 1);
        assert!(exits.eq(prologue.exits.iter().map(|&at| usize::from(at))), "sm_{number}");
        let sleeps = opcodes.iter().filter(|&&opcode| opcode == opcode::NANOSLEEP);
        assert_eq!(sleeps.count(), 2, "sm_{number}: the second end has become a jump, the third one sleeps");
    }
}

#[test]
fn jumps_stay_inside_and_one_leads_to_the_end() {
    for (number, prologue) in all() {
        let targets: Vec<u64> = jumps(prologue).map(|(_, to)| to / WORD_BYTES).collect();
        assert!(targets.iter().all(|&to| to < prologue.len() as u64), "sm_{number}");
        assert!(targets.contains(&(prologue.end as u64)), "sm_{number}");
    }
}

fn jumps(prologue: &Prologue) -> impl Iterator<Item = (usize, u64)> {
    prologue.words.iter().enumerate().filter_map(|(at, &word)| {
        Some((at, prologue.generation.branch_target(at as u64 * WORD_BYTES, word)?))
    })
}

/// Behind the barrier the kernel's own code is next, and must find its warps whole: only the answer of the barrier,
/// which is the same for all threads, may be looked at.
#[test]
fn nothing_diverges_between_the_barrier_and_the_kernel() {
    let arrivals = |prologue: &Prologue| {
        let back = jumps(prologue).filter(|&(_, to)| to == prologue.end as u64 * WORD_BYTES);
        back.map(|(at, _)| at).chain([prologue.end]).collect::<Vec<_>>()
    };
    for (number, prologue) in all() {
        for arrival in arrivals(prologue) {
            let before = prologue.words[..arrival].iter().rev().copied().map(opcode_of);
            let since: Vec<u64> = before.take_while(|&opcode| opcode != opcode::BAR).collect();
            assert_eq!(since, [opcode::BRA, opcode::B2R], "sm_{number} before instruction {arrival}");
        }
    }
}

#[test]
fn only_reads_of_control_words_depend_on_the_parameters() {
    for (number, prologue) in all() {
        let near = prologue.words(PAD).expect("it is kept for this");
        assert_eq!(near, prologue.words);
        let far = prologue.words(PAD + 0x100).expect("there is room");
        let differing: Vec<usize> = (0..near.len()).filter(|&at| near[at] != far[at]).collect();
        let reads: Vec<usize> = prologue.control_reads.iter().map(|read| usize::from(read.word)).collect();
        assert_eq!(differing, reads, "sm_{number}");
    }
}

#[test]
fn control_words_are_looked_for_nowhere_else() {
    let prologue = for_architecture(90).expect("it has one");
    assert!(prologue.words(12).is_none(), "not aligned");
    assert!(prologue.words(0).is_none(), "a kernel without parameters");
    assert!(prologue.words(32728).is_some(), "the last place");
    assert!(prologue.words(32736).is_none());
    assert!(prologue.words(u32::MAX - 7).is_none());
}
