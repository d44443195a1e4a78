use super::*;
use crate::arrival::{Pace, Process};
use crate::file::{Origin, parse};

const PAIR: &str = r#"
    schema = 1
    title = "a pair"
    duration = "10s"
    warmup = "1s"
    repetitions = 3
    seed = 7

    [soft]
    slowdown = 20
    duration = "4s"

    [[tenant]]
    name = "front"
    class = "latency"
    workload = { model = "llama" }
    arrival = { process = "bursts", rate = 40, size = 4, spacing = "3ms" }
    slo = { ttft = "50ms", alone_tpot_p99 = 1.5 }

    [[tenant]]
    name = "back"
    class = "best-effort"
    workload = { model = "gpt2-large", task = "training" }
"#;

fn read(text: &str) -> Scenario {
    let [scenario] = parse(text, &Origin::text("pair.toml")).unwrap().try_into().unwrap();
    scenario
}

#[test]
fn what_is_read_is_complete() {
    let pair = read(PAIR);
    assert_eq!((pair.name.as_str(), pair.seed, pair.repetitions), ("pair", 7, 3));
    assert_eq!((pair.device, pair.slowdown, pair.until()), (Device::Gpu, 1.0, Nanos::from_millis(11_000)));
    let [front, back] = &pair.tenants[..] else { panic!() };
    assert!(front.is_latency() && !back.is_latency());
    assert_eq!(back.workload.id(), "gpt2-large-training-eager-b1-t1024");
    assert_eq!((&back.arrival, &back.slo), (&Arrival::closed(), &None));
    let little = PAIR.replace("    slo = { ttft = \"50ms\", alone_tpot_p99 = 1.5 }\n", "");
    assert_eq!(read(&little).tenants[0].slo, Some(Slo::default()));
    assert_eq!(Slo::default().alone_p99, Some(1.2));
}

#[test]
fn on_a_slow_device_rates_fall_and_promises_stretch() {
    let soft = read(PAIR).for_device(Device::Soft);
    assert_eq!((soft.slowdown, soft.duration, soft.repetitions), (20.0, Nanos::from_millis(4000), 3));
    let front = &soft.tenants[0];
    assert_eq!(front.arrival.pace, Pace::Rate(2.0));
    assert_eq!(front.arrival.process, Process::Bursts { size: 4, spacing: Nanos::from_millis(60) });
    let slo = front.slo.as_ref().unwrap();
    assert_eq!((slo.ttft, slo.alone_tpot_p99), (Some(Nanos::from_millis(1000)), Some(1.5)));
    // A worker is told the slowdown, so what it computes must not be slowed twice.
    assert_eq!(front.workload, read(PAIR).tenants[0].workload);
    assert_eq!(soft.clone().for_device(Device::Soft), soft);
    assert_eq!(read(PAIR).for_device(Device::Gpu), read(PAIR));
}

#[test]
fn without_a_table_for_it_the_software_gpu_takes_ten_times_as_long() {
    let text = PAIR.replace("    [soft]\n    slowdown = 20\n    duration = \"4s\"\n", "");
    let soft = read(&text).for_device(Device::Soft);
    assert_eq!((soft.slowdown, soft.duration), (10.0, Nanos::from_millis(10_000)));
    assert_eq!(soft.tenants[0].arrival.pace, Pace::Rate(4.0));
}

#[test]
fn modes_are_those_that_mean_something() {
    let pair = read(PAIR);
    let modes = pair.modes();
    assert!(!modes.contains(&Mode::LatencyOnly));
    assert_eq!(modes.len(), Mode::ALL.len() - 1);
    let soft = pair.for_device(Device::Soft).modes();
    assert!(soft.iter().all(|mode| !mode.is_rival()) && soft.contains(&Mode::Streams));

    let mixed =
        read(&PAIR.replace(r#"{ model = "gpt2-large", task = "training" }"#, r#"{ model = "stencil" }"#));
    assert!(!mixed.modes().contains(&Mode::Streams));
    // One player does everything on the software GPU.
    assert!(mixed.for_device(Device::Soft).modes().contains(&Mode::Streams));

    let two = PAIR.to_owned()
        + r#"
        [[tenant]]
        name = "other"
        class = "latency"
        workload = { model = "bert" }
        arrival = { process = "closed" }
    "#;
    assert!(read(&two).modes().contains(&Mode::LatencyOnly));
    let some = PAIR.replace("seed = 7", r#"modes = ["ebb-isolated", "alone", "hami"]"#);
    assert_eq!(read(&some).modes(), [Mode::EbbIsolated, Mode::Alone, Mode::Hami]);
    assert_eq!(read(&some).for_device(Device::Soft).modes(), [Mode::EbbIsolated, Mode::Alone]);
}

#[test]
fn the_digest_changes_with_whatever_is_measured() {
    let digest = |text: &str| read(text).digest();
    assert_eq!(digest(PAIR), digest(PAIR));
    for (from, to) in
        [("\"10s\"", "\"11s\""), ("seed = 7", "seed = 8"), ("rate = 40", "rate = 41"), ("50ms", "51ms")]
    {
        assert_ne!(digest(PAIR), digest(&PAIR.replace(from, to)), "{to}");
    }
    assert_ne!(digest(PAIR), read(PAIR).for_device(Device::Soft).digest());
    let more = PAIR
        .replace("repetitions = 3", "repetitions = 5")
        .replace("a pair", "two")
        .replace("seed = 7", "seed = 7\nmodes = [\"alone\"]");
    assert_eq!(digest(PAIR), digest(&more));
    // On a card, what is said about the software GPU does not matter.
    assert_eq!(digest(PAIR), digest(&PAIR.replace("slowdown = 20", "slowdown = 30")));
}

#[test]
fn a_tenant_is_offered_the_same_beside_anybody() {
    let pair = read(PAIR);
    let other = read(&PAIR.replace("gpt2-large", "whisper"));
    let offered = |scenario: &Scenario, repetition| {
        let front = &scenario.tenants[0];
        front.arrival.due(scenario.arrival_seed(front, repetition), front.arrival.rate(0.0), scenario.until())
    };
    assert_eq!(offered(&pair, 0), offered(&other, 0));
    assert_ne!(offered(&pair, 0), offered(&pair, 1));
}

#[test]
fn tenants_that_are_the_same_are_alone_once() {
    let pair = read(PAIR);
    let modes = pair.modes().into_iter().filter(|mode| mode.is_at_hand()).count() as u64;
    let runs = |count: u64| Nanos(pair.until().0 * 3 * count);
    // Alone is one run for each of the two tenants.
    assert_eq!(least_time(std::slice::from_ref(&pair)), runs(modes + 1));
    let mut other = pair.clone();
    other.tenants[1].name = "else".to_owned();
    assert_eq!(least_time(&[pair.clone(), other]), runs(2 * (modes - 1) + 3));
}
