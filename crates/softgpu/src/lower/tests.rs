//! The table of `docs/ptx-support.md`, tried out row by row.

use std::fmt::Write;

use super::{Error, compile};

/// A section of the PTX manual and its instructions: name, what a supported one looks like (several lines are
/// several forms), and what to know about it. An instruction without a note and with one form that is refused
/// is unsupported.
struct Row {
    name: &'static str,
    supported: &'static [&'static str],
    refused: &'static [&'static str],
    note: &'static str,
}

const fn yes(name: &'static str, supported: &'static [&'static str]) -> Row {
    Row { name, supported, refused: &[], note: "" }
}

const fn part(
    name: &'static str,
    supported: &'static [&'static str],
    refused: &'static [&'static str],
    note: &'static str,
) -> Row {
    Row { name, supported, refused, note }
}

const fn no(name: &'static str, refused: &'static [&'static str]) -> Row {
    Row { name, supported: &[], refused, note: "" }
}

include!("support.rs");

/// Declares every register that the samples use.
fn module(instruction: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n\
         .func callee() {{ ret; }}\n.visible .entry k(.param .u64 given)\n{{\n.reg .pred p, q;\n.reg .b16 h, i, j;\n\
         .reg .b32 r, s, t, u, v;\n.reg .f32 f, g, e;\n.reg .b64 d, a, b, c;\n.reg .f64 x, y, z;\n.reg .b128 w;\n\
         .shared .align 16 .b8 sh[64];\nL:\nT: .branchtargets L;\n{instruction}\nret;\n}}\n"
    )
}

#[test]
fn supported_instructions_lower() {
    for row in SECTIONS.iter().flat_map(|(_, rows)| *rows) {
        for form in row.supported {
            if let Err(error) = compile(&module(form)) {
                panic!("{}: `{form}`: {error}", row.name);
            }
        }
    }
}

#[test]
fn unsupported_instructions_are_refused_by_name() {
    for row in SECTIONS.iter().flat_map(|(_, rows)| *rows) {
        for form in row.refused {
            match compile(&module(form)) {
                Err(Error::Unsupported { what, .. }) => {
                    let opcode = form.split(['.', ' ', ';']).next().unwrap_or_default();
                    assert!(what.contains(opcode), "{what} does not name {opcode}");
                }
                Err(error) => panic!("{}: `{form}`: {error}", row.name),
                Ok(_) => panic!("{}: `{form}` lowers", row.name),
            }
        }
    }
}

/// The page as it should be.
fn page() -> String {
    let mut page = String::from(
        "# PTX instructions of the software GPU\n\n\
         Every instruction of PTX 9.0, by the sections of the manual. *yes*: all forms that exist up to sm_90. *part*: with\n\
         the exception named. *no*: a module that uses it is refused when it is loaded, with the line and the instruction.\n\n\
         This page is generated: `crates/softgpu/src/lower/support.rs` holds the table, and the crate's tests lower a sample\n\
         of every form marked as supported, check that the others are refused, and compare this page with the table\n\
         (`EBB_WRITE_DOCS=1 cargo test -p softgpu --lib support` writes it anew).\n",
    );
    let (mut full, mut partial, mut none) = (0, 0, 0);
    for (section, rows) in SECTIONS {
        write!(page, "\n## {section}\n\n| instruction | supported | note |\n|---|---|---|\n")
            .expect("strings grow");
        for row in *rows {
            let state = match (row.supported.is_empty(), row.refused.is_empty() && row.note.is_empty()) {
                (true, _) => {
                    none += 1;
                    "no"
                }
                (false, true) => {
                    full += 1;
                    "yes"
                }
                (false, false) => {
                    partial += 1;
                    "part"
                }
            };
            writeln!(page, "| `{}` | {state} | {} |", row.name, row.note).expect("strings grow");
        }
    }
    write!(page, "\nIn all: {full} yes, {partial} part, {none} no.\n").expect("strings grow");
    page
}

#[test]
fn the_support_page_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ptx-support.md");
    if std::env::var_os("EBB_WRITE_DOCS").is_some() {
        std::fs::write(path, page()).expect("the page can be written");
    }
    let written = std::fs::read_to_string(path).expect("the page exists");
    assert!(written == page(), "docs/ptx-support.md differs from the table; write it anew");
}
