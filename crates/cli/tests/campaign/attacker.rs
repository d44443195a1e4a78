//! An attacker: a process that has come to its seat in the ordinary way, and writes whatever it likes where all can write.
//!
//! It is this test binary itself. It does what it is told line by line, and ends when its standard input does.

use std::ffi::CString;
use std::io::BufRead as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use board::link::{self, Registration};
use board::{BOARD_BYTES, Board, Gpu, Label, Landmark, SEATS};
use model::{Class, Nanos};
use softgpu::memory::{AddressSpace, ContextId, ExportedMemory, Unlimited, Word};

use super::chance::Chance;
use super::figures::{FigureFile, Figures};

/// The name of the test that is the program.
pub const ROLE: &str = "attacker";
pub const SOCKET: &str = "EBB_CAMPAIGN_SOCKET";
pub const GPU: &str = "EBB_CAMPAIGN_GPU";
pub const CLASS: &str = "EBB_CAMPAIGN_CLASS";
pub const FIGURES: &str = "EBB_CAMPAIGN_STORES";

/// Words that are left alone: none. `EBB_CAMPAIGN_SPARED` names some, with commas between, to find the cause of a
/// failure.
pub const SPARED: &[Landmark] = &[];
pub const SPARED_VARIABLE: &str = "EBB_CAMPAIGN_SPARED";

/// What is spared in this run.
pub fn spared() -> Vec<Landmark> {
    let Ok(list) = std::env::var(SPARED_VARIABLE) else { return SPARED.to_vec() };
    let named = |word: &str| {
        let found = Landmark::ALL.into_iter().find(|landmark| name(*landmark) == word.trim());
        found.unwrap_or_else(|| panic!("{SPARED_VARIABLE}: there is no {word}"))
    };
    list.split(',').filter(|word| !word.trim().is_empty()).map(named).collect()
}

pub fn name(landmark: Landmark) -> String {
    format!("{landmark:?}").to_lowercase()
}

/// What an attacker is told.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// So many stores all over the board.
    Scatter { stores: u64 },
    /// Stores to the words that mean one thing, of all seats.
    Aim { at: Landmark, stores: u64 },
    /// The same word again and again.
    Hammer { at: Landmark, stores: u64 },
    /// The stop words themselves, in others' memory.
    StopWords { stores: u64 },
}

impl Order {
    pub fn line(self, seed: u64) -> String {
        match self {
            Order::Scatter { stores } => format!("scatter - {stores} {seed}\n"),
            Order::Aim { at, stores } => format!("aim {} {stores} {seed}\n", name(at)),
            Order::Hammer { at, stores } => format!("hammer {} {stores} {seed}\n", name(at)),
            Order::StopWords { stores } => format!("words - {stores} {seed}\n"),
        }
    }

    fn parse(line: &str) -> (Order, u64) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| words[at].parse().unwrap();
        let at = Landmark::ALL.into_iter().find(|landmark| name(*landmark) == words[1]);
        let stores = number(2);
        let order = match (words[0], at) {
            ("aim", Some(at)) => Order::Aim { at, stores },
            ("hammer", Some(at)) => Order::Hammer { at, stores },
            ("words", _) => Order::StopWords { stores },
            _ => Order::Scatter { stores },
        };
        (order, number(3))
    }
}

/// The program.
pub fn program() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let file = FigureFile::create(Path::new(&std::env::var_os(FIGURES).unwrap()));
    let digits = std::env::var(GPU).unwrap();
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
    let registration = Registration {
        class: if std::env::var(CLASS).unwrap() == "latency" { Class::Latency } else { Class::BestEffort },
        name: Label::new(b"attacker"),
        ..Registration::new(Gpu(std::array::from_fn(byte)), 0xbad)
    };
    let socket = CString::new(socket.as_bytes()).unwrap();
    // There may be no daemon just now.
    let Ok((_connection, board, _)) = link::register(&socket, &registration, None, Nanos::from_millis(2_000))
    else {
        return;
    };
    let mut attacker = Attacker { board, memory: mapping(), spared: spared(), space: None, stores: 0 };
    for line in std::io::stdin().lock().lines() {
        let (order, seed) = Order::parse(&line.unwrap());
        attacker.obey(order, &mut Chance::new(seed));
        file.write(&Figures { done: attacker.stores, ..Figures::default() });
    }
}

/// Where the board is mapped: the only memory file of that size.
pub fn mapping() -> &'static [AtomicU64] {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains("ebb-board")).expect("it is mapped");
    let (from, to) = line.split_whitespace().next().unwrap().split_once('-').unwrap();
    let address = |text: &str| usize::from_str_radix(text, 16).unwrap();
    assert!(address(to) - address(from) >= BOARD_BYTES);
    let words = std::ptr::with_exposed_provenance::<AtomicU64>(address(from));
    // SAFETY: a mapping of this size, made of atomics, which stays for as long as the process lives.
    unsafe { std::slice::from_raw_parts(words, BOARD_BYTES / 8) }
}

struct Attacker {
    board: Board,
    memory: &'static [AtomicU64],
    spared: Vec<Landmark>,
    space: Option<AddressSpace>,
    stores: u64,
}

impl Attacker {
    fn obey(&mut self, order: Order, chance: &mut Chance) {
        match order {
            Order::Scatter { stores } => (0..stores).for_each(|_| {
                // Seats that nobody has are most of the board, and less interesting.
                let end = if chance.percent(80) { Landmark::Tally.place(11).end } else { BOARD_BYTES };
                let byte = chance.index(end) & !3;
                self.store(byte, chance);
                linger(chance);
            }),
            Order::Aim { at, stores } => (0..stores).for_each(|_| {
                let byte = self.aim(at, chance);
                self.store(byte, chance);
                linger(chance);
            }),
            Order::Hammer { at, stores } => {
                let byte = self.aim(at, chance);
                (0..stores).for_each(|_| {
                    self.store(byte, chance);
                    (0..chance.below(2_000)).for_each(|_| std::hint::spin_loop());
                });
            }
            Order::StopWords { stores } => self.write_stop_words(stores, chance),
        }
    }

    fn aim(&self, at: Landmark, chance: &mut Chance) -> usize {
        // Mostly at somebody who sits there.
        let seats: Vec<u16> = self.board.seats().map(|(place, _)| place.seat).collect();
        let seat = match seats.is_empty() || chance.percent(10) {
            true => chance.below(SEATS as u64) as u16,
            false => chance.one(&seats),
        };
        let place = at.place(seat);
        place.start + (chance.index(place.len()) & !3)
    }

    /// Half a word or a whole one, unless it is spared.
    fn store(&mut self, byte: usize, chance: &mut Chance) {
        if Landmark::at(byte).is_none_or(|landmark| self.spared.contains(&landmark)) {
            return;
        }
        self.stores += 1;
        let word = &self.memory[byte / 8];
        let value = self.value(word.load(Ordering::Relaxed), chance);
        if chance.percent(60) {
            word.store(value, Ordering::Relaxed);
        } else {
            let half = word.as_ptr().cast::<u32>().wrapping_add(byte / 4 % 2);
            // SAFETY: half of a word of the mapping, aligned as such; all who look at it expect anything.
            let half = unsafe { AtomicU32::from_ptr(half) };
            half.store(value as u32, Ordering::Relaxed);
        }
    }

    /// What could matter there, or anything.
    fn value(&self, before: u64, chance: &mut Chance) -> u64 {
        let now = board::now().0;
        match chance.below(12) {
            0 => 0,
            1 => u64::MAX,
            2 => chance.bits(),
            3 => chance.below(200),
            4 => before.wrapping_add(1),
            5 => before.wrapping_sub(1),
            6 => before ^ 1 << chance.below(64),
            7 => now,
            8 => now + chance.below(10_000_000_000),
            9 => now.wrapping_sub(chance.below(10_000_000_000)),
            10 => before & 0xffff_ffff_0000_0000 | chance.below(8),
            // What stands elsewhere.
            _ => self.memory[chance.index(self.memory.len())].load(Ordering::Relaxed),
        }
    }

    fn write_stop_words(&mut self, stores: u64, chance: &mut Chance) {
        let space =
            self.space.get_or_insert_with(|| AddressSpace::new(1 << 26, Arc::new(Unlimited)).unwrap());
        let words: Vec<_> = self.board.stop_words().collect();
        let handles = words.iter().filter_map(|word| ExportedMemory::from_bytes(word.handle));
        let opened: Vec<_> = handles.filter_map(|handle| space.import(ContextId(1), &handle).ok()).collect();
        for _ in 0..stores {
            if opened.is_empty() {
                break;
            }
            let pointer = chance.one(&opened);
            let any = chance.bits() >> 32;
            let value = chance.one(&[0, 1, 2, 0x8000_0000, u64::from(u32::MAX), any]);
            let offset = if chance.percent(70) { 0 } else { chance.below(1 << 14) & !3 };
            self.stores += u64::from(space.store_word(pointer.0 + offset, Word::Four, value).is_ok());
            linger(chance);
        }
        opened.into_iter().for_each(|pointer| drop(space.close_import(pointer)));
    }
}

/// Others do something between two stores.
fn linger(chance: &mut Chance) {
    match chance.below(8) {
        0 => std::thread::sleep(Duration::from_micros(chance.below(3_000))),
        1..4 => std::thread::yield_now(),
        _ => {}
    }
}
