//! What the blocks of requests leave behind, and what must stand there when each of them has run exactly once.
//!
//! Every request has two words of its own in the GPU's memory, which are read when the run is over: to look at them after
//! each request would be work for the GPU that no request asked for, at the very moment when another tenant could go on.

use std::collections::BTreeMap;

use super::plan::Plan;
use crate::Error;
use crate::driver::Driver;

const WORDS: usize = 2;
/// So much the salt of a launch differs from that of the same launch of the next request,
const PER_REQUEST: u64 = 0x9e37_79b9_7f4a_7c15;
/// and from that of the next launch of the same one.
const PER_LAUNCH: u64 = 0xbf58_476d_1ce4_e5b9;

pub struct Traces {
    address: u64,
    room: usize,
    expected: Expected,
}

/// What a request's launches must leave, as far as it does not depend on its number.
struct Expected {
    blocks: u64,
    sum: u64,
}

/// What one request left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub is_right: bool,
    /// The same for every request of this number whose blocks all ran once, and for hardly any other.
    pub check: u64,
}

impl Traces {
    pub fn new(driver: &Driver, plan: &Plan) -> Result<Traces, Error> {
        const FIRST_ROOM: usize = 1024;
        let address = driver.allocate(FIRST_ROOM * WORDS)?;
        Ok(Traces { address, room: FIRST_ROOM, expected: Expected::of(plan) })
    }

    /// Makes room for so many requests, and clears it. What it had is given up: memory lives as long as the process, and
    /// doubles at least, so that little is lost.
    pub fn begin(&mut self, driver: &Driver, requests: usize) -> Result<(), Error> {
        if requests > self.room {
            self.room = requests.next_power_of_two();
            self.address = driver.allocate(self.room * WORDS)?;
        }
        self.clear(driver)
    }

    /// Forgets what requests have left.
    pub fn clear(&self, driver: &Driver) -> Result<(), Error> {
        driver.clear(self.address, self.room * WORDS)
    }

    /// How many requests there is room for.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Where the request in this place leaves its trace.
    pub fn at(&self, place: usize) -> u64 {
        debug_assert!(place < self.room, "there is room for {}", self.room);
        self.address + (place * WORDS * size_of::<u64>()) as u64
    }

    /// What the requests from `first` on left, of which there are `count`, in the places from the beginning.
    pub fn verdicts(&self, driver: &Driver, first: usize, count: usize) -> Result<Vec<Verdict>, Error> {
        let mut words = vec![0; count * WORDS];
        if count > 0 {
            driver.read_into(self.address, &mut words)?;
        }
        let judge = |(place, pair): (usize, &[u64])| self.expected.judge(first + place, pair[0], pair[1]);
        Ok(words.chunks_exact(WORDS).enumerate().map(judge).collect())
    }
}

/// The salt of a launch: of which request, and the how-many-th of it.
pub fn salt(request: usize, launch: usize) -> u64 {
    let times = |factor: u64, number: usize| factor.wrapping_mul(number as u64);
    times(PER_REQUEST, request).wrapping_add(times(PER_LAUNCH, launch))
}

impl Expected {
    fn of(plan: &Plan) -> Expected {
        let mut sums = BTreeMap::new();
        let (mut blocks, mut sum) = (0u64, 0u64);
        for (launch, kernel) in plan.launches().enumerate() {
            let count = kernel.shape.blocks;
            let marks = *sums.entry(count).or_insert_with(|| (0..count).map(mark).fold(0, u64::wrapping_add));
            blocks += u64::from(count);
            sum = sum.wrapping_add(marks).wrapping_add(salt(0, launch).wrapping_mul(count.into()));
        }
        Expected { blocks, sum }
    }

    fn judge(&self, request: usize, blocks: u64, sum: u64) -> Verdict {
        let wanted = self.sum.wrapping_add(self.blocks.wrapping_mul(salt(request, 0)));
        let is_right = blocks == self.blocks && sum == wanted;
        Verdict { is_right, check: sum ^ blocks.rotate_right(8) }
    }
}

/// What a block adds, as the kernel has it.
fn mark(block: u32) -> u64 {
    let mixed = block.wrapping_mul(0x9e37_79b1).wrapping_add(0x7f4a_7c15);
    u64::from((mixed ^ (mixed >> 15)).wrapping_mul(0x85eb_ca77))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What blocks leave that run as these launches say, each block in it once: its own index and its launch.
    fn left(request: usize, blocks: &[(u32, usize)]) -> (u64, u64) {
        let sum = blocks.iter().map(|&(block, launch)| mark(block).wrapping_add(salt(request, launch)));
        (blocks.len() as u64, sum.fold(0, u64::wrapping_add))
    }

    fn expected() -> Expected {
        let all = left(0, &[(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]);
        Expected { blocks: all.0, sum: all.1 }
    }

    #[test]
    fn a_request_is_right_if_every_block_ran_once() {
        for request in [0, 1, 77_000] {
            let (blocks, sum) = left(request, &[(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]);
            assert!(expected().judge(request, blocks, sum).is_right);
        }
    }

    #[test]
    fn a_block_too_many_too_few_or_in_the_place_of_another_is_seen() {
        let right = expected().judge(5, left(5, &[(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]).0, expected().sum);
        let wrong: [&[(u32, usize)]; 5] = [
            &[(0, 0), (1, 0), (2, 0), (0, 1)],
            &[(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (1, 1)],
            &[(0, 0), (0, 0), (2, 0), (0, 1), (1, 1)],
            &[(1, 0), (1, 0), (1, 0), (0, 1), (1, 1)],
            &[(0, 0), (1, 0), (2, 1), (0, 1), (1, 1)],
        ];
        for blocks in wrong {
            let (count, sum) = left(5, blocks);
            let verdict = expected().judge(5, count, sum);
            assert!(!verdict.is_right, "{blocks:?}");
            assert_ne!(verdict.check, right.check, "{blocks:?}");
        }
    }

    #[test]
    fn what_another_request_left_is_wrong() {
        let (blocks, sum) = left(3, &[(0, 0), (1, 0), (2, 0), (0, 1), (1, 1)]);
        assert!(!expected().judge(4, blocks, sum).is_right);
    }
}
