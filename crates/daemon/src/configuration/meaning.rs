//! What files say together.
//!
//! Key by key, what a later file says holds. A file that names another policy replaces the one that earlier files named, and with
//! it the dials that mean nothing to the new one: whoever wrote the later file cannot be asked to unsay what stands in an earlier.

use std::collections::BTreeMap;
use std::mem;
use std::path::{Path, PathBuf};

use board::Gpu;
use model::{Hand, Kind, Nanos};

use super::document::{self, At, Mistake, Name, RuleSaid, Said};
use super::keys::Value;
use super::sources::Text;
use super::{Ceiling, Configuration, Dashboard, Loaded, Metrics, Policy, Rule, Subject, Wanted};
use crate::report::Entry;

/// Reads all texts; what is wrong with any of them is said at once.
pub(super) fn load(texts: &[Text], plain: Configuration) -> Result<Loaded, Vec<Mistake>> {
    let mut merged = Merged { texts, said: BTreeMap::new(), rules: Vec::new(), mistakes: Vec::new() };
    for (number, text) in texts.iter().enumerate() {
        let mut document = document::read(number, &text.path, &text.text, &mut merged.mistakes);
        // It is about a file, and not about what files say together.
        document.said.remove(&Name { gpu: None, key: "schema_version" });
        merged.said.append(&mut document.said);
        let earlier = mem::replace(&mut merged.rules, document.rules);
        merged.rules.extend(earlier);
    }
    let configuration = merged.configuration(plain);
    if merged.mistakes.is_empty() {
        let files = texts.iter().map(|text| text.path.clone()).collect();
        return Ok(Loaded { configuration, files, entries: merged.entries() });
    }
    let places: BTreeMap<&Path, usize> =
        texts.iter().enumerate().rev().map(|(number, text)| (text.path.as_path(), number)).collect();
    merged.mistakes.sort_by_cached_key(|mistake| (places.get(mistake.file.as_path()).copied(), mistake.line));
    Err(merged.mistakes)
}

struct Merged<'a> {
    texts: &'a [Text],
    said: BTreeMap<Name, Said>,
    rules: Vec<RuleSaid>,
    mistakes: Vec<Mistake>,
}

impl Merged<'_> {
    fn configuration(&mut self, plain: Configuration) -> Configuration {
        let mut configuration = plain;
        let token = &mut configuration.token;
        token.quantum = self.span(None, "token.quantum").unwrap_or(token.quantum);
        token.idle = self.span(None, "token.idle").unwrap_or(token.idle);
        token.grace = self.span(None, "token.grace").unwrap_or(token.grace);
        token.starve_after = self.span(None, "token.starve_after");
        configuration.policy = self.policy(None);
        let mut gpus: Vec<Gpu> = self.said.keys().filter_map(|name| name.gpu).collect();
        gpus.dedup();
        for gpu in gpus {
            configuration.gpus.insert(gpu, self.policy(Some(gpu)));
        }
        let wanted = self.word(None, "domain").and_then(|word| word.parse().ok());
        configuration.share(wanted.unwrap_or(Wanted::This(model::Domain::default())));
        configuration.mps = self.flag("mps");
        configuration.board_per_user = self.flag("board_per_user").unwrap_or(false);
        configuration.sockets.group = self.group("socket.group");
        configuration.sockets.admin_group = self.group("socket.admin_group");
        configuration.metrics = self.metrics(configuration.metrics);
        let trace = &mut configuration.trace;
        trace.on_miss = self.flag("trace.on_miss").unwrap_or(trace.on_miss);
        trace.last = self.span(None, "trace.last").unwrap_or(trace.last);
        configuration.ceilings.rules = self.rules.iter().filter_map(rule).collect();
        configuration
    }

    fn metrics(&mut self, plain: Metrics) -> Metrics {
        let listen = match self.value(None, "metrics.listen") {
            Some(Value::Address(listen)) => *listen,
            _ => plain.listen,
        };
        let pair = ["metrics.tls_certificate", "metrics.tls_key"];
        let tls = match pair.map(|key| self.path(key)) {
            [Some(certificate), Some(key)] => Some((certificate, key)),
            [None, None] => None,
            _ => {
                let only =
                    pair.iter().find_map(|&key| self.said.get(&Name { gpu: None, key })).map(|said| said.at);
                let message = "tls_certificate and tls_key go together".to_owned();
                self.mistakes.extend(only.map(|at| self.mistake(at, message)));
                None
            }
        };
        for key in ["metrics.tls_key", "metrics.basic_auth_file"] {
            self.complain(key, Metrics::mistrust);
        }
        let dashboard = self.dashboard();
        Metrics { listen, tls, basic_auth: self.path("metrics.basic_auth_file"), dashboard }
    }

    fn dashboard(&mut self) -> Dashboard {
        const FILE: &str = "dashboard.admin_token_file";
        let admin_token = self.path(FILE);
        self.complain(FILE, Dashboard::mistrust);
        Dashboard { enabled: self.flag("dashboard.enabled").unwrap_or(true), admin_token }
    }

    /// Says what is wrong with the file that a key names.
    fn complain(&mut self, key: &'static str, mistrust: fn(&Path) -> Option<String>) {
        let said = self.said.get(&Name { gpu: None, key }).map(|said| said.at);
        let wrong = self.path(key).as_deref().and_then(mistrust);
        if let (Some(at), Some(wrong)) = (said, wrong) {
            self.mistakes.push(self.mistake(at, wrong));
        }
    }

    fn path(&self, key: &'static str) -> Option<PathBuf> {
        match self.value(None, key) {
            Some(Value::Path(path)) => Some(path.clone()),
            _ => None,
        }
    }

    fn policy(&mut self, gpu: Option<Gpu>) -> Policy {
        let kind = self.word(gpu, "policy.kind").and_then(|word| word.parse().ok()).unwrap_or_default();
        self.contradictions(gpu, kind);
        Policy {
            kind,
            hand: Hand {
                quiet: self.span(gpu, "policy.quiet"),
                threshold: self.span(gpu, "policy.threshold"),
                in_flight: self.span(gpu, "policy.in_flight"),
                beside: self.span(gpu, "policy.beside"),
                confine: self.number(gpu, "policy.confine"),
                solo_share: self.number(gpu, "policy.solo_share"),
            },
            tolerance: self.number(gpu, "policy.tolerance"),
        }
    }

    /// A dial that means nothing to the policy is an error, unless the policy came after it: then it goes with the one before.
    fn contradictions(&mut self, gpu: Option<Gpu>, kind: Kind) {
        let since = self.said.get(&Name { gpu, key: "policy.kind" }).map(|said| said.at.file);
        for key in ["policy.threshold", "policy.beside", "policy.confine", "policy.tolerance"] {
            let Some(reason) = super::policy::meaningless(key, kind) else { continue };
            let name = Name { gpu, key };
            let Some(said) = self.said.get(&name) else { continue };
            if since > Some(said.at.file) {
                self.said.remove(&name);
            } else {
                self.mistakes.push(self.mistake(said.at, reason));
            }
        }
    }

    fn mistake(&self, at: At, message: String) -> Mistake {
        let file = self.texts.get(at.file).map(|text| text.path.clone()).unwrap_or_default();
        Mistake { file, line: Some(at.line), message }
    }

    fn value(&self, gpu: Option<Gpu>, key: &'static str) -> Option<&Value> {
        self.said.get(&Name { gpu, key }).map(|said| &said.value)
    }

    fn span(&self, gpu: Option<Gpu>, key: &'static str) -> Option<Nanos> {
        match self.value(gpu, key) {
            Some(Value::Span(span)) => Some(*span),
            _ => None,
        }
    }

    fn number(&self, gpu: Option<Gpu>, key: &'static str) -> Option<u32> {
        self.value(gpu, key).and_then(number)
    }

    fn word(&self, gpu: Option<Gpu>, key: &'static str) -> Option<&'static str> {
        match self.value(gpu, key) {
            Some(Value::Word(word)) => Some(word),
            _ => None,
        }
    }

    fn flag(&self, key: &'static str) -> Option<bool> {
        match self.value(None, key) {
            Some(Value::Flag(flag)) => Some(*flag),
            _ => None,
        }
    }

    fn group(&self, key: &'static str) -> Option<u32> {
        self.value(None, key).and_then(number)
    }

    /// All that is said, as it is shown.
    fn entries(&self) -> Vec<Entry> {
        let from = |at: At| {
            let file = self.texts.get(at.file).map(|text| text.path.display().to_string());
            format!("{}:{}", file.unwrap_or_default(), at.line)
        };
        let keys = self.said.iter().map(|(name, said)| Entry {
            key: name.to_string(),
            value: said.value.to_string(),
            from: Some(from(said.at)),
        });
        let rules = self.rules.iter().map(|rule| Entry {
            key: "ceiling".to_owned(),
            value: words(rule),
            from: Some(from(rule.at)),
        });
        keys.chain(rules).collect()
    }
}

/// What is a number, or stands for one.
fn number(value: &Value) -> Option<u32> {
    match value {
        Value::Number(number) | Value::Named(_, number) => Some(*number),
        _ => None,
    }
}

/// A rule, unless something about it is wrong, which has been said.
fn rule(said: &RuleSaid) -> Option<Rule> {
    let value = |key: &str| said.keys.get(key).map(|said| &said.value);
    let of = |key: &str| value(key).and_then(number);
    let subject = match (value("ceiling.everyone"), of("ceiling.user").or(of("ceiling.uid"))) {
        (Some(Value::Flag(true)), _) => Subject::Everyone,
        (_, Some(uid)) => Subject::User(uid),
        _ => Subject::Group(of("ceiling.group").or(of("ceiling.gid"))?),
    };
    let Some(Value::Word(class)) = value("ceiling.class") else { return None };
    let class = class.parse().ok()?;
    let weight = of("ceiling.weight").unwrap_or(Ceiling::NONE.weight);
    let priority = of("ceiling.priority").unwrap_or(Ceiling::NONE.priority);
    Some(Rule { subject, ceiling: Ceiling { class, weight, priority } })
}

/// A rule on one line: whom it is about, and then the rest.
fn words(rule: &RuleSaid) -> String {
    let plain = |key: &'static str| key.strip_prefix("ceiling.").unwrap_or(key);
    let limits = ["ceiling.class", "ceiling.priority", "ceiling.weight"];
    let is_limit = |key: &str| limits.contains(&key);
    let whom = rule.keys.iter().filter(|(key, said)| !is_limit(key) && said.value != Value::Flag(false));
    let whom = whom.map(|(key, said)| match said.value {
        Value::Flag(_) => plain(key).to_owned(),
        _ => format!("{} {}", plain(key), said.value),
    });
    let most = rule.keys.iter().filter(|(key, _)| is_limit(key));
    let most = most.map(|(key, said)| format!("{} {}", plain(key), said.value));
    format!("{}: {}", whom.collect::<String>(), most.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::Scope;
    use model::{Class, Domain};

    fn read(text: &str) -> Result<Configuration, Vec<Mistake>> {
        Configuration::parse(text, Scope::Machine, 0)
    }

    fn complaint(text: &str) -> String {
        let mistakes = read(text).unwrap_err();
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        format!("{}: {}", mistakes[0].line.unwrap(), mistakes[0].message)
    }

    /// Several files, each with its schema in the first line.
    fn together(files: &[&str]) -> Result<Loaded, Vec<Mistake>> {
        let text = |(number, text): (usize, &&str)| Text {
            path: format!("{number}.toml").into(),
            text: format!("schema_version = 1\n{text}"),
        };
        let texts: Vec<_> = files.iter().enumerate().map(text).collect();
        load(&texts, Configuration::plain(Scope::Machine, 0))
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
            starve_after = \"10s\"
            [trace]
            on_miss = true
            last = \"2s\"
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
        assert_eq!(configuration.token.starve_after, Some(Nanos::from_millis(10_000)));
        assert_eq!(configuration.policy.hand.in_flight, Some(Nanos::from_millis(5)));
        assert_eq!(configuration.policy.kind, model::Kind::Strict);
        assert_eq!((configuration.token.domain, configuration.mps), (Domain::Shared, Some(false)));
        let trace = crate::Trace { on_miss: true, last: Nanos::from_millis(2000) };
        assert_eq!((configuration.sockets.group, configuration.trace), (Some(0), trace));
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
        assert!(
            after("[token]\nquantun = \"1ms\"")
                .starts_with("3: unknown key `token.quantun`; known are quantum, idle")
        );
        assert_eq!(
            after("[token]\nquantum = \"30\""),
            "3: `30` is no time; write a number and a unit, such as 500us, 20ms or 1s"
        );
        assert_eq!(after("[token]\ngrace = \"1us\""), "3: 1 µs is not between 1 ms and 60 s");
        assert_eq!(after("domain = \"mine\""), "2: `mine` is not one of isolated, shared, auto");
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
        assert!(after("[mystery]").starts_with("2: unknown key `mystery`; known are schema_version"));
    }

    #[test]
    fn every_mistake_of_every_file_is_told_in_order() {
        let wrong = together(&[
            "[token]\nquantum = 5\nidle = \"1us\"\n[mystery]\n[gpu.0.policy]\n[gpu.x]",
            "policy = 3\nceiling = 3\n[[ceiling]]\n",
            "[policy]\nkind = \"strict\"\nbeside = \"1us\"\n[[ceiling]]\nuid = -1\nclass = 3",
        ]);
        let wrong: Vec<_> = wrong.unwrap_err().iter().map(Mistake::to_string).collect();
        let begins = |begin: &str| wrong.iter().any(|one| one.starts_with(begin));
        for begin in [
            "0.toml:3: this should be a time",
            "0.toml:4: 1 µs is not between",
            "0.toml:5: unknown key `mystery`",
            "0.toml:6: `0` is no GPU",
            "0.toml:7: `x` is no GPU",
            "1.toml:4: ",
            "2.toml:4: beside means nothing to strict",
            "2.toml:6: -1 is not between 0",
            "2.toml:7: this should be latency, best-effort",
        ] {
            assert!(begins(begin), "{begin} is not among {wrong:#?}");
        }
        assert!(wrong.is_sorted(), "{wrong:#?}");
    }

    #[test]
    fn what_a_later_file_says_holds_key_by_key() {
        let loaded = together(&[
            "domain = \"shared\"\n[token]\nquantum = \"40ms\"\nidle = \"1ms\"\nin_flight = \"1ms\"",
            "[token]\nquantum = \"30ms\"\n[policy]\nin_flight = \"2ms\"",
        ])
        .unwrap();
        let Configuration { token, policy, .. } = loaded.configuration;
        let ms = Nanos::from_millis;
        assert_eq!((token.quantum, token.idle, token.domain), (ms(30), ms(1), Domain::Shared));
        assert_eq!(policy.hand.in_flight, Some(ms(2)), "its old place is its place");
        let entry = |key: &str| loaded.entries.iter().find(|entry| entry.key == key).unwrap();
        assert_eq!(entry("token.quantum").from.as_deref(), Some("1.toml:3"));
        assert_eq!((entry("domain").value.as_str(), loaded.files.len()), ("shared", 2));
        assert!(!loaded.entries.iter().any(|entry| entry.key == "schema_version"));
    }

    #[test]
    fn rules_of_later_files_come_first() {
        let rule = |uid: u32| format!("[[ceiling]]\nuid = {uid}\nclass = \"latency\"\n");
        let everyone = "[[ceiling]]\neveryone = true\nclass = \"best-effort\"\nweight = 3\n";
        let loaded = together(&[&format!("{}{}", rule(1), rule(2)), everyone, &rule(3)]).unwrap();
        let subjects: Vec<_> = loaded.configuration.ceilings.rules.iter().map(|rule| rule.subject).collect();
        let user = Subject::User;
        assert_eq!(subjects, [user(3), Subject::Everyone, user(1), user(2)]);
        let shown: Vec<_> = loaded.entries.iter().map(|entry| entry.value.as_str()).collect();
        assert_eq!(shown[..2], ["uid 3: class latency", "everyone: class best-effort, weight 3"]);
    }

    #[test]
    fn a_later_policy_takes_the_dials_of_the_one_before_away() {
        let slo = "[policy]\nbeside = \"20us\"\nthreshold = \"9us\"\nquiet = \"1us\"";
        let gaps = "[policy]\nkind = \"gaps\"";
        let loaded = together(&[slo, gaps]).unwrap();
        let policy = loaded.configuration.policy;
        assert_eq!((policy.kind, policy.hand.beside), (Kind::Gaps, None));
        assert!(policy.hand.threshold.is_some() && policy.hand.quiet.is_some(), "{policy:?}");
        assert!(!loaded.entries.iter().any(|entry| entry.key == "policy.beside"));
        let wrong = together(&[gaps, slo]).unwrap_err();
        assert_eq!(wrong[0].to_string().split(':').next(), Some("1.toml"), "{wrong:?}");
    }

    #[test]
    fn twice_as_many_rules_take_about_twice_as_long() {
        let took = |rules: usize| {
            let text: String = (0..rules)
                .map(|uid| format!("[[ceiling]]\nuid = {uid}\nclass = \"latency\"\nweight = 3\n"))
                .collect();
            let text = format!("schema_version = 1\n{text}");
            let once = || {
                let begin = std::time::Instant::now();
                assert_eq!(read(&text).unwrap().ceilings.rules.len(), rules);
                begin.elapsed()
            };
            (0..3).map(|_| once()).min().unwrap()
        };
        // Where lines are counted from the beginning for each key, sixteen times as many take 256 times as long.
        let (few, many) = (took(1_000), took(16_000));
        assert!(many < few * 100, "{few:?} and {many:?}");
    }

    #[test]
    fn every_file_says_its_schema() {
        let texts = [("a", "schema_version = 1"), ("b", "\n[token]\nidle = \"1ms\"")];
        let texts = texts.map(|(path, text)| Text { path: path.into(), text: text.to_owned() });
        let wrong = load(&texts, Configuration::plain(Scope::User, 0)).unwrap_err();
        assert!(wrong.len() == 1 && wrong[0].to_string().starts_with("b:1: schema_version is missing"));
    }
}
