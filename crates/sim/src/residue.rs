//! What is left of a kernel when it has to leave.
//!
//! Blocks that have started finish, no others start. Waves of equal blocks begin and end together, so that all of the room is free
//! after what the wave has left. The more waves have run and the more blocks differ, the less is left of that: in the end some
//! block finishes at any moment, the first at once and the last after a whole one. Room is taken to become free evenly
//! between the two, so who needs a part of the card waits for that part.

use model::Nanos;

use crate::StopAt;
use crate::cursor::{Cursor, Running};
use crate::score::Score;

/// From the moment at which blocks see that they must leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Residue {
    /// When the first room is free.
    pub first: Nanos,
    /// When all of it is.
    pub last: Nanos,
    /// The work done by then, from the job's begin; less than it was if some has to be done again.
    pub done: u64,
}

impl Residue {
    /// `rate`: which part of the room the kernel has. Its blocks are not slower for that, but fewer run at a time.
    pub fn of(cursor: &Cursor, score: &Score, running: Running, whole: bool, rate: f64) -> Residue {
        let grid = &score.grids[running.kernel];
        let before = cursor.scaled(score.work[running.kernel]);
        let end = cursor.scaled(score.work[running.kernel + 1]);
        let left = (end - before).saturating_sub(running.into);
        let at_once = |span: u64, done| Residue { first: Nanos(span), last: Nanos(span), done };
        match grid.stop {
            _ if whole => at_once(left, end),
            StopAt::Kernel => at_once(left, end),
            StopAt::Anywhere { redo } => {
                let from = running.kernel.saturating_sub(redo as usize);
                at_once(0, cursor.scaled(score.work[from]))
            }
            StopAt::Piece | StopAt::Block => {
                let block = cursor.scaled(grid.block).max(1);
                let (waves, phase) = (running.into / block, running.into % block);
                let wave = (block - phase).min(left);
                let spread = if grid.stop == StopAt::Block { grid.spread } else { 0.0 };
                let blur = (waves as f64 * spread).min(1.0);
                let slowest = block as f64 * (1.0 + spread);
                Residue {
                    first: Nanos((wave as f64 * (1.0 - blur)) as u64),
                    last: Nanos((wave as f64 + (slowest - wave as f64).max(0.0) * blur) as u64),
                    done: before + running.into + (wave as f64 * rate) as u64,
                }
            }
        }
    }

    /// The same work, in more time.
    pub fn stretched(self, by: f64) -> Residue {
        let longer = |span: Nanos| if by == 1.0 { span } else { Nanos((span.0 as f64 * by) as u64) };
        Residue { first: longer(self.first), last: longer(self.last), ..self }
    }
}
