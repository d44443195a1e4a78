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
//! cannot know of ([`GpuCompany::Unknown`]).
//!
//! A program without ebb is different, and so is a latency tenant of another daemon: best-effort work yields to them, as
//! nice(1) does. Where the daemon knows that such a program has the GPU, the short slice is kept, unless the user has set a
//! time after which starving ends ([`GpuCompany::Yield`]). Beside a program that leaves no gaps even the short slice is not
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
/// Work that stands still for this long with a long slice gets the next longer one.
const LONG_PATIENCE: Nanos = Nanos::from_millis(1_000);
/// For how long on the GPU a slice is tried before it is judged, at least; and for as long as so many of the tenant's own
/// standstills.
pub const TRIAL: Nanos = Nanos::from_millis(200);
const TRIAL_STANDSTILLS: u64 = 3;
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
pub enum GpuCompany {
    /// Somebody may be there: in another container for instance, or because the GPU's lock is out of reach.
    #[default]
    Unknown,
    /// The tenant has the GPU's lock, and all processes on the GPU are known. A standstill is then still a standstill, but
    /// there is nobody for whose sake a longer slice could be tried.
    Nobody,
    /// Programs to which best-effort work yields. Where they `fill` the GPU nothing is left, and the tenant rests; after
    /// `starve_after` without progress it takes an ordinary slice for a tenth of the time.
    Yield { fill: bool, starve_after: Option<Nanos> },
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
    /// Of about the last five trials.
    fn add(&mut self, progress: &Progress, trial: Nanos) {
        self.given = self.given.saturating_add(progress.given);
        self.ran = Nanos(self.ran.0.saturating_add(progress.ran.0));
        if self.ran.0 > trial.0.saturating_mul(5) {
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
    /// For how long on the GPU nothing has moved with the slice that it has.
    still: Nanos,
    /// The longest that the tenant's own work has stood still with one slice and then gone on.
    explained: Nanos,
    /// Pauses until the short slice is tried while the long one is in force, and the other way round.
    until_short: Nanos,
    until_long: Nanos,
    /// When the other slice is tried next.
    next_trial: Nanos,
    /// Since when the slice is short again.
    short_again: Option<Nanos>,
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
            until_short: FIRST_PAUSE,
            until_long: FIRST_PAUSE,
            next_trial: Nanos::ZERO,
            short_again: None,
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
    pub fn look(&mut self, progress: &Progress, company: GpuCompany, now: Nanos) {
        let moved = progress.given > 0 || progress.done;
        if let GpuCompany::Yield { fill, starve_after } = company {
            return self.yield_to_others(moved || !fill, progress.done, starve_after, now);
        }
        (self.starving_since, self.idle_beside) = (None, None);
        if progress.ran == Nanos::ZERO && progress.given == 0 {
            return;
        }
        let trial = self.trial_length();
        self.trial.as_mut().unwrap_or(&mut self.rate).add(progress, trial);
        self.stand_still_or_move(moved, progress.ran);
        if progress.done {
            return self.everything_is_done(now);
        }
        if self.still >= self.patience_in_force() {
            return self.nothing_gets_done(now);
        }
        self.try_the_other(company, now);
    }

    /// Who goes on after a standstill while the slice was the same stood still for reasons of its own.
    fn stand_still_or_move(&mut self, moved: bool, ran: Nanos) {
        let still = self.still;
        self.still = if moved { Nanos::ZERO } else { Nanos(still.0.saturating_add(ran.0)) };
        if moved && self.trial.is_none() {
            self.explained = still.max(Nanos(self.explained.0 - self.explained.0 / 64));
        }
    }

    fn patience_in_force(&self) -> Nanos {
        match (self.in_force, self.trial.is_some()) {
            (InForce::Long(_), false) => LONG_PATIENCE,
            _ => self.patience(),
        }
    }

    fn trial_length(&self) -> Nanos {
        Nanos(self.explained.0.saturating_mul(TRIAL_STANDSTILLS)).clamp(TRIAL, LONGEST_PATIENCE)
    }

    /// Work that comes and goes says nothing about rates. Nothing is stuck, and nothing is on the GPU whose slice could matter.
    fn everything_is_done(&mut self, now: Nanos) {
        match self.in_force {
            InForce::Long(_) if now >= self.next_trial => self.shorten(now),
            InForce::Short if self.trial.is_some() => self.next_trial = now + self.until_long,
            _ => {}
        }
        self.trial = None;
    }

    fn nothing_gets_done(&mut self, now: Nanos) {
        match (self.in_force, self.trial.is_some()) {
            // The short slice was only tried.
            (InForce::Long(_), true) => self.end_trial(false, now),
            (InForce::Short, _) => self.lengthen(now),
            (InForce::Long(step), false) if step + 1 < STEPS.len() => {
                self.in_force = InForce::Long(step + 1);
                self.rate = Rate::default();
            }
            (InForce::Long(_), false) => {}
        }
    }

    fn lengthen(&mut self, now: Nanos) {
        self.lengthened = self.lengthened.saturating_add(1);
        // Who has come back to the short slice for a short time only came back too early.
        let relapse =
            self.short_again.is_some_and(|since| now.since(since).0 < self.until_short.0.saturating_mul(2));
        self.until_short = if relapse { doubled(self.until_short) } else { FIRST_PAUSE };
        self.adopt(InForce::Long(0));
        self.next_trial = now + self.until_short;
    }

    fn shorten(&mut self, now: Nanos) {
        self.short_again = Some(now);
        self.until_long = FIRST_PAUSE;
        self.adopt(InForce::Short);
        self.next_trial = now + self.until_long;
    }

    fn adopt(&mut self, in_force: InForce) {
        (self.in_force, self.trial) = (in_force, None);
        (self.rate, self.still) = (Rate::default(), Nanos::ZERO);
    }

    fn try_the_other(&mut self, company: GpuCompany, now: Nanos) {
        let (due, length) = (now >= self.next_trial, self.trial_length());
        match (self.in_force, self.trial) {
            // With nobody there the slice makes no difference.
            (InForce::Short, _) if company == GpuCompany::Nobody => self.trial = None,
            (InForce::Long(_), _) if company == GpuCompany::Nobody && due => self.shorten(now),
            (InForce::Short, None) if self.next_trial == Nanos::ZERO => {
                self.next_trial = now + self.until_long
            }
            (_, None) if due && self.rate.ran >= length => {
                (self.trial, self.still) = (Some(Rate::default()), Nanos::ZERO);
            }
            (in_force, Some(tried)) if tried.ran >= length => {
                let other_is_right = match in_force {
                    InForce::Short => tried.given > 0 && tried.is_at_least(BETTER, 1, &self.rate),
                    InForce::Long(_) => tried.is_at_least(1, 2, &self.rate),
                };
                self.end_trial(other_is_right, now);
            }
            _ => {}
        }
    }

    fn end_trial(&mut self, other_is_right: bool, now: Nanos) {
        let pause = match (other_is_right, self.in_force) {
            (true, InForce::Short) => return self.lengthen(now),
            (true, InForce::Long(_)) => return self.shorten(now),
            (false, InForce::Short) => &mut self.until_long,
            (false, InForce::Long(_)) => &mut self.until_short,
        };
        *pause = doubled(*pause);
        self.next_trial = now + *pause;
        (self.trial, self.still) = (None, Nanos::ZERO);
    }

    /// `has_room`: something got done, or there is room for it.
    fn yield_to_others(&mut self, has_room: bool, done: bool, starve_after: Option<Nanos>, now: Nanos) {
        if self.in_force != InForce::Short || self.trial.is_some() {
            self.shorten(now);
        }
        self.idle_beside = if has_room { None } else { self.idle_beside.or(Some(now)) };
        let idle = self.idle_beside.map_or(Nanos::ZERO, |since| now.since(since));
        let starves = starve_after.is_some_and(|after| idle >= after);
        match self.starving_since {
            None if starves => self.starving_since = Some(now),
            Some(_) if starve_after.is_none() || done => self.starving_since = None,
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

fn doubled(pause: Nanos) -> Nanos {
    Nanos(pause.0.saturating_mul(2)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests;
