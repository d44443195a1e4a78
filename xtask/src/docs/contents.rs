//! The table of contents: sections with lists of pages, each with a few words.
//!
//! It is a page for people first. What makes it a table is its form: under every heading of the second order a list, whose items begin with a link.

use super::page::Page;

#[derive(Debug)]
pub struct Contents {
    pub title: String,
    /// What is said before the first section, as one paragraph.
    pub summary: String,
    pub sections: Vec<Section>,
}

#[derive(Debug)]
pub struct Section {
    pub title: String,
    pub entries: Vec<Entry>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub title: String,
    pub to: String,
    /// What follows the link.
    pub words: String,
}

impl Contents {
    pub fn of(page: &Page) -> Contents {
        let mut contents =
            Contents { title: page.title().to_owned(), summary: String::new(), sections: vec![] };
        let mut summary_over = false;
        for line in page.text.lines().skip(1) {
            if let Some(title) = line.strip_prefix("## ") {
                contents.sections.push(Section { title: title.trim().to_owned(), entries: vec![] });
                summary_over = true;
            } else if let Some(section) = contents.sections.last_mut() {
                section.take(line);
            } else if line.trim().is_empty() {
                summary_over |= !contents.summary.is_empty();
            } else if !summary_over {
                join(&mut contents.summary, line);
            }
        }
        contents
    }

    /// As <https://llmstxt.org> has it: a title, a summary, and lists of links.
    pub fn for_programs(&self) -> String {
        let mut text = format!("# {}\n\n> {}\n", self.title, self.summary);
        for section in &self.sections {
            text.push_str(&format!("\n## {}\n\n", section.title));
            for entry in &section.entries {
                text.push_str(&format!("- [{}]({}){}\n", entry.title, entry.to, entry.words));
            }
        }
        text
    }
}

impl Section {
    fn take(&mut self, line: &str) {
        let item = line.strip_prefix("* ").or_else(|| line.strip_prefix("- "));
        match (item, self.entries.last_mut()) {
            (Some(item), _) => self.entries.extend(entry(item)),
            (None, Some(last)) if line.starts_with(' ') => join(&mut last.words, line),
            _ => {}
        }
    }
}

fn entry(item: &str) -> Option<Entry> {
    let (title, rest) = item.strip_prefix('[')?.split_once("](")?;
    let (to, words) = rest.split_once(')')?;
    Some(Entry { title: title.to_owned(), to: to.to_owned(), words: words.to_owned() })
}

fn join(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(line.trim());
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# The product

What it is,
in a sentence.

More, which is not the summary.

## First

* [A](a.md): what a is,
  at length
* not a link

## Second

* [B](b/c.md)
";

    #[test]
    fn sections_are_lists_of_links_with_words() {
        let contents = Contents::of(&Page::new("docs/README.md".into(), PAGE.to_owned()));
        assert_eq!(contents.summary, "What it is, in a sentence.");
        let titles: Vec<_> = contents.sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["First", "Second"]);
        let words = ": what a is, at length".to_owned();
        assert_eq!(contents.sections[0].entries, [Entry { title: "A".into(), to: "a.md".into(), words }]);
    }

    #[test]
    fn programs_get_the_same_in_their_own_form() {
        let contents = Contents::of(&Page::new("docs/README.md".into(), PAGE.to_owned()));
        assert_eq!(
            contents.for_programs(),
            "# The product\n\n> What it is, in a sentence.\n\n## First\n\n- [A](a.md): what a is, at length\n\n\
             ## Second\n\n- [B](b/c.md)\n"
        );
    }
}
