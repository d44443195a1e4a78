//! The cases, one file per subject. Each file ends its list with what it has; nothing is registered elsewhere.

use crate::suite::{Case, PeerProgram};

mod capture;
mod contexts;
mod events;
mod graphs;
mod hostile;
mod init;
mod kernels;
mod launch;
mod memory;
mod modules;
mod proc_address;
mod streams;
mod support;

/// Every case of this folder.
pub fn all() -> Vec<Case> {
    [
        init::CASES,
        proc_address::CASES,
        contexts::CASES,
        memory::CASES,
        modules::CASES,
        hostile::CASES,
        launch::CASES,
        kernels::CASES,
        streams::CASES,
        events::CASES,
        graphs::CASES,
        capture::CASES,
    ]
    .concat()
}

/// Every program that a case may start as its second process.
pub fn peers() -> Vec<PeerProgram> {
    Vec::new()
}
