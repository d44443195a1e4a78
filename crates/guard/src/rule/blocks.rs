//! The blocks of one launch, cut and relaunched, in every order.

use super::search::{Model, breaks, holds};
use super::{Attempt, Block, Memory, Outcome};
use crate::Rule;

const SERIAL: u32 = 7;

/// What is left in memory by a launch before: its serial, everywhere.
const EARLIER: u32 = 3;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Launch {
    attempt: Attempt,
    memory: Memory,
    /// Blocks in one cluster.
    cluster: u32,
    blocks: Vec<Block>,
    runs: Vec<u8>,
    turned_away: bool,
    /// How often the stop word may still be written.
    stops: u8,
    /// How many relaunches are still to come, needed or not.
    relaunches: u8,
    /// Whether the relaunch cleared its cell first.
    clears: bool,
}

impl Launch {
    fn new(rule: Rule, blocks: u32, cluster: u32, batch: u32) -> Launch {
        let attempt = Attempt { serial: SERIAL, rule, again: false, second_cell: false, batch };
        let leftover = u64::from(EARLIER) << 32 | 1 << 31 | 1;
        let memory =
            Memory { stop: 0, away: 0, marks: vec![EARLIER; blocks as usize], cells: [leftover, leftover] };
        let count = blocks as usize;
        Launch {
            attempt,
            memory,
            cluster,
            blocks: entrants(count, cluster),
            runs: vec![0; count],
            turned_away: false,
            stops: 3,
            relaunches: 3,
            clears: true,
        }
    }

    fn has_run(&self, block: usize) -> bool {
        let begun = self.blocks[block].outcome() == Some(Outcome::Run);
        self.runs[block] > 0 || begun
    }

    fn idle(&self) -> bool {
        self.blocks.iter().all(|block| block.outcome().is_some())
    }

    /// The attempt is over; its blocks are counted.
    fn counted(&self) -> Launch {
        let mut next = self.clone();
        for (runs, block) in next.runs.iter_mut().zip(&self.blocks) {
            *runs += u8::from(block.outcome() == Some(Outcome::Run));
        }
        next
    }

    fn relaunched(&self) -> Launch {
        let mut next = self.counted();
        next.attempt = self.attempt.next();
        next.blocks = entrants(self.blocks.len(), self.cluster);
        next.memory.away = 0;
        next.turned_away = false;
        if self.clears {
            next.memory.cells[usize::from(next.attempt.second_cell)] = 0;
        }
        // The last has nobody to stop it.
        next.relaunches -= 1;
        if next.relaunches == 0 {
            next.memory.stop = 0;
            next.stops = 0;
        }
        next
    }
}

fn entrants(count: usize, cluster: u32) -> Vec<Block> {
    (0..count).map(|mark| Block::new(mark as u32 / cluster, mark)).collect()
}

impl Model for Launch {
    fn next(&self) -> Vec<Launch> {
        let mut all = Vec::new();
        for (place, block) in self.blocks.iter().enumerate() {
            for access in block.choices(self.attempt) {
                let mut next = self.clone();
                next.blocks[place].step(access, self.attempt, &mut next.memory);
                next.turned_away |= next.blocks[place].outcome() == Some(Outcome::TurnedAway);
                all.push(next);
            }
        }
        if self.stops > 0 && !self.idle() {
            let mut next = self.clone();
            next.memory.stop = 1 - self.memory.stop;
            next.stops -= 1;
            all.push(next);
        }
        if self.idle() && self.relaunches > 0 {
            all.push(self.relaunched());
        }
        all
    }

    fn fault(&self, ended: bool) -> Option<String> {
        let counted = self.counted();
        if counted.runs.iter().any(|&runs| runs > 1) {
            return Some("a block ran twice".into());
        }
        if !self.idle() {
            return None;
        }
        if self.turned_away != (self.memory.away != 0) {
            return Some("`away` does not tell whether a block was turned away".into());
        }
        let ran: Vec<bool> = (0..self.blocks.len()).map(|block| self.has_run(block)).collect();
        if self.attempt.rule == Rule::Ordered && !ran.is_sorted_by(|a, b| a >= b) {
            return Some("what ran is no prefix".into());
        }
        let split =
            ran.chunks(self.cluster as usize).any(|cluster| cluster.iter().any(|&block| block != cluster[0]));
        if self.cluster > 1 && split {
            return Some("a cluster was split".into());
        }
        if self.memory.away == 0 && ran.contains(&false) {
            return Some("a block was lost".into());
        }
        (ended && ran.contains(&false)).then(|| "a block never ran".into())
    }
}

#[test]
fn plain_blocks_run_exactly_once() {
    assert!(holds(Launch::new(Rule::Plain, 3, 1, 1)) > 1000);
}

#[test]
fn ordered_blocks_run_exactly_once_and_in_prefixes() {
    for batch in [1, 2, 32] {
        assert!(holds(Launch::new(Rule::Ordered, 3, 1, batch)) > 1000);
    }
}

#[test]
fn blocks_of_a_cluster_run_or_leave_together() {
    for batch in [1, 2] {
        let pairs = Launch { stops: 2, relaunches: 2, ..Launch::new(Rule::Ordered, 4, 2, batch) };
        assert!(holds(pairs) > 1000);
    }
}

#[test]
fn the_plain_rule_splits_clusters() {
    assert_eq!(breaks(Launch::new(Rule::Plain, 4, 2, 1)), "a cluster was split");
}

#[test]
fn a_cell_that_is_not_cleared_keeps_a_stop_of_long_ago() {
    let stale = Launch { clears: false, relaunches: 4, ..Launch::new(Rule::Ordered, 2, 1, 1) };
    breaks(stale);
}

#[test]
fn a_launch_that_is_whole_may_be_relaunched_as_often_as_one_likes() {
    for rule in [Rule::Plain, Rule::Ordered] {
        let calm = Launch { stops: 2, relaunches: 5, ..Launch::new(rule, 2, 1, 1) };
        holds(calm);
    }
}
