//! Keeping away from requests, in the isolated domain: what `policy::aside` needs to know, and the lever.
//!
//! How long the lever takes is known by pulling it. Before, it is thought to take what it does on an H200; where it takes next to nothing,
//! as on a software GPU, it is still not pulled for what is over sooner than a switch there and back.
//!
//! That a request begins is heard where something would follow from it: a tenant whose requests are shorter than the lever takes
//! is not asked to ring for each, and one that lasts long nevertheless is found by looking now and then.

use board::{Seat, Terms};
use model::{Nanos, Rung};
use policy::aside::Aside;
use telemetry::What;

use super::decision;
use super::lever::{Lever, Refusal};
use super::tell::{tell_only, tell_only_decided};

/// How long the hardware takes to leave whatever runs.
pub const SWITCH: Nanos = Nanos::from_micros(200);
/// What stopping takes, before it is known.
const STOP: Nanos = Nanos::from_micros(600);
/// Whatever was measured, the lever is thought to take no less, and no more: a call that was interrupted is no measure.
const LEAST: Nanos = Nanos::from_micros(400);
const MOST: Nanos = Nanos::from_millis(5);
/// A latency tenant that had no work for so long is taken to have left.
const A_WHILE: Nanos = Nanos::from_millis(1_000);
/// How often it is looked for what nobody tells, while requests come.
const LOOK: Nanos = Nanos::from_millis(5);

/// How long it takes to stop by the lever.
pub struct Price(Nanos);

impl Price {
    pub fn new() -> Price {
        Price(STOP)
    }

    pub fn stop(&mut self, lever: Lever, seat: &Seat) -> Result<(), Refusal> {
        let began = board::now();
        tell_only(What::Stopping { rung: Rung::Switch });
        let done = lever.stop();
        let took = board::now().since(began);
        self.learn(took);
        if done.is_ok() {
            seat.tally().switch_times.record(took);
        }
        tell_only(match done {
            Ok(()) => What::Stopped { rung: Rung::Switch, took },
            Err(_) => What::Resumed { rung: Rung::Switch },
        });
        done
    }

    pub fn get(&self) -> Nanos {
        self.0.clamp(LEAST, MOST)
    }

    /// One call that took long changes little.
    fn learn(&mut self, took: Nanos) {
        self.0 = Nanos((self.0.0.saturating_mul(3) + took.min(MOST).0) / 4);
    }

    /// What to do now, by the policy of the GPU; says on the board what that decided.
    pub fn look(&self, seat: &Seat, terms: &Terms, is_off: bool, now: Nanos) -> Aside {
        decision::decide(seat, terms, true, SWITCH, now, |view, decision| {
            seat.say_decision(decision.why as u8, decision.longest_at(now));
            let aside = policy::aside::settle(view, decision, seat.place().seat.into(), is_off, self.get());
            tell_only_decided(decision.why, !aside.off, decision.longest_at(now));
            aside
        })
    }

    /// Whether it is worth hearing that a request begins.
    pub fn is_worth_hearing(&self, seat: &Seat, now: Nanos) -> bool {
        let bears = decision::beside(seat.board()) >= SWITCH;
        let may_last = |usual: Nanos| usual == Nanos::ZERO || usual >= self.get();
        !bears
            && seat
                .board()
                .latency_tenants(now)
                .any(|tenant| may_last(tenant.usual.max(tenant.outlook.spell)))
    }

    /// How long to sleep for one who would not hear it. `None`: there is nobody to be heard.
    pub fn look_unheard(&self, seat: &Seat, now: Nanos) -> Option<Nanos> {
        let lately = seat.board().latency_last_active(now).is_some_and(|last| now.since(last) < A_WHILE);
        lately.then_some(LOOK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_is_learned_and_stays_within_bounds() {
        let mut price = Price::new();
        (0..100).for_each(|_| price.learn(Nanos::from_micros(900)));
        assert!(price.get() > Nanos::from_micros(890) && price.get() <= Nanos::from_micros(900));
        (0..100).for_each(|_| price.learn(Nanos::MAX));
        assert!(price.get() > MOST.scaled(99, 100) && price.get() <= MOST);
        (0..100).for_each(|_| price.learn(Nanos::ZERO));
        assert_eq!(price.get(), LEAST);
    }
}
