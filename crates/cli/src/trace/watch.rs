//! Reading event logs for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use daemon::traces::Follower;
use indicatif::{ProgressBar, ProgressStyle};
use model::Nanos;
use trace::Source;

use super::board_clock;
use super::logs::Logs;

/// How often logs are read. A log remembers at least 8192 launches: more than two million a second would be too many.
const POLL: Duration = Duration::from_millis(2);
/// How often is looked for new processes, and how often a daemon is asked.
const LOOK: Nanos = Nanos::from_millis(100);
const ASK: Nanos = Nanos::from_millis(2_000);

/// Whether somebody wants it to end.
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn catch() -> Result<Stop> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot catch signals")?;
        }
        Ok(Stop(stop))
    }

    fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub struct Watch {
    logs: Logs,
    followers: Vec<Follower>,
}

impl Watch {
    /// Takes what is there.
    pub fn once() -> Result<Watch> {
        let mut watch = Watch::default();
        watch.look(true)?;
        // What was being written at the first look is there at the second.
        for _ in 0..2 {
            watch.poll();
        }
        Ok(watch)
    }

    /// Reads until then, or until somebody has had enough.
    pub fn until(end: Nanos, stop: &Stop) -> Result<Watch> {
        let mut watch = Watch::default();
        let begin = board_clock();
        let bar = progress(end.since(begin));
        let (mut looked, mut asked) = (Nanos::ZERO, Nanos::ZERO);
        loop {
            let now = board_clock();
            if now.since(looked) >= LOOK {
                let ask = now.since(asked) >= ASK;
                watch.look(ask)?;
                asked = if ask { now } else { asked };
                looked = now;
                let (events, _) = watch.counts();
                bar.set_message(format!("{} processes, {events} events", watch.followers.len()));
            }
            watch.poll();
            bar.set_position(now.since(begin).0 / 1_000_000);
            if now >= end || stop.came() {
                break;
            }
            std::thread::sleep(POLL);
        }
        watch.poll();
        bar.finish_and_clear();
        Ok(watch)
    }

    fn look(&mut self, ask: bool) -> Result<()> {
        self.followers.extend(self.logs.new_ones()?);
        if ask {
            self.followers.extend(self.logs.seated());
        }
        Ok(())
    }

    fn poll(&mut self) {
        self.followers.iter_mut().for_each(Follower::poll);
    }

    /// How many events were read and how many lost.
    pub fn counts(&mut self) -> (usize, u64) {
        let counts = self.followers.iter().map(Follower::counts);
        counts.fold((0, 0), |sum, (read, lost)| (sum.0 + read, sum.1 + lost))
    }

    /// Those who have done something since then.
    pub fn finish(self, since: Nanos) -> Vec<Source> {
        let is_meant = |source: &Source| source.events.iter().any(|event| event.time >= since);
        self.followers.into_iter().map(Follower::finish).filter(is_meant).collect()
    }
}

fn progress(span: Nanos) -> ProgressBar {
    let bar = ProgressBar::new(span.0 / 1_000_000);
    let style = ProgressStyle::with_template("tracing [{bar:30}] {elapsed}, {msg}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}
