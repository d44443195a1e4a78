//! Dashboards, rules and the reference say nothing about metrics that there are not.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use export::{FAMILIES, Family, Kind};
use serde_json::Value;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The values of a key in a file of rules, of which each stands on its line.
fn values<'a>(text: &'a str, key: &str) -> Vec<&'a str> {
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches("- "));
    lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).collect()
}

const FUNCTIONS: [&str; 10] = [
    "absent",
    "clamp_max",
    "histogram_quantile",
    "increase",
    "label_replace",
    "max",
    "min",
    "rate",
    "sum",
    "label_values",
];
const WORDS: [&str; 5] = ["by", "and", "or", "unless", "on"];
/// What Prometheus itself adds.
const AROUND: [&str; 3] = ["instance", "job", "le"];

/// A query in tokens, as far as that is needed to see that it can be one.
fn tokens(query: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = query.trim();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || "_:$.".contains(c);
        let length = match first {
            '"' => rest[1..].find('"').expect("a text ends") + 2,
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ if rest.starts_with("=~") || rest.starts_with("==") || rest.starts_with("!=") => 2,
            c => c.len_utf8(),
        };
        tokens.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    tokens
}

fn family(series: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.series().iter().any(|name| name == series))
}

/// Sees that a query is balanced, calls functions that there are, and asks for metrics as what they are.
fn check(query: &str, recorded: &BTreeSet<&str>) {
    let tokens = tokens(query);
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "(" | "[" | "{" => open.push(token.as_str()),
            ")" => assert_eq!(open.pop(), Some("("), "{query}"),
            "]" => assert_eq!(open.pop(), Some("["), "{query}"),
            "}" => assert_eq!(open.pop(), Some("{"), "{query}"),
            word if word.starts_with(|c: char| c.is_alphabetic()) && !open.contains(&"[") => {
                let next = tokens.get(at + 1).map_or("", String::as_str);
                let in_braces = open.last() == Some(&"{");
                let in_list = open.last() == Some(&"(") && is_list(&tokens[..at]);
                match word {
                    _ if in_braces || in_list => is_label(word, query),
                    _ if WORDS.contains(&word) => {}
                    _ if next == "(" || next == "by" => {
                        assert!(FUNCTIONS.contains(&word), "{word} in {query}")
                    }
                    _ if recorded.contains(word) || word.starts_with("DCGM_") => {}
                    _ => check_metric(word, &tokens[at + 1..], query),
                }
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{query}");
}

/// Whether these end with `by (` and labels.
fn is_list(before: &[String]) -> bool {
    let start = before.iter().rposition(|token| token == "(").unwrap();
    start > 0 && (before[start - 1] == "by" || before[start - 1] == "on")
        || before.first().is_some_and(|first| first == "label_values")
            && before.last().is_some_and(|last| last == ",")
}

fn is_label(word: &str, query: &str) {
    let known = FAMILIES.iter().any(|family| family.labels.contains(&word)) || AROUND.contains(&word);
    assert!(known, "there is no label {word}: {query}");
}

/// What counts is asked for as a rate, and what does not is not.
fn check_metric(name: &str, behind: &[String], query: &str) {
    let family = family(name).unwrap_or_else(|| panic!("there is no {name}: {query}"));
    let mut behind = behind;
    if behind.first().is_some_and(|token| token == "{") {
        let end = behind.iter().position(|token| token == "}").unwrap();
        for matcher in behind[1..end].split(|token| token == ",") {
            let label = matcher[0].as_str();
            let has = family.labels.contains(&label) || AROUND.contains(&label);
            assert!(has && matcher.len() == 3, "{name} has no label {label}: {query}");
        }
        behind = &behind[end + 1..];
    }
    let ranges = behind.first().is_some_and(|token| token == "[");
    let counts = matches!(family.kind, Kind::Counter | Kind::Histogram);
    let listed = query.starts_with("label_values(");
    assert!(listed || ranges == counts, "{name} is a {}: {query}", family.kind.name());
}

#[test]
fn rules_ask_for_metrics_that_there_are() {
    let text = read("deploy/prometheus/ebb.rules.yml");
    let recorded: BTreeSet<_> = values(&text, "record").into_iter().collect();
    let queries = values(&text, "expr");
    assert_eq!(queries.len(), recorded.len() + values(&text, "alert").len());
    assert!(recorded.len() > 5 && recorded.iter().all(|name| name.contains(':')));
    queries.iter().for_each(|query| check(query, &recorded));
    for alert in [
        "EbbSloBurnsFast",
        "EbbSloBurnsSlowly",
        "EbbDegraded",
        "EbbUnmanagedProcesses",
        "EbbConfigReloadFailed",
    ] {
        assert!(values(&text, "alert").contains(&alert), "{alert}");
    }
    assert!(!text.contains('\t'), "no tabs in YAML");
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/ebb.json")).unwrap();
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    assert!(queries.len() > 15);
    queries.iter().for_each(|query| check(query, &BTreeSet::new()));
    let panels = dashboard["panels"].as_array().unwrap();
    let numbers: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(numbers.len(), panels.len());
}

fn collect(value: &Value, queries: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text) if key == "expr" || key == "definition" => queries.push(text.clone()),
                    other => collect(other, queries),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, queries)),
        _ => {}
    }
}

#[test]
fn queries_that_cannot_be_are_refused() {
    let refused = |query: &str| std::panic::catch_unwind(|| check(query, &BTreeSet::new())).is_err();
    let good = "sum by (tenant) (rate(ebb_tenant_launches_total{tenant=~\"$tenant\"}[5m])) / 2";
    assert!(!refused(good));
    let bad = [
        "rate(ebb_tenant_launches_total[5m]",
        "rate(ebb_nothing_total[5m])",
        "sum(ebb_tenant_launches_total)",
        "rate(ebb_degraded[5m])",
        "sum by (flavour) (ebb_degraded)",
        "rate(ebb_tenant_launches_total{rung=\"x\"}[5m])",
        "guess(ebb_degraded)",
        "(ebb_degraded]",
    ];
    for query in bad {
        assert!(refused(query), "{query}");
    }
}

#[test]
fn the_reference_has_every_metric_as_it_is() {
    let text = read("docs/metrics.md");
    let row = |family: &Family| {
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        format!("| `{}` | {} | {labels} | {} |", family.name, family.kind.name(), family.help)
    };
    let wanted: Vec<_> = FAMILIES.iter().map(row).collect();
    let found: Vec<_> = text.lines().filter(|line| line.starts_with("| `ebb_")).collect();
    assert_eq!(found, wanted, "the table should be\n\n{}\n", wanted.join("\n"));
}
