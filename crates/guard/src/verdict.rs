//! What may be done with a kernel, and why not more.

use crate::machine::Facts;
use std::fmt;

/// Which blocks may be turned away when a launch is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Any.
    Plain,
    /// All from some block on, in linear order. Needed where blocks wait for lower-numbered ones, and for clusters.
    Ordered,
}

/// Whether and how a kernel can be stopped between its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    Guard(Rule),
    Refuse(Reason),
}

/// What of a launch bears on the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Whether all blocks must be on the GPU at once (launch attribute 2, `cuLaunchCooperativeKernel`).
    pub cooperative: bool,
    /// Blocks of a cluster: 1 without clusters.
    pub cluster: u32,
    /// Blocks of the grid.
    pub blocks: u64,
}

impl Launch {
    /// Most blocks for which a word each is kept.
    pub const MOST_MARKS: u64 = 1 << 24;
    /// Most blocks that the ordered rule can count.
    pub const MOST_BLOCKS: u64 = (1 << 31) - 32;
    /// Most blocks in clusters: the hardware's number of a cluster is computed with 24 bits.
    pub const MOST_CLUSTERED_BLOCKS: u64 = 1 << 24;
}

impl Verdict {
    /// The verdict on a kernel of which nothing is known but its name and its instructions.
    pub fn on_sight(name: &str, facts: Facts) -> Verdict {
        if ELSEWHERE.iter().any(|library| name.contains(library)) {
            return Verdict::Refuse(Reason::Nccl);
        }
        match facts {
            Facts { synchronises_grid: true, .. } => Verdict::Refuse(Reason::Cooperative),
            Facts { may_wait: true, .. } => Verdict::Guard(Rule::Ordered),
            Facts { .. } => Verdict::Guard(Rule::Plain),
        }
    }

    /// What becomes of the kernel's verdict in this launch. It can only become stricter.
    pub fn for_launch(self, launch: Launch) -> Verdict {
        let Verdict::Guard(rule) = self else { return self };
        if launch.cooperative {
            return Verdict::Refuse(Reason::Cooperative);
        }
        let clustered = launch.cluster > 1;
        let most = if clustered { Launch::MOST_CLUSTERED_BLOCKS } else { Launch::MOST_BLOCKS };
        if launch.blocks > most {
            return Verdict::Refuse(Reason::GridTooLarge);
        }
        match clustered || launch.blocks > Launch::MOST_MARKS {
            true => Verdict::Guard(Rule::Ordered),
            false => Verdict::Guard(rule),
        }
    }

    /// The verdict as a byte; 0 is none of them.
    pub fn number(self) -> u8 {
        match self {
            Verdict::Guard(Rule::Plain) => 1,
            Verdict::Guard(Rule::Ordered) => 2,
            Verdict::Refuse(reason) => REFUSED + reason.number(),
        }
    }

    pub fn from_number(number: u8) -> Option<Verdict> {
        match number {
            1 => Some(Verdict::Guard(Rule::Plain)),
            2 => Some(Verdict::Guard(Rule::Ordered)),
            _ => Reason::from_number(number.checked_sub(REFUSED)?).map(Verdict::Refuse),
        }
    }
}

/// Parts of names of kernels whose blocks wait for those of other GPUs.
const ELSEWHERE: [&str; 2] = ["nccl", "nvshmem"];

/// Numbers of refusals begin behind this one.
const REFUSED: u8 = 16;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Guard(Rule::Plain) => f.write_str("guard"),
            Verdict::Guard(Rule::Ordered) => f.write_str("ordered guard"),
            Verdict::Refuse(reason) => write!(f, "refuse: {}", reason.sentence()),
        }
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $reason:ident = $number:literal, $name:literal, $sentence:literal;)*) => {
        /// Why a kernel is not guarded. Numbers are kept in files of earlier versions: a new reason gets a new one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason {
            $($(#[$doc])* $reason = $number,)*
        }

        impl Reason {
            pub const ALL: &[Reason] = &[$(Reason::$reason),*];

            /// For programs: a word that does not change.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$reason => $name,)* }
            }

            /// For people: what stands in the way.
            pub const fn sentence(self) -> &'static str {
                match self { $(Reason::$reason => $sentence,)* }
            }
        }
    };
}

reasons! {
    /// The launch asked for all blocks at once, or the kernel synchronises its grid.
    Cooperative = 1, "cooperative", "cooperative: all its blocks must be on the GPU at once";
    /// Its only parameter would be ours, which needs records that such a kernel does not have.
    NoParameters = 2, "no-parameters", "it has no parameters, so there is no place for the control words";
    ParametersTooLarge = 3, "parameters-too-large", "its parameters leave no room for the control words";
    UnknownArchitecture = 4, "unknown-architecture", "there is no prologue for its architecture";
    UnknownBeginning = 5, "unknown-beginning", "it does not begin as compilers let kernels begin";
    /// The driver's linker has yet to put it together.
    Relocatable = 6, "relocatable", "its image is to be linked first";
    /// The twin would have a variable of its own where the program means one.
    TouchesModuleMemory = 7, "touches-module-memory", "it uses variables of its module, which a twin would not share";
    DynamicParallelism = 8, "dynamic-parallelism", "it launches kernels itself";
    /// Its blocks wait for those of other GPUs.
    Nccl = 9, "nccl", "it communicates with other GPUs, which would wait for it";
    /// Found by the watchdog: it hung when cut, in the strictest way there is.
    WaitsForOthers = 10, "waits-for-others", "its blocks wait for higher-numbered blocks";
    /// Found by `--verify`.
    Differs = 11, "differs", "its results differed from the original's";
    BrokeCertificate = 12, "broke-certificate", "it took longer to stop than promised";
    RefusedByDriver = 13, "refused-by-driver", "the driver would not load it rewritten";
    GridTooLarge = 14, "grid-too-large", "its grid has more blocks than can be counted";
    /// A record about the kernel is missing, or is of a form this version does not know.
    UnknownRecords = 15, "unknown-records", "its image describes it in a way that is not understood";
    /// A graph is launched as a whole, and is held as a whole.
    InGraph = 16, "in-graph", "it is part of a graph, which is held as one";
    /// No image of the kernel was seen that this GPU can run.
    NoImage = 17, "no-image", "its image was not seen when it was loaded";
}

impl Reason {
    /// For files: never 0.
    pub const fn number(self) -> u8 {
        self as u8
    }

    pub fn from_number(number: u8) -> Option<Reason> {
        Self::ALL.iter().copied().find(|reason| reason.number() == number)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sentence())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const PLAIN: Verdict = Verdict::Guard(Rule::Plain);
    const SMALL: Launch = Launch { cooperative: false, cluster: 1, blocks: 100 };

    #[test]
    fn every_verdict_survives_as_a_number() {
        let refusals = Reason::ALL.iter().map(|&reason| Verdict::Refuse(reason));
        for verdict in refusals.chain([PLAIN, Verdict::Guard(Rule::Ordered)]) {
            assert_eq!(Verdict::from_number(verdict.number()), Some(verdict));
        }
        assert_eq!(Verdict::from_number(0), None);
        assert_eq!(Verdict::from_number(REFUSED), None);
    }

    #[test]
    fn reasons_have_names_of_their_own() {
        let names: BTreeSet<_> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Reason::ALL.len());
    }

    #[test]
    fn what_is_seen_decides_first() {
        let calm = Facts::default();
        assert_eq!(Verdict::on_sight("gemm", calm), PLAIN);
        let waits = Facts { may_wait: true, ..calm };
        assert_eq!(Verdict::on_sight("scan", waits), Verdict::Guard(Rule::Ordered));
        let synchronises = Facts { synchronises_grid: true, ..waits };
        assert_eq!(Verdict::on_sight("solver", synchronises), Verdict::Refuse(Reason::Cooperative));
        let nccl = Verdict::on_sight("_Z26ncclDevKernel_AllReduceXv", waits);
        assert_eq!(nccl, Verdict::Refuse(Reason::Nccl));
    }

    #[test]
    fn a_launch_can_make_a_verdict_stricter() {
        assert_eq!(PLAIN.for_launch(SMALL), PLAIN);
        let ordered = Verdict::Guard(Rule::Ordered);
        assert_eq!(PLAIN.for_launch(Launch { cluster: 2, ..SMALL }), ordered);
        assert_eq!(PLAIN.for_launch(Launch { blocks: Launch::MOST_MARKS + 1, ..SMALL }), ordered);
        let refused = |launch| match PLAIN.for_launch(launch) {
            Verdict::Refuse(reason) => reason,
            Verdict::Guard(_) => panic!("{launch:?} must be refused"),
        };
        assert_eq!(refused(Launch { cooperative: true, ..SMALL }), Reason::Cooperative);
        assert_eq!(refused(Launch { blocks: 1 << 31, ..SMALL }), Reason::GridTooLarge);
        assert_eq!(refused(Launch { blocks: 1 << 25, cluster: 2, ..SMALL }), Reason::GridTooLarge);
    }

    #[test]
    fn a_launch_never_makes_a_verdict_laxer() {
        let ordered = Verdict::Guard(Rule::Ordered);
        assert_eq!(ordered.for_launch(SMALL), ordered);
        let refused = Verdict::Refuse(Reason::Nccl);
        assert_eq!(refused.for_launch(Launch { cooperative: true, ..SMALL }), refused);
    }
}
