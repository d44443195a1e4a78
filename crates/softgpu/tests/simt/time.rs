//! Sleeping, and loops that wait for a clock without running.

use model::Dim3;
use softgpu::simt::{Block, Outcome};

use crate::harness::{Arg, Device, EPOCH};

const CLOCKS: [&str; 2] =
    [include_str!("../../test_data/clocks.sm_90.ptx"), include_str!("../../test_data/clocks.sm_80.O0.ptx")];

/// Runs one block; gives the time it took and how many instructions were run.
fn elapsed(text: &str, kernel: &str, arguments: impl Fn(&Device) -> Vec<Arg>) -> (u64, u64) {
    let mut device = Device::new(text);
    device.clock.now = 1000;
    let arguments = arguments(&device);
    let launch = device.launch(kernel, Dim3::ONE, Dim3::new(64, 1, 1), &arguments);
    let mut block = Block::new(&launch, &device.space);
    block.start(0, 0);
    let mut turns = 0;
    loop {
        turns += 1;
        assert!(turns < 100, "{kernel} spins instead of sleeping");
        match block.run(&mut device.clock, 10_000) {
            Outcome::Done => return (device.clock.now - 1000, device.clock.looks),
            Outcome::Sleeping { until } => device.clock.now = device.clock.now.max(until.0),
            other => panic!("{kernel}: {other:?}"),
        }
    }
}

#[test]
fn clock_loops_are_slept_through() {
    for text in CLOCKS {
        for (kernel, argument) in [("spin64", Arg::U64(50_000_000)), ("spin32", Arg::U32(50_000_000))] {
            let argument = std::cell::RefCell::new(Some(argument));
            let (time, looks) = elapsed(text, kernel, |_| vec![argument.borrow_mut().take().unwrap()]);
            assert!((50_000_000..50_001_000).contains(&time), "{kernel} took {time} ns");
            assert!(looks < 1000, "{kernel} looked at the clock {looks} times");
        }
    }
}

#[test]
fn global_timer_loops_with_naps_are_slept_through() {
    for text in CLOCKS {
        let (time, looks) =
            elapsed(text, "spin_timer", |device| vec![Arg::U64(7_000_000), Arg::U64(device.alloc(8))]);
        assert!((7_000_000..7_001_000).contains(&time), "took {time} ns");
        assert!(looks < 1000, "looked at the clock {looks} times");
    }
}

#[test]
fn the_time_measured_is_the_time_waited() {
    for text in CLOCKS {
        let mut device = Device::new(text);
        let out = device.alloc(8);
        device.run1("spin_timer", 1, &[Arg::U64(123_456), Arg::U64(out)]);
        let measured = device.read_u64(out, 1)[0];
        assert!((123_456..124_456).contains(&measured), "measured {measured}");
    }
}

#[test]
fn a_nap_lasts_as_long_as_asked() {
    for text in CLOCKS {
        let (time, looks) = elapsed(text, "nap", |_| vec![Arg::U32(20_000)]);
        assert!((20_000..20_100).contains(&time), "took {time} ns");
        assert!(looks < 20);
    }
}

#[test]
fn a_loop_that_works_while_it_waits_is_run() {
    for text in CLOCKS {
        let mut device = Device::new(text);
        let out = device.alloc(4);
        device.run1("count_until", 1, &[Arg::U64(2000), Arg::U64(out)]);
        assert!(device.read_u32(out, 1)[0] > 100, "every round is counted");
    }
}

#[test]
fn wall_time_is_wall_time() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.reg .b64 %d<4>;\n\
                mov.u64 %d1, %globaltimer;\nld.param.u64 %d2, [out];\nst.global.u64 [%d2], %d1;\nret;\n}\n";
    let mut device = Device::new(text);
    let out = device.alloc(8);
    device.run1("k", 1, &[Arg::U64(out)]);
    assert!((EPOCH..EPOCH + 100).contains(&device.read_u64(out, 1)[0]));
}

#[test]
fn polling_blocks_let_others_run() {
    // Block 0 waits for block 1, which has not started when it begins to poll.
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 flag)\n{\n.reg .b64 %d<4>;\n.reg .b32 %r<4>;\n\
                .reg .pred %p<4>;\nld.param.u64 %d1, [flag];\nmov.u32 %r1, %ctaid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra GIVE;\n\
                WAIT:\nld.acquire.gpu.global.u32 %r2, [%d1];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra WAIT;\nret;\n\
                GIVE:\nst.release.gpu.global.u32 [%d1], 1;\nret;\n}\n";
    let mut device = Device::new(text);
    let flag = device.alloc(4);
    let launch = device.launch("k", Dim3::new(2, 1, 1), Dim3::new(32, 1, 1), &[Arg::U64(flag)]);
    let (mut first, mut second) = (Block::new(&launch, &device.space), Block::new(&launch, &device.space));
    first.start(0, 0);
    assert_eq!(first.run(&mut device.clock, 1_000_000), Outcome::Runnable);
    second.start(1, 1);
    assert_eq!(second.run(&mut device.clock, 1_000_000), Outcome::Done);
    assert_eq!(first.run(&mut device.clock, 1_000_000), Outcome::Done);
}

#[test]
fn a_block_whose_one_thread_polls_gives_way_soon() {
    // As in a grid barrier: thread 0 polls, everyone else waits for it at a barrier of the block.
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 flag)\n{\n.reg .b64 %d<4>;\n.reg .b32 %r<4>;\n\
                .reg .pred %p<4>;\nld.param.u64 %d1, [flag];\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 0;\n@%p1 bra MEET;\n\
                WAIT:\nred.global.add.u32 [%d1+4], 1;\nld.acquire.gpu.global.u32 %r2, [%d1];\nsetp.eq.u32 %p2, %r2, 0;\n@%p2 bra WAIT;\n\
                MEET:\nbarrier.sync 0;\nret;\n}\n";
    let mut device = Device::new(text);
    let flag = device.alloc(8);
    let launch = device.launch("k", Dim3::ONE, Dim3::new(64, 1, 1), &[Arg::U64(flag)]);
    let mut block = Block::new(&launch, &device.space);
    block.start(0, 0);
    assert_eq!(block.run(&mut device.clock, 10_000_000), Outcome::Runnable);
    assert!(device.read_u32(flag, 2)[1] < 1000, "it polled {} times", device.read_u32(flag, 2)[1]);
    device.space.write(flag, &[1]).unwrap();
    assert_eq!(block.run(&mut device.clock, 10_000_000), Outcome::Done);
}
