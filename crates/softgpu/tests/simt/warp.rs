//! Lanes that exchange values.

use crate::harness::{eval, eval1};

#[test]
fn shuffles() {
    let run = |text: &str| eval(32, text);
    let down = run("shfl.sync.down.b32 %out, %tid, 4, 31, 0xffffffff;");
    assert_eq!(down, (0..32).map(|lane| if lane + 4 < 32 { lane + 4 } else { lane }).collect::<Vec<_>>());
    let up = run("shfl.sync.up.b32 %out|%p1, %tid, 3, 0, 0xffffffff;\n@!%p1 mov.b32 %out, 99;");
    assert_eq!(up, (0..32).map(|lane| if lane >= 3 { lane - 3 } else { 99 }).collect::<Vec<_>>());
    let butterfly = run("shfl.sync.bfly.b32 %out, %tid, 5, 31, 0xffffffff;");
    assert_eq!(butterfly, (0..32).map(|lane| lane ^ 5).collect::<Vec<_>>());
    let index = run("shfl.sync.idx.b32 %out, %tid, 7, 31, 0xffffffff;");
    assert_eq!(index, vec![7; 32]);
    // Segments of eight lanes: the segment mask is in bits 8 to 12.
    let segments = run("shfl.sync.idx.b32 %out, %tid, 2, 0x181f, 0xffffffff;");
    assert_eq!(segments, (0..32).map(|lane| lane / 8 * 8 + 2).collect::<Vec<_>>());
    let down8 = run("shfl.sync.down.b32 %out, %tid, 1, 0x181f, 0xffffffff;");
    assert_eq!(down8, (0..32).map(|lane| if lane % 8 == 7 { lane } else { lane + 1 }).collect::<Vec<_>>());
}

#[test]
fn shuffles_among_some_lanes() {
    // Two halves of the warp shuffle on their own, one from inside a branch.
    let out = eval(
        32,
        "setp.lt.u32 %p1, %tid, 16;\n@%p1 bra LOW;\nshfl.sync.bfly.b32 %out, %tid, 1, 31, 0xffff0000;\nbra END;\n\
         LOW:\nshfl.sync.bfly.b32 %out, %tid, 2, 31, 0x0000ffff;\nEND:\n",
    );
    assert_eq!(out, (0..32).map(|lane| if lane < 16 { lane ^ 2 } else { lane ^ 1 }).collect::<Vec<_>>());
    // The same instruction with a mask per half.
    let out = eval(
        32,
        "setp.lt.u32 %p1, %tid, 16;\nselp.b32 %r1, 0xffff, 0xffff0000, %p1;\nvote.sync.ballot.b32 %out, 1, %r1;",
    );
    assert_eq!(out, (0..32).map(|lane| if lane < 16 { 0xffff } else { 0xffff_0000 }).collect::<Vec<_>>());
}

#[test]
fn late_lanes_are_waited_for() {
    // Odd lanes first go round a loop; the vote needs all of them.
    let out = eval(
        32,
        "and.b32 %r1, %tid, 1;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra VOTE;\nmov.b32 %r2, 0;\nLOOP:\nadd.u32 %r2, %r2, 1;\n\
         setp.lt.u32 %p2, %r2, 50;\n@%p2 bra LOOP;\nVOTE:\nsetp.ne.u32 %p3, %r1, 0;\n\
         vote.sync.ballot.b32 %out, %p3, 0xffffffff;",
    );
    assert_eq!(out, vec![0xaaaa_aaaa; 32]);
}

#[test]
fn partial_warps_vote_without_the_missing() {
    let out = eval(40, "setp.ge.u32 %p1, %tid, 0;\nvote.sync.ballot.b32 %out, %p1, 0xffffffff;");
    assert_eq!(out[0], u32::MAX);
    assert_eq!(out[39], 0xff);
}

#[test]
fn votes() {
    let text = |vote: &str| {
        format!(
            "setp.lt.u32 %p1, %tid, 5;\nvote.sync.{vote}.pred %p2, %p1, 0xffffffff;\nselp.u32 %out, 1, 0, %p2;"
        )
    };
    assert_eq!(eval(32, &text("all"))[0], 0);
    assert_eq!(eval(32, &text("any"))[0], 1);
    assert_eq!(eval(32, &text("uni"))[0], 0);
    assert_eq!(eval(5, &text("all"))[0], 1);
}

#[test]
fn matching_lanes() {
    let out = eval(32, "and.b32 %r1, %tid, 3;\nmatch.any.sync.b32 %out, %r1, 0xffffffff;");
    assert_eq!(out, (0..32).map(|lane| 0x1111_1111 << (lane % 4)).collect::<Vec<_>>());
    let out =
        eval(32, "mov.b64 %d1, 5;\nmatch.all.sync.b64 %out|%p1, %d1, 0xffffffff;\n@!%p1 mov.b32 %out, 1;");
    assert_eq!(out, vec![u32::MAX; 32]);
}

#[test]
fn reductions_over_lanes() {
    assert_eq!(eval(32, "redux.sync.add.u32 %out, %tid, 0xffffffff;"), vec![496; 32]);
    let min = eval(32, "sub.s32 %r1, %tid, 10;\nredux.sync.min.s32 %out, %r1, 0xffffffff;");
    assert_eq!(min, vec![-10i32 as u32; 32]);
    assert_eq!(eval(32, "redux.sync.max.u32 %out, %tid, 0xffffffff;"), vec![31; 32]);
    assert_eq!(eval(32, "redux.sync.xor.b32 %out, %tid, 0xffffffff;"), vec![0; 32]);
}

#[test]
fn one_lane_is_elected() {
    let out = eval(32, "elect.sync %r1|%p1, 0xfffffff0;\nselp.u32 %out, 1, 0, %p1;");
    assert_eq!(out.iter().sum::<u32>(), 1);
    assert_eq!(out[4], 1);
}

#[test]
fn warp_barriers_from_different_places() {
    let out = eval(
        32,
        ".shared .align 4 .b8 cells[128];\nmov.u32 %r1, cells;\nmad.lo.u32 %r2, %tid, 4, %r1;\n\
         setp.lt.u32 %p1, %tid, 16;\n@%p1 bra LOW;\nst.shared.u32 [%r2], %tid;\nbar.warp.sync 0xffffffff;\nbra JOIN;\n\
         LOW:\nst.shared.u32 [%r2], %tid;\nbar.warp.sync 0xffffffff;\nJOIN:\nxor.b32 %r3, %tid, 31;\n\
         mad.lo.u32 %r4, %r3, 4, %r1;\nld.shared.u32 %out, [%r4];",
    );
    assert_eq!(out, (0..32).rev().collect::<Vec<_>>());
}

#[test]
fn special_registers() {
    assert_eq!(eval(40, "mov.u32 %out, %laneid;")[39], 7);
    assert_eq!(eval(40, "mov.u32 %out, %warpid;")[39], 1);
    assert_eq!(eval(40, "mov.u32 %out, %nwarpid;")[0], 2);
    assert_eq!(eval(40, "mov.u32 %out, %ntid.x;")[0], 40);
    assert_eq!(eval(32, "mov.u32 %out, %lanemask_lt;")[5], 31);
    assert_eq!(eval(32, "mov.u32 %out, %lanemask_ge;")[31], 1 << 31);
    assert_eq!(eval(32, "mov.u32 %out, %lanemask_gt;")[31], 0);
    assert_eq!(eval1("mov.u32 %out, %nctaid.x;"), 1);
    assert_eq!(eval1("mov.u64 %d1, %gridid;\ncvt.u32.u64 %out, %d1;"), 7);
    assert_eq!(eval1("mov.u32 %out, WARP_SZ;"), 32);
}
