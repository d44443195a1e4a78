//! What a mode is called in a file.
//!
//! Most modes are a word. Those of ebb may be measured under several policies, and with latency tenants that tell it an
//! SLO; each of these is a mode of its own, because figures of two policies must never be mixed. Its name says so, behind
//! the domain: `ebb-shared:strict`, `ebb-shared:strict:1.2x`. A name without either is ebb as it comes, which is what
//! files said before there was a choice.

use std::fmt;
use std::str::FromStr;

use model::Kind;

use crate::Error;
use crate::figures::ORDER;

/// A mode's name, taken apart. Whatever is not built as ours are is one word, colons and all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    pub base: &'a str,
    /// The policy that was asked for; `None`: the daemon's own choice.
    pub policy: Option<Kind>,
    /// The SLO that latency tenants told ebb, as a multiple of their own p99 alone.
    pub slo: Option<Factor>,
}

impl<'a> Name<'a> {
    pub fn of(mode: &'a str) -> Name<'a> {
        let whole = Name { base: mode, policy: None, slo: None };
        let Some((base, rest)) = mode.split_once(':') else { return whole };
        let words = match rest.split_once(':') {
            Some((policy, slo)) => (Some(policy), Some(slo)),
            None if rest.ends_with('x') => (None, Some(rest)),
            None => (Some(rest), None),
        };
        let read = || -> Option<Name<'a>> {
            let policy = words.0.map(|word| word.parse().ok()).map_or(Some(None), |kind| kind.map(Some))?;
            let slo = words.1.map(|word| word.strip_suffix('x')?.parse().ok());
            Some(Name { base, policy, slo: slo.map_or(Some(None), |slo| slo.map(Some))? })
        };
        read().filter(|name| !name.base.is_empty() && name.to_string() == mode).unwrap_or(whole)
    }

    /// Where it stands in tables: by its base, as it comes before the policies, these in their own order.
    pub fn rank(&self) -> impl Ord + use<'a> {
        let place = ORDER.iter().position(|known| *known == self.base).unwrap_or(ORDER.len());
        (place, self.base, self.policy, self.slo)
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = self.base.to_owned();
        if let Some(policy) = self.policy {
            name = format!("{name}:{}", policy.name());
        }
        if let Some(slo) = self.slo {
            name = format!("{name}:{slo}x");
        }
        f.pad(&name)
    }
}

/// A multiple, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(u32);

impl Factor {
    pub fn value(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// So much of a time.
    pub fn times(self, time: model::Nanos) -> model::Nanos {
        let product = u128::from(time.0) * u128::from(self.0) / 1000;
        model::Nanos(u64::try_from(product).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value())
    }
}

impl FromStr for Factor {
    type Err = Error;

    /// Below its own p99 alone nobody can be served, and what is finer than a thousandth nobody can measure.
    fn from_str(text: &str) -> Result<Factor, Error> {
        let value = text.parse::<f64>().ok().filter(|value| (1.0..=100.0).contains(value));
        value.map(|value| Factor((value * 1000.0).round() as u32)).ok_or(Error::Factor)
    }
}

#[cfg(test)]
mod tests {
    use model::Nanos;

    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (text, policy, slo) in [
            ("ebb-shared", None, None),
            ("ebb-shared:strict", Some(Kind::Strict), None),
            ("ebb-isolated:1.2x", None, Some(Factor(1200))),
            ("ebb-isolated:slo:2x", Some(Kind::Slo), Some(Factor(2000))),
        ] {
            let name = Name::of(text);
            assert_eq!((name.policy, name.slo), (policy, slo), "{text}");
            assert_eq!(name.to_string(), text);
        }
        assert_eq!(Name::of("ebb-shared:gaps").base, "ebb-shared");
    }

    #[test]
    fn what_is_not_built_as_ours_are_is_one_word() {
        let odd = [
            "",
            ":",
            "a:",
            ":strict",
            "ebb-shared:fast",
            "a:strict:",
            "a:1.2x:strict",
            "a:slo:1.20x",
            "a:0x",
        ];
        for text in odd {
            assert_eq!(Name::of(text), Name { base: text, policy: None, slo: None });
        }
    }

    #[test]
    fn policies_stand_behind_their_domain_in_their_own_order() {
        let mut modes =
            ["unheard-of", "ebb-shared:slo", "ebb-shared", "ebb-isolated:gaps", "ebb-isolated:strict", "mps"];
        modes.sort_by_key(|mode| Name::of(mode).rank());
        assert_eq!(
            modes,
            ["mps", "ebb-isolated:strict", "ebb-isolated:gaps", "ebb-shared", "ebb-shared:slo", "unheard-of"]
        );
    }

    #[test]
    fn a_factor_is_a_number_from_one_on() {
        for wrong in ["", "0.9", "101", "NaN", "inf", "-1", "1.2x"] {
            assert!(wrong.parse::<Factor>().is_err(), "{wrong}");
        }
        let factor: Factor = "1.2".parse().unwrap();
        assert_eq!(factor.times(Nanos::from_micros(1000)), Nanos::from_micros(1200));
        assert_eq!(factor.times(Nanos::MAX), Nanos::MAX);
    }
}
