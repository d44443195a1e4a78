//! Any text as a program for the software GPU: a program or an error with its place, never larger than the text
//! warrants.
#![no_main]

use libfuzzer_sys::fuzz_target;
use softgpu::lower::{Error, compile};

/// What one byte of text may become at most. A macro-like instruction of sixty letters may take a few hundred
/// others; what a declaration asks for by number is room in a frame, which costs nothing before it runs.
const PER_BYTE: usize = 64;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    match compile(&text) {
        Ok(image) => {
            let most = PER_BYTE * (text.len() + 64);
            assert!(image.code.len() <= most);
            assert!(image.lists.len() <= most);
            assert!(image.pool.len() <= most);
            let initial: usize = image.variables.iter().map(|variable| variable.initial.len()).sum();
            assert!(initial <= most);
            for function in &image.functions {
                assert!((function.entry as usize) < image.code.len() || image.code.is_empty());
            }
        }
        Err(
            Error::Invalid { place, .. }
            | Error::Unsupported { place, .. }
            | Error::TooNew { place, .. }
            | Error::TooLarge { place, .. },
        ) => {
            let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
            assert!(place.line as usize <= lines);
        }
        Err(Error::Unresolved { .. } | Error::Duplicate { .. }) => {}
    }
});
