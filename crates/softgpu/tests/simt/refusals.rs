//! What is not PTX, or not supported, is refused with its place.

use softgpu::lower::{Error, compile};

const HEADER: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

fn refuse(body: &str) -> Error {
    compile(&format!(
        "{HEADER}.entry k()\n{{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n.reg .pred %p<4>;\n{body}\nret;\n}}\n"
    ))
    .expect_err(body)
}

#[test]
fn errors_name_line_and_instruction() {
    let error = refuse("add.s32 %r1, %r2, %x;");
    assert_eq!(error.to_string(), "9:19: unknown name `%x`");
    let error = refuse("wgmma.fence.sync.aligned;");
    assert_eq!(error.to_string(), "9:1: not supported: `wgmma.fence.sync.aligned;`");
    assert!(matches!(refuse("add.s32.weird %r1, %r2, %r3;"), Error::Unsupported { .. }));
}

#[test]
fn nonsense_is_invalid() {
    for body in [
        "add.s32 %r1, %r2;",
        "add.s32 %r1, %d2, %p1;",
        "add.s64 %d1, %r2, %d3;",
        "mov.b32 %r9, 1;",
        "bra NOWHERE;",
        "ld.global.u32 %r1, %d1;",
        "st.global.u64 [%d1], %r1;",
        "@%r1 mov.b32 %r2, 1;",
        "call nobody;",
        "setp.lt.s32 %r1, %r2, %r3;",
        "mov.b64 {%r1, %r2, %r3}, %d1;",
        "add.f32 %r1, %r1, 1;",
    ] {
        let error = refuse(body);
        assert!(matches!(error, Error::Invalid { .. } | Error::Unresolved { .. }), "{body}: {error}");
    }
}

#[test]
fn newer_machines_are_told_apart() {
    let newer = compile(".version 9.0\n.target sm_100\n").unwrap_err();
    assert!(matches!(newer, Error::TooNew { .. }), "{newer}");
    let newer = compile(".version 42.0\n.target sm_90\n").unwrap_err();
    assert!(matches!(newer, Error::TooNew { .. }), "{newer}");
    assert!(compile("").is_err());
}

#[test]
fn sizes_are_bounded() {
    let module = |text: &str| compile(&format!("{HEADER}{text}"));
    let too_large = |text: &str| assert!(matches!(module(text), Err(Error::TooLarge { .. })), "{text}");
    too_large(".global .b8 x[99999999999999999];");
    too_large(".shared .b8 x[300000];");
    too_large(".entry k(.param .b8 x[40000]) { ret; }");
    too_large(".entry k() { .local .b8 x[10000000]; ret; }");
    too_large(".global .align 1048576 .b8 x[4];");
    // A declaration of four thousand million registers costs nothing until they are used.
    assert!(module(".entry k() { .reg .b32 %r<4000000000>; mov.b32 %r3999999999, 1; ret; }").is_ok());
}

#[test]
fn any_prefix_of_a_module_is_judged_without_panic() {
    let text = include_str!("../../test_data/first.sm_90.ptx");
    for end in (0..text.len()).step_by(37) {
        let _ = compile(&text[..end]);
    }
}
