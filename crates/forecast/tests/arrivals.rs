//! When the next request comes, for clients of several kinds.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod chance;

use chance::Chance;
use forecast::{Arrivals, Rhythm};
use model::{Forecast, Nanos};
use proptest::prelude::*;

/// A tenant whose requests are played in memory; forecasts are asked for at the end of each, and later by chance.
struct Clients {
    arrivals: Arrivals,
    now: Nanos,
    asked_at_once: Vec<bool>,
    asked_later: Vec<bool>,
    /// Of each pause: how much of it was foreseen.
    foreseen: Vec<f64>,
    chance: Chance,
}

impl Clients {
    fn new(seed: u64) -> Clients {
        let (asked_at_once, asked_later, foreseen) = (Vec::new(), Vec::new(), Vec::new());
        let now = Nanos::from_millis(5);
        Clients {
            arrivals: Arrivals::new(),
            now,
            asked_at_once,
            asked_later,
            foreseen,
            chance: Chance(!seed),
        }
    }

    /// A request that takes so long, and the next one comes then, if this one is over.
    fn request(&mut self, took: Nanos, next: Nanos) {
        self.arrivals.began(self.now);
        let ended = self.now + took;
        self.arrivals.ended(ended);
        let next = next.max(ended);
        let said = self.arrivals.next(ended);
        if said != Forecast::ANY_MOMENT {
            // Who says that it may be any moment cannot be wrong.
            if said.early > ended {
                self.asked_at_once.push(next >= said.early);
            }
            if next > ended {
                self.foreseen.push(said.early.since(ended).0 as f64 / next.since(ended).0 as f64);
            }
            // Somebody looks again at a moment that has nothing to do with what comes.
            let later = ended + self.chance.exponential(said.likely.since(ended));
            if later < next {
                self.asked_later.push(next >= self.arrivals.next(later).early);
            }
        }
        self.now = next;
    }

    fn forget_the_score(&mut self) {
        self.asked_at_once.clear();
        self.asked_later.clear();
        self.foreseen.clear();
    }

    fn assert_calibrated(&self) {
        let at_once = share(&self.asked_at_once);
        assert!(self.asked_at_once.len() < 1_000 || (at_once - 0.9).abs() < 0.02, "{at_once} at once");
        let later = share(&self.asked_later);
        assert!((0.86..0.97).contains(&later), "{later} later");
        let error = self.arrivals.record().error().unwrap();
        assert!(error < 20, "{error}");
    }

    fn foreseen(&self) -> f64 {
        self.foreseen.iter().sum::<f64>() / self.foreseen.len() as f64
    }
}

fn share(kept: &[bool]) -> f64 {
    kept.iter().filter(|&&kept| kept).count() as f64 / kept.len() as f64
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    /// A camera: the next picture comes when it is due, however long the last one took.
    #[test]
    fn a_rhythm_is_recognised_whatever_requests_take(seed: u64) {
        let (mut clients, mut chance) = (Clients::new(seed), Chance(seed));
        let period = Nanos::from_millis(20);
        for tick in 1..4_000 {
            let due = Nanos(period.0 * tick) + chance.jittered(Nanos::from_micros(100), 0.5);
            let took = chance.between(Nanos::from_millis(1), Nanos::from_millis(12));
            clients.request(took, due);
        }
        clients.assert_calibrated();
        prop_assert!(clients.foreseen() > 0.9, "{}", clients.foreseen());
        let Rhythm::Periodic(found) = clients.arrivals.rhythm() else { panic!("it is periodic") };
        prop_assert!(found.0.abs_diff(period.0) < period.0 / 100);
    }

    /// Clients that think after each answer: what is regular is the pause.
    #[test]
    fn pauses_are_recognised_whatever_requests_take(seed: u64) {
        let (mut clients, mut chance) = (Clients::new(seed), Chance(seed));
        for _ in 0..4_000 {
            let took = chance.between(Nanos::from_millis(1), Nanos::from_millis(30));
            let next = clients.now + took + chance.jittered(Nanos::from_millis(4), 0.05);
            clients.request(took, next);
        }
        clients.assert_calibrated();
        prop_assert!(clients.foreseen() > 0.88, "{}", clients.foreseen());
        prop_assert_eq!(clients.arrivals.rhythm(), Rhythm::Irregular);
    }

    /// Customers who know nothing of each other, and wait in line.
    #[test]
    fn customers_without_memory(seed: u64) {
        let (mut clients, mut chance) = (Clients::new(seed), Chance(seed));
        let mut due = clients.now;
        for _ in 0..6_000 {
            due += chance.exponential(Nanos::from_millis(10));
            clients.request(chance.jittered(Nanos::from_millis(2), 0.1), due);
        }
        clients.assert_calibrated();
        prop_assert_eq!(clients.arrivals.rhythm(), Rhythm::Irregular);
        let waited = clients.asked_at_once.len();
        prop_assert!(waited < 2_000, "one in five is waiting already, so at first it may be any moment: {waited}");
    }

    /// Some requests in quick succession, then nothing for long.
    #[test]
    fn bursts(seed: u64) {
        let (mut clients, mut chance) = (Clients::new(seed), Chance(seed));
        for _ in 0..6_000 {
            let pause = match chance.below(6) {
                0 => chance.exponential(Nanos::from_millis(80)) + Nanos::from_millis(20),
                _ => chance.jittered(Nanos::from_micros(800), 0.3),
            };
            let took = chance.jittered(Nanos::from_micros(500), 0.1);
            clients.request(took, clients.now + took + pause);
        }
        clients.assert_calibrated();
    }

    #[test]
    fn a_change_of_regime_is_followed(seed: u64) {
        let (mut clients, mut chance) = (Clients::new(seed), Chance(seed));
        for mean in [20, 4, 60, 10] {
            for _ in 0..1_500 {
                let next = clients.now + Nanos::from_millis(1) + chance.exponential(Nanos::from_millis(mean));
                clients.request(Nanos::from_millis(1), next);
            }
        }
        clients.assert_calibrated();
    }
}

/// Pairs of requests: after a short pause a long one follows, and after a long one a short one.
#[test]
fn what_follows_a_short_pause_is_told_from_what_follows_a_long_one() {
    let (mut clients, mut chance) = (Clients::new(1), Chance(1));
    let mut pair = |clients: &mut Clients| {
        for pause in [1, 30] {
            let next = clients.now + Nanos::from_millis(1) + chance.jittered(Nanos::from_millis(pause), 0.1);
            clients.request(Nanos::from_millis(1), next);
        }
    };
    (0..100).for_each(|_| pair(&mut clients));
    clients.forget_the_score();
    (0..1_000).for_each(|_| pair(&mut clients));
    clients.assert_calibrated();
    assert!(clients.foreseen() > 0.8, "{}", clients.foreseen());
}

#[test]
fn a_server_that_takes_a_moment_between_two_requests_is_waited_for() {
    // Bursts of four, five milliseconds apart; between two of a burst the server is busy with something else.
    let lull = |between: Nanos| {
        let (mut arrivals, mut now) = (Arrivals::new(), us(5_000));
        for request in 0..400u64 {
            arrivals.began(now);
            arrivals.ended(now + us(600));
            now += us(600) + if request % 4 == 3 { us(5_000) } else { between + us(request % 7) };
        }
        arrivals.lull()
    };
    let waited = lull(us(140));
    assert!(waited >= us(146) && waited <= us(170), "{waited}");
    assert_eq!(lull(us(1_000)), Nanos::ZERO, "that is a gap to be used");
    assert_eq!(Arrivals::new().lull(), Nanos::ZERO);
}

#[test]
fn after_a_pause_longer_than_any_the_next_request_may_come_at_any_moment() {
    let mut clients = Clients::new(1);
    for _ in 0..50 {
        clients.request(Nanos::from_millis(1), clients.now + Nanos::from_millis(5));
    }
    clients.arrivals.began(clients.now);
    clients.arrivals.ended(clients.now);
    let late = clients.now + Nanos::from_millis(500);
    assert_eq!(clients.arrivals.next(late), Forecast { early: late, likely: late });
}

#[test]
fn who_has_seen_few_requests_says_any_moment() {
    let mut arrivals = Arrivals::new();
    arrivals.ended(Nanos(3));
    for request in 0..9 {
        assert_eq!(arrivals.next(Nanos(request * 1_000)), Forecast::ANY_MOMENT);
        arrivals.began(Nanos(request * 1_000));
        arrivals.ended(Nanos(request * 1_000 + 500));
        assert_eq!(arrivals.rhythm(), Rhythm::Unknown);
    }
}

#[test]
fn while_a_request_is_under_way_the_rhythm_still_tells_of_the_next() {
    let mut arrivals = Arrivals::new();
    for request in 0..60 {
        arrivals.began(Nanos::from_millis(request * 10));
        arrivals.began(Nanos::from_millis(request * 10 + 5));
        arrivals.ended(Nanos::from_millis(request * 10 + 8));
    }
    let now = Nanos::from_millis(600);
    arrivals.began(now);
    let next = arrivals.next(now + Nanos::from_millis(1));
    assert!(next.likely.since(now) >= Nanos::from_millis(4), "{next:?}");
}

proptest! {
    #[test]
    fn no_moments_break_it(calls in prop::collection::vec((0u8..3, any::<u64>(), 0u32..60), 1..400)) {
        let play = || {
            let mut arrivals = Arrivals::new();
            for &(call, moment, narrowed) in &calls {
                let now = Nanos(moment >> narrowed);
                match call {
                    0 => arrivals.began(now),
                    1 => arrivals.ended(now),
                    _ => {
                        let said = arrivals.next(now);
                        assert!(said.early <= said.likely);
                    }
                }
            }
            arrivals
        };
        prop_assert_eq!(play(), play());
    }
}

#[test]
fn arrivals_take_two_kilobytes_and_a_half() {
    assert!(size_of::<Arrivals>() <= 2_560, "{}", size_of::<Arrivals>());
}

#[test]
fn requests_that_wait_for_each_other_are_one_spell() {
    let spell = |requests, between| spells(50, requests, between).spell();
    assert_eq!(spell(1, us(40)), us(600));
    assert_eq!(spell(10, us(40)), us(600 * 10 + 40 * 9));
    assert_eq!(spell(10, us(900)), us(600), "there is time enough to come back in between");
    assert_eq!(Arrivals::new().spell(), Nanos::ZERO);
}

#[test]
fn several_requests_in_a_spell_wait_in_line_and_a_spell_without_end_is_a_loop() {
    let wait_in_line = |requests, between| spells(50, requests, between).wait_in_line();
    assert!(wait_in_line(2, us(40)) && wait_in_line(30, us(40)));
    assert!(!wait_in_line(1, us(40)) && !wait_in_line(10, us(900)));
    assert!(!spells(1, 5_000, us(40)).wait_in_line());
    let mut now = Nanos::from_millis(10_000);
    let mut request = |arrivals: &mut Arrivals, pause| {
        arrivals.began(now);
        arrivals.ended(now + us(600));
        now += us(600) + pause;
        arrivals.wait_in_line()
    };
    let mut arrivals = spells(50, 4, us(40));
    for number in 0..2_000 {
        assert_eq!(request(&mut arrivals, us(40)), number < 999, "{number} in a loop that has begun since");
    }
    let mut arrivals = spells(50, 1, us(40));
    (0..2_000).for_each(|_| assert!(!request(&mut arrivals, us(40)), "a loop"));
    (0..10).for_each(|_| assert!(!request(&mut arrivals, us(5_000)), "and then one by one"));
}

const fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

/// So many spells of so many requests of 600 µs, so far apart, with 5 ms between them.
fn spells(count: u64, requests: u64, between: Nanos) -> Arrivals {
    let (mut arrivals, mut now) = (Arrivals::new(), Nanos::ZERO);
    for _ in 0..count {
        for _ in 0..requests {
            arrivals.began(now);
            now += us(600);
            arrivals.ended(now);
            now += between;
        }
        now += Nanos::from_millis(5);
    }
    arrivals
}
