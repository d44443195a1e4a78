//! Workloads as they are named: by the name of their profile, or as a scenario file writes them.

use crate::workload::{MODELS, Workload};
use serde_json::{Map, Value};

/// The workload that a word means: `vgg19-inference-eager-b1`, or `{ model = "vgg19", batch = 1 }`.
pub fn named(word: &str) -> Result<Workload, String> {
    if word.trim_start().starts_with('{') {
        return written(word);
    }
    let keys = keys(word).ok_or_else(|| {
        format!("`{word}` names no workload; one is named like vgg19-inference-eager-b1, as `ebb lab list --workloads` does")
    })?;
    let workload: Workload =
        serde_json::from_value(keys.into()).map_err(|error| format!("{word}: {error}"))?;
    // What was left out has a default, and so another name than it was given.
    if workload.id() == word { Ok(workload) } else { Err(format!("`{word}` is called {}", workload.id())) }
}

/// The workload whose [`Workload::id`] this is, synthetic or not.
pub fn workload(id: &str) -> Result<Workload, String> {
    match synthetic(id) {
        Some(keys) => serde_json::from_value(keys.into()).map_err(|error| format!("{id}: {error}")),
        None => named(id),
    }
}

/// The keys of `burst-10x132x20us-gap1500us` and `grid-1056x5ms`.
fn synthetic(id: &str) -> Option<Map<String, Value>> {
    let count = |text: &str| text.parse::<u32>().ok().map(Value::from);
    let (model, rest) = id.split_once('-')?;
    let (shape, gap) = match rest.split_once("-gap") {
        Some((shape, gap)) => (shape, Some(gap)),
        None => (rest, None),
    };
    let numbers: Vec<&str> = shape.split('x').collect();
    let mut keys: Map<String, Value> = [("model".to_owned(), Value::from(model))].into_iter().collect();
    match (model, &numbers[..]) {
        ("burst", [launches, blocks, block]) => {
            keys.insert("launches".to_owned(), count(launches)?);
            keys.insert("blocks".to_owned(), count(blocks)?);
            keys.insert("block".to_owned(), Value::from(*block));
        }
        ("grid", [blocks, block]) => {
            keys.insert("blocks".to_owned(), count(blocks)?);
            keys.insert("block".to_owned(), Value::from(*block));
        }
        _ => return None,
    }
    keys.extend(gap.map(|gap| ("gap".to_owned(), Value::from(gap))));
    Some(keys)
}

/// As in a scenario file.
fn written(table: &str) -> Result<Workload, String> {
    #[derive(serde::Deserialize)]
    struct Line {
        workload: Workload,
    }
    let line: Line = toml::from_str(&format!("workload = {table}"))
        .map_err(|error| format!("{table}: {}", error.message()))?;
    Ok(line.workload)
}

/// The keys that a name is made of: model, task, form, and numbers that begin with a letter each.
fn keys(word: &str) -> Option<Map<String, Value>> {
    let text = |key: &str, value: &str| (key.to_owned(), Value::from(value));
    if let "stencil" | "traversal" = word {
        return Some([text("model", word)].into_iter().collect());
    }
    let matches = MODELS.iter().filter_map(|model| {
        let rest = word.strip_prefix(model.name)?.strip_prefix('-')?;
        Some((model.name, rest))
    });
    let (model, rest) = matches.max_by_key(|(name, _)| name.len())?;
    let mut pieces = rest.split('-');
    let mut keys: Map<String, Value> =
        [text("model", model), text("task", pieces.next()?), text("form", pieces.next()?)]
            .into_iter()
            .collect();
    for piece in pieces {
        let letters = [('b', "batch"), ('t', "tokens"), ('p', "prompt"), ('o', "output")];
        let (_, key) = letters.into_iter().find(|(letter, _)| piece.starts_with(*letter))?;
        keys.insert(key.to_owned(), piece[1..].parse::<u32>().ok()?.into());
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_of_the_suites_is_found_by_its_name() {
        for suite in crate::Suite::names() {
            let suite = crate::Suite::named(suite).unwrap();
            for tenant in suite.scenarios.iter().flat_map(|scenario| &scenario.tenants) {
                if tenant.workload.worker() != crate::Worker::Synthetic {
                    assert_eq!(named(&tenant.workload.id()), Ok(tenant.workload.clone()));
                }
            }
        }
    }

    #[test]
    fn every_id_of_the_suites_means_its_workload_again() {
        for suite in crate::Suite::names() {
            let suite = crate::Suite::named(suite).unwrap();
            for tenant in suite.scenarios.iter().flat_map(|scenario| &scenario.tenants) {
                assert_eq!(workload(&tenant.workload.id()), Ok(tenant.workload.clone()));
            }
        }
        assert!(workload("burst-10x132").unwrap_err().contains("names no workload"));
        assert!(workload("grid-0x5ms").unwrap_err().contains("between 1 and"));
    }

    #[test]
    fn a_workload_may_be_written_as_in_a_scenario() {
        let workload = named(r#"{ model = "llama", output = 16 }"#).unwrap();
        assert_eq!(workload.id(), "llama-inference-eager-b1-p512-o16");
    }

    #[test]
    fn what_names_nothing_is_told_so() {
        let refusal = |word| named(word).unwrap_err();
        assert!(refusal("vgg99-inference-eager-b1").contains("names no workload"));
        assert!(refusal("vgg19-inference-eager-x1").contains("names no workload"));
        assert!(refusal("vgg19-inference-slow-b1").contains("unknown variant `slow`"));
        assert!(refusal("bert-inference-eager-b1").contains("is called bert-inference-eager-b1-t128"));
        assert!(refusal("burst-10x132x20us").contains("names no workload"));
        assert!(refusal(r#"{ model = "vgg19", speed = 3 }"#).contains("speed"));
    }
}
