//! The hostile campaign: tenants on one software GPU, and everything that can happen to them, drawn by chance.
//!
//! Somebody who has a seat writes anything anywhere on the board; tenants, attackers and daemons are killed, stopped and
//! started; classes change, and tenants are paused. In between there is calm: the attackers have left, everybody was let go
//! on. Then every tenant must go on, no result may be wrong, and nobody has a seat who should have none.
//!
//! `cargo test -p cli --test campaign` is a short form. The long one, with the table in the end:
//!
//! ```sh
//! EBB_CAMPAIGN=5000 cargo test --release -p cli --test campaign -- --nocapture
//! ```
//!
//! The seed is printed, and `EBB_CAMPAIGN_SEED` gives it back: the same events in the same order, though not at the same
//! moments. `EBB_CAMPAIGN_KEEP=1` leaves everything as it is when something is wrong.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;
#[path = "common/driver.rs"]
mod driver;

#[path = "campaign/attacker.rs"]
mod attacker;
#[path = "campaign/chance.rs"]
mod chance;
#[path = "campaign/events.rs"]
mod events;
#[path = "campaign/figures.rs"]
mod figures;
#[path = "campaign/found.rs"]
mod found;
#[path = "campaign/home.rs"]
mod home;
#[path = "campaign/log.rs"]
mod log;
#[path = "campaign/stage.rs"]
mod stage;
#[path = "campaign/worker.rs"]
mod worker;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chance::Chance;
use events::{Event, Rules};
use home::Owner;
use log::Log;
use stage::{Stage, Tenant};
use worker::Shape;

/// Events of the short form.
const SHORT: u64 = 240;
const SHORT_SEED: u64 = 1;
/// Events in a row, before there is calm.
const ROUND: u64 = 24;
/// Rounds on one stage.
const ROUNDS: u64 = 4;
/// Iterations that everybody must finish to have gone on.
const FURTHER: u64 = 3;
/// Within this everybody should go on. What takes longer is told.
const PROMISED: Duration = Duration::from_secs(2);
/// What takes longer than this, on a machine that may have other things to do, is a hang.
const HANG: Duration = Duration::from_secs(20);

/// How often it is looked whether somebody is still paused.
const LOOK: Duration = Duration::from_millis(300);

/// The kinds of stages: the domain, and whose daemons are around the card.
const STAGES: [(&str, &[Owner], &[Shape]); 4] = [
    ("isolated", &[Owner::User], &[Shape::Train, Shape::Streams, Shape::Train, Shape::Serve]),
    ("shared", &[Owner::User], &[Shape::Train, Shape::Streams, Shape::Serve]),
    ("isolated", &[Owner::User, Owner::Machine], &[Shape::Train, Shape::Streams, Shape::Serve]),
    ("shared", &[Owner::User, Owner::Machine], &[Shape::Train, Shape::Serve]),
];

#[test]
#[ignore = "a program that the other tests start"]
fn worker() {
    worker::program();
}

#[test]
#[ignore = "a program that the other tests start"]
fn attacker() {
    attacker::program();
}

/// One campaign at a time: a machine with two processors has no room for more.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many events, and the seed.
fn orders() -> (u64, u64) {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let events = number("EBB_CAMPAIGN");
    // A long campaign is another one every time.
    let drawn = if events.is_some() { board::now().0 % 1_000_000 } else { SHORT_SEED };
    (events.unwrap_or(SHORT), number("EBB_CAMPAIGN_SEED").unwrap_or(drawn))
}

#[test]
fn no_attack_and_no_accident_hangs_others_or_makes_a_result_wrong() {
    let _alone = alone();
    let (events, seed) = orders();
    let mut chance = Chance::new(seed);
    let mut log = Log::begin("campaign", events, seed);
    let stages = std::env::var("EBB_CAMPAIGN_STAGE").ok().map(|text| text.parse::<usize>().unwrap());
    for number in stages.map_or(0, |only| only).. {
        let (domain, owners, shapes) = STAGES[stages.unwrap_or(number) % STAGES.len()];
        let mut stage = Stage::new(domain, owners, shapes);
        log.next_stage(&format!("{domain}, {owners:?}"));
        for _ in 0..ROUNDS.min((events - log.events()).div_ceil(ROUND)) {
            play_round(&mut stage, &mut log, &mut chance);
        }
        log.end_stage(&stage);
        stage.end();
        if log.events() >= events {
            break;
        }
    }
    log.close();
}

fn play_round(stage: &mut Stage, log: &mut Log, chance: &mut Chance) {
    let rules = Rules { attacks: chance.percent(75), daemons: chance.percent(75) };
    log.next_round();
    for _ in 0..ROUND {
        let event = Event::draw(stage, rules, chance);
        log.note(event);
        event.play(stage, chance);
        // Tenants that have just been started come to the GPU sooner or later.
        if chance.percent(70) {
            stage.tenants.iter_mut().for_each(Tenant::begin);
        }
    }
    calm(stage, log, chance);
}

/// The attackers leave, everybody is let go on; and then everybody does.
fn calm(stage: &mut Stage, log: &mut Log, chance: &mut Chance) {
    while !stage.attackers.is_empty() {
        stage.send_away(0, chance.percent(50));
    }
    stage.continue_all();
    stage.homes.iter_mut().for_each(home::Home::serve);
    stage.fill();
    stage.tenants.iter_mut().for_each(Tenant::begin);
    stage.hear_all();
    stage.restore_all();
    await_all(stage, log);
    check(stage, log);
}

/// Waits until every tenant has gone on.
fn await_all(stage: &mut Stage, log: &mut Log) {
    let mut begin = Instant::now();
    let counts = |stage: &Stage| -> Vec<u64> { stage.tenants.iter().map(|one| one.figures().done).collect() };
    let before = counts(stage);
    let (mut looked, mut told) = (begin, false);
    let mut pending: Vec<usize> = (0..before.len()).collect();
    loop {
        let now = counts(stage);
        pending.retain(|which| {
            let (was, is) = (before[*which], now[*which]);
            let gone_on = is >= was + FURTHER;
            if gone_on {
                log.went_on(begin.elapsed(), was == 0);
            }
            !gone_on
        });
        if pending.is_empty() {
            return;
        }
        // A command that nobody waited for may have reached the daemon late, and a tenant may have its seat only now.
        if looked.elapsed() > LOOK {
            if stage.restore_all() {
                begin = Instant::now();
            }
            looked = Instant::now();
        }
        let names = || -> Vec<&str> { pending.iter().map(|at| stage.tenants[*at].name.as_str()).collect() };
        if begin.elapsed() > HANG {
            log.fail(stage, &format!("{:?} did not go on within {HANG:?}", names()));
        }
        if begin.elapsed() > PROMISED && !std::mem::replace(&mut told, true) {
            log.warn(stage, &format!("{:?} did not go on within {PROMISED:?}", names()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What must hold when there is calm.
fn check(stage: &mut Stage, log: &mut Log) {
    if let Some(words) = stage.casualty() {
        log.fail(stage, &words);
    }
    let sum = stage.sum();
    if sum.wrong > 0 {
        log.fail(stage, &format!("{} results are wrong", sum.wrong));
    }
    if sum.beyond > 0 {
        log.fail(stage, &format!("{} allocations beyond the limit were granted", sum.beyond));
    }
    let begin = Instant::now();
    while let Err(words) = stage.seating() {
        if begin.elapsed() > HANG {
            log.fail(stage, &words);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    log.end_round(stage, begin.elapsed());
}

/// So many are killed, tenants for the most part and every twenty-fifth time a daemon: up to so many shortly one after the other,
/// before everybody else has to go on.
const KILLS: u64 = 500;
const DAEMON_EVERY: u64 = 25;
const AT_ONCE: u64 = 8;

#[test]
fn whoever_is_killed_among_the_tenants_of_three_daemons_the_others_go_on() {
    let _alone = alone();
    let (_, seed) = orders();
    let mut chance = Chance::new(seed);
    let mut log = Log::begin("kills", KILLS, seed);
    let owners = [Owner::User, Owner::User, Owner::Machine];
    let mut stage = Stage::new("isolated", &owners, &[Shape::Train, Shape::Streams, Shape::Serve]);
    log.next_stage("isolated, three daemons");
    log.next_round();
    await_all(&mut stage, &mut log);
    while log.events() < KILLS {
        for _ in 0..(1 + chance.below(AT_ONCE)).min(KILLS - log.events()) {
            std::thread::sleep(Duration::from_micros(chance.below(30_000)));
            kill_somebody(&mut stage, &mut log, &mut chance);
        }
        stage.tenants.iter_mut().for_each(Tenant::begin);
        await_all(&mut stage, &mut log);
        check(&mut stage, &mut log);
        log.next_round();
    }
    log.end_stage(&stage);
    stage.end();
    log.close();
}

fn kill_somebody(stage: &mut Stage, log: &mut Log, chance: &mut Chance) {
    if log.events() % DAEMON_EVERY == DAEMON_EVERY - 1 {
        let home = chance.index(stage.homes.len());
        log.note(Event::DaemonKilled { home });
        stage.homes[home].kill();
        stage.homes[home].serve();
        return;
    }
    let which = chance.index(stage.tenants.len());
    log.note(Event::TenantKilled { which });
    stage.kill(which);
}
