//! The piece of an image that a device runs.
//!
//! A fat binary has the same program for many devices, and is long; most of it is on a disk and need not come into memory.
//! So only the heads of its entries are read, into a copy that is empty otherwise, and then the entry that was chosen.

use std::ops::Range;

use cubin::{Entry, Fatbin, Kind};
use telemetry::ModuleKind;
use xxhash_rust::xxh3::Xxh3;

use super::kept::Kept;
use crate::frames::Image;

/// Longer images are not read.
const LONGEST: usize = 1 << 30;

/// Code for one device, unpacked.
pub enum Code {
    Cubin(Vec<u8>),
    Ptx(String),
}

pub struct Piece {
    pub code: Code,
    /// Tells it from all others, by its bytes as they are stored.
    pub key: u128,
}

/// What the driver may run of an image on a device of this compute capability, best first: it takes machine code before
/// PTX, if it takes machine code at all. Nothing, where the image cannot be read.
pub fn pieces(kept: &Kept, image: &Image, capability: u32) -> Vec<Piece> {
    let bytes = kept.bytes();
    if bytes == 0 || bytes > LONGEST || !kept.is(image) {
        return Vec::new();
    }
    match image.kind {
        ModuleKind::Fatbin => entries(kept, bytes, capability).unwrap_or_default(),
        ModuleKind::Cubin => whole(kept, bytes).map(|code| single(Kind::Elf, code)).unwrap_or_default(),
        ModuleKind::Ptx => whole(kept, bytes).map(|code| single(Kind::Ptx, code)).unwrap_or_default(),
        ModuleKind::Other => Vec::new(),
    }
}

fn whole(kept: &Kept, bytes: usize) -> Option<Vec<u8>> {
    let mut code = vec![0; bytes];
    kept.read(0, &mut code).map(|()| code)
}

fn single(kind: Kind, code: Vec<u8>) -> Vec<Piece> {
    let key = key(kind, &code);
    let code = match kind {
        Kind::Elf => Some(Code::Cubin(code)),
        _ => cubin::text(&code).ok().map(|text| Code::Ptx(text.to_owned())),
    };
    code.map(|code| Piece { code, key }).into_iter().collect()
}

fn entries(kept: &Kept, bytes: usize, capability: u32) -> Option<Vec<Piece>> {
    let mut image = vec![0; bytes];
    read_heads(kept, &mut image)?;
    for payload in chosen(&image, capability)? {
        kept.read(payload.start, &mut image[payload])?;
    }
    // The heads are the same as before, so are the choices; now there is something behind them.
    let fatbin = Fatbin::read(&image).ok()?;
    let best = [fatbin.best_cubin(capability), fatbin.best_ptx(capability)];
    Some(best.into_iter().flatten().filter_map(unpacked).collect())
}

/// Where the entries are that the driver may take.
fn chosen(image: &[u8], capability: u32) -> Option<Vec<Range<usize>>> {
    let fatbin = Fatbin::read(image).ok()?;
    let best = [fatbin.best_cubin(capability), fatbin.best_ptx(capability)];
    let place = |entry: &Entry<'_>| {
        let start = entry.payload.as_ptr().addr() - image.as_ptr().addr();
        start..start + entry.payload.len()
    };
    Some(best.into_iter().flatten().map(place).collect())
}

fn unpacked(entry: &Entry<'_>) -> Option<Piece> {
    let key = key(entry.kind, entry.payload);
    let code = match entry.kind {
        Kind::Elf => Code::Cubin(entry.data().ok()?.into_owned()),
        _ => Code::Ptx(entry.text().ok()?),
    };
    Some(Piece { code, key })
}

/// The heads of a container and of all its entries, each at its place.
fn read_heads(kept: &Kept, image: &mut [u8]) -> Option<()> {
    /// What every entry has; its length stands in it.
    const SHORTEST: usize = 64;
    let mut at = cubin::fatbin::HEADER_BYTES;
    kept.read(0, image.get_mut(..at)?)?;
    while at < image.len() {
        kept.read(at, image.get_mut(at..at + SHORTEST)?)?;
        let length = u32::from_le_bytes(*image[at + 4..].first_chunk()?);
        let payload = u64::from_le_bytes(*image[at + 8..].first_chunk()?);
        let start = at.checked_add(usize::try_from(length).ok()?.max(SHORTEST))?;
        kept.read(at, image.get_mut(at..start)?)?;
        at = start.checked_add(usize::try_from(payload).ok()?)?;
    }
    Some(())
}

fn key(kind: Kind, stored: &[u8]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(if kind == Kind::Elf { b"cubin" } else { b"ptx" });
    hash.update(&(stored.len() as u64).to_le_bytes());
    hash.update(stored);
    hash.digest128()
}

#[cfg(test)]
mod tests {
    use super::*;

    static ZSTD: &[u8] = include_bytes!("../../../cubin/test_data/zstd-all.fatbin");
    static RAW: &[u8] = include_bytes!("../../../cubin/test_data/raw.fatbin");
    static CUBIN: &[u8] = include_bytes!("../../../cubin/test_data/sm_90.cubin");

    fn of(bytes: &[u8], capability: u32) -> Vec<Piece> {
        let image = Image::in_memory(bytes.as_ptr().cast());
        pieces(&Kept::in_memory(bytes.as_ptr().cast(), &image), &image, capability)
    }

    fn kinds(pieces: &[Piece]) -> Vec<&'static str> {
        let kind = |piece: &Piece| match &piece.code {
            Code::Cubin(code) => {
                assert!(code.starts_with(b"\x7fELF"));
                "cubin"
            }
            Code::Ptx(text) => {
                assert!(text.contains(".version"));
                "ptx"
            }
        };
        pieces.iter().map(kind).collect()
    }

    #[test]
    fn machine_code_comes_before_text() {
        for image in [ZSTD, RAW] {
            assert_eq!(kinds(&of(image, 90)), ["cubin", "ptx"]);
            assert_eq!(kinds(&of(image, 86)), ["ptx"]);
            assert_eq!(kinds(&of(image, 75)), [""; 0]);
        }
    }

    #[test]
    fn single_images_are_taken_whole() {
        let found = of(CUBIN, 90);
        assert!(matches!(&found[..], [Piece { code: Code::Cubin(code), .. }] if code.len() == CUBIN.len()));
        let found = of(b".version 9.0\n.target sm_90\n\0", 90);
        assert!(matches!(&found[..], [Piece { code: Code::Ptx(text), .. }] if text.ends_with("sm_90\n")));
    }

    #[test]
    fn the_same_code_has_the_same_key_wherever_it_lies() {
        let again = ZSTD.to_vec();
        let keys = |bytes| of(bytes, 90).iter().map(|piece| piece.key).collect::<Vec<_>>();
        assert_eq!(keys(ZSTD), keys(&again));
        assert_ne!(keys(ZSTD)[0], keys(ZSTD)[1]);
    }

    #[test]
    fn damaged_containers_have_no_pieces() {
        for at in 0..200 {
            let mut bytes = ZSTD.to_vec();
            bytes[at] ^= 0x80;
            let _ = of(&bytes, 90);
        }
        let mut cut = ZSTD.to_vec();
        cut[8] = 100;
        assert!(of(&cut, 90).is_empty());
    }
}
