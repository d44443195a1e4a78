//! Any bytes as an event log. What must hold is said in `trials` of the crate, whose tests do the same with drawn input.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| telemetry::trials::event_log(data));
