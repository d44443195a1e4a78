//! A block: its warps, its shared memory, and whose turn it is.

use std::sync::Arc;

use model::{Dim3, Nanos};

use super::address::Bytes;
use super::barrier::Barriers;
use super::launch::{Clock, Launch, Outcome};
use super::machine::{Flow, Machine};
use super::special::{RESERVED_ALIGN, RESERVED_SHARED};
use super::warp::{Frame, Waiting, Warp};
use crate::error::{Fault, FaultReport};
use crate::isa::{LANES, PoolRow};
use crate::memory::AddressSpace;

/// Instructions a warp may run before the next one of its block gets a turn.
const TURN: u32 = 4096;

/// What the warps of a block share.
pub(crate) struct BlockState {
    pub(crate) barriers: Barriers,
    pub(crate) shared: Bytes,
    /// The kernel's parameters; generic addresses reach them at an offset in the shared window.
    pub(crate) parameters: Bytes,
    pub(crate) index: Dim3,
    pub(crate) sm: u32,
    /// Local memory a thread may use.
    pub(crate) stack_limit: u32,
    pub(crate) shared_window: u64,
    pub(crate) local_window: u64,
}

/// A block of a launch as a coroutine; used again for the next block without allocating.
pub struct Block {
    launch: Option<Arc<Launch>>,
    /// The block dimensions for which there are warps.
    shape: Option<Dim3>,
    space: Arc<AddressSpace>,
    warps: Vec<Warp>,
    state: BlockState,
    /// Warps that have not exited, and whose turn is next.
    living: usize,
    next: usize,
}

/// How a turn of one warp ended.
enum Turn {
    Ran,
    Polled,
    Waits,
    Fault(Box<FaultReport>),
}

impl Block {
    /// Allocates registers and shared memory for blocks of this launch.
    pub fn new(launch: &Arc<Launch>, space: &Arc<AddressSpace>) -> Block {
        let state = BlockState {
            barriers: Barriers::default(),
            shared: Bytes::zeroed(0),
            parameters: Bytes::zeroed(0),
            index: Dim3::new(0, 0, 0),
            sm: 0,
            stack_limit: 0,
            shared_window: space.shared_window(),
            local_window: space.local_window(),
        };
        let space = Arc::clone(space);
        let mut block =
            Block { launch: None, space, shape: None, warps: Vec::new(), state, living: 0, next: 0 };
        block.adopt(launch);
        block
    }

    /// Serves another launch from now on, in the memory it has as far as that goes. What the last block left in
    /// shared memory and registers stays there, as on a card.
    pub fn adopt(&mut self, launch: &Arc<Launch>) {
        let (function, info) = (launch.kernel.function(), launch.kernel.info());
        let (rows, predicates) = (function.rows as usize, function.predicates as usize);
        if self.shape != Some(launch.block) {
            self.shape = Some(launch.block);
            self.warps = warps(launch.block, rows, predicates);
        }
        for warp in &mut self.warps {
            warp.make_room(rows, predicates);
        }
        let mut shared_bytes = info.static_shared.next_multiple_of(16).saturating_add(launch.dynamic_shared);
        if launch.kernel.module().image().reserved_shared {
            shared_bytes = shared_bytes.next_multiple_of(RESERVED_ALIGN) + RESERVED_SHARED;
        }
        self.state.shared.resize(shared_bytes as usize);
        self.state.parameters.assign(&launch.parameters, info.parameter_bytes as usize);
        let extra = if info.unbounded_stack { launch.stack_limit } else { 0 };
        self.state.stack_limit = info.stack_bytes.saturating_add(extra).min(super::control::MOST_LOCAL);
        self.launch = Some(Arc::clone(launch));
    }

    /// Lets go of the launch, and so of its module; `adopt` gives it another.
    pub fn release(&mut self) {
        self.launch = None;
    }

    /// Bytes of memory it holds, about.
    pub fn bytes(&self) -> usize {
        let warps = self.warps.iter().map(|warp| warp.rows.len() * size_of::<PoolRow>());
        size_of::<Block>() + warps.sum::<usize>() + self.state.shared.capacity()
    }

    /// Begins block number `linear` of the grid on SM `sm`.
    pub fn start(&mut self, linear: u64, sm: u32) {
        let launch = self.launch.as_ref().expect("a block that runs serves a launch");
        let function = launch.kernel.function();
        let frame = Frame {
            parent: 0,
            return_pc: 0,
            function: launch.kernel.function_index(),
            depth: 0,
            base: 0,
            predicate_base: 0,
            local_base: 0,
            local_top: function.local_bytes.next_multiple_of(16),
        };
        for warp in &mut self.warps {
            warp.start(function.entry, frame);
            warp.reserve_local(frame.local_top);
        }
        self.state.barriers.start(self.warps.iter().map(|warp| warp.active));
        self.state.index = match launch.grid {
            Dim3 { y: 1, z: 1, .. } => Dim3::new(linear as u32, 0, 0),
            grid => grid.cell(linear),
        };
        self.state.sm = sm;
        (self.living, self.next) = (self.warps.len(), 0);
    }

    /// Lets warps that wait for a clock look at it again: the clocks went on while the context was off the GPU,
    /// and their waits are counted in the time it was on. True if there are such warps.
    pub fn wake_watchers(&mut self) -> bool {
        // Every warp is asked, so `any` would be wrong here.
        self.warps.iter_mut().filter_map(|warp| warp.wake_watchers().then_some(())).count() > 0
    }

    /// Advances the block by about `budget` warp instructions.
    pub fn run(&mut self, clock: &mut dyn Clock, budget: u32) -> Outcome {
        let mut fuel = budget.max(1);
        loop {
            let (mut ran, mut polled, mut wakes) = (false, false, None::<Nanos>);
            let now =
                if self.warps.iter().any(|warp| warp.wakes().is_some()) { clock.now() } else { Nanos::ZERO };
            for _ in 0..self.warps.len() {
                let index = self.next;
                self.next = if index + 1 == self.warps.len() { 0 } else { index + 1 };
                if self.warps[index].is_done() {
                    continue;
                }
                match self.turn(index, clock, now, &mut fuel) {
                    Turn::Ran => ran = true,
                    Turn::Polled => polled = true,
                    Turn::Waits => {}
                    Turn::Fault(report) => return Outcome::Faulted(report),
                }
                let warp = &self.warps[index];
                self.living -= usize::from(warp.is_done());
                if let Some(time) = warp.wakes() {
                    wakes = Some(wakes.map_or(time, |earliest| earliest.min(time)));
                }
                if fuel == 0 {
                    return if self.living == 0 { Outcome::Done } else { Outcome::Runnable };
                }
            }
            match (self.living, wakes) {
                (0, _) => return Outcome::Done,
                _ if self.someone_ready() && ran => {}
                _ if self.someone_ready() || polled => return Outcome::Runnable,
                (_, Some(until)) => return Outcome::Sleeping { until },
                _ => return Outcome::Blocked,
            }
        }
    }

    /// Whether another round over the warps would move something, leaving aside those that sleep.
    fn someone_ready(&self) -> bool {
        self.warps.iter().any(|warp| {
            let ready =
                |waiting| super::warp::arrived(waiting, warp.epoch, &self.state.barriers, Nanos::ZERO);
            let current = warp.active != 0 && ready(warp.waiting);
            current || warp.others.iter().any(|split| ready(split.waiting))
        })
    }

    fn turn(&mut self, index: usize, clock: &mut dyn Clock, now: Nanos, fuel: &mut u32) -> Turn {
        let launch = self.launch.as_ref().expect("a block that runs serves a launch");
        let module = launch.kernel.module();
        let allowance = TURN.min(*fuel);
        let mut machine = Machine {
            warp: &mut self.warps[index],
            state: &mut self.state,
            launch,
            image: module.image(),
            pool: module.pool(),
            space: &self.space,
            clock,
            fuel: allowance,
            told: allowance,
            trial: None,
            fault: None,
        };
        let mut turn = machine.run_warp(now);
        machine.tell_clock();
        *fuel -= allowance - machine.fuel;
        if machine.fault.is_some() {
            let report = machine.report();
            turn = Turn::Fault(Box::new(report));
        }
        turn
    }
}

/// Warps for all threads of a block of this shape.
fn warps(shape: Dim3, rows: usize, predicates: usize) -> Vec<Warp> {
    let threads = shape.volume().unwrap_or(0).min(1024) as usize;
    let warp = |index: usize| {
        let count = (threads - index * LANES).min(LANES);
        let lanes = if count == LANES { u32::MAX } else { (1 << count) - 1 };
        let thread = |pick: fn(Dim3) -> u32| {
            PoolRow(std::array::from_fn(|lane| pick(shape.cell((index * LANES + lane) as u64))))
        };
        let threads = [thread(|cell| cell.x), thread(|cell| cell.y), thread(|cell| cell.z)];
        Warp::new(index as u32, lanes, threads, rows, predicates)
    };
    (0..threads.div_ceil(LANES)).map(warp).collect()
}

impl Machine<'_> {
    /// Runs the warp until it waits, ends, has polled for a while or its fuel is spent.
    fn run_warp(&mut self, now: Nanos) -> Turn {
        let (mut turn, mut ran, mut polls) = (false, false, 0);
        loop {
            if !self.pick(now, turn) {
                return if ran { Turn::Ran } else { Turn::Waits };
            }
            ran = true;
            let converged = self.warp.others.is_empty();
            let flow = if converged { self.go::<false>() } else { self.go::<true>() };
            turn = false;
            match flow {
                Flow::Next | Flow::Reschedule if self.warp.is_done() => return Turn::Ran,
                Flow::Next | Flow::Reschedule => {}
                Flow::Spent => return Turn::Ran,
                Flow::Fault => return Turn::Ran,
                Flow::ClockLoop => self.await_clock(),
                Flow::Yield => {
                    let polled = self.warp.forget_rounds();
                    polls += usize::from(polled);
                    // All that could run have had their turn, and all of them poll.
                    let alone = !self.warp.others.iter().any(|split| split.waiting == Waiting::No);
                    if polled && (alone || polls > self.warp.others.len()) {
                        return Turn::Polled;
                    }
                    turn = true;
                }
            }
        }
    }

    /// What went wrong, for the log.
    fn report(&mut self) -> FaultReport {
        let (fault, lane) = self.fault.take().unwrap_or((Fault::Trap, 0));
        let thread = |axis: usize| self.warp.thread[axis].0[lane];
        FaultReport {
            fault,
            kernel: self.launch.kernel.name().to_owned(),
            line: self.image.code.get((self.warp.pc as usize).wrapping_sub(1)).map_or(0, |i| i.line),
            block: self.state.index,
            thread: Dim3::new(thread(0), thread(1), thread(2)),
        }
    }
}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Block")
            .field("launch", &self.launch)
            .field("index", &self.state.index)
            .finish_non_exhaustive()
    }
}

const _: () = {
    const fn sendable<T: Send>() {}
    sendable::<Block>();
};
