//! Figures that a process leaves in a file, for the process that started it: they are there when it was killed.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// What a worker or an attacker has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Iterations whose results were held against the processor's; stores of an attacker.
    pub done: u64,
    /// Of those, with another result.
    pub wrong: u64,
    /// Allocations beyond the limit that were granted.
    pub beyond: u64,
    /// Allocations within the limit that were refused.
    pub refused: u64,
}

const BYTES: usize = 32;

/// Where a process writes its figures.
pub struct FigureFile(File);

impl FigureFile {
    pub fn create(path: &Path) -> FigureFile {
        FigureFile(OpenOptions::new().create(true).truncate(true).write(true).open(path).unwrap())
    }

    pub fn write(&self, figures: &Figures) {
        let mut bytes = [0; BYTES];
        let words = [figures.done, figures.wrong, figures.beyond, figures.refused];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        self.0.write_all_at(&bytes, 0).unwrap();
    }
}

/// What a process has written; nothing yet is no figures.
pub fn read(path: &Path) -> Figures {
    let mut bytes = [0; BYTES];
    if File::open(path).and_then(|file| file.read_exact_at(&mut bytes, 0)).is_err() {
        return Figures::default();
    }
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * at + byte]));
    Figures { done: word(0), wrong: word(1), beyond: word(2), refused: word(3) }
}
