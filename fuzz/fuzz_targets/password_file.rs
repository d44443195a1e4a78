//! Any text as a file of readers, and what one of them sends. What must hold is said in `trials` of the crate, whose tests do the same with drawn input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| web::trials::password_file(data));
