//! A daemon with a rival: whoever registers finds somebody on its board who wants the token all the time, and gives it
//! back after a millisecond. So a program that takes turns here does so hundreds of times a second.

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
use board::{Board, Claim, Gpu, Occupant, Place, Settings, Turn};
use model::{Domain, Nanos};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

const SETTINGS: Settings = Settings {
    domain: Domain::Isolated,
    quantum: Nanos::from_millis(2),
    in_flight: Nanos::from_millis(1),
    idle: Nanos::from_micros(100),
    // A debug build on a loaded machine is silent for long.
    grace: Nanos::from_millis(10_000),
};
const RIVAL_HOLDS: Duration = Duration::from_millis(1);
const LOOK: Duration = Duration::from_millis(1);

pub struct Rival {
    socket: PathBuf,
    ends: Arc<AtomicBool>,
    turns: Arc<AtomicU64>,
    seats: Arc<AtomicU64>,
    server: Option<JoinHandle<()>>,
}

impl Rival {
    pub fn start(folder: &Path) -> Rival {
        let socket = folder.join("rival.sock");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(socket.as_os_str().as_bytes()).unwrap()).unwrap();
        rustix::net::listen(&listener, 64).unwrap();
        let (ends, turns, seats) = <(Arc<AtomicBool>, Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        let mut server = Server { boards: BTreeMap::new(), ends: ends.clone(), turns: turns.clone() };
        let counted = seats.clone();
        let server = std::thread::spawn(move || server.serve(&listener, &counted));
        Rival { socket, ends, turns, seats, server: Some(server) }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How often a rival had the token, and how many processes have registered.
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
    boards: BTreeMap<Gpu, (Board, OwnedFd, JoinHandle<()>)>,
    ends: Arc<AtomicBool>,
    turns: Arc<AtomicU64>,
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
                        board.free(place);
                    }
                    false
                }
            });
            std::thread::sleep(LOOK);
        }
        std::mem::take(&mut self.boards).into_values().for_each(|(_, _, rival)| rival.join().unwrap());
    }

    fn seat(&mut self, connection: &OwnedFd, registration: &Registration) -> Option<(Board, Place)> {
        let (ends, turns) = (&self.ends, &self.turns);
        let (board, file, _) = self.boards.entry(registration.gpu).or_insert_with(|| {
            let (board, file) = Board::create(registration.gpu, &SETTINGS).unwrap();
            let (ends, turns) = (ends.clone(), turns.clone());
            (board, file, std::thread::spawn(move || compete(board, &ends, &turns)))
        });
        let Registration { class, weight, priority, slo, tenant, .. } = *registration;
        let occupant = Occupant { pid: 0, tenant, class, weight, priority, slo, name: b"case", program: b"" };
        let place = board.take(&occupant)?;
        let granted = Reply::Granted(Granted { place, class, lowered: false, generation: 1 });
        reply(connection.as_fd(), &granted, Some(file.as_fd())).ok()?;
        Some((*board, place))
    }
}

fn compete(board: Board, ends: &AtomicBool, turns: &AtomicU64) {
    let occupant = Occupant {
        pid: std::process::id(),
        tenant: 1,
        class: model::Class::BestEffort,
        weight: 1,
        priority: 0,
        slo: None,
        name: b"rival",
        program: b"",
    };
    let seat = board.sit(board.take(&occupant).unwrap()).unwrap();
    let others = |claims: &[Claim]| claims.iter().position(|claim| claim.place != seat.place());
    while !ends.load(Ordering::Relaxed) {
        let seen = seat.bell();
        if let Turn::Mine { since } = seat.try_hold(board::now()) {
            std::thread::sleep(RIVAL_HOLDS);
            let now = board::now();
            if seat.others_want() {
                turns.fetch_add(1, Ordering::Relaxed);
                seat.pass(now, now.since(since), &mut |claims| others(claims));
            }
        } else {
            seat.wait(seen, Nanos::from_millis(20));
        }
    }
}
