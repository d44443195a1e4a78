//! `docs/scenarios.md` names everything that a file may say, and its examples are right.

use scenario::{MODELS, Mode, Origin, Suite, parse};

const PAGE: &str = include_str!("../../../docs/scenarios.md");

/// The keys of a table, from what is said about a key that is not among them.
fn keys(table: &str) -> Vec<String> {
    let frame = "title = \"t\"\nduration = \"1s\"\nschema = 1\n";
    let text = if table.is_empty() { format!("zzz = 1\n{frame}") } else { format!("{frame}{table}") };
    let told = parse(&text, &Origin::text("a.toml")).expect_err("there is no such key").to_string();
    let (_, expected) = told.split_once("unknown field `zzz`, expected ").unwrap_or_else(|| panic!("{told}"));
    expected.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The part of the page under a heading.
fn section(heading: &str) -> &'static str {
    let (_, rest) =
        PAGE.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no section {heading}"));
    rest.split("\n## ").next().unwrap_or(rest)
}

#[test]
fn every_key_is_explained_where_it_belongs() {
    let tables = [
        ("The file", ""),
        ("`[soft]`", "[soft]\nzzz = 1"),
        ("`[[tenant]]`", "[[tenant]]\nzzz = 1"),
        ("`workload`", "[[tenant]]\nworkload = { zzz = 1 }"),
        ("`arrival`", "[[tenant]]\narrival = { zzz = 1 }"),
        ("`slo`", "[[tenant]]\nslo = { zzz = 1 }"),
        ("`[cross]`", "[cross]\nzzz = 1"),
        ("`[cross]`", "[[cross.latency]]\nzzz = 1"),
        ("`[cross]`", "[[cross.best-effort]]\nzzz = 1"),
    ];
    for (heading, table) in tables {
        let keys = keys(table);
        assert!(keys.len() > 1, "{heading}: {keys:?}");
        let section = section(heading);
        for key in keys {
            assert!(section.contains(&format!("`{key}`")), "`{key}` is not explained under {heading}");
        }
    }
}

#[test]
fn every_model_mode_and_suite_is_named() {
    let models = MODELS.iter().map(|model| model.name).chain(["stencil", "traversal", "burst", "grid"]);
    for name in models.chain(Mode::ALL.map(Mode::name)).chain(Suite::names()) {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn the_examples_are_right() {
    let examples: Vec<_> =
        PAGE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    let counts: Vec<_> = examples
        .iter()
        .map(|text| {
            parse(text, &Origin::text("example.toml")).unwrap_or_else(|error| panic!("{error}")).len()
        })
        .collect();
    assert_eq!(counts, [1, 4]);
}
