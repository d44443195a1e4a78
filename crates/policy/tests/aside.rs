//! How one of the isolated domain keeps away from requests.

mod common;

use common::{active, any_scene, best_effort, dials, latency, us};
use model::{Dials, Kind, LONGEST_LULL, Nanos};
use policy::aside::{Aside, ENDLESS, SHORTEST, settle};
use policy::{Activity, BestEffort, Latency, Why};
use proptest::prelude::*;

const NOW: Nanos = Nanos::from_millis(5_000);
const LEVER: Nanos = us(600);
/// Of the best-effort tenant that has its turn.
const SEAT: u32 = 100;

fn scene(kind: Kind, latency: Vec<Latency>) -> common::Scene {
    let holder = BestEffort { runs: true, certificate: us(200), ..best_effort(SEAT) };
    let dials = Dials { quiet: us(100), ..dials(kind) };
    common::Scene { now: NOW, exclusive: true, latency, best_effort: vec![holder], dials }
}

fn aside(scene: &common::Scene, off: bool) -> Aside {
    settle(&scene.view(), &scene.decide(), SEAT, off, LEVER)
}

/// A request that has lasted so long, of a tenant whose requests usually take so long.
fn request(lasted: Nanos, usual: Nanos) -> Vec<Latency> {
    vec![Latency { usual, ..active(0, NOW - lasted) }]
}

fn ended(before: Nanos) -> Vec<Latency> {
    vec![Latency { activity: Activity::Idle { since: Some(NOW - before) }, ..latency(0) }]
}

#[test]
fn requests_that_usually_last_are_left_alone_at_once_by_every_policy() {
    for kind in Kind::ALL {
        let aside = aside(&scene(kind, request(us(10), us(600))), false);
        assert!(aside.off, "{kind:?}");
    }
}

#[test]
fn for_others_it_is_waited_as_long_as_the_lever_takes() {
    for usual in [us(0), us(599)] {
        let short = aside(&scene(Kind::Strict, request(us(10), usual)), false);
        assert_eq!(short, Aside { off: false, again: NOW + us(590) });
        assert!(aside(&scene(Kind::Strict, request(us(600), usual)), false).off);
    }
}

#[test]
fn for_requests_without_gaps_the_lever_is_pulled_if_they_last_twice_as_long_as_it_takes() {
    let graph = |usual| vec![Latency { whole: true, ..request(us(10), usual)[0] }];
    for (usual, off) in [(us(1_199), false), (us(1_200), true)] {
        assert_eq!(aside(&scene(Kind::Strict, graph(usual)), false).off, off, "{usual:?}");
    }
    let mut two = graph(us(800));
    two.push(Latency { seat: 1, ..active(1, NOW - us(10)) });
    assert!(aside(&scene(Kind::Strict, two), false).off, "the other has gaps");
}

#[test]
fn a_request_to_be_seen_alone_finds_the_gpu_empty_however_short_it_is() {
    let next = |solo_wait| vec![Latency { usual: us(50), solo_wait, ..ended(us(200))[0] }];
    for kind in Kind::ALL {
        assert!(!aside(&scene(kind, next(Nanos::ZERO)), false).off, "{kind:?}");
        assert!(aside(&scene(kind, next(us(10_000))), false).off, "{kind:?}");
        assert!(aside(&scene(kind, next(us(10_000))), true).off, "{kind:?}");
    }
}

#[test]
fn short_requests_that_follow_each_other_are_waited_for_as_one() {
    let spell = |spell| vec![Latency { spell, ..request(us(10), us(400))[0] }];
    assert!(aside(&scene(Kind::Strict, spell(us(4_000))), false).off);
    assert!(!aside(&scene(Kind::Strict, spell(us(400))), false).off);
    assert!(!aside(&scene(Kind::Strict, spell(us(799))), false).off, "hardly any has another behind it");
}

#[test]
fn whoever_is_off_stays_off_for_the_request_and_the_quiet_window_and_no_longer() {
    for kind in Kind::ALL {
        assert!(aside(&scene(kind, request(us(1), us(0))), true).off, "{kind:?}");
        let quiet = aside(&scene(kind, ended(us(40))), true);
        assert_eq!(quiet, Aside { off: true, again: NOW + us(60) }, "{kind:?}");
        assert!(!aside(&scene(kind, ended(us(100))), true).off, "{kind:?}");
    }
}

#[test]
fn whoever_is_off_does_not_come_back_into_a_queue_of_requests() {
    let mut scene = scene(Kind::Strict, ended(us(40)));
    scene.dials.quiet = us(20);
    assert_eq!(aside(&scene, true), Aside { off: true, again: NOW + us(60) });
    assert!(!aside(&scene, false).off);
    scene.latency = ended(SHORTEST);
    assert!(!aside(&scene, true).off);
}

#[test]
fn a_quiet_window_is_no_reason_to_pull_the_lever_unless_it_is_long() {
    assert!(!aside(&scene(Kind::Strict, ended(us(40))), false).off);
    let mut long = scene(Kind::Strict, ended(us(40)));
    long.dials.quiet = us(700);
    assert!(aside(&long, false).off);
}

#[test]
fn before_requests_that_are_not_worth_it_the_lever_is_not_pulled_either() {
    let off = |usual, whole| {
        let mut long = scene(Kind::Strict, vec![Latency { usual, whole, ..ended(us(40))[0] }]);
        long.dials.quiet = us(2_000);
        aside(&long, false).off
    };
    assert_eq!([us(0), us(599), us(600)].map(|usual| off(usual, false)), [true, false, true]);
    assert_eq!([us(600), us(1_199), us(1_200)].map(|usual| off(usual, true)), [false, false, true]);
}

#[test]
fn a_gap_inside_a_request_is_no_reason_to_come_back_or_to_stay() {
    let next = common::expected(NOW + us(2_000), NOW + us(2_100));
    let in_gap = Latency { busy_until: NOW - us(10), next, usual: us(5_000), ..active(0, NOW - us(1_000)) };
    let scene = scene(Kind::Gaps, vec![in_gap]);
    assert_eq!(scene.decide().why, Why::Gap);
    assert!(aside(&scene, true).off && aside(&scene, false).off);
}

#[test]
fn beside_one_that_is_never_idle_nobody_starves_by_default() {
    for (kind, off) in Kind::ALL.map(|kind| (kind, kind != Kind::Slo)) {
        let endless = scene(kind, request(ENDLESS, us(700)));
        assert_eq!((aside(&endless, true).off, aside(&endless, false).off), (off, off), "{kind:?}");
        let long = aside(&scene(kind, request(ENDLESS - us(1), us(700))), true);
        assert_eq!(long, Aside { off: true, again: if off { Nanos::MAX } else { NOW + us(1) } });
    }
    let mut two = scene(Kind::Slo, request(ENDLESS, us(700)));
    two.latency.push(Latency { seat: 1, ..active(1, NOW - us(700)) });
    assert!(aside(&two, false).off, "the other has a request");
}

#[test]
fn whom_a_request_can_bear_stays() {
    let mut scene = scene(Kind::Slo, vec![Latency { slack: us(900), ..active(0, NOW - us(1_000)) }]);
    scene.dials.beside = us(200);
    assert_eq!((scene.decide().why, aside(&scene, false).off), (Why::Slack, false));
    scene.dials.beside = us(199);
    assert!(aside(&scene, false).off);
}

#[test]
fn nobody_stays_away_where_nobody_has_requests() {
    for kind in Kind::ALL {
        assert_eq!(aside(&scene(kind, vec![]), true), Aside { off: false, again: Nanos::MAX });
    }
}

proptest! {
    /// Any view has an answer. Nobody is off whom the policy lets run outside a gap, and whoever is on against the policy's wish looks again.
    #[test]
    fn what_the_policy_allows_is_done(scene in any_scene(), off: bool, lever in common::nanos()) {
        let scene = common::Scene { exclusive: true, ..scene };
        let (view, decision) = (scene.view(), scene.decide());
        for tenant in &scene.best_effort {
            let aside = settle(&view, &decision, tenant.seat, off, lever);
            let allowed = decision.admits(tenant.seat, tenant.certificate, view.now);
            let endless = |tenant: &Latency| match tenant.activity {
                Activity::Active { since } => view.now.since(since) >= ENDLESS,
                Activity::Idle { .. } => false,
            };
            let forgiven = scene.dials.kind == Kind::Slo && scene.latency.iter().any(endless);
            let just_ended = |tenant: &Latency| match tenant.activity {
                Activity::Idle { since: Some(since) } => {
                    view.now < since + SHORTEST.max(tenant.lull.min(LONGEST_LULL))
                }
                _ => false,
            };
            if decision.why != Why::Gap {
                prop_assert!(!(aside.off && allowed) || off && scene.latency.iter().any(just_ended));
                prop_assert!(!off || aside.off || allowed || forgiven || decision.why == Why::NothingToDo);
            }
            prop_assert!(aside.again <= decision.again);
        }
    }
}
