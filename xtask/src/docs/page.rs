//! What a page consists of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A Markdown file, with what the checks and the site ask about it.
#[derive(Debug)]
pub struct Page {
    /// From the root of the repository.
    pub path: PathBuf,
    pub text: String,
    pub headings: Vec<Heading>,
    pub links: Vec<Link>,
    pub fences: Vec<Fence>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Heading {
    pub text: String,
    /// By which it can be linked to.
    pub anchor: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    pub to: String,
    pub line: usize,
}

/// A block of code that says in which language it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Fence {
    pub language: String,
    pub text: String,
    /// Of its first line.
    pub line: usize,
}

/// What of Markdown the pages use beyond its core.
pub fn options() -> Options {
    Options::ENABLE_TABLES
}

impl Page {
    pub fn new(path: PathBuf, text: String) -> Page {
        let mut reader = Reader {
            page: Page { path, text: String::new(), headings: vec![], links: vec![], fences: vec![] },
            ..Reader::default()
        };
        for (event, place) in Parser::new_ext(&text, options()).into_offset_iter() {
            let line = text[..place.start].matches('\n').count() + 1;
            reader.take(event, line);
        }
        Page { text, ..reader.page }
    }

    pub fn title(&self) -> &str {
        self.headings.first().map_or("untitled", |heading| heading.text.as_str())
    }

    pub fn has_anchor(&self, anchor: &str) -> bool {
        self.headings.iter().any(|heading| heading.anchor == anchor)
    }
}

impl Default for Page {
    fn default() -> Page {
        Page { path: PathBuf::new(), text: String::new(), headings: vec![], links: vec![], fences: vec![] }
    }
}

/// A page while it is read.
#[derive(Default)]
struct Reader {
    page: Page,
    heading: Option<String>,
    fence: Option<Fence>,
    taken: Anchors,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, line: usize) {
        match event {
            Event::Start(Tag::Heading { .. }) => self.heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let text = self.heading.take().unwrap_or_default();
                let anchor = self.taken.anchor(&text);
                self.page.headings.push(Heading { text, anchor });
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.page.links.push(Link { to: dest_url.into_string(), line });
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                let language = language.split_whitespace().next().unwrap_or_default().to_owned();
                self.fence = Some(Fence { language, text: String::new(), line: line + 1 });
            }
            Event::End(TagEnd::CodeBlock) => self.page.fences.extend(self.fence.take()),
            Event::Text(text) | Event::Code(text) => {
                if let Some(fence) = &mut self.fence {
                    fence.text.push_str(&text);
                } else if let Some(heading) = &mut self.heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
}

/// Anchors of one page. They are those that forges give to headings: in small letters, without punctuation, with hyphens for
/// spaces, and with a number from the second of the same name on.
#[derive(Debug, Default)]
pub struct Anchors {
    seen: BTreeMap<String, u32>,
}

impl Anchors {
    pub fn anchor(&mut self, heading: &str) -> String {
        let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        let plain: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase();
        let count = self.seen.entry(plain.clone()).or_insert(0);
        *count += 1;
        if *count == 1 { plain } else { format!("{plain}-{}", *count - 1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_named_as_forges_name_them() {
        let page = Page::new(PathBuf::new(), "# `ebb run`, at last\n\n## What?\n\n## What?\n".to_owned());
        let anchors: Vec<_> = page.headings.iter().map(|heading| heading.anchor.as_str()).collect();
        assert_eq!(anchors, ["ebb-run-at-last", "what", "what-1"]);
        assert_eq!(page.title(), "ebb run, at last");
    }

    #[test]
    fn links_and_fences_know_their_lines() {
        let text = "# T\n\nSee [a](b.md#c) and\n![p](p.svg).\n\n```sh\nebb run\n```\n\n```\nplain\n```\n";
        let page = Page::new(PathBuf::new(), text.to_owned());
        let link = |to: &str, line| Link { to: to.to_owned(), line };
        assert_eq!(page.links, [link("b.md#c", 3), link("p.svg", 4)]);
        let fence = |language: &str, text: &str, line| Fence {
            language: language.to_owned(),
            text: text.to_owned(),
            line,
        };
        assert_eq!(page.fences, [fence("sh", "ebb run\n", 7), fence("", "plain\n", 11)]);
    }
}
