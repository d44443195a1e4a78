use proptest::prelude::*;
use scenario::Workload;
use scenario::profile::{self, Profile};

use super::card::Card;
use super::plan::Plan;
use super::protocol::{Order, Spec};
use super::*;

fn workload(keys: &str) -> Workload {
    serde_json::from_str(keys).unwrap()
}

fn never(id: &str) -> Result<Profile, Error> {
    panic!("nobody needs a profile of {id}")
}

fn plan(keys: &str, slowdown: f64, card: &Card) -> Plan {
    Plan::of(&workload(keys), slowdown, card, &never).unwrap()
}

fn replayed(kernel: profile::Kernel, slowdown: f64, card: &Card) -> plan::Kernel {
    let part = profile::Part { name: "request".into(), times: 1, host_us: 0.0, kernels: vec![kernel] };
    let workload = workload(r#"{"model":"vgg19"}"#);
    let profile = Profile {
        schema: 1,
        workload: workload.id(),
        recorded: Default::default(),
        sms: 132,
        parts: vec![part],
    };
    let plan = Plan::of(&workload, slowdown, card, &|_| Ok(profile.clone())).unwrap();
    plan.parts[0].kernels[0]
}

#[test]
fn a_burst_is_launches_with_gaps_and_a_grid_is_one_launch() {
    let card = Card::software(132);
    let burst =
        plan(r#"{"model":"burst","launches":3,"blocks":132,"block":"20us","gap":"5us"}"#, 10.0, &card);
    let at: Vec<_> = burst.kernels().map(|kernel| kernel.at).collect();
    assert_eq!(at, [0, 50, 100].map(Nanos::from_micros));
    assert_eq!(burst.nominal(), Nanos::from_micros(600));
    let grid = plan(r#"{"model":"grid","blocks":1056,"block":"100us"}"#, 2.0, &card);
    assert_eq!(grid.kernels().count(), 1);
    assert_eq!(grid.nominal(), Nanos::from_micros(1600));
}

#[test]
fn small_blocks_of_a_burst_share_an_sm() {
    let card = Card::software(4);
    let burst = plan(r#"{"model":"burst","launches":1,"blocks":65,"block":"20us","gap":"0us"}"#, 1.0, &card);
    assert_eq!(burst.nominal(), Nanos::from_micros(40));
}

#[test]
fn waves_of_short_blocks_are_taken_together_and_last_as_long() {
    let card = Card::software(132);
    let kernel =
        profile::Kernel { at_us: 7.0, blocks: 132 * 8 * 100, threads: 256, per_sm: 8, block_us: 2.0 };
    let replay = replayed(kernel, 10.0, &card);
    assert_eq!((replay.waves, replay.shape.blocks, replay.length), (4, 132 * 4, Nanos::from_micros(500)));
    assert_eq!(replay.shape.shared, card.whole_room());
    assert_eq!(replay.at, Nanos::from_micros(70));
}

#[test]
fn long_blocks_stay_as_they_are() {
    let card = Card::software(132);
    let kernel =
        profile::Kernel { at_us: 0.0, blocks: 132 * 2 + 1, threads: 1024, per_sm: 1, block_us: 800.0 };
    let replay = replayed(kernel, 1.0, &card);
    assert_eq!((replay.waves, replay.shape.blocks, replay.length), (3, 132 * 3, Nanos::from_micros(800)));
}

#[test]
fn a_kernel_that_leaves_room_leaves_it() {
    let card = Card::software(132);
    let kernel = profile::Kernel { at_us: 0.0, blocks: 200, threads: 256, per_sm: 8, block_us: 5.0 };
    let replay = replayed(kernel, 10.0, &card);
    assert_eq!((replay.waves, replay.shape.blocks), (1, 132));
    assert_eq!(replay.shape.shared, card.room(2, 8));
    let few = replayed(profile::Kernel { blocks: 7, ..kernel }, 10.0, &card);
    assert_eq!((few.shape.blocks, few.shape.shared), (7, card.room(1, 8)));
}

#[test]
fn tokens_come_with_the_parts() {
    let part = |times| profile::Part {
        name: "x".into(),
        times,
        host_us: 1.0,
        kernels: vec![profile::Kernel { at_us: 0.0, blocks: 1, threads: 32, per_sm: 1, block_us: 1.0 }],
    };
    let workload = workload(r#"{"model":"llama","output":32}"#);
    let parts = vec![part(1), part(31)];
    let profile =
        Profile { schema: 1, workload: workload.id(), recorded: Default::default(), sms: 132, parts };
    let plan = Plan::of(&workload, 1.0, &Card::software(132), &|_| Ok(profile.clone())).unwrap();
    assert_eq!(plan.tokens, Some(32));
    assert_eq!(plan.launches().count(), 32);
}

#[test]
fn what_cannot_be_played_is_refused() {
    let refusal = |keys: &str, slowdown, card: &Card| {
        Plan::of(&workload(keys), slowdown, card, &|id| Ok(Profile::built_in(id)?)).unwrap_err().to_string()
    };
    let long = r#"{"model":"grid","blocks":1,"block":"1s"}"#;
    assert!(refusal(long, 20.0, &Card::software(132)).contains("smaller slowdown"));
    let model = r#"{"model":"vgg19","batch":77}"#;
    assert!(refusal(model, 1.0, &Card::software(132)).contains("ebb lab record"));
    let mut card = Card::software(132);
    card.name = "NVIDIA H200".to_owned();
    assert!(refusal(model, 1.0, &card).contains("on a card it is the real one"));
}

#[test]
fn orders_are_read_as_the_lab_writes_them() {
    use crate::crew::Order as Written;
    let read =
        |order: &Written<'_>| serde_json::from_str::<Order>(&serde_json::to_string(order).unwrap()).unwrap();
    assert_eq!(read(&Written::Prepare { tenant: 3 }), Order::Prepare { tenant: 3 });
    assert_eq!(read(&Written::Record { tenant: 0 }).tenant(), 0);
    assert_eq!(
        read(&Written::Calibrate { tenant: 1, seconds: 0.5 }),
        Order::Calibrate { tenant: 1, seconds: 0.5 }
    );
    let due: &[u64] = &[1, 2];
    for (written, due_us) in [(Some(due), Some(vec![1, 2])), (None, None)] {
        let order = Written::Run { tenant: 0, begin_ns: 9, due_us: written, until_us: 30, drain_us: 4 };
        assert_eq!(read(&order), Order::Run { tenant: 0, begin_ns: 9, due_us, until_us: 30, drain_us: 4 });
    }
}

#[test]
fn a_spec_is_read_as_the_lab_writes_it() {
    use crate::crew;
    let workload = serde_json::json!({"model": "burst", "launches": 10, "blocks": 132, "block": "20us"});
    let tenant = crew::TenantSpec {
        name: "b".to_owned(),
        class: "latency".to_owned(),
        workload,
        stream: Stream::High,
    };
    let spec = crew::Spec { tenants: vec![tenant], slowdown: 10.0, tiny: false };
    let read: Spec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
    assert_eq!((read.slowdown, read.tenants[0].stream), (10.0, Stream::High));
    assert_eq!(read.tenants[0].workload.id(), "burst-10x132x20us");
}

proptest! {
    /// However blocks are taken together, a kernel takes the time it took, to the rounding of a nanosecond per wave.
    #[test]
    fn a_replayed_kernel_lasts_as_long_as_the_recorded_one(
        blocks in 1u32..1_000_000, per_sm in 1u32..=32, block_us in 0.1..2000.0, slowdown in 1.0..20.0
    ) {
        let card = Card::software(132);
        let kernel = profile::Kernel { at_us: 0.0, blocks, threads: 32, per_sm, block_us };
        let recorded = block_us * f64::from(kernel.waves(132)) * slowdown;
        prop_assume!(recorded < 4e6);
        let replay = replayed(kernel, slowdown, &card);
        let lasts = replay.length.as_micros_f64() * f64::from(replay.waves);
        prop_assert!((lasts - recorded).abs() <= 0.001 * f64::from(replay.waves) + 0.001, "{lasts} for {recorded}");
        let fit = replay.shape.blocks.div_ceil(132);
        prop_assert!(fit <= replay.waves.max(1), "{} blocks in {} waves", replay.shape.blocks, replay.waves);
    }
}
