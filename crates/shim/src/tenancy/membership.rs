//! Membership: the seat that the daemon gave, and what happens when there is no daemon.
//!
//! A user's own daemon makes room for the machine's when that comes later. Then its tenants go there, to the second of two
//! sockets that `ebb run` has named.
//!
//! The connection stays open for as long as both sides live. The daemon says on it what it has granted, at first and whenever
//! that changes; nobody else can write there, so this process goes by it and never by the board's copy. When the connection
//! ends, the tenant goes on by the board and the terms it has, says so, and asks for a new seat now and then. A new daemon has
//! new boards, so a seat that is given later is on another board.
//!
//! A seat can be lost while the daemon lives: everybody at a board can write all of it. That is no lost daemon. Another seat is
//! asked for, with what the program wanted in the beginning; what an admin has changed since, the daemon knows.

use std::ffi::CStr;

use board::link::{self, Heard, MappedBoard, OwnDescriptor, Reason, Registration};
use board::{Error, HIGHEST_PRIORITY, HIGHEST_WEIGHT, Label, Seat, Terms};
use model::{Class, Domain, Nanos};
use rustix::io::Errno;

use super::post::Post;
use super::proof;
use crate::log::say;
use crate::memory;
use crate::surroundings::variable;

const TRY_AGAIN: Nanos = Nanos::from_millis(500);
const LOOK: Nanos = Nanos::from_millis(250);
/// How long the first answer is waited for; nothing runs before it.
const ANSWER_WITHIN: Nanos = Nanos::from_millis(1_000);
/// How long a later one is: a token holder must show life meanwhile.
const ANSWER_SOON: Nanos = Nanos::from_millis(50);
/// A daemon that keeps the connection and gives no answer for this long is lost.
const SILENT_FOR: Nanos = Nanos::from_millis(5_000);
/// So many messages are read at once; the daemon sends far fewer.
const AT_ONCE: usize = 16;

/// What a tenant does when the daemon is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OnLoss {
    Continue,
    Block,
    Exit,
}

/// What has become of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    /// The daemon lives.
    Open,
    /// The daemon has let go of it.
    Ended,
    /// There is none, or the program has closed it: it may have become a daemon itself.
    Missing,
}

/// What came of asking for a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Seated,
    /// The daemon has answered, and there is no seat for us now.
    Unseated,
    /// Somebody is there who does not answer in time; the daemon may be busy.
    Unanswered,
    /// Nobody is there.
    NoDaemon,
}

pub struct Membership {
    /// What the environment says, which is what every registration claims.
    asked: Terms,
    /// What the daemon has granted last, and how contexts share the GPU there.
    granted: Option<(Terms, Domain)>,
    on_loss: OnLoss,
    connection: Option<OwnDescriptor>,
    /// The board of the last seat.
    board: Option<MappedBoard>,
    /// When to look or to try next.
    next: Nanos,
    lost: bool,
    /// How often a daemon was lost; every seat begins its tally at zero.
    losses: u64,
    /// Since when a daemon that holds the connection has not answered.
    silent_since: Option<Nanos>,
    /// The seat is not ours any more, and there is no other one for now.
    unseated: bool,
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
        Membership {
            asked,
            granted: None,
            on_loss,
            connection: None,
            board: None,
            next: Nanos::ZERO,
            lost: false,
            losses: 0,
            silent_since: None,
            unseated: false,
        }
    }

    /// The seat by which to share. One that somebody else has freed is good for nothing once there is no other to be had: a
    /// tenant that waited there for its turn would wait for ever.
    pub fn seat(&self, post: &Post) -> Option<&'static Seat> {
        post.seat().filter(|seat| !self.unseated || seat.is_mine())
    }

    /// What holds now: what the daemon granted, and before that what was asked for.
    pub fn terms(&self) -> Terms {
        self.granted.map_or(self.asked, |(terms, _)| terms)
    }

    /// How contexts share the GPU, by the word of the daemon that gave the seat.
    pub fn domain(&self) -> Domain {
        self.granted.map_or(Domain::Isolated, |(_, domain)| domain)
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
        let due = now >= self.next;
        // The board's copy of our terms may be anybody's work. That it differs is only a hint to listen now.
        let hint = || post.seat().is_some_and(|seat| seat.terms() != self.terms());
        if !due && !hint() {
            return false;
        }
        let link = self.listen(post);
        post.listened();
        if !due {
            return false;
        }
        if link == LinkState::Open && post.seat().is_some_and(Seat::is_mine) {
            self.next = now + LOOK;
            self.silent_since = None;
            return false;
        }
        if link != LinkState::Open {
            self.connection = None;
        }
        if link == LinkState::Ended {
            self.count_loss(post);
        }
        let outcome = self.join(post);
        let after = board::now();
        self.unseated = outcome != Outcome::Seated && !post.seat().is_some_and(Seat::is_mine);
        self.next = after + if outcome == Outcome::Seated { LOOK } else { TRY_AGAIN };
        match outcome {
            // The next daemon is not there, or not yet.
            Outcome::Unanswered | Outcome::NoDaemon if link == LinkState::Ended => self.lose(post),
            _ => self.judge(outcome, post, after),
        }
        outcome == Outcome::Seated
    }

    /// Whether the daemon is lost, by what came of asking it.
    fn judge(&mut self, outcome: Outcome, post: &Post, now: Nanos) {
        match outcome {
            Outcome::Seated => self.silent_since = None,
            Outcome::Unseated => {
                self.silent_since = None;
                // Our old seat may be what keeps us from another one.
                self.connection = None;
            }
            _ if self.lost => {}
            // A connection may have been closed by the program; a tenant that had a seat gives a daemon that is there some time.
            _ if self.connection.is_none() && (outcome == Outcome::NoDaemon || post.seat().is_none()) => {
                self.count_loss(post);
                self.lose(post);
            }
            Outcome::NoDaemon | Outcome::Unanswered => {
                let since = *self.silent_since.get_or_insert(now);
                if now.since(since) >= SILENT_FOR {
                    self.count_loss(post);
                    self.lose(post);
                }
            }
        }
    }

    /// Reads what the daemon has said, without waiting for it.
    fn listen(&mut self, post: &Post) -> LinkState {
        for _ in 0..AT_ONCE {
            let Some(connection) = self.connection.as_ref().and_then(OwnDescriptor::get) else {
                return LinkState::Missing;
            };
            match link::hear(connection) {
                Heard::NewTerms(terms) => {
                    let domain = self.domain();
                    self.granted = Some((terms, domain));
                    post.granted.set(&terms, domain);
                }
                Heard::Unknown => {}
                Heard::Nothing => break,
                Heard::End => return LinkState::Ended,
            }
        }
        LinkState::Open
    }

    /// Asks the daemon for a seat, and where there is none the machine's.
    fn join(&mut self, post: &Post) -> Outcome {
        let mut outcome = Outcome::NoDaemon;
        for socket in [c"EBB_SOCKET", c"EBB_MACHINE_SOCKET"].into_iter().filter_map(variable) {
            outcome = self.join_at(socket, post);
            if outcome != Outcome::NoDaemon {
                break;
            }
        }
        outcome
    }

    fn join_at(&mut self, socket: &CStr, post: &Post) -> Outcome {
        let mut program = [0; 256];
        let Terms { class, weight, priority, slo, memory, .. } = self.asked;
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
        let device = proof::device_file(post.device());
        let shown = device.as_ref().and_then(OwnDescriptor::get);
        let answer = link::register_in_program(socket, &registration, shown, self.board, patience);
        let (connection, mapped, granted) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                say!("no seat from the daemon: {error}");
                return outcome_of(&error);
            }
        };
        self.board = Some(mapped);
        // Before the seat is there for all threads: a thread that sees it finds the terms that came with it.
        self.granted = Some((granted.terms, granted.domain));
        post.granted.set(&granted.terms, granted.domain);
        let Some(seat) = mapped.board.sit(granted.place).ok().and_then(|seat| post.sit(seat)) else {
            return Outcome::Unseated;
        };
        seat.tally().daemon_losses.add(self.losses);
        // The connection of the seat before, if there was one, ends only now: the daemon has never lost sight of this tenant.
        self.connection = Some(connection);
        self.lost = false;
        Outcome::Seated
    }

    fn count_loss(&mut self, post: &Post) {
        self.losses += 1;
        if let Some(seat) = post.seat() {
            seat.tally().daemon_losses.add(1);
        }
    }

    fn lose(&mut self, post: &Post) {
        self.lost = true;
        post.tell(telemetry::What::Left);
        say!("the daemon is gone");
        if self.on_loss == OnLoss::Exit {
            // So the program wished; it may still tidy up.
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
        }
    }
}

/// Whether a daemon was there to answer. One of another version can give no seat to anybody of ours.
fn outcome_of(error: &Error) -> Outcome {
    match error {
        Error::Refused(Reason::Version) => Outcome::Unanswered,
        Error::Refused(_) | Error::Stale | Error::OtherGpu | Error::NotABoard => Outcome::Unseated,
        Error::Connect(Errno::NOENT | Errno::CONNREFUSED) => Outcome::NoDaemon,
        _ => Outcome::Unanswered,
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
