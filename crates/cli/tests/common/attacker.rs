//! Somebody who sits at a board and writes there what it likes: it has the board's file, as every tenant has.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::path::Path;

use board::link::{Registration, Reply, Request};
use board::{Gpu, SEATS};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};

use crate::common::json::Value;

/// Where things are on a board.
const DOMAIN: u64 = 56;
const FIRST_SEAT: u64 = 192;
const TERMS: u64 = 32;
const SLO: u64 = 40;
const MEMORY: u64 = 48;
const BELL: u64 = 128;

/// Terms as the board has them.
pub const PAUSED: u64 = 2;
pub const LATENCY: u64 = 1;
pub const WEIGHT_ONE: u64 = 1 << 16;

pub struct Attacker {
    board: OwnedFd,
    seat_bytes: u64,
    _connection: OwnedFd,
}

impl Attacker {
    /// Takes a seat at the first GPU of a report, as a tenant that asks for nothing.
    pub fn sit(folder: &Path, report: &Value) -> Attacker {
        let uuid = report["gpus"].items()[0]["uuid"].text().replace("GPU-", "").replace('-', "");
        let byte = |at: usize| u8::from_str_radix(&uuid[2 * at..2 * at + 2], 16).unwrap();
        let (connection, answer, board) = ask(folder, &Registration::new(Gpu(std::array::from_fn(byte)), 99));
        assert!(matches!(answer, Reply::Granted(_)), "{answer:?}");
        let board = board.unwrap();
        let bytes = rustix::fs::fstat(&board).unwrap().st_size.unsigned_abs();
        let seat_bytes = (bytes - FIRST_SEAT) / SEATS as u64;
        Attacker { board, seat_bytes, _connection: connection }
    }

    fn seat(&self, number: i128) -> u64 {
        FIRST_SEAT + u64::try_from(number).unwrap() * self.seat_bytes
    }

    fn read(&self, at: u64) -> u64 {
        let mut word = [0; 8];
        assert_eq!(rustix::io::pread(&self.board, &mut word[..], at), Ok(8));
        u64::from_le_bytes(word)
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        assert_eq!(rustix::io::pwrite(&self.board, bytes, at), Ok(bytes.len()));
    }

    /// Changes the board's domain, and has everybody look.
    pub fn write_domain(&self, domain: u32) {
        self.write(DOMAIN, &domain.to_le_bytes());
        (0..16).for_each(|seat| self.ring(seat));
    }

    pub fn domain(&self) -> u32 {
        self.read(DOMAIN) as u32
    }

    pub fn ring(&self, seat: i128) {
        let bell = self.seat(seat) + BELL;
        let count = self.read(bell) as u32;
        self.write(bell, &count.wrapping_add(1).to_le_bytes());
    }

    pub fn write_terms(&self, seat: i128, word: u64) {
        self.write(self.seat(seat) + TERMS, &word.to_le_bytes());
    }

    pub fn write_memory(&self, seat: i128, bytes: u64) {
        self.write(self.seat(seat) + MEMORY, &bytes.to_le_bytes());
    }

    /// Makes a tenant the least that there is, with a limit of one byte.
    pub fn demote(&self, seat: i128) {
        self.write_terms(seat, WEIGHT_ONE);
        self.write(self.seat(seat) + SLO, &0_u64.to_le_bytes());
        self.write_memory(seat, 1);
    }

    /// Frees a seat.
    pub fn vacate(&self, seat: i128) {
        let generation = self.read(self.seat(seat)) >> 32;
        self.write(self.seat(seat), &(generation << 32).to_le_bytes());
    }

    /// Which occupant a seat has had: another one with each.
    pub fn generation(&self, seat: i128) -> u64 {
        self.read(self.seat(seat)) >> 32
    }
}

/// Registers without showing anything: the connection, the answer and the board's file.
pub fn ask(folder: &Path, registration: &Registration) -> (OwnedFd, Reply, Option<OwnedFd>) {
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(folder.join("ebb.sock")).unwrap()).unwrap();
    let request = Request::Register(*registration).encode();
    rustix::net::send(&socket, &request, SendFlags::NOSIGNAL).unwrap();
    let mut bytes = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let got = rustix::net::recvmsg(&socket, &mut slices, &mut beside, RecvFlags::CMSG_CLOEXEC).unwrap();
    let files = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let board = files.flatten().next();
    (socket, Reply::decode(&bytes[..got.bytes]).unwrap(), board)
}
