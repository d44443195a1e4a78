//! Stopping and resuming.
//!
//! The *steward* does both, in one thread: that of the keeper, or of a storm. It only ever looks and goes on; nothing in
//! here waits for the GPU but for the few microseconds that the control stream takes.
//!
//! To stop, the stop word is raised, and gates are put behind everything that was launched, to see when the last block has
//! left. To resume, the word is lowered; then every lane that was cut stands, sooner or later, at a gate, because behind a
//! cut launch all others of its stream leave at once. What lies before that gate is made again on the helper stream
//! (`job`), and the gate is opened when it ran whole. Lanes are resumed one by one as they arrive: one may well be waiting
//! for another. Whoever stops again meanwhile stops the helper's launches too; the next resume goes on from there.
//!
//! To confine is to stop, and to go on elsewhere: the word stays raised, what it turns away is made again on the siding, and gates
//! open behind that as they do behind the helper's launches. When everything may run again, what is on the siding is called back; the
//! rest of it is made by the helper, on all SMs.

use cuda_abi::CUdevice;
use model::{Nanos, Rung};
use telemetry::{Counter, What};

use super::certificate::{self, Promise, Strikes};
use super::control::{Aways, Control, LANES, Own, Runner};
use super::driver;
use super::extent;
use super::job::{Job, Part, Plan};
use super::lane::Lane;
use super::record::Launch;
use super::site::{self, SITES, Site};
use super::watchdog::{self, Sightings};
use crate::twins::{self, sample};
use crate::{tenancy, watch};

/// How long to sleep when there is nothing to do.
const IDLE: Nanos = Nanos::from_millis(250);
/// How often to look at what should happen any moment, what may take a while, and what takes long already.
const SOON: Nanos = Nanos::from_micros(20);
const LATER: Nanos = Nanos::from_micros(200);
const MUCH_LATER: Nanos = Nanos::from_millis(2);
/// A lane that stands at its gate for so long, though nobody stops it, was cut.
const STUCK: Nanos = Nanos::from_millis(1);

/// What is to become of this process's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Go,
    Stop,
    /// Stop, and go on where there is a siding.
    Confine,
}

/// What was done, for whoever keeps the tally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub stops: u64,
    pub cut: u64,
    pub relaunched: u64,
    /// Of those, the ones on the siding.
    pub confined: u64,
    pub rounds: u64,
    pub watchdog: u64,
    /// Times that work was let go on.
    pub resumes: u64,
    /// Stops that took longer than promised.
    pub broken: u64,
    /// Of those that were cut, the ones of which some blocks had run, as far as somebody looks: it costs a look at the marks.
    pub mid_grid: u64,
    pub looks: bool,
}

impl Counts {
    /// A launch is made again for the first time. Behind the first of its lane, all were turned away whole.
    pub fn count_cut(&mut self, control: &Control, launch: &Launch, first: bool) {
        self.cut += 1;
        twins::cut(launch.frame);
        if self.looks {
            let within = first && extent::is_cut_within(control, launch) == Some(true);
            self.mid_grid += u64::from(within);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is cut, and nothing can be.
    Running,
    Stopping {
        since: Nanos,
    },
    Stopped,
    /// The stop word is lowered; what was launched before that may be cut.
    Resuming {
        since: Nanos,
    },
}

/// What the steward knows of a site.
struct Stage {
    generation: u32,
    phase: Phase,
    /// The gates behind what was launched when the phase began.
    targets: [u32; LANES],
    /// What was cut, made again; and what blocks on the GPU wait for.
    job: Option<Job>,
    rescue: Option<Job>,
    /// What goes on beside others, and whether it was called back.
    siding: Option<Job>,
    recalled: bool,
    /// What was promised when the stop began.
    promise: Option<Promise>,
    /// Since when nothing has come anywhere, and how far things were then (`progress`). It outlasts stops and resumes: who stops
    /// often must not keep the watchdog from its work.
    still: Option<(Nanos, u32)>,
    /// When it was last asked whether something that runs was cut.
    asked: Nanos,
    sightings: Sightings,
}

impl Stage {
    /// Whether nothing is made again.
    fn has_no_job(&self) -> bool {
        self.job.is_none() && self.rescue.is_none() && self.siding.is_none()
    }

    /// The jobs are those of a context that is gone.
    fn forget_jobs(&mut self) {
        (self.job, self.rescue, self.siding) = (None, None, None);
    }

    /// Calls back what runs on the siding, once.
    fn recall(&mut self, site: &Site) {
        if self.siding.is_some() && !self.recalled {
            self.recalled = site.control.recall().is_some();
        }
    }

    /// Since when nothing has come anywhere, by what is known of progress now.
    fn still_since(&mut self, progress: u32, now: Nanos) -> Nanos {
        let still = self.still.filter(|(_, then)| *then == progress).unwrap_or((now, progress));
        self.still = Some(still);
        still.0
    }
}

pub struct Steward {
    stages: [Stage; SITES],
    pub counts: Counts,
    /// What of them is in the ledger.
    entered: Counts,
    strikes: Strikes,
    /// How long the last stops took, each until the last block had left; taken away by whoever keeps the tally.
    drained: Option<Nanos>,
}

impl Steward {
    pub fn new() -> Steward {
        const STAGE: Stage = Stage {
            generation: 0,
            phase: Phase::Running,
            targets: [0; LANES],
            job: None,
            rescue: None,
            siding: None,
            recalled: false,
            promise: None,
            still: None,
            asked: Nanos::ZERO,
            sightings: Sightings::new(),
        };
        let (counts, entered) = (Counts::default(), Counts::default());
        Steward { stages: [STAGE; SITES], counts, entered, strikes: Strikes::new(), drained: None }
    }

    /// How long the last stop took, told once.
    pub fn drained(&mut self) -> Option<Nanos> {
        self.drained.take()
    }

    /// Whether everything runs.
    pub fn is_at_rest(&self) -> bool {
        self.stages.iter().all(|stage| stage.phase == Phase::Running && stage.has_no_job())
    }

    /// Whether nothing runs, or soon will not. Who resumes has work on the GPU: what was not cut ran all the time, and until the last of it
    /// has been seen to be whole, many requests may pass.
    pub fn is_stopped(&self) -> bool {
        let stopped = |stage: &Stage| matches!(stage.phase, Phase::Stopping { .. } | Phase::Stopped);
        self.stages.iter().any(|stage| stopped(stage) && stage.siding.is_none())
    }

    /// Whether something is on its way off the GPU, and has not left it yet.
    pub fn is_stopping(&self) -> bool {
        self.stages.iter().any(|stage| matches!(stage.phase, Phase::Stopping { .. }))
    }

    /// The stop word was raised by somebody else and its reason is gone: whatever phase this is, something may be cut. Where there has never
    /// been a site nobody would find out that nothing is.
    pub fn doubt(&mut self) {
        let runs = |stage: &&mut Stage| stage.generation != 0 && stage.phase == Phase::Running;
        for stage in self.stages.iter_mut().filter(runs) {
            stage.phase = Phase::Stopped;
        }
    }

    /// One look at all sites of a device (`None`: of all devices); how long to sleep. `again` is asked, once a stop word
    /// is lowered, whether there is a reason to raise it again.
    pub fn tend(
        &mut self,
        device: Option<CUdevice>,
        wish: Wish,
        again: &mut dyn FnMut() -> bool,
        now: Nanos,
    ) -> Nanos {
        let mut rest = IDLE;
        for (place, site) in site::places().iter().enumerate() {
            if device.is_some_and(|device| device != site.device()) {
                continue;
            }
            let Some(_held) = site.hold() else {
                let stage = &mut self.stages[place];
                stage.phase = Phase::Running;
                stage.forget_jobs();
                continue;
            };
            let look = || Some(self.tend_site(place, site, wish, again, now));
            // A context that cannot be entered has failed; there is nothing left to resume.
            rest = rest.min(driver::within(site.context(), look).unwrap_or(IDLE));
        }
        sample::stopped(!self.is_at_rest());
        self.enter_counts();
        rest
    }

    fn enter_counts(&mut self) {
        let (now, before) = (self.counts, self.entered);
        if now == before {
            return;
        }
        self.entered = now;
        let whole = |counts: Counts| counts.cut - counts.mid_grid;
        watch::quietly("guard", |watch| {
            let add = |counter, amount| watch.ledger.add(counter, amount);
            add(Counter::GuardStops, now.stops - before.stops);
            add(Counter::GuardMidGrid, now.mid_grid - before.mid_grid);
            add(Counter::GuardWhole, whole(now) - whole(before));
            add(Counter::GuardRelaunched, now.relaunched - before.relaunched);
            add(Counter::GuardConfined, now.confined - before.confined);
            add(Counter::GuardRounds, now.rounds - before.rounds);
            add(Counter::GuardWatchdog, now.watchdog - before.watchdog);
            add(Counter::GuardBroken, now.broken - before.broken);
        });
    }

    fn tend_site(
        &mut self,
        place: usize,
        site: &'static Site,
        wish: Wish,
        again: &mut dyn FnMut() -> bool,
        now: Nanos,
    ) -> Nanos {
        self.know(place, site);
        let rest = self.tend_jobs(place, site, now);
        let next = match (self.stages[place].phase, wish) {
            (Phase::Running, Wish::Go) => self.mind(place, site, again, now),
            (Phase::Running | Phase::Resuming { .. }, Wish::Stop | Wish::Confine) => {
                self.begin_stop(place, site, now)
            }
            (Phase::Stopping { since }, Wish::Stop | Wish::Confine) => self.drain(place, site, since, now),
            (Phase::Stopped, Wish::Stop) => self.stay(place, site, now),
            (Phase::Stopped, Wish::Confine) => self.go_aside(place, site, now),
            (Phase::Stopping { .. } | Phase::Stopped, Wish::Go) => self.begin_resume(place, site, again, now),
            (Phase::Resuming { since }, Wish::Go) => self.resume(place, site, since, now),
        };
        // What the driver refused is tried again.
        rest.min(next.unwrap_or(MUCH_LATER))
    }

    /// A site that is another than before begins anew.
    fn know(&mut self, place: usize, site: &Site) {
        let stage = &mut self.stages[place];
        if stage.generation != site.generation() {
            stage.generation = site.generation();
            stage.forget_jobs();
            // Its launches are counted from the beginning.
            stage.sightings = Sightings::new();
            // Somebody may have raised the word since it was made.
            stage.phase = Phase::Stopped;
        }
    }

    /// Everything runs, as far as we know. But a stop word is raised by a stream of somebody else's, and what a stream does
    /// may come late: when the work it was raised for is done, and we have lowered the word. Then lanes are cut and nobody
    /// is told.
    fn mind(
        &mut self,
        place: usize,
        site: &'static Site,
        again: &mut dyn FnMut() -> bool,
        now: Nanos,
    ) -> Option<Nanos> {
        let stage = &mut self.stages[place];
        // What has no gate behind it may be cut as well, and a program that waits for it need not ask in a way that puts one.
        let under_way = site.lanes().any(|lane| lane.gates() != lane.passed());
        if !under_way && !site.lanes().any(Lane::is_ungated) {
            stage.still = None;
            return Some(IDLE);
        }
        let next_look = if under_way { MUCH_LATER } else { IDLE };
        if site.lanes().any(|lane| lane.arrived() != lane.passed()) {
            let still = stage.still_since(progress(site), now);
            return if now.since(still) < STUCK {
                Some(LATER)
            } else {
                self.begin_resume(place, site, again, now)
            };
        }
        // What runs may take long, or wait for blocks that were turned away.
        stage.still = None;
        if !watchdog::is_due(stage.asked, now) {
            return Some(next_look);
        }
        stage.asked = now;
        let aways = site.control.aways()?;
        match site.lanes().any(|lane| is_cut(&aways, &lane)) {
            true => self.begin_resume(place, site, again, now),
            false => Some(next_look),
        }
    }

    fn begin_stop(&mut self, place: usize, site: &'static Site, now: Nanos) -> Option<Nanos> {
        // Even if it takes longer than we wait: it may be raised later.
        self.stages[place].phase = Phase::Stopped;
        tenancy::tell(site.device(), What::Stopping { rung: Rung::Guard });
        site.set_stopped(true);
        site.control.set_stop(1)?;
        self.put_targets(place, site);
        self.stages[place].promise = certificate::slowest(site);
        self.stages[place].phase = Phase::Stopping { since: now };
        self.counts.stops += 1;
        Some(SOON)
    }

    /// Puts gates behind everything that was launched so far.
    fn put_targets(&mut self, place: usize, site: &'static Site) {
        let stage = &mut self.stages[place];
        stage.targets = [0; LANES];
        for lane in site.lanes() {
            lane.gate();
            stage.targets[lane.number()] = lane.gates();
        }
    }

    /// Looks whether the last block has left.
    fn drain(&mut self, place: usize, site: &'static Site, since: Nanos, now: Nanos) -> Option<Nanos> {
        let targets = self.stages[place].targets;
        if self.stages[place].has_no_job() && site.lanes().all(|lane| is_still(lane, targets[lane.number()]))
        {
            self.stages[place].phase = Phase::Stopped;
            self.stages[place].still = None;
            self.drained = Some(now.since(since));
            tenancy::tell(site.device(), What::Stopped { rung: Rung::Guard, took: now.since(since) });
            if let Some(promise) = self.stages[place].promise.take() {
                self.counts.broken += u64::from(self.strikes.judge(&promise, now.since(since)));
            }
            return Some(IDLE);
        }
        self.watch_over(place, site, now)?;
        Some(pace(now.since(since)))
    }

    /// Everything stands, and stays so.
    fn stay(&mut self, place: usize, site: &'static Site, now: Nanos) -> Option<Nanos> {
        let stage = &mut self.stages[place];
        stage.recall(site);
        let Some(job) = &stage.siding else { return Some(IDLE) };
        let rest = pace(now.since(job.began));
        self.watch_over(place, site, now)?;
        Some(rest)
    }

    /// Has what was turned away made again on the siding, as it arrives.
    fn go_aside(&mut self, place: usize, site: &'static Site, now: Nanos) -> Option<Nanos> {
        if !site.siding.is_there() {
            return self.stay(place, site, now);
        }
        // What comes while it is stopped has no gate behind it yet.
        self.put_targets(place, site);
        let stage = &mut self.stages[place];
        if let Some(job) = &stage.siding {
            if watchdog::is_due(job.began, now) {
                // Its blocks may be waiting for others that find no room on so few SMs.
                stage.recall(site);
            }
            self.watch_over(place, site, now)?;
            return Some(SOON);
        }
        let targets = stage.targets;
        if stage.job.is_some() || !site.lanes().any(|lane| stands(&lane, &targets)) {
            return Some(LATER);
        }
        let plan = self.plan_again(place, site, &site.control.aways()?);
        if plan.is_empty() {
            return Some(LATER);
        }
        let job = plan.begin(site, Runner::Siding, &mut self.counts, now)?;
        (self.stages[place].siding, self.stages[place].recalled) = (Some(job), false);
        Some(SOON)
    }

    fn begin_resume(
        &mut self,
        place: usize,
        site: &'static Site,
        again: &mut dyn FnMut() -> bool,
        now: Nanos,
    ) -> Option<Nanos> {
        let aways = site.control.lower()?;
        if again() {
            // Whoever has work said so before he raised the word, which we may have lowered under his hands.
            site.control.set_stop(1)?;
            return Some(SOON);
        }
        site.set_stopped(false);
        self.stages[place].recall(site);
        self.counts.resumes += 1;
        tenancy::tell(site.device(), What::Resumed { rung: Rung::Guard });
        self.put_targets(place, site);
        self.stages[place].phase = Phase::Resuming { since: now };
        self.make_again(place, site, &aways, now)?;
        Some(SOON)
    }

    /// Has what was cut in lanes that stand at a gate made again, as far as the away words tell of it.
    fn make_again(&mut self, place: usize, site: &'static Site, aways: &Aways<'_>, now: Nanos) -> Option<()> {
        if self.stages[place].job.is_some() {
            return Some(());
        }
        let plan = self.plan_again(place, site, aways);
        if !plan.is_empty() {
            self.stages[place].job = Some(plan.begin(site, Runner::Helper, &mut self.counts, now)?);
        }
        Some(())
    }

    /// What was cut in lanes that stand at a gate, and is not being made again elsewhere.
    fn plan_again(&self, place: usize, site: &'static Site, aways: &Aways<'_>) -> Plan {
        let stage = &self.stages[place];
        let elsewhere = |lane: &Lane| {
            [&stage.rescue, &stage.siding].into_iter().flatten().any(|job| job.has(lane.number()))
        };
        let mut plan = Plan::new();
        site.lanes()
            .filter(|lane| stands(lane, &stage.targets) && is_cut(aways, lane) && !elsewhere(lane))
            .for_each(|lane| plan.add(lane, Part::All, aways.lane(lane.number())));
        plan
    }

    /// Looks which lanes stand at a gate, and has what was cut made again.
    fn resume(&mut self, place: usize, site: &'static Site, since: Nanos, now: Nanos) -> Option<Nanos> {
        let targets = self.stages[place].targets;
        if self.stages[place].has_no_job() && site.lanes().all(|lane| lane.has_passed(targets[lane.number()]))
        {
            self.stages[place].phase = Phase::Running;
            self.stages[place].still = None;
            return Some(IDLE);
        }
        if self.stages[place].job.is_none() && site.lanes().any(|lane| stands(&lane, &targets)) {
            let aways = site.control.aways()?;
            self.make_again(place, site, &aways, now)?;
        }
        if now.since(since) > STUCK && self.waits_for_the_word(place, site, now) {
            self.stages[place].phase = Phase::Stopped;
            return Some(SOON);
        }
        self.watch_over(place, site, now)?;
        Some(pace(now.since(since)))
    }

    /// Whether a lane stands though nothing in it is cut: then its gate waits for the stop word, which somebody has raised
    /// since it was lowered. If he has no more work, it must be lowered again.
    fn waits_for_the_word(&mut self, place: usize, site: &'static Site, now: Nanos) -> bool {
        let stage = &mut self.stages[place];
        stage.has_no_job()
            && site.lanes().any(|lane| stands(&lane, &stage.targets))
            && now.since(stage.still_since(progress(site), now)) > STUCK
    }

    /// Looks whether jobs are done.
    fn tend_jobs(&mut self, place: usize, site: &'static Site, now: Nanos) -> Nanos {
        let stage = &mut self.stages[place];
        let mut rest = IDLE;
        if let Some(job) = &stage.rescue {
            let done = job.is_done(site);
            rest = if done { SOON } else { pace(now.since(job.began)) };
            if done {
                job.demote(site);
                stage.rescue = None;
            }
        }
        if let Some(job) = &stage.siding {
            let done = job.is_done(site);
            rest = rest.min(if done { SOON } else { pace(now.since(job.began)) });
            if done {
                stage.siding = None;
            }
        }
        if let Some(job) = &stage.job {
            let done = job.is_done(site);
            rest = rest.min(if done { SOON } else { pace(now.since(job.began)) });
            if done {
                if !job.is_whole(site) && matches!(stage.phase, Phase::Resuming { .. }) {
                    // Somebody has raised the word since it was lowered. If he has no more work, it must be lowered again.
                    stage.phase = Phase::Stopped;
                }
                stage.job = None;
            }
        }
        rest
    }

    /// What does not arrive may be waiting for blocks that were turned away.
    fn watch_over(&mut self, place: usize, site: &'static Site, now: Nanos) -> Option<()> {
        let progress = progress(site);
        let stage = &mut self.stages[place];
        let still = stage.still_since(progress, now);
        if stage.rescue.is_some() || !stage.sightings.are_due(still, now) {
            return Some(());
        }
        let aways = site.control.aways()?;
        stage.sightings.look(&aways, now);
        if !watchdog::is_due(still, now) {
            return Some(());
        }
        let jobs = [stage.job.as_ref(), stage.siding.as_ref()];
        let plan = watchdog::plan(site, &stage.targets, jobs, &mut stage.sightings, now);
        if plan.is_empty() {
            return Some(());
        }
        stage.still = Some((now, progress));
        self.counts.watchdog += 1;
        stage.rescue = Some(plan.begin(site, Runner::Rescue, &mut self.counts, now)?);
        Some(())
    }
}

/// A number that changes when a lane arrives at a gate, or the helper stream or the siding has done a job.
fn progress(site: &'static Site) -> u32 {
    let jobs = site.control.done(Own::Helper).wrapping_add(site.control.done(Own::Siding));
    site.lanes().fold(jobs, |sum: u32, lane| sum.wrapping_add(lane.arrived()))
}

/// Whether nothing of a lane is on the GPU that was launched before that gate: it has arrived there, or waits at an earlier one.
pub fn is_still(lane: Lane, gate: u32) -> bool {
    super::marks::has_passed(lane.arrived(), gate) || lane.arrived() != lane.passed()
}

/// Whether a lane has a gate to pass yet, and waits at one.
fn stands(lane: &Lane, targets: &[u32; LANES]) -> bool {
    !lane.has_passed(targets[lane.number()]) && lane.arrived() != lane.passed()
}

fn is_cut(aways: &Aways<'_>, lane: &Lane) -> bool {
    aways.lane(lane.number()) != 0
}

/// How often to look at something that has taken so long already.
fn pace(long: Nanos) -> Nanos {
    if long < Nanos::from_millis(3) {
        SOON
    } else if long < Nanos::from_millis(30) {
        LATER
    } else {
        MUCH_LATER
    }
}

/// From now on nothing is guarded and nothing stopped: what is cut is finished, within a bound.
pub fn let_go(device: Option<CUdevice>) {
    const AT_MOST: Nanos = Nanos::from_millis(5_000);
    super::mode::end();
    let mut steward = Steward::new();
    let began = board::now();
    loop {
        let now = board::now();
        let rest = steward.tend(device, Wish::Go, &mut || false, now);
        if steward.is_at_rest() || now.since(began) > AT_MOST {
            return;
        }
        std::thread::sleep(rest.min(LATER).into());
    }
}
