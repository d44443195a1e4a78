//! The service manager that started this daemon, if one did.
//!
//! systemd says by variables where it listens to us (`NOTIFY_SOCKET`), how often it wants a sign of life (`WATCHDOG_USEC`), and
//! which sockets it has opened for us (`LISTEN_FDS`): the protocol is older than any library for it, and is a datagram here
//! and a descriptor there. Without those variables nothing is said and nothing is inherited, so all of this may be called
//! wherever a daemon runs.
//!
//! What cannot be told is not worth ending for: a manager that has gone away, or does not listen, is talked to in vain.

use std::ffi::OsString;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use model::Nanos;
use rustix::io::FdFlags;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

/// The first descriptor that is handed over; those before it are the usual three.
const FIRST: RawFd = 3;

/// More sockets than this are a mistake: there are two.
const MOST: RawFd = 64;

/// How long a manager that is busy is waited for: that we are ready is said once.
const PATIENCE: Duration = Duration::from_millis(200);

/// Whom we tell how we are.
#[derive(Debug, Default)]
pub struct Manager {
    ear: Option<(OwnedFd, SocketAddrUnix)>,
    /// It takes us for hanging if it hears nothing for twice as long.
    every: Option<Nanos>,
    last: Nanos,
}

impl Manager {
    pub fn here() -> Manager {
        Manager::told(|name| std::env::var_os(name), std::process::id())
    }

    fn told(variable: impl Fn(&str) -> Option<OsString>, process: u32) -> Manager {
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let ours = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(process));
        let patience = number("WATCHDOG_USEC").filter(|micros| ours && *micros > 0);
        let ear = variable("NOTIFY_SOCKET").and_then(|name| address(name.as_bytes())).and_then(|address| {
            let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
            let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None).ok()?;
            set_socket_timeout(&socket, Timeout::Send, Some(PATIENCE)).ok()?;
            Some((socket, address))
        });
        let every = patience.filter(|_| ear.is_some()).map(|micros| Nanos::from_micros(micros / 2));
        Manager { ear, every, last: Nanos::ZERO }
    }

    /// Who comes now is served.
    pub fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={status}"));
    }

    /// The configuration is being read again; [`ready`](Manager::ready) says that it is done.
    pub fn reloading(&self, now: Nanos) {
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.0 / 1_000));
    }

    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// When it wants to hear from us next.
    pub fn next_sign(&self) -> Option<Nanos> {
        self.every.map(|every| self.last + every)
    }

    /// A round was gone: we live, which is said if it is due.
    pub fn show_life(&mut self, now: Nanos) {
        if self.next_sign().is_some_and(|due| due <= now) {
            self.last = now;
            self.say("WATCHDOG=1");
        }
    }

    fn say(&self, words: &str) {
        let Some((socket, address)) = &self.ear else { return };
        let _ = rustix::net::sendto(socket, words.as_bytes(), SendFlags::NOSIGNAL, address);
    }
}

/// A path, or a name that stands in no folder.
fn address(name: &[u8]) -> Option<SocketAddrUnix> {
    match name {
        [b'/', ..] => SocketAddrUnix::new(name).ok(),
        [b'@', rest @ ..] => SocketAddrUnix::new_abstract_name(rest).ok(),
        _ => None,
    }
}

/// The sockets that were opened for this process before it began. They can be taken once.
pub fn sockets() -> Vec<OwnedFd> {
    use std::sync::atomic::{AtomicBool, Ordering};
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let count = count(|name| std::env::var_os(name), std::process::id());
    if count == 0 || TAKEN.swap(true, Ordering::Relaxed) {
        return Vec::new();
    }
    // What MPS is started with must not have them.
    let own = |number: RawFd| {
        // SAFETY: whoever set the variables has left these descriptors to this process, and they are taken once.
        let socket = unsafe { OwnedFd::from_raw_fd(number) };
        rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC).map(|()| socket).ok()
    };
    (FIRST..FIRST + count).filter(|number| is_open(*number)).filter_map(own).collect()
}

fn count(variable: impl Fn(&str) -> Option<OsString>, process: u32) -> RawFd {
    let number = |name| variable(name)?.to_str()?.parse::<u32>().ok();
    // The variables are inherited by whatever we start, the descriptors are not.
    if number("LISTEN_PID") != Some(process) {
        return 0;
    }
    number("LISTEN_FDS").and_then(|count| RawFd::try_from(count).ok()).unwrap_or(0).min(MOST)
}

/// Whoever sets variables may be wrong about descriptors; one that is not open must not be owned.
fn is_open(number: RawFd) -> bool {
    // SAFETY: a question about a number, whatever it stands for.
    unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    fn told(variables: &[(&str, &str)]) -> Manager {
        Manager::told(|name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()), 7)
    }

    #[test]
    fn a_manager_hears_what_it_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let ear = UnixDatagram::bind(&path).unwrap();
        let heard = || {
            let mut words = [0; 256];
            let length = ear.recv(&mut words).unwrap();
            String::from_utf8(words[..length].to_vec()).unwrap()
        };
        let path = path.to_str().unwrap();
        let mut manager =
            told(&[("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", "2000000"), ("WATCHDOG_PID", "7")]);
        manager.ready("serves");
        assert_eq!(heard(), "READY=1\nSTATUS=serves");
        let now = Nanos::from_millis(5_000);
        manager.show_life(now);
        assert_eq!(heard(), "WATCHDOG=1");
        assert_eq!(manager.next_sign(), Some(Nanos::from_millis(6_000)));
        manager.show_life(Nanos::from_millis(5_999));
        manager.reloading(now);
        assert_eq!(heard(), "RELOADING=1\nMONOTONIC_USEC=5000000", "half the time is not over");
        manager.stopping();
        assert_eq!(heard(), "STOPPING=1");
    }

    #[test]
    fn nobody_is_told_where_nobody_asked() {
        for variables in [
            &[][..],
            &[("WATCHDOG_USEC", "2000000")],
            &[("NOTIFY_SOCKET", "relative")],
            &[("NOTIFY_SOCKET", "/nowhere/at/all"), ("WATCHDOG_USEC", "20"), ("WATCHDOG_PID", "8")],
            &[("NOTIFY_SOCKET", "/nowhere/at/all"), ("WATCHDOG_USEC", "0")],
            &[("NOTIFY_SOCKET", "/nowhere/at/all"), ("WATCHDOG_USEC", "soon")],
        ] {
            let manager = told(variables);
            manager.ready("serves");
            assert_eq!(manager.next_sign(), None, "{variables:?}");
        }
    }

    #[test]
    fn a_name_without_a_folder_is_an_address_too() {
        assert!(address(b"@/org/somewhere").is_some_and(|address| address.abstract_name().is_some()));
        assert!(address(b"").is_none());
    }

    #[test]
    fn descriptors_are_ours_only_if_they_are_said_to_be() {
        let count = |variables: &[(&str, &str)]| {
            super::count(
                |name| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()),
                7,
            )
        };
        assert_eq!(count(&[("LISTEN_PID", "7"), ("LISTEN_FDS", "2")]), 2);
        assert_eq!(count(&[("LISTEN_PID", "8"), ("LISTEN_FDS", "2")]), 0);
        assert_eq!(count(&[("LISTEN_FDS", "2")]), 0);
        assert_eq!(count(&[("LISTEN_PID", "7"), ("LISTEN_FDS", "-2")]), 0);
        assert_eq!(count(&[("LISTEN_PID", "7"), ("LISTEN_FDS", "4000000000")]), 0);
        assert_eq!(count(&[("LISTEN_PID", "7"), ("LISTEN_FDS", "4000")]), MOST);
        assert!(is_open(0) && !is_open(9_999));
    }
}
