//! Any bytes as the events of two processes, all the way to the files that show them. What must hold is said in `trials` of the crate, whose tests do the same with drawn input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| trace::trials::assembly(data));
