//! What a request or an iteration consists of.
//!
//! A profile says when the host handed over each kernel and how long it ran; a step of simulated work says what the host does
//! between two launches. A part whose kernels were all handed over at once was a graph.

use model::{Class, Nanos};
use scenario::profile::{self, Profile};
use scenario::{Burst, Grid, Workload};

use crate::{Card, Error, Kernel, Rung, Step, Work};

/// The driver's queue: a host that is so far ahead of the GPU waits.
const AHEAD: u32 = 1_024;
/// So many blocks of a burst fit on an SM; one of a grid has it to itself. As the lab's player has it.
const BURST_PER_SM: u32 = 16;
/// What blocks of one grid differ by: those of real kernels share caches and memory.
const SPREAD: f64 = 0.1;
/// Nothing is shorter.
const SHORTEST_BLOCK: Nanos = Nanos(100);

/// What a workload does on this card, alone. `find` gives the profile of one that is not synthetic.
pub fn work_of(
    workload: &Workload,
    class: Class,
    card: &Card,
    find: &dyn Fn(&str) -> Result<Profile, scenario::Error>,
) -> Result<Work, Error> {
    match workload {
        Workload::Burst(burst) => Ok(of_burst(burst)),
        Workload::Grid(grid) => Ok(of_grid(grid, class)),
        recorded => {
            let profile = find(&recorded.id()).map_err(|error| Error::Stage(error.to_string()))?;
            // A training hands over an iteration while another runs; whoever answers waits for the answer.
            let trains = recorded.id().contains("-training-")
                || matches!(recorded, Workload::Stencil | Workload::Traversal);
            Ok(of_profile(&profile, card, !(trains && class == Class::BestEffort)))
        }
    }
}

fn of_burst(burst: &Burst) -> Work {
    let Burst { launches, blocks, block, gap } = *burst;
    let kernel = Kernel { blocks, block, per_sm: BURST_PER_SM, spread: 0.0, rung: Rung::Guard };
    let step = |number: u32| Step { host: if number == 0 { Nanos::ZERO } else { gap }, kernel };
    plain((0..launches).map(step).collect(), true)
}

fn of_grid(grid: &Grid, class: Class) -> Work {
    let Grid { blocks, block } = *grid;
    let kernel = Kernel { blocks, block, per_sm: 1, spread: 0.0, rung: Rung::Guard };
    plain(vec![Step { host: Nanos::ZERO, kernel }], class == Class::Latency)
}

fn plain(steps: Vec<Step>, waits: bool) -> Work {
    Work { steps, ahead: AHEAD, graph: false, waits, syncs: Vec::new(), factors: Vec::new() }
}

fn of_profile(profile: &Profile, card: &Card, waits: bool) -> Work {
    let is_graph = |part: &profile::Part| part.kernels.iter().all(|kernel| kernel.at_us == 0.0);
    let graph = profile.parts.iter().all(is_graph);
    let (mut steps, mut syncs) = (Vec::new(), Vec::new());
    // What a part's host still does after its last launch comes before the next part's first.
    let mut left_us = 0.0;
    for part in &profile.parts {
        let kernels: Vec<Kernel> =
            part.kernels.iter().map(|kernel| of_kernel(kernel, profile.sms, card)).collect();
        let at_us: Vec<f64> = part.kernels.iter().map(|kernel| kernel.at_us).collect();
        let together = if is_graph(part) && !graph { few(&kernels, card) } else { kernels };
        for _ in 0..part.times {
            if !steps.is_empty() {
                syncs.push(u32::try_from(steps.len()).unwrap_or(u32::MAX));
            }
            let mut before_us = -left_us;
            for (number, kernel) in together.iter().enumerate() {
                let at_us = at_us.get(number).copied().unwrap_or(0.0);
                steps.push(Step { host: nanos(at_us - before_us), kernel: *kernel });
                before_us = at_us;
            }
            left_us = (part.host_us - before_us).max(0.0);
        }
    }
    if let Some(first) = steps.first_mut() {
        first.host += nanos(left_us);
    }
    Work { steps, ahead: AHEAD, graph, waits, syncs, factors: Vec::new() }
}

/// A graph inside of work that is launched kernel by kernel otherwise, as launches that are long beside a launch call: a
/// prompt is read eagerly and its answer made by graphs, and a job is one or the other.
fn few(kernels: &[Kernel], card: &Card) -> Vec<Kernel> {
    const LONG: Nanos = Nanos::from_micros(50);
    let mut long: Vec<Kernel> = Vec::new();
    let mut room: Option<usize> = None;
    for kernel in kernels {
        let duration = kernel.duration(card);
        match room.filter(|&last| long[last].block < LONG) {
            Some(last) => long[last].block += duration,
            None => {
                room = Some(long.len());
                long.push(Kernel::whole(card, duration));
            }
        }
    }
    long
}

/// A recorded kernel takes as long on this card as on the one it was recorded on; its blocks fill as much of it.
fn of_kernel(kernel: &profile::Kernel, sms: u32, card: &Card) -> Kernel {
    let blocks = u64::from(kernel.blocks) * u64::from(card.sms) / u64::from(sms.max(1));
    Kernel {
        blocks: u32::try_from(blocks).unwrap_or(u32::MAX).max(1),
        block: nanos(kernel.block_us).max(SHORTEST_BLOCK),
        per_sm: kernel.per_sm,
        spread: SPREAD,
        rung: Rung::Guard,
    }
}

/// Floats convert with saturation.
pub(super) fn nanos(us: f64) -> Nanos {
    Nanos((us * 1e3).round().max(0.0) as u64)
}

impl Work {
    /// The GPU's part of a job, if it never waits for anything.
    pub fn gpu(&self, card: &Card) -> Nanos {
        self.steps.iter().fold(Nanos::ZERO, |sum, step| sum + step.kernel.duration(card))
    }
}
