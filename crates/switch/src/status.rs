//! What the driver answers.

use core::fmt;

/// The driver's status of a call: zero, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

impl Status {
    pub const OK: Status = Status(0);
    pub const BUSY_RETRY: Status = Status(0x03);
    pub const GPU_IS_LOST: Status = Status(0x0f);
    pub const INSUFFICIENT_PERMISSIONS: Status = Status(0x1b);
    pub const INVALID_ARGUMENT: Status = Status(0x1f);
    pub const INVALID_CHANNEL: Status = Status(0x21);
    pub const INVALID_CLIENT: Status = Status(0x23);
    pub const INVALID_OBJECT_HANDLE: Status = Status(0x33);
    pub const INVALID_PARAM_STRUCT: Status = Status(0x3a);
    pub const INVALID_STATE: Status = Status(0x40);
    pub const NOT_SUPPORTED: Status = Status(0x56);
    pub const OBJECT_NOT_FOUND: Status = Status(0x57);
    pub const TIMEOUT: Status = Status(0x65);
    pub const GENERIC: Status = Status(0xffff);

    pub fn is_ok(self) -> bool {
        self == Status::OK
    }

    /// The driver does not know the object of the call. An unknown *client* does not say so: that is also the answer to
    /// a call on a file that is not the client's.
    pub fn says_gone(self) -> bool {
        matches!(self, Status::INVALID_OBJECT_HANDLE | Status::OBJECT_NOT_FOUND)
    }

    /// NVIDIA's name of it, for those that these calls meet.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Status::OK => "NV_OK",
            Status::BUSY_RETRY => "NV_ERR_BUSY_RETRY",
            Status::GPU_IS_LOST => "NV_ERR_GPU_IS_LOST",
            Status::INSUFFICIENT_PERMISSIONS => "NV_ERR_INSUFFICIENT_PERMISSIONS",
            Status::INVALID_ARGUMENT => "NV_ERR_INVALID_ARGUMENT",
            Status::INVALID_CHANNEL => "NV_ERR_INVALID_CHANNEL",
            Status::INVALID_CLIENT => "NV_ERR_INVALID_CLIENT",
            Status::INVALID_OBJECT_HANDLE => "NV_ERR_INVALID_OBJECT_HANDLE",
            Status::INVALID_PARAM_STRUCT => "NV_ERR_INVALID_PARAM_STRUCT",
            Status::INVALID_STATE => "NV_ERR_INVALID_STATE",
            Status::NOT_SUPPORTED => "NV_ERR_NOT_SUPPORTED",
            Status::OBJECT_NOT_FOUND => "NV_ERR_OBJECT_NOT_FOUND",
            Status::TIMEOUT => "NV_ERR_TIMEOUT",
            Status::GENERIC => "NV_ERR_GENERIC",
            _ => return None,
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(to, "{name} (0x{:x})", self.0),
            None => write!(to, "status 0x{:x}", self.0),
        }
    }
}
