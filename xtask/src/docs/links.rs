//! Links that lead nowhere, and pages to which none leads.

use super::library::{Goal, Library};
use super::page::{Link, Page};

/// Every link on any page whose end is not there.
pub fn broken(library: &Library) -> Vec<String> {
    let of_page = |page| {
        let wrong = move |link| problem(library, page, link);
        page.links.iter().filter_map(wrong)
    };
    library.pages().flat_map(of_page).collect()
}

fn problem(library: &Library, page: &Page, link: &Link) -> Option<String> {
    let wrong = match library.goal(page, &link.to) {
        Goal::Outside | Goal::File(_) | Goal::Page(_, None) => return None,
        Goal::Nowhere => "there is no such file",
        Goal::Page(path, Some(anchor)) => {
            if library.page(&path).is_some_and(|page| page.has_anchor(&anchor)) {
                return None;
            }
            "there is no such heading on that page"
        }
    };
    Some(format!("{}:{}: `{}`: {wrong}", page.path.display(), link.line, link.to))
}

/// Pages of the documentation that nobody finds who begins at the table of contents.
pub fn unreachable(library: &Library) -> Vec<String> {
    let found = library.reachable();
    let lost = library.pages().filter(|page| page.path.starts_with("docs") && !found.contains(&page.path));
    lost.map(|page| format!("{}: no link leads here from {}", page.path.display(), super::CONTENTS)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_leads_nowhere_is_named_with_its_line() {
        let pages = [
            ("docs/README.md", "# Docs\n\n[a](a.md#here) [b](a.md#there)\n[c](c.md)\n"),
            ("docs/a.md", "# Here\n"),
        ];
        let broken = broken(&Library::of(Path::new("/nowhere-at-all"), &pages));
        assert_eq!(
            broken,
            [
                "docs/README.md:3: `a.md#there`: there is no such heading on that page",
                "docs/README.md:4: `c.md`: there is no such file"
            ]
        );
    }

    #[test]
    fn a_page_without_a_way_to_it_is_found() {
        let pages = [
            ("docs/README.md", "[a](a.md)"),
            ("docs/a.md", "[b](b/c.md)"),
            ("docs/b/c.md", ""),
            ("docs/d.md", ""),
            ("elsewhere.md", ""),
        ];
        let lost = unreachable(&Library::of(Path::new("/nowhere-at-all"), &pages));
        assert_eq!(lost, ["docs/d.md: no link leads here from docs/README.md"]);
    }
}
