//! The references in `docs` against the code they are about.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use daemon::{KEYS, Loaded, Scope};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap()
}

fn reference() -> String {
    fs::read_to_string(root().join("docs/configuration.md")).unwrap()
}

/// The rows of a part of a document whose first cell is code, cell by cell.
fn rows(text: &str, part: &str) -> Vec<Vec<String>> {
    let (_, rest) = text.split_once(&format!("\n## {part}\n")).unwrap();
    let inside = rest.split("\n## ").next().unwrap();
    let rows = inside.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| row[1..row.len() - 1].split('|').map(|cell| cell.trim().to_owned()).collect();
    rows.map(cells).collect()
}

#[test]
fn every_key_stands_in_the_reference_as_the_code_has_it() {
    let rows = rows(&reference(), "Keys");
    let found: Vec<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    let known: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(found, known, "the same keys in the same order");
    for (row, key) in rows.iter().zip(KEYS) {
        assert_eq!((&row[1], row[2].as_str()), (&key.holds.to_string(), key.default), "{}", key.name);
        assert_eq!(row[3].starts_with("*start*"), key.at_start, "{}", key.name);
    }
}

#[test]
fn what_the_documents_show_as_a_configuration_is_one() {
    for document in ["docs/configuration.md", "docs/daemon.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let (_, rest) = text.split_once("```toml\n").unwrap();
        let example = rest.split("```").next().unwrap();
        // The groups of the example need not exist here.
        let example = ["gpu-admin", "inference", "gpu"]
            .iter()
            .fold(example.to_owned(), |text, group| text.replace(&format!("\"{group}\""), "\"root\""));
        let read = Loaded::of_texts(&[(document, example.as_str())], Scope::Machine, 0);
        assert_eq!(read.unwrap().configuration.ceilings.rules.len(), 2);
    }
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Names of variables in a text of Rust: those that begin a string, or are one.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split('"').filter_map(|piece| {
        let name =
            piece.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).next()?;
        let whole = name.len() == piece.len() || piece[name.len()..].starts_with(['=', ' ']);
        let ours = name.starts_with("EBB_") && !name.ends_with('_');
        // Tests set these for themselves.
        let of_tests = name.starts_with("EBB_TEST_") || name == "EBB_NO_SUCH_VARIABLE";
        (whole && ours && !of_tests).then_some(name)
    })
}

#[test]
fn every_variable_that_is_read_stands_in_the_reference_and_no_other() {
    let mut files = vec![root().join("crates/cli/build.rs")];
    for entry in fs::read_dir(root().join("crates")).unwrap().flatten() {
        let folder = entry.path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let read: BTreeSet<&str> = texts.iter().flat_map(|text| variables(text)).collect();
    let rows = rows(&reference(), "Environment");
    let told: BTreeSet<&str> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(
        read.difference(&told).collect::<Vec<_>>(),
        [] as [&&str; 0],
        "read, and not in the reference"
    );
    assert_eq!(
        told.difference(&read).collect::<Vec<_>>(),
        [] as [&&str; 0],
        "in the reference, and not read"
    );
    assert_eq!(told.len(), rows.len(), "each stands once");
}
