//! Each policy on the situations that it was made for.

mod common;

use common::{Scene, active, best_effort, dials, expected, latency, us};
use model::{Dials, Forecast, Kind, LONGEST_LULL, Nanos};
use policy::gaps::{OUTSTANDING, Piece, best_fit};
use policy::{Activity, BestEffort, Decision, Latency, Outstanding, Who, Why};

const NOW: Nanos = Nanos::from_millis(1_000);

/// One latency tenant and one best-effort tenant, in the shared domain.
fn scene(kind: Kind, tenant: Latency) -> Scene {
    let dials = dials(kind);
    Scene { now: NOW, exclusive: false, latency: vec![tenant], best_effort: vec![best_effort(100)], dials }
}

fn idle_since(since: Nanos) -> Latency {
    Latency { activity: Activity::Idle { since: Some(since) }, ..latency(0) }
}

/// Inside a request; what was launched has run, and nothing more comes for a while.
fn in_gap(length: Nanos) -> Latency {
    let next = expected(NOW + length, NOW + length + length);
    Latency { busy_until: NOW - us(10), next, ..active(0, NOW - us(1_000)) }
}

fn held(seat: u32, priority: u32, piece: Nanos) -> BestEffort {
    BestEffort { priority, certificate: piece, piece: Some(piece), ..best_effort(seat) }
}

fn nobody(decision: Decision) -> Why {
    assert_eq!(decision.who, Who::Nobody, "{decision:?}");
    decision.why
}

#[test]
fn without_latency_tenants_anything_runs_and_without_work_nothing() {
    for kind in Kind::ALL {
        let alone = Scene { latency: vec![], ..scene(kind, latency(0)) };
        let decision = alone.decide();
        assert_eq!((decision.longest, decision.why), (Nanos::MAX, Why::Idle), "{kind:?}");
        let nothing = Scene { best_effort: vec![], ..alone };
        assert_eq!(nobody(nothing.decide()), Why::NothingToDo);
    }
}

#[test]
fn who_has_work_on_the_gpu_but_wants_no_more_is_not_stopped_for_that() {
    for kind in Kind::ALL {
        let mut scene = scene(kind, latency(0));
        scene.best_effort[0] = BestEffort { wants: false, runs: true, ..best_effort(100) };
        assert!(scene.decide().names(100), "{kind:?}");
    }
}

#[test]
fn strict_stays_away_from_requests_and_a_while_longer() {
    let quiet = Dials::default().quiet;
    assert_eq!(nobody(scene(Kind::Strict, active(0, NOW)).decide()), Why::LatencyWork);
    let fresh = scene(Kind::Strict, idle_since(NOW - quiet.scaled(1, 2))).decide();
    assert_eq!((nobody(fresh), fresh.again), (Why::Quiet, NOW + quiet.scaled(1, 2)));
    let long_ago = scene(Kind::Strict, idle_since(NOW - quiet)).decide();
    assert_eq!((long_ago.who, long_ago.longest), (Who::All, Nanos::MAX));
}

#[test]
fn a_tenant_that_is_slow_from_one_request_to_the_next_is_waited_for_but_not_for_ever() {
    let idle = |lull, since| Latency { lull, ..idle_since(NOW - since) };
    for kind in [Kind::Strict, Kind::Gaps, Kind::Slo] {
        let at = |lull, since| scene(kind, idle(lull, since)).decide();
        assert_eq!(nobody(at(us(200), us(150))), Why::Quiet, "{kind:?}");
        assert_eq!(at(us(200), us(201)).who, Who::All, "{kind:?}");
        assert_eq!(at(us(10), us(79)).who, Who::Nobody, "{kind:?}: the dial says more");
        assert_eq!(at(Nanos::MAX, LONGEST_LULL).who, Who::All, "{kind:?}: whatever it says of itself");
    }
}

#[test]
fn an_end_of_work_that_lies_far_ahead_is_nonsense_and_keeps_nobody_away() {
    let soon = scene(Kind::Strict, idle_since(NOW + us(2))).decide();
    assert_eq!(nobody(soon), Why::Quiet, "clocks of two processes may cross");
    assert_eq!(scene(Kind::Strict, idle_since(NOW + us(500))).decide().who, Who::All);
}

#[test]
fn gaps_lets_in_what_can_be_stopped_before_the_gap_ends() {
    let decision = scene(Kind::Gaps, in_gap(us(200))).decide();
    assert_eq!((decision.who, decision.why, decision.longest), (Who::All, Why::Gap, Nanos::ZERO));
    assert_eq!(decision.until, NOW + us(200));
    assert!(decision.admits(100, us(20), NOW + us(180)) && !decision.admits(100, us(20), NOW + us(181)));
    assert_eq!(decision.leaves_at(us(20)), NOW + us(180));
}

#[test]
fn gaps_leaves_short_gaps_and_waits_for_those_to_come() {
    let decision = scene(Kind::Gaps, in_gap(us(49))).decide();
    assert_eq!(nobody(decision), Why::ShortGap);
    let busy = Latency { busy_until: NOW + us(80), ..in_gap(us(200)) };
    let decision = scene(Kind::Gaps, busy).decide();
    assert_eq!((nobody(decision), decision.again), (Why::LatencyWork, NOW + us(80)));
    let unknown = Latency { next: Forecast::ANY_MOMENT, ..in_gap(us(200)) };
    assert_eq!(nobody(scene(Kind::Gaps, unknown).decide()), Why::LatencyWork);
}

#[test]
fn who_runs_in_a_gap_is_not_sent_away_before_it_has_to_go() {
    let mut scene = scene(Kind::Gaps, Latency { busy_until: NOW - us(100), ..in_gap(us(30)) });
    assert_eq!(nobody(scene.decide()), Why::ShortGap);
    scene.best_effort[0].runs = true;
    assert!(scene.decide().admits(100, us(20), NOW));
}

#[test]
fn a_gap_that_should_be_over_is_none() {
    let next = expected(NOW - us(1), NOW + us(50));
    for kind in [Kind::Gaps, Kind::Slo] {
        let mut scene = scene(kind, Latency { busy_until: NOW - us(300), next, ..active(0, NOW - us(400)) });
        scene.best_effort[0].runs = true;
        let decision = scene.decide();
        assert_eq!(nobody(decision), Why::ShortGap, "{kind:?}");
        assert!(decision.again > NOW);
    }
}

#[test]
fn a_gap_is_what_all_latency_tenants_leave_together() {
    let mut scene = scene(Kind::Gaps, in_gap(us(200)));
    scene.latency.push(Latency { seat: 1, ..in_gap(us(120)) });
    assert_eq!(scene.decide().until, NOW + us(120));
    // And nobody is expected to come into it.
    scene.latency.push(Latency { seat: 2, next: expected(NOW + us(90), NOW + us(95)), ..latency(2) });
    assert_eq!(scene.decide().until, NOW + us(90));
    scene.latency.push(Latency { seat: 3, busy_until: NOW + us(70), ..in_gap(us(200)) });
    assert_eq!(nobody(scene.decide()), Why::ShortGap);
    scene.latency.reverse();
    assert_eq!(nobody(scene.decide()), Why::ShortGap);
}

#[test]
fn best_fit_goes_by_priority_and_then_by_what_is_left_unused() {
    let piece = |seat, priority, takes| Piece { seat, priority, takes: us(takes) };
    let pieces = [piece(1, 0, 99), piece(2, 3, 40), piece(3, 3, 70), piece(4, 9, 101), piece(5, 3, 70)];
    let fits = |gap| best_fit(pieces, us(gap)).map(|piece| piece.seat);
    assert_eq!(
        fits(100),
        Some(3),
        "the highest priority at which anything fits, the longest, the lower seat"
    );
    assert_eq!(fits(101), Some(4));
    assert_eq!(fits(50), Some(2));
    assert_eq!((fits(39), fits(0)), (None, None));
    let backwards = pieces.into_iter().rev();
    assert_eq!(best_fit(backwards, us(100)).map(|piece| piece.seat), Some(3), "in whatever order they come");
}

#[test]
fn of_kernels_that_can_only_be_held_one_that_fits_is_let_in_at_a_time() {
    let mut scene = scene(Kind::Gaps, in_gap(us(200)));
    scene.best_effort = vec![held(100, 0, us(150)), held(101, 0, us(190)), held(102, 0, us(201))];
    let decision = scene.decide();
    assert_eq!(decision.who, Who::One(101));
    assert!(decision.admits(101, us(190), NOW + us(10)) && !decision.admits(101, us(190), NOW + us(11)));
    scene.best_effort.truncate(0);
    scene.best_effort.push(held(102, 0, us(201)));
    assert_eq!(nobody(scene.decide()), Why::ShortGap);
}

#[test]
fn two_pieces_are_outstanding_in_a_gap_and_no_third() {
    let decision = scene(Kind::Gaps, in_gap(us(200))).decide();
    let outstanding = |pieces| Outstanding { pieces, time: us(60).scaled(pieces, 1), held: Nanos::ZERO };
    let takes = |pieces| decision.takes(100, us(20), us(60), outstanding(pieces), NOW);
    assert!(takes(0) && takes(1) && !takes(2));
    assert_eq!(decision.pieces, OUTSTANDING);
    // What runs to its end adds up, and has to fit altogether.
    let first = |held| Outstanding { pieces: 1, time: held, held };
    assert!(decision.takes(100, us(80), us(80), first(us(120)), NOW));
    assert!(!decision.takes(100, us(81), us(81), first(us(120)), NOW));
}

#[test]
fn in_the_isolated_domain_a_gap_has_to_be_longer_than_a_switch_and_the_turn_stays_where_it_is() {
    let mut scene = Scene { exclusive: true, ..scene(Kind::Gaps, in_gap(us(1_000))) };
    let switched = |seat| BestEffort { certificate: us(320), ..best_effort(seat) };
    scene.best_effort =
        vec![switched(100), BestEffort { runs: true, virtual_time: us(9_999), ..switched(101) }];
    assert_eq!(scene.decide().who, Who::One(101));
    scene.latency[0] = in_gap(us(300));
    assert_eq!(nobody(scene.decide()), Why::ShortGap);
    scene.best_effort = vec![held(100, 0, us(301))];
    assert_eq!(nobody(scene.decide()), Why::ShortGap);
    scene.best_effort = vec![held(100, 0, us(300))];
    assert_eq!(scene.decide().who, Who::One(100));
}

#[test]
fn slo_lets_short_blocks_run_beside_a_request_as_far_as_its_slack_goes() {
    let tenant = Latency { slack: us(80), ..active(0, NOW - us(500)) };
    let mut scene = scene(Kind::Slo, tenant);
    assert_eq!(nobody(scene.decide()), Why::LatencyWork, "unless it was found to bear it");
    scene.dials.beside = us(50);
    let decision = scene.decide();
    assert_eq!((decision.who, decision.why, decision.longest), (Who::All, Why::Slack, us(50)));
    assert!(!decision.admits(100, us(51), NOW));
    scene.latency[0].slack = us(15);
    assert_eq!(scene.decide().longest, us(15), "never more than the slack");
    scene.latency[0].slack = Nanos::ZERO;
    assert_eq!(nobody(scene.decide()), Why::LatencyWork);
}

#[test]
fn slo_fills_gaps_like_gaps() {
    let (slo, gaps) =
        (scene(Kind::Slo, in_gap(us(200))).decide(), scene(Kind::Gaps, in_gap(us(200))).decide());
    assert_eq!(slo, gaps);
    assert_eq!(nobody(scene(Kind::Slo, in_gap(us(20))).decide()), Why::ShortGap);
}

#[test]
fn slo_starts_near_an_arrival_only_what_can_be_stopped_in_time() {
    let next = expected(NOW + us(300), NOW + us(400));
    let mut scene = scene(Kind::Slo, Latency { next, slack: us(100), ..idle_since(NOW - us(1_000)) });
    scene.best_effort[0].certificate = us(250);
    let decision = scene.decide();
    assert_eq!((decision.who, decision.why), (Who::All, Why::NearArrival));
    assert_eq!((decision.longest, decision.longest_at(NOW)), (us(100), us(400)));
    assert_eq!(
        decision.leaves_at(us(250)),
        NOW + us(150),
        "and off when the request has waited for its slack"
    );
    assert_eq!(decision.again, NOW + us(150));
    assert!(decision.admits(100, us(100), NOW + us(350)), "what the slack allows may always run");
    // Who can always be stopped in time has nothing to do with arrivals.
    scene.best_effort[0].certificate = us(90);
    assert_eq!(scene.decide().why, Why::Idle);
}

#[test]
fn slo_takes_a_request_that_does_not_come_for_one_that_is_not_expected() {
    let next = expected(NOW - us(300), NOW - us(200));
    let mut scene = scene(Kind::Slo, Latency { next, ..idle_since(NOW - us(2_000)) });
    scene.best_effort[0].wanted_since = NOW;
    let decision = scene.decide();
    assert_eq!((nobody(decision), decision.again), (Why::NearArrival, NOW - us(100) + us(1_000)));
    scene.now = decision.again;
    assert_eq!(scene.decide().longest, Nanos::MAX);
}

#[test]
fn slo_lets_in_who_has_waited_long_enough_for_one_piece() {
    let next = expected(NOW + us(100), NOW + us(700));
    let mut scene = scene(Kind::Slo, Latency { next, slack: us(50), ..idle_since(NOW - us(2_000)) });
    scene.best_effort.push(held(101, 0, us(300)));
    let mut waited = |span| {
        scene.best_effort[1].wanted_since = NOW - us(span);
        scene.decide()
    };
    assert!(!waited(59_999).admits(101, us(300), NOW));
    assert_eq!(waited(59_999).again, NOW + us(1));
    let decision = waited(60_100);
    assert_eq!((decision.who, decision.why, decision.pieces), (Who::One(101), Why::Waited, 1));
    assert_eq!(decision.again, NOW + us(200));
    // And then it waits again, also if nobody noticed that it ran.
    assert!(!waited(60_300).admits(101, us(300), NOW) && waited(120_400).admits(101, us(300), NOW));
    waited(60_000);
    scene.latency[0].activity = Activity::Active { since: NOW };
    assert_eq!(nobody(Scene { dials: dials(Kind::Strict), ..scene.clone() }.decide()), Why::LatencyWork);
    assert_ne!(scene.decide().why, Why::Waited, "not beside a request");
}

#[test]
fn of_two_whose_turn_it_is_the_less_advanced_is_let_in() {
    let next = expected(NOW + us(100), NOW + us(700));
    let mut scene = scene(Kind::Slo, Latency { next, slack: us(50), ..idle_since(NOW - us(2_000)) });
    let waits = |seat| BestEffort { wanted_since: NOW - us(60_000), ..held(seat, 0, us(300)) };
    scene.best_effort = vec![BestEffort { virtual_time: us(300), ..waits(100) }, waits(101)];
    assert_eq!(scene.decide().who, Who::One(101));
}

#[test]
fn where_one_at_a_time_runs_a_turn_of_another_does_not_move_the_token() {
    let next = expected(NOW + us(100), NOW + us(700));
    let tenant = Latency { next, slack: us(50), ..idle_since(NOW - us(2_000)) };
    let mut scene = Scene { exclusive: true, ..scene(Kind::Slo, tenant) };
    scene.best_effort.push(BestEffort { wanted_since: NOW - us(60_000), ..held(101, 0, us(300)) });
    assert_eq!(scene.decide().who, Who::One(101), "nobody has the token");
    scene.best_effort[0].runs = true;
    assert_eq!((scene.decide().who, scene.decide().why), (Who::One(100), Why::NearArrival));
    // Who has it and may not run has its turns like anybody else.
    scene.best_effort[0].runs = false;
    scene.best_effort[1].runs = true;
    assert_eq!((scene.decide().who, scene.decide().why), (Who::One(101), Why::Waited));
}

#[test]
fn the_strictest_latency_tenant_is_the_reason() {
    let mut scene = scene(Kind::Slo, idle_since(NOW - us(2_000)));
    scene.latency.push(Latency { seat: 1, ..idle_since(NOW - us(10)) });
    assert_eq!(nobody(scene.decide()), Why::Quiet);
    scene.latency.push(active(2, NOW));
    assert_eq!(nobody(scene.decide()), Why::LatencyWork);
}

#[test]
fn in_the_isolated_domain_one_runs_and_who_can_be_stopped_in_time_goes_first() {
    let next = expected(NOW + us(100), NOW + us(700));
    let tenant = Latency { next, slack: us(50), ..idle_since(NOW - us(2_000)) };
    let mut scene = Scene { exclusive: true, ..scene(Kind::Slo, tenant) };
    let slow = BestEffort { certificate: us(900), wanted_since: NOW, ..best_effort(100) };
    scene.best_effort = vec![slow, BestEffort { virtual_time: us(5_000), ..best_effort(101) }];
    assert_eq!(scene.decide().who, Who::One(101));
    scene.latency.clear();
    assert_eq!(scene.decide().who, Who::One(100), "by virtual time where everybody may run");
}

#[test]
fn fair_lets_one_run_at_a_time_in_both_domains() {
    for exclusive in [false, true] {
        let mut scene = Scene { exclusive, ..scene(Kind::Fair, latency(0)) };
        scene.best_effort.push(BestEffort { virtual_time: us(1), ..best_effort(101) });
        assert_eq!(scene.decide().who, Who::One(100));
        scene.best_effort = vec![best_effort(101), best_effort(100)];
        assert_eq!(scene.decide().who, Who::One(100), "the lower seat among equals");
        scene.best_effort = vec![best_effort(100), BestEffort { virtual_time: us(1), ..best_effort(101) }];
        scene.best_effort[1].runs = true;
        assert_eq!(scene.decide().who, Who::One(101), "until it is a quantum ahead");
        scene.best_effort[1].virtual_time = policy::fair::QUANTUM + Nanos(1);
        assert_eq!(scene.decide().who, Who::One(100));
    }
}

#[test]
fn the_earliest_deadline_leads_then_priority_then_seat() {
    let due = |seat, priority, deadline: u64| Latency {
        priority,
        deadline: Some(NOW + us(deadline)),
        ..active(seat, NOW - us(100))
    };
    let lead =
        |latency: Vec<Latency>| Scene { latency, ..scene(Kind::Deadline, latency_of_nobody()) }.decide().lead;
    assert_eq!(lead(vec![due(0, 9, 900), due(1, 0, 400), due(2, 5, 500)]), Some(1));
    assert_eq!(lead(vec![due(0, 3, 400), due(1, 4, 400), due(2, 4, 400)]), Some(1));
    // Who has none comes last, who has no work leads nobody.
    assert_eq!(lead(vec![Latency { priority: 9, ..active(0, NOW) }, due(1, 0, 9_000)]), Some(1));
    assert_eq!(lead(vec![latency(0)]), None);
    let strict = Scene { latency: vec![due(0, 0, 1)], ..scene(Kind::Strict, latency(0)) };
    assert_eq!(strict.decide().lead, None);
}

fn latency_of_nobody() -> Latency {
    latency(7)
}

#[test]
fn a_request_that_is_late_gives_way_to_those_that_can_be_saved_but_not_for_ever() {
    // It had a millisecond, and is 100 µs late.
    let late = Latency { deadline: Some(NOW - us(100)), ..active(0, NOW - us(1_100)) };
    let fresh = Latency { deadline: Some(NOW + us(500)), ..active(1, NOW) };
    let slow = Latency { deadline: Some(NOW + us(5_000)), ..active(2, NOW) };
    let scene = Scene { latency: vec![late, fresh, slow], ..scene(Kind::Deadline, late) };
    assert_eq!(scene.decide().lead, Some(1));
    let without = Scene { latency: vec![late, slow], ..scene.clone() };
    assert_eq!(without.decide().lead, Some(0), "its second millisecond ends before the other's five");
    // Just before that is over, it leads again.
    let fresh = Latency { deadline: Some(NOW + us(1_400)), ..fresh };
    let later = Scene { now: NOW + us(890), latency: vec![late, fresh, slow], ..scene };
    assert_eq!(later.decide().lead, Some(0));
}

#[test]
fn a_request_to_be_seen_alone_is_waited_for_but_not_for_long() {
    let chosen = Latency { solo_wait: policy::solo::PATIENCE, ..idle_since(NOW - us(500)) };
    for kind in Kind::ALL {
        let decision = scene(kind, chosen).decide();
        assert_eq!((nobody(decision), decision.again), (Why::Solo, NOW - us(500) + us(10_000)), "{kind:?}");
        let long_ago =
            scene(kind, Latency { solo_wait: policy::solo::PATIENCE, ..idle_since(NOW - us(10_000)) })
                .decide();
        assert_eq!(long_ago.why, Why::Idle, "{kind:?}");
    }
    // As long as little is known it is waited for longer, but not for as long as a tenant likes.
    for (wait, until) in [(us(30_000), us(30_000)), (us(9_000_000), us(50_000))] {
        let decision = scene(Kind::Slo, Latency { solo_wait: wait, ..idle_since(NOW - us(500)) }).decide();
        assert_eq!((nobody(decision), decision.again), (Why::Solo, NOW - us(500) + until));
    }
    // When it is known when it comes, best-effort work leaves before.
    let next = expected(NOW + us(40), NOW + us(60));
    let mut expected = scene(
        Kind::Slo,
        Latency { solo_wait: policy::solo::PATIENCE, next, slack: us(500), ..idle_since(us(10)) },
    );
    assert_eq!(expected.decide().who, Who::All);
    expected.best_effort[0].certificate = us(45);
    assert_eq!(nobody(expected.decide()), Why::Solo);
}

#[test]
fn reasons_have_names_of_their_own() {
    let mut names: Vec<_> = Why::ALL.iter().map(|why| why.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Why::ALL.len());
}

#[test]
fn what_may_not_run_beside_a_request_may_run_on_other_sms() {
    let confined = Dials { confine: 50, ..dials(Kind::Slo) };
    let scene = Scene {
        now: us(1_000),
        exclusive: false,
        latency: vec![active(1, us(900))],
        best_effort: vec![best_effort(2)],
        dials: confined,
    };
    let decision = scene.decide();
    assert!(!decision.admits(2, us(20), scene.now));
    assert_eq!((decision.why, decision.confined), (Why::LatencyWork, 50));

    let ended = Latency { activity: Activity::Idle { since: Some(us(990)) }, ..latency(1) };
    let quiet = Scene { latency: vec![ended], ..scene.clone() };
    assert_eq!((quiet.decide().why, quiet.decide().confined), (Why::Quiet, 50));
    let idle = Scene { latency: vec![latency(1)], ..scene.clone() };
    assert_eq!(idle.decide().confined, 0, "the whole GPU is free");
    let alone = Scene {
        latency: vec![Latency { solo_wait: policy::solo::PATIENCE, ..active(1, us(900)) }],
        ..scene.clone()
    };
    assert_eq!((alone.decide().why, alone.decide().confined), (Why::Solo, 0));
    assert_eq!(Scene { exclusive: true, ..scene.clone() }.decide().confined, 0, "contexts take turns");
    for kind in [Kind::Strict, Kind::Gaps, Kind::Fair, Kind::Deadline] {
        let other = Scene { dials: Dials { kind, ..confined }, ..scene.clone() };
        assert_eq!(other.decide().confined, 0, "{}", kind.name());
    }
}
