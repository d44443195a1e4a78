//! The memory that a kernel can get at.
//!
//! Every word of its parameters that is an address in an allocation makes that allocation part of it; and so does every
//! word in such an allocation, for there are kernels that are given a list of pointers. What is missed (an address that is
//! computed, a surface) is not taken back, and a kernel that changes it in place does so once for every run of a trial.

use cuda_abi::{CUDA_SUCCESS, CUmemGenericAllocationHandle};
use guard::Obstacle;

use super::window::{self, Window};
use crate::guard::record::Launch;
use crate::next;
use crate::surroundings::variable;

/// More allocations than this are too much.
const MOST: usize = 256;
/// More memory than this is, unless `EBB_VERIFY_LIMIT` says otherwise, in bytes.
const LIMIT: u64 = 2 << 30;
/// So many words that look like addresses may turn out to be none.
const MISTAKES: u32 = 1 << 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub bytes: u64,
}

impl Range {
    fn contains(self, address: u64) -> bool {
        address.wrapping_sub(self.start) < self.bytes
    }
}

pub struct Reach {
    ranges: [Range; MOST],
    count: usize,
    limit: u64,
    mistakes: u32,
}

impl Reach {
    pub fn of(launch: &Launch, window: &mut Window) -> Result<Reach, Obstacle> {
        let mut reach = Reach { ranges: [Range::default(); MOST], count: 0, limit: limit(), mistakes: 0 };
        for &word in launch.parameters.all() {
            reach.add(word)?;
        }
        let mut next = 0;
        while next < reach.count {
            reach.follow(reach.ranges[next], window)?;
            next += 1;
        }
        if reach.count == 0 { Err(Obstacle::NothingToCompare) } else { Ok(reach) }
    }

    pub fn ranges(&self) -> &[Range] {
        &self.ranges[..self.count]
    }

    pub fn bytes(&self) -> u64 {
        self.ranges().iter().map(|range| range.bytes).sum()
    }

    fn knows(&self, address: u64) -> bool {
        self.ranges().iter().any(|range| range.contains(address))
    }

    /// Adds the allocation in which an address lies, if there is one. Memory that was mapped piece by piece is one.
    fn add(&mut self, address: u64) -> Result<(), Obstacle> {
        if address == 0 || self.knows(address) {
            return Ok(());
        }
        let Some(range) = allocation(address) else {
            self.mistakes += 1;
            return if self.mistakes > MISTAKES { Err(Obstacle::TooLarge) } else { Ok(()) };
        };
        self.put(range)?;
        if is_mapped(address) {
            self.add_mapped(range.start + range.bytes, |range| range.start + range.bytes)?;
            self.add_mapped(range.start.wrapping_sub(1), |range| range.start.wrapping_sub(1))?;
        }
        Ok(())
    }

    /// Pieces that were mapped beside each other, from one on.
    fn add_mapped(&mut self, mut address: u64, beside: impl Fn(Range) -> u64) -> Result<(), Obstacle> {
        while !self.knows(address) && is_mapped(address) {
            let Some(range) = allocation(address) else { break };
            self.put(range)?;
            address = beside(range);
        }
        Ok(())
    }

    fn put(&mut self, range: Range) -> Result<(), Obstacle> {
        if self.count == MOST || self.bytes().saturating_add(range.bytes) > self.limit {
            return Err(Obstacle::TooLarge);
        }
        self.ranges[self.count] = range;
        self.count += 1;
        Ok(())
    }

    /// Adds what the words of an allocation point to.
    fn follow(&mut self, range: Range, window: &mut Window) -> Result<(), Obstacle> {
        let mut done = 0;
        while done < range.bytes {
            let bytes = (range.bytes - done).min(window::BYTES as u64);
            let [seen] = window.look([range.start + done], bytes as usize).ok_or(Obstacle::DriverRefused)?;
            for word in seen.as_chunks().0 {
                let word = u64::from_le_bytes(*word);
                if self.may_be_address(word) {
                    self.add(word)?;
                }
            }
            done += bytes;
        }
        Ok(())
    }

    /// Whether it is near to what is known. Few numbers are, and to ask the driver about each would take too long.
    fn may_be_address(&self, word: u64) -> bool {
        const NEAR: u32 = 40;
        self.ranges().iter().any(|range| range.start >> NEAR == word >> NEAR)
            && !self.knows(word)
            && word >> 32 != 0
    }
}

fn allocation(address: u64) -> Option<Range> {
    let (mut start, mut bytes) = (0, 0);
    // SAFETY: places for the answers; any address may be asked for.
    let result = unsafe { next::call::cuMemGetAddressRange_v2(&mut start, &mut bytes, address) };
    let range = Range { start, bytes: bytes as u64 };
    (result == CUDA_SUCCESS && range.contains(address)).then_some(range)
}

/// Whether there is memory at an address that was mapped there by itself.
fn is_mapped(address: u64) -> bool {
    let mut handle: CUmemGenericAllocationHandle = 0;
    let place = std::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: a place for the answer; any address may be asked for.
    if unsafe { next::call::cuMemRetainAllocationHandle(&mut handle, place) } != CUDA_SUCCESS {
        return false;
    }
    // SAFETY: what was just retained is released.
    let _ = unsafe { next::call::cuMemRelease(handle) };
    true
}

/// How much memory may be kept: two copies must fit, and leave some.
fn limit() -> u64 {
    let (mut free, mut total) = (0, 0);
    // SAFETY: places for the answers.
    let result = unsafe { next::call::cuMemGetInfo_v2(&mut free, &mut total) };
    let free = if result == CUDA_SUCCESS { free as u64 } else { 0 };
    let asked = variable(c"EBB_VERIFY_LIMIT").and_then(|text| text.to_str().ok()?.parse().ok());
    asked.unwrap_or(LIMIT).min(free / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(limit: u64) -> Reach {
        Reach { ranges: [Range::default(); MOST], count: 0, limit, mistakes: 0 }
    }

    #[test]
    fn what_is_known_is_known_to_its_last_byte() {
        let mut reach = reach(1 << 30);
        reach.put(Range { start: 0x7f00_0000_0000, bytes: 512 }).unwrap();
        assert!(reach.knows(0x7f00_0000_0000) && reach.knows(0x7f00_0000_01ff));
        assert!(!reach.knows(0x7f00_0000_0200) && !reach.knows(0x7eff_ffff_ffff));
    }

    #[test]
    fn numbers_that_are_near_to_addresses_may_be_some() {
        let mut reach = reach(1 << 30);
        reach.put(Range { start: 0x7f00_0000_0000, bytes: 512 }).unwrap();
        assert!(reach.may_be_address(0x7f00_1234_5678));
        assert!(!reach.may_be_address(0x7f00_0000_0010), "that one is known");
        let ones = u64::from(1.0_f32.to_bits());
        assert!(!reach.may_be_address(ones << 32 | ones) && !reach.may_be_address(7));
    }

    #[test]
    fn there_is_a_limit() {
        let mut reach = reach(1000);
        assert_eq!(reach.put(Range { start: 512, bytes: 512 }), Ok(()));
        assert_eq!(reach.put(Range { start: 1024, bytes: 512 }), Err(Obstacle::TooLarge));
    }
}
