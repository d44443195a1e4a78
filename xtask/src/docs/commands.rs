//! Examples that name a command or an option which there is not.
//!
//! Which there are is read from the reference, `docs/cli.md`, which the command line writes of itself. Looked at are blocks of
//! code that say that they are for a shell, on every page. This is no shell: it takes lines apart at what separates
//! commands, and looks at those that begin with `ebb`.

use std::collections::BTreeMap;

use super::library::Library;
use super::page::{Fence, Page};

/// The commands of the reference, by what is typed: `ebb sim sweep`.
#[derive(Debug)]
pub struct Known {
    commands: BTreeMap<String, Options>,
}

/// The options of a command: whether each is followed by a word that belongs to it.
type Options = BTreeMap<String, bool>;

/// Every command understands these.
const EVERYWHERE: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// What may stand before a command without being one.
const BEFORE: [&str; 6] = ["sudo", "nohup", "exec", "time", "do", "then"];

impl Known {
    pub fn of(reference: &str) -> Known {
        let mut known = Known { commands: BTreeMap::from([("ebb".to_owned(), Options::new())]) };
        let mut current = "ebb".to_owned();
        for line in reference.lines() {
            if let Some(name) =
                line.trim_start_matches('#').trim().strip_prefix("`ebb ").filter(|_| line.starts_with('#'))
            {
                current = format!("ebb {}", name.trim_end_matches('`'));
                known.commands.insert(current.clone(), Options::new());
            } else if let Some(row) = line.strip_prefix("| `")
                && let Some(options) = known.commands.get_mut(&current)
            {
                let cell = row.split(" | ").next().unwrap_or_default();
                options.extend(names(cell));
            }
        }
        known
    }

    /// What is wrong with a command, which begins with `ebb`.
    fn problem(&self, words: &[&str]) -> Option<String> {
        let (name, rest) = self.longest(words);
        let options = &self.commands[&name];
        let has_verbs = self.commands.keys().any(|other| other.starts_with(&format!("{name} ")));
        if let Some(verb) = rest.first().filter(|word| !word.starts_with('-'))
            && has_verbs
            && options.is_empty()
        {
            return Some(format!("`{name}` has no verb `{verb}`"));
        }
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            if *word == "--" || (name == "ebb run" && !word.starts_with('-')) {
                return None;
            }
            let option = word.split('=').next().unwrap_or(word);
            if !option.starts_with('-') || option == "-" || EVERYWHERE.contains(&option) {
                continue;
            }
            match options.get(option) {
                None => return Some(format!("`{name}` has no option `{option}`")),
                Some(true) if !word.contains('=') => drop(rest.next()),
                Some(_) => {}
            }
        }
        None
    }

    /// The command that the words name, and what follows it. `ebb help run` is about `ebb run`.
    fn longest<'w>(&self, words: &'w [&'w str]) -> (String, &'w [&'w str]) {
        let (mut name, mut rest) = ("ebb".to_owned(), &words[1..]);
        if rest.first() == Some(&"help") {
            rest = &rest[1..];
        }
        while let Some((verb, after)) = rest.split_first() {
            let longer = format!("{name} {verb}");
            if !self.commands.contains_key(&longer) {
                break;
            }
            (name, rest) = (longer, after);
        }
        (name, rest)
    }
}

/// The options in a cell such as `` `-o`, `--output OUTPUT` ``; an option with a name for its value is followed by one.
fn names(cell: &str) -> Vec<(String, bool)> {
    let quoted: Vec<&str> = cell.split('`').collect();
    let takes = |text: &str| text.contains(' ') && !text.contains("[=");
    let value = quoted.iter().any(|text| text.starts_with("--") && takes(text));
    let name = |text: &&str| {
        let name = text.split([' ', '[', '=']).next().unwrap_or_default();
        name.starts_with('-').then(|| (name.to_owned(), value))
    };
    quoted.iter().filter_map(name).collect()
}

/// Every example on any page that could not be typed.
pub fn unknown(library: &Library, known: &Known) -> Vec<String> {
    let of_page = |page: &Page| {
        let shell =
            page.fences.iter().filter(|fence| ["sh", "bash", "console"].contains(&fence.language.as_str()));
        shell.flat_map(|fence| of_fence(page, fence, known)).collect::<Vec<_>>()
    };
    library.pages().flat_map(of_page).collect()
}

fn of_fence(page: &Page, fence: &Fence, known: &Known) -> Vec<String> {
    let mut found = Vec::new();
    let mut whole = String::new();
    for (at, line) in fence.text.lines().enumerate() {
        if let Some(part) = line.strip_suffix('\\') {
            whole.push_str(part);
            continue;
        }
        whole.push_str(line);
        for words in commands(&whole) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if let Some(problem) = known.problem(&words) {
                found.push(format!("{}:{}: {problem}", page.path.display(), fence.line + at));
            }
        }
        whole.clear();
    }
    found
}

/// The commands on a line that begin with `ebb`, as words.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for part in split(line) {
        let mut words = part.into_iter().skip_while(|word| {
            let assignment = word.split_once('=').is_some_and(|(name, _)| !name.starts_with('-'));
            assignment || word == "$" || BEFORE.contains(&word.as_str())
        });
        match words.next() {
            Some(first) if first == "ebb" || first.ends_with("/ebb") => {
                found.push(std::iter::once("ebb".to_owned()).chain(words).collect());
            }
            _ => {}
        }
    }
    found
}

/// Words of a line, in groups that a shell would run apart. What is quoted is a word; what follows ` #` is a remark.
fn split(line: &str) -> Vec<Vec<String>> {
    let mut groups = vec![Vec::new()];
    let mut word = String::new();
    let mut quote = None;
    let add = |groups: &mut Vec<Vec<String>>, word: &mut String, next: bool| {
        if !word.is_empty() {
            groups.last_mut().expect("there is one from the start").push(std::mem::take(word));
        }
        if next {
            groups.push(Vec::new());
        }
    };
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '#') if word.is_empty() => break,
            (None, ';' | '|' | '&' | '(' | ')') => add(&mut groups, &mut word, true),
            (None, c) if c.is_whitespace() => add(&mut groups, &mut word, false),
            (_, c) => word.push(c),
        }
    }
    add(&mut groups, &mut word, false);
    groups
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const REFERENCE: &str = "\
| [`ebb run`](#ebb-run) | Run |
## `ebb run`
| `--class CLASS` | which |
| `--report[=text\\|json[:FILE]]` | say |
| `-q`, `--quiet` | hush |
| `COMMAND…` | what |
## `ebb sim`
| `SCENARIO…` | what |
| `-o`, `--output OUTPUT` | how |
### `ebb sim sweep`
| `--load LOAD` | loads |
## `ebb lab`
### `ebb lab run`
| `--out DIR` | where |
";

    fn problems(line: &str) -> Vec<String> {
        let known = Known::of(REFERENCE);
        let of = |words: Vec<String>| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            known.problem(&words)
        };
        commands(line).into_iter().filter_map(of).collect()
    }

    #[test]
    fn what_there_is_may_be_typed() {
        for line in [
            "ebb run --class latency --report=json:x -q -- python --whatever",
            "ebb run python --whatever",
            "A=b target/release/ebb sim a b -o json && ebb sim sweep x --load 0.1  # --no such thing",
            "ebb lab run x --out y; ebb --help | less",
            "ebb help lab run",
            "cargo xtask --no-such-thing",
            "echo 'ebb dance'",
        ] {
            assert_eq!(problems(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn what_there_is_not_is_named() {
        assert_eq!(problems("ebb dance"), ["`ebb` has no verb `dance`"]);
        assert_eq!(problems("x & ebb lab dance --out y"), ["`ebb lab` has no verb `dance`"]);
        assert_eq!(problems("ebb run --classes latency x"), ["`ebb run` has no option `--classes`"]);
        assert_eq!(problems("$(ebb sim x --load 0.5)"), ["`ebb sim` has no option `--load`"]);
        assert_eq!(problems("ebb lab run --out --mode x -z"), ["`ebb lab run` has no option `-z`"]);
    }

    #[test]
    fn a_mistake_is_found_on_its_page_and_line() {
        let page = "# T\n\n```sh\nebb run x\nebb lab run \\\n  --inn y\n```\n\n```toml\nebb dance\n```\n";
        let library = Library::of(Path::new("/nowhere-at-all"), &[("a.md", page)]);
        assert_eq!(unknown(&library, &Known::of(REFERENCE)), ["a.md:6: `ebb lab run` has no option `--inn`"]);
    }
}
