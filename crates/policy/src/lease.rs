//! The short slice as a lease: a best-effort tenant keeps it only while its work gets done.
//!
//! With a slice of 1 µs the hardware leaves a tenant as soon as anybody else has work. That is harmless while the others
//! leave gaps, and while no two such tenants meet. But two that do not know of each other (two users, two containers, an
//! older ebb, other software that sets slices) bring each other to a standstill: on an H200 nothing at all is finished with
//! slices of up to 50 µs on both sides. So the slice is lengthened when nothing gets done, and the short one is tried
//! again after a pause that grows with each failure. No cooperation is needed.
//!
//! Between the short and the long slice the lease decides by rates: how much is handed over per time on the GPU, which a
//! program cannot keep up unless earlier work is finished. Alone, the slice makes no difference. Beside another long
//! slice, the short one gets about a tenth of what the long one gets. The slice that is not in force is tried now and
//! then, so that a tenant that is slow for this reason finds out, and one that is alone again goes back. A trial of the
//! long slice can delay a request by its length, so the long slice is tried only where a tenant may meet somebody that it
//! cannot know of ([`Company::Unknown`]).
//!
//! A program without ebb is different, and so is a latency tenant of another daemon: best-effort work yields to them, as
//! nice(1) does. Where the daemon knows that such a program has the GPU, the short slice is kept, unless the user has set a
//! time after which starving ends ([`Company::Yield`]). Beside a program that leaves no gaps even the short slice is not
//! free: the hardware switches there and back in every round, which took a training on an H200 a fifth of its speed, and
//! nothing got done. So a tenant that gets nothing done beside others *rests*: it is off the GPU but for a short look now
//! and then ([`SliceLease::rests`]).

use model::Nanos;

use crate::slice;

/// The slices that are tried in turn when nothing gets done. Measured for two equal tenants: 0.4 and 0.48 of alone each.
pub const STEPS: [Nanos; 2] = [Nanos::from_micros(512), slice::DEFAULT];

/// Work that stands still for less than this is never taken for stuck: a training step may be launched ahead and waited for.
pub const SHORTEST_PATIENCE: Nanos = Nanos::from_millis(120);
/// Work that stands still for longer than this always is, however long the program's kernels are.
pub const LONGEST_PATIENCE: Nanos = Nanos::from_millis(2_000);
/// For how long on the GPU a slice is tried before it is judged.
pub const TRIAL: Nanos = Nanos::from_millis(200);
/// The pause before the other slice is tried, at first and at most.
pub const FIRST_PAUSE: Nanos = Nanos::from_millis(1_000);
pub const LONGEST_PAUSE: Nanos = Nanos::from_millis(64_000);
/// A slice must be this many times better to take the place of the short one.
const BETTER: u64 = 3;
/// Work that stands still for this long beside others rests, and comes back for a look of [`GLANCE`] in every [`RESTING_ROUND`].
const RESTLESS: Nanos = Nanos::from_millis(300);
const RESTING_ROUND: Nanos = Nanos::from_millis(500);
const GLANCE: Nanos = Nanos::from_millis(50);
/// While it is starving, a tenant takes an ordinary slice for one part of this many of the time.
const STARVING_PARTS: u64 = 10;
/// One round of that.
const STARVING_ROUND: Nanos = Nanos::from_millis(1_000);

/// Who else may be on the GPU that the tenant's board does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Company {
    /// Somebody may be there: in another container for instance, or because the GPU's lock is out of reach.
    #[default]
    Unknown,
    /// The tenant has the GPU's lock, and all processes on the GPU are known. A standstill is then still a standstill, but
    /// there is nobody for whose sake a longer slice could be tried.
    Nobody,
    /// Programs to which best-effort work yields. After `starve_after` without progress it takes an ordinary slice for a
    /// tenth of the time.
    Yield { starve_after: Option<Nanos> },
}

/// What has happened since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// For how long the tenant could have been on the GPU: it had work, held the token, was not stopped, and no latency
    /// tenant of its board had work.
    pub ran: Nanos,
    /// How much was handed over.
    pub given: u64,
    /// Everything that was handed over is done.
    pub done: bool,
}

/// Which slice is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InForce {
    Short,
    Long(usize),
}

/// How much was handed over in how much time on the GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rate {
    given: u64,
    ran: Nanos,
}

impl Rate {
    fn add(&mut self, progress: &Progress) {
        self.given = self.given.saturating_add(progress.given);
        self.ran = Nanos(self.ran.0.saturating_add(progress.ran.0));
        // The last second counts.
        if self.ran.0 > 5 * TRIAL.0 {
            *self = Rate { given: self.given / 2, ran: Nanos(self.ran.0 / 2) };
        }
    }

    /// Whether this is at least `times / of` of the other.
    fn is_at_least(&self, times: u64, of: u64, other: &Rate) -> bool {
        let wide = |given: u64, ran: Nanos, factor: u64| {
            u128::from(given).saturating_mul(u128::from(ran.0)).saturating_mul(u128::from(factor))
        };
        wide(self.given, other.ran, of) >= wide(other.given, self.ran, times)
    }
}

/// The lease of one tenant. A plain value: it is handed in and back, and knows no clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceLease {
    in_force: InForce,
    /// The other slice is being tried, and this is what came of it so far.
    trial: Option<Rate>,
    rate: Rate,
    /// For how long on the GPU nothing has moved.
    still: Nanos,
    /// The longest that the tenant's own work has stood still with the short slice and then gone on.
    explained: Nanos,
    pause: Nanos,
    /// When the other slice is tried next.
    next_trial: Nanos,
    starving_since: Option<Nanos>,
    /// Since when nothing has moved beside others to which it yields.
    idle_beside: Option<Nanos>,
    /// How often the slice was lengthened because nothing got done.
    lengthened: u64,
}

impl Default for SliceLease {
    fn default() -> SliceLease {
        SliceLease {
            in_force: InForce::Short,
            trial: None,
            rate: Rate::default(),
            still: Nanos::ZERO,
            explained: Nanos::ZERO,
            pause: FIRST_PAUSE,
            next_trial: Nanos::ZERO,
            starving_since: None,
            idle_beside: None,
            lengthened: 0,
        }
    }
}

impl SliceLease {
    /// The slice to have now.
    pub fn slice(&self, now: Nanos) -> Nanos {
        if self.takes_its_part(now) {
            return slice::DEFAULT;
        }
        match (self.in_force, self.trial.is_some()) {
            (InForce::Short, false) | (InForce::Long(_), true) => slice::BEST_EFFORT,
            (InForce::Short, true) => STEPS[0],
            (InForce::Long(step), false) => STEPS[step.min(STEPS.len() - 1)],
        }
    }

    /// Whether the slice is longer because work did not get done with the short one.
    pub fn is_lengthened(&self) -> bool {
        matches!(self.in_force, InForce::Long(_))
    }

    /// How often that happened.
    pub fn lengthened(&self) -> u64 {
        self.lengthened
    }

    /// Since when nothing gets done beside programs without ebb.
    pub fn starving_since(&self) -> Option<Nanos> {
        self.starving_since
    }

    /// How long the tenant's work may stand still before it is taken for stuck.
    pub fn patience(&self) -> Nanos {
        Nanos(self.explained.0.saturating_mul(2)).clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE)
    }

    /// Somebody is known to be on the GPU out of turn: the long slice at once.
    pub fn expect_company(&mut self, now: Nanos) {
        if self.in_force == InForce::Short {
            self.lengthen(now);
        }
    }

    /// One look.
    pub fn look(&mut self, progress: &Progress, company: Company, now: Nanos) {
        let moved = progress.given > 0 || progress.done;
        if let Company::Yield { starve_after } = company {
            return self.yield_to_others(moved, progress, starve_after, now);
        }
        (self.starving_since, self.idle_beside) = (None, None);
        if progress.ran == Nanos::ZERO && progress.given == 0 {
            return;
        }
        match &mut self.trial {
            Some(rate) => rate.add(progress),
            None => self.rate.add(progress),
        }
        let still = self.still;
        self.still = if moved { Nanos::ZERO } else { Nanos(still.0.saturating_add(progress.ran.0)) };
        if moved && self.trial.is_none() && self.in_force == InForce::Short {
            self.explained = still.max(Nanos(self.explained.0 - self.explained.0 / 64));
        }
        if progress.done {
            // Work that comes and goes says nothing about rates, and nothing is stuck.
            self.trial = None;
            return;
        }
        if self.still >= self.patience() {
            self.still = Nanos::ZERO;
            return self.nothing_gets_done(now);
        }
        self.try_the_other(company, now);
    }

    fn nothing_gets_done(&mut self, now: Nanos) {
        match (self.in_force, self.trial.is_some()) {
            // The short slice was only tried.
            (InForce::Long(_), true) => self.end_trial(false, now),
            (InForce::Short, _) => self.lengthen(now),
            (InForce::Long(step), false) => {
                self.in_force = InForce::Long((step + 1).min(STEPS.len() - 1));
                self.rate = Rate::default();
            }
        }
    }

    fn lengthen(&mut self, now: Nanos) {
        self.lengthened = self.lengthened.saturating_add(1);
        self.adopt(InForce::Long(0), now);
    }

    fn adopt(&mut self, in_force: InForce, now: Nanos) {
        self.in_force = in_force;
        self.trial = None;
        self.rate = Rate::default();
        self.still = Nanos::ZERO;
        self.pause = FIRST_PAUSE;
        self.next_trial = now + self.pause;
    }

    fn try_the_other(&mut self, company: Company, now: Nanos) {
        match self.trial {
            _ if self.in_force == InForce::Short && company == Company::Nobody => self.trial = None,
            None if self.next_trial == Nanos::ZERO => self.next_trial = now + self.pause,
            None if now >= self.next_trial && self.rate.ran >= TRIAL => self.trial = Some(Rate::default()),
            Some(tried) if tried.ran >= TRIAL => {
                let other_is_right = match self.in_force {
                    InForce::Short => tried.given > 0 && tried.is_at_least(BETTER, 1, &self.rate),
                    InForce::Long(_) => tried.is_at_least(1, 2, &self.rate),
                };
                self.end_trial(other_is_right, now);
            }
            _ => {}
        }
    }

    fn end_trial(&mut self, other_is_right: bool, now: Nanos) {
        match (other_is_right, self.in_force) {
            (true, InForce::Short) => self.lengthen(now),
            (true, InForce::Long(_)) => self.adopt(InForce::Short, now),
            (false, _) => {
                self.trial = None;
                self.pause = Nanos(self.pause.0.saturating_mul(2)).min(LONGEST_PAUSE);
                self.next_trial = now + self.pause;
            }
        }
    }

    fn yield_to_others(&mut self, moved: bool, progress: &Progress, starve_after: Option<Nanos>, now: Nanos) {
        if self.in_force != InForce::Short || self.trial.is_some() {
            self.adopt(InForce::Short, now);
        }
        self.idle_beside = if moved { None } else { self.idle_beside.or(Some(now)) };
        let idle = self.idle_beside.map_or(Nanos::ZERO, |since| now.since(since));
        let starves = starve_after.is_some_and(|after| idle >= after);
        match self.starving_since {
            None if starves => self.starving_since = Some(now),
            Some(_) if starve_after.is_none() || progress.done => self.starving_since = None,
            _ => {}
        }
    }

    /// Whether the tenant should be off the GPU now, because nothing gets done beside those to whom it yields.
    pub fn rests(&self, now: Nanos) -> bool {
        let still = self.idle_beside.map_or(Nanos::ZERO, |since| now.since(since));
        let glance = still.0 % RESTING_ROUND.0 < GLANCE.0;
        still >= RESTLESS && !glance && !self.takes_its_part(now)
    }

    /// Whether a starving tenant has its part of the time now.
    fn takes_its_part(&self, now: Nanos) -> bool {
        self.starving_since
            .is_some_and(|since| now.since(since).0 % STARVING_ROUND.0 < STARVING_ROUND.0 / STARVING_PARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOK: Nanos = Nanos::from_millis(20);

    /// A GPU made of rates: what a tenant hands over in a look with a slice.
    struct World {
        now: Nanos,
        lease: SliceLease,
    }

    impl World {
        fn new() -> World {
            World { now: Nanos::from_millis(1), lease: SliceLease::default() }
        }

        fn look(&mut self, company: Company, given: impl Fn(Nanos) -> u64) {
            let slice = self.lease.slice(self.now);
            self.now += LOOK;
            let progress = Progress { ran: LOOK, given: given(slice), done: false };
            self.lease.look(&progress, company, self.now);
        }

        fn run(&mut self, looks: usize, given: impl Fn(Nanos) -> u64) {
            (0..looks).for_each(|_| self.look(Company::Unknown, &given));
        }
    }

    /// Beside a tenant that has lengthened its slice.
    fn beside_long(slice: Nanos) -> u64 {
        if slice == slice::BEST_EFFORT { 4 } else { 35 }
    }

    #[test]
    fn alone_the_short_slice_is_kept() {
        let mut world = World::new();
        world.run(10_000, |_| 80);
        assert!(!world.lease.is_lengthened());
        assert_eq!(world.lease.lengthened(), 0);
    }

    #[test]
    fn who_has_the_lock_and_knows_everybody_never_tries_the_long_slice() {
        let mut world = World::new();
        for _ in 0..10_000 {
            world.look(Company::Nobody, |_| 80);
            assert_eq!(world.lease.slice(world.now), slice::BEST_EFFORT);
        }
        let mut world = World::new();
        (0..20).for_each(|_| world.look(Company::Nobody, |_| 0));
        assert!(world.lease.is_lengthened(), "a standstill is a standstill");
    }

    #[test]
    fn a_standstill_lengthens_the_slice_within_a_quarter_of_a_second_of_running() {
        let mut world = World::new();
        world.run(12, |slice| if slice == slice::BEST_EFFORT { 0 } else { 30 });
        assert!(world.lease.is_lengthened());
        assert_eq!(world.lease.slice(world.now), STEPS[0]);
    }

    #[test]
    fn a_standstill_that_goes_on_takes_the_next_step() {
        let mut world = World::new();
        world.run(40, |_| 0);
        assert_eq!(world.lease.slice(world.now), STEPS[1]);
    }

    #[test]
    fn a_tenant_that_is_only_slow_beside_a_long_slice_finds_out() {
        let mut world = World::new();
        world.run(100, beside_long);
        assert!(world.lease.is_lengthened());
    }

    #[test]
    fn the_short_slice_is_tried_again_with_growing_pauses() {
        let mut world = World::new();
        let mut trials = 0;
        for _ in 0..15_000 {
            world.run(1, beside_long);
            trials += u32::from(world.lease.is_lengthened() && world.lease.trial.is_some());
        }
        assert!(world.lease.is_lengthened());
        // Each takes ten looks; in 300 s there is room for a trial a second, and there are few.
        assert!((10..=150).contains(&trials), "{trials} looks with a trial");
    }

    #[test]
    fn alone_again_the_short_slice_comes_back() {
        let mut world = World::new();
        world.run(100, |slice| if slice == slice::BEST_EFFORT { 0 } else { 30 });
        assert!(world.lease.is_lengthened());
        world.run(3_500, |_| 80);
        assert!(!world.lease.is_lengthened());
    }

    #[test]
    fn long_kernels_explain_a_standstill_after_the_first() {
        let mut world = World::new();
        // A kernel takes 400 ms.
        for _ in 0..50 {
            world.run(19, |_| 0);
            world.run(1, |_| 1);
        }
        let before = world.lease.lengthened();
        for _ in 0..500 {
            world.run(19, |_| 0);
            world.run(1, |_| 1);
        }
        assert!(world.lease.lengthened() - before <= 5, "{}", world.lease.lengthened() - before);
    }

    #[test]
    fn beside_a_program_without_ebb_the_short_slice_is_kept() {
        let mut world = World::new();
        (0..2_000).for_each(|_| world.look(Company::Yield { starve_after: None }, |_| 0));
        assert_eq!(world.lease.slice(world.now), slice::BEST_EFFORT);
        assert_eq!(world.lease.lengthened(), 0);
    }

    #[test]
    fn who_gets_nothing_done_beside_others_rests_most_of_the_time() {
        let mut world = World::new();
        let company = Company::Yield { starve_after: None };
        let mut rested = 0;
        for _ in 0..1_000 {
            world.look(company, |_| 0);
            rested += u32::from(world.lease.rests(world.now));
        }
        assert!((850..=950).contains(&rested), "{rested} of 1,000 looks");
        world.look(company, |_| 5);
        assert!(!world.lease.rests(world.now), "something got done");
        (0..100).for_each(|_| world.look(company, |_| 0));
        world.look(Company::Nobody, |_| 0);
        assert!(!world.lease.rests(world.now), "they are gone");
    }

    #[test]
    fn a_starving_tenant_takes_a_tenth_of_the_time() {
        let mut world = World::new();
        let company = Company::Yield { starve_after: Some(Nanos::from_millis(1_000)) };
        let mut ordinary = 0;
        for _ in 0..5_050 {
            world.look(company, |_| 0);
            ordinary += u32::from(world.lease.slice(world.now) == slice::DEFAULT);
        }
        assert!((450..=550).contains(&ordinary), "{ordinary} of 5,000 looks");
    }
}
