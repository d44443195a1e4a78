//! Who decides: ebb's policies, or one of the published systems in their place.
//!
//! The engine asks when something happened that a scheduler may want to know of, and hands over the scene as it is. What it
//! asks is always the same: who of the best-effort tenants may be on the GPU, and with what. A scheduler also says by which
//! [`Means`] its best-effort work is put there and taken off again, because that is where the published systems differ most.

use model::{Class, Nanos};
use policy::{Activity, Decision};

pub trait Scheduler {
    fn name(&self) -> &'static str;

    /// How best-effort work is stopped and what that costs it. Asked once.
    fn means(&self) -> Means {
        Means::ebb()
    }

    /// How long a gap inside a request must be for the scheduler to be asked in it; `None`: it is not asked in gaps. Who is asked
    /// a few times a request only is simulated faster.
    fn asks_in_gaps(&self) -> Option<Nanos>;

    fn decide(&mut self, scene: &Scene) -> Decision;

    /// A request of a latency tenant ended.
    fn ended(&mut self, _end: &Ended) {}

    /// Called every 100 ms with the scene.
    fn tick(&mut self, _scene: &Scene) {}
}

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub seat: u32,
    pub due: Nanos,
    pub start: Nanos,
    pub end: Nanos,
    /// Whether nobody else had the GPU between start and end.
    pub alone: bool,
}

/// Everything that can be known at a moment. What lies in the future is marked as such: a forecaster may use it as the truth that
/// it has learned with some error, a policy must not.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    pub now: Nanos,
    /// One best-effort tenant at a time.
    pub exclusive: bool,
    /// Where one at a time runs: how long it takes to take one out of the round.
    pub lever: Nanos,
    /// By seat.
    pub tenants: &'a [Facts],
}

/// One tenant, as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    pub seat: u32,
    pub class: Class,
    pub priority: u32,
    pub weight: u32,
    pub slo: Option<Nanos>,
    pub activity: Activity,
    /// When the request in progress was due.
    pub due: Option<Nanos>,
    /// Requests that wait behind the one in progress.
    pub queued: u32,
    /// Latency: when what it has launched so far will have run.
    pub busy_until: Nanos,
    /// By how many calls a job is launched.
    pub calls: u64,
    /// The launch that comes next, counted in the job, if one is under way.
    pub step: u32,
    /// Latency: in a gap inside a request. The future: when the host's next launch call ends it.
    pub next_call: Option<Nanos>,
    /// The future: when the next request will arrive.
    pub next_due: Option<Nanos>,
    /// Best-effort: whether it has something to run.
    pub wants: bool,
    pub wanted_since: Nanos,
    /// Best-effort: whether it is on the GPU.
    pub runs: bool,
    /// Best-effort: the time for which it had the GPU, stretched by its weight.
    pub virtual_time: Nanos,
    /// How long it takes to get it off the GPU, whatever it is doing.
    pub certificate: Nanos,
    /// How long its next kernel takes, and whether that runs to its end once it was started.
    pub piece: Nanos,
    pub held: bool,
    /// For how long it has had the GPU, as [`crate::Played::busy`].
    pub busy: Nanos,
}

/// By which means best-effort work is put on the GPU in the shared domain, and taken off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Means {
    pub stop: StopAt,
    /// How much longer kernels take because they were made stoppable, as a factor. `None`: what the card says of the guard.
    pub tax: Option<f64>,
    /// What the GPU waits for the host before each kernel because only one is in flight.
    pub round_trip: Nanos,
    /// After the latency tenants have been idle for so long, originals run: no tax and no round trip, but whole kernels.
    pub whole_after: Option<Nanos>,
}

/// Where running best-effort work can be stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAt {
    /// At the end of running blocks; kernels on the hold rung run out.
    Block,
    /// At the end of the piece, one wave of blocks.
    Piece,
    /// At the end of the kernel.
    Kernel,
    /// At once; the kernel that was running, and so many before it, are done again.
    Anywhere { redo: u32 },
}

impl Means {
    pub fn ebb() -> Means {
        Means { stop: StopAt::Block, tax: None, round_trip: Nanos::ZERO, whole_after: None }
    }
}
