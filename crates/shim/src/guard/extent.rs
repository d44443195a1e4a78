//! How much of a launch ran before it was cut.
//!
//! Nobody needs to know, to resume it. A storm asks all the same, because whoever trusts in what it shows wants to know how
//! many launches were cut in their middle, and how many were only turned away whole.

use guard::Rule;

use super::control::{Control, Own};
use super::driver::ok;
use super::record::Launch;
use crate::arena::Pages;
use crate::next;

/// The marks of larger grids are not looked at.
const MOST_BYTES: u64 = 64 << 20;

/// Whether some blocks of a launch ran and some did not, after its first attempt. `None`: that cannot be told.
pub fn is_cut_within(control: &Control, launch: &Launch) -> Option<bool> {
    let blocks = launch.blocks();
    let bytes = if launch.rule == Rule::Ordered { 8 } else { blocks.checked_mul(4)? };
    if bytes == 0 || bytes > MOST_BYTES {
        return None;
    }
    let pages = Pages::new(usize::try_from(bytes).ok()?)?;
    let stream = control.stream(Own::Control);
    // SAFETY: as many bytes on both sides, of marks that no block writes any more.
    ok(unsafe { next::call::cuMemcpyDtoHAsync_v2(pages.start(), launch.marks, bytes as usize, stream) })?;
    control.catch_up()?;
    // SAFETY: so many bytes were just written there, and pages begin where any word may.
    let words = unsafe { std::slice::from_raw_parts(pages.start().cast::<u32>(), bytes as usize / 4) };
    let ran = match launch.rule {
        Rule::Plain => words.iter().filter(|mark| **mark == launch.serial).count() as u64,
        Rule::Ordered => limit([words[0], words[1]], launch.serial),
    };
    Some(0 < ran && ran < blocks)
}

/// Up to where blocks ran, by a cell of the ordered rule.
fn limit([low, serial]: [u32; 2], own: u32) -> u64 {
    const STOPPED: u32 = 1 << 31;
    if serial == own { u64::from(low & !STOPPED) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use guard::rule::Cell;

    #[test]
    fn a_cell_says_up_to_where_blocks_ran() {
        let word = Cell { serial: 7, stopped: true, limit: 96 }.word();
        let halves = [word as u32, (word >> 32) as u32];
        assert_eq!((limit(halves, 7), limit(halves, 8)), (96, 0));
    }
}
