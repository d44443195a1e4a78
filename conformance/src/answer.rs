//! What a driver call answered, and the judgement on it.

use anyhow::{Result, bail};
use std::fmt;
use std::panic::Location;

/// A result code of the driver, kept as a number: drivers may know codes that this suite does not.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($name:ident = $value:literal),* $(,)?) => {
        impl Code {
            $(pub const $name: Code = Code($value);)*

            /// The name without its `CUDA_ERROR_` prefix, if it is one this suite uses.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    DEINITIALIZED = 4,
    STUB_LIBRARY = 34,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    MAP_FAILED = 205,
    UNMAP_FAILED = 206,
    ALREADY_MAPPED = 208,
    NO_BINARY_FOR_GPU = 209,
    NOT_MAPPED = 211,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222,
    INVALID_SOURCE = 300,
    FILE_NOT_FOUND = 301,
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302,
    INVALID_HANDLE = 400,
    ILLEGAL_STATE = 401,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701,
    LAUNCH_TIMEOUT = 702,
    PEER_ACCESS_ALREADY_ENABLED = 704,
    PEER_ACCESS_NOT_ENABLED = 705,
    PRIMARY_CONTEXT_ACTIVE = 708,
    CONTEXT_IS_DESTROYED = 709,
    ASSERT = 710,
    HOST_MEMORY_ALREADY_REGISTERED = 712,
    HOST_MEMORY_NOT_REGISTERED = 713,
    HARDWARE_STACK_ERROR = 714,
    ILLEGAL_INSTRUCTION = 715,
    MISALIGNED_ADDRESS = 716,
    INVALID_ADDRESS_SPACE = 717,
    INVALID_PC = 718,
    LAUNCH_FAILED = 719,
    COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    NOT_PERMITTED = 800,
    NOT_SUPPORTED = 801,
    STREAM_CAPTURE_UNSUPPORTED = 900,
    STREAM_CAPTURE_INVALIDATED = 901,
    STREAM_CAPTURE_MERGE = 902,
    STREAM_CAPTURE_UNMATCHED = 903,
    STREAM_CAPTURE_UNJOINED = 904,
    STREAM_CAPTURE_ISOLATION = 905,
    STREAM_CAPTURE_IMPLICIT = 906,
    CAPTURED_EVENT = 907,
    STREAM_CAPTURE_WRONG_THREAD = 908,
    GRAPH_EXEC_UPDATE_FAILURE = 910,
    UNKNOWN = 999,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, self.name().unwrap_or("(unnamed)"))
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The code that one call answered, together with the call's name for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "an answer is there to be judged: `.ok()?`, `.is(code)?` or `.one_of(codes)?`"]
pub struct Answer {
    pub call: &'static str,
    pub code: Code,
}

impl Answer {
    /// Fails unless the call succeeded.
    #[track_caller]
    pub fn ok(self) -> Result<()> {
        self.is(Code::SUCCESS)
    }

    /// Fails unless the call answered exactly `want`.
    #[track_caller]
    pub fn is(self, want: Code) -> Result<()> {
        self.one_of(&[want])
    }

    /// Fails unless the call answered one of `wants`: for questions that drivers of different ages answer differently.
    #[track_caller]
    pub fn one_of(self, wants: &[Code]) -> Result<()> {
        if wants.contains(&self.code) {
            return Ok(());
        }
        let at = Location::caller();
        let wants: Vec<String> = wants.iter().map(Code::to_string).collect();
        bail!(
            "{} answered {}, wanted {} ({}:{})",
            self.call,
            self.code,
            wants.join(" or "),
            at.file(),
            at.line()
        )
    }
}
