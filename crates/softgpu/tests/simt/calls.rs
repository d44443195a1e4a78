//! Functions: direct, recursive, through pointers, across modules.

use model::Dim3;
use softgpu::error::Fault;

use crate::harness::{Arg, Device};

const HEADER: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

const FIBONACCI: &str = ".func (.param .b32 r) fib(.param .b32 n)\n{\n.reg .pred %p;\n.reg .b32 %a, %b, %c;\n\
    ld.param.b32 %a, [n];\nsetp.lt.s32 %p, %a, 2;\n@%p bra END;\n\
    { .param .b32 x; .param .b32 y;\nadd.s32 %b, %a, -1;\nst.param.b32 [x], %b;\ncall.uni (y), fib, (x);\nld.param.b32 %b, [y]; }\n\
    { .param .b32 x; .param .b32 y;\nadd.s32 %c, %a, -2;\nst.param.b32 [x], %c;\ncall.uni (y), fib, (x);\nld.param.b32 %c, [y]; }\n\
    add.s32 %a, %b, %c;\nEND:\nst.param.b32 [r], %a;\nret;\n}\n";

fn kernel(body: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 out)\n{{\n.reg .pred %p<8>;\n.reg .b32 %r<16>;\n.reg .b64 %d<16>;\n\
         mov.u32 %r1, %tid.x;\n{body}\nld.param.u64 %d1, [out];\nmul.wide.u32 %d2, %r1, 4;\nadd.s64 %d1, %d1, %d2;\n\
         st.global.b32 [%d1], %r2;\nret;\n}}\n"
    )
}

fn run(text: &str, threads: u32) -> Result<Vec<u32>, Fault> {
    let mut device = Device::new(text);
    let out = device.alloc(4 * threads as usize);
    device.try_run("k", Dim3::ONE, Dim3::new(threads, 1, 1), &[Arg::U64(out)])?;
    Ok(device.read_u32(out, threads as usize))
}

#[test]
fn recursion_of_different_depth_in_each_lane() {
    let body = "{ .param .b32 x; .param .b32 y;\nst.param.b32 [x], %r1;\ncall (y), fib, (x);\nld.param.b32 %r2, [y]; }";
    let out = run(&format!("{HEADER}{FIBONACCI}{}", kernel(body)), 16).unwrap();
    assert_eq!(out, [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610]);
}

#[test]
fn function_pointers_that_differ_between_lanes() {
    let functions = ".func (.param .b32 r) twice(.param .b32 n)\n{ .reg .b32 %a; ld.param.b32 %a, [n]; add.s32 %a, %a, %a;\n\
                     st.param.b32 [r], %a; ret; }\n\
                     .func (.param .b32 r) square(.param .b32 n)\n{ .reg .b32 %a; ld.param.b32 %a, [n]; mul.lo.s32 %a, %a, %a;\n\
                     st.param.b32 [r], %a; ret; }\n.global .u64 table[2] = {twice, square};\n";
    let body = "and.b32 %r3, %r1, 1;\nmul.wide.u32 %d3, %r3, 8;\nmov.u64 %d4, table;\nadd.s64 %d4, %d4, %d3;\nld.global.u64 %d5, [%d4];\n\
                { .param .b32 x; .param .b32 y;\nst.param.b32 [x], %r1;\nP: .callprototype (.param .b32 _) _ (.param .b32 _);\n\
                call (y), %d5, (x), P;\nld.param.b32 %r2, [y]; }";
    let out = run(&format!("{HEADER}{functions}{}", kernel(body)), 32).unwrap();
    assert_eq!(
        out,
        (0..32).map(|lane| if lane % 2 == 0 { 2 * lane } else { lane * lane }).collect::<Vec<_>>()
    );
}

/// Half of the lanes sleep in a function of narrow registers while the other half run one of wide registers.
#[test]
fn lanes_in_different_functions_keep_their_registers() {
    let functions = ".func (.param .b32 r) narrow(.param .b32 n)\n{ .reg .b32 %a<6>; ld.param.b32 %a0, [n];\n\
                     mul.lo.s32 %a1, %a0, 3; add.s32 %a2, %a0, 5; xor.b32 %a3, %a0, 9; nanosleep.u32 1000;\n\
                     add.s32 %a4, %a1, %a2; add.s32 %a4, %a4, %a3; st.param.b32 [r], %a4; ret; }\n\
                     .func (.param .b32 r) wide(.param .b32 n)\n{ .reg .b32 %a; .reg .b64 %d<6>; ld.param.b32 %a, [n];\n\
                     mul.wide.u32 %d0, %a, 7; mul.lo.u64 %d1, %d0, %d0; add.u64 %d2, %d0, %d1; xor.b64 %d3, %d1, %d2;\n\
                     add.u64 %d4, %d2, %d3; cvt.u32.u64 %a, %d4; st.param.b32 [r], %a; ret; }\n";
    let body = "and.b32 %r3, %r1, 1;\nsetp.eq.u32 %p1, %r3, 0;\n@%p1 bra EVEN;\n\
                { .param .b32 x; .param .b32 y;\nst.param.b32 [x], %r1;\ncall (y), narrow, (x);\nld.param.b32 %r2, [y]; }\nbra END;\n\
                EVEN: { .param .b32 x; .param .b32 y;\nst.param.b32 [x], %r1;\ncall (y), wide, (x);\nld.param.b32 %r2, [y]; }\nEND:";
    let out = run(&format!("{HEADER}{functions}{}", kernel(body)), 32).unwrap();
    let narrow = |n: u32| 3 * n + n + 5 + (n ^ 9);
    let wide = |n: u32| {
        let (first, square) = (7 * n, 49 * n * n);
        first + square + (square ^ (first + square))
    };
    assert_eq!(
        out,
        (0..32).map(|lane| if lane % 2 == 0 { wide(lane) } else { narrow(lane) }).collect::<Vec<_>>()
    );
}

#[test]
fn a_wild_function_pointer_is_caught() {
    let body = "mov.u64 %d5, 0x1234;\nP: .callprototype _ ();\ncall %d5, (), P;\nmov.u32 %r2, 0;";
    let fault = run(&format!("{HEADER}{}", kernel(body)), 1).unwrap_err();
    assert_eq!(fault, Fault::InvalidProgramCounter { target: 0x1234 });
}

#[test]
fn endless_recursion_overflows_the_stack() {
    let function = ".func down()\n{ .local .align 8 .b8 frame[64]; .reg .b32 %a; mov.u32 %a, 1; st.local.u32 [frame], %a; call down; ret; }\n";
    let fault = run(&format!("{HEADER}{function}{}", kernel("call down;\nmov.u32 %r2, 0;")), 4).unwrap_err();
    assert!(matches!(fault, Fault::StackOverflow { .. }), "{fault}");
}

#[test]
fn locals_of_each_call_are_its_own() {
    let function = ".func (.param .b32 r) sum(.param .b32 n)\n{ .local .align 4 .b8 cell[4]; .reg .b32 %a, %b; .reg .pred %p;\n\
                    ld.param.b32 %a, [n]; st.local.u32 [cell], %a; setp.eq.u32 %p, %a, 0; @%p bra END; sub.u32 %a, %a, 1;\n\
                    { .param .b32 x; .param .b32 y; st.param.b32 [x], %a; call (y), sum, (x); ld.param.b32 %a, [y]; }\n\
                    END: ld.local.u32 %b, [cell]; add.u32 %a, %a, %b; st.param.b32 [r], %a; ret; }\n";
    let body = "{ .param .b32 x; .param .b32 y;\nst.param.b32 [x], %r1;\ncall (y), sum, (x);\nld.param.b32 %r2, [y]; }";
    let out = run(&format!("{HEADER}{function}{}", kernel(body)), 32).unwrap();
    assert_eq!(out, (0..32).map(|lane| lane * (lane + 1) / 2).collect::<Vec<_>>());
}

#[test]
fn structures_by_value_and_registers_as_parameters() {
    let function = ".func (.reg .b32 r) mix(.reg .b32 a, .param .align 8 .b8 s[16])\n{ .reg .b32 %x, %y; .reg .b64 %z;\n\
                    ld.param.v2.b32 {%x, %y}, [s]; ld.param.b64 %z, [s+8]; add.u32 r, a, %x; add.u32 r, r, %y;\n\
                    cvt.u32.u64 %x, %z; add.u32 r, r, %x; ld.param.u8 %x, [s+5]; add.u32 r, r, %x; ret; }\n";
    let body = "{ .param .align 8 .b8 x[16];\nmov.u64 %d3, 0x0000030000000200;\nst.param.b64 [x], %d3;\nmov.b64 %d4, 7;\n\
                st.param.b64 [x+8], %d4;\nst.param.b8 [x+4], %r1;\ncall (%r2), mix, (%r1, x); }";
    let out = run(&format!("{HEADER}{function}{}", kernel(body)), 4).unwrap();
    assert_eq!(out, (0..4).map(|lane| lane + 0x200 + (0x300 + lane) + 7 + 3).collect::<Vec<_>>());
}

#[test]
fn modules_are_linked_by_name() {
    let callee = format!(
        "{HEADER}.visible .global .u32 offset = 40;\n.visible .func (.param .b32 r) more(.param .b32 n)\n\
         {{ .reg .b32 %a, %b; ld.param.b32 %a, [n]; ld.global.u32 %b, [offset]; add.u32 %a, %a, %b; st.param.b32 [r], %a; ret; }}\n"
    );
    let body = "{ .param .b32 x; .param .b32 y;\nst.param.b32 [x], %r1;\ncall (y), more, (x);\nld.param.b32 %r2, [y]; }\n\
                ld.global.u32 %r3, [offset];\nadd.u32 %r2, %r2, %r3;";
    let caller = format!(
        "{HEADER}.extern .func (.param .b32 r) more(.param .b32 n);\n.extern .global .u32 offset;\n{}",
        kernel(body)
    );
    for order in [[&caller[..], &callee], [&callee, &caller]] {
        let mut device = Device::with_texts(&order);
        let out = device.alloc(8);
        device.run1("k", 2, &[Arg::U64(out)]);
        assert_eq!(device.read_u32(out, 2), [80, 81]);
    }
    assert!(softgpu::lower::compile(&caller).is_err(), "nobody defines `more`");
}

#[test]
fn dynamic_stack_allocation() {
    let body = "mul.lo.u32 %r3, %r1, 8;\nadd.u32 %r3, %r3, 8;\ncvt.u64.u32 %d3, %r3;\nstacksave.u64 %d5;\nalloca.u64 %d4, %d3;\n\
                st.local.u32 [%d4], %r1;\nld.local.u32 %r2, [%d4];\nstackrestore.u64 %d5;";
    assert_eq!(run(&format!("{HEADER}{}", kernel(body)), 4).unwrap(), [0, 1, 2, 3]);
}

#[test]
fn aliases_are_the_function_they_name() {
    let functions = ".func (.param .b32 r) seven();\n.func (.param .b32 r) other();\n\
                     .func (.param .b32 r) seven()\n{ .reg .b32 %a; mov.b32 %a, 7; st.param.b32 [r], %a; ret; }\n.alias other, seven;\n";
    let body = "{ .param .b32 y;\ncall (y), other, ();\nld.param.b32 %r2, [y]; }";
    assert_eq!(run(&format!("{HEADER}{functions}{}", kernel(body)), 2).unwrap(), [7, 7]);
}
