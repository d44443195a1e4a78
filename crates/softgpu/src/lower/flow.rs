//! Basic blocks, and the loops among them that may only wait for a clock.

use std::collections::HashMap;
use std::ops::Range;

use super::live::{Liveness, Watch};
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

/// The backward branches that may close a loop which only waits for a clock, with the loop's first
/// instruction.
pub(super) fn candidates(code: &[Raw], labels: &[usize], blocks: &Blocks) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let predecessors = blocks.predecessors();
    for (end, raw) in code.iter().enumerate() {
        let Control::Jumps(label) = raw.control else { continue };
        let head = labels[label as usize];
        if head <= end
            && found.len() < MOST_LOOPS
            && waits_only(&code[head..=end])
            && closed(blocks, &predecessors, head..end + 1)
        {
            found.push((end, head));
        }
    }
    found
}

/// What those loops write, and where it must not be live.
pub(super) fn watched(code: &[Raw], blocks: &Blocks, candidates: &[(usize, usize)]) -> Vec<Watch> {
    let mut watched: Vec<Watch> = Vec::new();
    for &(end, head) in candidates {
        let block = blocks.at(head);
        watched.extend(code[head..=end].iter().flat_map(Raw::definitions).map(|v| (v, block)));
    }
    watched.sort_unstable();
    watched.dedup();
    watched
}

/// Those of the candidates that take nothing along from one turn to the next.
pub(super) fn clock_loops(
    code: &[Raw],
    blocks: &Blocks,
    candidates: &[(usize, usize)],
    liveness: &Liveness,
) -> HashMap<usize, usize> {
    let idle = |&&(end, head): &&(usize, usize)| {
        let block = blocks.at(head);
        let mut written = code[head..=end].iter().flat_map(Raw::definitions);
        !written.any(|v| liveness.entering.contains(&(v, block)))
    };
    candidates.iter().filter(idle).copied().collect()
}

/// The longest loop that is looked at, in instructions and in operands of calls; longer ones are not idle.
const MOST_LENGTH: usize = 256;
const MOST_OPERANDS: usize = 1024;
/// Loops looked at in a function.
const MOST_LOOPS: usize = 256;

fn waits_only(body: &[Raw]) -> bool {
    body.len() <= MOST_LENGTH
        && body.iter().any(|raw| matches!(raw.effect, Effect::Clock | Effect::Call))
        && body.iter().all(|raw| raw.effect != Effect::Other)
        && body.iter().map(|raw| raw.list.len()).sum::<usize>() <= MOST_OPERANDS
}

/// Nobody jumps into the middle of the loop. A loop is made of whole blocks: a label begins it, a branch
/// ends it.
fn closed(blocks: &Blocks, predecessors: &[Vec<usize>], range: Range<usize>) -> bool {
    let (first, last) = (blocks.at(range.start), blocks.at(range.end - 1));
    predecessors[first + 1..=last].iter().flatten().all(|before| (first..=last).contains(before))
}
