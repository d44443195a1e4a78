//! Copies and fills on behalf of the driver.
//!
//! The device side of a copy is checked against the granule table; the host side is trusted, as CUDA trusts
//! it. Bytes are moved by the C library rather than by Rust's own copies: other threads may be touching them,
//! which is the caller's affair as it is with a card.
//!
//! But a single word is not left to the C library, which writes four bytes twice (it moves the first four and the last four of
//! whatever has four to seven). A card writes it once, and programs rely on it: a stream may wait for that word, and what it goes on
//! with may write the word anew.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{AddressSpace, Error};
use crate::error::Access;

/// A copy of `height` rows; an address may be of the host or of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy2D {
    pub to: u64,
    pub to_pitch: u64,
    pub from: u64,
    pub from_pitch: u64,
    pub width: u64,
    pub height: u64,
}

/// A copy of `depth` slices, `to_slice` and `from_slice` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy3D {
    pub plane: Copy2D,
    pub to_slice: u64,
    pub from_slice: u64,
    pub depth: u64,
}

/// The width of a word that a stream waits for or writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Four,
    Eight,
}

impl Word {
    /// The word that so many bytes at these places are, if they are one.
    fn that_is(places: &[usize], bytes: u64) -> Option<Word> {
        let word = match bytes {
            4 => Word::Four,
            8 => Word::Eight,
            _ => return None,
        };
        places.iter().all(|place| place.is_multiple_of(bytes as usize)).then_some(word)
    }

    /// # Safety
    /// So many bytes must be readable there, aligned, and accessed by others as atomics or by the C library only.
    unsafe fn load(self, place: usize) -> u64 {
        let place = ptr::with_exposed_provenance_mut::<c_void>(place);
        match self {
            // SAFETY: passed on to our caller.
            Word::Four => u64::from(unsafe { AtomicU32::from_ptr(place.cast()) }.load(Ordering::Acquire)),
            // SAFETY: passed on to our caller.
            Word::Eight => unsafe { AtomicU64::from_ptr(place.cast()) }.load(Ordering::Acquire),
        }
    }

    /// Once, after everything written before.
    ///
    /// # Safety
    /// As of `load`, and they must be writable.
    unsafe fn store(self, place: usize, value: u64) {
        let place = ptr::with_exposed_provenance_mut::<c_void>(place);
        match self {
            // SAFETY: passed on to our caller.
            Word::Four => unsafe { AtomicU32::from_ptr(place.cast()) }.store(value as u32, Ordering::Release),
            // SAFETY: passed on to our caller.
            Word::Eight => unsafe { AtomicU64::from_ptr(place.cast()) }.store(value, Ordering::Release),
        }
    }
}

/// What a fill repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    One(u8),
    Two(u16),
    Four(u32),
}

impl Pattern {
    pub fn bytes(self) -> u64 {
        match self {
            Pattern::One(_) => 1,
            Pattern::Two(_) => 2,
            Pattern::Four(_) => 4,
        }
    }

    /// Eight bytes of it.
    fn repeated(self) -> [u8; 8] {
        let four = match self {
            Pattern::One(value) => u32::from_le_bytes([value; 4]),
            Pattern::Two(value) => u32::from(value) << 16 | u32::from(value),
            Pattern::Four(value) => value,
        };
        (u64::from(four) << 32 | u64::from(four)).to_le_bytes()
    }
}

/// `height` rows of `width` elements, `pitch` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fill {
    pub to: u64,
    pub pitch: u64,
    pub pattern: Pattern,
    pub width: u64,
    pub height: u64,
}

impl AddressSpace {
    /// Copies `bytes` between any two places.
    pub fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let to = self.place(to, bytes, Access::Write)?;
        let from = self.place(from, bytes, Access::Read)?;
        move_bytes(to, from, bytes);
        Ok(())
    }

    /// Puts bytes into memory of the device.
    pub fn write(&self, to: u64, bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let to = self.device_place(to, bytes.len() as u64, Access::Write)?;
        move_bytes(to, bytes.as_ptr().expose_provenance(), bytes.len() as u64);
        Ok(())
    }

    /// Gets bytes from memory of the device.
    pub fn read(&self, from: u64, bytes: &mut [u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let from = self.device_place(from, bytes.len() as u64, Access::Read)?;
        move_bytes(bytes.as_mut_ptr().expose_provenance(), from, bytes.len() as u64);
        Ok(())
    }

    /// The word of the device's memory at an aligned address, read at once.
    pub fn load_word(&self, address: u64, width: Word) -> Result<u64, Error> {
        let place = self.word_place(address, width, Access::Read)?;
        // SAFETY: aligned, and `translate` has answered for the bytes.
        Ok(unsafe { width.load(place.expose_provenance()) })
    }

    /// Writes a word of the device's memory at once, after everything written before.
    pub fn store_word(&self, address: u64, width: Word, value: u64) -> Result<(), Error> {
        let place = self.word_place(address, width, Access::Write)?;
        // SAFETY: aligned, and `translate` has answered for the bytes.
        unsafe { width.store(place.expose_provenance(), value) };
        Ok(())
    }

    fn word_place(&self, address: u64, width: Word, access: Access) -> Result<*mut u8, Error> {
        let bytes: u32 = match width {
            Word::Four => 4,
            Word::Eight => 8,
        };
        if !address.is_multiple_of(u64::from(bytes)) {
            return Err(Error::InvalidAddress { address, what: "not aligned" });
        }
        let wrong = Error::Inaccessible { address, bytes: u64::from(bytes) };
        self.translate(address, bytes, access).ok_or(wrong)
    }

    pub fn copy_2d(&self, copy: &Copy2D) -> Result<(), Error> {
        self.copy_3d(&Copy3D { plane: *copy, to_slice: 0, from_slice: 0, depth: 1 })
    }

    /// Checks the whole extent first, so that nothing is copied when something would be out of bounds.
    pub fn copy_3d(&self, copy: &Copy3D) -> Result<(), Error> {
        let plane = &copy.plane;
        if plane.width == 0 || plane.height == 0 || copy.depth == 0 {
            return Ok(());
        }
        let to = self.rows(plane.to, plane.to_pitch, copy.to_slice, copy, Access::Write)?;
        let from = self.rows(plane.from, plane.from_pitch, copy.from_slice, copy, Access::Read)?;
        for slice in 0..copy.depth {
            for row in 0..plane.height {
                let to = to + (slice * copy.to_slice + row * plane.to_pitch) as usize;
                let from = from + (slice * copy.from_slice + row * plane.from_pitch) as usize;
                move_bytes(to, from, plane.width);
            }
        }
        Ok(())
    }

    pub fn fill(&self, fill: &Fill) -> Result<(), Error> {
        if fill.width == 0 || fill.height == 0 {
            return Ok(());
        }
        let too_large = Error::InvalidSize { bytes: fill.width };
        let width = fill.width.checked_mul(fill.pattern.bytes()).ok_or(too_large)?;
        let bytes = extent(width, fill.pitch, fill.height, 0, 1)?;
        let start = self.device_place(fill.to, bytes, Access::Write)?;
        if fill.pitch == width {
            fill_row(start, fill.pattern, fill.width * fill.height);
            return Ok(());
        }
        for row in 0..fill.height {
            fill_row(start + (row * fill.pitch) as usize, fill.pattern, fill.width);
        }
        Ok(())
    }

    /// Whether the device may access all of a range.
    pub fn check(&self, address: u64, bytes: u64, access: Access) -> Result<(), Error> {
        self.device_place(address, bytes, access).map(drop)
    }

    fn rows(
        &self,
        start: u64,
        pitch: u64,
        slice: u64,
        copy: &Copy3D,
        access: Access,
    ) -> Result<usize, Error> {
        let bytes = extent(copy.plane.width, pitch, copy.plane.height, slice, copy.depth)?;
        self.place(start, bytes, access)
    }

    /// Where `bytes` at an address are to be found: checked inside the windows, trusted outside.
    fn place(&self, address: u64, bytes: u64, access: Access) -> Result<usize, Error> {
        let inside = self.offset(address).is_some();
        let reaches = address.checked_add(bytes).ok_or(Error::InvalidSize { bytes })? > self.front
            && address < self.front;
        if inside || reaches {
            return self.device_place(address, bytes, access);
        }
        if address == 0 {
            return Err(Error::Inaccessible { address, bytes });
        }
        Ok(address as usize)
    }

    fn device_place(&self, address: u64, bytes: u64, access: Access) -> Result<usize, Error> {
        let wrong = Error::Inaccessible { address, bytes };
        // `translate` counts in 32 bits; longer ranges are checked piece by piece over the same granules.
        const PIECE: u64 = 1 << 31;
        let mut first = None;
        let mut done = 0;
        while done < bytes.max(1) {
            let piece = PIECE.min(bytes.max(1) - done);
            let place = address.checked_add(done).and_then(|at| self.translate(at, piece as u32, access));
            let Some(place) = place else { return Err(wrong) };
            first.get_or_insert(place);
            done += piece;
        }
        first.map(|place| place.expose_provenance()).ok_or(wrong)
    }
}

/// Bytes from the first of a pitched box to its last.
fn extent(width: u64, pitch: u64, height: u64, slice: u64, depth: u64) -> Result<u64, Error> {
    let rows = (height - 1).checked_mul(pitch);
    let slices = (depth - 1).checked_mul(slice);
    let both = rows.and_then(|rows| rows.checked_add(slices?)).and_then(|bytes| bytes.checked_add(width));
    both.ok_or(Error::InvalidSize { bytes: width })
}

fn move_bytes(to: usize, from: usize, bytes: u64) {
    if let Some(word) = Word::that_is(&[to, from], bytes) {
        // SAFETY: as below, and aligned.
        let value = unsafe { word.load(from) };
        // SAFETY: as below, and aligned.
        return unsafe { word.store(to, value) };
    }
    let to = ptr::with_exposed_provenance_mut::<c_void>(to);
    let from = ptr::with_exposed_provenance::<c_void>(from);
    // SAFETY: both ends were placed by `AddressSpace::place`: memory of ours that is mapped for the life of
    // the space, or memory of the host that the caller vouches for, as it must to CUDA. They may overlap.
    unsafe { libc::memmove(to, from, bytes as usize) };
}

fn fill_row(start: usize, pattern: Pattern, elements: u64) {
    let (unit, bytes) = (pattern.repeated(), elements * pattern.bytes());
    if let Some(word) = Word::that_is(&[start], bytes) {
        // SAFETY: aligned, and `fill` has placed the row inside accessible memory, which is mapped as long as the space.
        return unsafe { word.store(start, u64::from_le_bytes(unit)) };
    }
    if unit == [unit[0]; 8] {
        let place = ptr::with_exposed_provenance_mut::<c_void>(start);
        // SAFETY: as above.
        unsafe { libc::memset(place, i32::from(unit[0]), bytes as usize) };
        return;
    }
    // One page of pattern, laid down again and again.
    let page = unit.repeat(4096 / unit.len());
    for offset in (0..bytes).step_by(page.len()) {
        let piece = bytes - offset;
        let from = page.as_ptr().expose_provenance();
        move_bytes(start + offset as usize, from, piece.min(page.len() as u64));
    }
}
