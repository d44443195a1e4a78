//! A board is a sealed memory file of the right size and version, or it is not touched.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::os::fd::{AsFd, OwnedFd};

use board::{Board, Error, Settings, VERSION};
use common::{GPU, board, ms, sit};
use rustix::fs::{MemfdFlags, SealFlags, ftruncate, memfd_create};

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

fn size() -> u64 {
    let (_, file) = Board::create(GPU, &Settings::default()).unwrap();
    rustix::fs::fstat(&file).unwrap().st_size.unsigned_abs()
}

/// A memory file with these bytes at its beginning.
fn file(size: u64, seals: SealFlags, beginning: &[u8]) -> OwnedFd {
    let file = memfd_create(c"test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&file, size).unwrap();
    assert_eq!(rustix::io::pwrite(&file, beginning, 0), Ok(beginning.len()));
    rustix::fs::fcntl_add_seals(&file, seals).unwrap();
    file
}

fn refusal(file: &OwnedFd) -> Error {
    Board::open(file.as_fd()).err().expect("not to be opened")
}

#[test]
fn two_mappings_are_one_board() {
    let settings = Settings { domain: model::Domain::Shared, quantum: ms(7), ..Settings::default() };
    let (ours, file) = Board::create(GPU, &settings).unwrap();
    let theirs = Board::open(file.as_fd()).unwrap();
    assert_eq!(theirs.gpu(), GPU);
    assert_eq!(theirs.settings(), settings);
    let place = common::take(&ours, 3, 5);
    let seat = theirs.sit(place).unwrap();
    assert_eq!(seat.terms().weight, 5);
    seat.tally().submissions.add(4);
    let (_, reading) = ours.seats().next().unwrap();
    assert_eq!((reading.tenant, reading.name.as_str(), reading.figures.submissions), (3, "name", 4));
}

#[test]
fn its_size_cannot_be_changed() {
    let (_, file) = Board::create(GPU, &Settings::default()).unwrap();
    assert_eq!(ftruncate(&file, 0), Err(rustix::io::Errno::PERM));
    assert_eq!(ftruncate(&file, size() * 2), Err(rustix::io::Errno::PERM));
    let more = rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE);
    assert_eq!(more, Err(rustix::io::Errno::PERM), "nobody may keep the others from writing");
}

#[test]
fn what_is_not_sealed_is_refused() {
    let size = size();
    for seals in [SealFlags::empty(), SealFlags::SHRINK, SEALS.difference(SealFlags::SEAL)] {
        assert_eq!(refusal(&file(size, seals, b"ebbboard")), Error::NotSealed, "{seals:?}");
    }
}

#[test]
fn another_size_is_refused() {
    let expected = size();
    for found in [0, 64, expected - 1, expected + 1] {
        let refused = refusal(&file(found, SEALS, b""));
        // The bytes written at the beginning were none, so the size is as made.
        assert_eq!(refused, Error::Size { found, expected });
    }
}

#[test]
fn a_board_of_another_version_says_so_whatever_its_size() {
    let with = |version: u32| [b"ebbboard".as_slice(), &version.to_le_bytes()].concat();
    for found in [1, 2, VERSION + 1] {
        assert_eq!(refusal(&file(size() / 2, SEALS, &with(found))), Error::Version { found });
    }
    let half = Error::Size { found: size() / 2, expected: size() };
    assert_eq!(refusal(&file(size() / 2, SEALS, &with(VERSION))), half);
}

#[test]
fn another_beginning_is_refused() {
    assert_eq!(refusal(&file(size(), SEALS, b"")), Error::NotABoard);
    assert_eq!(refusal(&file(size(), SEALS, b"ebbledgr")), Error::NotABoard);
    let mut other = *b"ebbboard\0\0\0\0";
    other[8..].copy_from_slice(&(VERSION + 1).to_le_bytes());
    assert_eq!(refusal(&file(size(), SEALS, &other)), Error::Version { found: VERSION + 1 });
}

#[test]
fn what_is_no_memory_file_is_refused() {
    let plain: OwnedFd = tempfile::tempfile().unwrap().into();
    ftruncate(&plain, size()).unwrap();
    // A temporary file may itself lie in memory, where it has the seal that says it takes no seals.
    assert!(matches!(refusal(&plain), Error::NotAMemoryFile | Error::NotSealed));
    let (reader, _writer) = std::io::pipe().unwrap();
    assert_eq!(refusal(&reader.into()), Error::NotAMemoryFile);
}

#[test]
fn a_seat_belongs_to_one_generation() {
    let board = board();
    let first = sit(&board, 1, 1);
    assert!(first.is_mine());
    assert!(board.free(first.place()));
    assert!(!board.free(first.place()), "free once is enough");
    assert!(!first.is_mine());
    let second = sit(&board, 2, 1);
    assert_eq!(second.place().seat, first.place().seat);
    assert_eq!(board.sit(first.place()).err(), Some(Error::Stale));
    assert!(!board.change(first.place(), board::Change::Weight(9)));
    assert_eq!(second.terms().weight, 1);
}

#[test]
fn all_seats_can_be_taken_and_no_more() {
    let board = board();
    let places: Vec<_> = (0..board::SEATS).map(|_| common::take(&board, 1, 1)).collect();
    assert_eq!(board.take(&common::occupant(1, 1)), None);
    assert_eq!(board.seats().count(), board::SEATS);
    assert!(places.iter().all(|&place| board.free(place)));
    assert_eq!(board.seats().count(), 0);
    assert!(board.take(&common::occupant(1, 1)).is_some());
}
