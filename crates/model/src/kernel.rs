//! Which kernel is meant.
//!
//! A name says little: one function of a library runs for a microsecond in one shape and for a millisecond in another, and
//! two libraries have functions of one name. So a kernel is its code (the hash of the module that holds it), its name there,
//! the shape it is launched in, and the rung by which it was to be stopped, since a kernel with a prologue takes a little
//! longer than without. Whoever has all of that the same takes about the same time, as long as GPU and driver are the same.
//!
//! Where in a program it is launched matters too, for what follows: a *site* is the place in the tenant's recurring sequence.

use std::fmt;
use std::str::FromStr;

use crate::{Dim3, UnknownWord};

/// A kernel in one shape. `N` is whatever holds its name: a `&str` where nothing may be allocated, a `String` where it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kernel<N = String> {
    pub module: ModuleHash,
    /// As the module calls it, mangled.
    pub name: N,
    pub geometry: Geometry,
    pub rung: Rung,
}

/// The hash of a module's code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleHash(pub u128);

/// How a kernel is launched: blocks, threads of a block, and what it is given of the memory that a block shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Geometry {
    pub grid: Dim3,
    pub block: Dim3,
    pub shared_bytes: u32,
}

/// A place in a tenant's recurring sequence, as a hash of what it launched before, which whoever follows the sequence makes.
/// The same in every run of a program that does the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(pub u64);

/// A kernel as one number, where names are too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u64);

/// A means of stopping a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rung {
    /// It is not stopped: it is a latency tenant's.
    #[default]
    None,
    /// Before it begins.
    Hold,
    /// Between its blocks.
    Guard,
    /// Anywhere, by a switch of contexts.
    Switch,
    /// It runs on, on a part of the GPU.
    Confine,
}

impl Rung {
    pub const ALL: [Rung; 5] = [Rung::None, Rung::Hold, Rung::Guard, Rung::Switch, Rung::Confine];

    /// In a word, as files and programs name it.
    pub fn name(self) -> &'static str {
        match self {
            Rung::None => "none",
            Rung::Hold => "hold",
            Rung::Guard => "guard",
            Rung::Switch => "switch",
            Rung::Confine => "confine",
        }
    }

    /// As a byte, where files are not for people.
    pub fn number(self) -> u8 {
        self as u8
    }

    pub fn from_number(number: u8) -> Option<Rung> {
        Rung::ALL.get(usize::from(number)).copied()
    }
}

impl FromStr for Rung {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Rung, UnknownWord> {
        let known = Rung::ALL.into_iter().find(|rung| rung.name() == word);
        let expected = "none, hold, guard, switch, confine";
        known.ok_or_else(|| UnknownWord { word: word.to_owned(), expected })
    }
}

impl<N: AsRef<str>> Kernel<N> {
    /// The same kernel has the same number in every process, in every run.
    pub fn id(&self) -> KernelId {
        let Geometry { grid, block, shared_bytes } = self.geometry;
        let numbers = [grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes];
        let digest = Digest::new().bytes(&self.module.0.to_le_bytes()).bytes(self.name.as_ref().as_bytes());
        let digest = numbers.iter().fold(digest, |digest, number| digest.bytes(&number.to_le_bytes()));
        KernelId(digest.bytes(&[self.rung.number()]).finish())
    }

    /// The same kernel with a borrowed name.
    pub fn borrowed(&self) -> Kernel<&str> {
        let Kernel { module, geometry, rung, .. } = *self;
        Kernel { module, name: self.name.as_ref(), geometry, rung }
    }
}

impl Kernel<&str> {
    pub fn to_owned(self) -> Kernel {
        let Kernel { module, name, geometry, rung } = self;
        Kernel { module, name: name.to_owned(), geometry, rung }
    }
}

/// FNV-1a, and a last step that lets every bit depend on all (that of MurmurHash 3). It is not fast, but it is a few lines, and
/// needs no dependency where there is none; a kernel's number is computed once.
struct Digest(u64);

impl Digest {
    const fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(self, bytes: &[u8]) -> Digest {
        let step = |digest: u64, byte: &u8| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Digest(bytes.iter().fold(self.0, step))
    }

    fn finish(self) -> u64 {
        let mixed = (self.0 ^ self.0 >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let mixed = (mixed ^ mixed >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        mixed ^ mixed >> 33
    }
}

impl fmt::Display for ModuleHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for KernelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn gemm() -> Kernel {
        let geometry =
            Geometry { grid: Dim3::new(8, 4, 1), block: Dim3::new(128, 1, 1), shared_bytes: 49_152 };
        Kernel { module: ModuleHash(7 << 100), name: "gemm".to_owned(), geometry, rung: Rung::Guard }
    }

    #[test]
    fn every_part_of_a_kernel_tells_it_from_others() {
        let one = gemm();
        let others = [
            Kernel { module: ModuleHash(7 << 100 | 1), ..one.clone() },
            Kernel { name: "gemm2".to_owned(), ..one.clone() },
            Kernel { rung: Rung::Hold, ..one.clone() },
            Kernel { geometry: Geometry { shared_bytes: 0, ..one.geometry }, ..one.clone() },
            Kernel { geometry: Geometry { grid: Dim3::new(4, 8, 1), ..one.geometry }, ..one.clone() },
            Kernel { geometry: Geometry { block: Dim3::new(1, 128, 1), ..one.geometry }, ..one.clone() },
        ];
        let ids: BTreeSet<KernelId> = others.iter().map(Kernel::id).chain([one.id()]).collect();
        assert_eq!(ids.len(), 7);
    }

    #[test]
    fn a_number_is_the_same_however_the_name_is_held_and_for_ever() {
        assert_eq!(gemm().borrowed().id(), gemm().id());
        assert_eq!(gemm().borrowed().to_owned(), gemm());
        // It stands in files: a change here is a change of their format.
        assert_eq!(gemm().id().to_string(), "33d944e8bcbfc681");
    }

    #[test]
    fn rungs_round_trip() {
        for rung in Rung::ALL {
            assert_eq!(rung.name().parse(), Ok(rung));
            assert_eq!(Rung::from_number(rung.number()), Some(rung));
        }
        assert_eq!(Rung::from_number(5), None);
        let error = "stop".parse::<Rung>().unwrap_err().to_string();
        assert!(Rung::ALL.iter().all(|rung| error.contains(rung.name())), "{error}");
    }
}
