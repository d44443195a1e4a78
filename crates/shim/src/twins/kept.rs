//! Images, kept from the moment they are loaded until somebody wants a twin of a kernel in them.
//!
//! Most lie in the files of libraries, which the loader has mapped and keeps mapped: their address is enough. What comes
//! from elsewhere (compilers at run time, libraries that unpack their own code, files) is only there during the call that
//! loads it, and is copied. The program pays for the copy, so there is an end to it.

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Mode, OFlags};

use crate::arena::Pages;
use crate::frames::{Image, Memory, Source};
use crate::lock::Lock;

/// At most so many bytes of copies.
const LIMIT: usize = 512 << 20;

static COPIED: AtomicUsize = AtomicUsize::new(0);

/// The image of one module.
pub struct Kept {
    /// Held while it is read or let go.
    lock: Lock,
    /// Zero: it is not there.
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether it is a copy.
    own: bool,
}

impl Kept {
    pub const fn nothing() -> Kept {
        Kept { lock: Lock::new(), start: AtomicUsize::new(0), bytes: AtomicUsize::new(0), own: false }
    }

    /// An image that is just being loaded.
    pub fn in_memory(address: *const c_void, image: &Image) -> Kept {
        let (Some(memory), Ok(bytes)) = (Image::start(address), usize::try_from(image.bytes)) else {
            return Kept::nothing();
        };
        if is_in_an_object(memory.start) {
            let (start, bytes) = (AtomicUsize::new(memory.start), AtomicUsize::new(bytes));
            return Kept { start, bytes, ..Kept::nothing() };
        }
        Kept::copy(&memory, bytes)
    }

    /// The same for a file, which may be another one later.
    pub fn in_file(path: &CStr, image: &Image) -> Kept {
        let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        match (file, usize::try_from(image.bytes)) {
            (Ok(file), Ok(bytes)) => Kept::copy(&file, bytes),
            _ => Kept::nothing(),
        }
    }

    fn copy(source: &dyn Source, bytes: usize) -> Kept {
        let more = |copied: usize| copied.checked_add(bytes).filter(|sum| *sum <= LIMIT);
        if bytes == 0 || COPIED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_err() {
            return Kept::nothing();
        }
        let copied = Pages::new(bytes).filter(|pages| {
            // SAFETY: our own pages, zeroed, of that length, which nobody else knows yet.
            let buffer = unsafe { std::slice::from_raw_parts_mut(pages.start().cast::<u8>(), bytes) };
            source.read(0, buffer) == bytes
        });
        let Some(pages) = copied else {
            COPIED.fetch_sub(bytes, Ordering::Relaxed);
            return Kept::nothing();
        };
        let start = pages.start().expose_provenance();
        std::mem::forget(pages);
        let (start, bytes) = (AtomicUsize::new(start), AtomicUsize::new(bytes));
        Kept { start, bytes, own: true, ..Kept::nothing() }
    }

    /// How long the image is; zero when it is not there.
    pub fn bytes(&self) -> usize {
        if self.start.load(Ordering::Relaxed) == 0 { 0 } else { self.bytes.load(Ordering::Relaxed) }
    }

    /// Fills a buffer from an offset on, if so much is there.
    pub fn read(&self, offset: usize, buffer: &mut [u8]) -> Option<()> {
        let end = offset.checked_add(buffer.len())?;
        let _held = self.lock.acquire()?;
        let start = self.start.load(Ordering::Relaxed);
        if start == 0 || end > self.bytes.load(Ordering::Relaxed) {
            return None;
        }
        (Memory { start }.read(offset as u64, buffer) == buffer.len()).then_some(())
    }

    /// Whether it is still the image that was loaded: an object may have been closed, and another be in its place.
    pub fn is(&self, image: &Image) -> bool {
        let start = self.start.load(Ordering::Relaxed);
        start != 0 && (self.own || Image::in_memory(ptr::without_provenance(start)) == *image)
    }

    /// Its module is gone. Who reads it is waited for; without the lock a copy stays for ever.
    pub fn forget(&self) {
        let Some(_held) = self.lock.acquire() else { return };
        let start = self.start.swap(0, Ordering::Relaxed);
        if self.own && start != 0 {
            let bytes = self.bytes.load(Ordering::Relaxed);
            // SAFETY: pages of ours, which nobody reads: that takes the lock, and the address, which is no longer there.
            let _ = unsafe { rustix::mm::munmap(ptr::with_exposed_provenance_mut(start), bytes) };
            COPIED.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

/// In the child of a fork, which has no modules: the copies of the parent's stay where they are.
pub fn in_child() {
    COPIED.store(0, Ordering::Relaxed);
}

/// Whether an address lies in what the loader has mapped. Not by `dladdr`, which waits for constructors of libraries to
/// end, and those may wait for the thread that asks.
fn is_in_an_object(address: usize) -> bool {
    unsafe extern "C" fn look(
        object: *mut libc::dl_phdr_info,
        _: libc::size_t,
        address: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader's description of an object, for the time of this call.
        let object = unsafe { &*object };
        let count = usize::from(object.dlpi_phnum);
        let segments = match count {
            0 => &[],
            // SAFETY: the loader's list of the object's segments, of which there are so many.
            _ => unsafe { std::slice::from_raw_parts(object.dlpi_phdr, count) },
        };
        let holds = |segment: &libc::Elf64_Phdr| {
            let start = (object.dlpi_addr as usize).wrapping_add(segment.p_vaddr as usize);
            segment.p_type == libc::PT_LOAD && address.addr().wrapping_sub(start) < segment.p_memsz as usize
        };
        c_int::from(segments.iter().any(holds))
    }
    // SAFETY: a function that only compares numbers, and is given one.
    unsafe { libc::dl_iterate_phdr(Some(look), ptr::without_provenance_mut(address)) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TEXT: &[u8] = b"//\n.version 9.0\n.target sm_90\n\0";

    fn kept(bytes: &[u8]) -> (Kept, Image) {
        let image = Image::in_memory(bytes.as_ptr().cast());
        (Kept::in_memory(bytes.as_ptr().cast(), &image), image)
    }

    #[test]
    fn what_lies_in_a_library_is_kept_by_its_address() {
        let (kept, image) = kept(TEXT);
        assert!(!kept.own && kept.is(&image));
        let mut word = [0; 8];
        kept.read(3, &mut word).unwrap();
        assert_eq!(&word, b".version");
    }

    #[test]
    fn what_lies_elsewhere_is_copied() {
        let mut bytes = TEXT.to_vec();
        let (kept, image) = kept(&bytes);
        bytes.fill(b'x');
        drop(bytes);
        assert!(kept.own && kept.is(&image));
        let mut text = vec![0; kept.bytes()];
        kept.read(0, &mut text).unwrap();
        assert_eq!(text, TEXT[..TEXT.len() - 1]);
    }

    #[test]
    fn nothing_is_read_beyond_the_end_or_after_it_is_forgotten() {
        let bytes = TEXT.to_vec();
        let (kept, image) = kept(&bytes);
        let mut buffer = [0; 16];
        assert!(kept.read(kept.bytes() - 15, &mut buffer).is_none());
        assert!(kept.read(usize::MAX, &mut buffer).is_none());
        kept.forget();
        assert!(kept.read(0, &mut buffer).is_none() && !kept.is(&image) && kept.bytes() == 0);
        kept.forget();
    }

    #[test]
    fn a_file_is_read_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kernel.ptx");
        std::fs::write(&path, TEXT).unwrap();
        let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
        let image = Image::in_file(&name);
        let kept = Kept::in_file(&name, &image);
        std::fs::write(&path, "another").unwrap();
        let mut word = [0; 8];
        kept.read(3, &mut word).unwrap();
        assert_eq!(&word, b".version");
    }
}
