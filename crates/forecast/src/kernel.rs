//! Which kernel.

/// A kernel's identity, as a hash of whatever makes it one: its module, its name, how it is launched. Equal hashes are taken
/// for the same kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Kernel(pub u64);

/// Spreads what is in a number over all of its bits, so that any of them can choose a place in a table. (The finish of
/// splitmix64 with one multiplication less; nobody attacks a table of its own launches.)
pub(crate) const fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    number ^ (number >> 29)
}
