//! What comes out of rewriting an image.

use crate::verdict::Verdict;

/// An image with guarded kernels, and what became of each kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// What `cuLibraryLoadData` is to be given; text ends with a NUL.
    pub image: Vec<u8>,
    /// Every kernel of the image, the refused too. Kernels keep their names.
    pub kernels: Vec<Kernel>,
}

/// A kernel of a rewritten image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub name: String,
    pub verdict: Verdict,
    /// The kernel's own parameters, in order, without the control words.
    pub parameters: Vec<Parameter>,
    /// Where the control words lie among the bytes of the parameters. 0 for a refused kernel, which takes none.
    pub control_offset: u32,
    /// Whether launches of it and of others like it may overlap: it waits by itself, before it does anything, until the launch
    /// before it is complete; and it lets no launch behind it begin before all its blocks have ended.
    pub overlaps: bool,
}

/// Where a parameter lies among the bytes that a kernel is launched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub offset: u32,
    pub size: u32,
}
