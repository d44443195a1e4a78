//! The site: a file of HTML for each page, beside its Markdown, and a table of contents on each.
//!
//! No script, no fonts, nothing from the network; it can be read from a disk. What pages link to under `docs/` is copied along;
//! what lies elsewhere in the repository and is no page is named without a link, since the site may stand where there is no
//! repository.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use pulldown_cmark::{CowStr, Event, Parser, Tag, TagEnd, html};

use super::CONTENTS;
use super::contents::Contents;
use super::library::{Goal, Library};
use super::page::{self, Page};

const STYLE: &str = include_str!("style.css");

/// What begins in the place of a link to something that only the repository has.
const UNLINKED: &str = "<span class=\"source\" title=\"in the repository\">";

/// Writes every page that can be reached, and says how many.
pub fn write(library: &Library, folder: &Path) -> Result<usize> {
    let contents = library.page(Path::new(CONTENTS)).context("there is no table of contents")?;
    let site = Site { library, folder, contents: Contents::of(contents), contents_page: contents };
    let reachable = library.reachable();
    for path in &reachable {
        let page = library.page(path).expect("only pages are reached");
        site.write_page(page)?;
    }
    site.put(Path::new("style.css"), STYLE.as_bytes())?;
    let for_programs = site.contents.for_programs();
    site.put(Path::new("llms.txt"), site.relocated(&for_programs).as_bytes())?;
    Ok(reachable.len())
}

struct Site<'a> {
    library: &'a Library,
    folder: &'a Path,
    contents: Contents,
    contents_page: &'a Page,
}

impl Site<'_> {
    fn write_page(&self, page: &Page) -> Result<()> {
        let place = place(&page.path);
        self.put(&place.with_extension("md"), page.text.as_bytes())?;
        self.put(&place, self.document(page)?.as_bytes())
    }

    fn document(&self, page: &Page) -> Result<String> {
        let home = relative(&place(&page.path), Path::new("index.html"));
        let style = relative(&place(&page.path), Path::new("style.css"));
        let source = place(&page.path).with_extension("md");
        let source = relative(&place(&page.path), &source);
        let (title, navigation, body) = (escaped(page.title()), self.navigation(page), self.body(page)?);
        let name = escaped(&self.contents.title);
        Ok(format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{title}</title>\n<link rel=\"stylesheet\" href=\"{style}\">\n\
             <link rel=\"alternate\" type=\"text/markdown\" href=\"{source}\">\n</head>\n<body>\n\
             <nav>\n<a class=\"home\" href=\"{home}\">{name}</a>\n{navigation}</nav>\n\
             <main>\n{body}<footer><a href=\"{source}\">This page as Markdown</a></footer>\n</main>\n</body>\n</html>\n"
        ))
    }

    /// The sections of the table of contents, with the page that is shown marked.
    fn navigation(&self, shown: &Page) -> String {
        let mut text = String::new();
        for section in &self.contents.sections {
            text.push_str(&format!("<h2>{}</h2>\n<ul>\n", escaped(&section.title)));
            for entry in &section.entries {
                let Goal::Page(path, anchor) = self.library.goal(self.contents_page, &entry.to) else {
                    continue;
                };
                let current = if path == shown.path { " aria-current=\"page\"" } else { "" };
                let to = relative(&place(&shown.path), &place(&path));
                let to = anchor.map_or(to.clone(), |anchor| format!("{to}#{anchor}"));
                text.push_str(&format!(
                    "<li><a href=\"{to}\"{current}>{}</a></li>\n",
                    escaped(&entry.title.replace('`', ""))
                ));
            }
            text.push_str("</ul>\n");
        }
        text
    }

    /// The page's own text, with anchors at its headings and links that fit the site.
    fn body(&self, page: &Page) -> Result<String> {
        let mut headings = page.headings.iter();
        let mut unlinked = false;
        let mut events = Vec::new();
        for event in Parser::new_ext(&page.text, page::options()) {
            events.push(match event {
                Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
                    let id = headings.next().map(|heading| CowStr::from(heading.anchor.clone()));
                    Event::Start(Tag::Heading { level, id, classes, attrs })
                }
                Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                    let to = self.address(page, &dest_url)?;
                    unlinked = to.is_none();
                    match to {
                        Some(to) => Event::Start(Tag::Link { link_type, dest_url: to.into(), title, id }),
                        None => Event::InlineHtml(UNLINKED.into()),
                    }
                }
                // Links do not lie in each other, so this is the end of the one that was left out.
                Event::End(TagEnd::Link) if unlinked => Event::InlineHtml("</span>".into()),
                Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                    let to = self.address(page, &dest_url)?.unwrap_or_default();
                    Event::Start(Tag::Image { link_type, dest_url: to.into(), title, id })
                }
                other => other,
            });
        }
        let mut text = String::new();
        html::push_html(&mut text, events.into_iter());
        Ok(text)
    }

    /// Where a link leads on the site; nowhere, for what only the repository has.
    fn address(&self, page: &Page, link: &str) -> Result<Option<String>> {
        let here = place(&page.path);
        Ok(match self.library.goal(page, link) {
            Goal::Outside => Some(link.to_owned()),
            Goal::Nowhere => None,
            Goal::Page(path, anchor) => {
                let to = relative(&here, &place(&path));
                Some(anchor.map_or(to.clone(), |anchor| format!("{to}#{anchor}")))
            }
            Goal::File(path) => match path.strip_prefix("docs") {
                Ok(inside) if self.library.root().join(&path).is_file() => {
                    let bytes = fs::read(self.library.root().join(&path));
                    self.put(inside, &bytes.with_context(|| format!("cannot read {}", path.display()))?)?;
                    Some(relative(&here, inside))
                }
                _ => None,
            },
        })
    }

    /// `llms.txt` for the site, on which pages of the repository lie elsewhere.
    fn relocated(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for entry in self.contents.sections.iter().flat_map(|section| &section.entries) {
            if let Goal::Page(path, _) = self.library.goal(self.contents_page, &entry.to) {
                let to = place(&path).with_extension("md");
                text = text.replace(&format!("]({})", entry.to), &format!("]({})", to.display()));
            }
        }
        text
    }

    fn put(&self, place: &Path, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(place);
        let folder = path.parent().expect("a file lies in a folder");
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Where a page lies on the site: the documentation at its root, other pages of the repository in a folder of their own.
fn place(path: &Path) -> PathBuf {
    if path == Path::new(CONTENTS) {
        return PathBuf::from("index.html");
    }
    let place = match path.strip_prefix("docs") {
        Ok(inside) => inside.to_owned(),
        Err(_) => Path::new("repository").join(path),
    };
    place.with_extension("html")
}

/// The way from one file of the site to another.
fn relative(from: &Path, to: &Path) -> String {
    let ups = from.parent().map_or(0, |folder| folder.components().count());
    let parts = to.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    std::iter::repeat_n("..".to_owned(), ups).chain(parts).collect::<Vec<_>>().join("/")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: [(&str, &str); 4] = [
        (
            "docs/README.md",
            "# Docs\n\nAll of it.\n\n## One\n\n* [`Run`](run.md): how\n* [House](../HOUSE.md)\n",
        ),
        (
            "docs/run.md",
            "# `run` & more\n\n## Twice\n\n## Twice\n\n[down](a/b.md#t) [src](../code) [file](data.txt) [out](https://x.org)\n\n\
             | a | b |\n|---|---|\n| <b>c</b> | d |\n",
        ),
        ("docs/a/b.md", "# T\n\n[up](../run.md#twice-1)\n"),
        ("HOUSE.md", "# House\n"),
    ];

    /// The site made of a small repository, and the folder it is in.
    fn made() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::create_dir_all(root.join("code")).unwrap();
        fs::write(root.join("docs/data.txt"), "data").unwrap();
        assert_eq!(write(&Library::of(&root, &PAGES), &folder.path().join("site")).unwrap(), 4);
        folder
    }

    fn read(folder: &tempfile::TempDir, name: &str) -> String {
        fs::read_to_string(folder.path().join("site").join(name)).unwrap()
    }

    #[test]
    fn pages_link_to_each_other_wherever_they_lie() {
        let site = made();
        let run = read(&site, "run.html");
        assert!(run.contains("<a href=\"a/b.html#t\">down</a>"), "{run}");
        assert!(run.contains("<a href=\"data.txt\">file</a>") && read(&site, "data.txt") == "data");
        assert!(run.contains("<span class=\"source\" title=\"in the repository\">src</span>"), "{run}");
        assert!(run.contains("<a href=\"https://x.org\">out</a>"), "{run}");
        assert!(run.contains("<h2 id=\"twice\">") && run.contains("<h2 id=\"twice-1\">"), "{run}");
        let below = read(&site, "a/b.html");
        assert!(below.contains("<a href=\"../run.html#twice-1\">up</a>"), "{below}");
        assert!(
            below.contains("href=\"../style.css\"") && below.contains("href=\"../index.html\""),
            "{below}"
        );
        assert!(read(&site, "repository/HOUSE.html").contains("<a href=\"../run.html\">Run</a>"));
    }

    #[test]
    fn every_page_has_the_table_of_contents_and_its_source() {
        let site = made();
        let run = read(&site, "run.html");
        assert!(run.contains("<a href=\"run.html\" aria-current=\"page\">Run</a>"), "{run}");
        assert!(run.contains("<title>run &amp; more</title>"), "{run}");
        assert_eq!(read(&site, "run.md"), PAGES[1].1);
        assert!(read(&site, "llms.txt").contains("- [House](repository/HOUSE.md)"));
    }

    #[test]
    fn nothing_is_fetched_and_nothing_runs() {
        let site = made();
        for name in ["index.html", "run.html", "style.css"] {
            let text = read(&site, name);
            assert!(
                !text.contains("<script") && !text.contains("@import") && !text.contains("url("),
                "{name}"
            );
        }
    }
}
