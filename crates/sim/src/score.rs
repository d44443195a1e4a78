//! What a tenant's job looks like when nobody disturbs it, as sums that can be searched.
//!
//! The host hands over kernel `k` so that it is *ready* at `H[k]` after the job's begin; before it the GPU has `D[k]` of work to do. It
//! starts when it is ready and everything before it is done:
//!
//! ```text
//! start(k) = max over j <= k of (H[j] + D[k] - D[j])  =  D[k] + M[k],   M[k] = max over j <= k of (H[j] - D[j])
//! ```
//!
//! `M` never falls. Where it stays, the GPU goes from one kernel to the next; where it rises, the GPU has waited for the host: a
//! gap. All that a disturbance does is to put a floor under `M` (see [`crate::cursor`]), so any stretch of a job that nobody
//! disturbs is found by bisection, however many kernels it has.

use model::{Class, Nanos};

use crate::{Card, Kernel, Means, Rung, Sharing, StopAt, Tenant};

#[derive(Clone, Debug)]
pub struct Score {
    /// When kernel `k` is ready, from the job's begin.
    pub ready: Vec<u64>,
    /// The work before kernel `k`; one more than there are kernels.
    pub work: Vec<u64>,
    /// `M`, as above.
    pub lateness: Vec<u64>,
    pub grids: Vec<Grid>,
    /// From a launch call's begin until its kernel is ready.
    pub launch: u64,
    /// How many launches the host may be ahead.
    pub ahead: usize,
    pub graph: bool,
    /// The kernels before which the host waits for the GPU.
    pub syncs: Vec<usize>,
    /// Whether it has kernels that run out once they were started.
    pub holds: bool,
    /// The share of the card's room that it takes while it is busy, on average.
    pub demand: f64,
    /// The largest factor of any of its jobs, in 65,536ths: what certificates have to reckon with.
    pub worst: u64,
    factors: Vec<u64>,
}

/// A kernel as the engine needs it: with what making it stoppable costs.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub block: u64,
    pub duration: u64,
    pub spread: f64,
    pub share: f64,
    pub blocks: u32,
    pub stop: StopAt,
}

/// 1, as a factor.
pub const ONE: u64 = 1 << 16;

impl Score {
    pub fn new(tenant: &Tenant, card: &Card, sharing: Sharing, means: &Means) -> Score {
        let grids: Vec<Grid> = tenant
            .work
            .steps
            .iter()
            .map(|step| Grid::new(&step.kernel, tenant.class, card, sharing, means))
            .collect();
        let work: Vec<u64> = sums(grids.iter().map(|grid| grid.duration));
        let ready = readiness(tenant, card, &work);
        let mut floor = 0;
        let lateness = ready.iter().zip(&work).map(|(&ready, &before)| {
            floor = floor.max(ready.saturating_sub(before));
            floor
        });
        let lateness = lateness.collect();
        let shares: f64 = grids.iter().map(|grid| grid.share * grid.duration as f64).sum();
        let total = work.last().copied().unwrap_or(0).max(1);
        let holds = grids.iter().any(|grid| grid.stop == StopAt::Kernel);
        let factors: Vec<u64> =
            tenant.work.factors.iter().map(|factor| (factor * ONE as f64) as u64).collect();
        Score {
            ready,
            lateness,
            grids,
            launch: (card.costs.launch_call + card.costs.launch_to_start).0,
            ahead: tenant.work.ahead.max(1) as usize,
            graph: tenant.work.graph,
            syncs: tenant.work.syncs.iter().map(|&place| place as usize).collect(),
            holds,
            demand: shares / total as f64,
            worst: factors.iter().copied().max().unwrap_or(ONE),
            factors,
            work,
        }
    }

    pub fn kernels(&self) -> usize {
        self.grids.len()
    }

    /// All of a job's work.
    pub fn total(&self) -> u64 {
        self.work[self.kernels()]
    }

    /// The next kernel after this one before which the host waits for the GPU.
    pub fn next_sync(&self, kernel: usize) -> Option<usize> {
        self.syncs.get(self.syncs.partition_point(|&sync| sync <= kernel)).copied()
    }

    /// How many launch calls there are.
    pub fn calls(&self) -> u64 {
        let calls = if self.graph { self.syncs.len() + 1 } else { self.kernels() };
        calls as u64
    }

    /// The launch call that brings this kernel: a graph is called for once between two waits of the host.
    pub fn called_with(&self, kernel: usize) -> usize {
        if !self.graph {
            return kernel;
        }
        let waits = self.syncs.partition_point(|&sync| sync <= kernel);
        waits.checked_sub(1).map_or(0, |last| self.syncs[last])
    }

    /// The factor of a job, from a draw.
    pub fn factor(&self, pick: impl FnOnce(usize) -> usize) -> u64 {
        if self.factors.is_empty() { ONE } else { self.factors[pick(self.factors.len())] }
    }
}

impl Grid {
    fn new(kernel: &Kernel, class: Class, card: &Card, sharing: Sharing, means: &Means) -> Grid {
        let factor = tax(kernel, class, card, sharing, means);
        let round_trip = if class == Class::BestEffort { means.round_trip } else { Nanos::ZERO };
        let stretched = |span: Nanos| (span.0 as f64 * factor) as u64;
        let stop = match (means.stop, kernel.rung) {
            (StopAt::Block, Rung::Hold) => StopAt::Kernel,
            (stop, _) => stop,
        };
        Grid {
            block: stretched(kernel.block).max(1),
            duration: (stretched(kernel.duration(card)) + round_trip.0).max(1),
            spread: kernel.spread,
            share: kernel.share(card),
            blocks: kernel.blocks,
            stop,
        }
    }

    /// How long it takes to get it off the GPU at worst, once blocks see that they have to leave.
    pub fn longest_residue(&self) -> u64 {
        match self.stop {
            StopAt::Block => (self.block as f64 * (1.0 + self.spread)) as u64,
            StopAt::Piece => self.block.min(self.duration),
            StopAt::Kernel => self.duration,
            StopAt::Anywhere { .. } => 0,
        }
    }
}

/// How much longer a kernel takes here than by itself.
fn tax(kernel: &Kernel, class: Class, card: &Card, sharing: Sharing, means: &Means) -> f64 {
    let costs = &card.costs;
    match (sharing, class) {
        (Sharing::Isolated | Sharing::TimeSlicing, _) => 1.0,
        (_, Class::Latency) => costs.mps,
        (Sharing::Shared, Class::BestEffort) => match (means.tax, means.stop, kernel.rung) {
            // Where originals run at times, it is counted when it is paid.
            (Some(_), ..) if means.whole_after.is_some() => 1.0,
            (Some(tax), ..) => tax,
            (None, StopAt::Block, Rung::Guard) => costs.guard,
            (None, ..) => 1.0,
        },
        (_, Class::BestEffort) => 1.0,
    }
}

/// When each kernel is ready, from the job's begin, if nobody disturbs it: the host is slowed down only by its own queue, and
/// waits where it wants to.
fn readiness(tenant: &Tenant, card: &Card, work: &[u64]) -> Vec<u64> {
    let (costs, steps) = (&card.costs, &tenant.work.steps);
    let ahead = tenant.work.ahead.max(1) as usize;
    let (mut host, mut end) = (0, 0);
    let mut ready: Vec<u64> = Vec::with_capacity(steps.len());
    let mut ends: Vec<u64> = Vec::with_capacity(steps.len());
    for (k, step) in steps.iter().enumerate() {
        let waits = tenant.work.syncs.binary_search(&(k as u32)).is_ok();
        if waits {
            host = host.max(end);
        }
        if k == 0 || waits || !tenant.work.graph {
            host += step.host.0;
            if k >= ahead && !tenant.work.graph {
                host = host.max(ends[k - ahead]);
            }
            host += costs.launch_call.0;
        }
        ready.push(host + costs.launch_to_start.0);
        end = end.max(ready[k]) + (work[k + 1] - work[k]);
        ends.push(end);
    }
    ready
}

/// The next whole number. `f64::ceil` is a call where the processor need not have an instruction for it.
pub fn whole(span: f64) -> u64 {
    let below = span as u64;
    below.saturating_add(u64::from((below as f64) < span))
}

/// Nought, the first, the first two, ...
fn sums(parts: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sum = 0;
    let sums = parts.map(|part| {
        sum += part;
        sum
    });
    std::iter::once(0).chain(sums).collect()
}
