//! The controller on plants in memory: it finds what a tenant can bear, keeps within it, and comes to rest.

mod common;

use common::{dials, us};
use model::{Dials, Domain, Kind, Nanos};
use policy::slo::{Aim, Company, LEVELS, Report, START, State, Typical, aim, dials_at, slack, tune};
use proptest::prelude::*;

/// Where every dial has its full range.
const DOMAIN: Domain = Domain::Shared;

/// What a tenant's latency does when best-effort work is as bold as the dials say.
#[derive(Clone, Debug)]
struct Plant {
    solo: Typical,
    slo: Option<Nanos>,
    /// What each level costs, in thousandths of the solo time, from the bottom up.
    cost: Vec<u32>,
    /// Requests at a look.
    requests: u32,
    best_effort: u32,
    kept_away: bool,
    /// By how much a percentile is off, in thousandths, to either side.
    noise: u32,
    /// Percentiles follow by one part in so many at each look.
    inertia: u64,
    /// What is seen at the moment.
    seen: Typical,
    random: u64,
}

impl Plant {
    fn new(cost: Vec<u32>) -> Plant {
        let solo = Typical { p50: us(1_000), p99: us(2_000) };
        Plant {
            solo,
            slo: None,
            cost,
            requests: 60,
            best_effort: 300,
            kept_away: false,
            noise: 0,
            inertia: 4,
            seen: solo,
            random: 0x9e37_79b9_7f4a_7c15,
        }
    }

    /// A number from 0 to below `bound`, another each time.
    fn dice(&mut self, bound: u32) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        u32::try_from(self.random % u64::from(bound)).expect("it is below a small number")
    }

    fn at(&self, level: u32) -> Typical {
        let slower = |span: Nanos| span.scaled(1_000 + self.cost[level as usize], 1_000);
        Typical { p50: slower(self.solo.p50), p99: slower(self.solo.p99) }
    }

    fn report(&mut self, level: u32) -> Report {
        let (now, inertia) = (self.at(level), self.inertia);
        let follow = |seen: Nanos, now: Nanos| Nanos((seen.0 * (inertia - 1) + now.0) / inertia);
        self.seen = Typical { p50: follow(self.seen.p50, now.p50), p99: follow(self.seen.p99, now.p99) };
        let off = 1_000 - self.noise + self.dice(2 * self.noise + 1);
        let p99 = self.seen.p99.scaled(off, 1_000);
        let late = self.slo.is_some_and(|slo| now.p99 > slo);
        Report {
            requests: self.requests,
            missed: if late { self.requests / 20 } else { 0 },
            observed: Typical { p50: self.seen.p50, p99 },
            solo: Some(self.solo),
            slo: self.slo,
            tolerance: 50,
            best_effort: self.best_effort,
            kept_away: self.kept_away,
            certificate: us(20),
            in_line: false,
        }
    }

    /// Whether a level keeps what was promised.
    fn bears(&self, level: u32) -> bool {
        let mut report = Plant { noise: 0, ..self.clone() }.report(level);
        report.observed = self.at(level);
        let limit = aim(&report).limit().expect("the plant says what it takes alone");
        report.observed.p99 <= limit
    }
}

/// The level at each look.
fn run(plant: &mut Plant, state: &mut State, looks: usize) -> Vec<u32> {
    let mut dials = dials(Kind::Slo);
    let mut levels = Vec::new();
    for _ in 0..looks {
        let report = plant.report(state.level());
        (dials, *state) = tune(dials, DOMAIN, *state, &[report]);
        assert_eq!(dials, state.dials(DOMAIN, dials));
        levels.push(state.level());
    }
    levels
}

fn changes(levels: &[u32]) -> usize {
    levels.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

/// Nought up to a level, and too much from there on.
fn wall(first_bad: u32) -> Vec<u32> {
    (0..LEVELS).map(|level| if level < first_bad { 5 } else { 200 }).collect()
}

fn ramp(step: u32) -> Vec<u32> {
    (0..LEVELS).map(|level| level * step).collect()
}

#[test]
fn it_starts_with_the_dials_as_they_are_by_default() {
    assert_eq!(State::default().level(), START);
    assert_eq!(dials_at(START, Company::ShortBlocks, DOMAIN, Dials::default()), Dials::default());
}

/// As bold as can be.
fn top() -> State {
    let mut state = State::default();
    run(&mut Plant::new(ramp(0)), &mut state, 600);
    state
}

#[test]
fn other_sms_are_tried_where_an_objective_leaves_room_for_that() {
    let confined = |slo: Option<u64>, domain| {
        let mut plant = Plant { slo: slo.map(us), ..Plant::new(vec![0; LEVELS as usize]) };
        let mut state = State::default();
        run(&mut plant, &mut state, 600);
        assert_eq!(state.level(), LEVELS - 1);
        state.dials(domain, Dials::default()).confine
    };
    // Alone 99 of 100 take 2 ms.
    assert_eq!([2_400, 3_999, 4_000, 9_000].map(|slo| confined(Some(slo), Domain::Shared)), [0, 0, 75, 75]);
    let solo = Typical { p50: us(999), p99: us(2_000) };
    let report =
        Report { solo: Some(solo), ..Plant { slo: Some(us(9_000)), ..Plant::new(ramp(0)) }.report(0) };
    let (dials, _) = tune(dials(Kind::Slo), Domain::Shared, top(), &[report]);
    assert_eq!(dials.confine, 0, "requests are over too soon");
    assert_eq!(confined(None, Domain::Shared), 0, "near the time alone nothing else is tolerated");
    assert_eq!(confined(Some(9_000), Domain::Isolated), 0, "contexts take turns there");
    assert!(
        (0..=START)
            .all(|level| dials_at(level, Company::OnOtherSms, Domain::Shared, Dials::default()).confine == 0)
    );
}

#[test]
fn nobody_runs_beside_requests_that_wait_in_line() {
    let report = Plant { slo: Some(us(9_000)), ..Plant::new(ramp(0)) }.report(0);
    let beside = |in_line: &[bool]| {
        let reports: Vec<Report> = in_line.iter().map(|&in_line| Report { in_line, ..report }).collect();
        let (dials, state) = tune(dials(Kind::Slo), Domain::Shared, top(), &reports);
        assert_eq!(state.level(), LEVELS - 1, "what is between requests is used as before");
        (dials.beside, dials.confine)
    };
    assert_eq!(beside(&[false]), (us(400), 75));
    assert_eq!(beside(&[true]), (Nanos::ZERO, 0));
    assert_eq!(beside(&[false, true]), (Nanos::ZERO, 0), "one of them does");
}

/// Lets nobody in below a level; from there on best-effort work is there, and does harm or not.
fn starved_until(level: u32, harm: u32, domain: Domain) -> (State, Dials) {
    starved_for(2_000, level, harm, domain)
}

fn starved_for(looks: u32, level: u32, harm: u32, domain: Domain) -> (State, Dials) {
    let mut plant = Plant { slo: Some(us(2_400)), ..Plant::new(vec![0; LEVELS as usize]) };
    let (mut dials, mut state) = (dials(Kind::Slo), State::default());
    for _ in 0..looks {
        let is_in = state.level() >= level || dials.beside >= us(200);
        (plant.best_effort, plant.kept_away) = if is_in { (300, false) } else { (0, true) };
        plant.cost = vec![if is_in { harm } else { 0 }; LEVELS as usize];
        let report = plant.report(state.level());
        (dials, state) = tune(dials, domain, state, &[report]);
    }
    (state, dials)
}

#[test]
fn who_is_kept_away_is_let_in_as_far_as_that_is_borne() {
    let (state, _) = starved_until(14, 0, Domain::Shared);
    assert_eq!(state.level(), LEVELS - 1, "it does no harm");
    let (state, _) = starved_until(14, 300, Domain::Shared);
    assert!(state.level() < 14, "it did harm: {}", state.level());
    let (_, dials) = starved_until(LEVELS, 0, Domain::Isolated);
    assert_eq!(dials.beside, us(400), "the hardware may have it");
    let (_, dials) = starved_until(LEVELS, 300, Domain::Isolated);
    assert_eq!(dials.beside, us(0), "it did harm");
}

#[test]
fn nothing_is_learned_by_waiting_where_nobody_is() {
    let (rise, settled) = (LEVELS - START, 5);
    let (_, dials) = starved_for(rise + settled, LEVELS, 0, Domain::Isolated);
    assert_eq!(dials.beside, us(400), "one look for each level, and a few to begin with");
    let (state, _) = starved_for(settled - 1, LEVELS, 0, Domain::Isolated);
    assert_eq!(state.level(), START, "one that has been away for a moment has not been kept away");
}

#[test]
fn one_tenant_without_room_is_enough_to_keep_others_from_its_sms() {
    let mut plants =
        [5_000, 2_400].map(|slo| Plant { slo: Some(us(slo)), ..Plant::new(vec![0; LEVELS as usize]) });
    let (mut dials, mut state) = (dials(Kind::Slo), State::default());
    for _ in 0..600 {
        let reports = plants.each_mut().map(|plant| plant.report(state.level()));
        (dials, state) = tune(dials, Domain::Shared, state, &reports);
    }
    assert_eq!((state.level(), dials.confine), (LEVELS - 1, 0));
    let report = plants[0].report(state.level());
    assert!(tune(dials, Domain::Shared, state, &[report]).0.confine > 0, "the other has left");
}

#[test]
fn every_step_up_is_bolder_and_every_dial_stays_within_its_bounds() {
    let all: Vec<Dials> =
        (0..LEVELS).map(|level| dials_at(level, Company::ShortBlocks, DOMAIN, Dials::default())).collect();
    for pair in all.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        assert!(high.quiet <= low.quiet && high.threshold <= low.threshold);
        assert!(high.in_flight >= low.in_flight && high.beside >= low.beside);
        assert_ne!(low, high);
    }
    assert!(all.iter().all(|dials| dials.sane() == *dials));
    assert_eq!(dials_at(u32::MAX, Company::ShortBlocks, DOMAIN, Dials::default()), all[all.len() - 1]);
    assert_eq!(all[0].beside, Nanos::ZERO, "at the bottom nobody runs beside a request");
}

#[test]
fn in_the_isolated_domain_nobody_runs_beside_a_request_and_nobody_is_kept_away_for_long_after_it() {
    for level in 0..LEVELS {
        let [isolated, shared] = [Domain::Isolated, Domain::Shared]
            .map(|domain| dials_at(level, Company::ShortBlocks, domain, Dials::default()));
        assert_eq!(isolated, Dials { quiet: shared.quiet.min(us(300)), beside: us(0), ..shared });
    }
}

#[test]
fn slack_is_spent_where_there_is_some() {
    let mut plant = Plant::new(vec![0; LEVELS as usize]);
    let levels = run(&mut plant, &mut State::default(), 600);
    assert_eq!(levels[599], LEVELS - 1);
}

#[test]
fn it_tightens_at_once_and_loosens_slowly() {
    let mut plant = Plant { inertia: 1, ..Plant::new(vec![0; LEVELS as usize]) };
    let mut state = State::default();
    run(&mut plant, &mut state, 600);
    let top = state.level();
    plant.cost = vec![300; LEVELS as usize];
    let falling = run(&mut plant, &mut state, 30);
    assert_eq!(falling[0], top / 2, "{falling:?}");
    assert!(falling.iter().position(|&level| level == 0).is_some_and(|looks| looks <= 20), "{falling:?}");
    plant.cost = vec![0; LEVELS as usize];
    let rising = run(&mut plant, &mut state, 30);
    assert!(rising.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{rising:?}");
    assert!(rising[29] < START, "{rising:?}");
}

#[test]
fn on_a_plant_that_does_not_change_it_comes_to_rest() {
    for first_bad in (1..LEVELS).step_by(5) {
        let mut plant = Plant::new(wall(first_bad));
        let hours = run(&mut plant, &mut State::default(), 300_000);
        let (first, last) = hours.split_at(100_000);
        // A trial in an hour and a half, each of which falls by half and climbs back.
        assert!(changes(first) < 400, "{first_bad}: {} changes in the first hours", changes(first));
        let trials = last.windows(2).filter(|pair| pair[1] > pair[0] && pair[1] >= first_bad).count();
        assert!(trials <= 4, "{first_bad}: {trials} trials in the hours after");
        let bold = last.iter().filter(|&&level| level >= first_bad).count();
        assert!(bold * 1_000 <= last.len(), "{first_bad}: {bold} looks too bold");
        let best = last.iter().filter(|&&level| level + 1 == first_bad).count();
        assert!(best * 100 >= last.len() * 97, "{first_bad}: {best} looks at the best level");
    }
}

#[test]
fn what_was_learned_under_other_circumstances_is_forgotten() {
    let mut plant = Plant::new(wall(6));
    let mut state = State::default();
    run(&mut plant, &mut state, 30_000);
    assert_eq!(state.level(), 5);
    // Requests come four times as often, and bear more: it does not wait for an hour to find out.
    plant.requests *= 4;
    plant.cost = wall(12);
    let levels = run(&mut plant, &mut state, 400);
    assert_eq!(levels[399], 11, "{levels:?}");
}

/// The same report for a number of looks.
fn repeat(state: State, report: Report, looks: usize) -> State {
    (0..looks).fold(state, |state, _| tune(dials(Kind::Slo), DOMAIN, state, &[report]).1)
}

#[test]
fn misses_count_before_the_percentile_follows_and_the_median_counts_as_well() {
    let fine = Plant::new(ramp(0)).report(0);
    let with_slo = Report { slo: Some(us(4_000)), ..fine };
    let missed = Report { missed: 6, ..with_slo };
    let slow = Report { observed: Typical { p50: us(1_048), ..fine.observed }, ..fine };
    for report in [missed, slow] {
        assert_eq!(repeat(State::default(), report, 3).level(), START / 2, "{report:?}");
    }
    // One in a hundred may miss, and with an objective the median may be what it likes.
    let allowed = Report { missed: 1, observed: slow.observed, ..with_slo };
    assert!(repeat(State::default(), allowed, 10).level() > START);
}

#[test]
fn a_second_fall_says_nothing_about_the_level_between() {
    let fine = Plant::new(ramp(0)).report(0);
    let stuck = Report { observed: Typical { p50: us(1_000), p99: us(2_150) }, ..fine };
    let fallen = repeat(State::default(), stuck, 6);
    assert_eq!(fallen.level(), START / 4);
    assert_eq!(repeat(fallen, fine, 60).level(), START - 1, "the first one was too much, and no other");
}

#[test]
fn what_was_too_much_once_and_is_not_any_more_is_forgotten() {
    let fine = Plant::new(ramp(0)).report(0);
    let bad = Report { observed: Typical { p50: us(1_000), p99: us(2_150) }, ..fine };
    let fallen = repeat(State::default(), bad, 3);
    // When the penance is over it gets past that level, and finds another.
    let mut state = repeat(fallen, fine, 100);
    let mut plant = Plant::new(wall(12));
    let levels = run(&mut plant, &mut state, 2_000);
    assert_eq!(levels[1_999], 11);
}

#[test]
fn without_evidence_nothing_changes() {
    let mut state = State::default();
    let absent = Plant { best_effort: 0, ..Plant::new(vec![0; LEVELS as usize]) };
    let asleep = Plant { requests: 0, ..Plant::new(vec![0; LEVELS as usize]) };
    // Slow, but not because of best-effort work.
    let slow = Plant { best_effort: 0, ..Plant::new(vec![500; LEVELS as usize]) };
    for mut plant in [absent, asleep, slow] {
        assert!(run(&mut plant, &mut state, 1_000).iter().all(|&level| level == START));
    }
    let nobody_knows = Report { solo: None, slo: None, ..Plant::new(ramp(0)).report(0) };
    for reports in [&[][..], &[nobody_knows]] {
        let (dials, after) = tune(dials(Kind::Slo), DOMAIN, state, reports);
        assert_eq!((dials, after.level()), (dials_at(START, Company::ShortBlocks, DOMAIN, dials), START));
    }
}

#[test]
fn the_tenant_that_is_nearest_to_its_limit_counts() {
    let mut fine = Plant::new(ramp(0));
    let mut suffers = Plant { inertia: 1, ..Plant::new(ramp(20)) };
    let mut state = State::default();
    for _ in 0..2_000 {
        let reports = [fine.report(state.level()), suffers.report(state.level())];
        let backwards = [reports[1], reports[0]];
        let (one, other) = (
            tune(dials(Kind::Slo), DOMAIN, state, &reports),
            tune(dials(Kind::Slo), DOMAIN, state, &backwards),
        );
        assert_eq!(one, other);
        state = one.1;
    }
    assert!(suffers.bears(state.level()) && state.level() > 0, "{state:?}");
}

#[test]
fn an_objective_that_cannot_be_kept_alone_is_recognised_and_keeps_out_no_more_than_it_must() {
    let impossible = Plant { slo: Some(us(1_500)), ..Plant::new(wall(10)) };
    let report = impossible.clone().report(0);
    let instead = Typical { p50: us(1_050), p99: us(2_100) };
    assert_eq!(aim(&report), Aim::Unattainable { slo: us(1_500), alone: us(2_000), instead });
    let mut state = State::default();
    run(&mut impossible.clone(), &mut state, 5_000);
    assert_eq!(state.level(), 9, "as if there were no objective");
}

#[test]
fn an_objective_that_is_kept_can_be_kept_whatever_is_thought_of_alone() {
    let solo = Some(Typical { p50: us(1_000), p99: us(187_000) });
    let observed = Typical { p50: us(4_000), p99: us(6_900) };
    let report = Report { slo: Some(us(20_000)), solo, observed, ..Plant::new(ramp(0)).report(0) };
    assert_eq!(aim(&report), Aim::Slo(us(20_000)));
}

#[test]
fn an_aim_is_the_objective_or_the_tenant_alone() {
    let report = Plant::new(ramp(0)).report(0);
    assert_eq!(aim(&report), Aim::Solo(Typical { p50: us(1_050), p99: us(2_100) }));
    assert_eq!(aim(&Report { slo: Some(us(5_000)), ..report }), Aim::Slo(us(5_000)));
    assert_eq!(aim(&Report { slo: Some(us(5_000)), solo: None, ..report }), Aim::Slo(us(5_000)));
    assert_eq!(aim(&Report { solo: None, ..report }), Aim::Unknown);
}

#[test]
fn slack_is_what_an_aim_leaves() {
    let aim = Aim::Slo(us(5_000));
    assert_eq!(slack(aim, Nanos::ZERO, us(1_000)), us(4_000));
    assert_eq!(slack(aim, us(3_500), us(1_000)), us(500));
    assert_eq!(slack(aim, us(4_500), us(1_000)), Nanos::ZERO);
    assert_eq!(slack(Aim::Unknown, Nanos::ZERO, us(1_000)), Nanos::ZERO);
}

#[test]
fn other_policies_are_not_tuned() {
    for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::Slo) {
        let report = Plant::new(ramp(500)).report(LEVELS - 1);
        let (after, state) = tune(dials(kind), DOMAIN, State::default(), &[report; 3]);
        assert_eq!((after, state), (dials(kind), State::default()));
    }
}

fn any_typical() -> impl Strategy<Value = Typical> {
    (common::nanos(), common::nanos()).prop_map(|(p50, p99)| Typical { p50, p99 })
}

prop_compose! {
    fn any_report()(
        (requests, missed, tolerance, best_effort, kept_away, in_line) in any::<(u32, u32, u32, u32, bool, bool)>(),
        observed in any_typical(), solo in proptest::option::of(any_typical()),
        slo in proptest::option::of(common::nanos()), certificate in common::nanos(),
    ) -> Report {
        Report { requests, missed, observed, solo, slo, tolerance, best_effort, kept_away, certificate, in_line }
    }
}

proptest! {
    #[test]
    fn any_reports_in_any_order_turn_the_dials_the_same_way_and_within_bounds(
        looks in proptest::collection::vec(proptest::collection::vec(any_report(), 0..4), 1..60),
    ) {
        let (mut dials, mut state) = (dials(Kind::Slo), State::default());
        for mut reports in looks {
            let before = state.level();
            let after = tune(dials, DOMAIN, state, &reports);
            reports.reverse();
            prop_assert_eq!(after, tune(dials, DOMAIN, state, &reports));
            (dials, state) = after;
            prop_assert!(state.level() < LEVELS && state.level() <= before + 1);
            prop_assert_eq!(dials.sane(), dials);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the levels cost, as long as more costs more: in the end the tenant gets what it was promised, and best-effort work
    /// all that costs well less than that.
    #[test]
    fn slack_is_spent_and_never_more(
        steps in proptest::collection::vec(0u32..40, LEVELS as usize), noise in 0u32..4,
        slo in proptest::option::of(2_200u64..4_000),
    ) {
        let cost: Vec<u32> = steps.iter().scan(0, |sum, step| { *sum += step; Some(*sum - steps[0]) }).collect();
        let mut plant = Plant { noise, slo: slo.map(us), ..Plant::new(cost) };
        let mut state = State::default();
        let levels = run(&mut plant, &mut state, 20_000);
        let (last, best) = (&levels[10_000..], (0..LEVELS).rev().find(|&level| plant.bears(level)).unwrap_or(0));
        let bold = last.iter().filter(|&&level| level > best).count();
        prop_assert!(bold * 100 <= last.len(), "{bold} looks above {best}");
        prop_assert!(changes(last) <= 60, "{} changes", changes(last));
        let easy = (0..LEVELS).rev().find(|&level| plant.cost[level as usize] <= 30).unwrap_or(0);
        let timid = last.iter().filter(|&&level| level < easy).count();
        prop_assert!(timid * 20 <= last.len(), "{timid} looks below {easy}");
    }
}
