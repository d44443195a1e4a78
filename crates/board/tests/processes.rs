//! The round among real processes, some of which are killed.
//!
//! Each test starts this very program again as its tenants; they find the board among the files of their parent.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use board::{Board, Place, Seat, Settings, Turn, UsedTime};
use common::{GPU, fairly, ms};
use model::Nanos;
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal};

/// A test that takes so long hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a tenant is told to do.
const ROLE: &str = "EBB_TEST_ROLE";

/// A board and the processes on it; they end with it, however the test ends.
struct Table {
    board: Board,
    file: OwnedFd,
    tenants: Vec<Tenant>,
}

struct Tenant {
    place: Place,
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl Table {
    fn new(settings: Settings) -> Table {
        let (board, file) = Board::create(GPU, &settings).unwrap();
        Table { board, file, tenants: Vec::new() }
    }

    /// Starts a process that does what `role` says.
    fn start(&mut self, role: &str, weight: u32, argument: &str) {
        let tenant = 1 + self.tenants.len() as u64;
        let place = common::take(&self.board, tenant, weight);
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tenant", "--nocapture", "--test-threads=1"])
            .env(ROLE, format!("{role} {path} {} {} {argument}", place.seat, place.generation))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        self.tenants.push(Tenant { place, child, said });
    }

    fn kill(&mut self, number: usize) {
        self.tenants[number].child.kill().unwrap();
        self.tenants[number].child.wait().unwrap();
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        for tenant in &mut self.tenants {
            let _ = tenant.child.kill();
            let _ = tenant.child.wait();
        }
    }
}

impl Tenant {
    /// Waits until the process has said something.
    fn await_word(&mut self, word: &str) {
        let mut line = String::new();
        while !line.contains(word) {
            line.clear();
            assert_ne!(self.said.read_line(&mut line).unwrap(), 0, "it ended without saying `{word}`");
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Not a test by itself: what the started processes do.
#[test]
fn tenant() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let [role, path, seat, generation, argument] = words[..] else { panic!("{role}") };
    let file = File::options().read(true).write(true).open(path).unwrap();
    let board = Board::open(file.as_fd()).unwrap();
    let place = Place { seat: seat.parse().unwrap(), generation: generation.parse().unwrap() };
    let seat = board.sit(place).unwrap();
    match role {
        "hold" => hold(&seat),
        "lose" => lose(&seat),
        "exclude" => exclude(&seat, argument),
        "share" => share(&seat, Nanos(argument.parse().unwrap())),
        other => panic!("{other}"),
    }
}

fn await_turn(seat: &Seat) {
    let begun = Instant::now();
    loop {
        let seen = seat.bell();
        match seat.try_hold(board::now()) {
            Turn::Mine { .. } => return,
            Turn::Others { look_again } => seat.wait(seen, look_again),
        }
        assert!(begun.elapsed() < PATIENCE, "nobody passes the token");
    }
}

/// Has the token and shows life until it is killed.
fn hold(seat: &Seat) {
    await_turn(seat);
    println!("\nholding");
    loop {
        seat.beat(board::now());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Has the token and shows life until it has lost it.
fn lose(seat: &Seat) {
    await_turn(seat);
    println!("\nholding");
    while seat.holds().is_some() {
        seat.beat(board::now());
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_holder_is_replaced_without_the_daemon() {
    let mut table = Table::new(Settings { grace: ms(20), ..Settings::default() });
    table.start("hold", 1, "-");
    table.tenants[0].await_word("holding");
    let here = common::sit(&table.board, 9, 1);
    assert!(matches!(here.try_hold(board::now()), Turn::Others { .. }) || here.tally().taken_over.get() == 1);
    table.kill(0);
    await_turn(&here);
    assert_eq!(here.tally().taken_over.get(), 1);
    assert_eq!(table.board.token().unwrap().0, here.place());
}

#[test]
fn a_killed_holder_is_replaced_at_once_by_the_daemon() {
    let mut table = Table::new(Settings { grace: ms(60_000), ..Settings::default() });
    table.start("hold", 1, "-");
    table.tenants[0].await_word("holding");
    let here = common::sit(&table.board, 9, 1);
    assert!(matches!(here.try_hold(board::now()), Turn::Others { .. }));
    table.kill(0);
    assert!(table.board.free(table.tenants[0].place));
    await_turn(&here);
    assert_eq!(here.tally().taken_over.get(), 0);
}

#[test]
fn a_stopped_holder_loses_it_and_finds_out() {
    let mut table = Table::new(Settings { grace: ms(20), ..Settings::default() });
    table.start("lose", 1, "-");
    table.tenants[0].await_word("holding");
    table.tenants[0].signal(Signal::STOP);
    let here = common::sit(&table.board, 9, 1);
    await_turn(&here);
    table.tenants[0].signal(Signal::CONT);
    assert!(table.tenants[0].end().success());
    assert!(here.tally().taken_over.get() <= 1);
}

/// Passes the token round for ever, and while it has it, has a lock that nobody else must have.
fn exclude(seat: &Seat, lock: &str) {
    let lock = File::open(lock).unwrap();
    println!("\nhere");
    loop {
        await_turn(seat);
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).expect("only one has the token");
        seat.tally().held_ns.add(1);
        rustix::fs::flock(&lock, FlockOperation::Unlock).unwrap();
        let now = board::now();
        seat.pass(now, UsedTime::new(Nanos::from_micros(10), seat.terms().weight), &mut fairly);
    }
}

#[test]
fn the_round_goes_on_while_holders_are_killed() {
    let mut table = Table::new(Settings { grace: ms(60_000), ..Settings::default() });
    let lock = tempfile::NamedTempFile::new().unwrap();
    for _ in 0..6 {
        table.start("exclude", 1, lock.path().to_str().unwrap());
    }
    table.tenants.iter_mut().for_each(|tenant| tenant.await_word("here"));
    for victim in 0..5 {
        await_turns(&table, victim);
        table.kill(victim);
        assert!(table.board.free(table.tenants[victim].place));
        // Whoever is left goes on, or the next wait does not end.
        assert!(table.tenants[victim + 1..].iter_mut().all(|t| t.child.try_wait().unwrap().is_none()));
    }
    await_turns(&table, 5);
    assert_eq!(table.board.seats().count(), 1);
}

/// Waits until a tenant has had some more turns.
fn await_turns(table: &Table, number: usize) {
    let place = table.tenants[number].place;
    let turns = || {
        let reading = table.board.seats().find(|(one, _)| *one == place);
        reading.expect("it is seated").1.figures.held_ns
    };
    let (before, begun) = (turns(), Instant::now());
    while turns() < before + 20 {
        assert!(begun.elapsed() < PATIENCE, "the round stands still");
        std::thread::sleep(Duration::from_millis(1));
    }
}

const TURNS: u64 = 400;

/// Takes turns until all turns are taken. Time is the token time of all: it passes only while somebody has the token, so
/// shares do not depend on how fast anybody is.
fn share(seat: &Seat, beginning: Nanos) {
    let board = seat.board();
    let quantum = board.settings().quantum;
    let gone =
        || board.seats().map(|(_, reading)| Nanos(reading.figures.held_ns)).fold(Nanos::ZERO, |a, b| a + b);
    seat.want(beginning);
    while !seat.others_want() {
        seat.wait(seat.bell(), ms(1));
    }
    loop {
        await_turn(seat);
        if gone() >= Nanos(quantum.0 * TURNS) {
            break;
        }
        seat.tally().held_ns.add(quantum.0);
        seat.pass(beginning + gone(), UsedTime::new(quantum, seat.terms().weight), &mut fairly);
    }
    seat.leave(beginning + gone(), UsedTime::new(Nanos::ZERO, seat.terms().weight), &mut fairly);
}

#[test]
fn processes_with_weights_1_and_3_have_a_quarter_and_three_quarters() {
    let mut table = Table::new(Settings { quantum: ms(1), grace: ms(60_000), ..Settings::default() });
    let beginning = board::now().0.to_string();
    table.start("share", 1, &beginning);
    table.start("share", 3, &beginning);
    assert!(table.tenants.iter_mut().all(|tenant| tenant.end().success()));
    let held = |number: usize| {
        let place = table.tenants[number].place;
        table.board.seats().find(|(one, _)| *one == place).unwrap().1.figures.held_ns
    };
    let percent = 100 * held(0) / (held(0) + held(1));
    assert!((20..=30).contains(&percent), "{percent}% for a weight of 1 in 4");
    assert_eq!(held(0) + held(1), ms(1).0 * TURNS);
    assert_eq!(table.board.token(), None);
}
