//! The streams of a process, whoever stops them, and the keeper that resumes them, in every order.
//!
//! A *lane* is a stream as the host's half of the guard keeps it. Behind its guarded launches, before anything else, it
//! has *gates*: the stream tells that it has arrived, waits until its `away` word is 0, and tells that it has passed.
//! The *keeper* lowers the stop word when no latency tenant is active, and looks again whether that is still so. It
//! relaunches what a lane held at a gate had before it, in order, on a *helper* stream with an `away` word of its own;
//! when nothing was turned away there, it clears the lane's word and the gate opens by itself.
//!
//! A launch *overlaps* the one before it: as soon as all blocks of that one have ended, and before it is complete and what it
//! wrote is there for all, blocks of the next read the stop word and `away`. Then they wait until it is complete.
//!
//! What must hold: a block runs, and any other operation happens, only when all before it in its stream is whole; every
//! block runs exactly once; a latency tenant that has raised the stop word and is still active finds it raised, unless
//! the keeper is just about to look again; a stop never waits for blocks of two launches of a stream, one after the other; and
//! in the end everything has been done.

mod tests;

use super::search::Model;

/// Blocks of every launch here, as bits.
const BLOCKS: u8 = 2;
const ALL: u8 = (1 << BLOCKS) - 1;

/// What the program puts into a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Put {
    Launch,
    /// A copy, say: it must find everything before it done.
    Other,
    Record(u8),
    Wait(u8),
}
use Put::{Launch, Other, Record, Wait};

/// What is in a stream. Launches have serials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Launch(u8),
    Gate(u8),
    Other,
    Record(u8),
    Wait(u8),
}

/// How far the blocks of a launch are, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Blocks {
    /// These have read the words, and know what to do.
    read: u8,
    /// Of those, these will leave,
    leaving: u8,
    /// and these of them will say so, because nobody had.
    telling: u8,
    ended: u8,
}

impl Blocks {
    /// Those that will run, or do.
    fn running(self) -> u8 {
        self.read & !self.leaving & !self.ended
    }

    /// Whether all blocks know what to do, and those that leave have left.
    fn are_decided(self) -> bool {
        self.read == ALL && self.leaving & !self.ended == 0
    }
}

/// A device queue. It works on one action at a time, but for launches that overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Queue {
    actions: Vec<Action>,
    /// How many actions are done.
    at: usize,
    /// Blocks of the current launch, and of the one behind it.
    blocks: [Blocks; 2],
    away: u8,
    /// What `away` will be when it is known to all that the current launch has written it; 0: nothing else.
    written: u8,
    arrived: u8,
}

impl Queue {
    fn head(&self) -> Option<Action> {
        self.actions.get(self.at).copied()
    }

    fn advance(&mut self) {
        self.at += 1;
        self.blocks = [self.blocks[1], Blocks::default()];
        if self.written != 0 {
            self.away = std::mem::take(&mut self.written);
        }
    }

    /// The launch that is so far behind the first of the list, if it is one and all before it are.
    fn launch(&self, distance: usize) -> Option<u8> {
        let serial = |action: &Action| if let Action::Launch(serial) = action { Some(*serial) } else { None };
        let launches = self.actions.get(self.at..)?.iter().map_while(serial);
        launches.take(distance + 1).nth(distance)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Lane {
    program: &'static [Put],
    /// How much of the program has been handed over.
    put: usize,
    queue: Queue,
    gates: u8,
    /// Whether launches lie behind the last gate.
    ungated: bool,
    /// From which launch on a round that was cut again has to go on; 0: from `away`.
    from: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Latency {
    Idle,
    /// The board says that it is active.
    Announced,
    /// The stop word has been raised for it.
    Working,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Keeper {
    Watching,
    /// It has lowered the stop word and is about to look at the board again.
    Lowered,
    /// The helper works on what this lane had been cut.
    Round(usize),
}

/// When blocks of a launch may begin, at the earliest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Begin {
    /// When all blocks of the launch before it have ended.
    BehindBlocks,
    /// When they are under way or have ended: kernels may say so by themselves, in an instruction.
    BehindDecisions,
    /// When the launch before it has begun.
    AtAnyTime,
}

/// What the keeper and the prologues take care of. A model in which one of them is missing must break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Care {
    /// Blocks leave when an earlier launch of their stream was cut.
    look_at_away: bool,
    look_at_board_again: bool,
    relaunch_after_arrival: bool,
    /// The opposite of a care: lower the stop word only when all lanes have come to rest at a gate.
    wait_for_all: bool,
    begin: Begin,
    /// What a block writes into `away` is there for all before the block has ended.
    fence: bool,
    /// Blocks go on only when the launch before theirs is complete.
    wait_for_launch: bool,
    /// Stops are to wait for blocks of one launch only.
    short_stops: bool,
}

const CAREFUL: Care = Care {
    look_at_away: true,
    look_at_board_again: true,
    relaunch_after_arrival: true,
    wait_for_all: false,
    begin: Begin::BehindBlocks,
    fence: true,
    wait_for_launch: true,
    short_stops: true,
};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    care: Care,
    stop: bool,
    lanes: Vec<Lane>,
    helper: Queue,
    events: u8,
    /// By serial, which blocks have run.
    ran: Vec<u8>,
    /// By serial, to which lane the launch belongs.
    owners: Vec<usize>,
    latency: Latency,
    bursts: u8,
    keeper: Keeper,
    fault: Option<&'static str>,
}

impl World {
    fn new(programs: &[&'static [Put]], bursts: u8) -> World {
        let lane =
            |&program| Lane { program, put: 0, queue: Queue::default(), gates: 0, ungated: false, from: 0 };
        World {
            care: CAREFUL,
            stop: false,
            lanes: programs.iter().map(lane).collect(),
            helper: Queue::default(),
            events: 0,
            // Serial 0 is nobody's.
            ran: vec![ALL],
            owners: vec![usize::MAX],
            latency: Latency::Idle,
            bursts,
            keeper: Keeper::Watching,
            fault: None,
        }
    }

    fn without(mut self, care: Care) -> World {
        self.care = care;
        self
    }

    fn active(&self) -> bool {
        self.latency != Latency::Idle
    }

    /// Whether everything that the lane had before a place in its queue is whole.
    fn whole_before(&self, lane: usize, place: usize) -> bool {
        let before = &self.lanes[lane].queue.actions[..place];
        let whole = |action: &Action| match action {
            Action::Launch(serial) => self.ran[usize::from(*serial)] == ALL && !self.inside(*serial),
            _ => true,
        };
        before.iter().all(whole)
    }

    /// Whether blocks of a launch may be running.
    fn inside(&self, serial: u8) -> bool {
        let queues = self.lanes.iter().map(|lane| &lane.queue).chain([&self.helper]);
        let inside =
            |queue: &Queue| (0..2).any(|d| queue.launch(d) == Some(serial) && queue.blocks[d].read != 0);
        queues.into_iter().any(inside)
    }

    fn place_of(&self, serial: u8) -> (usize, usize) {
        let lane = self.owners[usize::from(serial)];
        let actions = &self.lanes[lane].queue.actions;
        let place = actions.iter().position(|&action| action == Action::Launch(serial));
        (lane, place.expect("a launch stays in its lane's list"))
    }

    fn queue_of(&self, lane: Option<usize>) -> &Queue {
        lane.map_or(&self.helper, |lane| &self.lanes[lane].queue)
    }

    fn queue(&mut self, lane: Option<usize>) -> &mut Queue {
        match lane {
            Some(lane) => &mut self.lanes[lane].queue,
            None => &mut self.helper,
        }
    }

    /// The program hands over what comes next in one of its streams.
    fn program(&self, lane: usize) -> Option<World> {
        let next = *self.lanes[lane].program.get(self.lanes[lane].put)?;
        let mut world = self.clone();
        let serial = world.ran.len() as u8;
        if next == Launch {
            world.ran.push(0);
            world.owners.push(lane);
        }
        let lane = &mut world.lanes[lane];
        lane.put += 1;
        if next != Launch && lane.ungated {
            lane.put_gate();
        }
        lane.ungated |= next == Launch;
        lane.queue.actions.push(match next {
            Launch => Action::Launch(serial),
            Other => Action::Other,
            Record(event) => Action::Record(event),
            Wait(event) => Action::Wait(event),
        });
        Some(world)
    }

    /// The device goes on in a queue: every way it can.
    fn device(&self, lane: Option<usize>) -> Vec<World> {
        let mut world = self.clone();
        let away = world.queue(lane).away;
        let Some(head) = world.queue(lane).head() else { return Vec::new() };
        match head {
            Action::Launch(_) => return self.launches(lane),
            Action::Gate(number) if world.queue(lane).arrived < number => world.queue(lane).arrived = number,
            Action::Gate(_) if away != 0 => return Vec::new(),
            Action::Wait(event) if world.events & 1 << event == 0 => return Vec::new(),
            Action::Gate(_) | Action::Wait(_) => world.queue(lane).advance(),
            Action::Other | Action::Record(_) => {
                let own = lane.expect("the helper has only launches");
                if !self.whole_before(own, self.lanes[own].queue.at) {
                    world.fault = Some("an operation came before what precedes it in its stream");
                }
                if let Action::Record(event) = head {
                    world.events |= 1 << event;
                }
                world.queue(lane).advance();
            }
        }
        vec![world]
    }

    /// Blocks of the current launch and of the one behind it take their steps.
    fn launches(&self, lane: Option<usize>) -> Vec<World> {
        let current = self.queue_of(lane).blocks[0];
        let mut all = self.steps(lane, 0, true);
        // What was cut is made again without overlapping.
        if lane.is_some() && self.may_begin(current) {
            all.extend(self.steps(lane, 1, !self.care.wait_for_launch));
        }
        if current.ended == ALL {
            let mut world = self.clone();
            world.queue(lane).advance();
            all.push(world);
        }
        all
    }

    fn may_begin(&self, before: Blocks) -> bool {
        match self.care.begin {
            Begin::BehindBlocks => before.ended == ALL,
            Begin::BehindDecisions => before.are_decided(),
            Begin::AtAnyTime => before.read != 0,
        }
    }

    /// What blocks of one launch can do next: read the words, and do what follows from them if they may go on.
    fn steps(&self, lane: Option<usize>, distance: usize, go_on: bool) -> Vec<World> {
        let queue = self.queue_of(lane);
        let Some(serial) = queue.launch(distance) else { return Vec::new() };
        let blocks = queue.blocks[distance];
        let each = (0..BLOCKS).map(|block| 1 << block).filter(|block| blocks.ended & block == 0);
        let step = |block: u8| match blocks.read & block {
            0 => Some(self.read(lane, distance, serial, block)),
            _ => go_on.then(|| self.end(lane, distance, serial, block)),
        };
        each.filter_map(step).collect()
    }

    fn read(&self, lane: Option<usize>, distance: usize, serial: u8, block: u8) -> World {
        let mut world = self.clone();
        let ran_before = lane.is_none() && self.ran[usize::from(serial)] & block != 0;
        let queue = world.queue(lane);
        let away = queue.away != 0;
        let leaves = self.stop || self.care.look_at_away && away;
        let blocks = &mut queue.blocks[distance];
        blocks.read |= block;
        if leaves || ran_before {
            blocks.leaving |= block;
        }
        if leaves && !ran_before && !away {
            blocks.telling |= block;
        }
        world
    }

    fn end(&self, lane: Option<usize>, distance: usize, serial: u8, block: u8) -> World {
        let mut world = self.clone();
        let queue = world.queue(lane);
        let blocks = &mut queue.blocks[distance];
        blocks.ended |= block;
        let (leaves, tells) = (blocks.leaving & block != 0, blocks.telling & block != 0);
        if tells {
            *if self.care.fence { &mut queue.away } else { &mut queue.written } = serial;
        }
        if !leaves {
            world.run(serial, block);
        }
        world
    }

    fn run(&mut self, serial: u8, block: u8) {
        let (lane, place) = self.place_of(serial);
        if !self.whole_before(lane, place) {
            self.fault = Some("a block ran before what precedes it in its stream");
        }
        let ran = &mut self.ran[usize::from(serial)];
        if *ran & block != 0 {
            self.fault = Some("a block ran twice");
        }
        *ran |= block;
    }

    /// The latency tenant takes its next step: announce, raise, end.
    fn latency(&self) -> Option<World> {
        let mut world = self.clone();
        world.latency = match self.latency {
            Latency::Idle if self.bursts == 0 => return None,
            Latency::Idle => Latency::Announced,
            Latency::Announced => {
                world.stop = true;
                Latency::Working
            }
            Latency::Working => {
                world.bursts -= 1;
                Latency::Idle
            }
        };
        Some(world)
    }

    fn keeper(&self) -> Vec<World> {
        match self.keeper {
            Keeper::Watching => self.watch(),
            Keeper::Lowered => {
                let mut world = self.clone();
                world.stop = self.care.look_at_board_again && self.active();
                world.keeper = Keeper::Watching;
                vec![world]
            }
            Keeper::Round(lane) if self.helper.head().is_none() => {
                let mut world = self.clone();
                let cut = self.helper.away;
                world.lanes[lane].from = cut;
                if cut == 0 {
                    world.lanes[lane].queue.away = 0;
                }
                world.helper = Queue::default();
                world.keeper = Keeper::Watching;
                vec![world]
            }
            Keeper::Round(_) => Vec::new(),
        }
    }

    fn watch(&self) -> Vec<World> {
        let mut all = Vec::new();
        let at_rest = |lane: &Lane| lane.is_held() || !lane.ungated && lane.queue.arrived == lane.gates;
        if self.stop && !self.active() && (!self.care.wait_for_all || self.lanes.iter().all(at_rest)) {
            all.push(World { stop: false, keeper: Keeper::Lowered, ..self.clone() });
        }
        for (number, lane) in self.lanes.iter().enumerate() {
            if lane.ungated {
                let mut world = self.clone();
                world.lanes[number].put_gate();
                all.push(world);
            }
            if !self.stop && !self.active() && lane.queue.away != 0 {
                all.extend(self.round(number));
            }
        }
        all
    }

    /// Relaunches what a lane was cut, up to the gate where it is held.
    fn round(&self, number: usize) -> Option<World> {
        let lane = &self.lanes[number];
        if !lane.is_held() && self.care.relaunch_after_arrival {
            return None;
        }
        let from = if lane.from == 0 { lane.queue.away } else { lane.from };
        let before = lane.queue.actions[..lane.queue.at].iter().copied();
        let cut = before.filter(|action| matches!(action, Action::Launch(serial) if *serial >= from));
        let helper = Queue { actions: cut.collect(), ..Queue::default() };
        Some(World { helper, keeper: Keeper::Round(number), ..self.clone() })
    }
}

impl Lane {
    fn put_gate(&mut self) {
        self.gates += 1;
        self.queue.actions.push(Action::Gate(self.gates));
        self.ungated = false;
    }

    fn is_held(&self) -> bool {
        let at_gate = matches!(self.queue.head(), Some(Action::Gate(gate)) if self.queue.arrived == gate);
        at_gate && self.queue.away != 0
    }
}

impl Model for World {
    fn next(&self) -> Vec<World> {
        let lanes = 0..self.lanes.len();
        let mut all: Vec<World> = lanes.clone().filter_map(|lane| self.program(lane)).collect();
        all.extend(lanes.map(Some).chain([None]).flat_map(|lane| self.device(lane)));
        all.extend(self.latency());
        all.extend(self.keeper());
        all
    }

    fn fault(&self, ended: bool) -> Option<String> {
        if let Some(fault) = self.fault {
            return Some(fault.into());
        }
        if self.latency == Latency::Working && self.keeper != Keeper::Lowered && !self.stop {
            return Some("a stop was lost".into());
        }
        let two = |lane: &Lane| lane.queue.blocks.iter().all(|blocks| blocks.running() != 0);
        if self.care.short_stops && self.lanes.iter().any(two) {
            return Some("a stop would wait for two launches".into());
        }
        let done = |lane: &Lane| lane.put == lane.program.len() && lane.queue.head().is_none();
        let whole = self.ran.iter().all(|&ran| ran == ALL);
        (ended && !(whole && self.lanes.iter().all(done))).then(|| "nothing goes on".into())
    }
}
