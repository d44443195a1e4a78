use std::fmt;

/// A virtual or real architecture: `90a` of `sm_90a` and `compute_90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Major times ten plus minor, as everywhere in CUDA.
    pub number: u32,
    pub variant: Variant,
}

/// How portable code for a target is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Later devices take it too: all of them PTX, those of the same major machine code.
    Portable,
    /// `a`: this device only.
    Architecture,
    /// `f`: devices of the same family.
    Family,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.variant {
            Variant::Portable => "",
            Variant::Architecture => "a",
            Variant::Family => "f",
        };
        write!(f, "{}{suffix}", self.number)
    }
}
