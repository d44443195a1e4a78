//! Texts in which a few characters stand for a lot of work are lowered or refused in a moment.
//!
//! Each would take minutes, or gigabytes, if any pass were quadratic in it.

use std::fmt::Write;
use std::time::{Duration, Instant};

use softgpu::isa::Image;
use softgpu::lower::{Error, compile};

const HEADER: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

/// Far more than any of the texts needs on the slowest machine, far less than a quadratic pass takes.
const LIMIT: Duration = Duration::from_secs(20);

fn judge(text: &str) -> Result<Image, Error> {
    let start = Instant::now();
    let judged = compile(&format!("{HEADER}{text}"));
    assert!(start.elapsed() < LIMIT, "{:?} for {} bytes", start.elapsed(), text.len());
    judged
}

fn kernel(body: &str) -> String {
    format!(".entry k()\n{{\n.reg .pred q;\n.reg .b32 r, %r<100000>;\nsetp.eq.u32 q, 1, 1;\n{body}ret;\n}}\n")
}

fn too_large(text: &str) {
    let judged = judge(text);
    assert!(matches!(judged, Err(Error::TooLarge { .. })), "{:?}", judged.err());
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn branches_without_order() {
    let text =
        |n: usize| lines(n, |i| format!("L{i}: add.u32 %r{}, %r{i}, 1;\n@q bra L{};\n", i + 1, i * 7919 % n));
    assert!(judge(&kernel(&text(2000))).is_ok());
    // Each of the registers is live nearly everywhere, and so many at once is too much in any case.
    too_large(&kernel(&text(20000)));
    assert!(judge(&kernel(&lines(60000, |i| format!("L{i}: @q bra L{};\n", i * 7919 % 60000)))).is_ok());
}

#[test]
fn many_registers_live_in_many_blocks() {
    let n = 15000;
    let mut body = lines(n, |i| format!("mov.b32 %r{i}, {i};\n"));
    body += &lines(n, |i| format!("L{i}: add.u32 r, r, %r{i};\n@q bra L{};\n", (i + 1) % n));
    assert!(judge(&kernel(&body)).is_ok());
}

#[test]
fn jump_tables_used_often() {
    let table = |n: usize, target: &dyn Fn(usize) -> String| {
        let targets: Vec<String> = (0..n).map(target).collect();
        format!("T: .branchtargets {};\n{}", targets.join(", "), "brx.idx r, T;\n".repeat(n))
    };
    too_large(&kernel(&format!("L:\n{}", table(20000, &|_| "L".to_owned()))));
    let labels = lines(2000, |i| format!("L{i}: add.u32 r, r, 1;\n"));
    assert!(judge(&kernel(&format!("{labels}{}", table(2000, &|i| format!("L{i}"))))).is_ok());
}

#[test]
fn waits_for_clocks() {
    let wait = |i: usize| format!("L{i}: mov.u32 r, %clock;\n@q bra L{i};\n");
    assert!(judge(&kernel(&lines(30000, wait))).is_ok());
    assert!(judge(&kernel(&format!("L:\nmov.u32 r, %clock;\n{}", "@q bra L;\n".repeat(90000)))).is_ok());
    assert!(judge(&kernel(&format!("L:\n{}", "@q bra L;\n".repeat(90000)))).is_ok());
}

#[test]
fn parameters_passed_often() {
    let callee = ".func f(.param .b8 x[32000]) { ret; }\n";
    let local = ".param .b8 x[32000];\n";
    too_large(&format!("{callee}{}", kernel(&format!("{local}{}", "call f, (x);\n".repeat(80000)))));
    too_large(&format!(
        "{callee}{}",
        kernel(&format!("{local}call f, ({});\n", vec!["x"; 400000].join(", ")))
    ));
    too_large(&lines(25000, |i| format!(".func f{i}(.param .b8 x[32000]) {{ ret; }}\n")));
    let formals: Vec<String> = (0..40000).map(|i| format!(".param .b8 x{i}[32000]")).collect();
    too_large(&format!(".func f({}) {{ ret; }}\n", formals.join(", ")));
}

#[test]
fn results_returned_often() {
    let results: Vec<String> = (0..15000).map(|i| format!(".reg .b32 o{i}")).collect();
    too_large(&format!(".func ({}) f() {{ {} }}\n", results.join(", "), "ret;".repeat(15000)));
}

#[test]
fn kernels_that_reach_every_function() {
    let n = 14000;
    let mut text = String::from(".shared .b32 x;\n");
    for i in 0..n {
        writeln!(text, ".func f{i}() {{ call f{}; ret; }}", (i + 1) % n).unwrap();
        writeln!(text, ".entry k{i}() {{ call f{i}; ret; }}").unwrap();
    }
    too_large(&text);
}

#[test]
fn initial_values_of_many_variables() {
    too_large(&lines(10000, |i| format!(".global .b8 x{i}[2][1000000] = {{{{1}}, {{1}}}};\n")));
}
