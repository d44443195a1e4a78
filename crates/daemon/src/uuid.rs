//! GPUs as NVIDIA's tools write them: `GPU-00112233-4455-6677-8899-aabbccddeeff`.

use board::Gpu;

pub fn write(Gpu(bytes): Gpu) -> String {
    let hex = |range: std::ops::Range<usize>| {
        bytes[range].iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    format!("GPU-{}-{}-{}-{}-{}", hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16))
}

/// Only what is written like this, in small letters or large.
pub fn read(text: &str) -> Option<Gpu> {
    let digits: String = text.strip_prefix("GPU-")?.chars().filter(|&c| c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    let gpu = Gpu(number.to_be_bytes());
    write(gpu).eq_ignore_ascii_case(text).then_some(gpu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let gpu = Gpu(std::array::from_fn(|place| place as u8 * 0x11));
        assert_eq!(write(gpu), "GPU-00112233-4455-6677-8899-aabbccddeeff");
        assert_eq!(read(&write(gpu)), Some(gpu));
        assert_eq!(read("GPU-00112233-4455-6677-8899-AABBCCDDEEFF"), Some(gpu));
    }

    #[test]
    fn nothing_else_is_a_gpu() {
        let long = "GPU-00112233-4455-6677-8899-aabbccddeeff0";
        let whole = "GPU-00112233445566778899aabbccddeeff";
        for wrong in ["", "0", "GPU-", "00112233-4455-6677-8899-aabbccddeeff", whole, long, "GPU-0011-+2"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
