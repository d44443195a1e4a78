//! The messages on a socket, with a file beside them.

use std::ffi::CStr;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

use model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use super::descriptor::{FileIdentity, OwnDescriptor};
use super::message::{Granted, Malformed, REPLY_BYTES, REQUEST_BYTES, Registration, Reply, Request};
use crate::{Board, Error, Terms};

/// Room for more files than are expected, so that a surplus is counted, and closed, instead of cut off.
const FILES: usize = 4;

/// How long a tenant waits before it knocks again where the daemon's queue is full.
const KNOCK_AGAIN: Nanos = Nanos::from_millis(2);

/// Asks the daemon for a seat, for so long at most. The connection must stay open for as long as the seat is wanted.
/// `device` is the file of the GPU, which shows that the GPU may be used.
pub fn register(
    socket: &CStr,
    registration: &Registration,
    device: Option<BorrowedFd<'_>>,
    timeout: Nanos,
) -> Result<(OwnedFd, Board, Granted), Error> {
    let (connection, mapped, granted) = register_in_program(socket, registration, device, None, timeout)?;
    match connection.into_owned() {
        Some(connection) => Ok((connection, mapped.board, granted)),
        None => {
            // SAFETY: nobody else has it yet.
            unsafe { mapped.board.close() };
            Err(Error::Taken)
        }
    }
}

/// A board that this process has mapped, and which file it is.
#[derive(Clone, Copy)]
pub struct MappedBoard {
    pub board: Board,
    file: FileIdentity,
}

/// The same in somebody else's program, which may close the connection and have its number for a file, while the daemon is
/// waited for and later. A seat at a board that is `mapped` already takes no other mapping: somebody hostile can have a tenant
/// ask for seats for hours, and a process may have only so many.
pub fn register_in_program(
    socket: &CStr,
    registration: &Registration,
    device: Option<BorrowedFd<'_>>,
    mapped: Option<MappedBoard>,
    timeout: Nanos,
) -> Result<(OwnDescriptor, MappedBoard, Granted), Error> {
    let deadline = crate::now() + timeout;
    let connection = connect(socket, deadline)?;
    send(own(&connection)?, &Request::Register(*registration).encode(), device)?;
    await_readable(&connection, deadline)?;
    let mut bytes = [0; REPLY_BYTES];
    let mut packet = take_packet(own(&connection)?, &mut bytes)?;
    let granted = match Reply::decode(packet.bytes(&bytes)?).map_err(Error::Malformed)? {
        Reply::Granted(granted) => granted,
        Reply::Refused(reason) => return Err(Error::Refused(reason)),
        Reply::NewTerms(_) => return Err(Error::Malformed(Malformed::Value)),
    };
    let file = packet.only_file()?;
    let identity = FileIdentity::of(file.as_fd()).map_err(Error::Talk)?;
    // As long as it is mapped no other file has its number.
    if let Some(mapped) = mapped.filter(|mapped| mapped.file == identity) {
        suits(&mapped.board, registration, &granted)?;
        return Ok((connection, mapped, granted));
    }
    let board = Board::open(file.as_fd())?;
    if let Err(error) = suits(&board, registration, &granted) {
        // A tenant asks again and again, and must not be left with a mapping each time.
        // SAFETY: nobody else has it yet.
        unsafe { board.close() };
        return Err(error);
    }
    Ok((connection, MappedBoard { board, file: identity }, granted))
}

/// Whether a board is what was asked for, and has the seat that was granted.
fn suits(board: &Board, asked: &Registration, granted: &Granted) -> Result<(), Error> {
    if board.gpu() != asked.gpu {
        return Err(Error::OtherGpu);
    }
    board.sit(granted.place).map(|_| ())
}

/// What the daemon said to a tenant that has a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// These terms hold from now on.
    NewTerms(Terms),
    /// Something that this version does not know; it is passed over.
    Unknown,
    /// Nothing is there now.
    Nothing,
    /// The daemon is gone.
    End,
}

/// The tenant's half: takes one message, if there is one. Never waits.
pub fn hear(connection: BorrowedFd<'_>) -> Heard {
    let mut bytes = [0; REPLY_BYTES + 1];
    let packet = match take_packet(connection, &mut bytes) {
        Ok(packet) => packet,
        Err(Error::Talk(Errno::AGAIN | Errno::INTR)) => return Heard::Nothing,
        Err(_) => return Heard::End,
    };
    match packet.bytes(&bytes).ok().and_then(|bytes| Reply::decode(bytes).ok()) {
        Some(Reply::NewTerms(terms)) => Heard::NewTerms(terms),
        _ => Heard::Unknown,
    }
}

/// What a tenant sent.
#[expect(clippy::large_enum_variant, reason = "there is no heap to put it on, and one is looked at once")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    Request(Request),
    /// Not a request; what is wrong with it.
    Nonsense(Malformed),
    /// Nothing is there yet.
    Nothing,
    /// It hung up.
    End,
}

/// The daemon's half: takes one request, if there is one. Never waits; files that come with it are closed.
pub fn receive(connection: BorrowedFd<'_>) -> Result<Received, Error> {
    // One byte more than a request has, so that a longer one is not taken for one.
    let mut bytes = [0; REQUEST_BYTES + 1];
    let packet = match take_packet(connection, &mut bytes) {
        Ok(packet) => packet,
        Err(Error::HungUp) => return Ok(Received::End),
        Err(Error::Talk(Errno::AGAIN)) => return Ok(Received::Nothing),
        Err(other) => return Err(other),
    };
    let request = packet.bytes(&bytes).map_err(|_| Malformed::Length(bytes.len()));
    Ok(match request.and_then(Request::decode) {
        Ok(request) => Received::Request(request),
        Err(malformed) => Received::Nonsense(malformed),
    })
}

/// The daemon's half: answers, with the board's file where there is one. Never waits: who does not read is hung up on.
pub fn reply(connection: BorrowedFd<'_>, reply: &Reply, board: Option<BorrowedFd<'_>>) -> Result<(), Error> {
    send(connection, &reply.encode(), board)
}

fn own(connection: &OwnDescriptor) -> Result<BorrowedFd<'_>, Error> {
    connection.get().ok_or(Error::Taken)
}

fn connect(socket: &CStr, deadline: Nanos) -> Result<OwnDescriptor, Error> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let connection = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .and_then(OwnDescriptor::new)
        .map_err(Error::Connect)?;
    let address = SocketAddrUnix::new(socket).map_err(Error::Connect)?;
    loop {
        match rustix::net::connect(own(&connection)?, &address) {
            Ok(()) => return Ok(connection),
            // The queue of a Unix socket is full; there is nothing to poll for.
            Err(Errno::AGAIN) if crate::now() < deadline => pause(KNOCK_AGAIN),
            Err(Errno::AGAIN) => return Err(Error::TimedOut),
            Err(Errno::INTR) => {}
            Err(other) => return Err(Error::Connect(other)),
        }
    }
}

fn pause(span: Nanos) {
    // Interrupted or not: whoever pauses looks again.
    let _ = rustix::thread::nanosleep(&timespec(span));
}

fn timespec(span: Nanos) -> Timespec {
    let whole = i64::try_from(span.0 / 1_000_000_000).unwrap_or(i64::MAX);
    Timespec { tv_sec: whole, tv_nsec: i64::try_from(span.0 % 1_000_000_000).expect("less than a second") }
}

fn await_readable(connection: &OwnDescriptor, deadline: Nanos) -> Result<(), Error> {
    loop {
        let left = deadline.since(crate::now());
        let mut waiting = [PollFd::from_borrowed_fd(own(connection)?, PollFlags::IN)];
        match rustix::event::poll(&mut waiting, Some(&timespec(left))) {
            Ok(0) => return Err(Error::TimedOut),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(other) => return Err(Error::Talk(other)),
        }
    }
}

fn send(connection: BorrowedFd<'_>, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> Result<(), Error> {
    let files = file.as_slice();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        let fits = beside.push(SendAncillaryMessage::ScmRights(files));
        debug_assert!(fits, "there is room for one");
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match rustix::net::sendmsg(connection, &[IoSlice::new(bytes)], &mut beside, flags) {
        Ok(_) => Ok(()),
        Err(Errno::PIPE | Errno::CONNRESET) => Err(Error::HungUp),
        Err(other) => Err(Error::Talk(other)),
    }
}

/// A packet as it came: how long, with how many files, and the first of them.
struct Packet {
    length: usize,
    cut: bool,
    files: usize,
    file: Option<OwnedFd>,
}

impl Packet {
    fn bytes<'a>(&self, buffer: &'a [u8]) -> Result<&'a [u8], Error> {
        let bytes = buffer.get(..self.length).filter(|_| !self.cut);
        bytes.ok_or(Error::Malformed(Malformed::Length(self.length)))
    }

    fn only_file(&mut self) -> Result<OwnedFd, Error> {
        let file = self.file.take().filter(|_| self.files == 1);
        file.ok_or(Error::Files(self.files))
    }
}

fn take_packet(connection: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<Packet, Error> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let got = match rustix::net::recvmsg(connection, &mut [IoSliceMut::new(buffer)], &mut beside, flags) {
        Ok(got) => got,
        Err(Errno::CONNRESET | Errno::PIPE) => return Err(Error::HungUp),
        Err(other) => return Err(Error::Talk(other)),
    };
    let mut packet =
        Packet { length: got.bytes, cut: got.flags.contains(ReturnFlags::TRUNC), files: 0, file: None };
    let rights = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    for file in rights.flatten() {
        packet.files += 1;
        packet.file.get_or_insert(file);
    }
    if got.flags.contains(ReturnFlags::CTRUNC) {
        packet.files += 1;
    }
    // A packet of nothing is how the end looks, too.
    if packet.length == 0 && packet.files == 0 {
        return Err(Error::HungUp);
    }
    Ok(packet)
}
