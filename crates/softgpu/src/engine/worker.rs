//! What a thread does when it lends its hands to the engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use model::{Dim3, Nanos};

use super::clock::TurnClock;
use super::context::Core;
use super::grid::{Grid, Resident};
use super::queue::{Fresh, Item, Standing};
use super::spare::Spare;
use super::task::{Task, Work};
use super::{Engine, MAX_LAG, State};
use crate::card::{self, Footprint};
use crate::error::{Fault, FaultReport};
use crate::simt::Outcome;

/// Warp-instructions a block may execute before others are looked at: some ten microseconds.
const BUDGET: u32 = 1024;
/// How often a computing block goes on before it makes room for the next in the queue.
const QUANTA: u32 = 4;
/// Successors a block's slot takes over before the state is looked at again.
const SUCCESSORS: u32 = 64;
/// For how long a thread goes on with successors while blocks that were dispatched before them wait.
const HEAD_START: Nanos = Nanos::from_micros(20);
/// Sleepers taken at once: they are cheap, and taking the lock for each would cost more than they do.
const SLEEPERS: usize = 64;
/// With many sleepers, waking up for each costs more than it gives; they carry their nominal time anyway. While
/// blocks wait for their places nobody outside can notice, so the nap may be long; near the end of a grid somebody
/// may be waiting for it, and so may another context whose blocks go first.
const CROWD: usize = 8;
const NAP: Nanos = Nanos::from_micros(15);
const LONG_NAP: Nanos = Nanos::from_micros(400);
const POLL_EVERY: Nanos = Nanos::from_micros(30);

/// A thread's own buffers.
pub(super) struct Hands {
    items: Vec<Item>,
    left: Vec<Left>,
    /// Memory of blocks, for those that begin and of those that have ended.
    spares: Vec<Spare>,
    /// What to set the thread's timer slack back to: it is the affair of whoever the hands were borrowed from.
    slack: Option<libc::c_ulong>,
}

impl Hands {
    pub fn borrowed() -> Hands {
        Hands { items: Vec::new(), left: Vec::new(), spares: Vec::new(), slack: set_timer_slack(1) }
    }

    fn own() -> Hands {
        let mut hands = Hands::borrowed();
        hands.slack = None;
        hands
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        self.slack.map(set_timer_slack);
    }
}

/// How a thread left a block.
enum Left {
    Sleeping(Resident),
    Runnable(Resident),
    /// The block ended; its successor has the same place.
    Next(Fresh),
    /// The block ended and its place is free.
    Retired {
        grid: Arc<Grid>,
        sm: u32,
        at: Nanos,
        last: bool,
    },
    Hung(Resident),
    Faulted(Box<FaultReport>),
}

enum Step {
    Worked,
    Idle { until: Option<Nanos> },
}

impl Engine {
    /// A thread of the engine.
    pub(super) fn serve(self: &Arc<Engine>) {
        let mut hands = Hands::own();
        loop {
            self.take_a_turn(&mut hands, None);
        }
    }

    /// The thread for host functions, which may block.
    pub(super) fn serve_callbacks(self: &Arc<Engine>, tasks: &Receiver<Task>) {
        for task in tasks {
            if let Some(Work::Callback(function)) = task.take_work() {
                function();
            }
            self.settle_now(task, card::now());
            // This thread does nothing else, so somebody must take up what the host function held back.
            self.card.ring_own(1);
        }
    }

    /// Does some work, or sleeps until there may be some. Returns early once `awaited` is done.
    pub(super) fn take_a_turn(self: &Arc<Engine>, hands: &mut Hands, awaited: Option<&Task>) {
        let seen = self.card.doorbell();
        let Step::Idle { until } = self.step(hands) else { return };
        if awaited.is_some_and(Task::is_done) {
            return;
        }
        // One alarm is enough for all sleepers, unless a new one is earlier.
        let alarm = {
            let mut state = self.lock();
            let sooner = until.filter(|until| state.alarm.is_none_or(|alarm| *until < alarm));
            state.alarm = sooner.or(state.alarm);
            sooner
        };
        self.card.sleep(seen, alarm);
        if alarm.is_some() {
            let mut state = self.lock();
            if state.alarm == alarm {
                state.alarm = None;
            }
        }
    }

    /// A thread that waited goes back to its own affairs; if blocks sleep, somebody else must watch the time.
    pub(super) fn hand_over_the_alarm(&self) {
        let state = self.lock();
        let needed =
            !state.polls.is_empty() || state.queues.iter().flatten().any(|queue| !queue.grids.is_empty());
        let kept = state.alarm.is_some();
        drop(state);
        if needed && !kept {
            self.card.ring_own(1);
        }
    }

    fn step(self: &Arc<Engine>, hands: &mut Hands) -> Step {
        let now = card::now();
        self.card.arbitrate_if_due(now);
        let mut state = self.lock();
        // First of all, since a wait that is over may have made work ready.
        self.poll(&mut state, now);
        if let Some(task) = self.take_host_work(&mut state) {
            let more = !state.ready.is_empty();
            drop(state);
            if more {
                self.card.ring_own(1);
            }
            self.run_host_work(task);
            return Step::Worked;
        }
        match self.take_blocks(&mut state, hands, now) {
            Ok((core, standing)) => {
                let backlog = state.queues[core.key].as_ref().is_some_and(super::Queue::has_backlog);
                drop(state);
                if backlog {
                    self.card.ring_own(1);
                }
                self.run_blocks(hands, &core, standing, now, backlog);
                Step::Worked
            }
            Err(until) => {
                let poll = (!state.polls.is_empty()).then_some(state.next_poll);
                Step::Idle { until: earlier(until, poll) }
            }
        }
    }

    /// The first host-side work whose context is not disabled. Whoever enables one rings.
    fn take_host_work(&self, state: &mut State) -> Option<Task> {
        let may_start = |task: &Task| task.core().is_dead() || !self.card.is_disabled(&task.core().handle);
        let position = state.ready.iter().position(may_start)?;
        state.ready.remove(position)
    }

    /// Chooses a context that is on and takes some of its blocks; or says when there may be some.
    fn take_blocks(
        &self,
        state: &mut State,
        hands: &mut Hands,
        now: Nanos,
    ) -> Result<(Arc<Core>, Standing), Option<Nanos>> {
        let mut until = None;
        state.turn += 1;
        for step in 0..state.queues.len() {
            let index = (state.turn + step) % state.queues.len();
            let Some(queue) = &mut state.queues[index] else { continue };
            let standing = match queue.standing(&self.card, now) {
                Ok(standing) => standing,
                Err(later) => {
                    until = earlier(until, later);
                    continue;
                }
            };
            queue.notice_turn(&standing);
            queue.dispatch(&self.card, &standing);
            while hands.items.len() < SLEEPERS
                && let Some((_, resident)) = queue.sleeping.pop_due(standing.now)
            {
                hands.items.push(Item::Resident(resident));
            }
            if hands.items.is_empty() {
                let share = queue.runnable.len().div_ceil(4 * self.threads).min(16);
                hands.items.extend(queue.runnable.drain(..share));
            }
            if !hands.items.is_empty() {
                return Ok((Arc::clone(&queue.core), standing));
            }
            let next = queue.sleeping.next_due().map(|due| due + standing.offset);
            let nap = match queue.sleeping.len() > CROWD {
                true if queue.has_undispatched() && !self.card.others_go_first(&queue.core.handle) => {
                    now + LONG_NAP
                }
                true => now + NAP,
                false => Nanos::ZERO,
            };
            until = earlier(until, next.map(|next| next.max(nap)));
            until = earlier(until, self.card.next_arbitration());
        }
        Err(until)
    }

    fn run_blocks(
        self: &Arc<Engine>,
        hands: &mut Hands,
        core: &Arc<Core>,
        standing: Standing,
        now: Nanos,
        backlog: bool,
    ) {
        let mut clock = TurnClock::new(now, standing.offset);
        let mut items = std::mem::take(&mut hands.items);
        let fresh = items.iter().filter(|item| matches!(item, Item::Fresh(_))).count();
        self.spares.take(fresh, &mut hands.spares);
        for item in items.drain(..) {
            if core.is_dead() {
                break;
            }
            if self.card.is_disabled(&core.handle) {
                hands.left.push(match item {
                    Item::Fresh(fresh) => Left::Next(fresh),
                    Item::Resident(resident) => Left::Runnable(resident),
                });
                continue;
            }
            let resident = match item {
                Item::Fresh(fresh) => fresh.begin(hands.spares.pop(), &self.space),
                Item::Resident(resident) => resident,
            };
            let run = AssertUnwindSafe(|| {
                self.run(resident, core, &standing, &mut clock, backlog, &mut hands.spares)
            });
            hands.left.push(catch_unwind(run).unwrap_or_else(|_| Left::Faulted(Box::new(broken()))));
        }
        items.clear();
        hands.items = items;
        self.spares.keep(&mut hands.spares);
        self.put_back(hands, core, &standing);
    }

    /// Goes on with one block, and with its successors on the SM while they are short.
    fn run(
        &self,
        mut resident: Resident,
        core: &Core,
        standing: &Standing,
        clock: &mut TurnClock,
        backlog: bool,
        spares: &mut Vec<Spare>,
    ) -> Left {
        let (mut quanta, mut successors) = (0, 0);
        loop {
            resident.at = resident.at.max(standing.now - MAX_LAG);
            clock.begin(resident.at);
            match resident.block.run(clock, BUDGET) {
                Outcome::Sleeping { until } => {
                    resident.at = until;
                    let behind = clock.machine() - standing.offset;
                    if until > behind
                        || successors >= SUCCESSORS
                        || !self.card.is_on_since(&core.handle, standing.turn)
                    {
                        return Left::Sleeping(resident);
                    }
                    successors += 1;
                }
                Outcome::Runnable => {
                    resident.at = clock.end();
                    quanta += 1;
                    if quanta >= QUANTA || !self.card.is_on_since(&core.handle, standing.turn) {
                        return Left::Runnable(resident);
                    }
                }
                Outcome::Done => {
                    let at = clock.end();
                    let grid = &resident.grid;
                    let next = if core.may_inherit(grid.priority) { grid.claim() } else { None };
                    let last = grid.retire(at);
                    let Some(number) = next else {
                        let Resident { block, grid, sm, .. } = resident;
                        spares.push(block);
                        return Left::Retired { grid, sm, at, last };
                    };
                    successors += 1;
                    let unfair = backlog && clock.machine().since(standing.taken_at) > HEAD_START;
                    if unfair
                        || successors >= SUCCESSORS
                        || !self.card.is_on_since(&core.handle, standing.turn)
                    {
                        let Resident { block, grid, sm, .. } = resident;
                        spares.push(block);
                        return Left::Next(Fresh { grid, number, sm, at });
                    }
                    resident.at = at;
                    resident.block.start(number, resident.sm);
                }
                Outcome::Blocked => return Left::Hung(resident),
                Outcome::Faulted(report) => return Left::Faulted(report),
            }
        }
    }

    /// Records how the blocks were left, and starts what that makes possible.
    fn put_back(self: &Arc<Engine>, hands: &mut Hands, core: &Arc<Core>, standing: &Standing) {
        let mut state = self.lock();
        if core.is_dead() {
            hands.left.clear();
            return;
        }
        let mut finished = Vec::new();
        let Some(queue) = state.queues[core.key].as_mut() else {
            hands.left.clear();
            return;
        };
        let mut fault = None;
        let mut vacated: Vec<(Arc<Grid>, Vec<u32>)> = Vec::new();
        for left in hands.left.drain(..) {
            match left {
                Left::Sleeping(resident) => queue.sleeping.push(resident.at, resident),
                Left::Runnable(resident) => queue.runnable.push_back(Item::Resident(resident)),
                Left::Next(fresh) => queue.runnable.push_back(Item::Fresh(fresh)),
                Left::Hung(resident) => queue.hung.push(resident),
                Left::Retired { grid, sm, at, last } => {
                    queue.vacate(sm, at);
                    self.card.leave(sm, at + standing.offset);
                    match vacated.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &grid)) {
                        Some((_, places)) => places.push(sm),
                        None => vacated.push((Arc::clone(&grid), vec![sm])),
                    }
                    if last {
                        queue.remove(&grid);
                        finished.push((grid.task.clone(), grid.ended_at() + standing.offset));
                    }
                }
                Left::Faulted(report) => fault = Some(report),
            }
        }
        for (grid, places) in vacated {
            self.card.release(&core.handle, &grid.footprint, &places);
        }
        if let Some(report) = fault {
            core.lose(*report);
            self.abandon(&mut state, core);
            return;
        }
        self.settle(&mut state, finished);
        if let Some(queue) = state.queues[core.key].as_mut() {
            queue.sync_runnable(&self.card);
        }
    }

    /// A context is lost or destroyed: its blocks vanish, its tasks end.
    pub(super) fn abandon(self: &Arc<Engine>, state: &mut State, core: &Arc<Core>) {
        let Some(queue) = state.queues[core.key].as_mut() else { return };
        queue.runnable.clear();
        queue.sleeping.drain().for_each(drop);
        queue.hung.clear();
        let ended: Vec<_> = queue.grids.drain(..).map(|grid| (grid.task.clone(), card::now())).collect();
        queue.sync_runnable(&self.card);
        self.card.evict(&core.handle);
        self.settle(state, ended);
        let polls = state.polls.extract_if(.., |task| Arc::ptr_eq(task.core(), core)).collect::<Vec<_>>();
        self.settle(state, polls.into_iter().map(|task| (task, card::now())).collect());
        self.card.ring_own(u32::MAX);
    }

    fn run_host_work(self: &Arc<Engine>, task: Task) {
        let begun = card::now();
        match task.take_work() {
            Some(Work::Host(work)) if !task.core().is_dead() => work(),
            _ => {}
        }
        let now = card::now();
        let nominal = task.ready_at().max(begun - MAX_LAG) + now.since(begun);
        self.settle_now(task, nominal.min(now));
    }

    fn poll(self: &Arc<Engine>, state: &mut State, now: Nanos) {
        if state.polls.is_empty() || state.next_poll > now {
            return;
        }
        state.next_poll = now + POLL_EVERY;
        let mut finished = Vec::new();
        state.polls.retain(|task| {
            let Some(Work::Poll(mut condition)) = task.take_work() else { return false };
            if task.core().is_dead() || condition() {
                finished.push((task.clone(), now));
                return false;
            }
            task.put_work(Work::Poll(condition));
            true
        });
        self.settle(state, finished);
    }

    fn settle_now(self: &Arc<Engine>, task: Task, at: Nanos) {
        let mut state = self.lock();
        self.settle(&mut state, vec![(task, at)]);
    }

    /// Ends tasks and starts those that waited for them.
    fn settle(self: &Arc<Engine>, state: &mut State, mut finished: Vec<(Task, Nanos)>) {
        let mut watched = false;
        while let Some((task, at)) = finished.pop() {
            let dependents = task.finish(at);
            watched |= task.is_watched();
            for dependent in dependents {
                if dependent.step(at) {
                    finished.extend(self.begin(state, dependent));
                }
            }
        }
        if watched {
            self.card.ring_own(u32::MAX);
        }
    }

    /// A task has nothing left to wait for.
    pub(super) fn start_ready(self: &Arc<Engine>, state: &mut State, task: Task) {
        if let Some(finished) = self.begin(state, task) {
            self.settle(state, vec![finished]);
        }
    }

    /// Sets a ready task going; one that is done with that is returned with its time.
    fn begin(self: &Arc<Engine>, state: &mut State, task: Task) -> Option<(Task, Nanos)> {
        let at = task.ready_at();
        if task.core().is_dead() {
            return Some((task, at));
        }
        match task.take_work() {
            None | Some(Work::Nothing) => return Some((task, at)),
            Some(work @ Work::Host(_)) => {
                task.put_work(work);
                state.ready.push_back(task);
            }
            Some(work @ Work::Callback(_)) => {
                task.put_work(work);
                let sender = self.callbacks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                sender.send(task).expect("the thread for host functions lives as long as the engine");
            }
            Some(work @ Work::Poll(_)) => {
                task.put_work(work);
                state.polls.push(task);
                state.next_poll = Nanos::ZERO;
            }
            Some(Work::Launch(launch)) => {
                let threads = launch.block.volume().and_then(|threads| u32::try_from(threads).ok());
                let threads = threads.expect("a launch's block was checked when it was made");
                let shared = launch.kernel.static_shared() + launch.dynamic_shared;
                let footprint =
                    Footprint::of(&self.card.properties(), threads, launch.kernel.registers(), shared);
                state.next_grid += 1;
                let grid = Grid::new(task.clone(), launch, footprint, state.next_grid);
                let queue = state.queues[task.core().key].as_mut();
                let queue = queue.expect("a context that is not dead has a queue");
                queue.add(grid);
                queue.sync_runnable(&self.card);
            }
        }
        None
    }
}

/// What is reported when the executor itself fails: the launch ends with an error instead of hanging.
fn broken() -> FaultReport {
    let fault = Fault::IllegalInstruction("the software GPU failed; this is a bug of ebb".to_owned());
    FaultReport { fault, kernel: String::new(), line: 0, block: Dim3::ONE, thread: Dim3::ONE }
}

fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// Sets how late the kernel may let a timer of this thread be; returns what it was.
fn set_timer_slack(nanos: libc::c_ulong) -> Option<libc::c_ulong> {
    // SAFETY: reads a number of this thread.
    let before = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    // SAFETY: sets that number; no memory is involved.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos) };
    libc::c_ulong::try_from(before).ok()
}
