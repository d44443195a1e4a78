//! Barriers of a block.

use model::Dim3;

use crate::harness::{Arg, Device, eval, per_thread};

#[test]
fn all_threads_see_what_was_written_before() {
    let out = eval(
        256,
        ".shared .align 4 .b8 cells[1024];\nmov.u32 %r1, cells;\nmad.lo.u32 %r2, %tid, 4, %r1;\nst.shared.u32 [%r2], %tid;\n\
         bar.sync 0;\nxor.b32 %r3, %tid, 255;\nmad.lo.u32 %r4, %r3, 4, %r1;\nld.shared.u32 %out, [%r4];",
    );
    assert_eq!(out, (0..256).rev().collect::<Vec<_>>());
}

#[test]
fn exited_threads_count_as_arrived() {
    let out = eval(96, "setp.ge.u32 %p1, %tid, 32;\n@%p1 exit;\nbarrier.sync 0;\nmov.u32 %out, 5;");
    assert_eq!(out[..32], vec![5; 32]);
}

#[test]
fn threads_that_return_early_in_every_warp() {
    let out = eval(
        128,
        "and.b32 %r1, %tid, 7;\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 ret;\nbar.sync 0;\nbar.sync 0;\nmov.u32 %out, 9;",
    );
    assert_eq!(out, (0..128).map(|thread| if thread % 8 == 3 { 0 } else { 9 }).collect::<Vec<_>>());
}

#[test]
fn named_barriers_of_some_warps() {
    // Warps 0 and 1 produce and only arrive; warps 2 and 3 wait for them.
    let out = eval(
        128,
        ".shared .align 4 .b8 cells[256];\nmov.u32 %r1, cells;\nsetp.ge.u32 %p1, %tid, 64;\n@%p1 bra CONSUME;\n\
         mad.lo.u32 %r2, %tid, 4, %r1;\nadd.u32 %r3, %tid, 1000;\nst.shared.u32 [%r2], %r3;\nbar.arrive 3, 128;\nbra END;\n\
         CONSUME:\nbar.sync 3, 128;\nsub.u32 %r2, %tid, 64;\nmad.lo.u32 %r2, %r2, 4, %r1;\nld.shared.u32 %out, [%r2];\nEND:\n",
    );
    assert_eq!(out[64..], (1000..1064).collect::<Vec<_>>());
}

#[test]
fn reducing_barriers() {
    let popc = eval(100, "setp.lt.u32 %p1, %tid, 70;\nbar.red.popc.u32 %out, 1, %p1;");
    assert_eq!(popc, vec![70; 100]);
    let and = "setp.lt.u32 %p1, %tid, 99;\nbarrier.cta.red.and.pred %p2, 2, %p1;\nselp.u32 %out, 1, 2, %p2;";
    assert_eq!(eval(100, and), vec![2; 100]);
    let or = "setp.eq.u32 %p1, %tid, 99;\nbar.red.or.pred %p2, 0, !%p1;\nselp.u32 %out, 1, 2, %p2;";
    assert_eq!(eval(100, or), vec![1; 100]);
}

#[test]
fn a_barrier_reached_by_parts_of_a_warp() {
    let out = eval(
        32,
        "setp.lt.u32 %p1, %tid, 10;\n@%p1 bra A;\nbarrier.sync 1;\nbra END;\nA:\nbarrier.sync 1;\nEND:\nmov.u32 %out, 3;",
    );
    assert_eq!(out, vec![3; 32]);
}

#[test]
fn cluster_barriers_of_a_single_block() {
    let text =
        "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nmov.u32 %out, %cluster_nctaid.x;";
    assert_eq!(eval(64, text), vec![1; 64]);
}

#[test]
fn a_barrier_that_cannot_complete_blocks() {
    use softgpu::simt::{Block, Outcome};
    let mut device = Device::new(&per_thread("bar.sync 0, 128;"));
    let out = device.alloc(256);
    let launch = device.launch("k", Dim3::ONE, Dim3::new(64, 1, 1), &[Arg::U64(out)]);
    let mut block = Block::new(&launch, &device.space);
    block.start(0, 0);
    assert_eq!(block.run(&mut device.clock, 10_000), Outcome::Blocked);
}

#[test]
fn barrier_objects_count_phases() {
    // Two phases of 64 arrivals each; whoever waits polls for the parity of the phase.
    let text = ".shared .align 8 .b64 object;\n.shared .align 4 .b32 sum;\nsetp.eq.u32 %p1, %tid, 0;\n\
                @%p1 mbarrier.init.shared.b64 [object], 64;\n@%p1 st.shared.u32 [sum], 0;\nbar.sync 0;\n\
                red.shared.add.u32 [sum], 1;\nmbarrier.arrive.shared.b64 %d1, [object];\n\
                WAIT:\nmbarrier.test_wait.shared.b64 %p2, [object], %d1;\n@!%p2 bra WAIT;\nld.shared.u32 %r1, [sum];\n\
                mbarrier.arrive.shared.b64 %d2, [object];\n\
                AGAIN:\nmbarrier.try_wait.parity.shared.b64 %p3, [object], 1;\n@!%p3 bra AGAIN;\nmov.u32 %out, %r1;";
    assert_eq!(eval(64, text), vec![64; 64]);
}
