//! What pages say about the sources: tests that show something, and messages of the program.
//!
//! Two pages are promises by their form. On `docs/failures.md` a name in backticks that reads like a test is one. On
//! `docs/troubleshooting.md` what stands in backticks in the first cell of a row is said by the program, with `…` for what
//! differs. Both are looked for in the sources, as text: who renames a test or rewrites a message is told here.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::library::Library;

const FAILURES: &str = "docs/failures.md";
const TROUBLE: &str = "docs/troubleshooting.md";

/// A shorter piece of a message would be found anywhere.
const LEAST: usize = 8;

/// Whatever the two pages claim that is not in the sources.
pub fn missing(library: &Library) -> Result<Vec<String>> {
    let sources = sources(library.root())?;
    let mut problems = Vec::new();
    for (page, claims, what) in
        [(FAILURES, tests as fn(&str) -> Vec<&str>, "test"), (TROUBLE, messages, "message")]
    {
        let Some(page) = library.page(Path::new(page)) else { continue };
        for (at, line) in page.text.lines().enumerate() {
            let lost = claims(line).into_iter().filter(|claim| !sources.contains(*claim));
            let path = page.path.display();
            problems
                .extend(lost.map(|claim| format!("{path}:{}: there is no such {what}: `{claim}`", at + 1)));
        }
    }
    Ok(problems)
}

/// All Rust of the repository, with strings that go on in the next line made whole.
fn sources(root: &Path) -> Result<String> {
    let list = ["ls-files", "-z", "--", "crates/*.rs", "conformance/*.rs"];
    let output = Command::new("git").current_dir(root).args(list).output().context("cannot run git")?;
    ensure!(output.status.success(), "git does not list the files");
    let names = String::from_utf8(output.stdout).context("the name of a source is not text")?;
    let texts = names.split('\0').filter_map(|name| fs::read_to_string(root.join(name)).ok());
    Ok(joined(&texts.collect::<String>()))
}

fn joined(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| whole + part.trim_start())
}

/// Names that read like those of tests: four words and more.
fn tests(line: &str) -> Vec<&str> {
    let name = |text: &&str| {
        let plain = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        plain && text.matches('_').count() >= 3
    };
    quoted(line).filter(name).collect()
}

/// The pieces of the messages in the first cell of a row.
fn messages(line: &str) -> Vec<&str> {
    let Some(row) = line.strip_prefix("| ") else { return Vec::new() };
    let cell = row.split(" | ").next().unwrap_or_default();
    quoted(cell)
        .flat_map(|text| text.split('…'))
        .map(str::trim)
        .filter(|piece| piece.len() >= LEAST)
        .collect()
}

fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_told_from_other_code() {
        assert_eq!(tests("| x | `a_test_that_shows` and `gpu_ns`, `ebb run` |"), ["a_test_that_shows"]);
        let row = "| `no daemon answers at …; start one`, `… it` | `not a message of ours` |";
        assert_eq!(messages(row), ["no daemon answers at", "; start one"]);
        assert_eq!(messages("as `this sentence` is not in a table"), [""; 0]);
    }

    #[test]
    fn strings_over_two_lines_are_whole() {
        assert_eq!(joined("\"one \\\n    two\"\n"), "\"one two\"\n");
    }
}
