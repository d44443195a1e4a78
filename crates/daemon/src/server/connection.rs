//! One connection: what came in, what must go out, until when.
//!
//! Nothing here waits. What cannot be sent now is sent when the peer has room, and a peer that leaves us waiting is left.

use std::os::fd::{AsFd, OwnedFd};

use model::Nanos;
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::peer::Peer;
use crate::registry::Ticket;
use crate::request;

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
        Connection { socket, peer, stage, deadline: Some(deadline), out: Vec::new(), sent: 0 }
    }

    /// What to wait for. Who has an answer to read is not listened to until it has read it.
    pub fn interest(&self) -> PollFlags {
        match (self.owes(), &self.stage) {
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

    /// Receives what is there, up to one message.
    pub fn hear(&self) -> Heard {
        let mut buffer = [0; request::LONGEST + 1];
        match rustix::net::recv(&self.socket, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((0, _)) => Heard::End,
            Ok((length, _)) if length > request::LONGEST => Heard::TooLong,
            Ok((length, _)) => Heard::Message(buffer[..length].to_vec()),
            Err(Errno::AGAIN | Errno::INTR) => Heard::Nothing,
            Err(_) => Heard::End,
        }
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
