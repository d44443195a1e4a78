//! Instructions one at a time, with results worked out by hand or by the host.

use crate::harness::eval1;

/// Runs `instruction` with `%r1`, `%r2`, `%r3` set; its result is `%out`.
fn op3(instruction: &str, a: u32, b: u32, c: u32) -> u32 {
    eval1(&format!("mov.b32 %r1, {a};\nmov.b32 %r2, {b};\nmov.b32 %r3, {c};\n{instruction}"))
}

fn op2(instruction: &str, a: u32, b: u32) -> u32 {
    op3(instruction, a, b, 0)
}

/// The same over 64 bits: the low word, and the high word xored with a constant so that neither hides.
fn wide2(instruction: &str, a: u64, b: u64) -> u64 {
    let halves = ["mov.b64 {%out, %r9}, %d3;", "mov.b64 {%r9, %out}, %d3;"];
    let part = |half: &str| {
        u64::from(eval1(&format!("mov.b64 %d1, {a};\nmov.b64 %d2, {b};\n{instruction}\n{half}")))
    };
    part(halves[0]) | part(halves[1]) << 32
}

#[test]
fn integer_basics() {
    assert_eq!(op2("add.s32 %out, %r1, %r2;", 7, u32::MAX), 6);
    assert_eq!(op2("add.sat.s32 %out, %r1, %r2;", i32::MAX as u32, 5), i32::MAX as u32);
    assert_eq!(op2("sub.s32 %out, %r1, %r2;", 3, 5), -2i32 as u32);
    assert_eq!(op2("mul.lo.s32 %out, %r1, %r2;", 0x10001, 0x10001), 0x20001);
    assert_eq!(op2("mul.hi.s32 %out, %r1, %r2;", -2i32 as u32, 3), u32::MAX);
    assert_eq!(op2("mul.hi.u32 %out, %r1, %r2;", u32::MAX, u32::MAX), 0xffff_fffe);
    assert_eq!(op3("mad.lo.s32 %out, %r1, %r2, %r3;", 5, 6, 7), 37);
    assert_eq!(op3("mad.hi.u32 %out, %r1, %r2, %r3;", u32::MAX, 16, 1), 16);
    assert_eq!(op2("div.s32 %out, %r1, %r2;", -7i32 as u32, 2), -3i32 as u32);
    assert_eq!(op2("rem.s32 %out, %r1, %r2;", -7i32 as u32, 2), -1i32 as u32);
    assert_eq!(op2("div.s32 %out, %r1, %r2;", i32::MIN as u32, u32::MAX), i32::MIN as u32);
    assert_eq!(op2("min.s32 %out, %r1, %r2;", u32::MAX, 3), u32::MAX);
    assert_eq!(op2("max.u32 %out, %r1, %r2;", u32::MAX, 3), u32::MAX);
    assert_eq!(op3("sad.u32 %out, %r1, %r2, %r3;", 3, 10, 100), 107);
    assert_eq!(op2("abs.s32 %out, %r1;", -5i32 as u32, 0), 5);
    assert_eq!(op2("neg.s32 %out, %r1;", 5, 0), -5i32 as u32);
    assert_eq!(op2("mul24.lo.u32 %out, %r1, %r2;", 0xff00_0003, 5), 15);
    assert_eq!(op3("dp4a.u32.u32 %out, %r1, %r2, %r3;", 0x0102_0304, 0x0101_0101, 5), 15);
    assert_eq!(op3("dp4a.s32.u32 %out, %r1, %r2, %r3;", 0xff, 3, 5), 2);
    assert_eq!(op3("dp2a.lo.s32.s32 %out, %r1, %r2, %r3;", 0x0002_0003, 0x0504, 1), 23);
}

#[test]
fn sixteen_bits_ignore_what_is_above() {
    let halves = "mov.b32 {%h1, %h9}, %r1;\nmov.b32 {%h2, %h9}, %r2;\n";
    let run = |instruction: &str, a: u32, b: u32| op2(&format!("{halves}{instruction}"), a, b);
    assert_eq!(run("add.u16 %h3, %h1, %h2;\nadd.u16 %h3, %h3, 1;\ncvt.u32.u16 %out, %h3;", 0xffff, 1), 1);
    assert_eq!(run("shr.s16 %h3, %h1, 4;\ncvt.s32.s16 %out, %h3;", 0x8000, 0), -2048i32 as u32);
    assert_eq!(run("mul.wide.s16 %out, %h1, %h2;", 0xffff, 2), -2i32 as u32);
    assert_eq!(run("sub.s16 %h3, %h1, %h2;\nmax.s16 %h3, %h3, 3;\ncvt.u32.u16 %out, %h3;", 1, 2), 3);
    assert_eq!(run("not.b16 %h3, %h1;\nsetp.eq.u16 %p1, %h3, 0xfffe;\nselp.u32 %out, 1, 0, %p1;", 1, 0), 1);
}

#[test]
fn sixty_four_bits() {
    assert_eq!(wide2("add.s64 %d3, %d1, %d2;", u64::MAX, 2), 1);
    assert_eq!(wide2("mul.lo.u64 %d3, %d1, %d2;", 1 << 33, 3), 3 << 33);
    assert_eq!(wide2("mul.hi.u64 %d3, %d1, %d2;", u64::MAX, 16), 15);
    assert_eq!(wide2("mul.hi.s64 %d3, %d1, %d2;", u64::MAX, 16), u64::MAX);
    assert_eq!(wide2("div.u64 %d3, %d1, %d2;", 1 << 40, 3), (1 << 40) / 3);
    assert_eq!(wide2("rem.s64 %d3, %d1, %d2;", -7i64 as u64, 4), -3i64 as u64);
    assert_eq!(wide2("cvt.u32.u64 %r1, %d2;\nshl.b64 %d3, %d1, %r1;", 3, 62), 3 << 62);
    assert_eq!(wide2("cvt.u32.u64 %r1, %d2;\nshr.s64 %d3, %d1, %r1;", 1 << 63, 100), u64::MAX);
    assert_eq!(wide2("min.s64 %d3, %d1, %d2;", u64::MAX, 1), u64::MAX);
    assert_eq!(wide2("xor.b64 %d3, %d1, %d2;", 0xff00ff, 0x0ff0), 0xff0f0f);
    assert_eq!(
        wide2("mov.b64 {%r1, %r2}, %d1;\nmul.wide.s32 %d3, %r1, %r2;", 0xffff_ffff_0000_0003, 0),
        -3i64 as u64
    );
}

/// Which is what the division of 128-bit integers relies on; the figures are those of an H200.
#[test]
fn additions_and_subtractions_share_the_carry() {
    let chain = |first: &str, second: &str| {
        op3(&format!("{first} %r4, %r1, %r2;\n{second} %out, %r3, 0;"), 3, 5, 100)
    };
    assert_eq!(chain("sub.cc.u32", "addc.u32"), 100);
    assert_eq!(chain("sub.cc.u32", "subc.u32"), 99);
    assert_eq!(chain("add.cc.u32", "subc.u32"), 99);
    let swapped = |second: &str| op3(&format!("sub.cc.u32 %r4, %r2, %r1;\n{second}"), 3, 5, 100);
    assert_eq!(swapped("addc.u32 %out, %r3, 0;"), 101);
    assert_eq!(swapped("subc.u32 %out, %r3, 0;"), 100);
    assert_eq!(swapped("madc.lo.u32 %out, %r3, %r1, 0;"), 301);
    assert_eq!(swapped("subc.cc.u32 %r5, %r1, %r1;\naddc.u32 %out, %r3, 0;"), 101);
    assert_eq!(wide2("sub.cc.u64 %d4, %d1, %d2;\naddc.u64 %d3, %d1, %d2;", 3, 5), 8);
    assert_eq!(wide2("sub.cc.u64 %d4, %d2, %d1;\naddc.u64 %d3, %d1, %d2;", 3, 5), 9);
}

#[test]
fn carries_run_through() {
    // 128-bit addition and subtraction in four words.
    let text = "mov.b32 %r1, 0xffffffff;\nmov.b32 %r2, 1;\nmov.b32 %r3, 5;\n\
                add.cc.u32 %r4, %r1, %r2;\naddc.cc.u32 %r5, %r1, 0;\naddc.u32 %out, %r3, 0;";
    assert_eq!(eval1(text), 6);
    let text = "mov.b32 %r1, 0;\nmov.b32 %r2, 1;\nmov.b32 %r3, 5;\n\
                sub.cc.u32 %r4, %r1, %r2;\nsubc.u32 %out, %r3, 0;";
    assert_eq!(eval1(text), 4);
    let text = "mov.b32 %r1, 0xffffffff;\nmov.b32 %r2, 2;\n\
                mad.lo.cc.u32 %r4, %r1, %r2, %r1;\nmadc.hi.u32 %out, %r1, %r2, 10;";
    assert_eq!(eval1(text), 12);
}

#[test]
fn bits() {
    assert_eq!(op2("popc.b32 %out, %r1;", 0xf0f0_f0f0, 0), 16);
    assert_eq!(op2("clz.b32 %out, %r1;", 0x0000_8000, 0), 16);
    assert_eq!(op2("brev.b32 %out, %r1;", 1, 0), 1 << 31);
    assert_eq!(op2("bfind.u32 %out, %r1;", 0x8000, 0), 15);
    assert_eq!(op2("bfind.s32 %out, %r1;", u32::MAX, 0), u32::MAX);
    assert_eq!(op2("bfind.shiftamt.s32 %out, %r1;", -16i32 as u32, 0), 28);
    assert_eq!(op3("bfe.u32 %out, %r1, 4, 8;", 0xabcd, 0, 0), 0xbc);
    assert_eq!(op3("bfe.s32 %out, %r1, 4, 8;", 0xabcd, 0, 0), 0xffff_ffbc);
    assert_eq!(op3("bfe.s32 %out, %r1, 28, 8;", 0xf000_0000, 0, 0), u32::MAX);
    assert_eq!(op3("bfi.b32 %out, %r1, %r2, 8, 4;", 0xf, 0, 0), 0xf00);
    assert_eq!(op3("lop3.b32 %out, %r1, %r2, %r3, 0x96;", 5, 6, 12), 5 ^ 6 ^ 12);
    assert_eq!(op3("lop3.b32 %out, %r1, %r2, %r3, 0xe8;", 5, 6, 12), (5 & 6) | (5 & 12) | (6 & 12));
    assert_eq!(op3("shf.l.wrap.b32 %out, %r1, %r2, %r3;", 0x8000_0000, 1, 1), 3);
    assert_eq!(op3("shf.r.clamp.b32 %out, %r1, %r2, %r3;", 0, 7, 40), 7);
    assert_eq!(op3("prmt.b32 %out, %r1, %r2, 0x5140;", 0x3322_1100, 0x7766_5544, 0), 0x5511_4400);
    assert_eq!(op3("prmt.b32 %out, %r1, %r2, 0x000a;", 0x0080_0000, 0, 0), 0x0000_00ff);
    assert_eq!(op3("prmt.b32.b4e %out, %r1, %r2, 0;", 0x3322_1100, 0x7766_5544, 0), 0x5566_7700);
    assert_eq!(op2("shl.b32 %out, %r1, %r2;", 1, 32), 0);
    assert_eq!(op2("shr.s32 %out, %r1, %r2;", 1 << 31, 99), u32::MAX);
    assert_eq!(op3("fns.b32 %out, %r1, %r2, 2;", 0b1011_0000, 0, 0), 5);
    assert_eq!(op2("bmsk.clamp.b32 %out, %r1, %r2;", 4, 40), 0xffff_fff0);
    assert_eq!(op2("szext.clamp.s32 %out, %r1, %r2;", 0x80, 8), 0xffff_ff80);
    assert_eq!(op2("cnot.b32 %out, %r1;", 0, 0), 1);
}

#[test]
fn comparisons() {
    let nan = 0x7fc0_0000;
    let test = |word: &str, a: u32, b: u32| {
        let text = format!("setp.{word} %p1, %r1, %r2;\nselp.u32 %out, 1, 0, %p1;");
        op2(&text, a, b) == 1
    };
    assert!(test("lt.s32", u32::MAX, 0) && !test("lt.u32", u32::MAX, 0));
    assert!(test("lo.u32", 1, 2) && test("hs.u32", 2, 2));
    let float = |word: &str, a: u32, b: u32| {
        let text = format!(
            "mov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\nsetp.{word}.f32 %p1, %f1, %f2;\nselp.u32 %out, 1, 0, %p1;"
        );
        op2(&text, a, b) == 1
    };
    assert!(
        !float("ne", nan, nan) && float("neu", nan, nan) && float("nan", nan, 0) && !float("num", nan, 0)
    );
    assert!(float("ltu", nan, 0) && !float("lt", nan, 0) && float("eq", 0x8000_0000, 0));
    let combined = "setp.eq.u32 %p1, %r1, 1;\nsetp.lt.and.u32 %p2|%p3, %r1, %r2, %p1;\n\
                    selp.u32 %r5, 1, 0, %p2;\nselp.u32 %r6, 2, 0, %p3;\nadd.u32 %out, %r5, %r6;";
    assert_eq!(op2(combined, 1, 5), 1);
    assert_eq!(op2(combined, 1, 0), 2);
    assert_eq!(op2(combined, 2, 5), 0);
    assert_eq!(op2("set.lt.u32.s32 %out, %r1, %r2;", 1, 2), u32::MAX);
    assert_eq!(op2("set.gt.f32.s32 %f1, %r1, %r2;\nmov.b32 %out, %f1;", 3, 2), 1f32.to_bits());
}

#[test]
fn floats() {
    let f = |text: &str, a: f32, b: f32, c: f32| {
        let set = "mov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\nmov.b32 %f3, %r3;\n";
        f32::from_bits(op3(
            &format!("{set}{text}\nmov.b32 %out, %f4;"),
            a.to_bits(),
            b.to_bits(),
            c.to_bits(),
        ))
    };
    assert_eq!(f("add.f32 %f4, %f1, %f2;", 1.5, 2.25, 0.0), 3.75);
    assert_eq!(f("fma.rn.f32 %f4, %f1, %f2, %f3;", 1.1, 2.2, 3.3), 1.1f32.mul_add(2.2, 3.3));
    assert_eq!(f("div.rn.f32 %f4, %f1, %f2;", 1.0, 3.0, 0.0), 1.0 / 3.0);
    assert_eq!(f("sqrt.rn.f32 %f4, %f1;", 2.0, 0.0, 0.0), 2f32.sqrt());
    assert_eq!(f("rcp.rn.f32 %f4, %f1;", 7.0, 0.0, 0.0), 1.0 / 7.0);
    assert_eq!(f("add.sat.f32 %f4, %f1, %f2;", 1.5, 2.25, 0.0), 1.0);
    assert_eq!(f("min.f32 %f4, %f1, %f2;", f32::NAN, 2.0, 0.0), 2.0);
    assert!(f("min.NaN.f32 %f4, %f1, %f2;", f32::NAN, 2.0, 0.0).is_nan());
    assert_eq!(
        f("mul.rz.f32 %f4, %f1, %f2;", 1.0 + f32::EPSILON, 1.0 + f32::EPSILON, 0.0),
        1.0 + 2.0 * f32::EPSILON
    );
    assert_eq!(f("neg.f32 %f4, %f1;", 2.0, 0.0, 0.0), -2.0);
    assert_eq!(f("ex2.approx.f32 %f4, %f1;", 3.0, 0.0, 0.0), 8.0);
    assert_eq!(f("mul.ftz.f32 %f4, %f1, %f2;", 1e-30, 1e-10, 0.0), 0.0);
    assert_eq!(f("copysign.f32 %f4, %f1, %f2;", -1.0, 3.0, 0.0), -3.0);
    let testp = "mov.b32 %f1, %r1;\ntestp.subnormal.f32 %p1, %f1;\nselp.u32 %out, 1, 0, %p1;";
    assert_eq!(op2(testp, 1, 0), 1);
}

#[test]
fn doubles() {
    let g = |text: &str, a: f64, b: f64| {
        let text = format!("mov.b64 %g1, %d1;\nmov.b64 %g2, %d2;\n{text}\nmov.b64 %d3, %g3;");
        f64::from_bits(wide2(&text, a.to_bits(), b.to_bits()))
    };
    assert_eq!(g("add.f64 %g3, %g1, %g2;", 0.1, 0.2), 0.1 + 0.2);
    assert_eq!(g("fma.rn.f64 %g3, %g1, %g2, %g1;", 0.1, 0.2), 0.1f64.mul_add(0.2, 0.1));
    assert_eq!(g("div.rn.f64 %g3, %g1, %g2;", 1.0, 3.0), 1.0 / 3.0);
    assert_eq!(g("add.rp.f64 %g3, %g1, %g2;", 1.0, 1e-300), 1.0 + f64::EPSILON);
    assert!(g("sub.f64 %g3, %g1, %g2;", f64::INFINITY, f64::INFINITY).is_nan());
}

#[test]
fn halves_and_brains() {
    // 1.5 * 2 + 0.25 in f16 and bf16, alone and in pairs.
    let f16 = "mov.b32 {%h1, %h2}, %r1;\nmov.b32 {%h3, %h9}, %r2;\nfma.rn.f16 %h4, %h1, %h2, %h3;\ncvt.u32.u16 %out, %h4;";
    assert_eq!(op2(f16, 0x4000_3e00, 0x3400), 0x4280);
    let pair = "fma.rn.f16x2 %out, %r1, %r2, %r3;";
    assert_eq!(op3(pair, 0x3e00_3e00, 0x4000_3c00, 0x3400_0000), 0x4280_3e00);
    let brain = "mov.b32 {%h1, %h2}, %r1;\nadd.rn.bf16 %h3, %h1, %h2;\ncvt.u32.u16 %out, %h3;";
    assert_eq!(op2(brain, 0x4000_3f80, 0), 0x4040);
    assert_eq!(op2("max.bf16x2 %out, %r1, %r2;", 0x3f80_4000, 0x4000_3f80), 0x4000_4000);
    let set = "setp.lt.f16x2 %p1|%p2, %r1, %r2;\nselp.u32 %r5, 1, 0, %p1;\nselp.u32 %out, 2, %r5, %p2;";
    assert_eq!(op2(set, 0x4000_3c00, 0x3c00_4000), 1);
}

#[test]
fn conversions() {
    let out = |text: &str, a: u32| op2(text, a, 0);
    assert_eq!(out("cvt.rn.f32.s32 %f1, %r1;\nmov.b32 %out, %f1;", -3i32 as u32), (-3f32).to_bits());
    let to_int =
        |mode: &str, x: f32| out(&format!("mov.b32 %f1, %r1;\ncvt.{mode} %out, %f1;"), x.to_bits()) as i32;
    assert_eq!(to_int("rzi.s32.f32", -2.7), -2);
    assert_eq!(to_int("rni.s32.f32", 2.5), 2);
    assert_eq!(to_int("rpi.s32.f32", 2.1), 3);
    assert_eq!(to_int("rmi.s32.f32", -2.1), -3);
    assert_eq!(to_int("rzi.s32.f32", 1e20), i32::MAX);
    assert_eq!(to_int("rzi.u32.f32", -5.0), 0);
    assert_eq!(to_int("rzi.s32.f32", f32::NAN), 0);
    assert_eq!(out("cvt.s32.s8 %out, %r1;", 0xff), u32::MAX);
    assert_eq!(out("cvt.u32.u8 %out, %r1;", 0x1ff), 0xff);
    assert_eq!(out("cvt.sat.u8.s32 %out, %r1;", 300), 255);
    assert_eq!(out("cvt.sat.u8.s32 %out, %r1;", -3i32 as u32), 0);
    assert_eq!(out("cvt.s64.s32 %d1, %r1;\nmov.b64 {%r9, %out}, %d1;", 1 << 31), u32::MAX);
    assert_eq!(
        out("mov.b32 %f1, %r1;\ncvt.rn.f16.f32 %h1, %f1;\ncvt.u32.u16 %out, %h1;", 1.5f32.to_bits()),
        0x3e00
    );
    assert_eq!(
        out("mov.b32 %f1, %r1;\ncvt.rni.f32.f32 %f2, %f1;\nmov.b32 %out, %f2;", 2.5f32.to_bits()),
        2f32.to_bits()
    );
    let pair = "mov.b32 %f1, %r1;\nmov.b32 %f2, %r2;\ncvt.rn.f16x2.f32 %out, %f1, %f2;";
    assert_eq!(op2(pair, 2f32.to_bits(), 1f32.to_bits()), 0x4000_3c00);
    assert_eq!(op2("cvt.pack.sat.s16.s32 %out, %r1, %r2;", 70000, -70000i32 as u32), 0x7fff_8000);
    assert_eq!(
        out("mov.b32 %f1, %r1;\ncvt.f64.f32 %g1, %f1;\ncvt.rzi.s32.f64 %out, %g1;", 7.9f32.to_bits()),
        7
    );
}

#[test]
fn packing() {
    assert_eq!(op2("mov.b32 {%h1, %h2}, %r1;\nmov.b32 %out, {%h2, %h1};", 0x1234_5678, 0), 0x5678_1234);
    let bytes = "mov.b32 {%h1, %h2}, %r1;\nmov.b64 %d1, {%h1, %h2, %h2, %h1};\nmov.b64 {%r5, %r6}, %d1;\nxor.b32 %out, %r5, %r6;";
    assert_eq!(op2(bytes, 0x1234_5678, 0), 0x1234_5678 ^ 0x5678_1234);
    let quad = ".reg .b128 %q;\nmov.b64 %d1, 7;\nmov.b64 %d2, 9;\nmov.b128 %q, {%d1, %d2};\n\
                mov.b128 {%d3, %d4}, %q;\nadd.s64 %d5, %d3, %d4;\ncvt.u32.u64 %out, %d5;";
    assert_eq!(eval1(quad), 16);
    assert_eq!(op2("slct.u32.s32 %out, 5, 6, %r1;", u32::MAX, 0), 6);
    let vector = ".reg .v2 .b32 %v;\nmov.b32 %v, {%r1, %r2};\nsub.u32 %out, %v.x, %v.y;";
    assert_eq!(op2(vector, 9, 4), 5);
}

#[test]
fn video_instructions() {
    assert_eq!(op3("vadd4.u32.u32.u32.sat %out, %r1, %r2, %r3;", 0xff01_0203, 0x0101_0101, 0), 0xff02_0304);
    assert_eq!(op3("vabsdiff4.u32.u32.u32.add %out, %r1, %r2, %r3;", 0x0005_0000, 0x0100_0002, 10), 18);
}
