//! Blocks that do not leave.
//!
//! Some kernels have blocks that wait for others: for lower-numbered ones of the same grid, or for another stream's kernel.
//! If those were turned away, whoever waits for them stays on the GPU, and its lane never arrives at a gate. Most such
//! kernels are known beforehand and cut in order (`guard::machine`). For the rest this is the second line: what does not
//! arrive in time is given what it waits for, on the rescue stream, with a stop word that is always zero. In a lane that
//! has not arrived only one launch can have blocks on the GPU while others of it were turned away, the first that was cut:
//! behind it all leave whole. The same may happen to a launch that is made again, on the helper stream, and is stopped there; then
//! nothing of that stream is ever done, and its job is what is late. If it helped, the kernel is not guarded any more.
//!
//! A block that has found nothing in its way says that it runs a moment later. Who makes the launch again within that moment runs it
//! twice. So a launch is given blocks only when it has been seen to be cut for much longer than such a moment may last ([`Sightings`]):
//! what was cut begins no more blocks. How long the lane has not arrived says nothing about that, for it may have run all that time.
//!
//! And it is given blocks once. Then all of them have run or do, and what is on the GPU leaves in its own time. Under the ordered rule
//! a second time would even do harm: attempts take turns with two cells, and the third would clear that of the first, by
//! which blocks of it still leave.

use model::Nanos;

use super::control::{Aways, LANES};
use super::job::{Job, Part, Plan};
use super::lane::Lane;
use super::resume::is_still;
use super::site::Site;

/// Longer than any block that can sensibly be stopped at its end, and than a processor may be kept from one that it plays.
const PATIENCE: Nanos = Nanos::from_millis(250);
/// How often to look, once things stand still.
const LOOK: Nanos = Nanos::from_millis(50);

pub fn is_due(since: Nanos, now: Nanos) -> bool {
    now.since(since) > PATIENCE
}

/// When which launch was first seen to be cut, in each lane and, behind them, on the helper stream and on the siding.
pub struct Sightings {
    cut: [(u32, Nanos); PLACES],
    /// Which launch was given its blocks.
    given: [u32; PLACES],
    last: Nanos,
}

const HELPER: usize = LANES;
const SIDING: usize = LANES + 1;
const PLACES: usize = LANES + 2;

impl Sightings {
    pub const fn new() -> Sightings {
        Sightings { cut: [(0, Nanos::ZERO); PLACES], given: [0; PLACES], last: Nanos::ZERO }
    }

    /// Whether to look, when nothing has come anywhere since then.
    pub fn are_due(&self, still: Nanos, now: Nanos) -> bool {
        now.since(still) > LOOK && now.since(self.last) > LOOK
    }

    pub fn look(&mut self, aways: &Aways<'_>, now: Nanos) {
        self.last = now;
        (0..LANES).for_each(|number| self.see(number, aways.lane(number), now));
        self.see(HELPER, aways.helper(), now);
        self.see(SIDING, aways.siding(), now);
    }

    fn see(&mut self, number: usize, serial: u32, now: Nanos) {
        if self.cut[number].0 != serial {
            self.cut[number] = (serial, now);
        }
    }

    /// The launch that has been seen to be cut for long, told once.
    fn take(&mut self, number: usize, now: Nanos) -> Option<u32> {
        let (serial, since) = self.cut[number];
        let due = serial != 0 && serial != self.given[number] && is_due(since, now);
        due.then(|| {
            self.given[number] = serial;
            serial
        })
    }
}

/// What to make again, for lanes that should have arrived at these gates, and for jobs, of the helper and of the siding, that should
/// be done.
pub fn plan(
    site: &'static Site,
    targets: &[u32; LANES],
    jobs: [Option<&Job>; 2],
    sightings: &mut Sightings,
    now: Nanos,
) -> Plan {
    let late = |lane: Lane| !is_still(lane, targets[lane.number()]);
    let mut plan = Plan::new();
    if jobs.iter().all(Option::is_none) && !site.lanes().any(late) {
        return plan;
    }
    for (job, place) in jobs.iter().zip([HELPER, SIDING]) {
        // The same launch may have been cut in the job before.
        if let Some(job) = job.filter(|job| is_due(job.began, now))
            && let Some(serial) = sightings.take(place, now)
            && let Some(lane) = job.lane_of(site, serial)
        {
            plan.add(lane, Part::First, serial);
        }
    }
    for lane in site.lanes() {
        // What a job has of a lane waits for the job.
        if jobs.iter().flatten().any(|job| job.has(lane.number())) {
            continue;
        }
        if lane.arrived() != lane.passed() {
            // Nothing of it is on the GPU, and others may wait for it.
            let away = sightings.cut[lane.number()].0;
            if away != 0 {
                plan.add(lane, Part::All, away);
            }
        } else if let Some(serial) = sightings.take(lane.number(), now) {
            plan.add(lane, Part::First, serial);
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_that_was_cut_for_long_is_given_its_blocks_once() {
        let (mut sightings, at) = (Sightings::new(), Nanos::from_millis);
        for now in [1_000, 1_050, 1_200] {
            sightings.see(3, 7, at(now));
            assert_eq!(sightings.take(3, at(now)), None, "it may have been cut a moment ago");
        }
        assert_eq!(sightings.take(3, at(1_300)), Some(7));
        assert_eq!(sightings.take(3, at(9_000)), None, "it has them");
        sightings.see(3, 0, at(9_000));
        assert_eq!(sightings.take(3, at(9_900)), None, "nothing is cut");
        sightings.see(3, 8, at(10_000));
        assert_eq!([at(10_100), at(10_300)].map(|now| sightings.take(3, now)), [None, Some(8)]);
    }

    #[test]
    fn patience_is_bounded() {
        assert!(!is_due(Nanos::from_millis(10), Nanos::from_millis(200)));
        assert!(is_due(Nanos::from_millis(10), Nanos::from_millis(300)));
    }
}
