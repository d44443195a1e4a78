//! Any bytes as a rewritten image in the guard's cache. What must hold is said in `trials` of the crate, whose tests do the same with drawn input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| guard::trials::kept_image(data));
