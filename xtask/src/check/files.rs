//! Files stay short, and tell nothing of the machine they were written on.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// A file about one subject rarely needs more; one that does is probably about two.
const MOST_LINES: usize = 700;

/// What people write. Generated files say so at their top.
const WRITTEN: [&str; 5] = ["rs", "cu", "h", "py", "sh"];

/// Where people keep their work. In pieces, so that this file does not name what it forbids.
const PRIVATE: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/"), concat!("/wo", "rk/")];

pub fn check(root: &Path) -> Result<()> {
    let mut problems = Vec::new();
    for name in tracked(root)? {
        // A file that git knows and the disk does not is being moved; text is all there is to judge.
        let Ok(text) = fs::read_to_string(root.join(&name)) else { continue };
        problems.extend(too_long(&name, &text));
        problems.extend(private(&name, &text));
    }
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    Ok(())
}

fn tracked(root: &Path) -> Result<Vec<String>> {
    let output =
        Command::new("git").current_dir(root).args(["ls-files", "-z"]).output().context("cannot run git")?;
    ensure!(
        output.status.success(),
        "git does not list the files: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn too_long(name: &str, text: &str) -> Option<String> {
    let written =
        Path::new(name).extension().is_some_and(|extension| WRITTEN.iter().any(|kind| extension == *kind));
    let generated = text.lines().take(3).any(|line| line.contains("@generated"));
    let lines = text.lines().count();
    (written && !generated && lines > MOST_LINES)
        .then(|| format!("{name} has {lines} lines (at most {MOST_LINES})"))
}

fn private(name: &str, text: &str) -> Option<String> {
    let line = text.lines().position(|line| PRIVATE.iter().any(|folder| starts_a_path(line, folder)))?;
    Some(format!("{name}:{} names a folder of somebody's machine", line + 1))
}

/// `folder` at the beginning of a path, rather than in the middle of one.
fn starts_a_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !['_', '-', '.', '/', '}', '~'].contains(&c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_found_unless_generated() {
        let long = "x\n".repeat(MOST_LINES + 1);
        assert!(too_long("a.rs", &long).unwrap().contains("701 lines"));
        assert_eq!(too_long("a.rs", &long[2..]), None);
        assert_eq!(too_long("a.ptx", &long), None);
        assert_eq!(too_long("a.rs", &format!("// @generated\n{long}")), None);
    }

    #[test]
    fn paths_of_a_machine_are_found() {
        let home = PRIVATE[0];
        assert!(private("a", &format!("one\nsee {home}ada/notes\n")).unwrap().starts_with("a:2 "));
        assert!(private("a", &format!("\"{home}ada\"")).is_some());
        assert_eq!(private("a", &format!("https://example.org{home}page")), None);
        assert_eq!(private("a", "src/work.rs, a home for it"), None);
    }
}
