//! Memory of blocks that have ended, for those to come: a launch of many short blocks allocates nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::simt::Block;

/// Memory that may lie idle.
const MOST_BYTES: usize = 64 << 20;

/// A block is large and is handed round by pointer.
pub type Spare = Box<Block>;

#[derive(Default)]
pub struct Spares(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    /// With the bytes that each holds.
    blocks: Vec<(Spare, usize)>,
    bytes: usize,
}

impl Spares {
    /// Moves up to `wanted` spare blocks into `hand`.
    pub fn take(&self, wanted: usize, hand: &mut Vec<Spare>) {
        if wanted == 0 {
            return;
        }
        let mut shelf = self.shelf();
        let start = shelf.blocks.len().saturating_sub(wanted);
        let taken: usize = shelf.blocks[start..].iter().map(|(_, bytes)| bytes).sum();
        shelf.bytes -= taken;
        hand.extend(shelf.blocks.drain(start..).map(|(block, _)| block));
    }

    /// Takes back all that is in `hand`.
    pub fn keep(&self, hand: &mut Vec<Spare>) {
        if hand.is_empty() {
            return;
        }
        let mut shelf = self.shelf();
        for mut block in hand.drain(..) {
            // A module must not live on because a block of it lies here.
            block.release();
            let bytes = block.bytes();
            if shelf.bytes + bytes <= MOST_BYTES {
                shelf.bytes += bytes;
                shelf.blocks.push((block, bytes));
            }
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
