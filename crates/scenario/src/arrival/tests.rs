use proptest::prelude::*;

use super::*;

const SECOND: Nanos = Nanos::from_millis(1000);

fn seconds(seconds: u64) -> Nanos {
    Nanos(SECOND.0 * seconds)
}

fn processes() -> Vec<Process> {
    let trace = Trace::read("t", "0\n1\n5\n40\n90\n91").unwrap();
    vec![
        Process::Uniform,
        Process::Poisson,
        Process::Gamma { cv: 0.5 },
        Process::Gamma { cv: 3.0 },
        Process::Bursts { size: 4, spacing: Nanos::from_millis(3) },
        Process::Trace(trace),
    ]
}

fn due(process: &Process, seed: u64, rate: f64, until: Nanos) -> Vec<Nanos> {
    let arrival = Arrival { process: process.clone(), pace: Pace::Rate(rate) };
    arrival.due(seed, arrival.rate(0.0), until).unwrap()
}

proptest! {
    #[test]
    fn requests_are_offered_in_order_and_before_the_end(
        seed: u64, rate in 0.1f64..2000.0, until in 0u64..3_000_000_000, which in 0usize..6,
    ) {
        let due = due(&processes()[which], seed, rate, Nanos(until));
        prop_assert!(due.is_sorted());
        prop_assert!(due.last().is_none_or(|last| *last < Nanos(until)));
    }

    #[test]
    fn the_same_seed_offers_the_same_requests_however_long_the_run_is(
        seed: u64, rate in 1.0f64..500.0, until in 1u64..2_000_000_000, which in 0usize..6,
    ) {
        let process = &processes()[which];
        let short = due(process, seed, rate, Nanos(until));
        prop_assert_eq!(&short, &due(process, seed, rate, Nanos(until)));
        let mut long = due(process, seed, rate, Nanos(2 * until));
        long.retain(|due| *due < Nanos(until));
        prop_assert_eq!(short, long);
    }

    #[test]
    fn the_mean_rate_is_what_was_asked_for(seed: u64, which in 0usize..6) {
        // At cv 3, a count of 20,000 has a deviation of 3 √20,000 = 424, so 12% are more than five deviations.
        let count = due(&processes()[which], seed, 200.0, seconds(100)).len() as f64;
        prop_assert!((count / 20_000.0 - 1.0).abs() < 0.12, "{count}");
    }

    #[test]
    fn another_seed_offers_others(seed: u64, which in 0usize..5) {
        let process = &processes()[which];
        prop_assert_ne!(due(process, seed, 50.0, seconds(2)), due(process, seed ^ 1, 50.0, seconds(2)));
    }

    #[test]
    fn tenants_and_repetitions_draw_from_streams_of_their_own(seed: u64, repetition in 0u32..1000) {
        let own = stream_seed(seed, "vgg19", repetition);
        prop_assert_eq!(own, stream_seed(seed, "vgg19", repetition));
        prop_assert_ne!(own, stream_seed(seed, "vgg19", repetition + 1));
        prop_assert_ne!(own, stream_seed(seed, "resnet50", repetition));
        prop_assert_ne!(own, stream_seed(seed.wrapping_add(1), "vgg19", repetition));
    }
}

fn gaps(due: &[Nanos]) -> (f64, f64) {
    let gaps: Vec<f64> = due.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    (mean, variance.sqrt() / mean)
}

#[test]
fn gaps_vary_as_much_as_they_should() {
    let cv = |process: Process| gaps(&due(&process, 7, 1000.0, seconds(200))).1;
    assert!(cv(Process::Uniform) < 1e-3);
    assert!((cv(Process::Poisson) - 1.0).abs() < 0.02);
    for wanted in [0.3, 1.0, 2.0, 3.0] {
        let found = cv(Process::Gamma { cv: wanted });
        assert!((found / wanted - 1.0).abs() < 0.04, "{found} for {wanted}");
    }
}

#[test]
fn a_bursty_process_does_not_begin_with_a_burst() {
    // Over many seeds the first second must offer as much as any other.
    let process = Process::Gamma { cv: 3.0 };
    let first: usize = (0..4000).map(|seed| due(&process, seed, 5.0, SECOND).len()).sum();
    assert!((first as f64 / 20_000.0 - 1.0).abs() < 0.05, "{first}");
}

#[test]
fn uniform_tenants_do_not_coincide() {
    let first = |tenant| due(&Process::Uniform, stream_seed(1, tenant, 0), 20.0, SECOND)[0];
    let mut all = ["resnet152", "densenet201", "vgg19", "inception-v3", "distilbert"].map(first);
    all.sort();
    assert!(all.windows(2).all(|pair| pair[1] - pair[0] > Nanos::from_millis(1)), "{all:?}");
}

#[test]
fn a_burst_keeps_its_spacing() {
    let spacing = Nanos::from_millis(3);
    let due = due(&Process::Bursts { size: 4, spacing }, 1, 4.0, seconds(1000));
    let close = due.windows(2).filter(|pair| pair[1] - pair[0] == spacing).count();
    assert!(close as f64 / due.len() as f64 > 0.7, "{close} of {}", due.len());
}

#[test]
fn bursts_that_last_for_days_reach_into_a_run_at_their_rate() {
    let process = Process::Bursts { size: 10_000, spacing: seconds(60) };
    let due = due(&process, 7, 1000.0, seconds(10));
    assert!((9_500..10_500).contains(&due.len()), "{}", due.len());
}

#[test]
fn a_trace_is_squeezed_and_repeated() {
    let trace = Trace::read("t", "# made up\n10\n\n20 # two\n40\n").unwrap();
    // Three arrivals, the mean gap of 15 ms behind the last one.
    assert!((trace.rate() - 3.0 / 0.045).abs() < 1e-9);
    let process = Process::Trace(trace.clone());
    let ms = |due: Vec<Nanos>| due.iter().map(|due| (due.0 as f64 * 1e-6).round() as u64).collect::<Vec<_>>();
    let written = Arrival { process: process.clone(), pace: Pace::Own };
    let natural = written.due(0, written.rate(0.0), Nanos::from_millis(100)).unwrap();
    assert_eq!(ms(natural), [10, 20, 40, 55, 65, 85]);
    assert_eq!(ms(due(&process, 0, trace.rate() * 2.0, Nanos::from_millis(30))), [5, 10, 20, 28]);
    let slowed = written.slowed(10.0);
    assert_eq!(ms(slowed.due(0, slowed.rate(0.0), Nanos::from_millis(500)).unwrap()), [100, 200, 400]);
}

#[test]
fn wrong_traces_are_told_where() {
    let fails = |text: &str| Trace::read("t", text).unwrap_err();
    assert!(fails("1\ntwo\n").starts_with("t:2: `two` is no offset"));
    assert!(fails("1\nNaN\n").starts_with("t:2: "));
    assert!(fails("-1\n2\n").starts_with("t:1: "));
    assert!(fails("5\n4\n").starts_with("t:2: 4 comes after a later one"));
    for short in ["", "1", "1\n1"] {
        assert!(fails(short).contains("fewer than two"), "{short}");
    }
    for dense in ["0\n0.0001\n", "0\n1e-320\n"] {
        assert!(fails(dense).contains("more than 100000 arrivals per second"), "{dense}");
    }
}

#[test]
fn a_closed_loop_has_no_due_times() {
    assert_eq!(Arrival::closed().rate(500.0), None);
    assert_eq!(Arrival::closed().due(1, None, SECOND), None);
}

#[test]
fn loads_are_shares_of_the_capacity_and_stay_so_on_a_slow_device() {
    let arrival = Arrival { process: Process::Poisson, pace: Pace::Load(0.5) };
    assert!(arrival.needs_capacity());
    assert_eq!(arrival.rate(800.0), Some(400.0));
    assert_eq!(arrival.clone().slowed(10.0), arrival);
    assert_eq!(arrival.at(Pace::Rate(30.0)).slowed(10.0).rate(800.0), Some(3.0));
}

#[test]
fn arrivals_read_as_sentences() {
    let shown: Vec<String> = processes()
        .into_iter()
        .map(|process| Arrival { process, pace: Pace::Rate(100.0) }.to_string())
        .collect();
    assert_eq!(shown[0], "uniform 100/s");
    assert_eq!(shown[3], "gamma (cv 3) 100/s");
    assert_eq!(shown[4], "bursts of 4 3ms apart 100/s");
    assert_eq!(shown[5], "trace t 100/s");
    assert_eq!(
        Arrival { process: Process::Poisson, pace: Pace::Load(0.5) }.to_string(),
        "poisson at load 0.5"
    );
}
