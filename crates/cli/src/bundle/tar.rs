//! Small files in one, as every `tar` reads them. The format is a block of text before each file; a library for it would be more
//! to read than this is.

const BLOCK: usize = 512;

pub struct Archive {
    bytes: Vec<u8>,
    /// When everything in it was made, in seconds since 1970.
    time: u64,
}

impl Archive {
    pub fn new(time: u64) -> Archive {
        Archive { bytes: Vec::new(), time }
    }

    /// Names are ours, and short.
    pub fn put(&mut self, name: &str, bytes: &[u8]) {
        let mut head = [0; BLOCK];
        let mut field = |at: usize, text: &str| head[at..at + text.len()].copy_from_slice(text.as_bytes());
        field(0, &name[..name.len().min(100)]);
        field(100, "0000600\0");
        field(108, "0000000\0");
        field(116, "0000000\0");
        field(124, &format!("{:011o}\0", bytes.len()));
        field(136, &format!("{:011o}\0", self.time));
        // The sum is taken as if there were blanks in its place.
        field(148, "        ");
        field(156, "0");
        field(257, "ustar\x0000");
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend(head);
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend([0; 2 * BLOCK]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_the_sum_of_itself() {
        let mut archive = Archive::new(1);
        archive.put("a/b", b"text");
        let bytes = archive.finish();
        assert_eq!(bytes.len(), 4 * BLOCK);
        assert_eq!(
            (&bytes[..4], &bytes[124..136], &bytes[512..516]),
            (&b"a/b\0"[..], &b"00000000004\0"[..], &b"text"[..])
        );
        let said = u32::from_str_radix(std::str::from_utf8(&bytes[148..154]).unwrap(), 8).unwrap();
        let blank = bytes[..148].iter().chain(&[b' '; 8]).chain(&bytes[156..512]);
        assert_eq!(said, blank.map(|byte| u32::from(*byte)).sum::<u32>());
    }
}
