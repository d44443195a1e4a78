//! The file's own words, and what they mean.

use std::collections::BTreeMap;

use board::{HIGHEST_PRIORITY, HIGHEST_WEIGHT, Settings};
use model::{Class, Domain, Nanos};
use serde::Deserialize;
use toml::Spanned;

use super::policy::PolicyTable;
use super::{Ceiling, Configuration, Rule, Subject, Wrong};
use crate::names;

/// The only schema so far.
const SCHEMA: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema_version: Spanned<u32>,
    domain: Option<Spanned<String>>,
    mps: Option<bool>,
    #[serde(default)]
    policy: PolicyTable,
    #[serde(default)]
    gpu: BTreeMap<Spanned<String>, GpuTable>,
    #[serde(default)]
    token: TokenTable,
    #[serde(default)]
    socket: SocketTable,
    #[serde(default)]
    ceiling: Vec<Spanned<CeilingTable>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuTable {
    policy: PolicyTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenTable {
    quantum: Option<Spanned<String>>,
    in_flight: Option<Spanned<String>>,
    idle: Option<Spanned<String>>,
    grace: Option<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketTable {
    group: Option<Spanned<String>>,
    admin_group: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CeilingTable {
    uid: Option<u32>,
    user: Option<Spanned<String>>,
    gid: Option<u32>,
    group: Option<Spanned<String>>,
    everyone: Option<bool>,
    class: Spanned<String>,
    priority: Option<Spanned<u32>>,
    weight: Option<Spanned<u32>>,
}

pub(super) fn parse(text: &str, plain: Configuration) -> Result<Configuration, Wrong> {
    let reader = Reader { text };
    let file: File = toml::from_str(text).map_err(|error| {
        reader.wrong(error.span().map_or(0, |span| span.start), error.message().to_owned())
    })?;
    if *file.schema_version.get_ref() != SCHEMA {
        let found = file.schema_version.get_ref();
        let message = format!("schema_version is {found}, and this ebb knows only {SCHEMA}");
        return Err(reader.at(&file.schema_version, message));
    }
    let mut configuration = plain;
    configuration.token = reader.token(&file.token, configuration.token)?;
    configuration.policy = reader.policy(&file.policy, file.token.in_flight.as_ref())?;
    for (name, table) in &file.gpu {
        let policy = reader.policy(&table.policy, None)?;
        configuration.gpus.insert(reader.gpu(name)?, policy);
    }
    configuration.token.domain = reader.domain(file.domain.as_ref())?;
    configuration.mps = file.mps;
    configuration.sockets.group = reader.group(file.socket.group.as_ref())?;
    configuration.sockets.admin_group = reader.group(file.socket.admin_group.as_ref())?;
    for table in &file.ceiling {
        configuration.ceilings.rules.push(reader.rule(table)?);
    }
    Ok(configuration)
}

pub(super) struct Reader<'a> {
    text: &'a str,
}

impl Reader<'_> {
    fn wrong(&self, offset: usize, message: String) -> Wrong {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        Wrong { line: before.iter().filter(|&&byte| byte == b'\n').count() + 1, message }
    }

    pub(super) fn at<T>(&self, value: &Spanned<T>, message: String) -> Wrong {
        self.wrong(value.span().start, message)
    }

    fn token(&self, table: &TokenTable, plain: Settings) -> Result<Settings, Wrong> {
        let ms = Nanos::from_millis;
        let us = Nanos::from_micros;
        Ok(Settings {
            quantum: self.span(table.quantum.as_ref(), plain.quantum, [ms(1), ms(10_000)])?,
            idle: self.span(table.idle.as_ref(), plain.idle, [us(10), ms(1_000)])?,
            grace: self.span(table.grace.as_ref(), plain.grace, [ms(1), ms(60_000)])?,
            ..plain
        })
    }

    fn domain(&self, word: Option<&Spanned<String>>) -> Result<Domain, Wrong> {
        let Some(word) = word else { return Ok(Domain::default()) };
        word.get_ref().parse().map_err(|error| self.at(word, format!("{error}")))
    }

    pub(super) fn span(
        &self,
        text: Option<&Spanned<String>>,
        plain: Nanos,
        [least, most]: [Nanos; 2],
    ) -> Result<Nanos, Wrong> {
        let Some(text) = text else { return Ok(plain) };
        let span: Nanos = text.get_ref().parse().map_err(|error| self.at(text, format!("{error}")))?;
        if !(least..=most).contains(&span) {
            return Err(self.at(text, format!("{span} is not between {least} and {most}")));
        }
        Ok(span)
    }

    fn rule(&self, table: &Spanned<CeilingTable>) -> Result<Rule, Wrong> {
        let CeilingTable { class, priority, weight, .. } = table.get_ref();
        let class: Class = class.get_ref().parse().map_err(|error| self.at(class, format!("{error}")))?;
        let priority = self.number(priority.as_ref(), 0, HIGHEST_PRIORITY)?;
        let weight = self.number(weight.as_ref(), 1, HIGHEST_WEIGHT)?;
        Ok(Rule { subject: self.subject(table)?, ceiling: Ceiling { class, weight, priority } })
    }

    pub(super) fn number(&self, number: Option<&Spanned<u32>>, least: u32, most: u32) -> Result<u32, Wrong> {
        match number {
            None => Ok(most),
            Some(number) if (least..=most).contains(number.get_ref()) => Ok(*number.get_ref()),
            Some(number) => {
                Err(self.at(number, format!("{} is not between {least} and {most}", number.get_ref())))
            }
        }
    }

    fn subject(&self, table: &Spanned<CeilingTable>) -> Result<Subject, Wrong> {
        let CeilingTable { uid, user, gid, group, everyone, .. } = table.get_ref();
        let mut subjects = Vec::new();
        subjects.extend(uid.map(Subject::User));
        subjects.extend(gid.map(Subject::Group));
        subjects.extend(everyone.filter(|everyone| *everyone).map(|_| Subject::Everyone));
        if let Some(name) = user {
            let uid = names::user(name.get_ref());
            let unknown = || self.at(name, format!("there is no user called {}", name.get_ref()));
            subjects.push(Subject::User(uid.ok_or_else(unknown)?));
        }
        subjects.extend(self.group(group.as_ref())?.map(Subject::Group));
        match subjects[..] {
            [subject] => Ok(subject),
            _ => {
                let message = "a ceiling names one of user, uid, group, gid and everyone = true";
                Err(self.at(table, message.to_owned()))
            }
        }
    }

    fn group(&self, name: Option<&Spanned<String>>) -> Result<Option<u32>, Wrong> {
        let Some(name) = name else { return Ok(None) };
        let unknown = || self.at(name, format!("there is no group called {}", name.get_ref()));
        names::group(name.get_ref()).map(Some).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Scope;

    fn read(text: &str) -> Result<Configuration, Wrong> {
        parse(text, Configuration::plain(Scope::Machine, 0))
    }

    fn complaint(text: &str) -> String {
        let Wrong { line, message } = read(text).unwrap_err();
        format!("{line}: {message}")
    }

    #[test]
    fn every_key_is_read() {
        let text = "
            schema_version = 1
            domain = \"shared\"
            mps = false
            [policy]
            kind = \"strict\"
            [token]
            quantum = \"40ms\"
            in_flight = \"5ms\"
            idle = \"200us\"
            grace = \"1s\"
            [socket]
            group = \"root\"
            admin_group = \"root\"
            [[ceiling]]
            user = \"root\"
            class = \"latency\"
            priority = 3
            weight = 20
            [[ceiling]]
            gid = 7
            class = \"latency\"
            [[ceiling]]
            everyone = true
            class = \"best-effort\"
        ";
        let configuration = read(text).unwrap();
        assert_eq!(configuration.token.quantum, Nanos::from_millis(40));
        assert_eq!(configuration.token.grace, Nanos::from_millis(1000));
        assert_eq!(configuration.policy.in_flight, Some(Nanos::from_millis(5)));
        assert_eq!(configuration.policy.kind, model::Kind::Strict);
        assert_eq!((configuration.token.domain, configuration.mps), (Domain::Shared, Some(false)));
        assert_eq!(configuration.sockets.group, Some(0));
        let rules = &configuration.ceilings.rules;
        let first = Ceiling { class: Class::Latency, weight: 20, priority: 3 };
        assert_eq!(rules[0], Rule { subject: Subject::User(0), ceiling: first });
        assert_eq!((rules[1].subject, rules[1].ceiling), (Subject::Group(7), Ceiling::NONE));
        assert_eq!(rules[2].subject, Subject::Everyone);
    }

    #[test]
    fn little_is_enough() {
        assert_eq!(read("schema_version = 1").unwrap(), Configuration::plain(Scope::Machine, 0));
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        let after = |text: &str| complaint(&format!("schema_version = 1\n{text}"));
        assert!(complaint("").contains("schema_version"));
        assert_eq!(complaint("\n\nschema_version = 2"), "3: schema_version is 2, and this ebb knows only 1");
        assert!(after("[token]\nquantun = \"1ms\"").starts_with("3: unknown field `quantun`"));
        assert_eq!(
            after("[token]\nquantum = \"30\""),
            "3: `30` is no time; write a number and a unit, such as 500us, 20ms or 1s"
        );
        assert_eq!(after("[token]\ngrace = \"1us\""), "3: 1 µs is not between 1 ms and 60 s");
        assert_eq!(after("domain = \"mine\""), "2: `mine` is not one of isolated, shared");
        let rule = "[[ceiling]]\nuid = 1\nclass = \"fast\"";
        assert_eq!(after(rule), "4: `fast` is not one of latency, best-effort");
        assert!(after("[[ceiling]]\nuid = 1").contains("class"));
        let rule = "[[ceiling]]\nuid = 1\ngid = 1\nclass = \"latency\"";
        assert!(after(rule).starts_with("2: a ceiling names one of"), "{}", after(rule));
        let rule = "[[ceiling]]\nuser = \"no such user\"\nclass = \"latency\"";
        assert_eq!(after(rule), "3: there is no user called no such user");
        let rule = "[[ceiling]]\nuid = 1\nclass = \"latency\"\nweight = 0";
        assert_eq!(after(rule), "5: 0 is not between 1 and 1000");
        assert!(after("[token").starts_with("2: "));
        assert!(after("[mystery]").starts_with("2: unknown field `mystery`"));
    }
}
