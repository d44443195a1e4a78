//! The other end: finding a daemon, asking it, starting one.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};

use crate::report::{Entry, Report};
use crate::request::{Answer, Changed, Ended, Reloaded, Request};
use crate::{Error, Place};

/// How long an answer may take.
const PATIENCE: Nanos = Nanos::from_millis(2_000);

/// The longest answer: 64 boards with all seats taken fit well.
const LONGEST: usize = 64 << 20;

/// What a daemon reports.
pub fn report(place: &Place) -> Result<Report, Error> {
    let answer = ask(place, &Request::Status)?;
    answer.report.ok_or_else(|| unclear(&place.socket(), "there is no report in its answer"))
}

/// Whether a daemon is there and well.
pub fn answers(place: &Place) -> bool {
    report(place).is_ok()
}

/// Whether somebody listens, well or not.
pub(crate) fn listens(place: &Place) -> bool {
    connect(&place.socket(), board::now() + PATIENCE).is_ok()
}

/// Asks something on the tenants' socket.
pub fn ask(place: &Place, request: &Request) -> Result<Answer, Error> {
    let socket = place.socket();
    let deadline = board::now() + PATIENCE;
    let connection = connect(&socket, deadline)?;
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::net::send(&connection, &request.line(), flags).map_err(|error| failed(&socket, error))?;
    let mut answer = Vec::new();
    let mut piece = vec![0; 1 << 16];
    while await_readable(&connection, deadline) {
        match rustix::net::recv(&connection, &mut piece[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => return understand(&socket, &answer),
            Ok((length, _)) if answer.len() + length <= LONGEST => answer.extend_from_slice(&piece[..length]),
            Ok(_) => return Err(unclear(&socket, "its answer has no end")),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(failed(&socket, error)),
        }
    }
    Err(unclear(&socket, "it takes too long"))
}

/// The configuration that is in force, key by key.
pub fn configuration(place: &Place) -> Result<Vec<Entry>, Error> {
    let answer = ask(place, &Request::Configuration)?;
    answer.configuration.ok_or_else(|| unclear(&place.socket(), "there is no configuration in its answer"))
}

/// Asks for a change on the admin socket.
pub fn change(place: &Place, request: &Request) -> Result<Changed, Error> {
    let missing = || unclear(&place.admin_socket(), "its answer does not say what was changed");
    administer(place, request)?.changed.ok_or_else(missing)
}

/// Has the daemon read its configuration again.
pub fn reload(place: &Place) -> Result<Reloaded, Error> {
    let missing = || unclear(&place.admin_socket(), "its answer does not say what came of it");
    administer(place, &Request::Reload)?.reloaded.ok_or_else(missing)
}

/// Has the daemon end; with `if_idle`, only one that would end by itself and has no tenants.
pub fn end(place: &Place, if_idle: bool) -> Result<Ended, Error> {
    let missing = || unclear(&place.admin_socket(), "its answer does not say that it ends");
    administer(place, &Request::End { if_idle })?.ended.ok_or_else(missing)
}

/// Whether we may change something.
pub fn may_administer(place: &Place) -> Result<(), Error> {
    administer(place, &Request::Status).map(drop)
}

fn administer(place: &Place, request: &Request) -> Result<Answer, Error> {
    let socket = place.admin_socket();
    let talk = || -> std::io::Result<Vec<u8>> {
        let mut stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(PATIENCE.into()))?;
        stream.set_write_timeout(Some(PATIENCE.into()))?;
        stream.write_all(&request.line())?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        while !answer.ends_with(b"\n") && answer.len() < LONGEST {
            match stream.read(&mut piece)? {
                0 => break,
                length => answer.extend_from_slice(&piece[..length]),
            }
        }
        Ok(answer)
    };
    let answer = talk().map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(errno) => failed(&socket, errno),
        None => unclear(&socket, &error.to_string()),
    })?;
    understand(&socket, &answer)
}

fn understand(socket: &Path, bytes: &[u8]) -> Result<Answer, Error> {
    if bytes.is_empty() {
        return Err(Error::NoDaemon { socket: socket.to_owned() });
    }
    let answer: Answer =
        serde_json::from_slice(bytes).map_err(|error| unclear(socket, &format!("its answer: {error}")))?;
    match answer.ok {
        true => Ok(answer),
        false => Err(Error::Refused(answer.error.unwrap_or_else(|| "the daemon refused".to_owned()))),
    }
}

fn connect(socket: &Path, deadline: Nanos) -> Result<OwnedFd, Error> {
    let address = SocketAddrUnix::new(socket).map_err(|_| Error::LongPath { path: socket.to_owned() })?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|error| failed(socket, error))?;
    loop {
        match rustix::net::connect(&connection, &address) {
            Ok(()) => return Ok(connection),
            Err(Errno::INTR) => {}
            // Many knock at once.
            Err(Errno::AGAIN) if board::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Err(error) => return Err(failed(socket, error)),
        }
    }
}

fn await_readable(connection: &OwnedFd, deadline: Nanos) -> bool {
    loop {
        let left = deadline.since(board::now());
        let timeout = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timeout = Timespec {
            tv_sec: i64::try_from(left.0 / 1_000_000_000).unwrap_or(timeout.tv_sec),
            tv_nsec: (left.0 % 1_000_000_000) as i64,
        };
        match poll(&mut [PollFd::new(connection, PollFlags::IN)], Some(&timeout)) {
            Err(Errno::INTR) => {}
            result => return result.is_ok_and(|ready| ready > 0),
        }
    }
}

/// What an error of the system says about the daemon.
fn failed(socket: &Path, error: Errno) -> Error {
    let socket = socket.to_owned();
    match error {
        Errno::NOENT
        | Errno::CONNREFUSED
        | Errno::NOTDIR
        | Errno::PIPE
        | Errno::CONNRESET
        | Errno::NOTCONN => Error::NoDaemon { socket },
        Errno::ACCESS | Errno::PERM => Error::Forbidden { socket },
        other => unclear(&socket, &other.to_string()),
    }
}

fn unclear(socket: &Path, reason: &str) -> Error {
    Error::Unclear { socket: socket.to_owned(), reason: reason.to_owned() }
}

/// What a daemon that did not come up said last.
pub(crate) fn last_words(place: &Place, from: u64) -> Option<String> {
    let log = fs::read(place.log()).ok()?;
    let new = log.get(usize::try_from(from).ok()?..)?;
    let text = String::from_utf8_lossy(new);
    text.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
}
