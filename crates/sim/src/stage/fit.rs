//! Work as long as it was measured to be.
//!
//! A profile was taken once, under a profiler, on a host that had a good or a bad minute. What a tenant's runs alone say of
//! the same work is better known: how long the GPU takes for it (`gpu_us`), and how long jobs take altogether. So kernels are
//! stretched until the GPU's part is right, and then the host's part until jobs are as long as they were; what jobs differ by
//! becomes the factors from which each job draws.

use model::{Class, Nanos};
use policy::Decision;
use policy::Why;

use crate::{Arrivals, Card, Error, Scene, Scheduler, Sharing, Tenant, Work, World};

/// How many jobs are played to see how long one takes: two are on their way when the first ends.
const JOBS: u64 = 6;
const STEPS: usize = 24;
/// A job this near to its goal is near enough.
const NEAR: f64 = 0.002;
/// Of many jobs that were measured, so many say what they differ by.
const MOST_FACTORS: usize = 512;

impl Work {
    /// The same with the GPU's part as long as this.
    pub fn with_gpu(mut self, card: &Card, gpu: Nanos) -> Work {
        let factor = gpu.0 as f64 / self.gpu(card).0.max(1) as f64;
        for step in &mut self.steps {
            step.kernel.block = scaled(step.kernel.block, factor).max(Nanos(1));
        }
        self
    }

    /// The same with jobs that take this long alone, by a host that is slower or faster. Where even a host that takes no
    /// time is too slow, kernels are shortened.
    pub fn with_time(self, class: Class, card: &Card, time: Nanos) -> Result<Work, Error> {
        let fastest = self.hosted(0.0, Nanos::ZERO);
        let least = alone_time(&fastest, class, card)?;
        if least >= time {
            let gpu = scaled(fastest.gpu(card), time.0 as f64 / least.0.max(1) as f64);
            return Ok(fastest.with_gpu(card, gpu));
        }
        let recorded = alone_time(&self, class, card)?;
        let by_host = recorded.0 as f64 > least.0 as f64 * (1.0 + NEAR);
        if by_host && !self.graph {
            return self.stretched(class, card, time);
        }
        if !self.waits {
            // Its host is ahead of the GPU anyway: what it takes longer it takes on the GPU, between kernels or in them.
            let gpu = scaled(self.gpu(card), time.0 as f64 / least.0.max(1) as f64);
            return Ok(self.with_gpu(card, gpu));
        }
        // A graph has no gaps that a slower host could widen; what its jobs take longer lies between them.
        let stretches = self.syncs.len() as u64 + 1;
        Ok(fastest.hosted(0.0, Nanos((time - least).0 / stretches)))
    }

    /// Finds by bisection how slow the host is. Jobs that the GPU alone makes as long as wanted keep the host they have.
    fn stretched(self, class: Class, card: &Card, time: Nanos) -> Result<Work, Error> {
        let (mut low, mut high) = (0.0, 1.0);
        while alone_time(&self.hosted(high, Nanos::ZERO), class, card)? < time && high < 1e3 {
            (low, high) = (high, high * 2.0);
        }
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            let taken = alone_time(&self.hosted(middle, Nanos::ZERO), class, card)?;
            if (taken.0 as f64 / time.0 as f64 - 1.0).abs() < NEAR {
                return Ok(self.hosted(middle, Nanos::ZERO));
            }
            if taken < time { low = middle } else { high = middle }
        }
        Ok(self.hosted(f64::midpoint(low, high), Nanos::ZERO))
    }

    /// With every job as long as one that was measured, by these times of jobs alone.
    pub fn with_factors(mut self, times: &[Nanos], median: Nanos) -> Work {
        let every = times.len().div_ceil(MOST_FACTORS).max(1);
        let factor = |time: &Nanos| (time.0 as f64 / median.0.max(1) as f64).clamp(0.01, 100.0);
        self.factors = times.iter().step_by(every).map(factor).collect();
        self
    }

    /// The host `factor` times as slow, with `more` before the first launch and after every wait.
    fn hosted(&self, factor: f64, more: Nanos) -> Work {
        let mut work = self.clone();
        for step in &mut work.steps {
            step.host = scaled(step.host, factor);
        }
        let begins = std::iter::once(0).chain(self.syncs.iter().map(|&place| place as usize));
        for place in begins {
            if let Some(step) = work.steps.get_mut(place) {
                step.host += more;
            }
        }
        work
    }
}

/// How long a job takes on a card that has nothing else to do, one job after another.
pub fn alone_time(work: &Work, class: Class, card: &Card) -> Result<Nanos, Error> {
    let spans = work.steps.iter().map(|step| step.host + step.kernel.duration(card) + card.costs.launch_call);
    let most = spans.fold(card.costs.launch_to_start, |sum, span| sum + span);
    let work = Work { factors: Vec::new(), ..work.clone() };
    let tenant = Tenant {
        name: "alone".to_owned(),
        class,
        priority: 0,
        weight: 1,
        slo: None,
        arrivals: Arrivals::Closed,
        work,
    };
    let until = Nanos(most.0.saturating_mul(2 * JOBS)).max(Nanos(1_000));
    let world = World {
        card: card.clone(),
        sharing: Sharing::TimeSlicing,
        tenants: vec![tenant],
        warmup: Nanos::ZERO,
        until,
        seed: 0,
        decisions: 0,
    };
    let log = crate::run(&world, &mut Nobody)?;
    let ends: Vec<Nanos> = log.tenants[0].jobs.iter().filter_map(|job| job.end).collect();
    let [first, .., last] = ends[..] else { return Ok(most) };
    Ok(Nanos((last - first).0 / (ends.len() as u64 - 1)))
}

fn scaled(span: Nanos, factor: f64) -> Nanos {
    Nanos((span.0 as f64 * factor).round() as u64)
}

/// Whoever is alone is not asked about.
struct Nobody;

impl Scheduler for Nobody {
    fn name(&self) -> &'static str {
        "nobody"
    }

    fn asks_in_gaps(&self) -> Option<Nanos> {
        None
    }

    fn decide(&mut self, _scene: &Scene) -> Decision {
        Decision::nobody(Why::NothingToDo, Nanos::MAX)
    }
}
