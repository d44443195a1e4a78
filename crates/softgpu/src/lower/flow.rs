//! Basic blocks, and the loops among them that may only wait for a clock.

use std::collections::HashMap;
use std::ops::Range;

use super::allocate::Liveness;
use super::raw::{Control, Effect, Raw};

/// The blocks of a function: where each begins, and where control goes from it.
pub(super) struct Blocks {
    pub starts: Vec<usize>,
    pub successors: Vec<Vec<usize>>,
    length: usize,
}

impl Blocks {
    /// `labels` maps label numbers to instruction indices, all of them within the code.
    pub(super) fn of(code: &[Raw], labels: &[usize]) -> Blocks {
        let mut leads = vec![false; code.len()];
        if let Some(first) = leads.first_mut() {
            *first = true;
        }
        for (index, raw) in code.iter().enumerate() {
            match &raw.control {
                Control::Falls => continue,
                Control::Jumps(label) => leads[labels[*label as usize]] = true,
                Control::Table(targets) => {
                    targets.iter().for_each(|label| leads[labels[*label as usize]] = true)
                }
                Control::Meets => leads[index] = true,
                Control::Ends => {}
            }
            if let Some(next) = leads.get_mut(index + 1) {
                *next = true;
            }
        }
        let starts: Vec<usize> = (0..code.len()).filter(|index| leads[*index]).collect();
        let mut blocks = Blocks { starts, successors: Vec::new(), length: code.len() };
        blocks.successors = (0..blocks.starts.len()).map(|block| blocks.after(block, code, labels)).collect();
        blocks
    }

    fn after(&self, block: usize, code: &[Raw], labels: &[usize]) -> Vec<usize> {
        let last = &code[self.range(block).end - 1];
        let mut next: Vec<usize> = match &last.control {
            Control::Jumps(label) => vec![self.at(labels[*label as usize])],
            Control::Table(targets) => targets.iter().map(|label| self.at(labels[*label as usize])).collect(),
            _ => Vec::new(),
        };
        let falls = matches!(last.control, Control::Falls | Control::Meets) || last.guard.is_some();
        if falls && block + 1 < self.starts.len() {
            next.push(block + 1);
        }
        next.sort_unstable();
        next.dedup();
        next
    }

    pub(super) fn range(&self, block: usize) -> Range<usize> {
        self.starts[block]..self.starts.get(block + 1).copied().unwrap_or(self.length)
    }

    /// The block an instruction is in.
    pub(super) fn at(&self, index: usize) -> usize {
        self.starts.partition_point(|start| *start <= index) - 1
    }

    pub(super) fn predecessors(&self) -> Vec<Vec<usize>> {
        let mut predecessors = vec![Vec::new(); self.starts.len()];
        for (block, next) in self.successors.iter().enumerate() {
            next.iter().for_each(|successor| predecessors[*successor].push(block));
        }
        predecessors
    }
}

/// The backward branches that close a loop which may only wait for a clock, with the loop's first instruction.
pub(super) fn clock_loops(
    code: &[Raw],
    labels: &[usize],
    blocks: &Blocks,
    liveness: &Liveness,
) -> HashMap<usize, usize> {
    let mut found = HashMap::new();
    let mut looked = 0;
    for (end, raw) in code.iter().enumerate() {
        let Control::Jumps(label) = raw.control else { continue };
        let head = labels[label as usize];
        if head > end || looked > MOST_LOOPS || !waits_only(code, head..end + 1) {
            continue;
        }
        looked += 1;
        if closed(code, labels, head..end + 1) {
            let entering = &liveness.entering[blocks.at(head)];
            let mut written = code[head..=end].iter().flat_map(Raw::definitions);
            if !written.any(|v| entering.contains(v)) {
                found.insert(end, head);
            }
        }
    }
    found
}

/// The longest loop that is looked at; longer ones are not idle.
const MOST_LENGTH: usize = 256;
/// Loops looked at in a function; each look goes over all of it.
const MOST_LOOPS: usize = 256;

fn waits_only(code: &[Raw], range: Range<usize>) -> bool {
    let body = &code[range];
    let time = body.iter().any(|raw| matches!(raw.effect, Effect::Clock | Effect::Call));
    time && body.len() <= MOST_LENGTH && body.iter().all(|raw| raw.effect != Effect::Other)
}

/// Nobody jumps into the middle of the loop.
fn closed(code: &[Raw], labels: &[usize], range: Range<usize>) -> bool {
    code.iter().enumerate().filter(|(index, _)| !range.contains(index)).all(|(_, raw)| {
        let outside = |label: &u32| {
            let target = labels[*label as usize];
            target == range.start || !range.contains(&target)
        };
        match &raw.control {
            Control::Jumps(label) => outside(label),
            Control::Table(targets) => targets.iter().all(outside),
            _ => true,
        }
    })
}
