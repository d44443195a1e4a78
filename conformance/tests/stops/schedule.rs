//! What happens in which order.

use guard::Rule;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The next block begins, if there is room.
    Start,
    /// One of the blocks that are there goes on for so many instructions of each of its warps.
    Run {
        which: u8,
        budget: u16,
    },
    Raise,
    Lower,
}

/// A list of moves, used up once over all attempts at a launch. When it is empty nobody stops anything any more, and the
/// blocks take turns.
#[derive(Clone, Debug)]
pub struct Schedule {
    pub moves: Vec<Move>,
    /// Blocks that the GPU has room for.
    pub room: usize,
    pub order: Order,
}

/// In which order blocks begin. A GPU takes them as they are numbered; the others are for finding kernels whose results
/// depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Linear,
    Reverse,
    Shuffled(u64),
}

impl Order {
    /// The numbers of all blocks, as they begin.
    pub fn of(self, count: u64) -> Vec<u64> {
        let mut numbers: Vec<u64> = (0..count).collect();
        match self {
            Order::Linear => {}
            Order::Reverse => numbers.reverse(),
            Order::Shuffled(seed) => {
                numbers.sort_by_key(|&number| {
                    ((number + 1) * (2 * seed + 12_345_679)).wrapping_mul(0x9e37_79b9) >> 7 & 0xff
                });
            }
        }
        numbers
    }
}

impl Schedule {
    pub fn new(moves: Vec<Move>) -> Schedule {
        Schedule { moves, room: 4, order: Order::Linear }
    }
}

fn any_move() -> impl Strategy<Value = Move> {
    // A prologue is about sixty instructions, so short turns end in the middle of one.
    let budget = prop_oneof![1u16..70, 70u16..3000];
    prop_oneof![
        4 => Just(Move::Start),
        8 => (any::<u8>(), budget).prop_map(|(which, budget)| Move::Run { which, budget }),
        1 => Just(Move::Raise),
        1 => Just(Move::Lower),
    ]
}

pub fn any_schedule() -> impl Strategy<Value = Schedule> {
    (prop::collection::vec(any_move(), 0..160), 1..6usize).prop_map(|(moves, room)| Schedule {
        moves,
        room,
        order: Order::Linear,
    })
}

/// Orders of events to which the results of a kernel must be indifferent: the extremes, and some drawn ones. Under the
/// ordered rule blocks begin in order.
pub fn orders(rule: Rule, drawn: u64) -> Vec<Schedule> {
    let mut runner = TestRunner::deterministic();
    let one_by_one = |order| Schedule { room: 1, order, ..Schedule::new(Vec::new()) };
    let mut orders = vec![one_by_one(Order::Linear)];
    if rule == Rule::Plain {
        orders.push(one_by_one(Order::Reverse));
    }
    for seed in 0..drawn {
        let order = if rule == Rule::Plain { Order::Shuffled(seed) } else { Order::Linear };
        let tree = any_schedule().new_tree(&mut runner).expect("schedules can be drawn");
        orders.push(Schedule { order, ..tree.current() });
    }
    orders
}
