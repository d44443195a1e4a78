//! Sums of files, in the two ways they are written down.

use sha2::{Digest as _, Sha256};

pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

pub fn hexadecimal(sum: &[u8]) -> String {
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// As a wheel's list has them: 64 signs that may stand in an address, and nothing to fill up the end.
pub fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().zip([16, 8, 0]).fold(0u32, |word, (byte, by)| word | u32::from(*byte) << by);
        for by in [18, 12, 6, 0].into_iter().take(three.len() + 1) {
            text.push(char::from(SIGNS[(word >> by & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_written_as_others_read_them() {
        let sum = sha256(b"abc");
        assert!(hexadecimal(&sum).starts_with("ba7816bf8f01cfea"));
        assert_eq!(base64(&sum), "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
        assert_eq!([base64(b""), base64(b"f"), base64(b"fo"), base64(b"foo")], ["", "Zg", "Zm8", "Zm9v"]);
    }
}
