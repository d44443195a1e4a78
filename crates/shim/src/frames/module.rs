//! Modules and libraries: where kernels come from.

use super::{Frames, Image};
use crate::arena;
use crate::twins::{self, Kept};

/// Code that was loaded.
pub struct Module {
    pub image: Image,
    /// Its bytes, where somebody may want twins of its kernels.
    pub kept: Kept,
}

impl Module {
    /// Of which nothing is kept.
    pub const fn new(image: Image) -> Module {
        Module { image, kept: Kept::nothing() }
    }
}

/// What is not known to have been loaded through us.
pub static STRANGE: Module = Module::new(Image::UNKNOWN);

impl Frames {
    /// A module or library was loaded; its handle may have meant another one before.
    pub fn loaded(&self, handle: usize, module: Module) -> Option<()> {
        self.modules.put(handle, arena::place(module)?)
    }

    /// The same code under another handle: the module of a library.
    pub fn also(&self, handle: usize, of: usize) {
        if let Some(module) = self.modules.get(of) {
            self.modules.put(handle, module);
        }
    }

    /// The module of a function, under a handle by which it may not have been known.
    pub fn home_of(&self, function: usize, handle: usize) {
        if let Some(frame) = self.functions.get(function)
            && self.modules.get(handle).is_none()
        {
            self.modules.put(handle, frame.module);
        }
    }

    pub fn module(&self, handle: usize) -> &'static Module {
        self.modules.get(handle).unwrap_or(&STRANGE)
    }

    /// Forgets a module, its other handles, and all its functions, whose handles may come to mean something else.
    pub fn unloaded(&self, handle: usize) {
        if let Some(module) = self.modules.remove(handle) {
            self.modules.retain(|other| !std::ptr::eq(other, module));
            self.functions.retain(|frame| !std::ptr::eq(frame.module, module));
            twins::unloaded(module);
        }
    }
}
