//! What holds for every view.

mod common;

use common::{Scene, any_scene};
use model::{Kind, Nanos};
use policy::{Activity, Decision, Outstanding, Who, Why};
use proptest::prelude::*;

/// The moments at which a decision is put to use.
fn later(now: Nanos) -> [Nanos; 5] {
    [Nanos::ZERO, Nanos(1), Nanos::from_micros(30), Nanos::from_millis(1), Nanos::from_millis(40)]
        .map(|span| now + span)
}

fn with(kind: Kind, scene: Scene) -> Scene {
    let dials = model::Dials { kind, ..scene.dials };
    Scene { dials, ..scene }
}

fn is_active(scene: &Scene) -> bool {
    scene.latency.iter().any(|tenant| tenant.is_active())
}

proptest! {
    /// What is handed in may come from a map.
    #[test]
    fn the_order_in_which_tenants_are_told_makes_no_difference(
        scene in any_scene(), turns in (0usize..4, 0usize..5), backwards: bool,
    ) {
        let mut other = scene.clone();
        if !other.latency.is_empty() {
            let turns = turns.0 % other.latency.len();
            other.latency.rotate_left(turns);
        }
        if !other.best_effort.is_empty() {
            let turns = turns.1 % other.best_effort.len();
            other.best_effort.rotate_left(turns);
        }
        if backwards {
            other.latency.reverse();
            other.best_effort.reverse();
        }
        prop_assert_eq!(scene.decide(), other.decide());
    }

    #[test]
    fn who_is_named_is_there_and_nobody_gets_nothing(scene in any_scene()) {
        let decision = scene.decide();
        match decision.who {
            Who::Nobody => {
                prop_assert_eq!(decision.longest_at(scene.now), Nanos::ZERO);
                prop_assert!(scene.best_effort.iter().all(|one| !decision.admits(one.seat, Nanos::ZERO, scene.now)));
            }
            Who::One(seat) => {
                let named = scene.best_effort.iter().find(|one| one.seat == seat);
                prop_assert!(named.is_some_and(|one| one.wants || one.runs), "{decision:?}");
                prop_assert!(decision.pieces > 0 && decision.longest_at(scene.now) > Nanos::ZERO);
            }
            Who::All => {
                prop_assert!(!scene.exclusive && scene.dials.kind != Kind::Fair);
                prop_assert!(scene.best_effort.iter().any(|one| one.wants || one.runs));
                prop_assert!(decision.pieces > 0 && decision.longest_at(scene.now) > Nanos::ZERO);
            }
        }
    }

    /// The one rule of grants: it may be used without asking again.
    #[test]
    fn a_grant_only_shrinks_with_time(scene in any_scene()) {
        let decision = scene.decide();
        let lengths = later(scene.now).map(|at| decision.longest_at(at));
        prop_assert!(lengths.is_sorted_by(|before, after| before >= after), "{lengths:?}");
    }

    /// Whoever leaves when it was told to is off when it has to be.
    #[test]
    fn who_leaves_in_time_is_off_in_time(scene in any_scene()) {
        let decision = scene.decide();
        for one in &scene.best_effort {
            if decision.admits(one.seat, one.certificate, scene.now) {
                let leaves = decision.leaves_at(one.certificate);
                prop_assert!(leaves >= scene.now);
                prop_assert!(leaves == Nanos::MAX || leaves + one.certificate <= decision.until);
            }
        }
    }

    #[test]
    fn nobody_who_waits_for_a_moment_waits_for_ever(scene in any_scene()) {
        // Beyond that, moments saturate.
        let scene = Scene { now: scene.now.min(Nanos(u64::MAX / 2)), ..scene };
        let Decision { who, why, again, .. } = scene.decide();
        prop_assert!(again > scene.now, "{why:?}, {again}");
        let request = Why::Solo == why && is_active(&scene);
        let timed = matches!(why, Why::Quiet | Why::ShortGap | Why::NearArrival | Why::Solo) && !request;
        if who == Who::Nobody && timed {
            prop_assert!(again <= scene.now + Nanos::from_millis(30_000), "{why:?}, {again}");
        }
    }

    #[test]
    fn strict_keeps_everybody_away_from_work(scene in any_scene()) {
        for kind in [Kind::Strict, Kind::Fair, Kind::Deadline] {
            let scene = with(kind, scene.clone());
            let decision = scene.decide();
            prop_assert!(!is_active(&scene) || decision.who == Who::Nobody, "{kind:?}, {decision:?}");
        }
    }

    #[test]
    fn quiet_is_kept_by_all(scene in any_scene()) {
        let dials = scene.dials.sane();
        let fresh = scene.latency.iter().find(|one| match one.activity {
            Activity::Idle { since: Some(since) } => since <= scene.now && scene.now < since + dials.quiet,
            _ => false,
        });
        if let Some(fresh) = fresh {
            // But for what need not leave for a request either.
            let beside = if dials.kind == Kind::Slo { dials.beside.min(fresh.slack) } else { Nanos::ZERO };
            let decision = scene.decide();
            prop_assert!(decision.who == Who::Nobody || decision.longest_at(scene.now) <= beside, "{decision:?}");
        }
    }

    /// The promise of `gaps` while a latency tenant has work: whatever was started is gone before its next launch.
    #[test]
    fn what_fills_a_gap_is_gone_when_it_ends(scene in any_scene(), certificate in common::nanos()) {
        let scene = with(Kind::Gaps, scene);
        let decision = scene.decide();
        for tenant in scene.latency.iter().filter(|tenant| tenant.is_active()) {
            for at in later(scene.now) {
                let admitted = scene.best_effort.iter().any(|one| decision.admits(one.seat, certificate, at));
                if admitted {
                    prop_assert!(at + certificate <= tenant.next.early && tenant.busy_until <= scene.now);
                    prop_assert!(decision.pieces == policy::gaps::OUTSTANDING);
                }
            }
        }
    }

    /// The promise of `slo`: nothing is started that takes longer to stop than the slack and the time to the earliest arrival,
    /// for every latency tenant of which the arrival is expected, at any moment at which the decision is put to use.
    #[test]
    fn slo_never_spends_more_than_the_slack(scene in any_scene(), certificate in common::nanos()) {
        let scene = with(Kind::Slo, scene);
        let decision = scene.decide();
        let overdue = |tenant: &policy::Latency| {
            let vague = tenant.next.likely.since(tenant.next.early) + Nanos::from_millis(1);
            tenant.next.likely.max(tenant.next.early) + vague <= scene.now
        };
        let promised = |tenant: &policy::Latency| tenant.is_active() || (tenant.next.is_known() && !overdue(tenant));
        for tenant in scene.latency.iter().filter(|tenant| promised(tenant) && decision.why != Why::Waited) {
            for at in later(scene.now) {
                let admitted = scene.best_effort.iter().any(|one| decision.admits(one.seat, certificate, at));
                let allowed = tenant.slack + tenant.next.early.since(at);
                prop_assert!(!admitted || certificate <= allowed, "{certificate} at {at}, but {allowed}: {decision:?}");
            }
        }
    }

    /// Whoever is let in although it cannot be stopped in time runs one piece, not beside a request, and rarely.
    #[test]
    fn exceptions_are_rare_and_small(scene in any_scene(), steps in 0u32..100_000) {
        let scene = with(Kind::Slo, scene);
        let decision = scene.decide();
        if decision.why == Why::Waited {
            prop_assert!(!is_active(&scene) && decision.pieces == 1);
            let Who::One(seat) = decision.who else { return Err(TestCaseError::fail("it is one")) };
            let one = scene.best_effort.iter().find(|one| one.seat == seat).expect("who is named is there");
            prop_assert_eq!(decision.longest, one.certificate.max(Nanos(1)));
            // When its turn is over it waits for as long as it must, or until it fits; where one at a time runs, as the holder.
            let one = &policy::BestEffort { runs: true, ..*one };
            let pause = one.certificate.scaled(policy::slo::PATIENCE, 1).min(Nanos::from_millis(30_000));
            let later = decision.again + pause.scaled(steps, 100_000);
            if later < Nanos(u64::MAX / 4) {
                let after = Scene { now: later, best_effort: vec![*one], ..scene.clone() }.decide();
                prop_assert!(after.why != Why::Waited || pause == Nanos::ZERO);
            }
        }
    }

    /// In the isolated domain the token moves elsewhere.
    #[test]
    fn where_one_at_a_time_runs_who_runs_is_not_replaced(scene in any_scene()) {
        let kind = if scene.dials.kind == Kind::Fair { Kind::Slo } else { scene.dials.kind };
        let scene = with(kind, Scene { exclusive: true, ..scene });
        let running: Vec<u32> = scene.best_effort.iter().filter(|one| one.runs).map(|one| one.seat).collect();
        if let (Who::One(seat), false) = (scene.decide().who, running.is_empty()) {
            prop_assert!(running.contains(&seat), "{seat} instead of {running:?}");
        }
    }

    #[test]
    fn a_request_that_is_to_be_seen_alone_is_alone(scene in any_scene()) {
        let watched = scene.latency.iter().any(|tenant| tenant.is_solo() && tenant.is_active());
        let decision = scene.decide();
        prop_assert!(!watched || (decision.who == Who::Nobody && decision.why == Why::Solo));
    }

    #[test]
    fn pieces_that_are_handed_over_fit_together(
        scene in any_scene(), certificate in common::nanos(), piece in common::nanos(),
        before in (0u32..4, common::nanos(), common::nanos()),
    ) {
        let before = Outstanding { pieces: before.0, time: before.1, held: before.2 };
        let decision = scene.decide();
        for one in &scene.best_effort {
            if decision.takes(one.seat, certificate, piece, before, scene.now) {
                prop_assert!(decision.admits(one.seat, certificate, scene.now));
                prop_assert!(before.held + certificate <= decision.longest_at(scene.now));
                prop_assert!(before.pieces < decision.pieces);
                prop_assert!(before.pieces == 0 || before.time + piece <= decision.in_flight);
            }
        }
    }
}
