//! Little-endian fields at checked offsets.

use crate::Error;

/// `count` bytes at `offset`, or an error that names `what`.
pub(crate) fn slice<'a>(
    bytes: &'a [u8],
    offset: usize,
    count: u64,
    what: &'static str,
) -> Result<&'a [u8], Error> {
    let rest = bytes.get(offset..);
    let wanted = usize::try_from(count).ok();
    // Even no bytes at all must have their place inside.
    let slice = rest.zip(wanted).and_then(|(rest, wanted)| rest.get(..wanted));
    slice.ok_or(Error::Truncated { what, offset, wanted: count, have: rest.map_or(0, <[u8]>::len) })
}

/// A header already known to be long enough.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header<'a, const N: usize>(&'a [u8; N]);

impl<'a, const N: usize> Header<'a, N> {
    pub fn read(bytes: &'a [u8], offset: usize, what: &'static str) -> Result<Self, Error> {
        let slice = slice(bytes, offset, N as u64, what)?;
        let array = slice.try_into().expect("the slice has N bytes");
        Ok(Header(array))
    }

    pub fn to_array(self) -> [u8; N] {
        *self.0
    }

    fn field<const M: usize>(self, at: usize) -> [u8; M] {
        let field = self.0.get(at..at + M);
        let field = field.expect("fields of a header lie inside it");
        field.try_into().expect("the slice has M bytes")
    }

    pub fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.field(at))
    }

    pub fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.field(at))
    }

    pub fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.field(at))
    }
}
