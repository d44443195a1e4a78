//! Memory a thread takes from its stack while it runs.

use super::lanes::each_lane;
use super::machine::{Flow, Machine};
use crate::error::Fault;
use crate::isa::Instruction;

impl Machine<'_> {
    fn write_address(&mut self, i: &Instruction, mask: u32, address: u32) {
        match i.offset {
            0 => self.fill(i.d, mask, |_| address),
            _ => self.fill(i.d, mask, |_| u64::from(address)),
        }
    }

    fn read_size(&self, i: &Instruction, mask: u32) -> u64 {
        let of = |lane: usize| match i.offset {
            0 => u64::from(self.source::<u32>(i.a).get(lane)),
            _ => self.source::<u64>(i.a).get(lane),
        };
        each_lane(mask).map(of).max().unwrap_or(0)
    }
}

/// `alloca`: as many bytes as the lane that wants the most, aligned to `aux`.
pub(crate) fn allocate(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let frame = m.warp.frame as usize;
    let start = m.warp.frames[frame].local_top.next_multiple_of(i.aux.max(16));
    let end = u64::from(start).saturating_add(m.read_size(i, mask));
    if end > u64::from(m.state.stack_limit) {
        return m.fail(Fault::StackOverflow { bytes: end }, mask.trailing_zeros() as usize);
    }
    m.warp.frames[frame].local_top = end as u32;
    m.reserve_local(end as u32);
    m.write_address(i, mask, start);
    Flow::Next
}

/// `stacksave`.
pub(crate) fn save(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let top = m.warp.frames[m.warp.frame as usize].local_top;
    m.write_address(i, mask, top);
    Flow::Next
}

/// `stackrestore`. Other lanes may still use what is above, so a diverged warp keeps it.
pub(crate) fn restore(m: &mut Machine<'_>, i: &Instruction, mask: u32) -> Flow {
    let frame = m.warp.frame as usize;
    let wanted = m.read_size(i, mask);
    let least = m.warp.frames[frame].local_base;
    let top = &mut m.warp.frames[frame].local_top;
    if m.warp.others.is_empty() && wanted <= u64::from(*top) && wanted >= u64::from(least) {
        *top = wanted as u32;
    }
    Flow::Next
}
