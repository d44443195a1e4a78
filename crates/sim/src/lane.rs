//! One tenant while the world runs: which job it is at, what comes next, what it has been through.

use model::{Class, Nanos};
use policy::{Activity, fair, token};

use crate::cursor::{Cursor, Track};
use crate::draw::Source;
use crate::log::{Gaps, Job, Played, Stop};
use crate::score::{Grid, ONE, Score};
use crate::{Arrivals, Facts, Means, Sharing, StopAt, Tenant, World};

#[derive(Debug)]
pub struct Lane {
    pub name: String,
    pub class: Class,
    pub priority: u32,
    pub weight: u32,
    pub slo: Option<Nanos>,
    pub score: Score,
    pub source: Source,
    /// The job it is at.
    pub cursor: Option<Cursor>,
    /// Where its jobs stand at the rate at which they get on most often.
    pub track: Track,
    /// How long it takes to get it off the GPU, whatever it is doing.
    pub certificate: Nanos,
    /// The time for which it was let on the GPU, stretched by its weight.
    pub virtual_time: Nanos,
    pub wanted_since: Nanos,
    /// Whether others did anything on the GPU during the job.
    pub accompanied: bool,
    arrivals: Arrivals,
    waits: bool,
    warmup: Nanos,
    /// When the last job ended; when its host could begin with the next.
    free: Nanos,
    ahead: Nanos,
    idle_since: Option<Nanos>,
    jobs: Vec<Job>,
    pub stops: Vec<Stop>,
    pub busy: Nanos,
    pub wasted: Nanos,
    pub longest_wait: Nanos,
    pub gaps: Gaps,
}

impl Lane {
    pub fn new(tenant: &Tenant, world: &World, means: &Means) -> Lane {
        let score = Score::new(tenant, &world.card, world.sharing, means);
        let room = if let Arrivals::Open(due) = &tenant.arrivals { due.len() } else { 64 };
        Lane {
            name: tenant.name.clone(),
            class: tenant.class,
            priority: tenant.priority,
            weight: tenant.weight.max(1),
            slo: tenant.slo,
            source: Source::named(world.seed, &tenant.name),
            cursor: None,
            track: Track::default(),
            certificate: certificate(&score, world),
            virtual_time: Nanos::ZERO,
            wanted_since: Nanos::ZERO,
            accompanied: false,
            arrivals: tenant.arrivals.clone(),
            waits: tenant.work.waits,
            warmup: world.warmup,
            free: Nanos::ZERO,
            ahead: Nanos::ZERO,
            idle_since: None,
            jobs: Vec::with_capacity(room),
            stops: Vec::new(),
            busy: Nanos::ZERO,
            wasted: Nanos::ZERO,
            longest_wait: Nanos::ZERO,
            gaps: Gaps::default(),
            score,
        }
    }

    pub fn is_latency(&self) -> bool {
        self.class == Class::Latency
    }

    /// It was let on the GPU for so long.
    pub fn charge(&mut self, span: Nanos) {
        self.virtual_time += token::charge(span, fair::weight(self.weight, self.priority), 1);
    }

    /// When the next job begins, if none is under way. [`Nanos::MAX`]: never.
    pub fn next_begin(&self) -> Nanos {
        match &self.arrivals {
            Arrivals::Closed => self.ahead,
            Arrivals::Open(due) => due.get(self.jobs.len()).map_or(Nanos::MAX, |&due| due.max(self.ahead)),
        }
    }

    pub fn next_due(&self) -> Option<Nanos> {
        match &self.arrivals {
            Arrivals::Closed => None,
            Arrivals::Open(due) => due.get(self.jobs.len()).copied(),
        }
    }

    /// Whether there is a job, or one that could begin now.
    pub fn has_job(&self, now: Nanos) -> bool {
        self.cursor.is_some() || self.next_begin() <= now
    }

    /// It is not on the GPU before this moment.
    pub fn keep_off(&mut self, until: Nanos) {
        match &mut self.cursor {
            Some(cursor) => cursor.resume(&self.score, until),
            None => self.free = self.free.max(until),
        }
    }

    /// Begins the next job, which is due; the GPU is there for it from `from` on.
    pub fn begin(&mut self, from: Nanos) {
        let begin = self.next_begin();
        let due = self.next_due().unwrap_or(begin);
        let number = self.jobs.len() as u64;
        let source = self.source;
        let factor = self.score.factor(|choices| source.below(0, number, choices));
        let mut cursor = Cursor::new(begin, factor, number);
        // What the host prepared while the last job ran waits for that to end.
        cursor.resume(&self.score, self.free.max(from));
        self.cursor = Some(cursor);
        self.accompanied = false;
        let counts = due >= self.warmup;
        self.jobs.push(Job { due, start: Some(begin), end: None, waited: Nanos::ZERO, counts });
    }

    /// Its job is done. What it was is handed back.
    pub fn finish(&mut self, at: Nanos) -> Option<Job> {
        let cursor = self.cursor.take()?;
        let early = cursor.handed_over(&self.score);
        // One job ahead at most: the host began with this one when the last but one was done.
        self.ahead = if self.waits { at } else { early.max(self.free).min(at) };
        self.free = at;
        self.idle_since = Some(at);
        let job = self.jobs.last_mut()?;
        job.end = Some(at);
        Some(*job)
    }

    /// Kernels that were ready had to wait for others: all of them together, and the one that waited longest.
    pub fn waited(&mut self, together: Nanos, longest: Nanos) {
        if together == Nanos::ZERO {
            return;
        }
        self.longest_wait = self.longest_wait.max(longest);
        self.accompanied = true;
        if let Some(job) = self.jobs.last_mut() {
            job.waited += together;
        }
    }

    /// Runs jobs, one after the other, on a GPU that it has to itself from `from` to `to`. Returns the work done.
    pub fn play(&mut self, from: Nanos, to: Nanos) -> Nanos {
        let before = self.busy;
        let mut now = from;
        loop {
            if self.cursor.is_none() {
                if self.next_begin() > to {
                    break;
                }
                now = now.max(self.next_begin());
                self.begin(now);
            }
            let Some(cursor) = &mut self.cursor else { break };
            let done = cursor.done();
            let end = cursor.end(&self.score);
            cursor.run(&self.score, to);
            self.busy += Nanos(cursor.done() - done);
            if !cursor.is_over(&self.score) {
                break;
            }
            now = end.max(now).min(to);
            self.finish(now);
        }
        self.busy - before
    }

    /// What is known of it before anything has happened.
    pub fn introduce(&self, seat: u32) -> Facts {
        Facts {
            seat,
            class: self.class,
            priority: self.priority,
            weight: self.weight,
            slo: self.slo,
            activity: Activity::Idle { since: None },
            due: None,
            queued: 0,
            busy_until: Nanos::ZERO,
            calls: self.score.calls(),
            step: 0,
            next_call: None,
            next_due: self.next_due(),
            wants: false,
            wanted_since: Nanos::ZERO,
            runs: false,
            virtual_time: Nanos::ZERO,
            certificate: self.certificate,
            piece: self.piece(),
            held: self.is_at_held(),
            busy: Nanos::ZERO,
        }
    }

    /// Brings up to date what is known of it; whether it runs and when it calls, others know.
    pub fn tell(&self, facts: &mut Facts, now: Nanos, awake: bool) {
        let cursor = self.cursor.as_ref().filter(|_| awake);
        facts.activity = match cursor {
            Some(cursor) => Activity::Active { since: cursor.begin },
            None => Activity::Idle { since: self.idle_since },
        };
        facts.due = cursor.and_then(|_| self.jobs.last()).map(|job| job.due);
        facts.queued = self.queued(now);
        facts.step = cursor.map_or(0, |cursor| cursor.kernel()) as u32;
        facts.next_due = self.next_due();
        facts.piece = self.piece();
        facts.held = self.is_at_held();
        facts.busy = self.busy;
        if self.is_latency() {
            facts.busy_until = cursor.map_or(now, |cursor| cursor.busy_until(&self.score, now));
        } else {
            facts.busy_until = now;
            facts.wants = self.has_job(now);
            facts.wanted_since = self.wanted_since;
            facts.virtual_time = self.virtual_time;
        }
    }

    /// How many jobs are due and not begun.
    fn queued(&self, now: Nanos) -> u32 {
        let Arrivals::Open(due) = &self.arrivals else { return 0 };
        let rest = &due[self.jobs.len().min(due.len())..];
        // Most often nobody waits, or few do: those that are far away are not looked at.
        let mut near = 1;
        while near < rest.len() && rest[near - 1] <= now {
            near *= 2;
        }
        rest[..near.min(rest.len())].partition_point(|&due| due <= now) as u32
    }

    /// The kernel that is under way or comes next.
    fn next_grid(&self) -> &Grid {
        let kernel = self.cursor.as_ref().map_or(0, |cursor| cursor.kernel());
        self.score.grids.get(kernel).unwrap_or(&self.score.grids[0])
    }

    /// Whether it has come to a kernel that runs out once it was started.
    pub fn is_at_held(&self) -> bool {
        self.next_grid().stop == StopAt::Kernel
    }

    /// How long its next kernel takes.
    fn piece(&self) -> Nanos {
        let duration = self.next_grid().duration;
        Nanos(self.cursor.as_ref().map_or(duration, |cursor| cursor.scaled(duration)))
    }

    pub fn into_log(mut self, until: Nanos) -> Played {
        while let Some(due) = self.next_due().filter(|&due| due < until) {
            let counts = due >= self.warmup;
            self.jobs.push(Job { due, start: None, end: None, waited: Nanos::ZERO, counts });
        }
        Played {
            name: self.name,
            class: self.class,
            jobs: self.jobs,
            stops: self.stops,
            busy: self.busy,
            wasted: self.wasted,
            longest_wait: self.longest_wait,
            gaps: self.gaps,
        }
    }
}

/// How long it takes at most to get a tenant off the GPU.
fn certificate(score: &Score, world: &World) -> Nanos {
    let costs = &world.card.costs;
    match world.sharing {
        Sharing::Isolated | Sharing::TimeSlicing => {
            let switch = (costs.switch_off + costs.switch_on).0 as f64;
            Nanos((switch * (1.0 + costs.scatter)) as u64)
        }
        Sharing::Shared | Sharing::Mps | Sharing::MpsPriority => {
            let residue = score.grids.iter().map(|grid| grid.longest_residue()).max().unwrap_or(0);
            costs.flag + Nanos(((u128::from(residue) * u128::from(score.worst.max(ONE))) >> 16) as u64 + 1)
        }
    }
}
