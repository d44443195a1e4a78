//! Which launches are tried, and what came of it.

use std::ptr;
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};

use guard::{Finding, Rule};

use crate::frames::Frame;
use crate::guard::record::Launch;
use crate::watch::Watch;

/// A kernel is tried with so many grids: the way it is cut depends on them.
const SHAPES: usize = 3;
/// As many as a ledger lists.
const KERNELS: usize = telemetry::KERNELS;

/// A kernel that was tried.
pub struct Page {
    /// Where its frame lies; zero: nobody's.
    frame: AtomicUsize,
    /// A hash of each rule and grid with which it was tried; zero: none.
    shapes: [AtomicU64; SHAPES],
    finding: AtomicU8,
}

impl Page {
    const fn new() -> Page {
        Page {
            frame: AtomicUsize::new(0),
            shapes: [const { AtomicU64::new(0) }; SHAPES],
            finding: AtomicU8::new(0),
        }
    }

    /// Whether a shape is to be tried; who is told so is the one to do it.
    fn take(&self, shape: u64) -> bool {
        for place in &self.shapes {
            match place.compare_exchange(0, shape, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(known) if known == shape => return false,
                Err(_) => {}
            }
        }
        false
    }

    /// There was no trial after all.
    pub fn give_back(&self, launch: &Launch) {
        let shape = shape(launch.rule, launch.grid);
        for place in &self.shapes {
            let _ = place.compare_exchange(shape, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Adds what a trial has shown, here and in the ledger.
    pub fn add(&self, finding: Finding, frame: &'static Frame, watch: &'static Watch) {
        let before = Finding::from_number(self.finding.load(Ordering::Relaxed));
        let sum = before.map_or(finding, |before| before.and(finding)).number();
        self.finding.store(sum, Ordering::Relaxed);
        if let Some(kernel) = frame.learned(watch).and_then(|learned| learned.kernel) {
            kernel.found(sum);
        }
    }
}

static BOOK: [Page; KERNELS] = [const { Page::new() }; KERNELS];

/// The page of a launch that is to be tried; `None`: it was, or it is one too many.
pub fn page(launch: &Launch) -> Option<&'static Page> {
    let frame = ptr::from_ref(launch.frame).addr();
    // Frames lie at least so far apart.
    let first = frame / align_of::<Frame>() % KERNELS;
    let mut pages = BOOK[first..].iter().chain(&BOOK[..first]);
    let page = pages.find(|page| {
        let claim = page.frame.compare_exchange(0, frame, Ordering::Relaxed, Ordering::Relaxed);
        claim.is_ok() || claim == Err(frame)
    })?;
    page.take(shape(launch.rule, launch.grid)).then_some(page)
}

/// Never zero.
fn shape(rule: Rule, grid: [u32; 3]) -> u64 {
    let fold = |hash: u64, side: u32| (hash ^ u64::from(side)).wrapping_mul(0x0100_0000_01b3);
    let start = 0xcbf2_9ce4_8422_2325 ^ u64::from(rule == Rule::Ordered);
    grid.into_iter().fold(start, fold) | 1
}

/// In the child of a fork, whose frames are others.
pub fn in_child() {
    for page in &BOOK {
        page.frame.store(0, Ordering::Relaxed);
        page.shapes.iter().for_each(|shape| shape.store(0, Ordering::Relaxed));
        page.finding.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_tried_once_and_no_more_than_a_few_are() {
        let page = Page::new();
        let shapes = [1, 2, 3, 4].map(|side| shape(Rule::Plain, [side, 1, 1]));
        assert!(page.take(shapes[0]) && !page.take(shapes[0]));
        assert!(page.take(shapes[1]) && page.take(shapes[2]));
        assert!(!page.take(shapes[3]) && !page.take(shapes[1]));
    }

    #[test]
    fn the_rule_and_every_side_of_the_grid_count() {
        let shapes = [[2, 1, 1], [1, 2, 1], [1, 1, 2]].map(|grid| shape(Rule::Plain, grid));
        assert!(shapes[0] != shapes[1] && shapes[1] != shapes[2] && shapes[0] != shapes[2]);
        assert_ne!(shape(Rule::Ordered, [2, 1, 1]), shapes[0]);
    }
}
