//! Views for tests: plain ones to start from, and any.

#![allow(dead_code, reason = "each test uses a part of it")]

use model::{Dials, Forecast, Kind, Nanos};
use policy::{Activity, BestEffort, Latency, View};
use proptest::prelude::*;

pub const fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

pub fn dials(kind: Kind) -> Dials {
    Dials { kind, ..Dials::default() }
}

/// Idle for ever, of which nothing is known.
pub fn latency(seat: u32) -> Latency {
    Latency {
        seat,
        priority: 5,
        activity: Activity::Idle { since: None },
        busy_until: Nanos::ZERO,
        next: Forecast::ANY_MOMENT,
        slack: Nanos::ZERO,
        usual: Nanos::ZERO,
        lull: Nanos::ZERO,
        spell: Nanos::ZERO,
        whole: false,
        deadline: None,
        solo_wait: Nanos::ZERO,
    }
}

pub fn active(seat: u32, since: Nanos) -> Latency {
    Latency { activity: Activity::Active { since }, ..latency(seat) }
}

/// Wants to run, and can be stopped within 20 µs.
pub fn best_effort(seat: u32) -> BestEffort {
    BestEffort {
        seat,
        priority: 0,
        weight: 1,
        siblings: 1,
        wants: true,
        runs: false,
        virtual_time: Nanos::ZERO,
        wanted_since: Nanos::ZERO,
        certificate: us(20),
        piece: None,
    }
}

pub fn expected(early: Nanos, likely: Nanos) -> Forecast {
    Forecast { early, likely }
}

/// A view that owns its tenants.
#[derive(Clone, Debug)]
pub struct Scene {
    pub now: Nanos,
    pub exclusive: bool,
    pub latency: Vec<Latency>,
    pub best_effort: Vec<BestEffort>,
    pub dials: Dials,
}

impl Scene {
    pub fn view(&self) -> View<'_> {
        let Scene { now, exclusive, dials, .. } = *self;
        View { now, exclusive, latency: &self.latency, best_effort: &self.best_effort, dials }
    }

    pub fn decide(&self) -> policy::Decision {
        policy::decide(&self.view())
    }
}

/// Moments and spans: such as occur, so that they meet, and any others.
pub fn nanos() -> impl Strategy<Value = Nanos> {
    prop_oneof![
        6 => (0u64..4_000).prop_map(us),
        1 => Just(Nanos::ZERO),
        1 => Just(Nanos::MAX),
        1 => any::<u64>().prop_map(Nanos),
    ]
}

pub fn any_dials() -> impl Strategy<Value = Dials> {
    (0..Kind::ALL.len(), nanos(), nanos(), nanos(), nanos(), any::<u32>(), any::<u32>()).prop_map(
        |(kind, quiet, threshold, in_flight, beside, confine, solo_share)| Dials {
            kind: Kind::ALL[kind],
            quiet,
            threshold,
            in_flight,
            beside,
            confine,
            solo_share,
        },
    )
}

fn any_activity() -> impl Strategy<Value = Activity> {
    prop_oneof![
        nanos().prop_map(|since| Activity::Active { since }),
        proptest::option::of(nanos()).prop_map(|since| Activity::Idle { since }),
    ]
}

fn any_forecast() -> impl Strategy<Value = Forecast> {
    prop_oneof![
        Just(Forecast::ANY_MOMENT),
        (nanos(), nanos()).prop_map(|(early, likely)| expected(early, likely))
    ]
}

pub fn any_latency() -> impl Strategy<Value = Latency> {
    let rest = (
        nanos(),
        any_forecast(),
        [nanos(), nanos(), nanos(), nanos()],
        proptest::option::of(nanos()),
        [0.1, 0.5].map(proptest::bool::weighted),
    );
    (0u32..4, 0u32..=9, any_activity(), rest).prop_map(|(seat, priority, activity, rest)| {
        let (busy_until, next, [slack, usual, lull, spell], deadline, [solo, whole]) = rest;
        Latency {
            seat,
            priority,
            activity,
            busy_until,
            next,
            slack,
            usual,
            lull,
            spell,
            whole,
            deadline,
            solo_wait: if solo { policy::solo::PATIENCE } else { Nanos::ZERO },
        }
    })
}

pub fn any_best_effort() -> impl Strategy<Value = BestEffort> {
    let small = prop_oneof![4 => 0u32..4, 1 => any::<u32>()];
    let turn = (nanos(), nanos(), nanos(), proptest::option::of(nanos()));
    (0u32..12, small.clone(), small.clone(), small, any::<(bool, bool)>(), turn).prop_map(
        |(
            seat,
            priority,
            weight,
            siblings,
            (wants, runs),
            (virtual_time, wanted_since, certificate, piece),
        )| BestEffort {
            seat,
            priority,
            weight,
            siblings,
            wants,
            runs,
            virtual_time,
            wanted_since,
            certificate,
            piece,
        },
    )
}

/// Any scene; seats differ, as seats do.
pub fn any_scene() -> impl Strategy<Value = Scene> {
    let latency = proptest::collection::vec(any_latency(), 0..4);
    let best_effort = proptest::collection::vec(any_best_effort(), 0..5);
    (nanos(), any::<bool>(), latency, best_effort, any_dials()).prop_map(
        |(now, exclusive, mut latency, mut best_effort, dials)| {
            latency.iter_mut().zip(0..).for_each(|(tenant, seat)| tenant.seat = seat);
            best_effort.iter_mut().zip(100..).for_each(|(tenant, seat)| tenant.seat = seat);
            Scene { now, exclusive, latency, best_effort, dials }
        },
    )
}
