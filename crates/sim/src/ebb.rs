//! ebb's own policies at the desk: what its processes would know by then, handed to `policy::decide`.
//!
//! What is known of a latency tenant is learned here as it is learned there, by `forecast`, from nothing but what has happened:
//! when requests came, how long they took alone and in company, how long the host was silent at each place of a request. The one
//! thing that is simpler than in the product is how a place is recognised: by its number in the request, where the product
//! goes by the kernels before it.

use forecast::{Arrivals, Recent, Sighting, Solo, SoloProfile};
use model::{Class, Dials, Domain, Forecast, Kind, Nanos};
use policy::slo::{Aim, Report, State, Typical, aim, slack, tune};
use policy::solo::{LEARNING_PATIENCE, PATIENCE};
use policy::{BestEffort, Decision, Latency, View, Who, Why, aside};

use crate::token::Token;
use crate::{Ended, Facts, Hand, Scene, Scheduler};

/// By how much a tenant without an objective may be slower than alone, in thousandths.
const TOLERANCE: u32 = 50;

pub struct Ebb {
    dials: Dials,
    hand: Hand,
    state: State,
    token: Token,
    known: Vec<Known>,
    ticked: Nanos,
    latency: Vec<Latency>,
    best_effort: Vec<BestEffort>,
    busy: Nanos,
}

/// What has been learned of one latency tenant.
#[derive(Default)]
struct Known {
    arrivals: Arrivals,
    solo: Solo,
    /// How long the host was silent, by place in the request.
    silences: Vec<Recent<29>>,
    /// The silence that was foretold last: the call that ends it, and what was said.
    foretold: Option<(Nanos, Forecast)>,
    active: bool,
    /// When the last request ended, and when the next one is expected, as of then: an idle tenant says nothing new, and it is by what
    /// it said last that others see that it is late. Until somebody wants to know it is not worked out.
    ended: Option<Nanos>,
    expected: Option<Forecast>,
    /// Whether the next request, or the one under way, is to be seen alone.
    alone: bool,
    requests: u32,
    missed: u32,
    /// As of the last look.
    report: Option<Report>,
    /// What a request takes alone, half of the time and nine times of ten.
    median: Nanos,
    usual: Nanos,
    /// For how long after a request the next is worth waiting for, as of the last look.
    lull: Nanos,
}

impl Ebb {
    /// Every dial is the controller's to turn, where there is one.
    pub fn new(dials: Dials) -> Ebb {
        Ebb {
            dials,
            hand: Hand::default(),
            state: State::default(),
            token: Token::default(),
            known: Vec::new(),
            ticked: Nanos::ZERO,
            latency: Vec::new(),
            best_effort: Vec::new(),
            busy: Nanos::ZERO,
        }
    }

    /// With dials that a person has set, which stay as they are.
    pub fn by_hand(kind: Kind, hand: Hand) -> Ebb {
        let dials = hand.over(Dials { kind, ..Dials::default() });
        Ebb { hand, ..Ebb::new(dials) }
    }

    /// As they stand now.
    pub fn dials(&self) -> Dials {
        self.dials
    }

    fn look_at(&mut self, scene: &Scene) {
        let holder = if scene.exclusive { self.token.holder(scene) } else { None };
        self.known.resize_with(scene.tenants.len(), Known::default);
        self.latency.clear();
        self.best_effort.clear();
        for facts in scene.tenants {
            match facts.class {
                Class::Latency => {
                    let known = &mut self.known[facts.seat as usize];
                    self.latency.push(known.latency(facts, scene.now));
                }
                Class::BestEffort => self.best_effort.push(best_effort(facts, scene.exclusive, holder)),
            }
        }
    }
}

/// What whoever has the token does about a decision, given what it costs to follow it.
fn stand_aside(scene: &Scene, view: &View, decision: Decision) -> Decision {
    let holder = view.best_effort.iter().find(|tenant| tenant.runs);
    let facts = holder.and_then(|holder| scene.tenants.iter().find(|facts| facts.seat == holder.seat));
    let Some(facts) = facts else { return decision };
    let aside = aside::settle(view, &decision, facts.seat, !facts.runs, scene.lever);
    let Decision { in_flight, why, lead, .. } = decision;
    match aside.off {
        true => Decision { lead, ..Decision::nobody(why, aside.again) },
        false if decision.admits(facts.seat, facts.certificate, view.now) => {
            Decision { again: aside.again, ..decision }
        }
        // To follow it would cost more than it saves.
        false => Decision {
            again: aside.again,
            why,
            lead,
            ..Decision::anything(Who::One(facts.seat), in_flight.max(view.dials.in_flight))
        },
    }
}

fn best_effort(facts: &Facts, exclusive: bool, holder: Option<u32>) -> BestEffort {
    let runs = if exclusive { holder == Some(facts.seat) } else { facts.runs && facts.wants };
    BestEffort {
        seat: facts.seat,
        priority: facts.priority,
        weight: facts.weight,
        siblings: 1,
        wants: facts.wants,
        runs,
        virtual_time: facts.virtual_time,
        wanted_since: facts.wanted_since,
        certificate: facts.certificate,
        piece: facts.held.then_some(facts.piece),
    }
}

impl Known {
    fn latency(&mut self, facts: &Facts, now: Nanos) -> Latency {
        let active = matches!(facts.activity, policy::Activity::Active { .. });
        if active && !self.active {
            self.arrivals.began(now);
        }
        self.active = active;
        let next = match facts.next_call {
            Some(call) => self.silence(facts.step as usize, now, call),
            None if active => Forecast::ANY_MOMENT,
            None if self.is_promised() => self.expected().unwrap_or(Forecast::ANY_MOMENT),
            None => Forecast::ANY_MOMENT,
        };
        Latency {
            seat: facts.seat,
            priority: facts.priority,
            activity: facts.activity,
            busy_until: facts.busy_until,
            next,
            slack: self.slack(facts, now),
            usual: self.median,
            lull: self.lull,
            spell: self.arrivals.spell(),
            whole: facts.calls <= aside::WHOLE,
            deadline: facts.due.zip(facts.slo).map(|(due, slo)| due + slo),
            solo_wait: match self.alone {
                true if self.solo.is_learning() => LEARNING_PATIENCE,
                true => PATIENCE,
                false => Nanos::ZERO,
            },
        }
    }

    /// Of an idle tenant: nothing has been learned of its arrivals since its last request ended.
    fn expected(&mut self) -> Option<Forecast> {
        if self.expected.is_none() {
            self.expected = self.ended.map(|ended| self.arrivals.next(ended));
        }
        self.expected
    }

    /// When the host will call, by what it did at this place before; and what it did now is remembered.
    fn silence(&mut self, place: usize, now: Nanos, call: Nanos) -> Forecast {
        if let Some((_, said)) = self.foretold.filter(|&(which, _)| which == call) {
            return said;
        }
        if self.silences.len() <= place {
            self.silences.resize_with(place + 1, Recent::new);
        }
        let before = &mut self.silences[place];
        let said = match before.is_enough() {
            true => Forecast { early: now + before.tenth(1), likely: now + before.tenth(5) },
            false => Forecast::ANY_MOMENT,
        };
        before.observe(call.since(now));
        self.foretold = Some((call, said));
        said
    }

    /// Whether somebody has said how long its requests may take. Without an objective the slack is a few hundredths of a request, and
    /// to keep everything away that cannot be stopped within that, whenever one may come, would keep it away for good: a tenant
    /// does not say then when it expects one.
    fn is_promised(&self) -> bool {
        self.report.is_some_and(|report| matches!(aim(&report), Aim::Slo(_)))
    }

    fn slack(&self, facts: &Facts, now: Nanos) -> Nanos {
        let Some(report) = self.report.filter(|report| report.solo.is_some()) else { return Nanos::ZERO };
        let since = match facts.activity {
            policy::Activity::Active { since } => since,
            policy::Activity::Idle { .. } => now,
        };
        let elapsed = facts.due.map_or(Nanos::ZERO, |due| now.since(due));
        slack(aim(&report), elapsed, self.usual - now.since(since))
    }

    fn report(&mut self, facts: &Facts, others: &Others) -> Report {
        let Others { best_effort, kept_away, certificate } = *others;
        let report = match self.report.filter(|_| self.requests == 0) {
            // Whoever has answered nothing since has taught nothing.
            Some(last) => {
                Report { requests: 0, missed: 0, slo: facts.slo, best_effort, kept_away, certificate, ..last }
            }
            None => self.summary(facts, others),
        };
        self.report = Some(report);
        report
    }

    fn summary(&mut self, facts: &Facts, others: &Others) -> Report {
        let (all, profile) = (self.solo.all(), self.solo.profile());
        let observed = all.quantile(500).zip(all.quantile(990));
        self.lull = self.arrivals.lull();
        self.median = self.solo.all().quantile(500).unwrap_or_default();
        self.usual = profile.map_or(Nanos::ZERO, |profile| profile.p90);
        Report {
            requests: std::mem::take(&mut self.requests),
            missed: std::mem::take(&mut self.missed),
            observed: observed.map(|(p50, p99)| Typical { p50, p99 }).unwrap_or_default(),
            solo: profile.map(|SoloProfile { p50, p99, .. }| Typical { p50, p99 }),
            slo: facts.slo,
            tolerance: TOLERANCE,
            best_effort: others.best_effort,
            kept_away: others.kept_away,
            certificate: others.certificate,
            in_line: self.arrivals.wait_in_line(),
        }
    }
}

/// What a controller sees of all best-effort tenants together.
struct Others {
    best_effort: u32,
    kept_away: bool,
    certificate: Nanos,
}

impl Scheduler for Ebb {
    fn name(&self) -> &'static str {
        self.dials.kind.name()
    }

    fn asks_in_gaps(&self) -> Option<Nanos> {
        let fills = matches!(self.dials.kind, Kind::Gaps | Kind::Slo);
        // What is foretold is shorter than what comes, nine times of ten: a little below the threshold there is nothing to decide.
        fills.then(|| self.dials.threshold.scaled(4, 5))
    }

    fn decide(&mut self, scene: &Scene) -> Decision {
        self.look_at(scene);
        let view = View {
            now: scene.now,
            exclusive: scene.exclusive,
            latency: &self.latency,
            best_effort: &self.best_effort,
            dials: self.dials,
        };
        let decision = policy::decide(&view);
        let decision = if scene.exclusive { stand_aside(scene, &view, decision) } else { decision };
        let again = if scene.exclusive { self.token.again(scene) } else { Nanos::MAX };
        let waiting = decision.why == Why::NothingToDo;
        Decision { again: decision.again.min(if waiting { Nanos::MAX } else { again }), ..decision }
    }

    fn ended(&mut self, end: &Ended) {
        let Some(known) = self.known.get_mut(end.seat as usize) else { return };
        known.requests += 1;
        // How long it waited in line before, nobody sees who only sees its work.
        let took = end.end.since(end.start);
        known.missed += u32::from(known.report.and_then(|report| report.slo).is_some_and(|slo| took > slo));
        // What a simulated request does it does every time: nothing is loaded, nothing allocated.
        known.solo.observe(end.end, Sighting { took, alone: end.alone, warm_up: false });
        known.arrivals.ended(end.end);
        (known.ended, known.expected) = (Some(end.end), None);
        known.active = false;
        known.alone = known.solo.wants_the_next_alone(self.dials.solo_share);
    }

    fn tick(&mut self, scene: &Scene) {
        self.known.resize_with(scene.tenants.len(), Known::default);
        let others = || scene.tenants.iter().filter(|facts| facts.class == Class::BestEffort);
        let busy = others().fold(Nanos::ZERO, |sum, facts| sum + facts.busy);
        let span = scene.now.since(self.ticked).0.max(1);
        let share = (u128::from(busy.since(self.busy).0) * 1_000 / u128::from(span)) as u32;
        (self.busy, self.ticked) = (busy, scene.now);
        let seen = Others {
            best_effort: share,
            kept_away: others().any(|facts| facts.wants && !facts.runs),
            certificate: others().map(|facts| facts.certificate).max().unwrap_or_default(),
        };
        let latency = scene.tenants.iter().filter(|facts| facts.class == Class::Latency);
        let reports: Vec<Report> =
            latency.map(|facts| self.known[facts.seat as usize].report(facts, &seen)).collect();
        let domain = if scene.exclusive { Domain::Isolated } else { Domain::Shared };
        let (dials, state) = tune(self.dials, domain, self.state, &reports);
        (self.dials, self.state) = (self.hand.over(dials), state);
    }
}
