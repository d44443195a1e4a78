//! Which policy decides, and how its dials stand.
//!
//! A dial that the file names stays where it was put. The others stand as they do by default, or as the controller of `slo`
//! turns them. A GPU with a table of its own takes nothing from the general one. A dial that means nothing to the policy is an error: whoever writes it expects something that would not happen.

use board::{Gpu, Settings};
use model::{Dials, Kind, Nanos};
use serde::Deserialize;
use toml::Spanned;

use super::Wrong;
use super::file::Reader;
use crate::uuid;

/// Requests that are seen alone cost best-effort work; a fifth of them is more than anybody needs to know.
const MOST_SOLO: u32 = 200;
/// Twice as slow as alone.
const MOST_TOLERANCE: u32 = 1_000;

/// The policy of a GPU, and which dials a person has set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub kind: Kind,
    pub quiet: Option<Nanos>,
    pub threshold: Option<Nanos>,
    pub in_flight: Option<Nanos>,
    pub beside: Option<Nanos>,
    /// In thousandths.
    pub solo_share: Option<u32>,
    /// By how much a latency tenant without an objective may be slower than alone, in thousandths.
    pub tolerance: Option<u32>,
}

impl Policy {
    /// The dials with those that a person has set.
    pub fn over(&self, dials: Dials) -> Dials {
        Dials {
            kind: self.kind,
            quiet: self.quiet.unwrap_or(dials.quiet),
            threshold: self.threshold.unwrap_or(dials.threshold),
            in_flight: self.in_flight.unwrap_or(dials.in_flight),
            beside: self.beside.unwrap_or(dials.beside),
            solo_share: self.solo_share.unwrap_or(dials.solo_share),
        }
    }

    /// The rules of a GPU under this policy.
    pub fn settings(&self, token: Settings) -> Settings {
        Settings { tolerance: self.tolerance.unwrap_or(token.tolerance), ..token }
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyTable {
    kind: Option<Spanned<String>>,
    quiet: Option<Spanned<String>>,
    threshold: Option<Spanned<String>>,
    in_flight: Option<Spanned<String>>,
    beside: Option<Spanned<String>>,
    solo_share: Option<Spanned<u32>>,
    tolerance: Option<Spanned<u32>>,
}

impl Reader<'_> {
    /// The policy, of this table and of a bound that `token` has named since before there were policies.
    pub(super) fn policy(
        &self,
        table: &PolicyTable,
        bound: Option<&Spanned<String>>,
    ) -> Result<Policy, Wrong> {
        let (us, ms) = (Nanos::from_micros, Nanos::from_millis);
        let kind = self.kind(table)?;
        self.contradiction(table, kind)?;
        if let (Some(_), Some(second)) = (bound, &table.in_flight) {
            let message = "in_flight is said twice, here and under [token]".to_owned();
            return Err(self.at(second, message));
        }
        let in_flight = table.in_flight.as_ref().or(bound);
        Ok(Policy {
            kind,
            quiet: self.some_span(table.quiet.as_ref(), [us(0), ms(1_000)])?,
            threshold: self.some_span(table.threshold.as_ref(), [us(1), ms(1_000)])?,
            in_flight: self.some_span(in_flight, [us(100), ms(1_000)])?,
            beside: self.some_span(table.beside.as_ref(), [us(0), ms(10)])?,
            solo_share: self.some_number(table.solo_share.as_ref(), MOST_SOLO)?,
            tolerance: self.some_number(table.tolerance.as_ref(), MOST_TOLERANCE)?,
        })
    }

    /// A GPU, as NVIDIA's tools and `ebb status` write it.
    pub(super) fn gpu(&self, name: &Spanned<String>) -> Result<Gpu, Wrong> {
        let gpu = uuid::read(name.get_ref());
        let wrong = || format!("`{}` is no GPU; write its UUID, as `ebb status` shows it", name.get_ref());
        gpu.ok_or_else(|| self.at(name, wrong()))
    }

    fn kind(&self, table: &PolicyTable) -> Result<Kind, Wrong> {
        let Some(word) = &table.kind else { return Ok(Kind::default()) };
        word.get_ref().parse().map_err(|error| self.at(word, format!("{error}")))
    }

    /// What the policy does not go by must not be there.
    fn contradiction(&self, table: &PolicyTable, kind: Kind) -> Result<(), Wrong> {
        let name = kind.name();
        let only_slo = kind != Kind::Slo;
        if let Some(beside) = table.beside.as_ref().filter(|_| only_slo) {
            let message = format!("beside means nothing to {name}: only slo lets work run beside a request");
            return Err(self.at(beside, message));
        }
        if let Some(tolerance) = table.tolerance.as_ref().filter(|_| only_slo) {
            let message =
                format!("tolerance means nothing to {name}: only slo goes by what a tenant tolerates");
            return Err(self.at(tolerance, message));
        }
        let fills = matches!(kind, Kind::Gaps | Kind::Slo);
        if let Some(threshold) = table.threshold.as_ref().filter(|_| !fills) {
            let message = format!("threshold means nothing to {name}: only gaps and slo fill gaps");
            return Err(self.at(threshold, message));
        }
        Ok(())
    }

    fn some_span(&self, text: Option<&Spanned<String>>, bounds: [Nanos; 2]) -> Result<Option<Nanos>, Wrong> {
        text.map(|text| self.span(Some(text), Nanos::ZERO, bounds)).transpose()
    }

    fn some_number(&self, number: Option<&Spanned<u32>>, most: u32) -> Result<Option<u32>, Wrong> {
        number.map(|number| self.number(Some(number), 0, most)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{Configuration, Scope};

    fn read(text: &str) -> Result<Configuration, Wrong> {
        Configuration::parse(&format!("schema_version = 1\n{text}"), Scope::Machine, 0)
    }

    fn complaint(text: &str) -> String {
        let Wrong { line, message } = read(text).unwrap_err();
        format!("{line}: {message}")
    }

    #[test]
    fn every_key_is_read() {
        let text = "[policy]\nkind = \"slo\"\nquiet = \"0us\"\nthreshold = \"30us\"\nin_flight = \"2ms\"\n\
                    beside = \"20us\"\nsolo_share = 5\ntolerance = 100\n";
        let configuration = read(text).unwrap();
        let us = Nanos::from_micros;
        let dials = Dials {
            kind: Kind::Slo,
            quiet: us(0),
            threshold: us(30),
            in_flight: us(2_000),
            beside: us(20),
            solo_share: 5,
        };
        assert_eq!(configuration.policy.over(Dials::default()), dials);
        assert_eq!(configuration.policy.settings(Settings::default()).tolerance, 100);
    }

    #[test]
    fn who_says_nothing_has_the_default_policy_with_all_its_dials_free() {
        let configuration = read("").unwrap();
        assert_eq!(configuration.policy, Policy::default());
        let turned = Dials { quiet: Nanos::from_micros(7), solo_share: 3, ..Dials::default() };
        assert_eq!(configuration.policy.over(turned), turned);
    }

    #[test]
    fn every_kind_is_known_and_no_other() {
        for kind in Kind::ALL {
            let text = format!("[policy]\nkind = \"{}\"", kind.name());
            assert_eq!(read(&text).unwrap().policy.kind, kind);
        }
        let wrong = complaint("[policy]\nkind = \"greedy\"");
        assert_eq!(wrong, "3: `greedy` is not one of strict, gaps, slo, fair, deadline");
    }

    #[test]
    fn mistakes_and_contradictions_are_named_with_their_lines() {
        let policy = |text: &str| complaint(&format!("[policy]\n{text}"));
        assert!(policy("quite = \"1ms\"").starts_with("3: unknown field `quite`"));
        assert_eq!(policy("quiet = \"2s\""), "3: 2 s is not between 0 ns and 1 s");
        assert_eq!(policy("kind = \"gaps\"\nthreshold = \"0us\""), "4: 0 ns is not between 1 µs and 1 s");
        assert_eq!(policy("solo_share = 201"), "3: 201 is not between 0 and 200");
        assert_eq!(policy("tolerance = 1001"), "3: 1001 is not between 0 and 1000");
        for kind in ["strict", "gaps", "fair", "deadline"] {
            let wrong = policy(&format!("beside = \"5us\"\nkind = \"{kind}\""));
            assert!(wrong.starts_with(&format!("3: beside means nothing to {kind}")), "{wrong}");
            let wrong = policy(&format!("kind = \"{kind}\"\ntolerance = 3"));
            assert!(wrong.starts_with(&format!("4: tolerance means nothing to {kind}")), "{wrong}");
        }
        for kind in ["strict", "fair", "deadline"] {
            let wrong = policy(&format!("kind = \"{kind}\"\n\nthreshold = \"9us\""));
            assert!(wrong.starts_with(&format!("5: threshold means nothing to {kind}")), "{wrong}");
        }
        assert!(read("[policy]\nkind = \"gaps\"\nthreshold = \"9us\"\nquiet = \"0us\"").is_ok());
    }

    #[test]
    fn a_gpu_may_have_a_policy_of_its_own() {
        let called = "GPU-00112233-4455-6677-8899-aabbccddeeff";
        let text = format!(
            "[policy]\nkind = \"strict\"\nquiet = \"9us\"\n[gpu.{called}.policy]\nkind = \"slo\"\ntolerance = 7"
        );
        let configuration = read(&text).unwrap();
        let gpu = uuid::read(called).unwrap();
        let own = Policy { tolerance: Some(7), ..Policy::default() };
        assert_eq!(configuration.policy_of(gpu), own, "nothing is taken from the general one");
        let other = configuration.policy_of(Gpu([0; 16]));
        assert_eq!((other.kind, other.quiet), (Kind::Strict, Some(Nanos::from_micros(9))));
        let wrong = complaint(&format!("[gpu.{called}.policy]\nkind = \"fair\"\nbeside = \"1us\""));
        assert!(wrong.starts_with("4: beside means nothing to fair"), "{wrong}");
        let wrong = complaint("[gpu.0.policy]\nkind = \"fair\"");
        assert_eq!(wrong, "2: `0` is no GPU; write its UUID, as `ebb status` shows it");
        assert!(
            complaint(&format!("[gpu.{called}]\nkind = \"fair\"")).starts_with("3: unknown field `kind`")
        );
    }

    #[test]
    fn a_bound_that_is_said_twice_is_not_guessed() {
        let wrong = complaint("[token]\nin_flight = \"5ms\"\n[policy]\nin_flight = \"4ms\"");
        assert_eq!(wrong, "5: in_flight is said twice, here and under [token]");
        let token = read("[token]\nin_flight = \"5ms\"").unwrap();
        assert_eq!(token.policy.in_flight, Some(Nanos::from_millis(5)));
    }
}
