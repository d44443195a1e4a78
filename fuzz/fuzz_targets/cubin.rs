//! Any bytes as a cubin: what is named is in the file.
#![no_main]

use cubin::{Cubin, Image};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let image = Image::read(data);
    let Ok(cubin) = Cubin::read(data) else {
        assert!(!matches!(image, Ok(Image::Cubin(_))));
        return;
    };
    assert!(matches!(image, Ok(Image::Cubin(_))));
    let named: usize = cubin.kernels.iter().map(|name| name.len()).sum();
    assert!(named <= data.len());
    assert!(cubin.target.number <= 0xff);
});
