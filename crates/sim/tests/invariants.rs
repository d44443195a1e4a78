//! What holds in every world, whatever is in it and whoever decides.
//!
//! `SIM_CASES` says how many worlds each property is tried on; by default some hundred.

mod common;

use common::random::{Range, dials, worlds};
use common::{ms, play, us};
use model::{Class, Kind, Nanos};
use policy::Who;
use proptest::prelude::*;
use sim::rivals::Rival;
use sim::{Arrivals, Ebb, Kernel, Log, Played, Rung, Sharing, Tenant, World};

const SCHEDULED: &[Sharing] = &[Sharing::Isolated, Sharing::Shared];
const ALL: &[Sharing] =
    &[Sharing::Isolated, Sharing::Shared, Sharing::TimeSlicing, Sharing::Mps, Sharing::MpsPriority];

const ANYTHING: Range =
    Range { latency: (0, 3), best_effort: (0, 3), until: ms(60), factors: true, parts: true };

fn cases(usual: u32) -> ProptestConfig {
    let cases = std::env::var("SIM_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// How long it takes at most to get a kernel off the GPU in the shared domain, by the card's figures alone.
fn stop_time(kernel: &Kernel, world: &World, factor: f64) -> f64 {
    let costs = &world.card.costs;
    let span = match kernel.rung {
        Rung::Guard => kernel.block.0 as f64 * (1.0 + kernel.spread) * costs.guard,
        Rung::Hold => kernel.duration(&world.card).0 as f64,
    };
    costs.flag.0 as f64 + span * factor
}

fn certificate(tenant: &Tenant, world: &World) -> Nanos {
    let factor = tenant.work.factors.iter().copied().fold(1.0, f64::max);
    let spans = tenant.work.steps.iter().map(|step| stop_time(&step.kernel, world, factor));
    Nanos(spans.fold(0.0, f64::max) as u64 + 10)
}

fn best_effort(world: &World) -> impl Iterator<Item = &Tenant> {
    world.tenants.iter().filter(|tenant| tenant.class == Class::BestEffort)
}

/// All of a job's kernels, as long as they are in this world.
fn job_work(tenant: &Tenant, world: &World) -> f64 {
    let costs = &world.card.costs;
    let tax = |kernel: &Kernel| match (world.sharing, tenant.class, kernel.rung) {
        (Sharing::Isolated | Sharing::TimeSlicing, ..) => 1.0,
        (_, Class::Latency, _) => costs.mps,
        (Sharing::Shared, Class::BestEffort, Rung::Guard) => costs.guard,
        _ => 1.0,
    };
    let kernels = tenant.work.steps.iter().map(|step| &step.kernel);
    kernels.map(|kernel| kernel.duration(&world.card).0 as f64 * tax(kernel)).sum()
}

fn finished(played: &Played) -> f64 {
    played.jobs.iter().filter(|job| job.end.is_some()).count() as f64
}

/// Decisions, with names instead of places.
fn named(log: &Log) -> Vec<String> {
    let name = |who| match who {
        Who::One(place) => log.tenants[place as usize].name.clone(),
        who => format!("{who:?}"),
    };
    log.decisions.iter().map(|d| format!("{} {} {} {:?}", d.at, name(d.who), d.longest, d.why)).collect()
}

proptest! {
    #![proptest_config(cases(400))]

    /// Also where best-effort work goes on beside it on other SMs: that makes it slower, but nothing of it is waited for.
    #[test]
    fn a_latency_tenant_never_waits_longer_than_the_certificates_allow(
        world in worlds(Range { latency: (1, 2), ..ANYTHING }, &[Sharing::Shared]),
        dials in dials(),
    ) {
        let log = play(&world, Ebb::new(dials));
        let allowed = best_effort(&world).map(|tenant| certificate(tenant, &world)).max().unwrap_or(Nanos::ZERO);
        for played in log.tenants.iter().filter(|played| played.class == Class::Latency) {
            prop_assert!(played.longest_wait <= allowed, "{} waited {}, allowed {allowed}", played.name, played.longest_wait);
        }
        for played in log.tenants.iter().filter(|played| played.class == Class::BestEffort) {
            let longest = played.stops.iter().map(|stop| stop.latency).max().unwrap_or(Nanos::ZERO);
            prop_assert!(longest <= allowed, "{} took {longest} to stop, allowed {allowed}", played.name);
        }
    }

    #[test]
    fn a_lone_latency_tenant_waits_for_two_switches_at_most_in_the_isolated_domain(
        world in worlds(Range { latency: (1, 1), ..ANYTHING }, &[Sharing::Isolated]),
        dials in dials(),
    ) {
        let log = play(&world, Ebb::new(dials));
        let costs = &world.card.costs;
        let switch = (costs.switch_off + costs.switch_on).0 as f64 * (1.0 + costs.scatter);
        let allowed = Nanos(2 * switch as u64) + costs.best_effort_slice + Nanos(10);
        let waited = log.tenants[0].longest_wait;
        prop_assert!(waited <= allowed, "waited {waited}, allowed {allowed}");
    }

    #[test]
    fn the_same_world_has_the_same_log(world in worlds(ANYTHING, ALL), dials in dials()) {
        let log = || format!("{:?}", play(&world, Ebb::new(dials)));
        prop_assert_eq!(log(), log());
    }

    #[test]
    fn the_order_of_tenants_changes_nothing_but_the_order(
        world in worlds(ANYTHING, ALL),
        dials in dials(),
        turn in 0..6usize,
    ) {
        let log = play(&world, Ebb::new(dials));
        let mut turned = world.clone();
        let turn = turn % world.tenants.len().max(1);
        turned.tenants.rotate_left(turn);
        let mut again = play(&turned, Ebb::new(dials));
        prop_assert_eq!(named(&log), named(&again));
        again.tenants.rotate_right(turn);
        prop_assert_eq!(&log.tenants, &again.tenants);
        prop_assert_eq!((log.events, log.switches, log.reasons), (again.events, again.switches, again.reasons));
    }

    #[test]
    fn every_iteration_is_paid_for_once(
        world in worlds(Range { factors: false, ..ANYTHING }, ALL),
        dials in dials(),
    ) {
        let log = play(&world, Ebb::new(dials));
        for (tenant, played) in world.tenants.iter().zip(&log.tenants) {
            let (work, jobs) = (job_work(tenant, &world), finished(played));
            let paid = (played.busy - played.wasted).0 as f64;
            // A nanosecond for each kernel is lost to whole numbers.
            let rounding = (jobs + 1.0) * (tenant.work.steps.len() as f64 + 1.0);
            prop_assert!(paid >= jobs * work - rounding, "{}: {paid} for {jobs} jobs of {work}", played.name);
            prop_assert!(paid <= (jobs + 1.0) * work + rounding, "{}: {paid} for {jobs} jobs of {work}", played.name);
        }
    }

    #[test]
    fn nobody_gets_more_of_the_gpu_than_there_is(
        world in worlds(Range { latency: (0, 1), best_effort: (0, 2), parts: false, ..ANYTHING }, SCHEDULED),
        dials in dials(),
    ) {
        let mut world = world;
        // Kernels that run out beside each other are each taken to have the card: with one of them that is so.
        let one = world.sharing == Sharing::Shared;
        world.tenants.retain(|tenant| !one || tenant.name != "training 1");
        let log = play(&world, Ebb::new(dials));
        let busy = log.tenants.iter().fold(Nanos::ZERO, |sum, played| sum + played.busy);
        // What was begun before the end is counted whole.
        let begun = best_effort(&world).map(|tenant| certificate(tenant, &world)).max().unwrap_or(Nanos::ZERO);
        // Requests leave SMs idle, so that work beside them has its share of the card on top of what they need.
        let requests = log.tenants.iter().filter(|played| played.class == Class::Latency);
        let beside = requests.fold(0.0, |sum, played| sum + played.busy.0 as f64 * world.card.costs.confined);
        let confined = if world.sharing == Sharing::Shared { f64::from(dials.confine) / 100.0 } else { 0.0 };
        let allowed = world.until + begun + Nanos((beside * confined) as u64);
        prop_assert!(busy <= allowed, "{busy} of {allowed}");
    }

    #[test]
    fn jobs_follow_each_other_in_order(world in worlds(ANYTHING, ALL), dials in dials()) {
        let log = play(&world, Ebb::new(dials));
        for (tenant, played) in world.tenants.iter().zip(&log.tenants) {
            for job in &played.jobs {
                prop_assert!(job.start.is_none_or(|start| start >= job.due));
                prop_assert!(job.end.is_none_or(|end| job.start.is_some_and(|start| start < end)));
            }
            let ends: Vec<Nanos> = played.jobs.iter().map_while(|job| job.end).collect();
            prop_assert!(ends.is_sorted(), "{}", played.name);
            prop_assert!(played.jobs[ends.len()..].iter().all(|job| job.end.is_none()), "{}", played.name);
            if let Arrivals::Open(due) = &tenant.arrivals {
                prop_assert_eq!(due.len(), played.jobs.len());
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(100))]

    /// Half a second in which no request comes: whoever takes turns has had one by then.
    #[test]
    fn every_best_effort_tenant_gets_on_where_there_is_slack(
        world in worlds(Range { latency: (0, 2), best_effort: (1, 3), until: ms(560), ..ANYTHING }, SCHEDULED),
        dials in dials(),
    ) {
        let mut world = world;
        for tenant in &mut world.tenants {
            if let Arrivals::Open(due) = &mut tenant.arrivals {
                due.retain(|&due| due < ms(30));
            }
        }
        let log = play(&world, Ebb::new(dials));
        for played in log.tenants.iter().filter(|played| played.class == Class::BestEffort) {
            let ended = played.ended(ms(60), ms(560));
            let last = named(&log).split_off(log.decisions.len().saturating_sub(5));
            prop_assert!(ended > 0, "{} did nothing in half a second: {last:#?} {:?}", played.name, log.reasons);
        }
    }

    #[test]
    fn the_published_systems_keep_their_books_too(
        world in worlds(Range { factors: false, ..ANYTHING }, &[Sharing::Shared]),
        rival in prop::sample::select(&Rival::ALL[..]),
    ) {
        let once = || {
            let mut scheduler = rival.scheduler();
            sim::run(&world, scheduler.as_mut()).expect("the world is in order")
        };
        let log = once();
        prop_assert_eq!(format!("{log:?}"), format!("{:?}", once()));
        for played in &log.tenants {
            prop_assert!(played.busy >= played.wasted);
            prop_assert!(played.jobs.iter().all(|job| job.end.is_none_or(|end| end > job.due)));
        }
    }
}

/// Two or three tenants that always have work share by weight, within a quantum or two each.
#[test]
fn shares_are_as_the_weights() {
    let until = ms(3_000);
    let training = |name: &str, weight: u32, priority: u32| Tenant {
        weight,
        priority,
        ..common::training(name, common::work([(us(0), common::waves(40, us(50)))]))
    };
    type Case = (&'static [(u32, u32)], &'static [f64]);
    let cases: [Case; 4] = [
        (&[(1, 0), (1, 0)], &[0.5, 0.5]),
        (&[(3, 0), (1, 0)], &[0.75, 0.25]),
        (&[(1, 0), (2, 0), (3, 0)], &[1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0]),
        // A level of priority counts as twice the weight.
        (&[(1, 1), (1, 0)], &[2.0 / 3.0, 1.0 / 3.0]),
    ];
    for (sharing, kind) in
        [(Sharing::Isolated, Kind::Strict), (Sharing::Isolated, Kind::Slo), (Sharing::Shared, Kind::Fair)]
    {
        for (tenants, shares) in cases {
            let tenants = tenants.iter().enumerate();
            let tenants =
                tenants.map(|(n, &(weight, priority))| training(&format!("t{n}"), weight, priority));
            let world = common::world(sharing, until, tenants.collect());
            let log = play(&world, common::ebb(kind));
            let all: u64 = log.tenants.iter().map(|played| played.busy.0).sum();
            assert!(all as f64 > 0.93 * until.0 as f64, "{sharing:?} {kind:?}: the GPU was idle");
            for (played, share) in log.tenants.iter().zip(shares) {
                let got = played.busy.0 as f64 / all as f64;
                assert!(
                    (got - share).abs() < 0.05,
                    "{sharing:?} {kind:?} {}: {got:.3}, {share:.3} wanted",
                    played.name
                );
            }
        }
    }
}
