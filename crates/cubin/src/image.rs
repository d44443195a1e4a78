//! Which of the formats some bytes are in.

use crate::{Cubin, Error, Fatbin, fatbin};

/// What a program hands to the driver.
#[derive(Clone, Debug)]
pub enum Image<'a> {
    /// PTX text, without the NUL that ended it.
    Ptx(&'a str),
    Fatbin(Fatbin<'a>),
    Cubin(Cubin<'a>),
}

impl<'a> Image<'a> {
    /// Reads an image by its first bytes. PTX ends at its first NUL, a container where its header says.
    pub fn read(bytes: &'a [u8]) -> Result<Image<'a>, Error> {
        if bytes.starts_with(&fatbin::MAGIC.to_le_bytes()) {
            return Fatbin::read(bytes).map(Image::Fatbin);
        }
        if bytes.starts_with(b"\x7fELF") {
            return Cubin::read(bytes).map(Image::Cubin);
        }
        let text = until_nul(bytes);
        match begins_with_version(text) {
            true => ascii(text).map(Image::Ptx),
            false => Err(Error::Unrecognised),
        }
    }
}

/// The text of PTX bytes, such as a decompressed entry: up to the first NUL, if there is one.
pub fn text(bytes: &[u8]) -> Result<&str, Error> {
    ascii(until_nul(bytes))
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}

/// The driver refuses anything else, in comments too.
fn ascii(bytes: &[u8]) -> Result<&str, Error> {
    if let Some(offset) = bytes.iter().position(|byte| !byte.is_ascii()) {
        let byte = bytes[offset];
        return Err(Error::NotAscii { offset, byte });
    }
    Ok(std::str::from_utf8(bytes).expect("ASCII is UTF-8"))
}

/// The driver takes text for PTX when `.version` is the first thing in it after blanks and comments; whatever
/// else it meets, a text without it included, is no image to it.
fn begins_with_version(text: &[u8]) -> bool {
    let mut rest = text.trim_ascii_start();
    loop {
        let end = match rest {
            [b'/', b'/', ..] => rest.iter().position(|byte| *byte == b'\n'),
            [b'/', b'*', inner @ ..] => find(inner, b"*/").map(|at| at + 4),
            _ => return rest.starts_with(b".version"),
        };
        let Some(after) = end.and_then(|end| rest.get(end..)) else {
            return false;
        };
        rest = after.trim_ascii_start();
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes.windows(pattern.len()).position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ptx(bytes: &[u8]) -> bool {
        matches!(Image::read(bytes), Ok(Image::Ptx(_)))
    }

    /// Each of these was given to a driver, which agreed.
    #[test]
    fn ptx_begins_with_its_version() {
        assert!(is_ptx(b".version 9.0\n"));
        assert!(is_ptx(b"\r\n\t .version 9.0\n\0ignored \xff"));
        assert!(is_ptx(b"/* a */ // b\n/**/.version 9.0"));

        for other in [
            &b""[..],
            b"\0",
            b"  \n",
            b"garbage",
            b"// only a comment",
            b"/* open .version 9.0",
            b"/*/ .version 9.0",
            b".target sm_90\n.version 9.0",
            b"\xef\xbb\xbf.version 9.0",
        ] {
            let found = Image::read(other).map(|_| ());
            assert_eq!(found, Err(Error::Unrecognised), "{other:?}");
        }
    }

    #[test]
    fn ptx_is_ascii() {
        let found = Image::read(b".version 9.0 // caf\xe9").map(|_| ());
        let (offset, byte) = (19, 0xe9);
        assert_eq!(found, Err(Error::NotAscii { offset, byte }));
    }
}
