//! Loads, stores, atomics and address spaces.

use model::Dim3;
use softgpu::error::{Access, Fault};

use crate::harness::{Arg, Device, eval, eval1, per_thread};

fn fault_of(body: &str) -> Fault {
    let mut device = Device::new(&per_thread(body));
    let out = device.alloc(4096);
    device.try_run("k", Dim3::ONE, Dim3::new(32, 1, 1), &[Arg::U64(out)]).unwrap_err()
}

#[test]
fn wild_addresses_fault() {
    let fault = fault_of("mov.u64 %d1, 64;\nld.global.u32 %out, [%d1];");
    assert_eq!(fault, Fault::IllegalAddress { address: 64, size: 4, access: Access::Read });
    let fault = fault_of("mov.u64 %d1, 64;\nst.u64 [%d1], %d1;");
    assert_eq!(fault, Fault::IllegalAddress { address: 64, size: 8, access: Access::Write });
    let fault = fault_of("ld.param.u64 %d1, [out];\nadd.s64 %d1, %d1, 2;\nld.global.u32 %out, [%d1];");
    assert!(matches!(fault, Fault::MisalignedAddress { size: 4, .. }));
    let fault = fault_of(
        ".shared .align 4 .b8 s[64];\nmov.u32 %r1, s;\nmad.lo.u32 %r1, %tid, 4, %r1;\nld.shared.u32 %out, [%r1];",
    );
    assert_eq!(fault, Fault::BeyondShared { address: 64, size: 4, access: Access::Read });
    assert_eq!(fault_of("setp.eq.u32 %p1, %tid, 7;\n@%p1 trap;"), Fault::Trap);
}

#[test]
fn all_widths_and_vectors() {
    let text = ".local .align 16 .b8 cell[32];\n.reg .b64 %a;\nmov.u64 %a, cell;\n\
                st.local.v4.b32 [%a], {1, 2, 3, 0x80ff7f04};\nld.local.u8 %r1, [%a+15];\nld.local.s8 %r2, [%a+15];\n\
                ld.local.s16 %r3, [%a+14];\nld.local.v2.u64 {%d1, %d2}, [%a];\nld.local.s8 %d3, [%a+14];\n";
    assert_eq!(eval1(&format!("{text}mov.u32 %out, %r1;")), 0x80);
    assert_eq!(eval1(&format!("{text}mov.u32 %out, %r2;")), 0xffff_ff80);
    assert_eq!(eval1(&format!("{text}mov.u32 %out, %r3;")), 0xffff_80ff);
    assert_eq!(eval1(&format!("{text}shr.u64 %d4, %d2, 32;\ncvt.u32.u64 %out, %d4;")), 0x80ff_7f04);
    assert_eq!(eval1(&format!("{text}cvt.u32.u64 %out, %d3;")), u32::MAX);
    let quad = format!(
        "{text}.reg .b128 %q;\nld.local.b128 %q, [%a];\nst.local.b128 [%a+16], %q;\nld.local.u32 %out, [%a+24];"
    );
    assert_eq!(eval1(&quad), 3);
}

#[test]
fn each_thread_has_its_own_local_memory() {
    let out = eval(
        64,
        ".local .align 4 .b8 cell[8];\n.reg .b64 %SP, %SPL;\nmov.u64 %SPL, cell;\ncvta.local.u64 %SP, %SPL;\n\
         st.u32 [%SP+4], %tid;\nbar.sync 0;\nld.local.u32 %out, [%SPL+4];",
    );
    assert_eq!(out, (0..64).collect::<Vec<_>>());
}

#[test]
fn generic_addresses_reach_every_space() {
    let text = ".shared .align 4 .b8 s[16];\nmov.u64 %d1, s;\ncvta.shared.u64 %d2, %d1;\nst.u32 [%d2+8], 77;\n\
                ld.shared.u32 %r1, [s+8];\nisspacep.shared %p1, %d2;\nisspacep.global %p2, %d2;\n\
                cvta.to.shared.u64 %d3, %d2;\nsetp.eq.u64 %p3, %d3, %d1;\n\
                selp.u32 %r2, 100, 0, %p1;\nselp.u32 %r3, 200, 0, %p2;\nselp.u32 %r4, 400, 0, %p3;\n\
                add.u32 %out, %r1, %r2;\nadd.u32 %out, %out, %r3;\nadd.u32 %out, %out, %r4;";
    assert_eq!(eval1(text), 577);
    let text = "mov.b64 %d1, out;\ncvta.param.u64 %d2, %d1;\nld.u64 %d3, [%d2];\nld.param.u64 %d4, [out];\n\
                ld.param.u64 %d5, [%d1];\nsetp.eq.u64 %p1, %d3, %d4;\nsetp.eq.and.u64 %p2, %d4, %d5, %p1;\nselp.u32 %out, 1, 0, %p2;";
    assert_eq!(eval1(text), 1);
}

#[test]
fn atomics() {
    let run = |operation: &str, start: u32| {
        let text = format!(
            ".shared .align 4 .b32 cell;\nsetp.eq.u32 %p1, %tid, 0;\n@%p1 st.shared.u32 [cell], {start};\nbar.sync 0;\n\
             {operation}\nbar.sync 0;\nld.shared.u32 %out, [cell];"
        );
        eval(64, &text)[0]
    };
    assert_eq!(run("red.shared.add.u32 [cell], %tid;", 5), 5 + 2016);
    assert_eq!(run("atom.shared.max.s32 %r1, [cell], %tid;", -5i32 as u32), 63);
    assert_eq!(run("atom.shared.min.u32 %r1, [cell], %tid;", 50), 0);
    assert_eq!(run("atom.shared.inc.u32 %r1, [cell], 9;", 0), 4);
    assert_eq!(run("atom.shared.dec.u32 %r1, [cell], 9;", 3), 9);
    assert_eq!(run("atom.shared.or.b32 %r1, [cell], %tid;", 0), 63);
    assert_eq!(run("atom.shared.xor.b32 %r1, [cell], 1;", 6), 6);
    assert_eq!(run("cvt.rn.f32.u32 %f1, %tid;\nred.shared.add.f32 [cell], %f1;", 0), 2016f32.to_bits());
    assert_eq!(run("mov.b32 %r1, 0x3c003c00;\nred.shared.add.noftz.f16x2 [cell], %r1;", 0), 0x5400_5400);
}

#[test]
fn atomics_on_global_memory_return_the_old_value() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .global .u64 counter = 10;\n.visible .entry k(.param .u64 out)\n\
                {\n.reg .b64 %d<8>;\n.reg .b32 %r<4>;\nmov.u64 %d1, counter;\natom.global.add.u64 %d2, [%d1], 3;\n\
                atom.cas.b64 %d4, [%d1], 0, 1;\nld.param.u64 %d3, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d5, %r1, 8;\n\
                add.s64 %d3, %d3, %d5;\nst.global.u64 [%d3], %d2;\nret;\n}\n";
    let mut device = Device::new(text);
    let out = device.alloc(8 * 64);
    device.run1("k", 64, &[Arg::U64(out)]);
    let mut seen = device.read_u64(out, 64);
    seen.sort_unstable();
    assert_eq!(seen, (0..64).map(|index| 10 + 3 * index).collect::<Vec<_>>());
    let (address, bytes) = device.module.global("counter").unwrap();
    assert_eq!((device.read_u64(address, 1)[0], bytes), (10 + 3 * 64, 8));
}

#[test]
fn variables_and_their_initial_values() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.const .align 4 .b32 table[4] = {10, 20, 30};\n\
                .global .align 8 .u64 pointers[2] = {table, generic(values)+4};\n.global .f32 values[2] = {0f3F800000, 2.5};\n\
                .global .align 4 .b8 bytes[8] = {0xFF(table), 0xFF00(table), 0xFF0000(table), 0xFF000000(table)};\n\
                .global .b16 grid[2][2] = {{1, 2}, {3, 4}};\n\
                .visible .entry k(.param .u64 out)\n{\n.reg .b64 %d<8>;\n.reg .b32 %r<8>;\n.reg .f32 %f<2>;\nld.param.u64 %d1, [out];\n\
                ld.const.u32 %r1, [table+8];\nst.global.u32 [%d1], %r1;\nld.global.u64 %d2, [pointers+8];\nld.f32 %f1, [%d2];\n\
                st.global.f32 [%d1+4], %f1;\nld.global.u64 %d3, [pointers];\nld.u32 %r2, [%d3+4];\nst.global.u32 [%d1+8], %r2;\n\
                ld.global.u32 %r3, [bytes];\ncvt.u32.u64 %r4, %d3;\nsub.u32 %r3, %r3, %r4;\nst.global.u32 [%d1+12], %r3;\n\
                ld.global.u16 %r5, [grid+4];\nst.global.u32 [%d1+16], %r5;\nret;\n}\n";
    let mut device = Device::new(text);
    let out = device.alloc(64);
    device.run1("k", 1, &[Arg::U64(out)]);
    assert_eq!(device.read_u32(out, 5), [30, 2.5f32.to_bits(), 20, 0, 3]);
}

#[test]
fn dynamic_shared_memory_begins_behind_the_static() {
    let text = per_thread(
        ".shared .align 4 .b8 fixed[20];\n.extern .shared .align 16 .b8 open[];\nmov.u32 %r1, open;\nmad.lo.u32 %r2, %tid, 4, %r1;\n\
         st.shared.u32 [%r2], %tid;\nst.shared.u32 [fixed+16], 5;\nbar.sync 0;\nld.shared.u32 %r3, [open+4];\nadd.u32 %out, %r1, %r3;",
    );
    let mut device = Device::new(&text);
    device.dynamic_shared = 256;
    let out = device.alloc(4 * 64);
    device.run1("k", 64, &[Arg::U64(out)]);
    assert_eq!(device.read_u32(out, 2), [33, 33]);
    assert_eq!(device.module.kernel("k").unwrap().static_shared(), 20);
}

#[test]
fn asynchronous_copies() {
    let out = eval(
        1,
        ".shared .align 16 .b8 s[32];\n.local .align 16 .b8 l[16];\nmov.u64 %d1, l;\ncvta.local.u64 %d2, %d1;\n\
         st.v4.u32 [%d2], {1, 2, 3, 4};\nst.shared.u32 [s+12], 9;\nmov.u32 %r1, s;\n\
         cp.async.ca.shared.global [%r1], [%d2], 16, 8;\ncp.async.commit_group;\ncp.async.wait_group 0;\n\
         ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [s];\nmad.lo.u32 %out, %r2, 10, %r3;\nadd.u32 %out, %out, %r5;",
    );
    assert_eq!(out, [12]);
}

#[test]
fn device_printf() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n\
                .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n\
                .global .align 1 .b8 fmt[32] = {37, 51, 100, 124, 37, 45, 52, 115, 124, 37, 46, 50, 102, 124, 37, 35, 108, 120, 37, 37, 10};\n\
                .global .align 1 .b8 word[3] = {104, 105};\n.visible .entry k()\n{\n.local .align 8 .b8 depot[32];\n.reg .b64 %d<8>;\n.reg .b32 %r<4>;\n\
                mov.u64 %d1, depot;\ncvta.local.u64 %d2, %d1;\nst.local.u32 [%d1], -7;\nmov.u64 %d3, word;\nst.local.u64 [%d1+8], %d3;\n\
                st.local.f64 [%d1+16], 0d400921FB54442D18;\nst.local.u64 [%d1+24], 255;\nmov.u64 %d4, fmt;\n\
                { .param .b64 p0; .param .b64 p1; .param .b32 q;\nst.param.b64 [p0], %d4;\nst.param.b64 [p1], %d2;\n\
                call.uni (q), vprintf, (p0, p1);\nld.param.b32 %r1, [q]; }\nret;\n}\n";
    let mut device = Device::new(text);
    device.run1("k", 1, &[]);
    assert_eq!(String::from_utf8(device.output.drain()).unwrap(), " -7|hi  |3.14|0xff%\n");
}
