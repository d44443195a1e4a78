//! The instructions put before a kernel's own, for each architecture.

/// A prologue as machine code, compiled for one architecture and for a kernel with 8 bytes of parameters.
#[derive(Clone, Copy, Debug)]
pub struct Prologue {
    /// The instructions, 128 bits each, low half first. They may be put at any multiple of 128 bytes: jumps are relative.
    pub words: &'static [[u64; 2]],
    /// Which instructions read control words. For a kernel whose control words lie at `offset`, to the low half of each
    /// is added what [`Prologue::shift`] gives.
    pub control_reads: &'static [u16],
    /// The instruction to be replaced by the one that the jump at the kernel's beginning has taken the place of. The one
    /// behind it is to be replaced by the jump back.
    pub end: u16,
    /// Which instructions are `EXIT`.
    pub exits: &'static [u16],
    /// How many registers it needs.
    pub registers: u32,
    /// How many named barriers it needs.
    pub barriers: u32,
    /// Where parameters begin in constant bank 0.
    pub parameter_base: u32,
}

impl Prologue {
    /// How many bytes of parameters the kernel had that the prologue was compiled for.
    const PAD: u32 = 8;

    /// What must be added to the low half of each instruction in `control_reads`, when the control words lie `offset`
    /// bytes behind the beginning of the parameters.
    pub const fn shift(offset: u32) -> u64 {
        (offset as u64).wrapping_sub(Self::PAD as u64) << 38
    }
}

/// The prologue for machine code of `sm_<number>`.
pub fn for_architecture(_number: u32) -> Option<&'static Prologue> {
    None
}
