//! Memory of blocks that have ended, for those to come: a launch of many short blocks allocates nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory::AddressSpace;
use crate::simt::{Block, Launch};

/// Memory that may lie idle.
const MOST_BYTES: usize = 64 << 20;

#[derive(Default)]
pub struct Spares(Mutex<Shelf>);

#[derive(Default)]
struct Shelf {
    /// Boxed, because they came boxed and go boxed: a block is large and is handed round by pointer.
    #[expect(clippy::vec_box)]
    blocks: Vec<Box<Block>>,
    bytes: usize,
}

impl Spares {
    /// A block for this launch.
    pub fn take(&self, launch: &Arc<Launch>, space: &Arc<AddressSpace>) -> Box<Block> {
        let spare = {
            let mut shelf = self.shelf();
            let spare = shelf.blocks.pop();
            shelf.bytes -= spare.as_ref().map_or(0, |block| block.bytes());
            spare
        };
        match spare {
            Some(mut block) => {
                block.adopt(Arc::clone(launch));
                block
            }
            None => Box::new(Block::new(launch, space)),
        }
    }

    pub fn keep(&self, mut block: Box<Block>) {
        // A module must not live on because a block of it lies here.
        block.release();
        let mut shelf = self.shelf();
        let bytes = block.bytes();
        if shelf.bytes + bytes <= MOST_BYTES {
            shelf.bytes += bytes;
            shelf.blocks.push(block);
        }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
