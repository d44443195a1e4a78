//! What holds for any text: nothing is lost, the tree covers it, work and memory stay bounded.

use proptest::prelude::*;
use ptx::{MAX_DEPTH, MAX_ERRORS, parse, tokens};
use std::sync::LazyLock;

/// The invariants, on one text.
fn holds(text: &str) {
    let pieces: String = tokens(text).map(|token| &text[token.span.range()]).collect();
    assert_eq!(pieces, text, "tokens cover every byte");

    let parse = parse(text);
    assert_eq!(parse.module.print(), text);
    assert_eq!(parse.module.verify(), Ok(()));
    assert!(parse.errors.len() <= MAX_ERRORS);
    for error in &parse.errors {
        assert_eq!(parse.module.line_column(error.span), (error.line, error.column));
        assert!(error.message.len() < 400, "{error}");
    }
}

/// Every token PTX has, right or wrong.
fn any_token() -> impl Strategy<Value = String> {
    const FIXED: &[&str] = &[
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        ",",
        ";",
        ":",
        "=",
        "@",
        "!",
        "|",
        "+",
        "-",
        "*",
        "/",
        "%",
        "&",
        "^",
        "~",
        "?",
        "<<",
        ">>",
        "<=",
        ">=",
        "==",
        "!=",
        "&&",
        "||",
        ".entry",
        ".func",
        ".reg",
        ".param",
        ".global",
        ".shared",
        ".align",
        ".b32",
        ".v4",
        ".visible",
        ".extern",
        ".loc",
        ".file",
        ".section",
        ".pragma",
        ".target",
        ".version",
        ".noreturn",
        ".maxntid",
        ".ptr",
        ".attribute",
        ".callprototype",
        ".branchtargets",
        ".f32",
        ".x",
        ".L2::128B",
        ".",
        "call",
        "ret",
        "ld",
        "mov",
        "generic",
        "_",
        "%r1",
        "%p1",
        "$L1",
        "function_name",
        "inlined_at",
        "\"a\"",
        "\"",
        "//",
        "/*",
        "*/",
        "#",
        "\n",
        "\r\n",
        "\t",
        " ",
        "0",
        "8",
        "1.5",
        "0f3F800000",
        "0x1FU",
        "09",
        "é",
        "\u{0}",
        "\\",
        "'",
    ];
    prop_oneof![
        6 => prop::sample::select(FIXED).prop_map(str::to_owned),
        1 => "[%$a-z_][a-z0-9_]{0,6}",
        1 => "[0-9]{1,22}U?",
        1 => any::<char>().prop_map(String::from),
    ]
}

fn soup() -> impl Strategy<Value = String> {
    let spaced = (any_token(), prop_oneof![Just(""), Just(" "), Just("\n")]);
    prop::collection::vec(spaced, 0..200)
        .prop_map(|parts| parts.into_iter().flat_map(|(t, s)| [t, s.to_owned()]).collect())
}

/// Text in the shape of PTX: all of it must be understood.
fn module() -> impl Strategy<Value = String> {
    let item = prop_oneof![function(), variable(), directive()];
    prop::collection::vec(item, 0..6)
        .prop_map(|items| format!(".version 9.0\n.target sm_90\n.address_size 64\n{}", items.concat()))
}

fn name() -> impl Strategy<Value = String> {
    "[%$_]?[a-zA-Z][a-zA-Z0-9_$]{0,8}"
}

fn trivia() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&[" ", "\n", "\t", "\r\n", " // note\n", " /* a\n b */ ", "\n# 3\n"][..])
}

fn directive() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(".file\t1 \"a.cu\"\n".to_owned()),
        Just(".pragma \"nounroll\";\n".to_owned()),
        name().prop_map(|n| format!(".alias {n}, {n}_;\n")),
        name().prop_map(|n| format!(".section .debug_info\n{{\n.b8 1,2\n{n}:\n}}\n")),
    ]
}

fn variable() -> impl Strategy<Value = String> {
    let space = prop::sample::select(&[".global", ".const", ".shared"][..]);
    let ty = prop::sample::select(&[".b8", ".u32", ".f64", ".v4 .f32", ".align 8 .b64"][..]);
    let value = prop_oneof![
        any::<i64>().prop_map(|v| v.to_string()),
        name(),
        name().prop_map(|n| format!("generic({n})+4")),
        any::<u32>().prop_map(|v| format!("0f{v:08X}")),
    ];
    let values = prop::collection::vec(value, 1..5).prop_map(|v| v.join(", "));
    (space, trivia(), ty, name(), 1..9_u32, values).prop_map(|(space, gap, ty, name, size, values)| {
        format!("{space}{gap}{ty} {name}[{size}] = {{{values}}};\n")
    })
}

fn operand() -> impl Strategy<Value = String> {
    let simple = prop_oneof![
        name(),
        any::<i32>().prop_map(|v| v.to_string()),
        any::<u64>().prop_map(|v| format!("0d{v:016x}")),
        Just("%tid.x".to_owned()),
        Just("_".to_owned()),
    ];
    prop_oneof![
        4 => simple.clone(),
        1 => (name(), any::<i16>()).prop_map(|(n, v)| format!("[{n}+{v}]")),
        1 => (name(), name()).prop_map(|(a, b)| format!("{a}|{b}")),
        1 => name().prop_map(|n| format!("!{n}")),
        1 => prop::collection::vec(simple.clone(), 1..5).prop_map(|v| format!("{{{}}}", v.join(", "))),
        1 => (name(), simple).prop_map(|(a, b)| format!("[{a}, {{{b}}}]")),
    ]
}

fn statement() -> impl Strategy<Value = String> {
    let operands = prop::collection::vec(operand(), 0..5).prop_map(|v| v.join(", "));
    let guard = prop::sample::select(&["", "@%p1 ", "@!%p2 "][..]);
    let opcode = prop::sample::select(&["add.s32", "ld.global.L2::128B.v2.f32", "ret", "new.op.x4"][..]);
    let instruction = (guard, opcode, trivia(), operands)
        .prop_map(|(guard, opcode, gap, operands)| format!("{guard}{opcode}{gap}{operands};"));
    let leaf = prop_oneof![
        6 => instruction,
        1 => name().prop_map(|n| format!("{n}:")),
        1 => name().prop_map(|n| format!(".reg .b32 {n}<7>, {n}_;")),
        1 => Just("call.uni (r), f, (a, b);".to_owned()),
        1 => Just(".loc 1 2 3\n".to_owned()),
        1 => Just(";".to_owned()),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        prop::collection::vec(inner, 0..5).prop_map(|v| format!("{{{}}}", v.join("\n")))
    })
}

fn function() -> impl Strategy<Value = String> {
    let parameter = name().prop_map(|n| format!(".param .align 8 .b8 {n}[4]"));
    let parameters = prop::collection::vec(parameter, 0..4).prop_map(|v| v.join(",\n\t"));
    let body = prop::collection::vec((trivia(), statement()), 0..12);
    let tuning = prop::sample::select(&["", ".maxntid 32, 1, 1\n", ".noreturn", ".new_word 3\n"][..]);
    let kind = prop::sample::select(&[".visible .entry", ".func (.param .b32 r)", ".weak .func"][..]);
    (kind, name(), parameters, tuning, body).prop_map(|(kind, name, parameters, tuning, body)| {
        let body: String = body.into_iter().flat_map(|(gap, s)| [gap.to_owned(), s]).collect();
        format!("{kind} {name}({parameters})\n{tuning}\n{{{body}}}\n")
    })
}

const REAL: [&str; 4] = [
    include_str!("../test_data/nvcc/o3.ptx"),
    include_str!("../test_data/nvcc/lines.ptx"),
    include_str!("../test_data/written/declarations.ptx"),
    include_str!("../test_data/written/calls.ptx"),
];

static REAL_TOKENS: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
    let cut = |text: &'static str| tokens(text).map(|token| &text[token.span.range()]).collect();
    REAL.into_iter().map(cut).collect()
});

/// Real PTX with a few tokens dropped, doubled, exchanged or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let change = (0..4_u8, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any_token());
    (0..REAL.len(), prop::collection::vec(change, 0..8)).prop_map(|(which, changes)| {
        let mut pieces: Vec<String> = REAL_TOKENS[which].iter().map(|t| (*t).to_owned()).collect();
        for (kind, at, other, token) in changes {
            let (at, other) = (at.index(pieces.len()), other.index(pieces.len()));
            match kind {
                0 => drop(pieces.remove(at)),
                1 => pieces.insert(at, pieces[other].clone()),
                2 => pieces.swap(at, other),
                _ => pieces[at] = token,
            }
        }
        pieces.concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn any_text_comes_back(text in any::<String>()) {
        holds(&text);
    }

    #[test]
    fn any_tokens_come_back(text in soup()) {
        holds(&text);
    }

    #[test]
    fn what_looks_like_ptx_is_understood(text in module()) {
        holds(&text);
        prop_assert_eq!(parse(text).errors, []);
    }

    #[test]
    fn damaged_ptx_comes_back(text in mutated()) {
        holds(&text);
    }
}

/// Very many brackets: no recursion to match, one error each kind, and no time lost.
#[test]
fn nesting_is_bounded() {
    for opening in ["{", "(", "[", "-", "{{(", "a=", "1?", "generic(", "!"] {
        for context in ["", ".entry e() {", ".global .u32 x = ", ".entry e() { mov ", ".const .b8 a["] {
            let text = format!("{context}{}", opening.repeat(300_000 / opening.len()));
            let parse = parse(text.as_str());
            assert_eq!(parse.module.print(), text);
            assert!(parse.errors.len() <= MAX_ERRORS);
        }
    }
}

#[test]
fn nesting_that_people_write_is_allowed() {
    let depth = MAX_DEPTH as usize - 1;
    let scopes = format!(".entry e() {{{}ret;{}}}", "{".repeat(depth - 1), "}".repeat(depth - 1));
    assert_eq!(parse(scopes).errors, []);
    let sum = format!(".global .u32 x = {}1{};", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(parse(sum).errors, []);
}

#[test]
fn a_flood_of_errors_is_cut_short() {
    let parse = parse(format!(".entry e() {{ {}", "mov ,;".repeat(100_000)));
    assert_eq!(parse.errors.len(), MAX_ERRORS);
    let last = &parse.errors[MAX_ERRORS - 1];
    assert_eq!(last.message, "too many errors; the rest are not listed");
}
