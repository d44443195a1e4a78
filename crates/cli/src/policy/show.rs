//! `ebb policy show`: the configuration in force.

use anyhow::Result;
use daemon::report::Entry;
use daemon::{KEYS, client};

use super::arguments::ShowOptions;
use crate::arguments::Output;
use crate::json::Json;
use crate::sim::show::table;
use crate::status;

pub fn run(options: &ShowOptions) -> Result<()> {
    let (place, report) = status::find()?;
    let entries = with_defaults(client::configuration(&place)?);
    match options.output {
        Output::Text => print!("configuration {}\n{}", report.daemon.config_generation, page(&entries)),
        Output::Json => println!("{}", json(report.daemon.config_generation, &entries)),
    }
    Ok(())
}

/// In the order of the reference, with what nobody says; then what is about single GPUs, and the ceilings.
fn with_defaults(said: Vec<Entry>) -> Vec<Entry> {
    let mut entries = Vec::new();
    let plain = KEYS.iter().filter(|key| !key.name.starts_with("ceiling."));
    for key in plain {
        let found = said.iter().find(|entry| entry.key == key.name).cloned();
        let default = || Entry { key: key.name.to_owned(), value: key.default.to_owned(), from: None };
        entries.extend(found.or_else(|| (!key.default.is_empty()).then(default)));
    }
    let rest = said.into_iter().filter(|entry| !KEYS.iter().any(|key| key.name == entry.key));
    entries.extend(rest);
    entries
}

fn page(entries: &[Entry]) -> String {
    let row = |entry: &Entry| {
        let from = entry.from.clone().unwrap_or_else(|| "default".to_owned());
        vec![entry.key.clone(), entry.value.clone(), from]
    };
    table(&entries.iter().map(row).collect::<Vec<_>>(), 3)
}

fn json(generation: u64, entries: &[Entry]) -> Json {
    let one = |entry: &Entry| {
        Json::object([
            ("key", entry.key.as_str().into()),
            ("value", entry.value.as_str().into()),
            ("from", entry.from.as_deref().map_or(Json::Null, Into::into)),
        ])
    };
    let entries = Json::List(entries.iter().map(one).collect());
    Json::object([("config_generation", Json::Number(generation.into())), ("entries", entries)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> Entry {
        Entry { key: key.to_owned(), value: value.to_owned(), from: Some("a.toml:2".to_owned()) }
    }

    #[test]
    fn what_is_said_and_what_is_not_stand_in_one_order() {
        let said = vec![entry("ceiling", "everyone: class latency"), entry("token.idle", "1 ms")];
        let entries = with_defaults(said);
        let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys[..5], ["domain", "board_per_user", "policy.kind", "token.quantum", "token.idle"]);
        assert_eq!(keys.last(), Some(&"ceiling"), "rules come last");
        let text = page(&entries);
        let line = text.lines().find(|line| line.trim_start().starts_with("token.idle ")).unwrap();
        assert!(line.contains("  1 ms ") && text.contains("50ms"), "{text}");
        let unsaid = text.lines().filter(|line| line.ends_with("default")).count();
        assert_eq!(unsaid, keys.len() - 2, "{text}");
    }
}
