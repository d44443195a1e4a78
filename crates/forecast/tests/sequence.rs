//! When the next launch comes, for tenants of several kinds.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod chance;

use chance::Chance;
use forecast::{Kernel, Level, Sequence, Site};
use model::{Forecast, Nanos};
use proptest::prelude::*;

type Sequence2k = Sequence<2_048>;

/// What became of forecasts, as seen from outside.
#[derive(Default)]
struct Score {
    made: u32,
    not_early: u32,
    not_likely: u32,
    /// The part of the time that was foreseen, where it was worth foreseeing.
    foreseen: f64,
    long: u32,
}

/// A tenant that is played in memory.
struct Tenant {
    sequence: Box<Sequence2k>,
    now: Nanos,
    score: Score,
}

impl Tenant {
    fn new() -> Tenant {
        Tenant { sequence: Box::new(Sequence::new()), now: Nanos::from_millis(1), score: Score::default() }
    }

    /// Launches a kernel that is followed by a span.
    fn launch(&mut self, kernel: u64, span: Nanos) {
        let said = self.sequence.launched(self.now, Kernel(kernel));
        let next = self.now + span;
        if self.sequence.level() != Level::Nothing {
            self.score.made += 1;
            self.score.not_early += u32::from(next >= said.early);
            self.score.not_likely += u32::from(next >= said.likely);
            if span >= Nanos::from_micros(100) {
                self.score.long += 1;
                self.score.foreseen += said.early.since(self.now).0 as f64 / span.0 as f64;
            }
        }
        self.now = next;
    }

    fn forget_the_score(&mut self) {
        self.score = Score::default();
    }

    /// Nine of ten within two points, seen from outside and as exported.
    fn assert_calibrated(&self) {
        let share = f64::from(self.score.not_early) / f64::from(self.score.made);
        assert!((share - 0.9).abs() < 0.02, "{share} of {}", self.score.made);
        let error = self.sequence.calibration().error().unwrap();
        assert!(error < 20, "{error}");
    }

    fn foreseen(&self) -> f64 {
        self.score.foreseen / f64::from(self.score.long)
    }
}

/// The request of a launch-bound model: 165 kernels, the same dozen in every layer, 6 µs apart; after each layer the
/// program takes 150 µs, and after the request some milliseconds.
fn launch_bound_request(tenant: &mut Tenant, chance: &mut Chance, stretched: f64) {
    tenant.sequence.begins();
    for place in 0..165u64 {
        let kernel = if place < 160 { place % 13 } else { 100 + place };
        let usual = match place {
            164 => Nanos::from_millis(3),
            place if place % 13 == 12 => Nanos::from_micros(150),
            _ => Nanos::from_micros(6),
        };
        tenant.launch(kernel, chance.jittered(Nanos((usual.0 as f64 * stretched) as u64), 0.05));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn a_launch_bound_request_is_foreseen_kernel_by_kernel(seed: u64) {
        let (mut tenant, mut chance) = (Tenant::new(), Chance(seed));
        (0..30).for_each(|_| launch_bound_request(&mut tenant, &mut chance, 1.0));
        tenant.forget_the_score();
        (0..100).for_each(|_| launch_bound_request(&mut tenant, &mut chance, 1.0));
        tenant.assert_calibrated();
        let half = f64::from(tenant.score.not_likely) / f64::from(tenant.score.made);
        prop_assert!((half - 0.5).abs() < 0.02, "{half}");
        prop_assert!(tenant.foreseen() > 0.88, "{}", tenant.foreseen());
        prop_assert_eq!(tenant.sequence.level(), Level::Request);
        prop_assert_eq!(tenant.sequence.period(), Some(165));
    }

    /// It becomes slower, as when clocks fall, and then quicker than ever.
    #[test]
    fn a_change_of_regime_is_followed(seed: u64) {
        let (mut tenant, mut chance) = (Tenant::new(), Chance(seed));
        for stretched in [1.0, 1.5, 0.7] {
            (0..150).for_each(|_| launch_bound_request(&mut tenant, &mut chance, stretched));
        }
        tenant.assert_calibrated();
    }

    /// A tenant that drifts all the time, by a half in each direction.
    #[test]
    fn drift_is_followed(seed: u64) {
        let (mut tenant, mut chance) = (Tenant::new(), Chance(seed));
        for request in 0..400 {
            let stretched = 1.0 + 0.5 * (f64::from(request) / 40.0).sin();
            launch_bound_request(&mut tenant, &mut chance, stretched);
        }
        tenant.assert_calibrated();
    }

    /// Kernels without order: nothing can be foreseen but how spans are distributed.
    #[test]
    fn where_there_is_no_order_spans_are_foreseen_as_they_are_distributed(seed: u64) {
        let (mut tenant, mut chance) = (Tenant::new(), Chance(seed));
        for _ in 0..20_000 {
            let (kernel, span) = (chance.below(40), chance.exponential(Nanos::from_micros(50)));
            tenant.launch(kernel, span);
        }
        tenant.assert_calibrated();
    }

    /// Kernels that are all different, as with shapes that never come again.
    #[test]
    fn kernels_never_seen_before_are_foreseen_by_all_together(seed: u64) {
        let (mut tenant, mut chance) = (Tenant::new(), Chance(seed));
        for _ in 0..5_000 {
            let (kernel, span) = (chance.number(), chance.exponential(Nanos::from_micros(50)));
            tenant.launch(kernel, span);
        }
        tenant.assert_calibrated();
        prop_assert_eq!(tenant.sequence.level(), Level::Overall);
    }

    /// The number of steps differs from request to request, so that only what came last tells where the tenant is.
    #[test]
    fn requests_of_different_length_are_foreseen_by_the_last_kernels(seed: u64) {
        let (mut tenant, mut chance) = (Tenant::new(), Chance(seed));
        for request in 0..1_500 {
            if request == 500 {
                tenant.forget_the_score();
            }
            tenant.sequence.begins();
            tenant.launch(chance.number(), Nanos::from_micros(300));
            for _ in 0..=chance.below(8) {
                for kernel in 0..4 {
                    let usual = Nanos::from_micros(if kernel == 3 { 200 } else { 5 });
                    tenant.launch(kernel, chance.jittered(usual, 0.05));
                }
            }
        }
        tenant.assert_calibrated();
        prop_assert!(tenant.foreseen() > 0.8, "{}", tenant.foreseen());
        prop_assert!(matches!(tenant.sequence.level(), Level::Last(_)), "{:?}", tenant.sequence.level());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_same_launches_give_the_same_forecasts(seed: u64) {
        let play = || {
            let (mut tenant, mut chance) = (Tenant::new(), Chance(seed));
            (0..20).for_each(|_| launch_bound_request(&mut tenant, &mut chance, 1.0));
            tenant.sequence
        };
        prop_assert!(play() == play());
    }

    #[test]
    fn no_launches_break_it(launches in prop::collection::vec((any::<u64>(), 0u64..9, any::<bool>()), 1..400)) {
        let mut sequence = Sequence::<8>::new();
        for (now, kernel, begins) in launches {
            if begins {
                sequence.begins();
            }
            let said = sequence.launched(Nanos(now), Kernel(kernel));
            prop_assert!(said.early <= said.likely);
            prop_assert!(said == Forecast::ANY_MOMENT || said.early >= Nanos(now));
            let again = sequence.next(Nanos(now));
            prop_assert_eq!(again, said);
            prop_assert!(sequence.site().is_some());
        }
    }
}

#[test]
fn who_knows_nothing_says_any_moment() {
    let mut sequence = Sequence::<64>::new();
    assert_eq!(
        (sequence.next(Nanos(5)), sequence.level(), sequence.site()),
        (Forecast::ANY_MOMENT, Level::Nothing, None)
    );
    for launch in 0..9 {
        assert_eq!(sequence.launched(Nanos(launch * 1_000), Kernel(launch)), Forecast::ANY_MOMENT);
    }
    assert_eq!(sequence.launched(Nanos(9_000), Kernel(9)).likely, Nanos(10_000), "nine spans are enough");
    assert_eq!(sequence.level(), Level::Overall);
}

#[test]
fn a_site_is_the_same_in_every_request_and_differs_along_it() {
    let mut sequence = Box::new(Sequence2k::new());
    let mut pass = |kernels: &[u64]| -> Vec<Site> {
        sequence.begins();
        let launch = |&kernel| {
            sequence.launched(Nanos::ZERO, Kernel(kernel));
            sequence.site().unwrap()
        };
        kernels.iter().map(launch).collect()
    };
    // One kernel seven times: the last four are the same from the fourth on, but the place is not.
    let first = pass(&[7; 7]);
    assert!(first.iter().all(|site| !site.recurs));
    let (second, third) = (pass(&[7; 7]), pass(&[7; 7]));
    assert_eq!(second, third);
    assert!(third.iter().all(|site| site.recurs));
    assert!((1..7).all(|place| third[..place].iter().all(|site| site.hash != third[place].hash)));
    assert_eq!(third.iter().map(|site| site.position).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
    assert!(!pass(&[1, 7, 7])[2].recurs, "the same kernels after another beginning");
}

#[test]
fn a_period_is_a_habit() {
    let mut sequence = Sequence::<64>::new();
    let mut request = |kernels: &[u64]| {
        sequence.begins();
        kernels.iter().for_each(|&kernel| _ = sequence.launched(Nanos::ZERO, Kernel(kernel)));
        sequence.period()
    };
    for _ in 0..4 {
        assert_eq!(request(&[1, 2, 3]), None);
    }
    assert_eq!(request(&[1, 2, 3]), Some(3));
    assert_eq!(request(&[1, 2, 4]), Some(3), "it is not over yet");
    assert_eq!(request(&[1, 2, 3]), None);
}

#[test]
fn a_forecast_that_is_asked_for_later_leaves_out_what_did_not_happen() {
    let mut sequence = Box::new(Sequence2k::new());
    let mut now = Nanos::ZERO;
    // Half the time the next launch comes after 10 µs, half the time after 500 µs.
    for launch in 0..400u64 {
        sequence.launched(now, Kernel(1));
        now += if launch % 7 < 4 { Nanos::from_micros(10) } else { Nanos::from_micros(500) };
    }
    sequence.launched(now, Kernel(1));
    assert!(sequence.next(now).early.since(now) < Nanos::from_micros(15));
    let later = now + Nanos::from_micros(50);
    assert!(sequence.next(later).early.since(now) > Nanos::from_micros(350));
    let much_later = now + Nanos::from_micros(600);
    assert_eq!(sequence.next(much_later).likely, much_later);
}

#[test]
fn the_memory_of_a_tenant_is_what_it_is_said_to_be() {
    assert!(size_of::<Sequence2k>() <= 146 * 1_024, "{}", size_of::<Sequence2k>());
}
