//! What can be told from a kernel's instructions.
