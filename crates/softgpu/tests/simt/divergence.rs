//! Lanes that go different ways and meet again.

use crate::harness::eval;

#[test]
fn both_sides_of_a_branch_run_and_meet() {
    let out = eval(
        32,
        "and.b32 %r1, %tid, 1;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra EVEN;\nmov.b32 %out, 100;\nbra.uni JOIN;\n\
         EVEN:\nmov.b32 %out, 200;\nJOIN:\nactivemask.b32 %r2;\npopc.b32 %r3, %r2;\nadd.u32 %out, %out, %r3;",
    );
    let expected: Vec<u32> = (0..32).map(|lane| if lane % 2 == 0 { 232 } else { 132 }).collect();
    assert_eq!(out, expected, "all 32 lanes are back together after the branch");
}

#[test]
fn loops_of_different_length() {
    let out = eval(
        32,
        "mov.b32 %r1, 0;\nLOOP:\nadd.u32 %out, %out, %r1;\nadd.u32 %r1, %r1, 1;\nsetp.le.u32 %p1, %r1, %tid;\n\
         @%p1 bra LOOP;\nactivemask.b32 %r2;\npopc.b32 %r2, %r2;\nmul.lo.u32 %out, %out, %r2;",
    );
    let expected: Vec<u32> = (0..32).map(|lane| 32 * (lane * (lane + 1) / 2)).collect();
    assert_eq!(out, expected);
}

#[test]
fn a_spin_lock_within_a_warp() {
    // Every lane takes the lock in turn; the holder waits at a higher address than those that spin.
    let out = eval(
        32,
        ".shared .align 4 .b32 lock;\n.shared .align 4 .b32 sum;\n\
         setp.eq.u32 %p1, %tid, 0;\n@%p1 st.shared.u32 [lock], 0;\n@%p1 st.shared.u32 [sum], 0;\nbar.sync 0;\n\
         SPIN:\natom.shared.cas.b32 %r1, [lock], 0, 1;\nsetp.ne.u32 %p2, %r1, 0;\n@%p2 bra SPIN;\n\
         ld.shared.u32 %r2, [sum];\nadd.u32 %r2, %r2, %tid;\nst.shared.u32 [sum], %r2;\n\
         atom.shared.exch.b32 %r3, [lock], 0;\nbar.sync 0;\nld.shared.u32 %out, [sum];",
    );
    assert_eq!(out, vec![496; 32]);
}

#[test]
fn one_lane_waits_for_another_of_its_warp() {
    let out = eval(
        32,
        ".shared .align 4 .b32 flag;\nsetp.eq.u32 %p1, %tid, 0;\n@%p1 st.shared.u32 [flag], 0;\nbar.warp.sync 0xffffffff;\n\
         setp.eq.u32 %p2, %tid, 31;\n@%p2 bra GIVE;\n\
         WAIT:\nld.volatile.shared.u32 %r1, [flag];\nsetp.eq.u32 %p3, %r1, 0;\n@%p3 bra WAIT;\n\
         mov.u32 %out, %r1;\nbra.uni DONE;\nGIVE:\nst.volatile.shared.u32 [flag], 42;\nmov.u32 %out, 1;\nDONE:\n",
    );
    assert_eq!(out[..31], vec![42; 31]);
}

#[test]
fn jump_tables() {
    let out = eval(
        8,
        "and.b32 %r1, %tid, 3;\nTARGETS: .branchtargets L0, L1, L2, L3;\nbrx.idx %r1, TARGETS;\n\
         L0:\nmov.b32 %out, 10;\nbra END;\nL1:\nmov.b32 %out, 11;\nbra END;\nL2:\nmov.b32 %out, 12;\nbra END;\n\
         L3:\nmov.b32 %out, 13;\nEND:\n",
    );
    assert_eq!(out, [10, 11, 12, 13, 10, 11, 12, 13]);
}

#[test]
fn labels_belong_to_their_scope() {
    let block = "{\n.reg .pred %q;\n.reg .u32 %n;\nmov.u32 %n, 0;\nAGAIN:\nadd.u32 %n, %n, 1;\nadd.u32 %out, %out, 1;\n\
                 setp.lt.u32 %q, %n, 3;\n@%q bra AGAIN;\n}\n";
    assert_eq!(eval(1, &block.repeat(2)), [6]);
}

#[test]
fn guarded_exits_leave_the_others() {
    let out = eval(
        64,
        "setp.gt.u32 %p1, %tid, 40;\n@%p1 exit;\nbar.sync 0;\nactivemask.b32 %r1;\npopc.b32 %out, %r1;",
    );
    assert_eq!(out[..32], vec![32; 32]);
    assert_eq!(out[32..41], vec![9; 9]);
    assert_eq!(out[41..], vec![0; 23]);
}
