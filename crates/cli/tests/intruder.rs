//! What somebody can do to a best-effort tenant of the shared domain who opens its stop word and writes there: stop it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use board::link::{self, Registration};
use board::{Board, Gpu, StopWord};
use common::runtime::{Runtime, Tenant, wait_for};
use model::Nanos;
use softgpu::memory::{AddressSpace, ContextId, ExportedMemory, Unlimited, Word};

/// What the handle of a stop word opens.
const OPENED: usize = 2 << 20;
/// Behind the stop word, in bytes.
const REST: u64 = 4;

fn shared() -> Runtime {
    let runtime = Runtime::new();
    fs::create_dir_all(runtime.path().join("ebb")).unwrap();
    let configuration = "schema_version = 1\ndomain = \"shared\"\nmps = false\n";
    fs::write(runtime.path().join("ebb/ebb.toml"), configuration).unwrap();
    runtime
}

/// A tenant that has opened the stop word of another.
struct Intruder {
    space: AddressSpace,
    word: u64,
    _connection: OwnedFd,
}

impl Intruder {
    fn open(runtime: &Runtime, tenant: &Tenant) -> Intruder {
        let report = runtime.report().unwrap();
        let digits: String = report["gpus"].items()[0]["uuid"]
            .text()
            .trim_start_matches("GPU-")
            .chars()
            .filter(|digit| *digit != '-')
            .collect();
        let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
        let socket = CString::new(runtime.path().join("ebb.sock").as_os_str().as_bytes()).unwrap();
        let registration = Registration::new(Gpu(std::array::from_fn(byte)), 99);
        let (connection, board, _) =
            link::register(&socket, &registration, None, Nanos::from_millis(5_000)).unwrap();
        let seat = runtime.seat(tenant).unwrap()["seat"].number();
        let handle = ExportedMemory::from_bytes(word_of(&board, seat).handle).unwrap();
        let space = AddressSpace::new(1 << 24, Arc::new(Unlimited)).unwrap();
        let word = space.import(ContextId(1), &handle).unwrap().0;
        Intruder { space, word, _connection: connection }
    }

    /// Everything that can be written but the stop word itself.
    fn rest(&self) -> Vec<u8> {
        let mut bytes = vec![0; OPENED - REST as usize];
        self.space.read(self.word + REST, &mut bytes).unwrap();
        bytes
    }

    fn paint_rest(&self, with: &[u8]) {
        self.space.write(self.word + REST, with).unwrap();
    }

    fn write(&self, value: u32) {
        self.space.store_word(self.word, Word::Four, u64::from(value)).unwrap();
    }
}

fn word_of(board: &Board, seat: i128) -> StopWord {
    let mut found = None;
    wait_for("its stop word is published", || {
        found = board.stop_words().find(|word| i128::from(word.place.seat) == seat);
        found.is_some()
    });
    found.unwrap()
}

/// Numbers that look random and are the same every time.
fn numbers() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0x9e37_79b9_7f4a_7c15_u64), |last| {
        let next = last ^ (last << 13);
        let next = next ^ (next >> 7);
        Some(next ^ (next << 17))
    })
}

#[test]
fn what_others_open_holds_the_stop_word_and_nothing_else() {
    let runtime = shared();
    let train = runtime.tenant("train", "best-effort", &[]);
    let serve = runtime.tenant("serve", "latency", &[]);
    wait_for("launches are cut and made again", || runtime.counter(&train, "relaunched") > 0);
    let intruder = Intruder::open(&runtime, &train);
    // Numbers of launches, as marks and words of streams are.
    let paint: Vec<u8> = (0..OPENED as u32 / 4 - 1).flat_map(|at| (at % 977).to_le_bytes()).collect();
    intruder.paint_rest(&paint);
    let before = runtime.counter(&train, "relaunched");
    wait_for("it is cut and goes on as before", || runtime.counter(&train, "relaunched") > before + 10);
    assert!(intruder.rest() == paint, "nobody has written there");
    assert!(
        intruder.space.read(intruder.word + OPENED as u64, &mut [0; 1]).is_err(),
        "nothing lies behind it"
    );
    serve.end();
    train.end();
}

#[test]
fn any_value_at_any_time_stops_and_changes_no_result() {
    let runtime = shared();
    let train = runtime.tenant("train", "best-effort", &[]);
    let serve = runtime.tenant("serve", "latency", &[]);
    wait_for("launches are cut and made again", || runtime.counter(&train, "relaunched") > 0);
    let intruder = Intruder::open(&runtime, &train);
    let mut numbers = numbers();
    let mut hammer = |times: usize| {
        for number in numbers.by_ref().take(times) {
            let value = [0, 1, u32::MAX, (number >> 32) as u32][number as usize % 4];
            intruder.write(value);
            (0..number % 20_000).for_each(|_| std::hint::spin_loop());
        }
    };
    hammer(5_000);
    let before = runtime.counter(&train, "rounds");
    wait_for("it goes on beside the latency tenant", || {
        hammer(100);
        runtime.counter(&train, "rounds") > before + 3
    });
    serve.end();
    hammer(5_000);
    // The last word of one that leaves.
    intruder.write(0x8000_0000);
    drop(intruder);
    let before = runtime.counter(&train, "launches");
    wait_for("it goes on when the intruder has left", || runtime.counter(&train, "launches") > before + 20);
    train.end();
}
