//! Decompression with a bound known beforehand.

use crate::Error;
use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

/// How an entry's payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    None,
    /// An LZ4 block without a frame.
    Lz4,
    /// A zstd frame.
    Zstd,
}

const MIB: u64 = 1 << 20;

/// The most bytes we believe that `compressed` bytes stand for.
///
/// LZ4 cannot say more than 255 bytes in one. Zstd can, without bound. PTX shrinks ten to a hundred times, and a
/// table of a million zeros ten thousand times; so ratios count only where memory does.
pub fn decompressed_limit(compression: Compression, compressed: u64) -> u64 {
    let limit = match compression {
        Compression::None => return compressed,
        Compression::Lz4 => compressed.saturating_mul(255),
        Compression::Zstd => compressed.saturating_mul(1024).max(64 * MIB),
    };
    limit.min(1024 * MIB)
}

/// Exactly `claimed` bytes out of `payload`, or an error. `offset` is where the entry stands, for messages.
pub(crate) fn decompress(
    compression: Compression,
    payload: &[u8],
    claimed: u64,
    offset: usize,
) -> Result<Vec<u8>, Error> {
    let limit = decompressed_limit(compression, payload.len() as u64);
    let size = usize::try_from(claimed).ok().filter(|_| claimed <= limit);
    let Some(size) = size else {
        return Err(Error::TooLarge { offset, claimed, limit });
    };
    let data = match compression {
        Compression::None => Ok(payload.to_vec()),
        Compression::Lz4 => lz4(payload, size),
        Compression::Zstd => zstd(payload, size),
    };
    let data = data.map_err(|reason| Error::Decompression { offset, reason })?;
    let actual = data.len() as u64;
    match actual == claimed {
        true => Ok(data),
        false => Err(Error::Size { offset, claimed, actual }),
    }
}

fn lz4(payload: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let mut data = vec![0; size];
    let written = lz4_flex::block::decompress_into(payload, &mut data);
    let written = written.map_err(|error| error.to_string())?;
    data.truncate(written);
    Ok(data)
}

/// The frame is read as a stream, so that memory follows what it holds, not what it claims, and one byte more
/// than promised ends it. Its window is memory spent on a claim too; a larger one than the content has no use.
fn zstd(payload: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let window = (size as u64).next_power_of_two().max(MIB);
    let decoder = StreamingDecoder::new_with_max_window_size(payload, window);
    let decoder = decoder.map_err(|error| error.to_string())?;
    let mut data = Vec::new();
    let mut bounded = decoder.take(size as u64 + 1);
    let end = bounded.read_to_end(&mut data);
    end.map_err(|error| error.to_string())?;
    Ok(data)
}
