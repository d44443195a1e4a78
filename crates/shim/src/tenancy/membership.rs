//! Membership: the seat that the daemon gave, and what happens when there is no daemon.
//!
//! The connection stays open for as long as both sides live. When it ends, the tenant goes on by the board it has, says so,
//! and asks for a new seat now and then. A new daemon has new boards, so a seat that is given later is on another board.

use std::ffi::CStr;

use board::link::{self, Registration};
use board::{HIGHEST_PRIORITY, HIGHEST_WEIGHT, Label, Seat, Terms};
use model::{Class, Nanos};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::post::Post;
use crate::log::say;
use crate::memory;
use crate::surroundings::variable;

const TRY_AGAIN: Nanos = Nanos::from_millis(500);
const LOOK: Nanos = Nanos::from_millis(250);
/// How long the first answer is waited for; nothing runs before it.
const ANSWER_WITHIN: Nanos = Nanos::from_millis(1_000);
/// How long a later one is: whoever has the token must show life meanwhile.
const ANSWER_SOON: Nanos = Nanos::from_millis(50);

/// What a tenant does when the daemon is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnLoss {
    Continue,
    Block,
    Exit,
}

pub struct Membership {
    /// What was asked for, which holds until the daemon has said otherwise.
    asked: Terms,
    on_loss: OnLoss,
    connection: Option<OwnedFd>,
    /// When to look or to try next.
    next: Nanos,
    lost: bool,
    /// How often a daemon was lost; every seat begins its tally at nought.
    losses: u64,
}

/// The class that `ebb run` gave to this process.
pub fn class() -> Class {
    if variable(c"EBB_CLASS").is_some_and(|class| class == c"latency") {
        Class::Latency
    } else {
        Class::BestEffort
    }
}

impl Membership {
    pub fn from_environment(post: &Post) -> Membership {
        let on_loss = match variable(c"EBB_ON_DAEMON_LOSS").map(CStr::to_bytes) {
            Some(b"block") => OnLoss::Block,
            Some(b"exit") => OnLoss::Exit,
            _ => OnLoss::Continue,
        };
        let asked = Terms {
            class: class(),
            weight: number(c"EBB_WEIGHT", 1),
            priority: number(c"EBB_PRIORITY", 0),
            slo: Some(Nanos(number(c"EBB_SLO_P99", 0))).filter(|slo| slo.0 > 0),
            memory: memory::asked(post.device()),
            paused: false,
        };
        Membership { asked, on_loss, connection: None, next: Nanos::ZERO, lost: false, losses: 0 }
    }

    /// What holds now.
    pub fn terms(&self, seat: Option<&Seat>) -> Terms {
        seat.map_or(self.asked, Seat::terms)
    }

    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Whether the program wished to stand still rather than to run without a daemon.
    pub fn keeps_waiting(&self) -> bool {
        self.lost && self.on_loss == OnLoss::Block
    }

    /// How long there is nothing to do.
    pub fn due(&self, now: Nanos) -> Nanos {
        self.next.since(now)
    }

    /// Looks after the connection. `true` when the post has a new seat.
    pub fn tend(&mut self, post: &Post, now: Nanos) -> bool {
        if now < self.next {
            return false;
        }
        let alive = self.connection.as_ref().is_some_and(is_open) && post.seat().is_some_and(Seat::is_mine);
        if alive {
            self.next = now + LOOK;
            return false;
        }
        if self.connection.take().is_some() {
            self.lose(post);
        }
        let joined = self.join(post);
        self.next = board::now() + if joined { LOOK } else { TRY_AGAIN };
        if !joined && !self.lost {
            self.lose(post);
        }
        joined
    }

    fn join(&mut self, post: &Post) -> bool {
        let Some(socket) = variable(c"EBB_SOCKET") else { return false };
        let mut program = [0; 256];
        let Terms { class, weight, priority, slo, memory, .. } = self.terms(post.seat());
        let registration = Registration {
            class,
            weight: weight.clamp(1, HIGHEST_WEIGHT),
            priority: priority.min(HIGHEST_PRIORITY),
            slo,
            memory,
            name: Label::new(variable(c"EBB_NAME").map_or(b"", CStr::to_bytes)),
            program: Label::new(crate::watch::command_line(&mut program)),
            ..Registration::new(post.gpu(), tenant())
        };
        let patience = if post.seat().is_some() { ANSWER_SOON } else { ANSWER_WITHIN };
        match link::register(socket, &registration, patience) {
            Ok((connection, board, granted)) => {
                let seated = board.sit(granted.place).ok().and_then(|seat| post.sit(seat));
                if let Some(seat) = seated {
                    seat.tally().daemon_losses.add(self.losses);
                }
                self.connection = seated.is_some().then_some(connection);
                self.lost = seated.is_none();
                seated.is_some()
            }
            Err(error) => {
                say!("no seat from the daemon: {error}");
                false
            }
        }
    }

    fn lose(&mut self, post: &Post) {
        self.lost = true;
        self.losses += 1;
        if let Some(seat) = post.seat() {
            seat.tally().daemon_losses.add(1);
        }
        post.tell(telemetry::What::Left);
        say!("the daemon is gone");
        if self.on_loss == OnLoss::Exit {
            // So the program wished; it may still tidy up.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
        }
    }
}

/// Nothing ever comes on the connection but its end.
fn is_open(connection: &OwnedFd) -> bool {
    let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
    let mut byte = [0; 1];
    match rustix::net::recv(connection, &mut byte, flags) {
        Ok((_, length)) => length != 0,
        Err(error) => matches!(error, Errno::AGAIN | Errno::INTR),
    }
}

fn number<T: std::str::FromStr>(name: &CStr, otherwise: T) -> T {
    variable(name).and_then(|value| value.to_str().ok()?.parse().ok()).unwrap_or(otherwise)
}

/// Which tenant this process belongs to; one that nobody named is one by itself.
pub fn tenant() -> u64 {
    let named = variable(c"EBB_TENANT").and_then(|text| u64::from_str_radix(text.to_str().ok()?, 16).ok());
    named.unwrap_or_else(|| u64::from(rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()))
}
