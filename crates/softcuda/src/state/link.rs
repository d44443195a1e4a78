//! Linking of PTX.
//!
//! Nothing is gained from a merged text, so a linked image is a small container of the texts that went in,
//! checked to fit together: magic, total size, then each text with its length in front.

use std::sync::{Arc, Mutex};

use cuda_abi::*;

use super::image::{self, Program};
use super::lock;
use crate::error::{Result, refuse};
use crate::handles::{Handle, object};

pub const MAGIC: &[u8; 8] = b"EBBLINK1";
/// Magic and total size.
pub const HEADER: usize = 16;

pub struct Linker {
    pub handle: Handle<Linker>,
    parts: Mutex<Vec<String>>,
    /// Kept here, since the program gets a pointer to it that is good until the linker is destroyed.
    result: Mutex<Option<Arc<[u8]>>>,
}

object!(Linker, CUlinkState_st, CUDA_ERROR_INVALID_HANDLE);

impl Linker {
    pub fn create() -> Arc<Linker> {
        let handle = Handle::fresh();
        let linker = Arc::new(Linker { handle, parts: Mutex::default(), result: Mutex::default() });
        handle.bind(Arc::clone(&linker));
        linker
    }

    /// Adds a text that stands on its own, up to what others define.
    pub fn add(&self, text: String) -> Result<()> {
        image::check_part(&text)?;
        lock(&self.parts).push(text);
        Ok(())
    }

    pub fn complete(&self) -> Result<Arc<[u8]>> {
        let parts = lock(&self.parts);
        let texts: Vec<&str> = parts.iter().map(String::as_str).collect();
        image::compile_linked(&texts)?;
        let result: Arc<[u8]> = pack(&texts).into();
        *lock(&self.result) = Some(Arc::clone(&result));
        Ok(result)
    }
}

fn pack(texts: &[&str]) -> Vec<u8> {
    let size = HEADER + texts.iter().map(|text| 8 + text.len()).sum::<usize>();
    let mut bytes = Vec::with_capacity(size);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(size as u64).to_le_bytes());
    for text in texts {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

fn unpack(bytes: &[u8]) -> Option<Vec<&str>> {
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (size, mut rest) = rest.split_first_chunk::<8>()?;
    if magic != MAGIC || u64::from_le_bytes(*size) != bytes.len() as u64 {
        return None;
    }
    let mut texts = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk::<8>() {
        let (text, tail) = tail.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        texts.push(std::str::from_utf8(text).ok()?);
        rest = tail;
    }
    rest.is_empty().then_some(texts)
}

/// Compiles what `complete` gave.
pub fn load(bytes: &[u8]) -> Result<Program> {
    match unpack(bytes) {
        Some(texts) => image::compile_linked(&texts),
        None => refuse(CUDA_ERROR_INVALID_IMAGE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_can_be_unpacked() {
        let packed = pack(&["one", "", "drei"]);
        assert_eq!(unpack(&packed).unwrap(), ["one", "", "drei"]);
        for end in 0..packed.len() {
            assert!(unpack(&packed[..end]).is_none());
        }
        for place in 0..packed.len() {
            let mut broken = packed.clone();
            broken[place] ^= 0x80;
            let _ = unpack(&broken);
        }
    }
}
