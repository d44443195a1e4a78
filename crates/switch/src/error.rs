//! What can go wrong with a call on a channel group.

use crate::capture::Kind;
use crate::control::{LONGEST_WAIT, Micros};
use crate::kernel::Errno;
use crate::status::Status;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the {0} no longer exists")]
    Gone(Kind),
    #[error("the driver refused {control}: {status}")]
    Refused { control: &'static str, status: Status },
    #[error("{control} did not reach the driver: {errno}")]
    System { control: &'static str, errno: Errno },
    /// The driver's disabling call goes through a subdevice of the same client, and none was seen.
    #[error("a channel cannot be disabled, because the subdevice of its GPU was not seen")]
    NoSubdevice,
    #[error("the driver waits at most {LONGEST_WAIT} for a preemption, not {0}")]
    WaitTooLong(Micros),
}
