//! One connection: what came in, what must go out, until when.
//!
//! Nothing here waits. What cannot be sent now is sent when the peer has room, and a peer that leaves us waiting is left.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use board::Terms;
use board::link::{self, Reply};
use model::Nanos;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags};

use crate::peer::Peer;
use crate::registry::Ticket;
use crate::request;

/// Room beside a message for one descriptor and no more: the kernel fills what there is, and takes back what goes beyond.
#[repr(align(8))]
struct RoomForOne([MaybeUninit<u8>; ONE]);

const ONE: usize = size_of::<libc::cmsghdr>() + size_of::<RawFd>();

/// What goes into one message of a long answer.
const PIECE: usize = 1 << 15;

/// How long a newcomer may take to say what it wants.
pub const TO_SPEAK: Nanos = Nanos::from_millis(2_000);
/// How long somebody may take to read an answer.
pub const TO_READ: Nanos = Nanos::from_millis(5_000);
/// How long an admin may think between two lines.
pub const TO_THINK: Nanos = Nanos::from_millis(60_000);

/// Where a connection stands.
#[derive(Debug)]
pub enum Stage {
    /// On the tenants' socket, and has said nothing yet.
    Newcomer,
    /// Has a seat for as long as it stays open.
    Seated(Ticket),
    /// Has its answer, or is getting it.
    Answered,
    /// On the admin socket; the line so far.
    Admin(Vec<u8>),
}

#[derive(Debug)]
pub struct Connection {
    pub socket: OwnedFd,
    pub peer: Peer,
    pub stage: Stage,
    pub deadline: Option<Nanos>,
    out: Vec<u8>,
    sent: usize,
    /// Terms that a seated tenant has not been told for want of room: the newest only.
    untold: Option<Terms>,
}

/// Something a peer sent.
pub enum Heard {
    Message(Vec<u8>),
    Nothing,
    TooLong,
    /// It has gone.
    End,
}

impl Connection {
    pub fn new(socket: OwnedFd, peer: Peer, stage: Stage, deadline: Nanos) -> Connection {
        Connection { socket, peer, stage, deadline: Some(deadline), out: Vec::new(), sent: 0, untold: None }
    }

    /// What to wait for. Who has an answer to read is not listened to until it has read it.
    pub fn interest(&self) -> PollFlags {
        match (self.owes(), &self.stage) {
            (_, Stage::Seated(_)) if self.untold.is_some() => PollFlags::IN | PollFlags::OUT,
            (true, _) => PollFlags::OUT,
            (false, Stage::Answered) => PollFlags::empty(),
            (false, _) => PollFlags::IN,
        }
    }

    pub fn owes(&self) -> bool {
        self.sent < self.out.len()
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.out.drain(..self.sent);
        self.sent = 0;
        self.out.extend_from_slice(bytes);
    }

    /// Has a seated tenant know other terms, now or when it has room for them. `true`: it has been sent something.
    pub fn tell(&mut self, terms: Terms) -> bool {
        self.untold = Some(terms);
        self.tell_untold()
    }

    /// Tries again what there was no room for. Who is gone is noticed elsewhere.
    pub fn tell_untold(&mut self) -> bool {
        let Some(terms) = self.untold else { return false };
        let told = link::reply(self.socket.as_fd(), &Reply::NewTerms(terms), None).is_ok();
        if told {
            self.untold = None;
        }
        told
    }

    /// Receives what is there, up to one message, and the file that comes with it. Nobody has a reason to send any but who
    /// registers; from all others the kernel takes them back before they are ours.
    pub fn hear(&self) -> (Heard, Option<OwnedFd>) {
        let mut buffer = [0; request::LONGEST + 1];
        let mut file = None;
        let received = match self.stage {
            Stage::Newcomer => self.receive(&mut buffer, &mut file),
            _ => rustix::net::recv(&self.socket, &mut buffer, RecvFlags::DONTWAIT).map(|(length, _)| length),
        };
        let heard = match received {
            Ok(0) => Heard::End,
            Ok(length) if length > request::LONGEST => Heard::TooLong,
            Ok(length) => Heard::Message(buffer[..length].to_vec()),
            Err(Errno::AGAIN | Errno::INTR) => Heard::Nothing,
            Err(_) => Heard::End,
        };
        (heard, file)
    }

    fn receive(&self, buffer: &mut [u8], file: &mut Option<OwnedFd>) -> Result<usize, Errno> {
        let mut space = RoomForOne([MaybeUninit::uninit(); ONE]);
        let mut beside = RecvAncillaryBuffer::new(&mut space.0);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let mut slices = [IoSliceMut::new(buffer)];
        let received = rustix::net::recvmsg(&self.socket, &mut slices, &mut beside, flags)?;
        let rights = beside.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        *file = rights.flatten().next();
        Ok(received.bytes)
    }

    /// Sends as much as the peer has room for; `false` when it has gone.
    pub fn send(&mut self) -> bool {
        while self.owes() {
            let end = self.out.len().min(self.sent + PIECE);
            let piece = &self.out[self.sent..end];
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::send(self.socket.as_fd(), piece, flags) {
                Ok(length) => self.sent += length,
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }
}
