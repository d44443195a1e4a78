//! Frames of reference: what is known about a handle.
//!
//! A launch names a kernel by a pointer. Here is what the pointer means: the kernel's name, the module it came from
//! and that module's hash, its parameters, its place in the ledger. All of it is learned once, when the handle first
//! appears or is first launched; afterwards a launch costs one look-up in a table that nobody locks.

mod function;
mod graph;
mod image;
mod module;
mod record;
mod table;

use std::sync::atomic::AtomicUsize;

use table::Table;

pub use function::{Frame, Of};
pub use image::{Image, Memory, Source};
pub use module::Module;
pub use record::Graph;

/// Everything known in this process.
pub struct Frames {
    modules: Table<Module>,
    functions: Table<Frame>,
    graphs: Table<Graph>,
    /// Graph records that are free for use again.
    spare: record::Spare,
    /// How many streams are being captured; a bound from above. While there is none, no launch needs to ask.
    pub captures: AtomicUsize,
    /// Whether the driver may be asked what it can only answer with an error: see `Frame::parameters`.
    may_ask_in_vain: bool,
}

impl Frames {
    pub fn new(may_ask_in_vain: bool) -> Option<Frames> {
        Some(Frames {
            modules: Table::new()?,
            functions: Table::new()?,
            graphs: Table::new()?,
            spare: record::Spare::new(),
            captures: AtomicUsize::new(0),
            may_ask_in_vain,
        })
    }
}
