//! Kernels of many kinds, each compared with a reference on the CPU.
//!
//! One file here per file of `kernels/`: a function per kernel makes reproducible inputs, computes what must come
//! out, and hands both to a [`trial::Trial`], which runs the kernel from all four PTX texts and compares. Integers
//! and whatever IEEE 754 defines must agree to the bit; the mathematical library within the error that the CUDA
//! manual grants it.

mod atomics;
mod block;
mod elementwise;
mod fast_math;
mod graphs;
mod hashing;
mod integers;
mod language;
mod linear;
mod math;
mod memory_access;
mod reference;
mod rounding;
mod small_floats;
mod sorting;
mod stencils;
mod trial;
mod warp;
mod wide;

use crate::suite::Case;

/// Every breadth case.
pub fn cases() -> Vec<Case> {
    [
        elementwise::CASES,
        integers::CASES,
        wide::CASES,
        rounding::CASES,
        math::CASES,
        fast_math::CASES,
        small_floats::CASES,
        warp::CASES,
        block::CASES,
        stencils::CASES,
        sorting::CASES,
        hashing::CASES,
        graphs::CASES,
        atomics::CASES,
        linear::CASES,
        language::CASES,
        memory_access::CASES,
    ]
    .concat()
}
