//! Launch geometry: how many blocks, how many threads.

use std::fmt;

/// Three extents, as CUDA counts them: `x` varies fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dim3 {
    pub x: u32,
    pub y: u32,
    pub z: u32,
}

impl Dim3 {
    pub const ONE: Dim3 = Dim3 { x: 1, y: 1, z: 1 };

    pub const fn new(x: u32, y: u32, z: u32) -> Dim3 {
        Dim3 { x, y, z }
    }

    /// The number of cells, `None` when it does not fit: CUDA allows extents whose product overflows.
    pub fn volume(self) -> Option<u64> {
        u64::from(self.x).checked_mul(u64::from(self.y))?.checked_mul(u64::from(self.z))
    }

    /// The cell at position `linear` in the order in which blocks are dispatched and threads numbered.
    pub fn cell(self, linear: u64) -> Dim3 {
        let (x, y) = (u64::from(self.x), u64::from(self.y));
        let part = |n: u64| u32::try_from(n).expect("an index below an extent fits where the extent did");
        Dim3 { x: part(linear % x), y: part(linear / x % y), z: part(linear / x / y) }
    }
}

impl fmt::Display for Dim3 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.x, self.y, self.z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_numbered_with_x_fastest() {
        let grid = Dim3::new(3, 2, 2);
        assert_eq!(grid.cell(0), Dim3::new(0, 0, 0));
        assert_eq!(grid.cell(4), Dim3::new(1, 1, 0));
        assert_eq!(grid.cell(11), Dim3::new(2, 1, 1));
    }

    #[test]
    fn a_volume_that_does_not_fit_is_none() {
        assert_eq!(Dim3::new(u32::MAX, u32::MAX, u32::MAX).volume(), None);
    }
}
