//! Other names for what tells of people and of their work.

use std::ffi::OsString;

use daemon::report::Report;

/// Keys of the configuration whose values name people.
const PEOPLE: [&str; 4] = ["user", "group", "admin_group", "name"];
/// Parts of keys whose values are nobody's business, whoever asks.
const SECRET: [&str; 6] = ["secret", "password", "token_file", "auth", "key", "cert"];
/// What a value becomes.
const HIDDEN: &str = "<hidden>";

/// Variables that have to do with us.
const VARIABLES: [&str; 5] = ["EBB_", "CUDA_", "NVIDIA_", "LD_", "XDG_RUNTIME_DIR"];

#[derive(Debug, Default)]
pub struct Redactor {
    full: bool,
    /// What is replaced, and by what; in the order in which it was found.
    words: Vec<(String, String)>,
    users: Vec<u32>,
}

impl Redactor {
    pub fn new(full: bool) -> Redactor {
        let mut redactor = Redactor { full, ..Redactor::default() };
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        for (word, other) in [(set("HOME"), "<home>"), (host, "<host>")] {
            word.into_iter().for_each(|word| redactor.hide(word.trim(), other));
        }
        // That somebody is root tells of nobody, and the word has other uses.
        for name in ["USER", "LOGNAME"].into_iter().filter_map(set).filter(|name| name != "root") {
            redactor.hide(&name, "<user>");
        }
        redactor
    }

    pub fn is_full(&self) -> bool {
        self.full
    }

    /// A report without who it is about. Names that are found here are replaced everywhere else, too.
    pub fn report(&mut self, mut report: Report) -> Report {
        if self.full {
            return report;
        }
        for process in report.gpus.iter_mut().flat_map(|gpu| &mut gpu.processes) {
            process.user = self.number(process.user);
            process.name = self.other("tenant", &process.name);
            process.program = self.other("program", &process.program);
        }
        for holder in report.gpus.iter_mut().filter_map(|gpu| gpu.token.as_mut()) {
            holder.name = self.other("tenant", &holder.name);
        }
        for victim in report.daemon.mps.iter_mut().flat_map(|mps| &mut mps.victims) {
            *victim = self.other("victim", victim);
        }
        report.sentences = report.sentences.iter().map(|sentence| self.clean(sentence)).collect();
        report
    }

    /// A configuration without names, and never with what opens something.
    pub fn configuration(&self, text: &str) -> String {
        let line = |line: &str| {
            let Some((key, _)) = line.split_once('=') else { return format!("{line}\n") };
            let name = key.trim().trim_start_matches('#').trim();
            let secret = SECRET.iter().any(|part| name.contains(part));
            let person = !self.full && PEOPLE.contains(&name);
            if secret || person { format!("{key}= \"{HIDDEN}\"\n") } else { format!("{line}\n") }
        };
        text.lines().map(line).collect()
    }

    /// Variables that concern us, by name; values only where everything is wanted.
    pub fn environment(&self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> String {
        let mut lines: Vec<String> = variables
            .into_iter()
            .filter_map(|(name, value)| {
                let name = name.into_string().ok()?;
                VARIABLES.iter().any(|begin| name.starts_with(begin)).then_some(())?;
                let value = if self.full { value.to_string_lossy().into_owned() } else { HIDDEN.to_owned() };
                Some(format!("{name}={value}\n"))
            })
            .collect();
        lines.sort();
        lines.concat()
    }

    /// A text in which every word that was found has its other name.
    pub fn clean(&self, text: &str) -> String {
        if self.full {
            return text.to_owned();
        }
        // A command line may have the name of its tenant in it: the longer one first.
        let mut words: Vec<_> = self.words.iter().collect();
        words.sort_by_key(|(word, _)| std::cmp::Reverse(word.len()));
        words.into_iter().fold(text.to_owned(), |text, (word, other)| replace(&text, word, other))
    }

    fn hide(&mut self, word: &str, other: &str) {
        if !word.is_empty() && word != "/" && !self.words.iter().any(|(known, _)| known == word) {
            self.words.push((word.to_owned(), other.to_owned()));
        }
    }

    /// The other name of something, which begins with its kind.
    fn other(&mut self, kind: &str, word: &str) -> String {
        if let Some((_, other)) = self.words.iter().find(|(known, _)| known == word) {
            return other.clone();
        }
        let number = self.words.iter().filter(|(_, other)| other.starts_with(kind)).count() + 1;
        let other = format!("{kind}-{number}");
        self.hide(word, &other);
        other
    }

    fn number(&mut self, user: u32) -> u32 {
        let place = self.users.iter().position(|known| *known == user).unwrap_or_else(|| {
            self.users.push(user);
            self.users.len() - 1
        });
        u32::try_from(place).unwrap_or(u32::MAX)
    }
}

/// Replaces a word where it stands by itself, rather than as a part of another one.
fn replace(text: &str, word: &str, other: &str) -> String {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    let mut clean = String::new();
    let mut rest = text;
    let mut before = None;
    while let Some(at) = rest.find(word) {
        let (head, tail) = rest.split_at(at);
        let behind = &tail[word.len()..];
        let left = head.chars().next_back().or(before);
        let whole =
            |edge: Option<char>, own: Option<char>| !(edge.is_some_and(joins) && own.is_some_and(joins));
        let alone =
            whole(left, word.chars().next()) && whole(behind.chars().next(), word.chars().next_back());
        clean.push_str(head);
        clean.push_str(if alone { other } else { word });
        before = word.chars().next_back();
        rest = behind;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor() -> Redactor {
        let mut redactor = Redactor::default();
        redactor.hide("/people/ada", "<home>");
        redactor.hide("ada", "<user>");
        redactor.other("tenant", "search");
        redactor.other("program", "python search.py --key 7");
        redactor
    }

    #[test]
    fn words_are_replaced_where_they_stand_by_themselves() {
        let clean = |text: &str| redactor().clean(text);
        assert_eq!(
            clean("ada: /people/ada/x, Canada, ada_2, research"),
            "<user>: <home>/x, Canada, ada_2, research"
        );
        assert_eq!(clean("`python search.py --key 7` of search"), "`program-1` of tenant-1");
        assert_eq!(clean("adaada ada"), "adaada <user>");
        let full = Redactor { full: true, ..redactor() };
        assert_eq!(full.clean("ada"), "ada");
    }

    #[test]
    fn the_same_name_has_the_same_other_name() {
        let mut redactor = redactor();
        assert_eq!(redactor.other("tenant", "search"), "tenant-1");
        assert_eq!(redactor.other("tenant", "train"), "tenant-2");
        assert_eq!((redactor.number(1000), redactor.number(0), redactor.number(1000)), (0, 1, 0));
    }

    #[test]
    fn a_configuration_names_nobody_and_opens_nothing() {
        let text =
            "schema_version = 1\n[socket]\ngroup = \"gpu\"\n[web]\nauth_file = \"/etc/x\"\nkind = \"slo\"\n";
        let wanted = "schema_version = 1\n[socket]\ngroup = \"<hidden>\"\n[web]\nauth_file = \"<hidden>\"\nkind = \"slo\"\n";
        assert_eq!(redactor().configuration(text), wanted);
        let full = Redactor { full: true, ..redactor() };
        assert!(full.configuration(text).contains("\"gpu\"") && !full.configuration(text).contains("/etc/x"));
    }

    #[test]
    fn variables_are_named_without_their_values() {
        let set = [("EBB_NAME", "search"), ("PATH", "/bin"), ("CUDA_VISIBLE_DEVICES", "0")];
        let set = || set.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(redactor().environment(set()), "CUDA_VISIBLE_DEVICES=<hidden>\nEBB_NAME=<hidden>\n");
        let full = Redactor { full: true, ..Redactor::default() };
        assert_eq!(full.environment(set()), "CUDA_VISIBLE_DEVICES=0\nEBB_NAME=search\n");
    }
}
