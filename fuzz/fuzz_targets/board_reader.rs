//! Any bytes as a board: what is read of it is within its bounds and can be printed, and it is mended as far as it can be.
#![no_main]

use std::os::fd::AsFd;

use board::{Board, Gpu, Occupant, Settings};
use libfuzzer_sys::fuzz_target;
use model::{Class, Nanos};

const GPU: Gpu = Gpu([7; 16]);

// A board is long, so the input is pieces of it: where each lies among the first seats, how long it is, and what stands there.
// The first words stay and two tenants sit there, or nothing would be read.
fuzz_target!(|data: &[u8]| {
    let (whole, file) = Board::create(GPU, &Settings::default()).expect("there is room for a board");
    let size = rustix::fs::fstat(&file).expect("it is a file").st_size.unsigned_abs();
    for class in [Class::Latency, Class::BestEffort] {
        let (name, program) = (b"name", b"program");
        let tenant = Occupant { pid: 1, tenant: 1, class, weight: 1, priority: 0, slo: None, memory: None, name, program };
        assert!(whole.take(&tenant).is_some());
    }
    let mut rest = data;
    while let Some(([a, b, length], more)) = rest.split_first_chunk::<3>() {
        let place = 16 + u64::from(u16::from_le_bytes([*a, *b])) % (size - 16);
        let length = usize::from(*length).min(more.len()).min((size - place) as usize);
        assert_eq!(rustix::io::pwrite(&file, &more[..length], place), Ok(length));
        rest = &more[length..];
    }
    let board = Board::open(file.as_fd()).expect("its beginning is right");
    look(&board);
    mend(&board);
    // SAFETY: both are dropped here, and nothing of them is kept.
    unsafe {
        board.close();
        whole.close();
    }
});

fn look(board: &Board) {
    assert_eq!(board.settings(), board.settings().sane());
    assert_eq!(board.dials(), board.dials().sane());
    for (place, reading) in board.seats() {
        assert!(usize::from(place.seat) < board::SEATS);
        assert!((1..=board::HIGHEST_WEIGHT).contains(&reading.terms.weight));
        assert!(reading.terms.priority <= board::HIGHEST_PRIORITY);
        assert!(!reading.name.contains(char::is_control) && !reading.program.contains(char::is_control));
        let figures = &reading.figures;
        for times in [&figures.burst_times, &figures.wait_times, &figures.handover_times, &figures.guard_times] {
            assert!(times.quantile(0.5) <= times.quantile(0.99));
        }
        let _ = (board.pulse(place), reading.silence(board::now()));
    }
    let now = board::now();
    assert!(board.latency_last_active(now) <= Some(now));
    assert!(board.latency_tenants(now).all(|tenant| tenant.priority <= board::HIGHEST_PRIORITY));
    assert!(board.best_effort_tenants(now).all(|tenant| tenant.wanted_since <= now));
    assert!(board.stop_words().count() <= board::SEATS);
    let _ = (board.token(), board.latency_busy(now), board.latency_active(Nanos(1)), board.highest_priority());
}

/// As the daemon does where its books say that nobody sits there.
fn mend(board: &Board) {
    board.restore(GPU, &Settings::default());
    board.sweep(|_| false);
    assert!(board.is_whole() && board.gpu() == GPU && board.settings() == Settings::default());
    assert_eq!((board.seats().count(), board.sweep(|_| false), board.token()), (0, 0, None));
}
