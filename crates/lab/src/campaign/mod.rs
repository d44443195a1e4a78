//! A campaign: scenarios in modes, planned, run, written down.
//!
//! A run begins when every worker it needs is there and back at its first state; it ends when all have told what they
//! did. What a worker tells is written down as it is, and nothing is derived from it here. A worker that dies, hangs or
//! cannot be started costs its run, which is written down as a failure with its reason; the campaign goes on. Every
//! record is complete when it is written, so a campaign can be ended at any moment and taken up again: what is done is
//! known by the names of the runs.
//!
//! * `plan`: which runs there are, and in which order
//! * `post`: which workers a run needs
//! * `programs`: what these execute
//! * `staff`: getting them, and letting them go
//! * `conduct`: one run; `promise`: what ebb is told before it
//! * `book`: the result file; `machine`: where it was measured
//! * `estimate`: what there is time for
//! * `event`: what is told meanwhile

mod book;
mod conduct;
mod estimate;
mod event;
mod machine;
mod plan;
mod post;
mod programs;
mod promise;
mod staff;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use results::record::{self, Absent, Build};
use scenario::{Mode, Workload};

pub use event::{Event, Label};
pub use plan::Entry;

use crate::Error;
use crate::crew::{Roster, Stop};
use crate::modes::{Absence, Ground, Grounds, Site, Way};
use book::Book;
use estimate::{Estimates, FAREWELL};
use plan::{Planned, plan};
use post::Post;
use programs::Programs;
use staff::FailedStart;

/// What is to be done, and how.
#[derive(Clone, Debug)]
pub struct Order {
    /// All scenarios that are known, chosen or not; modes are those wanted.
    pub entries: Vec<Entry>,
    /// Where the result file lies.
    pub out: PathBuf,
    /// Where workers' standard errors go.
    pub logs: PathBuf,
    pub site: Site,
    pub python: OsString,
    /// Begin nothing that would not end within this time.
    pub budget: Option<Duration>,
    /// At most so many workers live at once.
    pub crew: usize,
    pub patience: Patience,
    /// For the record.
    pub device: record::Device,
    pub build: Build,
    pub command: Vec<String>,
}

/// How long workers may take.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// To start.
    pub start: Duration,
    /// For anything else, beyond the time that it takes by itself.
    pub grace: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { start: Duration::from_secs(180), grace: Duration::from_secs(10) }
    }
}

/// What came of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub made: usize,
    pub failed: usize,
    /// Neither, because the time was up or somebody wanted an end.
    pub left: usize,
    /// The signal that ended it.
    pub stopped: Option<usize>,
}

pub struct Campaign<'a> {
    // Workers go before the grounds they stand on: fields are dropped in this order.
    roster: Roster<Post>,
    grounds: Grounds,
    programs: Programs,
    book: Book,
    order: Order,
    /// Those that are still to be made.
    runs: Vec<Planned>,
    workloads: BTreeMap<String, Workload>,
    failed: BTreeMap<Post, FailedStart>,
    /// The shortest GPU time of a request that any worker measured; others measured while their neighbours loaded.
    gpu_us: BTreeMap<(String, u64), f64>,
    estimates: Estimates,
    stop: Stop,
    began: Instant,
    watch: &'a mut dyn FnMut(&Event<'_>),
}

impl<'a> Campaign<'a> {
    /// Opens the result file and plans; nothing is started yet.
    pub fn prepare(
        mut order: Order,
        stop: Stop,
        watch: &'a mut dyn FnMut(&Event<'_>),
    ) -> Result<Campaign<'a>, Error> {
        let began = Instant::now();
        promise::check(&order)?;
        let grounds = Grounds::new(order.site.clone()).map_err(Error::Absent)?;
        let programs = Programs::install(&order.site.folder, &order.logs, order.python.clone())?;
        let machine = machine::machine(order.build.clone(), order.device.clone(), order.command.clone());
        let mut book = Book::open(&order.out, machine)?;
        for (mode, absence) in leave_out(&mut order.entries, &grounds) {
            watch(&Event::Absent { mode, scenario: None, reason: &absence.0 });
            let (mode, reason) = (mode.to_string(), absence.0);
            book.absent(Absent { mode, suite: None, scenario: None, reason });
        }
        let mut runs = plan(&order.entries);
        let all = runs.len();
        for run in runs.iter().filter(|run| book.is_done(&run.id)).cloned().collect::<Vec<_>>() {
            book.serve(&run.id, &run.serves)?;
        }
        runs.retain(|run| !book.is_done(&run.id));
        let tenants = order.entries.iter().flat_map(|entry| &entry.scenario.tenants);
        let workloads = tenants.map(|tenant| (tenant.workload.id(), tenant.workload.clone())).collect();
        let done = all - runs.len();
        let campaign = Campaign {
            roster: Roster::new(stop.clone()),
            grounds,
            programs,
            book,
            order,
            runs,
            workloads,
            failed: BTreeMap::new(),
            gpu_us: BTreeMap::new(),
            estimates: Estimates::default(),
            stop,
            began,
            watch,
        };
        let (runs, left) = (campaign.runs.len(), campaign.left(0));
        (campaign.watch)(&Event::Planned { runs, done, left });
        Ok(campaign)
    }

    /// Makes all runs, as far as there is time and nobody wants an end. Everything that was started is gone when this
    /// returns.
    pub fn run(mut self) -> Result<Outcome, Error> {
        let mut outcome = Outcome { left: self.runs.len(), ..Outcome::default() };
        for index in 0..self.runs.len() {
            if !self.has_time_for(index) {
                break;
            }
            match self.make(index) {
                Ok(made) => {
                    outcome.left -= 1;
                    outcome.made += usize::from(made);
                    outcome.failed += usize::from(!made);
                }
                Err(Error::Stopped) => {
                    outcome.stopped = self.stop.signal();
                    break;
                }
                Err(Error::TimeUp) => break,
                Err(error) => return Err(error),
            }
            self.let_go(index + 1);
        }
        let Campaign { roster, grounds, book, .. } = self;
        drop(roster);
        drop(grounds);
        book.close()?;
        Ok(outcome)
    }

    /// One run, from its workers to its record; `false` if it failed.
    fn make(&mut self, index: usize) -> Result<bool, Error> {
        self.stop.check()?;
        let run = self.runs[index].clone();
        let result = self.staff(index).and_then(|()| {
            self.write_down(run.entry)?;
            let left = self.left(index);
            (self.watch)(&Event::Begun { label: label(&self.order.entries, &self.runs, index), left });
            self.conduct(&run)
        });
        match result {
            Ok(record) => {
                self.estimates.saw_run(run.entry, run.way, Duration::from_secs_f64(record.wall_s));
                let label = label(&self.order.entries, &self.runs, index);
                (self.watch)(&Event::Ended { label, run: &record });
                self.book.run(record)?;
                Ok(true)
            }
            Err(Error::Run { tenant, reason }) => {
                let label = label(&self.order.entries, &self.runs, index);
                (self.watch)(&Event::Failed { label, tenant: tenant.as_deref(), reason: &reason });
                self.book.failure(self.failure(&run, tenant, reason))?;
                Ok(false)
            }
            Err(other) => Err(other),
        }
    }

    fn failure(&self, run: &Planned, tenant: Option<String>, reason: String) -> record::Failure {
        let entry = &self.order.entries[run.entry];
        record::Failure {
            id: run.id.clone(),
            suite: entry.suite.clone(),
            scenario: entry.scenario.name.clone(),
            mode: run.way.to_string(),
            repetition: run.repetition,
            tenant,
            reason,
        }
    }

    /// Whether a run would end before the time is up, with all that it needs and all that comes after it.
    fn has_time_for(&self, index: usize) -> bool {
        let Some(budget) = self.order.budget else { return true };
        let needed = self.time_for(index) + FAREWELL;
        self.began.elapsed() + needed <= budget
    }

    /// How long workers may take to start: as long as is usual, or as is left.
    fn patience_to_start(&self) -> Duration {
        let left = self.order.budget.map(|budget| budget.saturating_sub(self.began.elapsed() + FAREWELL));
        left.map_or(self.order.patience.start, |left| left.min(self.order.patience.start))
    }

    fn time_for(&self, index: usize) -> Duration {
        let run = &self.runs[index];
        let until = Duration::from_nanos(self.order.entries[run.entry].scenario.until().0);
        let missing = self.missing(index);
        let start = missing.iter().map(|post| self.estimates.start(self.is_python(post))).max();
        self.estimates.run(run.entry, run.way, until) + start.unwrap_or_default()
    }

    /// The time that all runs from this one on will take, as far as is known.
    fn left(&self, from: usize) -> Duration {
        let mut seen: BTreeSet<Post> = BTreeSet::new();
        let mut left = Duration::ZERO;
        for run in &self.runs[from..] {
            let until = Duration::from_nanos(self.order.entries[run.entry].scenario.until().0);
            left += self.estimates.run(run.entry, run.way, until);
            let mut starts = Duration::ZERO;
            for post in self.posts(run).into_iter().map(|(post, _)| post) {
                if !self.roster.has(&post) && !seen.contains(&post) {
                    // Workers of a scenario start together, so the others of its modes cost nothing more.
                    let python = self.is_python(&post);
                    starts = starts.max(self.estimates.start(python) / if python { 4 } else { 1 });
                    seen.insert(post);
                }
            }
            left += starts;
        }
        left
    }
}

/// Takes the modes that cannot be had here out of all scenarios, and says why.
fn leave_out(entries: &mut [Entry], grounds: &Grounds) -> Vec<(Way, Absence)> {
    let wanted: BTreeSet<Way> =
        entries.iter().filter(|entry| entry.chosen).flat_map(|entry| entry.modes.iter().copied()).collect();
    let judged = wanted.into_iter().filter_map(|way| Some((way, grounds.judge(way).err()?)));
    let absent: Vec<(Way, Absence)> = judged.collect();
    for entry in entries {
        entry.modes.retain(|way| absent.iter().all(|(other, _)| other != way));
    }
    absent
}

fn ground(run: &Planned) -> Ground {
    Ground::of(run.way).expect("modes without a ground were left out of the plan")
}

fn label<'b>(entries: &'b [Entry], runs: &'b [Planned], index: usize) -> Label<'b> {
    let run = &runs[index];
    let Entry { suite, scenario, .. } = &entries[run.entry];
    let tenant = (run.way.mode == Mode::Alone).then(|| scenario.tenants[run.tenants[0]].name.as_str());
    Label {
        suite,
        scenario: &scenario.name,
        mode: run.way,
        repetition: run.repetition,
        tenant,
        number: index + 1,
        of: runs.len(),
    }
}
