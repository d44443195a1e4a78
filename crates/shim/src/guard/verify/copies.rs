//! What is kept of the memory that a kernel reaches: as it was before the original ran, and as it was after.

use cuda_abi::CUdeviceptr;
use guard::Obstacle;

use super::reach::{Range, Reach};
use super::window::{self, Window};
use crate::guard::driver::ok;
use crate::next;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    Before,
    After,
}

pub struct Copies<'a> {
    reach: &'a Reach,
    window: &'a mut Window,
    /// Room for two copies, one behind the other.
    device: CUdeviceptr,
}

impl<'a> Copies<'a> {
    pub fn make(reach: &'a Reach, window: &'a mut Window) -> Result<Copies<'a>, Obstacle> {
        let mut device: CUdeviceptr = 0;
        let bytes = usize::try_from(2 * reach.bytes()).map_err(|_| Obstacle::TooLarge)?;
        // SAFETY: a place for the answer.
        ok(unsafe { next::call::cuMemAlloc_v2(&mut device, bytes) }).ok_or(Obstacle::TooLarge)?;
        Ok(Copies { reach, window, device })
    }

    /// Gives back the memory without waiting for what else is on the GPU.
    pub fn abandon(self) {
        self.window.give_back(self.device);
        std::mem::forget(self);
    }

    /// Every allocation, and where its copy lies.
    fn each(&self, moment: Moment) -> impl Iterator<Item = (Range, u64)> + use<'a> {
        let mut next = self.device + if moment == Moment::After { self.reach.bytes() } else { 0 };
        self.reach.ranges().iter().map(move |range| {
            next += range.bytes;
            (*range, next - range.bytes)
        })
    }

    /// Keeps everything as it is.
    pub fn keep(&self, moment: Moment) -> Option<()> {
        self.each(moment)
            .try_for_each(|(range, copy)| self.window.copy(copy, range.start, range.bytes as usize))
    }

    /// Makes everything as it was.
    pub fn put_back(&self, moment: Moment) -> Option<()> {
        self.each(moment)
            .try_for_each(|(range, copy)| self.window.copy(range.start, copy, range.bytes as usize))
    }

    /// Whether everything is as it was, to the bit.
    pub fn are_as(&mut self, moment: Moment) -> Option<bool> {
        for (range, copy) in self.each(moment) {
            let mut done = 0;
            while done < range.bytes {
                let bytes = (range.bytes - done).min(window::BYTES as u64);
                let [is, was] = self.window.look([range.start + done, copy + done], bytes as usize)?;
                if is != was {
                    return Some(false);
                }
                done += bytes;
            }
        }
        Some(true)
    }
}

impl Drop for Copies<'_> {
    fn drop(&mut self) {
        // SAFETY: our own memory, which nobody uses any more.
        let _ = unsafe { next::call::cuMemFree_v2(self.device) };
    }
}
