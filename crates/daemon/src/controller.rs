//! The controller of one GPU: it looks at what came of the policy, and turns the dials.
//!
//! What to do with what is seen, `policy::slo` says; here it is gathered. Everything comes from the board, so a tenant can
//! deceive the controller about itself; it gains nothing by that which it could not have by writing the dials. The controller
//! is not on anybody's path: where there is no daemon, the dials stay as they are.
//!
//! A request is what a tenant counts as one (`bursts`), and a report is made of each latency seat: processes of one tenant may
//! do different things. For how long best-effort work was on the GPU is what its seats have counted; in the shared domain
//! nobody can count that, so who says that it runs when we look is believed to have run since we looked last.

use std::collections::BTreeMap;

use board::{Board, Place, Reading, Spans};
use model::{Class, Dials, Domain, Kind, Nanos};
use policy::slo::{self, Aim, Report, State, Typical};

use crate::configuration::Policy;

/// How often dials are turned at most.
pub const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// What is remembered of a seat from one look to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    bursts: u64,
    missed: u64,
    gpu: Nanos,
    /// The objective of which it was said already that it cannot be kept.
    told: Option<Nanos>,
}

/// A tenant whose objective is missed and cannot be kept even alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unattainable {
    pub place: Place,
    pub slo: Nanos,
    /// What 99 of 100 requests take when it is alone.
    pub alone: Nanos,
}

#[derive(Clone, Debug, Default)]
pub struct Controller {
    state: State,
    looked: Nanos,
    seen: BTreeMap<Place, Seen>,
    /// Requests that missed their objective, as far as the last look has told.
    late: u64,
}

impl Controller {
    /// Whether a request was late since this was last asked.
    pub fn take_late(&mut self) -> bool {
        std::mem::take(&mut self.late) > 0
    }

    /// How the dials stand now, given what a person has set.
    pub fn dials(&self, policy: &Policy, domain: Domain) -> Dials {
        let plain = Dials { kind: policy.kind, ..Dials::default() };
        let turned = match policy.kind {
            Kind::Slo => self.state.dials(domain, plain),
            _ => plain,
        };
        policy.over(turned)
    }

    /// How bold it is, under the policy that has a controller.
    pub fn level(&self, policy: &Policy) -> Option<u32> {
        (policy.kind == Kind::Slo).then(|| self.state.level())
    }

    /// Another policy begins anew.
    pub fn forget(&mut self) {
        self.state = State::default();
    }

    /// When it looks next at such a pace.
    pub fn looks_at(&self, pace: Nanos) -> Nanos {
        self.looked + pace
    }

    /// One look: turns the dials of the board, and tells which objectives were found to be impossible.
    pub fn look(&mut self, board: &Board, policy: &Policy, now: Nanos) -> Vec<Unattainable> {
        let domain = board.settings().domain;
        let readings: Vec<(Place, Reading)> = board.seats().collect();
        self.seen.retain(|place, _| readings.iter().any(|(there, _)| there == place));
        let around = self.around(&readings, board.settings().tolerance, now);
        self.looked = now;
        let latency = readings.iter().filter(|(_, reading)| reading.terms.class == Class::Latency);
        let reports: Vec<(Place, Report)> =
            latency.map(|(place, reading)| (*place, self.report(*place, reading, &around))).collect();
        let plain: Vec<Report> = reports.iter().map(|(_, report)| *report).collect();
        let tuned = slo::tune(self.dials(policy, domain), domain, self.state, &plain);
        self.state = tuned.1;
        // Not only when they have changed: anybody may have written there.
        let dials = self.dials(policy, domain).sane();
        if board.dials() != dials {
            board.set_dials(&dials);
        }
        reports.iter().filter_map(|(place, report)| self.news(*place, report)).collect()
    }

    /// What holds for all latency tenants at this look.
    fn around(&mut self, readings: &[(Place, Reading)], tolerance: u32, now: Nanos) -> Around {
        let since = now.since(self.looked);
        let best_effort = readings.iter().filter(|(_, reading)| reading.terms.class == Class::BestEffort);
        let (mut busy, mut certificate, mut kept_away) = (Nanos::ZERO, Nanos::ZERO, false);
        for (place, reading) in best_effort {
            let seen = self.seen.entry(*place).or_default();
            let gpu = Nanos(reading.figures.gpu_ns);
            let counted = gpu.since(seen.gpu);
            seen.gpu = gpu;
            let silent = reading.need.runs && counted == Nanos::ZERO;
            busy += if silent { since } else { counted.min(since) };
            certificate = certificate.max(reading.need.certificate);
            kept_away |= reading.need.wants && !reading.need.runs && !reading.terms.paused;
        }
        Around { tolerance, best_effort: permille(busy, since), kept_away, certificate }
    }

    fn report(&mut self, place: Place, reading: &Reading, around: &Around) -> Report {
        let seen = self.seen.entry(place).or_default();
        let (bursts, missed) = (reading.figures.bursts, reading.figures.slo_missed);
        let more = |now: u64, before: u64| u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX);
        let (requests, late) = (more(bursts, seen.bursts), more(missed, seen.missed));
        (seen.bursts, seen.missed) = (bursts, missed);
        self.late += u64::from(late);
        Report { requests, missed: late, ..standing(reading, around) }
    }

    /// Whether its objective is impossible, and nobody has heard it yet.
    fn news(&mut self, place: Place, report: &Report) -> Option<Unattainable> {
        let Aim::Unattainable { slo, alone, .. } = slo::aim(report) else { return None };
        let seen = self.seen.entry(place).or_default();
        let told = seen.told.replace(slo) == Some(slo);
        (!told).then_some(Unattainable { place, slo, alone })
    }
}

/// What holds for all latency tenants of a GPU.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    tolerance: u32,
    best_effort: u32,
    kept_away: bool,
    certificate: Nanos,
}

/// What a latency tenant with such an objective is held against, as far as its seat says.
pub fn aim(reading: &Reading, slo: Option<Nanos>) -> Aim {
    slo::aim(&Report { slo, ..standing(reading, &Around::default()) })
}

/// A report of how a tenant stands, without what has happened since the last.
fn standing(reading: &Reading, around: &Around) -> Report {
    let experience = &reading.experience;
    let times = &reading.figures.burst_times;
    let counted = || Typical {
        p50: times.quantile(0.5).unwrap_or_default(),
        p99: times.quantile(0.99).unwrap_or_default(),
    };
    Report {
        requests: 0,
        missed: 0,
        // Who does not say how long its requests took lately has at least counted them all.
        observed: typical(&experience.all).unwrap_or_else(counted),
        solo: typical(&experience.alone),
        slo: reading.terms.slo,
        tolerance: around.tolerance,
        best_effort: around.best_effort,
        kept_away: around.kept_away,
        certificate: around.certificate,
        in_line: reading.outlook.in_line,
    }
}

fn typical(spans: &Spans) -> Option<Typical> {
    spans.is_known().then_some(Typical { p50: spans.p50, p99: spans.p99 })
}

fn permille(part: Nanos, whole: Nanos) -> u32 {
    let share = u128::from(part.0) * 1_000 / u128::from(whole.0.max(1));
    u32::try_from(share).unwrap_or(1_000).min(1_000)
}

#[cfg(test)]
mod tests {
    use board::{Experience, Gpu, Need, Occupant, Seat, Settings};
    use policy::slo::{Company, LEVELS, START};

    use super::*;

    fn ms(millis: u64) -> Nanos {
        Nanos::from_millis(millis)
    }

    fn us(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    /// A board with a latency tenant and a best-effort tenant, looked at every 100 ms.
    struct Stage {
        board: Board,
        latency: Seat,
        best_effort: Seat,
        controller: Controller,
        policy: Policy,
        now: Nanos,
    }

    fn sit(board: &Board, class: Class, slo: Option<Nanos>) -> Seat {
        let occupant = Occupant {
            pid: 1,
            tenant: 1 + u64::from(class == Class::Latency),
            class,
            weight: 1,
            priority: 0,
            slo,
            memory: None,
            name: b"",
            program: b"",
        };
        board.sit(board.take(&occupant).unwrap()).unwrap()
    }

    impl Stage {
        fn new(policy: Policy, slo: Option<Nanos>) -> Stage {
            let board = Board::private(Gpu([3; 16]), &Settings::default()).unwrap();
            let (latency, best_effort) =
                (sit(&board, Class::Latency, slo), sit(&board, Class::BestEffort, None));
            let controller = Controller { looked: ms(1_000), ..Controller::default() };
            Stage { board, latency, best_effort, controller, policy, now: ms(1_000) }
        }

        /// For so many looks, 50 requests each that take as said, beside best-effort work.
        fn go(&mut self, looks: u32, p50: Nanos, p99: Nanos) -> Vec<Unattainable> {
            let mut found = Vec::new();
            for _ in 0..looks {
                let alone = Spans { count: 100, p50: us(1_000), p99: us(2_000) };
                let all = Spans { count: 100, p50, p99 };
                self.latency.say_experience(Experience { all, alone, alone_needed: 100 });
                self.latency.tally().bursts.add(50);
                self.best_effort.tally().gpu_ns.add(ms(60).0);
                self.now += LOOK_EVERY;
                found.extend(self.controller.look(&self.board, &self.policy, self.now));
            }
            found
        }

        fn level(&self) -> u32 {
            self.controller.level(&self.policy).unwrap()
        }
    }

    #[test]
    fn what_costs_nothing_makes_it_bolder_and_what_costs_too_much_makes_it_shy() {
        let mut stage = Stage::new(Policy::default(), None);
        assert_eq!((stage.level(), stage.board.dials()), (START, Dials::default()));
        stage.go(200, us(1_000), us(2_000));
        assert_eq!(stage.level(), LEVELS - 1);
        assert_eq!(
            stage.board.dials(),
            slo::dials_at(LEVELS - 1, Company::ShortBlocks, Domain::Isolated, Dials::default())
        );
        stage.go(20, us(1_400), us(2_900));
        assert!(stage.level() < START, "{}", stage.level());
        assert_eq!(
            stage.board.dials(),
            slo::dials_at(stage.level(), Company::ShortBlocks, Domain::Isolated, Dials::default())
        );
    }

    #[test]
    fn an_objective_counts_instead_of_the_tolerance() {
        let mut stage = Stage::new(Policy::default(), Some(ms(10)));
        stage.go(200, us(1_400), us(2_900));
        assert_eq!(stage.level(), LEVELS - 1, "it is slower than alone, and far from its objective");
    }

    #[test]
    fn requests_that_were_missed_count_before_percentiles_show_them() {
        let mut stage = Stage::new(Policy::default(), Some(ms(10)));
        stage.go(4, us(1_000), us(2_000));
        stage.latency.tally().slo_missed.add(20);
        stage.go(1, us(1_000), us(2_000));
        assert!(stage.level() < START, "{}", stage.level());
    }

    #[test]
    fn without_best_effort_work_nothing_is_learned() {
        let mut stage = Stage::new(Policy::default(), None);
        for _ in 0..100 {
            stage.latency.tally().bursts.add(50);
            stage.now += LOOK_EVERY;
            stage.controller.look(&stage.board, &stage.policy, stage.now);
        }
        assert_eq!(stage.level(), START);
    }

    #[test]
    fn who_is_kept_away_makes_it_bolder_unless_a_person_keeps_it() {
        let kept_away = |paused: bool| {
            let mut stage = Stage::new(Policy::default(), Some(ms(10)));
            stage.best_effort.say_need(Need { wants: true, certificate: us(200), ..Need::default() }, ms(1));
            stage.board.change(stage.best_effort.place(), board::Change::Paused(paused));
            for _ in 0..200 {
                let spans = Spans { count: 100, p50: us(1_000), p99: us(2_000) };
                stage.latency.say_experience(Experience { all: spans, alone: spans, alone_needed: 100 });
                stage.latency.tally().bursts.add(50);
                stage.now += LOOK_EVERY;
                stage.controller.look(&stage.board, &stage.policy, stage.now);
            }
            (stage.level(), stage.board.dials().beside)
        };
        assert_eq!(kept_away(false), (LEVELS - 1, us(400)));
        assert_eq!(kept_away(true), (START, Nanos::ZERO));
    }

    #[test]
    fn who_says_that_it_runs_and_cannot_count_is_there() {
        let mut stage = Stage::new(Policy::default(), None);
        stage
            .best_effort
            .say_need(Need { wants: true, runs: true, certificate: us(70), ..Need::default() }, ms(1));
        let readings: Vec<_> = stage.board.seats().collect();
        let around = stage.controller.around(&readings, 50, ms(1_100));
        assert_eq!((around.best_effort, around.certificate), (1_000, us(70)));
        stage.best_effort.tally().gpu_ns.add(ms(30).0);
        let readings: Vec<_> = stage.board.seats().collect();
        let around = stage.controller.around(&readings, 50, ms(1_100));
        assert_eq!(around.best_effort, 300, "who counts is believed what it counts");
    }

    #[test]
    fn dials_that_a_person_has_set_stay() {
        let hand = model::Hand { quiet: Some(us(77)), in_flight: Some(ms(3)), ..Default::default() };
        let policy = Policy { hand, ..Policy::default() };
        let mut stage = Stage::new(policy, None);
        stage.go(200, us(1_000), us(2_000));
        let top = slo::dials_at(LEVELS - 1, Company::ShortBlocks, Domain::Isolated, Dials::default());
        assert_eq!(stage.board.dials(), Dials { quiet: us(77), in_flight: ms(3), ..top });
    }

    #[test]
    fn other_policies_are_left_alone_and_their_dials_kept() {
        let mut stage = Stage::new(Policy { kind: Kind::Gaps, ..Policy::default() }, None);
        stage.go(50, us(1_000), us(2_000));
        let plain = Dials { kind: Kind::Gaps, ..Dials::default() };
        assert_eq!((stage.board.dials(), stage.controller.level(&stage.policy)), (plain, None));
        stage.board.set_dials(&Dials { kind: Kind::Fair, beside: ms(1), ..plain });
        stage.go(1, us(1_000), us(2_000));
        assert_eq!(stage.board.dials(), plain, "what a tenant wrote there does not stay");
    }

    #[test]
    fn an_impossible_objective_is_told_once_and_costs_best_effort_work_nothing() {
        let mut stage = Stage::new(Policy::default(), Some(us(1_500)));
        let place = stage.latency.place();
        stage.latency.tally().slo_missed.add(25);
        let found = stage.go(200, us(1_000), us(2_000));
        assert_eq!(found, [Unattainable { place, slo: us(1_500), alone: us(2_000) }]);
        assert_eq!(stage.level(), LEVELS - 1);
        stage.board.change(place, board::Change::Slo(Some(us(1_800))));
        assert_eq!(stage.go(3, us(1_000), us(2_000)).len(), 1, "another objective is another matter");
    }

    #[test]
    fn who_takes_a_seat_is_not_measured_by_who_sat_there() {
        let mut stage = Stage::new(Policy::default(), None);
        stage.go(3, us(1_000), us(2_000));
        assert!(stage.board.free(stage.latency.place()));
        stage.latency = sit(&stage.board, Class::Latency, None);
        stage.latency.tally().bursts.add(7);
        let readings: Vec<_> = stage.board.seats().collect();
        let (place, reading) = readings.iter().find(|(place, _)| *place == stage.latency.place()).unwrap();
        let report = stage.controller.report(*place, reading, &Around::default());
        assert_eq!((report.requests, report.solo), (7, None));
    }

    #[test]
    fn numbers_that_go_back_are_no_requests() {
        let mut controller = Controller::default();
        let board = Board::private(Gpu([3; 16]), &Settings::default()).unwrap();
        let seat = sit(&board, Class::Latency, None);
        controller.seen.insert(seat.place(), Seen { bursts: 9, missed: 9, gpu: ms(9), told: None });
        let (place, reading) = board.seats().next().unwrap();
        let report = controller.report(place, &reading, &Around::default());
        assert_eq!((report.requests, report.missed), (0, 0));
    }
}
