//! Every key that a file may have, what it holds, and what holds where nobody says it.
//!
//! One table, because three readers must agree on it: the one who reads files, the one who shows what is in force, and the
//! reference in `docs/configuration.md`, which a test holds against it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use board::{HIGHEST_PRIORITY, HIGHEST_WEIGHT};
use model::{MOST_CONFINED, Nanos};
use toml::de::DeValue;

use crate::names;

/// The only schema so far.
const SCHEMA: u32 = 1;

/// Requests that are seen alone cost best-effort work; a fifth of them is more than anybody needs to know.
const MOST_SOLO: u32 = 200;
/// Twice as slow as alone.
const MOST_TOLERANCE: u32 = 1_000;

/// A key, written with its table: `token.quantum`. Those of `policy` may stand under `gpu.UUID.policy` too.
#[derive(Debug)]
pub struct Key {
    pub name: &'static str,
    pub holds: Holds,
    /// What holds where no file says it, as it would be written.
    pub default: &'static str,
    /// It is read when the daemon starts, and not again.
    pub at_start: bool,
}

/// What a key may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Schema,
    Flag,
    Word(&'static [&'static str]),
    Span(Nanos, Nanos),
    Number(u32, u32),
    User,
    Group,
    /// An address with a port, or `off`.
    Address,
    /// A full path.
    Path,
}

/// A value that was found right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Flag(bool),
    Word(&'static str),
    Span(Nanos),
    Number(u32),
    /// A user or a group, by its name and its number.
    Named(String, u32),
    Address(Option<SocketAddr>),
    Path(PathBuf),
}

const CLASSES: &[&str] = &["latency", "best-effort"];
const KINDS: &[&str] = &["strict", "gaps", "slo", "fair", "deadline"];
const DOMAINS: &[&str] = &["isolated", "shared", "auto"];

const fn key(name: &'static str, holds: Holds, default: &'static str) -> Key {
    Key { name, holds, default, at_start: false }
}

const fn once(name: &'static str, holds: Holds, default: &'static str) -> Key {
    Key { name, holds, default, at_start: true }
}

const fn us(least: u64, most: u64) -> Holds {
    Holds::Span(Nanos::from_micros(least), Nanos::from_micros(most))
}

/// In the order of the reference.
pub static KEYS: &[Key] = &[
    key("schema_version", Holds::Schema, ""),
    once("domain", Holds::Word(DOMAINS), "isolated"),
    once("mps", Holds::Flag, ""),
    once("board_per_user", Holds::Flag, "false"),
    key("policy.kind", Holds::Word(KINDS), "slo"),
    key("policy.quiet", us(0, 1_000_000), ""),
    key("policy.threshold", us(1, 1_000_000), ""),
    key("policy.in_flight", us(100, 1_000_000), ""),
    key("policy.beside", us(0, 10_000), ""),
    key("policy.confine", Holds::Number(0, MOST_CONFINED), ""),
    key("policy.solo_share", Holds::Number(0, MOST_SOLO), ""),
    key("policy.tolerance", Holds::Number(0, MOST_TOLERANCE), ""),
    key("token.quantum", us(1_000, 10_000_000), "50ms"),
    key("token.idle", us(10, 1_000_000), "500us"),
    key("token.grace", us(1_000, 60_000_000), "250ms"),
    key("token.in_flight", us(100, 1_000_000), ""),
    key("token.starve_after", us(100_000, 3_600_000_000), ""),
    once("socket.group", Holds::Group, ""),
    key("socket.admin_group", Holds::Group, ""),
    key("metrics.listen", Holds::Address, ""),
    key("metrics.tls_certificate", Holds::Path, ""),
    key("metrics.tls_key", Holds::Path, ""),
    key("metrics.basic_auth_file", Holds::Path, ""),
    key("dashboard.enabled", Holds::Flag, "true"),
    key("dashboard.admin_token_file", Holds::Path, ""),
    key("trace.on_miss", Holds::Flag, "false"),
    key("trace.last", us(100_000, 60_000_000), "5s"),
    key("ceiling.user", Holds::User, ""),
    key("ceiling.uid", Holds::Number(0, u32::MAX), ""),
    key("ceiling.group", Holds::Group, ""),
    key("ceiling.gid", Holds::Number(0, u32::MAX), ""),
    key("ceiling.everyone", Holds::Flag, ""),
    key("ceiling.class", Holds::Word(CLASSES), ""),
    key("ceiling.priority", Holds::Number(0, HIGHEST_PRIORITY), "9"),
    key("ceiling.weight", Holds::Number(1, HIGHEST_WEIGHT), "1000"),
];

pub fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// The keys of a table, for whoever mistyped one.
pub fn known_in(table: &str) -> String {
    let inside = |key: &Key| match (table, key.name.split_once('.')) {
        ("", None) => Some(key.name),
        (_, Some((of, name))) if of == table => Some(name),
        _ => None,
    };
    KEYS.iter().filter_map(inside).collect::<Vec<_>>().join(", ")
}

impl Holds {
    /// What a file says, if it is of this kind.
    pub fn read(self, value: &DeValue<'_>) -> Result<Value, String> {
        match self {
            Holds::Flag => value.as_bool().map(Value::Flag).ok_or_else(|| self.expected(value)),
            Holds::Word(words) => self.word(value, words),
            Holds::Span(least, most) => self.span(value, least, most),
            Holds::Number(least, most) => self.number(value, least, most),
            Holds::Address => self.address(value),
            Holds::Path => self.path(value),
            Holds::Schema => match self.number(value, 0, u32::MAX)? {
                Value::Number(SCHEMA) => Ok(Value::Number(SCHEMA)),
                other => Err(format!("schema_version is {other}, and this ebb knows only {SCHEMA}")),
            },
            Holds::User | Holds::Group => {
                let name = value.as_str().ok_or_else(|| self.expected(value))?;
                let (kind, id) = match self {
                    Holds::User => ("user", names::user(name)),
                    _ => ("group", names::group(name)),
                };
                let id = id.ok_or_else(|| format!("there is no {kind} called {name}"))?;
                Ok(Value::Named(name.to_owned(), id))
            }
        }
    }

    fn word(self, value: &DeValue<'_>, words: &'static [&'static str]) -> Result<Value, String> {
        let said = value.as_str().ok_or_else(|| self.expected(value))?;
        let known = words.iter().find(|word| **word == said);
        known
            .map(|word| Value::Word(word))
            .ok_or_else(|| format!("`{said}` is not one of {}", words.join(", ")))
    }

    fn span(self, value: &DeValue<'_>, least: Nanos, most: Nanos) -> Result<Value, String> {
        let said = value.as_str().ok_or_else(|| self.expected(value))?;
        let span: Nanos = said.parse().map_err(|error| format!("{error}"))?;
        match (least..=most).contains(&span) {
            true => Ok(Value::Span(span)),
            false => Err(format!("{span} is not between {least} and {most}")),
        }
    }

    fn number(self, value: &DeValue<'_>, least: u32, most: u32) -> Result<Value, String> {
        let said = value.as_integer().ok_or_else(|| self.expected(value))?;
        let number = u32::from_str_radix(said.as_str(), said.radix()).ok();
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Value::Number(number)),
            None => Err(format!("{said} is not between {least} and {most}")),
        }
    }

    fn address(self, value: &DeValue<'_>) -> Result<Value, String> {
        let said = value.as_str().ok_or_else(|| self.expected(value))?;
        if said == "off" {
            return Ok(Value::Address(None));
        }
        let example = "write an address and a port, such as 127.0.0.1:9463, or off";
        let address = said.parse().map_err(|_| format!("`{said}` cannot be listened on; {example}"))?;
        Ok(Value::Address(Some(address)))
    }

    /// A daemon may be started in any folder.
    fn path(self, value: &DeValue<'_>) -> Result<Value, String> {
        let said = PathBuf::from(value.as_str().ok_or_else(|| self.expected(value))?);
        if said.is_absolute() {
            Ok(Value::Path(said))
        } else {
            Err(format!("{} is no full path", said.display()))
        }
    }

    fn expected(self, found: &DeValue<'_>) -> String {
        format!("this should be {self}, and is of the type {}", found.type_str())
    }
}

/// For the reference, and for whoever wrote something else.
impl fmt::Display for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holds::Schema => write!(f, "{SCHEMA}"),
            Holds::Flag => f.write_str("true or false"),
            Holds::Word(words) => f.write_str(&words.join(", ")),
            Holds::Span(least, most) => write!(f, "a time, {least} to {most}"),
            Holds::Number(0, u32::MAX) => f.write_str("a number"),
            Holds::Number(least, most) => write!(f, "a number, {least} to {most}"),
            Holds::User => f.write_str("a user's name"),
            Holds::Group => f.write_str("a group's name"),
            Holds::Address => f.write_str("an address and a port, or off"),
            Holds::Path => f.write_str("a full path"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(flag) => flag.fmt(f),
            Value::Word(word) => f.write_str(word),
            Value::Span(span) => span.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Named(name, _) => f.write_str(name),
            Value::Address(None) => f.write_str("off"),
            Value::Address(Some(address)) => address.fmt(f),
            Value::Path(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{Policy, Wanted};
    use board::Settings;
    use model::{Class, Kind};

    #[test]
    fn words_are_those_of_their_kind_and_defaults_those_that_hold() {
        assert!(KINDS.iter().copied().eq(Kind::ALL.map(Kind::name)));
        assert!(CLASSES.iter().all(|word| word.parse::<Class>().is_ok()));
        assert!(DOMAINS.iter().all(|word| word.parse::<Wanted>().is_ok()));
        let default = |name: &str| find(name).unwrap().default;
        let span = |name: &str| default(name).parse::<Nanos>().unwrap();
        let plain = Settings::default();
        assert_eq!(
            (span("token.quantum"), span("token.idle"), span("token.grace")),
            (plain.quantum, plain.idle, plain.grace)
        );
        assert_eq!(default("domain"), plain.domain.to_string());
        let trace = crate::Trace::default();
        assert_eq!(
            (span("trace.last"), default("trace.on_miss")),
            (trace.last, if trace.on_miss { "true" } else { "false" })
        );
        assert_eq!(default("policy.kind"), Policy::default().kind.name());
        assert_eq!(default("ceiling.weight"), HIGHEST_WEIGHT.to_string());
        assert_eq!(default("ceiling.priority"), HIGHEST_PRIORITY.to_string());
    }

    #[test]
    fn every_key_stands_once_and_its_neighbours_are_known() {
        for key in KEYS {
            assert!(std::ptr::eq(find(key.name).unwrap(), key), "{} stands twice", key.name);
        }
        assert_eq!(known_in("socket"), "group, admin_group");
        assert_eq!(known_in(""), "schema_version, domain, mps, board_per_user");
    }
}
