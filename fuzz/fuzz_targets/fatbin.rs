//! Any bytes as containers: entries lie inside, and decompression keeps to its limit.
#![no_main]

use cubin::fatbin::{Compression, container_length, decompressed_limit};
use cubin::{Entry, Fatbin, Image};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = Image::read(data);
    if let Some(header) = data.first_chunk() {
        let length = container_length(header);
        let first = Fatbin::read(data);
        assert!(first.is_err() || length.is_ok_and(|length| length <= data.len() as u64));
    }
    let mut entries = 0;
    for fatbin in Fatbin::read_all(data).filter_map(Result::ok) {
        let best = fatbin.best_ptx(90);
        assert!(best.is_none_or(|entry| entry.target.number <= 90));
        assert!(fatbin.to_string().len() < 2000);
        for entry in &fatbin.entries {
            check(entry, data);
        }
        entries += fatbin.entries.len();
    }
    assert!(entries * 64 <= data.len(), "every entry has a header");
});

fn check(entry: &Entry<'_>, data: &[u8]) {
    assert!(entry.offset + entry.payload.len() < data.len());
    let limit = decompressed_limit(entry.compression, entry.payload.len() as u64);
    let Ok(bytes) = entry.data() else {
        assert_ne!(entry.compression, Compression::None);
        return;
    };
    assert!(bytes.len() as u64 <= limit);
    if let Ok(text) = entry.text() {
        assert!(text.is_ascii() && text.len() <= bytes.len());
    }
}
