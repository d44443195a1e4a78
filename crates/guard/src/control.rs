//! The words a rewritten kernel is launched with.

use std::fmt;
use std::ops::BitOr;

/// The last parameter of a rewritten kernel, by value. It lies behind the kernel's own parameters, at the next multiple
/// of [`Control::ALIGNMENT`].
///
/// Prologues are compiled against these offsets (`donors/prologue.ptx`); they are the interface between the GPU's half of
/// the guard and the host's.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Address of the stop word, a `u32` in device memory: not 0 means that no more blocks may begin.
    pub stop: u64,
    /// Address of the marks. Plain rule: a `u32` for each block, by linear block index, equal to `serial` once the block
    /// has begun. Ordered rule: two cells, see [`rule`](crate::rule).
    pub marks: u64,
    /// Address of the lane's `u32`: the serial of the first launch that was cut since the word was last 0. While it is not
    /// 0, later launches of the lane turn away as if the stop word were set.
    pub away: u64,
    /// The number of the launch: never 0, and not used again until the memory of the marks has been cleared. It should
    /// grow from launch to launch: the ordered rule then needs one try where it would need several.
    pub serial: u32,
    pub mode: Mode,
}

impl Control {
    pub const SIZE: u32 = size_of::<Control>() as u32;
    pub const ALIGNMENT: u32 = align_of::<Control>() as u32;

    /// Where the control words go when a kernel's own parameters take up `parameter_bytes`.
    pub const fn offset(parameter_bytes: u32) -> u32 {
        parameter_bytes.next_multiple_of(Self::ALIGNMENT)
    }
}

/// How a launch is to be guarded: bits of [`Control::mode`].
#[repr(transparent)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode(pub u32);

impl Mode {
    /// The plain rule, for the first time.
    pub const FIRST: Mode = Mode(0);
    /// The ordered rule: the blocks that run are a prefix of the linear order.
    pub const ORDERED: Mode = Mode(1 << 0);
    /// A relaunch: the marks say which blocks have run.
    pub const AGAIN: Mode = Mode(1 << 1);
    /// Ordered rule: this attempt's cell is the second, the previous attempt's the first. Without it, the other way round.
    pub const SECOND_CELL: Mode = Mode(1 << 2);

    pub const fn contains(self, other: Mode) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Mode {
    type Output = Mode;

    fn bitor(self, other: Mode) -> Mode {
        Mode(self.0 | other.0)
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(Mode::ORDERED, "ordered"), (Mode::AGAIN, "again"), (Mode::SECOND_CELL, "second cell")];
        let mut list = f.debug_set();
        for (mode, name) in names {
            if self.contains(mode) {
                list.entry(&format_args!("{name}"));
            }
        }
        list.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_words_lie_where_the_prologues_look_for_them() {
        let offsets = [offset_of!(Control, stop), offset_of!(Control, marks), offset_of!(Control, away)];
        assert_eq!(offsets, [0, 8, 16]);
        assert_eq!([offset_of!(Control, serial), offset_of!(Control, mode)], [24, 28]);
        assert_eq!((Control::SIZE, Control::ALIGNMENT), (32, 8));
    }

    #[test]
    fn the_words_begin_at_the_next_multiple_of_eight() {
        assert_eq!([1, 8, 12, 4096].map(Control::offset), [8, 8, 16, 4096]);
    }

    #[test]
    fn a_mode_says_which_bits_it_has() {
        let mode = Mode::ORDERED | Mode::AGAIN;
        assert!(mode.contains(Mode::AGAIN) && !mode.contains(Mode::SECOND_CELL));
        assert_eq!(format!("{mode:?}"), "{ordered, again}");
    }
}
