//! What has happened so far, to be watched, and to find out why something is wrong.

use std::time::{Duration, Instant};

use super::attacker;
use super::events::{Event, KINDS};
use super::stage::Stage;
use crate::PROMISED;

/// How often a line is said.
const EVERY: Duration = Duration::from_secs(10);

pub struct Log {
    what: &'static str,
    wanted: u64,
    seed: u64,
    begin: Instant,
    said: Instant,
    events: u64,
    kinds: [u64; KINDS.len()],
    stage: String,
    round: Vec<Event>,
    rounds: u64,
    /// Of stages that are over.
    done: u64,
    refused: u64,
    stores: u64,
    /// How long it took until a tenant went on that was there before, or that was new.
    went_on: Vec<Duration>,
    began: Vec<Duration>,
    seated: Duration,
}

impl Log {
    pub fn begin(what: &'static str, wanted: u64, seed: u64) -> Log {
        let spared: Vec<String> = attacker::spared().into_iter().map(attacker::name).collect();
        println!("{what}: {wanted} events with seed {seed}; words that are spared: {}", spared.join(", "));
        let now = Instant::now();
        Log {
            what,
            wanted,
            seed,
            begin: now,
            said: now,
            events: 0,
            kinds: [0; KINDS.len()],
            stage: String::new(),
            round: Vec::new(),
            rounds: 0,
            done: 0,
            refused: 0,
            stores: 0,
            went_on: Vec::new(),
            began: Vec::new(),
            seated: Duration::ZERO,
        }
    }

    pub fn events(&self) -> u64 {
        self.events
    }

    pub fn next_stage(&mut self, name: &str) {
        name.clone_into(&mut self.stage);
    }

    pub fn next_round(&mut self) {
        self.round.clear();
        self.rounds += 1;
    }

    pub fn note(&mut self, event: Event) {
        self.events += 1;
        self.kinds[event.kind()] += 1;
        self.round.push(event);
    }

    /// A tenant has gone on.
    pub fn went_on(&mut self, after: Duration, new: bool) {
        if new { &mut self.began } else { &mut self.went_on }.push(after);
    }

    pub fn end_round(&mut self, stage: &Stage, seated: Duration) {
        self.seated = self.seated.max(seated);
        if self.said.elapsed() > EVERY {
            self.said = Instant::now();
            println!(
                "{}: {} of {} events, {} rounds, {} s ({}): {} iterations checked, none wrong; worst time to go on {:.2} s",
                self.what,
                self.events,
                self.wanted,
                self.rounds,
                self.begin.elapsed().as_secs(),
                self.stage,
                self.done + stage.sum().done,
                worst(&self.went_on).as_secs_f64()
            );
        }
    }

    pub fn end_stage(&mut self, stage: &Stage) {
        let sum = stage.sum();
        self.done += sum.done;
        self.refused += sum.refused;
        self.stores += stage.stores();
    }

    /// Something takes long. Why, only somebody wants to know who asks for it.
    pub fn warn(&self, stage: &Stage, words: &str) {
        println!("{}: {words} (round {}, {})", self.what, self.rounds, self.stage);
        if std::env::var_os("EBB_CAMPAIGN_VERBOSE").is_some() {
            println!("{}", self.tell(stage));
        }
    }

    /// Something is wrong.
    pub fn fail(&self, stage: &Stage, words: &str) -> ! {
        panic!(
            "{words}\n{}\n\
             the same events again: EBB_CAMPAIGN={} EBB_CAMPAIGN_SEED={} cargo test -p cli --test campaign\n",
            self.tell(stage),
            self.wanted,
            self.seed
        );
    }

    fn tell(&self, stage: &Stage) -> String {
        let events: Vec<String> = self.round.iter().map(Event::to_string).collect();
        format!(
            "\nstage: {}\nround {}, in which this happened before the calm:\n  {}\n\n{}",
            self.stage,
            self.rounds,
            events.join("\n  "),
            stage.picture()
        )
    }

    pub fn close(&self) {
        let slow = self.went_on.iter().filter(|time| **time > PROMISED).count();
        let row = |name: &str, value: String| println!("| {name:34} | {value:>12} |");
        println!("\n| {:34} | {:>12} |", self.what, "");
        println!("|{:-<36}|{:->13}:|", "", "");
        row("seed", self.seed.to_string());
        row("time, s", self.begin.elapsed().as_secs().to_string());
        row("events", self.events.to_string());
        for (kind, count) in KINDS.iter().zip(self.kinds) {
            row(&format!("  {kind}"), count.to_string());
        }
        row("rounds", self.rounds.to_string());
        row("stores of attackers", self.stores.to_string());
        row("iterations checked", self.done.to_string());
        row("  wrong", "0".to_owned());
        row("allocations within limit, refused", self.refused.to_string());
        row("tenants that had to go on", self.went_on.len().to_string());
        let seconds = |time: Duration| format!("{:.3}", time.as_secs_f64());
        row("  median time to go on, s", seconds(quantile(&self.went_on, 50)));
        row("  99 of 100, s", seconds(quantile(&self.went_on, 99)));
        row("  worst, s", seconds(worst(&self.went_on)));
        row(&format!("  longer than {} s", PROMISED.as_secs()), slow.to_string());
        row("worst time to begin, s", seconds(worst(&self.began)));
        row("worst time to be seated, s", seconds(self.seated));
    }
}

fn worst(times: &[Duration]) -> Duration {
    times.iter().copied().max().unwrap_or_default()
}

fn quantile(times: &[Duration], percent: usize) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or_default()
}
