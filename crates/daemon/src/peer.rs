//! Who is at the other end of a connection, by the word of the kernel.
//!
//! A peer says nothing about itself that counts: user, groups and process come from the socket, as they were when it
//! connected. For the process we want a descriptor rather than a number, since a number may be somebody else's by the
//! time it is used.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt as _;

use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// As many groups as anybody is in, and a bound on what is believed.
const GROUPS: usize = 1 << 16;

/// In the kernel since 6.5, and not in every C library's header.
const SO_PEERPIDFD: i32 = 77;

#[derive(Debug)]
pub struct Peer {
    pub user: u32,
    /// The first is its own, the others it is a member of.
    pub groups: Vec<u32>,
    /// Not known if the process is in a container whose numbers mean nothing here.
    pub pid: Option<Pid>,
    /// Becomes readable when the process ends. Where there is none, the end of the connection must do.
    pub life: Option<OwnedFd>,
}

impl Peer {
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Peer> {
        // Not by `rustix`, whose type has no room for the number nought, which is what a process has that is in none of
        // our name spaces.
        let mut credentials = [0_u32; 3];
        let size = option(socket, libc::SO_PEERCRED, &mut credentials);
        if size != Some(size_of_val(&credentials)) {
            return Err(io::Error::last_os_error());
        }
        let [pid, user, group] = credentials;
        let mut groups = vec![group];
        groups.extend(supplementary(socket));
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let life = life(socket).or_else(|| pid.and_then(|pid| reopened(pid, user)));
        Ok(Peer { user, groups, pid, life })
    }

    pub fn number(&self) -> u32 {
        self.pid.map_or(0, |pid| pid.as_raw_nonzero().get().unsigned_abs())
    }
}

/// The process that connected, exactly.
fn life(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let mut fd: RawFd = -1;
    let size = option(socket, SO_PEERPIDFD, std::slice::from_mut(&mut fd))?;
    if size != size_of::<RawFd>() || fd < 0 {
        return None;
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// For older kernels: the process that now has the number of the one that connected. Should that one have died
/// already, its connection ends too, and that is seen; what is excluded here is that we wait for a stranger.
fn reopened(pid: Pid, user: u32) -> Option<OwnedFd> {
    let life = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let owner = std::fs::metadata(format!("/proc/{}", pid.as_raw_nonzero())).ok()?.uid();
    (owner == user).then_some(life)
}

fn supplementary(socket: BorrowedFd<'_>) -> Vec<u32> {
    let mut groups = vec![0_u32; 64];
    loop {
        match option(socket, libc::SO_PEERGROUPS, &mut groups) {
            Some(bytes) => {
                groups.truncate(bytes / size_of::<u32>());
                return groups;
            }
            None if groups.len() < GROUPS => groups.resize(groups.len() * 8, 0),
            None => return Vec::new(),
        }
    }
}

/// An option of a socket as plain integers, and how many bytes of it there are.
fn option<T: Integer>(socket: BorrowedFd<'_>, name: i32, value: &mut [T]) -> Option<usize> {
    let room = size_of_val(value);
    let mut size = libc::socklen_t::try_from(room).ok()?;
    // SAFETY: the kernel writes at most `size` bytes, which is how large `value` is; any bytes are an integer.
    let code = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            value.as_mut_ptr().cast(),
            &mut size,
        )
    };
    let size = usize::try_from(size).ok()?;
    (code == 0 && size <= room).then_some(size)
}

/// What any bytes are a value of.
trait Integer {}
impl Integer for i32 {}
impl Integer for u32 {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_peer_is_known_by_the_kernels_word() {
        let (here, _there) = UnixStream::pair().unwrap();
        let peer = Peer::of(here.as_fd()).unwrap();
        assert_eq!(peer.user, rustix::process::geteuid().as_raw());
        assert_eq!(peer.groups[0], rustix::process::getegid().as_raw());
        assert_eq!(peer.number(), std::process::id());
    }

    #[test]
    fn the_fallback_does_not_take_a_stranger() {
        let own = rustix::process::getpid();
        let user = rustix::process::geteuid().as_raw();
        assert!(reopened(own, user).is_some());
        assert!(reopened(own, user + 1).is_none());
    }
}
