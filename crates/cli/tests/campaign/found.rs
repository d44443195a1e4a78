//! What the campaign has found, each by itself.

use std::ffi::CString;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::Ordering;

use board::link::{self, Registration};
use board::{Gpu, Landmark, Seat};
use model::Nanos;
use rustix::fs::{FlockOperation, flock};

use crate::attacker;
use crate::common::json::Value;
use crate::common::runtime::{Runtime, wait_for};
use crate::home::Owner;
use crate::stage::Stage;
use crate::worker::Shape;

/// A seat of this process beside the tenants of a runtime folder.
struct Decoy {
    seat: Seat,
    _connection: OwnedFd,
}

impl Decoy {
    fn sit(runtime: &Runtime) -> Decoy {
        let mut uuid = String::new();
        wait_for("somebody has a seat", || {
            let report = runtime.report().unwrap();
            uuid =
                report["gpus"].items().first().map_or_else(String::new, |gpu| gpu["uuid"].text().to_owned());
            !uuid.is_empty() && !runtime.seats().is_empty()
        });
        let digits = uuid.trim_start_matches("GPU-").replace('-', "");
        let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap();
        let socket = CString::new(runtime.path().join("ebb.sock").as_os_str().as_bytes()).unwrap();
        let registration = Registration::new(Gpu(std::array::from_fn(byte)), 99);
        let (connection, board, granted) =
            link::register(&socket, &registration, None, Nanos::from_millis(5_000)).unwrap();
        Decoy { seat: board.sit(granted.place).unwrap(), _connection: connection }
    }

    /// Takes the token from its holder.
    fn steal(&self) {
        let word = &attacker::mapping()[Landmark::Token.place(0).start / 8];
        let epoch = (word.load(Ordering::Relaxed) >> 16) + 1;
        word.store(epoch << 16 | (u64::from(self.seat.place().seat) + 1), Ordering::Relaxed);
    }

    /// Shows life, as one who wants the token and may have it.
    fn live(&self) {
        let _ = self.seat.try_hold(board::now());
    }
}

/// The files by which tenants of several daemons take turns on the card of a folder: the lock, and the place in line for it.
fn lock_files(runtime: &Runtime) -> [File; 2] {
    [".turn", ".queue"].map(|end| {
        let mut found = None;
        wait_for("the file is there", || {
            let mut entries = fs::read_dir(runtime.path()).unwrap().map(|entry| entry.unwrap().path());
            found = entries.find(|path| path.to_string_lossy().ends_with(end));
            found.is_some()
        });
        File::open(found.unwrap()).unwrap()
    })
}

fn take(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

fn give_back(file: &File) {
    flock(file, FlockOperation::Unlock).unwrap();
}

/// A tenant that had the token, was next for the GPU and lost the token stayed next. The new holder waited for that place,
/// for three seconds; so did everybody after the daemon was replaced while somebody was next.
#[test]
fn whoever_loses_the_token_is_no_longer_next_for_the_gpu() {
    let _alone = crate::alone();
    let runtime = Runtime::new();
    let tenant = runtime.tenant("loser", "best-effort", &[]);
    let decoy = Decoy::sit(&runtime);
    let [turn, queue] = lock_files(&runtime);
    wait_for("we are next", || take(&queue));
    wait_for("it is our turn", || take(&turn));
    // It gives up after a while, and goes on without. Then another try finds it in time.
    give_back(&queue);
    wait_for("it is next", || {
        let free = take(&queue);
        if free {
            give_back(&queue);
        }
        !free
    });
    decoy.steal();
    wait_for("it is next no longer", || {
        decoy.live();
        let free = take(&queue);
        if free {
            give_back(&queue);
        }
        free && decoy.seat.holds().is_some()
    });
    give_back(&turn);
    decoy.seat.unwant();
    drop(decoy);
    tenant.end();
}

/// The keeper of a latency tenant that was paused in the middle of its work unmapped the stop words of a board that was no
/// more. That waits for the work, which stood still until the keeper would let it go on.
#[test]
fn whoever_is_paused_in_the_middle_of_its_work_goes_on_at_the_next_daemon() {
    let _alone = crate::alone();
    let mut stage = Stage::new("shared", &[Owner::User], &[Shape::Train, Shape::Train]);
    let [server, other] = [0, 1].map(|which: usize| stage.tenants[which].name.clone());
    let counter = |stage: &Stage, name: &str, counter: &str| {
        let seats = stage.homes[0].seats().unwrap_or_default();
        let seat = seats.iter().find(|seat| seat["name"].text() == name);
        seat.map_or(0, |seat| seat["counters"][counter].number())
    };
    wait_for("both have seats", || stage.seating().is_ok());
    assert!(stage.homes[0].ask(&["set", &server, "--class", "latency"]).status.success());
    wait_for("it raises the other's stop word", || counter(&stage, &other, "stops_guard") > 3);
    let state = |stage: &Stage| {
        let contexts = stage.contexts();
        let own = |context: &&Value| context["pid"].number() == i128::from(stage.tenants[0].pid());
        contexts.iter().find(own).map(|context| context["state"].text().to_owned())
    };
    assert!(stage.homes[0].ask(&["pause", &server]).status.success());
    wait_for("it stands still", || state(&stage).is_some_and(|state| state == "disabled"));
    let before = stage.tenants[0].figures().done;
    stage.homes[0].kill();
    stage.homes[0].serve();
    // The next daemon knows of the pause.
    wait_for("it can be resumed there", || stage.homes[0].ask(&["resume", &server]).status.success());
    wait_for("it goes on", || stage.tenants[0].figures().done > before + 3);
    stage.end();
}
