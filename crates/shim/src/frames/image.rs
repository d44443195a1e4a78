//! Which code a module was made from: its kind and its hash.
//!
//! The hash tells two pieces of code apart, so it covers the code and not where it lies. An image is hashed whole: what
//! compilers make at run time differs in a single number sometimes. All but large fat binaries, which lie in the files of
//! libraries, half a gigabyte of them, mostly not in memory: to read what the driver does not read would make somebody's
//! start wait for the disk. Of those, the heads of all entries count, which the driver looks at too. A head tells how
//! long its code is, compressed and not, and how it begins; of code that is not compressed a few pages count as well.
//!
//! How long an image is, only the image says. So its bytes are read by the kernel on our behalf, which answers a bad
//! address with an error where a load would kill the program.

use std::ffi::{CStr, c_void};
use std::ops::Range;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use telemetry::ModuleKind;
use xxhash_rust::xxh3::Xxh3;

/// An image, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    pub kind: ModuleKind,
    pub hash: u128,
    pub bytes: u64,
}

impl Image {
    pub const UNKNOWN: Image = Image { kind: ModuleKind::Other, hash: 0, bytes: 0 };

    /// The image that a program has handed to the driver.
    pub fn in_memory(address: *const c_void) -> Image {
        Image::of(&Memory { start: address.addr() })
    }

    /// The image in a file.
    pub fn in_file(path: &CStr) -> Image {
        match rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => Image::of(&file),
            Err(_) => Image::UNKNOWN,
        }
    }

    fn of(source: &dyn Source) -> Image {
        identify(source).unwrap_or(Image::UNKNOWN)
    }

    /// Where the bytes of such an image begin: behind the wrapper, if it has one. `None` for a wrapper that stands for
    /// several images, which the driver links.
    pub fn start(address: *const c_void) -> Option<Memory> {
        const SINGLE: u32 = 1;
        let mut head = [0; 16];
        let outer = Memory { start: address.addr() };
        let length = outer.read(0, &mut head);
        let head = Head(&head[..length]);
        match head.half(0)? {
            WRAPPER if head.half(4)? == SINGLE => outer.elsewhere(head.word(8)?),
            WRAPPER => None,
            _ => Some(outer),
        }
    }
}

/// Fat binaries up to here are hashed whole.
const SMALL: u64 = 1 << 20;
/// No image is read further than this.
const LONGEST: u64 = 64 << 20;
/// Of an entry that is not compressed, so many pages count.
const SAMPLES: u64 = 8;
/// What counts of an entry's beginning: its header, and some of its code.
const HEAD: usize = 512;
/// More entries than any fat binary has.
const MOST_ENTRIES: usize = 256;
const PAGE: usize = 4096;
/// Longer texts are not texts.
const LONGEST_TEXT: u64 = 256 << 20;

const CONTAINER_HEADER: u64 = 16;
const WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");
const ARCHIVE: u32 = u32::from_le_bytes(*b"!<ar");

/// Bytes that may not be there.
pub trait Source {
    /// Fills as much of the buffer as there is, from an offset on.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> usize;
    /// Another part of the same memory, for images that point to it.
    fn elsewhere(&self, address: u64) -> Option<Memory>;
}

#[derive(Clone, Copy)]
pub struct Memory {
    pub start: usize,
}

impl Source for Memory {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let Some(start) = usize::try_from(offset).ok().and_then(|offset| self.start.checked_add(offset))
        else {
            return 0;
        };
        // Up to the end of a page at a time: what follows may not be there, and then nothing would be read.
        let mut filled = 0;
        while filled < buffer.len() {
            let Some(at) = start.checked_add(filled) else { break };
            let part = (buffer.len() - filled).min(PAGE - at % PAGE);
            let read = copy_from_self(at, &mut buffer[filled..filled + part]);
            filled += read;
            if read < part {
                break;
            }
        }
        filled
    }

    fn elsewhere(&self, address: u64) -> Option<Memory> {
        Some(Memory { start: usize::try_from(address).ok()? })
    }
}

/// Reads this process's own memory through the kernel; how much of it there was.
fn copy_from_self(address: usize, buffer: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: buffer.len() };
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: one vector each; the kernel checks the remote address and writes only into the buffer.
    let read = unsafe { libc::process_vm_readv(pid, &local, 1, &remote, 1, 0) };
    usize::try_from(read).unwrap_or(0)
}

impl Source for OwnedFd {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut filled = 0;
        while filled < buffer.len() {
            match rustix::io::pread(self, &mut buffer[filled..], offset + filled as u64) {
                Ok(0) | Err(_) => break,
                Ok(more) => filled += more,
            }
        }
        filled
    }

    fn elsewhere(&self, _: u64) -> Option<Memory> {
        None
    }
}

fn identify(source: &dyn Source) -> Option<Image> {
    let mut head = [0; 64];
    let length = source.read(0, &mut head);
    let head = Head(&head[..length]);
    let magic = head.half(0)?;
    match magic {
        WRAPPER => {
            let data = source.elsewhere(head.word(8)?)?;
            identify(&data)
        }
        FATBIN => {
            let size = u64::from(head.half(4)? >> 16) + head.word(8)?;
            Some(hashed(source, ModuleKind::Fatbin, size))
        }
        ELF => Some(hashed(source, ModuleKind::Cubin, elf_size(&head)?)),
        ARCHIVE => Some(hashed(source, ModuleKind::Other, 64)),
        _ if is_text(head.0) => Some(hashed(source, ModuleKind::Ptx, text_size(source))),
        _ => Some(hashed(source, ModuleKind::Other, 64)),
    }
}

/// The beginning of an image: numbers that may lie beyond what there is.
struct Head<'a>(&'a [u8]);

impl Head<'_> {
    fn half(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.0.get(at..at + 4)?.try_into().ok()?))
    }

    fn word(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.0.get(at..at + 8)?.try_into().ok()?))
    }

    fn short(&self, at: usize) -> Option<u64> {
        Some(u64::from(u16::from_le_bytes(self.0.get(at..at + 2)?.try_into().ok()?)))
    }
}

/// A cubin ends with one of its tables, and has all its contents before them.
fn elf_size(head: &Head<'_>) -> Option<u64> {
    let segments = head.word(32)?.saturating_add(head.short(54)? * head.short(56)?);
    let sections = head.word(40)?.saturating_add(head.short(58)? * head.short(60)?);
    Some(segments.max(sections))
}

fn is_text(head: &[u8]) -> bool {
    let printable = |&byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let text = head.split(|&byte| byte == 0).next().unwrap_or_default();
    !text.is_empty() && text.iter().all(printable)
}

/// Up to the zero byte, or as far as there is anything.
fn text_size(source: &dyn Source) -> u64 {
    let mut size = 0;
    let mut page = [0; PAGE];
    while size < LONGEST_TEXT {
        let read = source.read(size, &mut page);
        let end = page[..read].iter().position(|&byte| byte == 0);
        size += end.unwrap_or(read) as u64;
        if end.is_some() || read < page.len() {
            break;
        }
    }
    size
}

fn hashed(source: &dyn Source, kind: ModuleKind, bytes: u64) -> Image {
    let mut hash = Xxh3::new();
    hash.update(&bytes.to_le_bytes());
    if kind == ModuleKind::Fatbin && bytes > SMALL {
        hash_entries(source, bytes, &mut hash);
    } else {
        hash_pages(source, 0..bytes.min(LONGEST), PAGE as u64, &mut hash);
    }
    Image { kind, hash: hash.digest128(), bytes }
}

/// The heads of the entries of a fat binary, and samples of those that are not compressed.
fn hash_entries(source: &dyn Source, bytes: u64, hash: &mut Xxh3) {
    let mut offset = CONTAINER_HEADER;
    for _ in 0..MOST_ENTRIES {
        let mut head = [0; HEAD];
        let read = source.read(offset, &mut head);
        hash.update(&head[..read]);
        let head = Head(&head[..read]);
        let (Some(header), Some(payload)) = (head.half(4), head.word(8)) else { break };
        let start = offset.saturating_add(u64::from(header));
        let end = start.saturating_add(payload).min(bytes);
        if head.half(16) == Some(0) {
            hash_pages(source, start..end, (payload / SAMPLES).max(PAGE as u64), hash);
        }
        if end <= offset || end >= bytes {
            break;
        }
        offset = end;
    }
}

/// A page at every step of a range, as far as there is anything.
fn hash_pages(source: &dyn Source, range: Range<u64>, step: u64, hash: &mut Xxh3) {
    let mut page = [0; PAGE];
    let mut offset = range.start;
    while offset < range.end {
        let part = usize::try_from(range.end - offset).unwrap_or(PAGE).min(PAGE);
        let read = source.read(offset, &mut page[..part]);
        hash.update(&page[..read]);
        if read < part {
            break;
        }
        offset = offset.saturating_add(step);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(bytes: &[u8]) -> Image {
        Image::in_memory(bytes.as_ptr().cast())
    }

    #[test]
    fn a_text_is_ptx_up_to_its_zero() {
        let one = image(b"//\n.version 9.0\n.target sm_90\n\0 rest");
        let two = image(b"//\n.version 9.0\n.target sm_90\n\0 more");
        assert_eq!((one.kind, one.bytes), (ModuleKind::Ptx, 30));
        assert_eq!(one, two);
    }

    #[test]
    fn one_changed_byte_is_another_module() {
        let mut text = vec![b'x'; 3_000_000];
        text.push(0);
        let before = image(&text);
        text[2_456_789] = b'y';
        assert_ne!(before.hash, image(&text).hash);
    }

    #[test]
    fn a_container_says_its_size() {
        let mut bytes = vec![0; 400];
        bytes[..4].copy_from_slice(&FATBIN.to_le_bytes());
        bytes[4..8].copy_from_slice(&(16 << 16 | 1u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&300u64.to_le_bytes());
        let found = image(&bytes);
        assert_eq!((found.kind, found.bytes), (ModuleKind::Fatbin, 316));
        bytes[399] = 1;
        assert_eq!(found, image(&bytes));
        bytes[315] = 1;
        assert_ne!(found, image(&bytes));
    }

    /// A fat binary of two entries of 1 MiB each, compressed or not.
    fn large(compressed: u32) -> Vec<u8> {
        let payload = 1 << 20;
        let entry = 64 + payload;
        let mut bytes = vec![7; 16 + 2 * entry];
        bytes[..4].copy_from_slice(&FATBIN.to_le_bytes());
        bytes[4..8].copy_from_slice(&(16 << 16 | 1u32).to_le_bytes());
        bytes[8..16].copy_from_slice(&(2 * entry as u64).to_le_bytes());
        for at in [16, 16 + entry] {
            bytes[at + 4..at + 8].copy_from_slice(&64u32.to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&(payload as u64).to_le_bytes());
            bytes[at + 16..at + 20].copy_from_slice(&compressed.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn of_a_large_container_the_heads_of_all_entries_count() {
        let mut bytes = large(1 << 20);
        let before = image(&bytes);
        let second = 16 + 64 + (1 << 20);
        bytes[second + 100] = 8;
        assert_ne!(before, image(&bytes), "the second entry begins otherwise");
        bytes[second + 100] = 7;
        bytes[second + 100_000] = 8;
        assert_eq!(before, image(&bytes), "what the driver may never read is not read");
    }

    #[test]
    fn of_code_that_is_not_compressed_some_pages_count_too() {
        let mut bytes = large(0);
        let before = image(&bytes);
        let third_sample = 16 + 64 + 2 * ((1 << 20) / 8);
        bytes[third_sample] = 8;
        assert_ne!(before, image(&bytes));
    }

    #[test]
    fn a_wrapper_is_what_it_wraps() {
        let text = b".version 9.0\n\0";
        let mut wrapper = [0; 24];
        wrapper[..4].copy_from_slice(&WRAPPER.to_le_bytes());
        wrapper[8..16].copy_from_slice(&(text.as_ptr().addr() as u64).to_le_bytes());
        assert_eq!(image(&wrapper), image(text));
    }

    #[test]
    fn a_wrapper_of_several_images_has_no_beginning() {
        let text = b".version 9.0\n\0";
        let mut wrapper = [0; 24];
        wrapper[..4].copy_from_slice(&WRAPPER.to_le_bytes());
        wrapper[8..16].copy_from_slice(&(text.as_ptr().addr() as u64).to_le_bytes());
        let start = |version: u32, wrapper: &mut [u8; 24]| {
            wrapper[4..8].copy_from_slice(&version.to_le_bytes());
            Image::start(wrapper.as_ptr().cast()).map(|memory| memory.start)
        };
        assert_eq!(start(1, &mut wrapper), Some(text.as_ptr().addr()));
        assert_eq!(start(2, &mut wrapper), None);
    }

    #[test]
    fn sizes_that_are_lies_end_where_memory_ends() {
        let mut bytes = vec![0; 64];
        bytes[..4].copy_from_slice(&FATBIN.to_le_bytes());
        bytes[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(image(&bytes).kind, ModuleKind::Fatbin);
        assert_eq!(Image::in_memory(std::ptr::without_provenance(64)), Image::UNKNOWN);
    }

    #[test]
    fn a_file_is_read_like_memory() {
        let bytes = std::fs::read("/proc/self/exe").unwrap();
        let file = Image::in_file(c"/proc/self/exe");
        assert_eq!(file.kind, ModuleKind::Cubin);
        assert_eq!(file, image(&bytes));
        assert_eq!(Image::in_file(c"/nowhere"), Image::UNKNOWN);
    }
}
