//! The cases, one file per subject; each file lists its own in `CASES`, and its second processes in `PEERS`.

use crate::suite::{Case, PeerProgram};

mod bad_arguments;
mod capture;
mod contexts;
mod events;
mod faults;
mod forks;
mod gates;
mod graphs;
mod green;
mod hostile;
mod init;
mod ipc;
mod kernels;
mod launch;
mod memops;
mod memory;
mod modules;
mod proc_address;
mod streams;
mod support;
mod vmm;

/// Every case of this folder.
pub fn all() -> Vec<Case> {
    [
        init::CASES,
        proc_address::CASES,
        contexts::CASES,
        memory::CASES,
        vmm::CASES,
        modules::CASES,
        hostile::CASES,
        launch::CASES,
        kernels::CASES,
        streams::CASES,
        green::CASES,
        events::CASES,
        memops::CASES,
        gates::CASES,
        graphs::CASES,
        capture::CASES,
        ipc::CASES,
        faults::CASES,
        forks::CASES,
        bad_arguments::CASES,
    ]
    .concat()
}

/// Every program that a case may start as its second process.
pub fn peers() -> Vec<PeerProgram> {
    [faults::PEERS, gates::PEERS, ipc::PEERS].concat()
}
