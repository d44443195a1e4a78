//! Played over time: nobody starves, and weights are kept.

mod common;

use common::{Scene, best_effort, dials, expected, latency, us};
use model::{Forecast, Kind, Nanos};
use policy::{Activity, BestEffort, Who, fair};
use proptest::prelude::*;

const STEP: Nanos = us(500);
const QUANTUM: Nanos = Nanos::from_millis(50);

/// How a forecast is made at a moment.
#[derive(Clone, Copy, Debug)]
enum Arrivals {
    Unknown,
    /// Said once, and never true.
    Once(Forecast),
    /// Always just ahead: requests that come at random, as rarely as you like.
    AlwaysNear(Nanos),
}

/// A GPU in memory, whose latency tenants have no work, and how long each best-effort tenant ran and waited.
struct Game {
    scene: Scene,
    arrivals: Arrivals,
    used: Vec<Nanos>,
    longest_wait: Vec<Nanos>,
    /// When the turn began, where one at a time runs.
    turn: Nanos,
}

impl Game {
    fn new(scene: Scene, arrivals: Arrivals) -> Game {
        let (used, longest_wait) =
            (vec![Nanos::ZERO; scene.best_effort.len()], vec![Nanos::ZERO; scene.best_effort.len()]);
        let turn = scene.now;
        Game { scene, arrivals, used, longest_wait, turn }
    }

    fn play(&mut self, span: Nanos) {
        let end = self.scene.now + span;
        while self.scene.now < end {
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.scene.now;
        let next = match self.arrivals {
            Arrivals::Unknown => Forecast::ANY_MOMENT,
            Arrivals::Once(forecast) => forecast,
            Arrivals::AlwaysNear(ahead) => expected(now + ahead, now + ahead + ahead),
        };
        self.scene.latency.iter_mut().for_each(|tenant| tenant.next = next);
        self.pass_on();
        let decision = self.scene.decide();
        assert!(decision.again > now);
        let after = now + STEP;
        for (place, one) in self.scene.best_effort.iter_mut().enumerate() {
            let runs = decision.admits(one.seat, one.certificate, now);
            if runs != one.runs {
                // Since when it waits, or when it began.
                one.wanted_since = if runs { one.wanted_since } else { now };
                self.turn = now;
            }
            one.runs = runs;
            if runs {
                self.used[place] += STEP;
                one.virtual_time += fair::charge(one, STEP);
                one.wanted_since = after;
            }
            self.longest_wait[place] = self.longest_wait[place].max(after.since(one.wanted_since));
        }
        if self.scene.exclusive || self.scene.dials.kind == Kind::Fair {
            assert!(self.scene.best_effort.iter().filter(|one| one.runs).count() <= 1);
        }
        self.scene.now = after;
    }

    /// What the board does: at the end of a quantum the token is free.
    fn pass_on(&mut self) {
        let over = self.scene.now.since(self.turn) >= QUANTUM;
        if self.scene.exclusive && over {
            self.scene.best_effort.iter_mut().for_each(|one| one.runs = false);
            self.turn = self.scene.now;
        }
    }
}

fn any_arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        Just(Arrivals::Unknown),
        (0u64..50, 0u64..50).prop_map(|(a, b)| Arrivals::Once(expected(
            Nanos::from_millis(a.min(b)),
            Nanos::from_millis(a.max(b))
        ))),
        (0u64..5_000).prop_map(|ahead| Arrivals::AlwaysNear(us(ahead))),
    ]
}

fn any_waiting() -> impl Strategy<Value = Vec<BestEffort>> {
    let one = (0u32..=3, 1u32..=4, 5u64..3_000, any::<bool>());
    proptest::collection::vec(one, 1..5).prop_map(|all| {
        let tenants = all.into_iter().zip(100..).map(|((priority, weight, certificate, held), seat)| {
            let certificate = us(certificate);
            let piece = held.then_some(certificate);
            BestEffort { priority, weight, certificate, piece, ..best_effort(seat) }
        });
        tenants.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn nobody_starves_while_no_latency_tenant_has_work(
        kind in 0..Kind::ALL.len(), exclusive: bool, arrivals in any_arrivals(), best_effort in any_waiting(),
        slack in 0u64..400,
    ) {
        let (kind, slack) = (Kind::ALL[kind], us(slack));
        let idle = Activity::Idle { since: Some(Nanos::ZERO) };
        let latency = vec![policy::Latency { activity: idle, slack, ..latency(0) }];
        // Nobody has waited yet.
        let scene = Scene { now: us(100), exclusive, latency, best_effort, dials: dials(kind) };
        let mut game = Game::new(scene, arrivals);
        game.play(Nanos::from_millis(5_000));
        for (one, &waited) in game.scene.best_effort.iter().zip(&game.longest_wait) {
            // Its patience, the patience of others who are let in before it, and a round of turns by weight.
            let patience: Nanos = game.scene.best_effort.iter().map(|one| one.certificate.scaled(policy::slo::PATIENCE, 1))
                .fold(Nanos::ZERO, |sum, wait| sum + wait);
            let weights: u32 = game.scene.best_effort.iter().map(|one| fair::weight(one.weight, one.priority)).sum();
            let rounds = 2 * (weights / fair::weight(one.weight, one.priority) + 5);
            let bound = patience + QUANTUM.scaled(rounds, 1);
            prop_assert!(waited <= bound, "{waited} instead of {bound}: {one:?}");
        }
    }

    #[test]
    fn turns_follow_weights_within_a_quantum(
        exclusive: bool, tenants in proptest::collection::vec((0u32..=3, 1u32..=6), 2..6),
    ) {
        let best_effort: Vec<_> = tenants.iter().zip(100..)
            .map(|(&(priority, weight), seat)| BestEffort { priority, weight, ..best_effort(seat) }).collect();
        let scene = Scene { now: us(100), exclusive, latency: vec![], best_effort, dials: dials(Kind::Fair) };
        let mut game = Game::new(scene, Arrivals::Unknown);
        let span = Nanos::from_millis(20_000);
        game.play(span);
        let weights = tenants.iter().map(|&(priority, weight)| fair::weight(weight, priority));
        let sum = weights.clone().map(f64::from).sum::<f64>();
        for (weight, used) in weights.zip(&game.used) {
            let due = span.as_secs_f64() * f64::from(weight) / sum;
            // Who runs stays until it is a quantum ahead of the least advanced, and a step is a step.
            let slack = 2.0 * (QUANTUM + STEP).as_secs_f64() * (1.0 + tenants.len() as f64 * f64::from(weight) / sum);
            prop_assert!((used.as_secs_f64() - due).abs() <= slack, "{used} instead of {due} s");
        }
    }
}

/// Its turns by the clock may all fall into the time of the other.
#[test]
fn who_cannot_be_stopped_in_time_gets_the_token_beside_one_who_can() {
    let next = Arrivals::AlwaysNear(us(1_069));
    let tenants = vec![BestEffort { certificate: us(1_170), ..best_effort(100) }, best_effort(101)];
    let idle = Activity::Idle { since: Some(Nanos::ZERO) };
    let latency = vec![policy::Latency { activity: idle, ..latency(0) }];
    let scene =
        Scene { now: us(100), exclusive: true, latency, best_effort: tenants, dials: dials(Kind::Slo) };
    let mut game = Game::new(scene, next);
    game.play(Nanos::from_millis(4_000));
    assert!(game.longest_wait[0] <= Nanos::from_millis(500), "{}", game.longest_wait[0]);
    assert!(game.used[1] >= Nanos::from_millis(3_800), "{}", game.used[1]);
}

#[test]
fn a_turn_lasts_a_quantum_and_not_a_step() {
    let tenants = vec![best_effort(100), best_effort(101)];
    let scene = Scene {
        now: us(100),
        exclusive: false,
        latency: vec![],
        best_effort: tenants,
        dials: dials(Kind::Fair),
    };
    let mut game = Game::new(scene, Arrivals::Unknown);
    let (mut changes, mut last) = (0, Who::Nobody);
    for _ in 0..4_000 {
        game.step();
        let who = game.scene.decide().who;
        changes += u32::from(who != last);
        last = who;
    }
    // Two seconds: between one and two quanta each.
    assert!((20..=41).contains(&changes), "{changes} changes");
}

#[test]
fn a_level_of_priority_is_worth_twice_the_weight() {
    assert_eq!(fair::weight(3, 0), 3);
    assert_eq!(fair::weight(3, 2), 12);
    assert_eq!(fair::weight(1, 9), 512);
    // There are ten levels, and noughts count as ones.
    assert_eq!(fair::weight(0, 4_000), 512);
    assert_eq!(fair::weight(u32::MAX, 9), u32::MAX);
}
