//! A daemon with a rival. In the isolated domain, whoever registers finds somebody on its board who wants the token all the
//! time, and gives it back after a millisecond: a program that takes turns here does so hundreds of times a second. In the
//! shared domain it finds a latency tenant that has work for a fraction of a millisecond, again and again; under the policy `strict` in
//! either.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use board::link::{Granted, Received, Registration, Reply, Request, receive, reply};
use board::{Board, Claim, Gpu, Occupant, Place, Seat, Settings, Terms, Turn, UsedTime};
use model::{Class, Dials, Domain, Kind, Nanos};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

const SETTINGS: Settings = Settings {
    domain: Domain::Isolated,
    quantum: Nanos::from_millis(2),
    idle: Nanos::from_micros(100),
    // A debug build on a loaded machine is silent for long.
    grace: Nanos::from_millis(10_000),
    starve_after: None,
    tolerance: 50,
};
const RIVAL_HOLDS: Duration = Duration::from_millis(1);
const LOOK: Duration = Duration::from_millis(1);
/// How long a rival sleeps that nobody wakes.
const ASLEEP: Nanos = Nanos::from_millis(100);
/// How long the latency tenant has work and has none, by turns.
const BUSY: [u64; 3] = [50, 400, 900];
const FREE: [u64; 4] = [300, 2_000, 100, 5_000];

pub struct Rival {
    socket: PathBuf,
    ends: Arc<AtomicBool>,
    turns: Arc<AtomicU64>,
    seats: Arc<AtomicU64>,
    cut: Arc<AtomicU64>,
    server: Option<JoinHandle<()>>,
}

impl Rival {
    pub fn start(folder: &Path, domain: Domain, kind: Kind) -> Rival {
        let socket = folder.join("rival.sock");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(socket.as_os_str().as_bytes()).unwrap()).unwrap();
        rustix::net::listen(&listener, 64).unwrap();
        let (ends, turns, seats) = <(Arc<AtomicBool>, Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let cut = Arc::<AtomicU64>::default();
        let (boards, settings) = (BTreeMap::new(), Settings { domain, ..SETTINGS });
        let mut server =
            Server { boards, settings, kind, ends: ends.clone(), turns: turns.clone(), cut: cut.clone() };
        let counted = seats.clone();
        let server = std::thread::spawn(move || server.serve(&listener, &counted));
        Rival { socket, ends, turns, seats, cut, server: Some(server) }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How many launches of those who have left were cut.
    #[allow(dead_code)]
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// How often a rival had the token, or had work; and how many processes have registered.
    pub fn figures(&self) -> (u64, u64) {
        (self.turns.load(Ordering::Relaxed), self.seats.load(Ordering::Relaxed))
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

struct Server {
    boards: BTreeMap<Gpu, (Board, OwnedFd, Vec<JoinHandle<()>>)>,
    settings: Settings,
    kind: Kind,
    ends: Arc<AtomicBool>,
    turns: Arc<AtomicU64>,
    cut: Arc<AtomicU64>,
}

impl Server {
    fn serve(&mut self, listener: &OwnedFd, seats: &AtomicU64) {
        let mut open: Vec<(OwnedFd, Option<(Board, Place)>)> = Vec::new();
        while !self.ends.load(Ordering::Relaxed) {
            while let Ok(connection) = rustix::net::accept_with(listener, SocketFlags::NONBLOCK) {
                open.push((connection, None));
            }
            open.retain_mut(|(connection, seat)| match receive(connection.as_fd()) {
                Ok(Received::Request(Request::Register(registration))) => {
                    seats.fetch_add(1, Ordering::Relaxed);
                    *seat = self.seat(connection, &registration);
                    seat.is_some()
                }
                Ok(Received::Nothing) => true,
                _ => {
                    if let Some((board, place)) = seat.take() {
                        let own = board.seats().find(|(taken, _)| *taken == place);
                        self.cut
                            .fetch_add(own.map_or(0, |(_, reading)| reading.figures.cut), Ordering::Relaxed);
                        board.free(place);
                    }
                    false
                }
            });
            std::thread::sleep(LOOK);
        }
        std::mem::take(&mut self.boards)
            .into_values()
            .flat_map(|(_, _, rivals)| rivals)
            .for_each(|rival| rival.join().unwrap());
    }

    fn seat(&mut self, connection: &OwnedFd, registration: &Registration) -> Option<(Board, Place)> {
        let (ends, turns, settings, kind) = (&self.ends, &self.turns, &self.settings, self.kind);
        let rivals: &[fn(Board, &AtomicBool, &AtomicU64)] = match (settings.domain, kind) {
            (Domain::Shared, _) => &[blink],
            (Domain::Isolated, Kind::Strict) => &[blink, compete],
            (Domain::Isolated, _) => &[compete],
        };
        let (board, file, _) = self.boards.entry(registration.gpu).or_insert_with(|| {
            let (board, file) = Board::create(registration.gpu, settings).unwrap();
            board.set_dials(&Dials { kind, in_flight: Nanos::from_millis(1), ..Dials::default() });
            let begin = |rival: &fn(Board, &AtomicBool, &AtomicU64)| {
                let (rival, ends, turns) = (*rival, ends.clone(), turns.clone());
                std::thread::spawn(move || rival(board, &ends, &turns))
            };
            (board, file, rivals.iter().map(begin).collect())
        });
        let Registration { class, weight, priority, slo, memory, tenant, .. } = *registration;
        let (name, program) = (&b"case"[..], &b""[..]);
        let occupant = Occupant { pid: 0, tenant, class, weight, priority, slo, memory, name, program };
        let place = board.take(&occupant)?;
        // Rivals of a board at which no case sits are asleep. In the shared domain whoever can be stopped rings by itself.
        if self.settings.domain == Domain::Isolated {
            board.announce();
        }
        let (terms, domain) =
            (Terms { class, weight, priority, slo, memory, paused: false }, self.settings.domain);
        let granted = Reply::Granted(Granted { place, terms, domain, lowered: false, generation: 1 });
        reply(connection.as_fd(), &granted, Some(file.as_fd())).ok()?;
        Some((*board, place))
    }
}

/// Whether a case sits at this board. There is a board for each, and a rival at each to the end, which should not keep the
/// machine busy when its case is over.
fn has_case(board: Board) -> bool {
    board.seats().any(|(_, reading)| reading.pid == 0)
}

fn sit(board: Board, class: Class) -> Seat {
    let occupant = Occupant {
        pid: std::process::id(),
        tenant: 1,
        class,
        weight: 1,
        priority: 0,
        slo: None,
        memory: None,
        name: b"rival",
        program: b"",
    };
    board.sit(board.take(&occupant).unwrap()).unwrap()
}

/// Has work now and then, but does not raise stop words: whoever must stop sees it on the board.
fn blink(board: Board, ends: &AtomicBool, turns: &AtomicU64) {
    let seat = sit(board, Class::Latency);
    let sleep = |micros: u64| std::thread::sleep(Duration::from_micros(micros));
    let (mut busy, mut free) = (BUSY.iter().cycle(), FREE.iter().cycle());
    while !ends.load(Ordering::Relaxed) {
        let seen = seat.bell();
        if !has_case(board) {
            seat.wait(seen, ASLEEP);
            continue;
        }
        let began = board::now();
        seat.activate(began);
        busy.next().copied().map(sleep);
        seat.deactivate(board::now(), began);
        turns.fetch_add(1, Ordering::Relaxed);
        free.next().copied().map(sleep);
    }
}

fn compete(board: Board, ends: &AtomicBool, turns: &AtomicU64) {
    let seat = sit(board, Class::BestEffort);
    let others = |claims: &[Claim]| claims.iter().position(|claim| claim.place != seat.place());
    while !ends.load(Ordering::Relaxed) {
        let seen = seat.bell();
        if !has_case(board) {
            seat.wait(seen, ASLEEP);
            continue;
        }
        if let Turn::Mine { since } = seat.try_hold(board::now()) {
            std::thread::sleep(RIVAL_HOLDS);
            let now = board::now();
            if seat.others_want() {
                turns.fetch_add(1, Ordering::Relaxed);
                seat.pass(now, UsedTime::new(now.since(since), 1), &mut |claims| others(claims));
            }
        } else {
            seat.wait(seen, Nanos::from_millis(20));
        }
    }
}
