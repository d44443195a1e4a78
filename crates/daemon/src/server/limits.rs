//! How much anybody may take of the daemon.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most connections there can be: eight full boards and as many readers.
const CONNECTIONS: usize = 2048;

/// For everything that is no connection here: boards, and readers of metrics, say.
const SPARE: u64 = 384;

/// Descriptors to a connection: its socket, and the process behind it.
const DESCRIPTORS: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all, and processes that are waited for.
    pub all: usize,
    /// Of one user. The daemon's own and root have no other limit than all.
    pub per_user: usize,
    /// Of one user, that have not yet said what they want.
    pub newcomers: usize,
    /// Of all, those that only root and the daemon's own user may have: somebody must be able to see what is wrong.
    pub reserved: usize,
}

impl Limits {
    /// Raises the number of descriptors as far as may be, and divides them.
    pub fn here() -> Limits {
        let limit = getrlimit(Resource::Nofile);
        let wanted = DESCRIPTORS * 2 * CONNECTIONS as u64 + SPARE;
        let most = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let raised = Rlimit { current: Some(most), maximum: limit.maximum };
        let files = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => most,
            Err(_) => limit.current.unwrap_or(wanted),
        };
        Limits::of(files)
    }

    fn of(files: u64) -> Limits {
        let room = files.saturating_sub(SPARE) / (DESCRIPTORS * 2);
        let all = usize::try_from(room).unwrap_or(CONNECTIONS).clamp(8, CONNECTIONS);
        Limits { all, per_user: (all / 4).max(4), newcomers: (all / 16).max(4), reserved: all / 16 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_leaves_room_for_others() {
        for files in [0, 100, 1024, 1 << 20] {
            let limits = Limits::of(files);
            assert!(limits.per_user < limits.all && limits.newcomers <= limits.per_user, "{limits:?}");
            assert!(limits.per_user <= limits.all - limits.reserved, "{limits:?}");
        }
        assert_eq!(Limits::of(1 << 20).all, CONNECTIONS);
    }
}
