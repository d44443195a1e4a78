//! Which scenarios are played, changed as the user wants, and in which ways.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use model::{Domain, Nanos};
use scenario::profile::Profile;
use scenario::{Error, Scenario, Suite};
use sim::stage::{Stage, Way, set};
use sim::{Card, Hand};

use super::arguments::How;

pub fn threads(how: &How) -> usize {
    how.threads.map_or_else(processors, usize::from)
}

pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The dials that were set.
pub fn dials(settings: &[String]) -> Result<Hand> {
    let mut hand = Hand::default();
    for setting in settings {
        set(&mut hand, setting).map_err(anyhow::Error::msg).with_context(|| format!("--set {setting}"))?;
    }
    Ok(hand)
}

/// The ways of sharing that were named, each once.
pub fn ways(texts: &[String], domain: Option<Domain>, hand: Hand) -> Result<Vec<Way>> {
    let mut ways: Vec<Way> = Vec::new();
    for text in texts.iter().flat_map(|text| pieces(text)) {
        let way = Way::parse(&text, domain, hand).with_context(|| format!("--policy {text}"))?;
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    ensure!(!ways.is_empty(), "--policy names no policy");
    Ok(ways)
}

/// Policies are listed with commas, and so are their dials: what only sets a dial belongs to the policy before it.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for piece in text.split([',', ' ']).filter(|piece| !piece.is_empty()) {
        match pieces.last_mut() {
            Some(policy) if piece.contains('=') && !piece.contains(':') => {
                policy.push(',');
                policy.push_str(piece);
            }
            _ => pieces.push(piece.to_owned()),
        }
    }
    pieces
}

/// The scenarios that were named, with what the user changes about them.
pub fn scenarios(words: &[String], how: &How) -> Result<Vec<(String, Scenario)>> {
    let mut chosen: Vec<(String, Scenario)> = Vec::new();
    for word in words {
        for (suite, scenario) in named(word)? {
            let known = chosen.iter().any(|(of, other)| *of == suite && other.name == scenario.name);
            ensure!(!known, "{suite}/{} is named twice", scenario.name);
            chosen.push((suite, changed(scenario, how)));
        }
    }
    Ok(chosen)
}

pub fn stages(words: &[String], how: &How, card: &Card) -> Result<Vec<Stage>> {
    scenarios(words, how)?.iter().map(|(suite, scenario)| staged(suite, scenario, how, card)).collect()
}

/// A scenario with the kernels of its workloads.
pub fn staged(suite: &str, scenario: &Scenario, how: &How, card: &Card) -> Result<Stage> {
    let find = |id: &str| -> Result<Profile, Error> {
        let own = how.profiles.as_deref().map(|folder| Profile::in_folder(folder, id)).transpose()?;
        own.flatten().map_or_else(|| Profile::built_in(id), Ok)
    };
    Stage::of_scenario(suite, scenario, card, &find).with_context(|| format!("{suite}/{}", scenario.name))
}

/// A suite or a path means all of it; `SUITE/NAME` one of a suite's.
fn named(word: &str) -> Result<Vec<(String, Scenario)>> {
    let all =
        |suite: Suite| suite.scenarios.into_iter().map(|scenario| (suite.name.clone(), scenario)).collect();
    if Path::new(word).exists() || Suite::names().any(|name| name == word) {
        return Ok(all(Suite::find(word)?));
    }
    let Some((suite, name)) = word.rsplit_once('/') else { return Ok(all(Suite::find(word)?)) };
    let suite = Suite::find(suite)?;
    let known: Vec<String> = suite.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    let one = suite.scenarios.into_iter().find(|scenario| scenario.name == name);
    match one {
        Some(scenario) => Ok(vec![(suite.name, scenario)]),
        None => bail!("{} has no scenario called `{name}`; known are {}", suite.name, known.join(", ")),
    }
}

fn changed(mut scenario: Scenario, how: &How) -> Scenario {
    if let Some(repetitions) = how.repetitions {
        scenario.repetitions = repetitions;
    }
    if let Some(seconds) = how.seconds {
        scenario.duration = Nanos((seconds * 1e9).round() as u64);
    }
    if let Some(seed) = how.seed {
        scenario.seed = seed;
    }
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_and_their_dials_are_told_apart_by_their_commas() {
        assert_eq!(
            pieces("strict,slo@shared:quiet=50us,beside=20us,mps gaps"),
            ["strict", "slo@shared:quiet=50us,beside=20us", "mps", "gaps"]
        );
        let texts = ["strict,strict,timeslice".to_owned()];
        let ways = ways(&texts, Some(Domain::Shared), Hand::default()).unwrap();
        let names: Vec<String> = ways.iter().map(Way::to_string).collect();
        assert_eq!(names, ["strict-shared", "timeslice"]);
    }

    #[test]
    fn what_is_no_policy_is_told_the_known_ones() {
        let refusal = |text: &str| {
            let error = ways(&[text.to_owned()], None, Hand::default()).unwrap_err();
            format!("{error:#}")
        };
        assert!(
            refusal("greedy").contains("`greedy` is no policy; known are strict, "),
            "{}",
            refusal("greedy")
        );
        assert!(refusal("mps@isolated").contains("no domain to choose"));
        assert!(refusal("mps:quiet=1us").contains("`mps` has no dials"));
        assert!(refusal("slo@everywhere").contains("known are isolated, shared"));
        assert!(refusal("slo:loud=1us").contains("`loud` is no dial; known are quiet, "));
        assert!(refusal("slo:quiet=soon").contains("quiet: "));
        assert!(refusal("slo:quiet=10s").contains("beyond what makes sense"), "{}", refusal("slo:quiet=10s"));
    }

    #[test]
    fn a_scenario_is_found_by_its_suite_and_name() {
        let found = named("disb-a/scaled").unwrap();
        assert_eq!((found.len(), found[0].0.as_str(), found[0].1.name.as_str()), (1, "disb-a", "scaled"));
        assert!(named("tally").unwrap().len() > 30);
        let error = named("disb-a/unheard-of").unwrap_err().to_string();
        assert!(error.contains("known are published, scaled"), "{error}");
        let error = named("disb-x").unwrap_err().to_string();
        assert!(error.contains("no suite called `disb-x`"), "{error}");
    }
}
