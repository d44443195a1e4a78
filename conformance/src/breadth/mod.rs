//! Kernels of many kinds, each compared with a reference on the CPU.

use crate::suite::Case;

/// Every breadth case.
pub fn cases() -> Vec<Case> {
    Vec::new()
}
