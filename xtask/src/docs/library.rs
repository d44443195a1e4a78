//! All pages, and what a link of one of them means.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::CONTENTS;
use super::page::Page;

/// Every Markdown file of the repository.
#[derive(Debug)]
pub struct Library {
    root: PathBuf,
    pages: BTreeMap<PathBuf, Page>,
}

/// Where a link leads.
#[derive(Debug, PartialEq, Eq)]
pub enum Goal {
    /// Out of the repository: nobody's business here, since a check must not depend on the network.
    Outside,
    /// A page, and perhaps a place on it.
    Page(PathBuf, Option<String>),
    /// Another file, or a folder.
    File(PathBuf),
    /// Nothing that is there.
    Nowhere,
}

impl Library {
    pub fn read(root: &Path) -> Result<Library> {
        // Also what is not committed yet, so that a new page is checked while it is written.
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md"];
        let output = Command::new("git").current_dir(root).args(list).output().context("cannot run git")?;
        ensure!(output.status.success(), "git does not list the files");
        let names = String::from_utf8(output.stdout).context("the name of a page is not text")?;
        let mut pages = BTreeMap::new();
        for name in names.split('\0').filter(|name| !name.is_empty()) {
            // What git knows and the disk does not is being moved.
            let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
            pages.insert(PathBuf::from(name), Page::new(PathBuf::from(name), text));
        }
        Ok(Library { root: root.to_owned(), pages })
    }

    #[cfg(test)]
    pub fn of(root: &Path, pages: &[(&str, &str)]) -> Library {
        let page = |(name, text): &(&str, &str)| {
            (PathBuf::from(name), Page::new(PathBuf::from(name), (*text).to_owned()))
        };
        Library { root: root.to_owned(), pages: pages.iter().map(page).collect() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn page(&self, path: &Path) -> Option<&Page> {
        self.pages.get(path)
    }

    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        self.pages.values()
    }

    /// What a link on a page means.
    pub fn goal(&self, from: &Page, link: &str) -> Goal {
        if link.contains("://") || link.starts_with("mailto:") {
            return Goal::Outside;
        }
        let (path, anchor) = match link.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor.to_owned())),
            None => (link, None),
        };
        if path.is_empty() {
            return Goal::Page(from.path.clone(), anchor);
        }
        let folder = from.path.parent().unwrap_or(Path::new(""));
        let Some(path) = plain(&folder.join(path)) else { return Goal::Nowhere };
        if self.pages.contains_key(&path) {
            return Goal::Page(path, anchor);
        }
        let index = path.join("README.md");
        if self.pages.contains_key(&index) {
            return Goal::Page(index, anchor);
        }
        if self.root.join(&path).exists() { Goal::File(path) } else { Goal::Nowhere }
    }

    /// The pages to which the table of contents leads, by however many links, and itself.
    pub fn reachable(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::from([PathBuf::from(CONTENTS)]);
        let mut waiting = vec![PathBuf::from(CONTENTS)];
        while let Some(page) = waiting.pop().and_then(|path| self.page(&path)) {
            for link in &page.links {
                if let Goal::Page(path, _) = self.goal(page, &link.to)
                    && found.insert(path.clone())
                {
                    waiting.push(path);
                }
            }
        }
        found
    }
}

/// A path without `.` and `..`, if it stays in the repository.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::CurDir => {}
            Component::ParentDir => plain.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_from_where_they_stand() {
        let pages = [("docs/README.md", "[a](a/b.md)"), ("docs/a/b.md", "# B\n"), ("x/README.md", "# X\n")];
        let library = Library::of(Path::new("/nowhere-at-all"), &pages);
        let page = library.page(Path::new("docs/a/b.md")).unwrap();
        let goal = |link: &str| library.goal(page, link);
        assert_eq!(goal("https://example.org/a.md"), Goal::Outside);
        assert_eq!(goal("#b"), Goal::Page("docs/a/b.md".into(), Some("b".into())));
        assert_eq!(goal("../README.md"), Goal::Page("docs/README.md".into(), None));
        assert_eq!(goal("../../x"), Goal::Page("x/README.md".into(), None));
        assert_eq!(goal("../../../x"), Goal::Nowhere);
        assert_eq!(goal("b.txt"), Goal::Nowhere);
        let reachable: Vec<_> = library.reachable().into_iter().collect();
        assert_eq!(reachable, [PathBuf::from("docs/README.md"), PathBuf::from("docs/a/b.md")]);
    }
}
