//! Subscripts of array variables; the distances are those of an H200.

use model::Dim3;
use softgpu::lower::{Error, compile};

use crate::harness::{Arg, Device};

const VARIABLES: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
    .global .align 8 .b32 words[8] = {10, 11, 12, 13, 14, 15, 16, 17};\n.global .b8 bytes[8];\n.global .b64 longs[2];\n\
    .global .b32 table[2][3];\n.global .align 16 .v4 .b32 vectors[2];\n.const .b32 fixed[4] = {7, 8, 9, 10};\n\
    .global .b32 one;\n.shared .b32 cells[16];\n.extern .shared .b64 rest[];\n";

fn module(body: &str) -> String {
    format!(
        "{VARIABLES}.entry k(.param .u64 out)\n{{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n.local .b32 own[4];\n\
         ld.param.u64 %d0, [out];\n{body}\nret;\n}}\n"
    )
}

fn run(body: &str) -> u32 {
    let mut device = Device::new(&module(&format!("{body}\nst.global.u32 [%d0], %r0;")));
    let out = device.alloc(4);
    device.run("k", Dim3::ONE, Dim3::ONE, &[Arg::U64(out)]);
    device.read_u32(out, 1)[0]
}

#[test]
fn a_subscript_counts_elements() {
    let distance = |element: &str| {
        let name = &element[..element.find('[').unwrap()];
        run(&format!(
            "mov.u64 %d1, {element};\nmov.u64 %d2, {name};\nsub.u64 %d1, %d1, %d2;\ncvt.u32.u64 %r0, %d1;"
        ))
    };
    for (element, bytes) in [
        ("words[0]", 0),
        ("words[1]", 4),
        ("words[8]", 32),
        ("words[1+1]", 8),
        ("bytes[3]", 3),
        ("longs[1]", 8),
        ("fixed[2]", 8),
        ("cells[3]", 12),
        ("own[2]", 8),
    ] {
        assert_eq!(distance(element), bytes, "{element}");
    }
    // Scalars, whatever is declared of them; and bytes where the length is unknown.
    assert_eq!(distance("table[1]"), 4);
    assert_eq!(distance("vectors[1]"), 4);
    assert_eq!(distance("rest[1]"), 1);
    assert_eq!(run("mov.u32 %r1, cells[2];\nmov.u32 %r2, cells;\nsub.u32 %r0, %r1, %r2;"), 8);
}

#[test]
fn elements_are_loaded_and_stored() {
    assert_eq!(run("ld.global.u32 %r0, words[2];"), 12);
    assert_eq!(run("ld.const.u32 %r0, fixed[2];"), 9);
    assert_eq!(run("mov.b32 %r1, 77;\nst.shared.u32 cells[2], %r1;\nld.shared.u32 %r0, [cells+8];"), 77);
}

#[test]
fn other_subscripts_are_refused() {
    let refuse = |body: &str| compile(&module(body)).expect_err(body);
    for body in [
        "mov.u64 %d1, one[0];",
        "mov.u64 %d1, nobody[0];",
        "mov.u64 %d1, %d2[0];",
        "mov.u64 %d1, words[-1];",
        "mov.u64 %d1, words[%r1];",
        "mov.u64 %d1, table[1][2];",
        "mov.u64 %d1, words[0x7fffffffffffffff];",
    ] {
        assert!(matches!(refuse(body), Error::Invalid { .. }), "{body}");
    }
    assert!(matches!(refuse("ld.param.u64 %d1, out[0];"), Error::Unsupported { .. }));
}
