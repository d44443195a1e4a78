//! The cases, one file per subject. Each file ends its list with what it has; nothing is registered elsewhere.

use crate::suite::{Case, PeerProgram};

mod init;
mod kernels;
mod proc_address;
mod support;

/// Every case of this folder.
pub fn all() -> Vec<Case> {
    [init::CASES, proc_address::CASES, kernels::CASES].concat()
}

/// Every program that a case may start as its second process.
pub fn peers() -> Vec<PeerProgram> {
    Vec::new()
}
