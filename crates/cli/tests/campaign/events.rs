//! What happens to a stage, drawn by chance.

use std::fmt;
use std::time::Duration;

use board::Landmark;
use rustix::process::Signal;

use super::attacker::{self, Order};
use super::chance::Chance;
use super::stage::Stage;

/// One thing that happens.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    AttackerComes { home: usize, class: &'static str },
    AttackerLeaves { killed: bool },
    Attack { order: Order, seed: u64 },
    TenantKilled { which: usize },
    TenantStopped { which: usize },
    TenantContinues { which: usize },
    TenantBegins,
    DaemonKilled { home: usize },
    DaemonEnded { home: usize },
    DaemonStarted { home: usize },
    DaemonStopped { home: usize },
    DaemonContinues { home: usize },
    Paused { which: usize },
    Resumed { which: usize },
    ClassSet { which: usize, class: &'static str },
    TermsSet { which: usize, option: &'static str, value: u64 },
}

/// How events are called in the table.
pub const KINDS: [&str; 7] = ["attackers", "attacks", "kills", "stops", "daemons", "pauses", "terms"];

impl Event {
    /// Its place in `KINDS`.
    pub fn kind(self) -> usize {
        match self {
            Event::AttackerComes { .. } | Event::AttackerLeaves { .. } => 0,
            Event::Attack { .. } => 1,
            Event::TenantKilled { .. } => 2,
            Event::TenantStopped { .. } | Event::TenantContinues { .. } | Event::TenantBegins => 3,
            Event::DaemonKilled { .. }
            | Event::DaemonEnded { .. }
            | Event::DaemonStarted { .. }
            | Event::DaemonStopped { .. }
            | Event::DaemonContinues { .. } => 4,
            Event::Paused { .. } | Event::Resumed { .. } => 5,
            Event::ClassSet { .. } | Event::TermsSet { .. } => 6,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What may happen in a round.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub attacks: bool,
    pub daemons: bool,
}

/// Attackers at a time.
const ATTACKERS: usize = 2;

impl Event {
    /// Draws what happens next.
    pub fn draw(stage: &Stage, rules: Rules, chance: &mut Chance) -> Event {
        let home = chance.index(stage.homes.len());
        if stage.tenants.is_empty() {
            return Event::DaemonStarted { home };
        }
        let which = chance.index(stage.tenants.len());
        let class = chance.one(&["latency", "best-effort"]);
        let percent = chance.below(100);
        let attacked = !stage.attackers.is_empty();
        match percent {
            0..12 if rules.attacks && stage.attackers.len() < ATTACKERS => {
                Event::AttackerComes { home, class }
            }
            0..6 if attacked => Event::AttackerLeaves { killed: chance.percent(50) },
            6..46 if attacked => Event::Attack { order: draw_order(chance), seed: chance.bits() },
            0..6 => Event::TenantKilled { which },
            6..14 => Event::ClassSet { which, class },
            14..24 => Event::TenantStopped { which },
            24..32 => Event::TenantContinues { which },
            32..39 => Event::Paused { which },
            39..46 => Event::Resumed { which },
            46..53 => Event::TenantKilled { which },
            53..59 => Event::TenantStopped { which },
            59..64 => Event::TenantContinues { which },
            64..66 => Event::TenantBegins,
            66..69 if rules.daemons => Event::DaemonKilled { home },
            69..71 if rules.daemons => Event::DaemonEnded { home },
            71..75 if rules.daemons => Event::DaemonStarted { home },
            75..78 if rules.daemons => Event::DaemonStopped { home },
            66..81 => Event::DaemonContinues { home },
            81..86 => Event::Paused { which },
            86..90 => Event::Resumed { which },
            90..96 => Event::ClassSet { which, class },
            96..98 => Event::TermsSet { which, option: "--weight", value: 1 + chance.below(9) },
            98 => Event::TermsSet { which, option: "--priority", value: chance.below(10) },
            _ => Event::TermsSet { which, option: "--mem", value: (40 + chance.below(40)) << 20 },
        }
    }

    /// Has it happen.
    pub fn play(self, stage: &mut Stage, chance: &mut Chance) {
        match self {
            Event::AttackerComes { home, class } => stage.let_in(home, class),
            Event::AttackerLeaves { killed } => stage.send_away(chance.index(stage.attackers.len()), killed),
            Event::Attack { order, seed } => stage.order(chance.index(stage.attackers.len()), order, seed),
            Event::TenantKilled { which } => stage.kill(which),
            Event::TenantStopped { which } => {
                stage.settle();
                stage.tenants[which].signal(Signal::STOP);
            }
            Event::TenantContinues { which } => stage.tenants[which].signal(Signal::CONT),
            Event::TenantBegins => stage.tenants.iter_mut().for_each(|tenant| tenant.begin()),
            Event::Paused { which } => stage.say(which, &["pause"]),
            Event::Resumed { which } => stage.say(which, &["resume"]),
            Event::ClassSet { which, class } => stage.say(which, &["set", "--class", class]),
            Event::TermsSet { which, option, value } => {
                stage.say(which, &["set", option, &value.to_string()]);
            }
            Event::DaemonContinues { home } => stage.homes[home].go_on(),
            daemon => daemon.play_daemon(stage),
        }
        stage.fill();
        std::thread::sleep(Duration::from_micros(chance.below(40_000)));
    }

    fn play_daemon(self, stage: &mut Stage) {
        stage.settle();
        match self {
            Event::DaemonKilled { home } => stage.homes[home].kill(),
            Event::DaemonEnded { home } => stage.homes[home].end(),
            Event::DaemonStarted { home } => stage.homes[home].start(),
            Event::DaemonStopped { home } => stage.homes[home].signal(Signal::STOP),
            _ => {}
        }
    }
}

fn draw_order(chance: &mut Chance) -> Order {
    let spared = attacker::spared();
    let open: Vec<Landmark> = Landmark::ALL.into_iter().filter(|one| !spared.contains(one)).collect();
    let at = chance.one(&open);
    match chance.below(10) {
        0..3 => Order::Scatter { stores: 1 + chance.below(60) },
        3..7 => Order::Aim { at, stores: 1 + chance.below(30) },
        7..9 => Order::Hammer { at, stores: 1 + chance.below(2_000) },
        _ => Order::StopWords { stores: 1 + chance.below(100) },
    }
}
