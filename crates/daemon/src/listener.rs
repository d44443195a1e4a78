//! The sockets a daemon listens on.
//!
//! A socket appears under its name when it is ready, with its mode and its group, and not before: it is bound under
//! another name, given away, told to listen, and then renamed over whatever a dead daemon left there. Who holds the lock of
//! the folder may do so, since nobody else listens in it.
//!
//! A socket that a service manager has opened for us is there already, with the mode and the group that its unit names, and
//! stays when we go: whoever connects meanwhile is served by the next daemon.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, Mode};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::Error;
use crate::place::{fits, identity};

/// As many as may knock before we open.
const BACKLOG: i32 = 128;

/// A socket with a name, which goes when this does, unless it is somebody else's.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
    identity: (u64, u64),
    inherited: bool,
}

impl Listener {
    /// `mode` is that of the name from its first moment on. The caller holds the folder's lock and has one thread: the
    /// mask for new files is the whole process's.
    pub fn bind(path: &Path, kind: SocketType, mode: Mode, group: Option<u32>) -> Result<Listener, Error> {
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(".new");
        let fresh = PathBuf::from(fresh);
        if !fits(&fresh) {
            return Err(Error::LongPath { path: path.to_owned() });
        }
        clear(path)?;
        clear(&fresh)?;
        let refused = |source| Error::File { path: path.to_owned(), source };
        let made = || -> io::Result<(OwnedFd, (u64, u64))> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
            let mask = rustix::process::umask(Mode::all().difference(mode));
            let bound = rustix::net::bind(&socket, &SocketAddrUnix::new(&fresh)?);
            rustix::process::umask(mask);
            bound?;
            if let Some(group) = group {
                rustix::fs::chown(&fresh, None, Some(Gid::from_raw(group)))?;
            }
            rustix::net::listen(&socket, BACKLOG)?;
            let identity = identity(&fresh)?;
            fs::rename(&fresh, path)?;
            Ok((socket, identity))
        };
        let (socket, identity) = made().map_err(refused)?;
        Ok(Listener { socket, path: path.to_owned(), identity, inherited: false })
    }

    /// The socket with this name among those that somebody has opened for us, which it leaves; `None` if there is none.
    pub fn adopt(
        path: &Path,
        kind: SocketType,
        sockets: &mut Vec<OwnedFd>,
    ) -> Result<Option<Listener>, Error> {
        let Some(place) = sockets.iter().position(|socket| is_called(socket, path)) else { return Ok(None) };
        let socket = sockets.swap_remove(place);
        if rustix::net::sockopt::socket_type(&socket) != Ok(kind)
            || rustix::net::sockopt::socket_acceptconn(&socket) != Ok(true)
        {
            return Err(Error::OtherSocket { path: path.to_owned() });
        }
        let refused = |source| Error::File { path: path.to_owned(), source };
        rustix::io::ioctl_fionbio(&socket, true).map_err(|error| refused(error.into()))?;
        let identity = identity(path).map_err(refused)?;
        Ok(Some(Listener { socket, path: path.to_owned(), identity, inherited: true }))
    }

    /// The next who knocks, if anybody does.
    pub fn accept(&self) -> rustix::io::Result<OwnedFd> {
        rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
    }

    /// Whether the name still leads here. Without it nobody can find us.
    pub fn is_reachable(&self) -> bool {
        identity(&self.path).is_ok_and(|identity| identity == self.identity)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if !self.inherited && self.is_reachable() {
            // If it cannot be removed, the next daemon replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a descriptor is a socket with this name.
fn is_called(socket: &OwnedFd, path: &Path) -> bool {
    let address = rustix::net::getsockname(socket).ok().and_then(|any| SocketAddrUnix::try_from(any).ok());
    address
        .is_some_and(|address| address.path_bytes().is_some_and(|name| name == path.as_os_str().as_bytes()))
}

/// Sees that nothing is at a path but perhaps the socket of a dead daemon, which is removed.
fn clear(path: &Path) -> Result<(), Error> {
    let refused = |source| Error::File { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(refused(source)),
        Ok(facts) if !facts.file_type().is_socket() => Err(Error::NoSocket { path: path.to_owned() }),
        Ok(_) => fs::remove_file(path).map_err(refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn bind(path: &Path, mode: u32) -> Result<Listener, Error> {
        Listener::bind(path, SocketType::STREAM, Mode::from_raw_mode(mode), None)
    }

    #[test]
    fn a_socket_has_its_mode_and_goes_with_its_listener() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = bind(&path, 0o660).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
        assert_eq!(listener.accept().unwrap_err(), rustix::io::Errno::AGAIN);
        UnixStream::connect(&path).unwrap();
        assert!(listener.accept().is_ok() && listener.is_reachable());
        drop(listener);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_daemon_left_is_replaced_and_what_is_no_socket_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a socket's name outlives it");
        drop(bind(&path, 0o600).unwrap());
        fs::write(&path, "somebody's data").unwrap();
        assert!(matches!(bind(&path, 0o600), Err(Error::NoSocket { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "somebody's data");
    }

    #[test]
    fn a_name_that_leads_elsewhere_by_now_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let listener = bind(&path, 0o600).unwrap();
        fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        assert!(!listener.is_reachable());
        drop(listener);
        assert!(path.exists());
    }

    #[test]
    fn a_socket_that_was_opened_for_us_is_taken_and_left() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("s"), folder.path().join("other"));
        let opened = || -> Vec<OwnedFd> {
            let _ = fs::remove_file(&path);
            vec![UnixStream::pair().unwrap().0.into(), UnixListener::bind(&path).unwrap().into()]
        };
        let mut sockets = opened();
        assert!(Listener::adopt(&other, SocketType::STREAM, &mut sockets).unwrap().is_none());
        let listener = Listener::adopt(&path, SocketType::STREAM, &mut sockets).unwrap().unwrap();
        assert_eq!(sockets.len(), 1);
        assert_eq!(listener.accept().unwrap_err(), rustix::io::Errno::AGAIN);
        UnixStream::connect(&path).unwrap();
        assert!(listener.accept().is_ok() && listener.is_reachable());
        drop(listener);
        assert!(path.exists(), "it is not ours to remove");
        let wrong = Listener::adopt(&path, SocketType::SEQPACKET, &mut opened());
        assert!(matches!(wrong, Err(Error::OtherSocket { .. })));
    }

    #[test]
    fn a_path_that_is_too_long_is_named() {
        let long = Path::new("/tmp").join("x".repeat(110));
        assert!(matches!(bind(&long, 0o600), Err(Error::LongPath { .. })));
    }
}
