//! Getting the workers that a run needs, and letting go of those that no run needs any more.
//!
//! Workers are started together for as many of a scenario's coming runs as there is room for, never while something is
//! measured. One that cannot be started gets a second chance with the device to itself, because what it lacked may be
//! memory; after that, every run that needs it fails at once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use results::record::{self, Calibration};
use scenario::{Device, Worker};

use super::plan::Planned;
use super::post::{Post, posts, thousandths};
use super::{Campaign, Event, ground};
use crate::Error;
use crate::crew::{Order as Word, Place as _, Reply, Start};
use crate::modes::Ground;

/// How often the start of a worker is tried.
const TRIES: u32 = 2;
/// For how long a workload runs to learn how often it can: long enough for dozens of its requests.
const CALIBRATION: Duration = Duration::from_secs(1);
const CALIBRATION_SOFT: Duration = Duration::from_secs(2);

/// A worker that could not be started.
pub(super) struct FailedStart {
    /// How often that was tried.
    tries: u32,
    /// Why it failed last.
    reason: String,
    /// Whether the worker itself is to blame, and not what it was to stand on.
    own: bool,
}

impl Campaign<'_> {
    pub(super) fn posts(&self, run: &Planned) -> Vec<(Post, Vec<usize>)> {
        posts(&self.order.entries[run.entry], run, ground(run))
    }

    pub(super) fn is_python(&self, post: &Post) -> bool {
        let synthetic = |workload: &String| self.workloads[workload].worker() == Worker::Synthetic;
        self.order.site.device == Device::Gpu && !post.seats.iter().all(|seat| synthetic(&seat.workload))
    }

    /// The workers of a run that do not live, with those that must first tell how often its tenants can answer.
    pub(super) fn missing(&self, index: usize) -> Vec<Post> {
        let mut needed = self.calibrators(self.runs[index].entry);
        needed.extend(self.posts(&self.runs[index]).into_iter().map(|(post, _)| post));
        needed.retain(|post| !self.roster.has(post));
        needed.sort();
        needed.dedup();
        needed
    }

    /// Sees to it that all workers of a run live, and that the rates of its requests are known.
    pub(super) fn staff(&mut self, index: usize) -> Result<(), Error> {
        let mut ahead = true;
        loop {
            let missing = self.missing(index);
            for post in &missing {
                match self.failed.get(post) {
                    Some(FailedStart { tries: TRIES.., reason, own: true }) => {
                        return Err(self.fault(index, post, reason.clone()));
                    }
                    Some(FailedStart { tries: TRIES.., reason, own: false }) => {
                        return Err(Error::Run { tenant: None, reason: reason.clone() });
                    }
                    _ => {}
                }
            }
            if missing.is_empty() {
                break;
            }
            let wanted = if ahead { self.wanted(index) } else { missing };
            if !ahead {
                self.clear_the_way(index);
            }
            self.hire(index, wanted)?;
            ahead = false;
        }
        self.calibrate(self.runs[index].entry)
    }

    /// The workers that a run and those after it in its scenario lack, as many as may live together.
    fn wanted(&self, index: usize) -> Vec<Post> {
        let entry = self.runs[index].entry;
        let (mut wanted, mut living) = (self.missing(index), BTreeSet::new());
        for run in self.runs[index..].iter().take_while(|run| run.entry == entry) {
            let posts: Vec<Post> = self.posts(run).into_iter().map(|(post, _)| post).collect();
            let new: Vec<Post> = posts.into_iter().filter(|post| !wanted.contains(post)).collect();
            let count =
                wanted.len() + living.len() + new.iter().filter(|post| !living.contains(*post)).count();
            if count > self.order.crew {
                break;
            }
            for post in new {
                if self.roster.has(&post) {
                    living.insert(post);
                } else if !self.failed.contains_key(&post) {
                    wanted.push(post);
                }
            }
        }
        wanted
    }

    /// Starts workers, on grounds that are laid for them, with room made for them.
    fn hire(&mut self, index: usize, wanted: Vec<Post>) -> Result<(), Error> {
        let room = self.order.crew.saturating_sub(wanted.len());
        let uses = self.next_uses(index);
        self.roster.make_room(room, |post| uses.iter().position(|posts| posts.contains(post)));
        let mut starts = Vec::new();
        for post in wanted {
            if let Err(absence) = self.grounds.lay(post.ground) {
                self.note_failure(post, absence.0, false);
                continue;
            }
            let start = self.programs.start(&post, &self.workloads, &self.grounds)?;
            starts.push((post, start));
        }
        (self.watch)(&Event::Starting { workers: starts.len() });
        let posts: Vec<Post> = starts.iter().map(|(post, _)| post.clone()).collect();
        let begin = Instant::now();
        let patience = self.patience_to_start();
        let mut failed = Vec::new();
        for wave in self.waves(starts) {
            failed.extend(self.roster.start(wave, patience)?);
        }
        for python in [false, true] {
            if posts.iter().any(|post| self.is_python(post) == python) {
                self.estimates.saw_start(python, begin.elapsed());
            }
        }
        // Who was given less time than is usual, and took all of it, may be all right.
        if !failed.is_empty() && patience < self.order.patience.start && begin.elapsed() >= patience {
            return Err(Error::TimeUp);
        }
        for (post, error) in failed {
            let reason = match error {
                Error::Worker { reason, .. } => reason,
                other => other.to_string(),
            };
            self.note_failure(post, reason, true);
        }
        posts.iter().for_each(|post| self.learn(post));
        Ok(())
    }

    /// Who is started together: all on grounds of ours and the driver's own, and then each rival's workers by
    /// themselves, because a rival lets its tenants wait for each other, and whoever builds keeps others from measuring.
    fn waves(&self, starts: Vec<(Post, Start)>) -> Vec<Vec<(Post, Start)>> {
        let (alone, together): (Vec<_>, Vec<_>) =
            starts.into_iter().partition(|(post, _)| self.grounds.starts_alone(post.ground));
        let mut waves: BTreeMap<Option<Ground>, Vec<_>> = BTreeMap::new();
        for (post, start) in together {
            let rival = matches!(post.ground, Ground::Rival(_)).then_some(post.ground);
            waves.entry(rival).or_default().push((post, start));
        }
        waves.into_values().chain(alone.into_iter().map(|start| vec![start])).collect()
    }

    fn note_failure(&mut self, post: Post, reason: String, own: bool) {
        let tries = self.failed.get(&post).map_or(0, |failed| failed.tries) + 1;
        self.failed.insert(post, FailedStart { tries, reason, own });
    }

    /// What a new worker said of itself.
    fn learn(&mut self, post: &Post) {
        let Some(ready) = self.roster.ready(post) else { return };
        self.book.learn(ready);
        for (seat, tenant) in post.seats.iter().zip(&ready.tenants) {
            let least = self.gpu_us.entry((seat.workload.clone(), post.slowdown)).or_insert(tenant.gpu_us);
            *least = least.min(tenant.gpu_us);
        }
    }

    /// Before a second try: nobody lives that this run does not need, and nothing is left of a service that the first try
    /// may have harmed.
    fn clear_the_way(&mut self, index: usize) {
        let needed: Vec<Post> = self.posts(&self.runs[index]).into_iter().map(|(post, _)| post).collect();
        self.roster.end_where(|post| !needed.contains(post));
        self.mend(ground(&self.runs[index]));
    }

    /// Clears what a lost tenant may have harmed, to be laid afresh.
    pub(super) fn mend(&mut self, ground: Ground) {
        let harmed = self.grounds.harmed(ground);
        self.roster.end_where(|post| harmed.contains(&post.ground));
        self.grounds.clear(&harmed);
    }

    /// Ends the workers that no run from this one on needs.
    pub(super) fn let_go(&mut self, from: usize) {
        let uses = self.next_uses(from);
        self.roster.end_where(|post| !uses.iter().any(|posts| posts.contains(post)));
    }

    /// The workers of each run from this one on.
    fn next_uses(&self, from: usize) -> Vec<Vec<Post>> {
        let mut uses: Vec<Vec<Post>> = Vec::new();
        for run in &self.runs[from..] {
            let mut posts: Vec<Post> = self.posts(run).into_iter().map(|(post, _)| post).collect();
            posts.extend(self.calibrators(run.entry));
            uses.push(posts);
        }
        uses
    }

    /// A run that failed because of one of its workers.
    pub(super) fn fault(&self, index: usize, post: &Post, reason: String) -> Error {
        let run = &self.runs[index];
        let tenants = &self.order.entries[run.entry].scenario.tenants;
        let hosted = self.posts(run).into_iter().find(|(other, _)| other == post);
        let tenant = match hosted {
            Some((_, numbers)) if numbers.len() == 1 => Some(tenants[numbers[0]].name.clone()),
            Some(_) => None,
            // A worker that is there to be calibrated.
            None => tenants
                .iter()
                .find(|tenant| tenant.workload.id() == post.seats[0].workload)
                .map(|tenant| tenant.name.clone()),
        };
        Error::Run { tenant, reason }
    }

    /// Workers that must tell how many requests a tenant of this scenario can answer.
    fn calibrators(&self, entry: usize) -> Vec<Post> {
        let scenario = &self.order.entries[entry].scenario;
        let unknown = scenario.tenants.iter().filter(|tenant| {
            let name = calibrated_name(&tenant.workload.id(), scenario.slowdown);
            tenant.arrival.needs_capacity() && self.book.calibration(&name).is_none()
        });
        unknown
            .map(|tenant| Post::plain(tenant.workload.id(), tenant.is_latency(), scenario.slowdown))
            .collect()
    }

    fn calibrate(&mut self, entry: usize) -> Result<(), Error> {
        let soft = self.order.site.device == Device::Soft;
        let seconds = if soft { CALIBRATION_SOFT } else { CALIBRATION };
        let slowdown = self.order.entries[entry].scenario.slowdown;
        for post in self.calibrators(entry) {
            let workload = post.seats[0].workload.clone();
            self.one(&post, Word::Prepare { tenant: 0 }, Duration::ZERO)?;
            let order = Word::Calibrate { tenant: 0, seconds: seconds.as_secs_f64() };
            let Reply::Calibrated { per_s, .. } = self.one(&post, order, seconds)? else {
                return Err(run_error(&post, "did not say how often it can answer"));
            };
            if !(per_s.is_finite() && per_s > 0.0) {
                return Err(run_error(&post, "answered nothing while it was calibrated"));
            }
            (self.watch)(&Event::Calibrated { workload: &workload, per_s });
            let gpu_us = self.gpu_us.get(&(workload.clone(), post.slowdown)).copied().unwrap_or(0.0);
            self.book.calibrate(Calibration {
                workload: calibrated_name(&workload, slowdown),
                per_s,
                gpu_us,
            })?;
        }
        Ok(())
    }

    /// One order to one worker.
    fn one(&mut self, post: &Post, order: Word<'_>, takes: Duration) -> Result<Reply, Error> {
        let replies =
            self.roster.ask(&[(post.clone(), vec![order])], takes + self.order.patience.grace * 6)?;
        if let Some((_, error)) = replies.failed.into_iter().next() {
            return Err(run_error(post, &error.to_string()));
        }
        let reply = replies.heard.into_iter().next().and_then(|(_, mut replies)| replies.pop());
        reply.ok_or_else(|| run_error(post, "is not there"))
    }

    /// Requests per second of a tenant; none in a closed loop.
    pub(super) fn rate(&self, entry: usize, tenant: usize) -> Option<f64> {
        let scenario = &self.order.entries[entry].scenario;
        let tenant = &scenario.tenants[tenant];
        let name = calibrated_name(&tenant.workload.id(), scenario.slowdown);
        tenant.arrival.rate(self.book.calibration(&name).map_or(0.0, |calibration| calibration.per_s))
    }

    /// The scenario as it is run, with the rates that its loads mean here.
    pub(super) fn write_down(&mut self, index: usize) -> Result<(), Error> {
        let entry = &self.order.entries[index];
        let scenario = &entry.scenario;
        let micros = |time: model::Nanos| time.0 / 1000;
        let tenants = scenario.tenants.iter().enumerate().map(|(number, tenant)| record::Tenant {
            name: tenant.name.clone(),
            class: tenant.class,
            workload: tenant.workload.id(),
            arrival: tenant.arrival.to_string(),
            rate: self.rate(index, number),
            slo: tenant.slo.as_ref().map_or_else(record::Slo::default, |slo| record::Slo {
                latency_us: slo.latency.map(micros),
                alone_p99: slo.alone_p99,
                ttft_us: slo.ttft.map(micros),
                tpot_us: slo.tpot.map(micros),
                alone_ttft_p99: slo.alone_ttft_p99,
                alone_tpot_p99: slo.alone_tpot_p99,
            }),
        });
        let mut modes: Vec<String> = entry.modes.iter().map(ToString::to_string).collect();
        modes.sort();
        let record = record::Scenario {
            suite: entry.suite.clone(),
            name: scenario.name.clone(),
            digest: entry.digest(),
            title: scenario.title.clone(),
            source: scenario.source.clone(),
            about: scenario.about.clone(),
            duration_us: micros(scenario.duration),
            warmup_us: micros(scenario.warmup),
            repetitions: scenario.repetitions,
            seed: scenario.seed,
            slowdown: scenario.slowdown,
            tenants: tenants.collect(),
            modes,
        };
        self.book.scenario(record)
    }
}

fn run_error(post: &Post, reason: &str) -> Error {
    Error::Run { tenant: None, reason: format!("{}: {reason}", post.name()) }
}

/// The name of a workload among calibrations: slowed down, it is another.
fn calibrated_name(workload: &str, slowdown: f64) -> String {
    if thousandths(slowdown) == 1000 { workload.to_owned() } else { format!("{workload}@x{slowdown}") }
}
