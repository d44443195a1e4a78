//! The tree back to text.
//!
//! The nodes own no text, so printing is a walk: each leaf of the tree is copied from the source, and before
//! it the gap since the leaf before. The result equals the source exactly if the leaves are in order and none
//! overlaps another, which is what edits rely on and [`Module::verify`] checks.

use crate::Module;
use std::fmt;

impl Module {
    /// The module as text: its source, byte for byte.
    pub fn print(&self) -> String {
        let mut text = String::with_capacity(self.source.len());
        let mut printed = 0;
        for leaf in self.leaves() {
            let range = leaf.span.range();
            text.push_str(self.source.get(printed..range.start).unwrap_or(""));
            text.push_str(&self.source[range.clone()]);
            printed = range.end;
        }
        text.push_str(&self.source[printed..]);
        text
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print())
    }
}
