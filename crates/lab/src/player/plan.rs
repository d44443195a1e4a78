//! What one request or iteration hands to the GPU: kernels with their times, made of a workload or of its profile.
//!
//! A profile's blocks are taken together as far as nobody can tell (`profiles/README.md` of `scenario` says how and what it costs), so
//! that a software GPU on two cores keeps the pace.

use model::Nanos;
use scenario::profile::{self, Profile};
use scenario::{Burst, Grid, Workload};

use super::card::Card;
use crate::Error;
use crate::driver::Shape;

/// Waves of a recorded kernel that are shorter than this are taken together.
const SHORTEST_WAVE: Nanos = Nanos::from_micros(500);
/// A block sleeps by a 32-bit number of nanoseconds.
const LONGEST_BLOCK: Nanos = Nanos(u32::MAX as u64);
/// A warp is enough to sleep. Blocks that compute are of the sizes that programs have.
const THREADS_ASLEEP: u32 = 32;
const THREADS_OF_BURST: u32 = 128;
const THREADS_OF_GRID: u32 = 1024;
/// So many blocks of a burst fit on an SM; one of a grid has it to itself.
const BURST_PER_SM: u32 = 16;

#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub parts: Vec<Part>,
    /// How many tokens an answer has, if it comes token by token: the first with the first part.
    pub tokens: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub times: u32,
    /// The host is not done with it sooner than this after its begin.
    pub host: Nanos,
    pub kernels: Vec<Kernel>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    /// When it is handed over, from the part's begin.
    pub at: Nanos,
    pub shape: Shape,
    /// How long one of its blocks takes.
    pub length: Nanos,
    /// How often its blocks fill the card.
    pub waves: u32,
}

impl Plan {
    /// What a workload does on this card. `find` gives the profile of one that is not synthetic.
    pub fn of(
        workload: &Workload,
        slowdown: f64,
        card: &Card,
        find: &dyn Fn(&str) -> Result<Profile, Error>,
    ) -> Result<Plan, Error> {
        let maker = Maker { card, slowdown };
        let parts = match workload {
            Workload::Burst(burst) => vec![maker.burst(burst)],
            Workload::Grid(grid) => vec![maker.grid(grid)],
            recorded if card.is_software() => maker.replay(&find(&recorded.id())?),
            recorded => {
                let name = recorded.id();
                return Err(Error::Player(format!(
                    "{name} is replayed on the software GPU; on a card it is the real one"
                )));
            }
        };
        let tokens = workload.output().map(|_| parts.iter().map(|part| u64::from(part.times)).sum());
        let plan = Plan { parts, tokens };
        let longest = plan.kernels().map(|kernel| kernel.length).max().unwrap_or_default();
        if longest > LONGEST_BLOCK {
            return Err(Error::Player(format!(
                "a block of {longest} is longer than the {LONGEST_BLOCK} that are possible; take a smaller slowdown"
            )));
        }
        Ok(plan)
    }

    /// Its kernels, each once.
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        self.parts.iter().flat_map(|part| &part.kernels)
    }

    /// Its kernels in the order in which they are launched, each as often as it is.
    pub fn launches(&self) -> impl Iterator<Item = &Kernel> {
        self.parts.iter().flat_map(|part| (0..part.times).flat_map(|_| &part.kernels))
    }

    /// What it takes on a GPU that has nothing else to do and never waits for the host.
    pub fn nominal(&self) -> Nanos {
        let each = |kernel: &Kernel| Nanos(kernel.length.0.saturating_mul(u64::from(kernel.waves)));
        self.launches().map(each).fold(Nanos::ZERO, |sum, span| sum + span)
    }
}

struct Maker<'a> {
    card: &'a Card,
    slowdown: f64,
}

impl Maker<'_> {
    fn burst(&self, burst: &Burst) -> Part {
        let Burst { launches, blocks, block, gap } = *burst;
        let threads = self.threads(THREADS_OF_BURST);
        let shape = Shape { blocks, threads, shared: self.card.room(1, BURST_PER_SM) };
        let waves = blocks.div_ceil(BURST_PER_SM * self.card.sms);
        let gap = self.slowed(gap.as_micros_f64());
        let kernel = |number: u32| Kernel {
            at: Nanos(gap.0.saturating_mul(number.into())),
            shape,
            length: self.slowed(block.as_micros_f64()),
            waves,
        };
        Part { times: 1, host: Nanos::ZERO, kernels: (0..launches).map(kernel).collect() }
    }

    fn grid(&self, grid: &Grid) -> Part {
        let Grid { blocks, block } = *grid;
        let shape = Shape { blocks, threads: self.threads(THREADS_OF_GRID), shared: self.card.whole_room() };
        let length = self.slowed(block.as_micros_f64());
        let kernel = Kernel { at: Nanos::ZERO, shape, length, waves: blocks.div_ceil(self.card.sms) };
        Part { times: 1, host: Nanos::ZERO, kernels: vec![kernel] }
    }

    fn replay(&self, profile: &Profile) -> Vec<Part> {
        let part = |part: &profile::Part| Part {
            times: part.times,
            host: self.slowed(part.host_us),
            kernels: part.kernels.iter().map(|kernel| self.recorded(kernel, profile.sms)).collect(),
        };
        profile.parts.iter().map(part).collect()
    }

    /// A recorded kernel in as few blocks as will do.
    fn recorded(&self, kernel: &profile::Kernel, sms: u32) -> Kernel {
        let waves = kernel.waves(sms);
        let whole = self.slowed(kernel.block_us * f64::from(waves));
        let (blocks, shared, waves) = if waves > 1 || kernel.blocks == kernel.per_sm * sms {
            let most = u32::try_from(whole.0 / SHORTEST_WAVE.0).unwrap_or(u32::MAX);
            let waves = waves.min(most.max(1));
            (self.card.sms.saturating_mul(waves), self.card.whole_room(), waves)
        } else {
            // One wave on some of the SMs, or on all of them with room to spare.
            let on_each = kernel.blocks.div_ceil(sms);
            let busy = kernel.blocks.min(sms);
            let busy = u64::from(busy) * u64::from(self.card.sms);
            let busy = u32::try_from(busy.div_ceil(sms.into())).unwrap_or(u32::MAX);
            (busy, self.card.room(on_each, kernel.per_sm), 1)
        };
        let shape = Shape { blocks, threads: THREADS_ASLEEP, shared };
        let length = Nanos(whole.0 / u64::from(waves));
        Kernel { at: self.slowed(kernel.at_us), shape, length, waves }
    }

    fn threads(&self, computing: u32) -> u32 {
        if self.card.is_software() { THREADS_ASLEEP } else { computing }
    }

    fn slowed(&self, us: f64) -> Nanos {
        // Floats convert with saturation, so that no factor makes a long span short.
        Nanos((us * 1e3 * self.slowdown).round() as u64)
    }
}
