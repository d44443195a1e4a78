//! One file: what it says, key by key, and everything that is wrong with it.
//!
//! It is walked by hand rather than by a derived reader, which would stop at the first mistake: whoever checks a file wants
//! to hear of all of them at once.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use board::Gpu;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{self, Value};
use crate::uuid;

/// Something in a file that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub file: PathBuf,
    /// None, if it is not about a line.
    pub line: Option<usize>,
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        write!(f, "{}{line}: {}", self.file.display(), self.message)
    }
}

/// A key, of one GPU or of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    pub gpu: Option<Gpu>,
    pub key: &'static str,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gpu {
            Some(gpu) => write!(f, "gpu.{}.{}", uuid::write(gpu), self.key),
            None => f.write_str(self.key),
        }
    }
}

/// Where something stands: which of several files, and which line of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    pub file: usize,
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub value: Value,
    pub at: At,
}

/// A `[[ceiling]]`, whose keys are right one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSaid {
    pub keys: BTreeMap<&'static str, Said>,
    pub at: At,
}

/// What one file says.
#[derive(Debug, Default)]
pub struct Document {
    pub said: BTreeMap<Name, Said>,
    pub rules: Vec<RuleSaid>,
}

/// Reads a file, the `number`th of several, and adds what is wrong with it to `mistakes`.
pub fn read(number: usize, path: &Path, text: &str, mistakes: &mut Vec<Mistake>) -> Document {
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
    let mut walk = Walk { number, path, ends, document: Document::default(), mistakes };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        walk.wrong(error.span().map_or(0, |span| span.start), error.message().to_owned());
    }
    // What is left of a text that is no TOML would only be complained about in other words.
    if errors.is_empty() {
        walk.all(table.get_ref());
    }
    walk.document
}

struct Walk<'a> {
    number: usize,
    path: &'a Path,
    /// Where lines end. They are counted once: a file may have tens of thousands of keys.
    ends: Vec<usize>,
    document: Document,
    mistakes: &'a mut Vec<Mistake>,
}

impl Walk<'_> {
    fn line(&self, offset: usize) -> usize {
        self.ends.partition_point(|&end| end < offset) + 1
    }

    fn at<T>(&self, value: &Spanned<T>) -> At {
        At { file: self.number, line: self.line(value.span().start) }
    }

    fn wrong(&mut self, offset: usize, message: String) {
        let line = Some(self.line(offset));
        self.mistakes.push(Mistake { file: self.path.to_owned(), line, message });
    }

    fn all(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref()) {
                (
                    "policy" | "token" | "socket" | "metrics" | "dashboard" | "trace",
                    DeValue::Table(inner),
                ) => {
                    self.table(key.get_ref(), inner, None);
                }
                ("gpu", DeValue::Table(gpus)) => {
                    gpus.iter().for_each(|(name, value)| self.gpu(name, value));
                }
                ("ceiling", DeValue::Array(rules)) => rules.iter().for_each(|rule| self.rule(rule)),
                (name @ ("policy" | "token" | "socket" | "metrics" | "dashboard" | "trace" | "gpu"), _) => {
                    self.wrong(key.span().start, format!("write `[{name}]`: it is a table"));
                }
                ("ceiling", _) => {
                    let message = "write `[[ceiling]]`: there may be several".to_owned();
                    self.wrong(key.span().start, message);
                }
                _ => {
                    let said = self.key("", key, value);
                    self.keep(said, None);
                }
            }
        }
        if !table.keys().any(|key| key.get_ref() == "schema_version") {
            self.wrong(0, "schema_version is missing; every file says it: schema_version = 1".to_owned());
        }
        self.old_place_of_in_flight();
    }

    fn table(&mut self, name: &str, table: &DeTable<'_>, gpu: Option<Gpu>) {
        for (key, value) in table {
            let said = self.key(name, key, value);
            self.keep(said, gpu);
        }
    }

    fn gpu(&mut self, name: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>) {
        let Some(gpu) = uuid::read(name.get_ref()) else {
            let message = format!("`{}` is no GPU; write its UUID, as `ebb status` shows it", name.get_ref());
            return self.wrong(name.span().start, message);
        };
        let Some(inside) = value.get_ref().as_table() else {
            return self.wrong(name.span().start, "a GPU has a table: [gpu.UUID.policy]".to_owned());
        };
        for (key, value) in inside {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("policy", DeValue::Table(policy)) => self.table("policy", policy, Some(gpu)),
                (other, _) => {
                    let message = format!("unknown key `{other}` of a GPU, which has the table policy only");
                    self.wrong(key.span().start, message);
                }
            }
        }
    }

    fn rule(&mut self, value: &Spanned<DeValue<'_>>) {
        let Some(table) = value.get_ref().as_table() else {
            return self.wrong(value.span().start, "a ceiling is a table".to_owned());
        };
        let before = self.mistakes.len();
        let keys: BTreeMap<_, _> =
            table.iter().filter_map(|(key, value)| self.key("ceiling", key, value)).collect();
        let subjects = keys.iter().filter(|(key, said)| match **key {
            "ceiling.everyone" => said.value == Value::Flag(true),
            name => ["ceiling.user", "ceiling.uid", "ceiling.group", "ceiling.gid"].contains(&name),
        });
        // One that is wrong already may be the one that is missing.
        if self.mistakes.len() == before {
            if subjects.count() != 1 {
                let message = "a ceiling names one of user, uid, group, gid and everyone = true";
                self.wrong(value.span().start, message.to_owned());
            } else if !keys.contains_key("ceiling.class") {
                self.wrong(value.span().start, "a ceiling says a class, the highest one".to_owned());
            }
        }
        self.document.rules.push(RuleSaid { keys, at: self.at(value) });
    }

    fn key(
        &mut self,
        table: &str,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
    ) -> Option<(&'static str, Said)> {
        let name =
            if table.is_empty() { key.get_ref().to_string() } else { format!("{table}.{}", key.get_ref()) };
        let Some(known) = keys::find(&name) else {
            let tables = if table.is_empty() {
                ", and tables policy, gpu, token, socket, metrics, dashboard, trace, ceiling"
            } else {
                ""
            };
            let message = format!("unknown key `{name}`; known are {}{tables}", keys::known_in(table));
            self.wrong(key.span().start, message);
            return None;
        };
        match known.holds.read(value.get_ref()) {
            Ok(read) => Some((known.name, Said { value: read, at: self.at(value) })),
            Err(message) => {
                self.wrong(value.span().start, message);
                None
            }
        }
    }

    fn keep(&mut self, said: Option<(&'static str, Said)>, gpu: Option<Gpu>) {
        if let Some((key, said)) = said {
            self.document.said.insert(Name { gpu, key }, said);
        }
    }

    /// The bound stood under `[token]` before there were policies, and may still.
    fn old_place_of_in_flight(&mut self) {
        let name = |key| Name { gpu: None, key };
        let Some(old) = self.document.said.remove(&name("token.in_flight")) else { return };
        match self.document.said.get(&name("policy.in_flight")) {
            None => drop(self.document.said.insert(name("policy.in_flight"), old)),
            Some(new) => {
                let message = "in_flight is said twice, here and under [token]".to_owned();
                let line = Some(new.at.line);
                self.mistakes.push(Mistake { file: self.path.to_owned(), line, message });
            }
        }
    }
}
