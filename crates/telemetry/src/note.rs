//! What a process has to say beyond numbers: facts that are true or not, each at most once.

/// One bit of the ledger. The numbers belong to the layout's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Note {
    /// Something inside a hook went wrong, and hooks are off in this process since.
    HooksOff,
    /// A file called libcuda was opened by its path; the shim was given instead.
    OpenedByPath,
    /// No driver was found behind the shim.
    NoDriver,
    /// The driver behind is newer than the tables of the shim.
    NewerDriver,
    /// There was no memory for what the shim wanted to remember.
    OutOfMemory,
    /// More kernels than a ledger has places for.
    KernelsOverflow,
    /// A graph has nodes that run kernels a number of times that only the GPU knows.
    ConditionalGraphs,
    /// What was kept of kernels could not be used, and was set aside.
    ProfileSetAside,
    /// A limit of memory in the environment could not be understood.
    LimitIgnored,
    /// The event log could not be made.
    NoEvents,
}

impl Note {
    pub const ALL: [Note; 10] = [
        Note::HooksOff,
        Note::OpenedByPath,
        Note::NoDriver,
        Note::NewerDriver,
        Note::OutOfMemory,
        Note::KernelsOverflow,
        Note::ConditionalGraphs,
        Note::ProfileSetAside,
        Note::LimitIgnored,
        Note::NoEvents,
    ];

    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Note::HooksOff => "hooks_off",
            Note::OpenedByPath => "opened_by_path",
            Note::NoDriver => "no_driver",
            Note::NewerDriver => "newer_driver",
            Note::OutOfMemory => "out_of_memory",
            Note::KernelsOverflow => "kernels_overflow",
            Note::ConditionalGraphs => "conditional_graphs",
            Note::ProfileSetAside => "profile_set_aside",
            Note::LimitIgnored => "limit_ignored",
            Note::NoEvents => "no_events",
        }
    }

    /// For people.
    pub fn sentence(self) -> &'static str {
        match self {
            Note::HooksOff => {
                "a hook failed inside ebb, so ebb has only forwarded calls since; the figures stop there"
            }
            Note::OpenedByPath => "the driver was opened by its path; it was given ebb's library instead",
            Note::NoDriver => "no NVIDIA driver was found, so every call answered CUDA_ERROR_NO_DEVICE",
            Note::NewerDriver => "the driver is newer than this ebb; functions it does not know are not seen",
            Note::OutOfMemory => "memory ran out inside ebb, so some kernels are counted without their names",
            Note::KernelsOverflow => {
                "more kernels were used than a ledger lists; the rest are counted together"
            }
            Note::ConditionalGraphs => {
                "a graph has conditional nodes; the kernels in their bodies are not counted"
            }
            Note::ProfileSetAside => {
                "what was known of kernels from earlier runs was damaged; it was set aside and is learned anew"
            }
            Note::LimitIgnored => {
                "a limit of memory in its environment could not be understood, and was ignored"
            }
            Note::NoEvents => {
                "its event log could not be written (the disk may be full), so `ebb trace` does not show it"
            }
        }
    }

    pub(crate) fn bit(self) -> u64 {
        1 << self as u8
    }
}
