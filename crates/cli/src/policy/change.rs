//! `ebb policy diff FILE`: what a file would change about the configuration in force.

use std::path::Path;

use anyhow::{Result, bail};
use daemon::client;
use daemon::report::Entry;

use super::{apply, target};
use crate::arguments::Output;
use crate::json::Json;
use crate::sim::show::table;

pub fn run(file: &Path, output: Output) -> Result<()> {
    let (place, _, sources) = target::of_daemon()?;
    let text = apply::read(file)?;
    let after = match apply::judged(&sources, file, &text) {
        Ok(loaded) => loaded.entries,
        Err(mistakes) => {
            target::tell(&mistakes, output);
            bail!("{}, so it would change nothing", target::count(&mistakes));
        }
    };
    let before = client::configuration(&place)?;
    let changes = changes(&before, &over(after, &before));
    match output {
        Output::Text if changes.is_empty() => println!("it changes nothing"),
        Output::Text => print!("{}", page(&changes)),
        Output::Json => println!("{}", json(&changes)),
    }
    Ok(())
}

/// A key, what it is and what it would be; `None` is what nobody says.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    key: String,
    was: Option<String>,
    is: Option<String>,
}

/// What was said when the daemon was started stays above every file.
fn over(mut after: Vec<Entry>, before: &[Entry]) -> Vec<Entry> {
    let started = |entry: &&Entry| entry.from.as_ref().is_some_and(|from| from.starts_with("--"));
    for entry in before.iter().filter(started) {
        after.retain(|other| other.key != entry.key);
        after.push(entry.clone());
    }
    after
}

fn changes(before: &[Entry], after: &[Entry]) -> Vec<Change> {
    let of = |entries: &[Entry], key: &str| {
        entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.clone())
    };
    let mut keys: Vec<&str> = before.iter().chain(after).map(|entry| entry.key.as_str()).collect();
    keys.retain(|key| *key != "ceiling");
    keys.sort_unstable();
    keys.dedup();
    let plain =
        keys.into_iter().map(|key| Change { key: key.to_owned(), was: of(before, key), is: of(after, key) });
    let mut changes: Vec<_> = plain.filter(|change| change.was != change.is).collect();
    changes.extend(rules(before, after));
    changes
}

/// Rules are asked in order, so each place is a key of its own.
fn rules(before: &[Entry], after: &[Entry]) -> Vec<Change> {
    let list = |entries: &[Entry]| -> Vec<String> {
        let rules = entries.iter().filter(|entry| entry.key == "ceiling");
        rules.map(|entry| entry.value.clone()).collect()
    };
    let (before, after) = (list(before), list(after));
    let places = 0..before.len().max(after.len());
    let at = |place: usize| Change {
        key: format!("ceiling {}", place + 1),
        was: before.get(place).cloned(),
        is: after.get(place).cloned(),
    };
    places.map(at).filter(|change| change.was != change.is).collect()
}

fn page(changes: &[Change]) -> String {
    let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "not said".to_owned());
    let mut rows = vec![["key", "in force", "with the file"].map(str::to_owned).to_vec()];
    rows.extend(changes.iter().map(|change| vec![change.key.clone(), cell(&change.was), cell(&change.is)]));
    table(&rows, 3)
}

fn json(changes: &[Change]) -> Json {
    let cell = |value: &Option<String>| value.as_deref().map_or(Json::Null, Into::into);
    let one = |change: &Change| {
        Json::object([
            ("key", change.key.as_str().into()),
            ("in_force", cell(&change.was)),
            ("with_file", cell(&change.is)),
        ])
    };
    Json::object([("changes", Json::List(changes.iter().map(one).collect()))])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(list: &[(&str, &str, &str)]) -> Vec<Entry> {
        let entry = |(key, value, from): &(&str, &str, &str)| Entry {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            from: Some((*from).to_owned()),
        };
        list.iter().map(entry).collect()
    }

    #[test]
    fn keys_change_by_themselves_and_rules_by_their_place() {
        let before = entries(&[("a", "1", "x"), ("b", "2", "--policy"), ("ceiling", "one", "x")]);
        let after = entries(&[("a", "1", "y"), ("b", "3", "y"), ("c", "4", "y"), ("ceiling", "two", "y")]);
        let after = over(after, &before);
        let found = changes(&before, &after);
        let keys: Vec<_> = found.iter().map(|change| change.key.as_str()).collect();
        assert_eq!(keys, ["c", "ceiling 1"], "what was said at the start stays");
        assert_eq!(found[0].was, None);
        assert!(page(&found).contains("not said") && changes(&after, &after).is_empty());
    }
}
