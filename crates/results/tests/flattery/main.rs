//! Every way to flatter a result that somebody has fallen for, each with data that shows it. A test here fails if the
//! figures make the mistake it is named for.

mod left;
mod stage;

use model::Nanos;
use proptest::prelude::*;
use results::Figures;
use results::record::Slo;

use stage::{Part, Stage, best_effort, latency};

const MILLISECOND: u64 = 1_000;

/// One request a millisecond for a second; the n-th takes what `service` says, one after another.
fn served(service: impl Fn(u64) -> u64) -> Part {
    let due: Vec<u64> = (0..1000).map(|n| n * MILLISECOND).collect();
    let mut free = 0;
    let (mut start, mut end) = (Vec::new(), Vec::new());
    for (n, due) in due.iter().enumerate() {
        start.push(free.max(*due));
        free = start[n] + service(n as u64);
        end.push(free);
    }
    Part { due: Some(due), start, end, ..latency("server") }
}

/// Iterations of equal length without a break, each with the digest of its number.
fn trained(length: u64, until: u64) -> Part {
    let end: Vec<u64> = (1..).map(|n| n * length).take_while(|end| *end < until + length).collect();
    let start = end.iter().map(|end| end - length).collect();
    let checks = (0..end.len()).map(|n| format!("{n:x}")).collect();
    Part { start, end, checks, ..best_effort("training") }
}

fn figures(stage: Stage) -> Figures {
    Figures::of(&stage.archive())
}

fn server(figures: &Figures) -> &results::figures::Latency {
    figures.scenarios[0]
        .mode("mps")
        .expect("it was run")
        .latency_of("server")
        .expect("it was offered requests")
}

fn training(figures: &Figures) -> &results::figures::BestEffort {
    figures.scenarios[0].mode("mps").expect("it was run").best_effort_of("training").expect("it took part")
}

fn within(limit_us: u64) -> Slo {
    Slo { latency_us: Some(limit_us), ..Slo::default() }
}

#[test]
fn lateness_not_counted() {
    // Each request takes half as long again as the next one is away: service looks steady while the queue grows.
    let figures = figures(Stage::new(within(2 * MILLISECOND)).run("mps", 0, [served(|_| 1_500)]));
    let server = server(&figures);
    assert_eq!(server.service.p99, Some(Nanos::from_micros(1_500)));
    assert!(server.arrival.p99 > Some(Nanos::from_millis(490)), "{:?}", server.arrival);
    assert!(server.attainment.unwrap().value < 0.01);
}

#[test]
fn drops_not_counted() {
    let mut part = served(|_| 100);
    part.start.truncate(950);
    part.end.truncate(950);
    let figures = figures(Stage::new(within(MILLISECOND)).run("mps", 0, [part]));
    let server = server(&figures);
    assert_eq!((server.offered, server.dropped), (1000, 50));
    assert_eq!(server.arrival.p90, Some(Nanos::from_micros(100)));
    assert_eq!(server.arrival.p99, None, "the p99 is among those that were never served");
    assert_eq!(server.p99.value, f64::INFINITY);
    assert!((server.attainment.unwrap().value - 0.95).abs() < 1e-9);
    let curve = server.curve(100);
    assert!((curve.last().unwrap().1 - 0.95).abs() < 1e-9, "a curve of drops does not reach 1");
}

#[test]
fn late_finishes_dropped_from_the_data() {
    // Due in the counted time and finished after it: these are the slow ones, and they count.
    let figures = figures(Stage::new(within(MILLISECOND)).run(
        "mps",
        0,
        [served(|n| if n == 980 { 100_000 } else { 100 })],
    ));
    assert_eq!(server(&figures).offered, 1000);
    assert!(server(&figures).arrival.p99 > Some(Nanos::from_millis(80)));
}

#[test]
fn warm_up_counted() {
    let slow_at_first = || served(|n| if n < 5 { 20_000 } else { 100 });
    let cold = Stage::new(within(MILLISECOND)).window(0, 1000 * MILLISECOND).run("mps", 0, [slow_at_first()]);
    let warm = Stage::new(within(MILLISECOND)).window(200 * MILLISECOND, 1000 * MILLISECOND).run(
        "mps",
        0,
        [slow_at_first()],
    );
    let (cold, warm) = (figures(cold), figures(warm));
    assert!(server(&cold).arrival.p90 > Some(Nanos::from_micros(100)));
    assert_eq!(server(&warm).offered, 800);
    assert_eq!(server(&warm).arrival.max, Some(Nanos::from_micros(100)));
    assert_eq!(server(&warm).attainment.unwrap().value, 1.0);
}

#[test]
fn warm_up_iterations_counted() {
    // Fast in the warm-up, slow after it: 50 iterations end in the warm-up, 4 after it.
    let mut part = trained(4 * MILLISECOND, 200 * MILLISECOND);
    for n in 1..=4 {
        part.start.push(200 * MILLISECOND * n);
        part.end.push(200 * MILLISECOND * (n + 1));
        part.checks.push(format!("{:x}", part.checks.len()));
    }
    let stage = Stage::new(Slo::default()).window(200 * MILLISECOND, 1000 * MILLISECOND);
    let figures = figures(stage.alone(0, part.clone()).run("mps", 0, [part]));
    assert!((training(&figures).rate.value - 5.0).abs() < 1e-9, "{:?}", training(&figures));
}

#[test]
fn unfinished_iterations_counted_whole() {
    // The last iteration began in the counted time and ended as much after it: half of it counts.
    let part = trained(400 * MILLISECOND, 1000 * MILLISECOND);
    assert_eq!(part.end.last(), Some(&(1200 * MILLISECOND)));
    let stage = Stage::new(Slo::default()).window(0, 1000 * MILLISECOND);
    let figures = figures(stage.alone(0, part.clone()).run("mps", 0, [part]));
    assert!((training(&figures).rate.value - 2.5).abs() < 1e-9, "{:?}", training(&figures));
}

#[test]
fn best_effort_result_wrong_but_counted() {
    let right = trained(10 * MILLISECOND, 1000 * MILLISECOND);
    let mut wrong = right.clone();
    for check in &mut wrong.checks[50..] {
        *check = "bad".to_owned();
    }
    wrong.wrong = vec![0];
    let figures = figures(Stage::new(Slo::default()).alone(0, right).run("mps", 0, [wrong]));
    let training = training(&figures);
    assert_eq!(training.wrong, 51);
    assert!((training.rate.value - 49.0).abs() < 1e-9, "{training:?}");
    assert!(!figures.scenarios[0].mode("mps").unwrap().together.right);
}

#[test]
fn best_effort_result_unchecked_but_counted() {
    let whole = trained(10 * MILLISECOND, 1000 * MILLISECOND);
    let mut alone = whole.clone();
    alone.checks.truncate(60);
    let mut silent = whole.clone();
    silent.checks.clear();
    let of = |part: Part| {
        let figures = figures(Stage::new(Slo::default()).alone(0, alone.clone()).run("mps", 0, [part]));
        (training(&figures).rate.value.round(), training(&figures).unchecked)
    };
    assert_eq!(of(whole), (60.0, 40), "beyond what the run alone reached");
    assert_eq!(of(silent), (0.0, 100), "a worker that gives no digest");
}

#[test]
fn best_effort_result_checked_against_runs_that_disagree() {
    let one = trained(10 * MILLISECOND, 1000 * MILLISECOND);
    let mut other = one.clone();
    other.checks[7] = "another".to_owned();
    let stage = Stage::new(Slo::default()).alone(0, one.clone()).alone(1, other).run("mps", 0, [one]);
    let figures = figures(stage);
    assert_eq!((training(&figures).unchecked, training(&figures).rate.value.round()), (1, 99.0));
}

#[test]
fn slo_over_served_instead_of_offered() {
    let mut part = served(|_| 100);
    part.start.truncate(500);
    part.end.truncate(500);
    part.wrong = (0..100).collect();
    let figures = figures(Stage::new(within(MILLISECOND)).run("mps", 0, [part]));
    let server = server(&figures);
    assert_eq!(server.wrong, 100);
    // All 500 that were served came in time; 100 of them were wrong, and 500 more never came.
    assert!((server.attainment.unwrap().value - 0.4).abs() < 1e-9, "{:?}", server.attainment);
}

#[test]
fn told_slo_over_served_and_beside_an_alone_with_another_slo() {
    // A tenth is never served, another is late; alone, one in twenty is later than what was told.
    let mut beside = Part { slo: Some(MILLISECOND), ..served(|n| if n % 10 == 0 { 1_050 } else { 500 }) };
    beside.start.truncate(900);
    beside.end.truncate(900);
    let alone = served(|n| if n % 20 == 0 { 1_050 } else { 500 });
    let stage = Stage::new(within(50 * MILLISECOND)).alone(0, alone).run("mps", 0, [beside]);
    let told = server(&figures(stage)).told.unwrap();
    assert_eq!((told.slo, told.kept, told.alone), (Nanos::from_millis(1), 0.81, 0.95));
    let untold = Stage::new(within(MILLISECOND)).alone(0, served(|_| 500)).run("mps", 0, [served(|_| 500)]);
    assert_eq!(server(&figures(untold)).told, None);
}

#[test]
fn alone_of_another_length() {
    let (fast, slow) = (served(|_| 100), served(|_| 400));
    let stage = |window: u64| {
        let relative = Slo { alone_p99: Some(1.2), ..Slo::default() };
        let stage = Stage::new(relative).window(0, window).alone(0, fast.clone());
        figures(stage.window(0, 1000 * MILLISECOND).run("mps", 0, [slow.clone()]))
    };
    let same = stage(1000 * MILLISECOND);
    assert_eq!(server(&same).overhead.unwrap().value, 4.0);
    assert_eq!(server(&same).attainment.unwrap().value, 0.0);
    let shorter = stage(500 * MILLISECOND);
    assert_eq!(server(&shorter).overhead, None);
    assert_eq!(server(&shorter).attainment, None);
    assert!(shorter.remarks.iter().any(|remark| remark.contains("another length")), "{:?}", shorter.remarks);
}

#[test]
fn overhead_against_repetitions_that_the_other_mode_lacks() {
    // The second repetition alone is slow; the mode has only the first, and must not gain by the second.
    let (fast, slow) = (served(|_| 100), served(|_| 400));
    let relative = Slo { alone_p99: Some(1.2), ..Slo::default() };
    let stage = Stage::new(relative).alone(0, fast).alone(1, slow.clone()).run("mps", 0, [slow]);
    assert_eq!(server(&figures(stage)).overhead.unwrap().value, 4.0);
}

#[test]
fn means_instead_of_quantiles() {
    let hiccups = |n: u64| if n.is_multiple_of(50) { 900 } else { 100 };
    let figures = figures(Stage::new(within(MILLISECOND)).run("mps", 0, [served(hiccups)]));
    let server = server(&figures);
    // The mean is 116 µs.
    assert_eq!((server.arrival.p50, server.arrival.p99), (Some(Nanos(100_000)), Some(Nanos(900_000))));
}

#[test]
fn ideal_without_what_the_latency_tenants_need() {
    // A tenth of the time belongs to requests, so 90 of 100 iterations is all there is to get.
    let stage = Stage::new(within(MILLISECOND))
        .alone(0, Part { gpu_us: 100.0, ..served(|_| 100) })
        .alone(0, Part { gpu_us: 10_000.0, ..trained(10 * MILLISECOND, 1000 * MILLISECOND) })
        .run(
            "mps",
            0,
            [
                Part { gpu_us: 100.0, ..served(|_| 100) },
                Part { gpu_us: 10_000.0, ..trained(20 * MILLISECOND, 1000 * MILLISECOND) },
            ],
        );
    let figures = figures(stage);
    let together = &figures.scenarios[0].mode("mps").unwrap().together;
    assert!((together.ideal.unwrap() - 0.9).abs() < 1e-9);
    assert!((together.best_effort.unwrap().value - 0.5).abs() < 1e-9);
    assert!((together.of_ideal.unwrap().value - 0.5 / 0.9).abs() < 1e-9);
    assert!((together.busy.unwrap() - 0.6).abs() < 1e-9, "{together:?}");
}

/// Requests of a millisecond each without a break, all due at once.
fn burst(due: u64, first: u64, count: u64) -> Part {
    let start: Vec<u64> = (0..count).map(|n| first + n * MILLISECOND).collect();
    let end = start.iter().map(|start| start + MILLISECOND).collect();
    Part { due: Some(vec![due; count as usize]), start, end, gpu_us: 1_000.0, ..latency("server") }
}

/// What a server leaves idle in the second of two seconds.
fn ideal_beside(server: Part) -> f64 {
    let training = || Part { gpu_us: 10_000.0, ..trained(10 * MILLISECOND, 2000 * MILLISECOND) };
    let stage = Stage::new(within(MILLISECOND)).window(1000 * MILLISECOND, 2000 * MILLISECOND);
    let stage = stage.alone(0, server.clone()).alone(0, training()).run("mps", 0, [server, training()]);
    figures(stage).scenarios[0].mode("mps").expect("it was run").together.ideal.expect("both were alone")
}

#[test]
fn ideal_by_requests_that_were_due_instead_of_what_was_served() {
    // A burst of the warm-up is served until 400 ms of the counted time are over, with one request across its begin;
    // another comes 100 ms before the end, and most of it is served afterwards.
    let mut server = burst(500 * MILLISECOND, 500 * MILLISECOND + 500, 900);
    let late = burst(1900 * MILLISECOND, 1900 * MILLISECOND, 700);
    server.due.as_mut().unwrap().extend(late.due.unwrap());
    server.start.extend(late.start);
    server.end.extend(late.end);
    assert!((ideal_beside(server) - (1.0 - 0.4005 - 0.1)).abs() < 1e-9);
}

#[test]
fn idle_time_of_a_server_without_a_queue() {
    // In a closed loop, nothing is due; half of each request is spent on the host.
    let closed = Part { due: None, gpu_us: 500.0, ..burst(0, 500, 3000) };
    assert!((ideal_beside(closed.clone()) - 0.5).abs() < 1e-9);
    // Ends without a start, and starts without an end, are of requests that were not served.
    let half = |list: &[u64]| list[..1500].to_vec();
    for torn in [
        Part { start: half(&closed.start), ..closed.clone() },
        Part { end: half(&closed.end), ..closed.clone() },
    ] {
        assert!((ideal_beside(torn) - (1.0 - 0.5 * 0.5005)).abs() < 1e-9);
    }
    // Shorter than the clock can tell: the GPU time of those that ended within.
    let short = Part { end: closed.start.clone(), ..closed };
    assert!((ideal_beside(short) - 0.5).abs() < 1e-9);
}

#[test]
fn an_ideal_that_a_tenant_which_waits_for_its_host_exceeds() {
    // Half of the time belongs to requests. The training needs the GPU for half of its time, so all of it fits beside
    // them, and who slows it down to a half has lost a half.
    let request = || Part { gpu_us: 500.0, ..served(|_| 500) };
    let training = |each| Part { gpu_us: 5_000.0, ..trained(each, 1000 * MILLISECOND) };
    let stage = Stage::new(within(MILLISECOND)).alone(0, request()).alone(0, training(10 * MILLISECOND)).run(
        "mps",
        0,
        [request(), training(20 * MILLISECOND)],
    );
    let figures = figures(stage);
    let together = &figures.scenarios[0].mode("mps").unwrap().together;
    assert!((together.of_ideal.unwrap().value - 0.5).abs() < 1e-9, "{together:?}");
}

#[test]
fn the_best_tenant_shown_for_all() {
    let other = |service: u64| Part { name: "other", ..served(move |_| service) };
    let relative = Slo { alone_p99: Some(1.2), ..Slo::default() };
    let stage = Stage::new(relative).alone(0, served(|_| 100)).alone(0, other(100)).run(
        "mps",
        0,
        [served(|_| 100), other(300)],
    );
    let figures = figures(stage);
    let together = &figures.scenarios[0].mode("mps").unwrap().together;
    assert_eq!(together.worst_overhead.unwrap().value, 3.0);
    assert_eq!(together.mean_overhead.unwrap().value, 2.0);
    assert_eq!(together.worst_attainment.unwrap().value, 0.0);
    assert_eq!(together.mean_attainment.unwrap().value, 0.5);
}

#[test]
fn first_tokens_counted_from_the_start_of_service() {
    // A queue again; the first token comes 300 µs after service began, nine more take 100 µs each.
    let mut part = served(|_| 1_200);
    part.first = part.start.iter().map(|start| start + 300).collect();
    part.tokens = vec![10; 1000];
    let slo = Slo { ttft_us: Some(500), tpot_us: Some(100), ..Slo::default() };
    let figures = figures(Stage::new(slo).run("mps", 0, [part]));
    let server = server(&figures);
    assert_eq!(server.tpot.unwrap().p99, Some(Nanos::from_micros(100)));
    assert!(server.ttft.unwrap().p99 > Some(Nanos::from_millis(190)), "{:?}", server.ttft);
    // The n-th request waits n * 200 µs: the first two keep 500 µs.
    assert!((server.attainment.unwrap().value - 0.002).abs() < 1e-9, "{:?}", server.attainment);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn attainment_grows_with_the_slo(services in prop::collection::vec(1u64..3_000, 20), served_of in 0usize..1000) {
        let attainment = |limit: u64| {
            let mut part = served(|n| services[n as usize % services.len()]);
            part.start.truncate(served_of);
            part.end.truncate(served_of);
            let figures = figures(Stage::new(within(limit)).run("mps", 0, [part]));
            server(&figures).attainment.unwrap().value
        };
        let values = [0, 100, 1_000, 10_000, u64::MAX / 2_000].map(attainment);
        prop_assert!(values.is_sorted(), "{:?}", values);
        prop_assert!((values[4] - served_of as f64 / 1000.0).abs() < 1e-9);
    }
}
