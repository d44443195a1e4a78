//! Images in the program's memory.
//!
//! Nothing says how long an image is. Bytes are looked at one by one until it is known what they begin; text then
//! ends with a zero byte, as CUDA demands, and a container is as long as it says. That number may be a lie, so a
//! container is copied by the kernel, which stops where the program's memory ends, and judged afterwards.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use cubin::fatbin::MAGIC;
use cuda_abi::*;

use super::{Address, Text};
use crate::error::{Error, Result};
use crate::state::image::{Source, damaged};
use crate::state::link;

/// A container that claims to be longer is taken for damaged.
const MOST: u64 = 1 << 30;

/// What an image is, and a copy of it.
pub fn image_at(image: Address) -> Result<Source> {
    let bytes = image.values::<u8>();
    let word = |offset: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes.at(offset + index)));
    if image.begins_with(&MAGIC.to_le_bytes()) {
        return container_at(image);
    }
    if image.begins_with(b"\x7fELF") {
        return Ok(Source::Cubin);
    }
    if image.begins_with(link::MAGIC) {
        return Source::of_bytes(&copy(image, word(8))?);
    }
    Source::of_bytes(Text(image.pointer().cast()).bytes()?)
}

fn container_at(container: Address) -> Result<Source> {
    let bytes = container.values::<u8>();
    let header = std::array::from_fn(|index| bytes.at(index));
    let length = cubin::fatbin::container_length(&header).map_err(damaged)?;
    Ok(Source::Fatbin(copy(container, length)?))
}

/// Copies `length` bytes, or as many as there are. Writing to a file is how the kernel reads a program's memory
/// without killing it over a bad address.
fn copy(start: Address, length: u64) -> Result<Vec<u8>> {
    if length > MOST {
        return Err(Error::new(CUDA_ERROR_NO_BINARY_FOR_GPU, format!("{length} bytes cannot be an image")));
    }
    let system = |error: std::io::Error| Error::new(CUDA_ERROR_OPERATING_SYSTEM, error.to_string());
    let mut file = scratch().map_err(system)?;
    let mut done = 0;
    while done < length {
        let place = Address(start.0 + done).pointer();
        let wanted = usize::try_from(length - done).unwrap_or(usize::MAX);
        // SAFETY: the kernel checks the source itself and answers a bad address with an error.
        let written = unsafe { libc::write(file.as_raw_fd(), place, wanted) };
        match u64::try_from(written) {
            Ok(written) if written > 0 => done += written,
            _ => break,
        }
    }
    let mut bytes = Vec::new();
    file.rewind().map_err(system)?;
    file.read_to_end(&mut bytes).map_err(system)?;
    Ok(bytes)
}

fn scratch() -> std::io::Result<File> {
    // SAFETY: the name is a string, and the call touches nothing else.
    let descriptor = unsafe { libc::memfd_create(c"ebb-image".as_ptr(), libc::MFD_CLOEXEC) };
    if descriptor < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: just made, and nobody else's.
    let owned = unsafe { OwnedFd::from_raw_fd(descriptor) };
    Ok(File::from(owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_ends_where_memory_ends() {
        let text = b"0123456789";
        let start = Address(text.as_ptr().expose_provenance() as u64);
        assert_eq!(copy(start, 4).unwrap(), b"0123");
        assert_eq!(copy(Address(16), 1000).unwrap(), b"");
        assert!(copy(start, u64::MAX).is_err());
    }
}
