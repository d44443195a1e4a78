//! Any bytes as a ledger: what is read lies inside, and can be printed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use telemetry::{Counter, Reading};

// A ledger is long and mostly empty, so the input is what stands in it, from some place on; the beginning is right, or
// nothing would be read.
fuzz_target!(|data: &[u8]| {
    assert!(Reading::parse(data).is_err(), "this is shorter than a ledger");
    let Some((place, rest)) = data.split_first_chunk::<4>() else { return };
    let mut bytes = vec![0; Reading::BYTES];
    bytes[..8].copy_from_slice(b"ebbledgr");
    bytes[8..12].copy_from_slice(&2u32.to_ne_bytes());
    let place = u32::from_ne_bytes(*place) as usize % bytes.len();
    for (to, from) in bytes[place..].iter_mut().zip(rest) {
        *to = *from;
    }
    let Ok(reading) = Reading::parse(&bytes) else { return };
    let texts = [&reading.program, &reading.driver, &reading.detail];
    let names = reading.kernels.iter().map(|kernel| &kernel.name);
    assert!(texts.into_iter().chain(names).all(|text| !text.contains(char::is_control)));
    assert!(reading.kernels.is_sorted_by_key(|kernel| std::cmp::Reverse(kernel.total())));
    assert!(Counter::ALL.iter().map(|&counter| reading.count(counter)).max().is_some());
});
