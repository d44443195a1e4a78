//! Best-effort work that does not have the card to itself, or may not start everything: kernel by kernel.

use model::Nanos;
use policy::Decision;

use super::pace::SLOWEST;
use crate::cursor::Cursor;
use crate::lane::Lane;
use crate::rate::Rate;
use crate::score::{ONE, Score, whole};
use crate::{Costs, StopAt};

/// Kernel by kernel: best-effort work at a rate, of which only what is admitted is started.
pub(super) fn crawl(
    lane: &mut Lane,
    from: Nanos,
    to: Nanos,
    rate: Rate,
    grant: &Decision,
    costs: &Costs,
) -> Nanos {
    let before = lane.busy;
    // What can only be held is not made again elsewhere.
    let certain = grant.longest >= lane.certificate && !(rate.is_confined() && lane.score.holds);
    if certain {
        lane.track.ask(&lane.score, rate);
    }
    let mut now = from;
    loop {
        if rate.of_alone < SLOWEST {
            break;
        }
        if lane.cursor.is_none() {
            if lane.next_begin() > to {
                break;
            }
            now = now.max(lane.next_begin());
            lane.begin(now);
        }
        let Some(cursor) = &mut lane.cursor else { break };
        let start = now.max(cursor.goes_on(&lane.score));
        if start >= to {
            break;
        }
        let done = cursor.done();
        if certain && cursor.factor == ONE && done == lane.score.work[cursor.kernel()] {
            let moment = cursor.sprint(&lane.score, &lane.track, now, to, rate);
            if cursor.done() > done {
                lane.busy += Nanos(cursor.done() - done);
                if cursor.is_over(&lane.score) {
                    lane.finish(moment);
                }
                now = moment;
                continue;
            }
        }
        let (moment, reached) = step(cursor, &lane.score, start, to, rate, grant, costs);
        cursor.set_done(&lane.score, reached);
        cursor.passed(&lane.score, cursor.kernel(), moment);
        lane.busy += Nanos(reached - done);
        if cursor.is_over(&lane.score) {
            lane.finish(moment);
        } else if reached == done || moment >= to {
            break;
        }
        now = moment;
    }
    if let Some(cursor) = &mut lane.cursor {
        // Whatever has not been done by now is done later.
        cursor.resume(&lane.score, to);
    }
    lane.busy - before
}

/// One kernel, from `start`: until when it ran, and the work done by then. It ends, or time is up, or it has to leave by itself.
fn step(
    cursor: &Cursor,
    score: &Score,
    start: Nanos,
    to: Nanos,
    rate: Rate,
    grant: &Decision,
    costs: &Costs,
) -> (Nanos, u64) {
    let kernel = cursor.kernel();
    let grid = &score.grids[kernel];
    let done = cursor.done();
    let end = cursor.scaled(score.work[kernel + 1]);
    let certificate = costs.flag + Nanos(cursor.scaled(grid.longest_residue()));
    let refused = certificate > grant.longest_at(start) || rate.is_confined() && grid.stop == StopAt::Kernel;
    if done == cursor.scaled(score.work[kernel]) && refused {
        return (start, done);
    }
    let rate = rate.of(grid);
    let span = Nanos(whole((end - done) as f64 / rate));
    let leaves = match grid.stop {
        StopAt::Kernel => Nanos::MAX,
        _ => grant.leaves_at(certificate).max(start),
    };
    let reached = |at: Nanos| done + whole(at.since(start).0 as f64 * rate);
    if start + span <= to.min(leaves) {
        (start + span, end)
    } else if to <= leaves {
        (to, reached(to).min(end))
    } else {
        // It leaves at a boundary of blocks, after the moment at which it was told to by its own clock.
        let (block, first) = (cursor.scaled(grid.block).max(1), cursor.scaled(score.work[kernel]));
        let boundary = (reached(leaves) - first).next_multiple_of(block) + first;
        (to, boundary.clamp(done, end))
    }
}
