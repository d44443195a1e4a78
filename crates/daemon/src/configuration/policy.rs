//! Which policy decides, and how its dials stand.
//!
//! A dial that the file names stays where it was put. The others stand as they do by default, or as the controller of `slo`
//! turns them. A GPU with a table of its own takes nothing from the general one. A dial that means nothing to the policy is an error: whoever writes it expects something that would not happen.

use board::Settings;
use model::{Dials, Hand, Kind};

/// The policy of a GPU, and which dials a person has set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub kind: Kind,
    pub hand: Hand,
    /// By how much a latency tenant without an objective may be slower than alone, in thousandths.
    pub tolerance: Option<u32>,
}

impl Policy {
    /// The dials with those that a person has set.
    pub fn over(&self, dials: Dials) -> Dials {
        self.hand.over(Dials { kind: self.kind, ..dials })
    }

    /// The rules of a GPU under this policy.
    pub fn settings(&self, token: Settings) -> Settings {
        Settings { tolerance: self.tolerance.unwrap_or(token.tolerance), ..token }
    }
}

/// Why a dial has no business with a policy, if it has none.
pub(super) fn meaningless(key: &str, kind: Kind) -> Option<String> {
    let name = kind.name();
    let fills = matches!(kind, Kind::Gaps | Kind::Slo);
    match key {
        "policy.beside" if kind != Kind::Slo => {
            Some(format!("beside means nothing to {name}: only slo lets work run beside a request"))
        }
        "policy.confine" if kind != Kind::Slo => {
            Some(format!("confine means nothing to {name}: only slo lets work run beside a request"))
        }
        "policy.tolerance" if kind != Kind::Slo => {
            Some(format!("tolerance means nothing to {name}: only slo goes by what a tenant tolerates"))
        }
        "policy.threshold" if !fills => {
            Some(format!("threshold means nothing to {name}: only gaps and slo fill gaps"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::{Configuration, Mistake, Scope};
    use crate::uuid;
    use board::Gpu;
    use model::Nanos;

    fn read(text: &str) -> Result<Configuration, Vec<Mistake>> {
        Configuration::parse(&format!("schema_version = 1\n{text}"), Scope::Machine, 0)
    }

    fn complaint(text: &str) -> String {
        let mistakes = read(text).unwrap_err();
        assert_eq!(mistakes.len(), 1, "{mistakes:?}");
        format!("{}: {}", mistakes[0].line.unwrap(), mistakes[0].message)
    }

    #[test]
    fn every_key_is_read() {
        let text = "[policy]\nkind = \"slo\"\nquiet = \"0us\"\nthreshold = \"30us\"\nin_flight = \"2ms\"\n\
                    beside = \"20us\"\nconfine = 50\nsolo_share = 5\ntolerance = 100\n";
        let configuration = read(text).unwrap();
        let us = Nanos::from_micros;
        let dials = Dials {
            kind: Kind::Slo,
            quiet: us(0),
            threshold: us(30),
            in_flight: us(2_000),
            beside: us(20),
            confine: 50,
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
        assert!(policy("quite = \"1ms\"").starts_with("3: unknown key `policy.quite`"));
        assert_eq!(policy("quiet = \"2s\""), "3: 2 s is not between 0 ns and 1 s");
        assert_eq!(policy("kind = \"gaps\"\nthreshold = \"0us\""), "4: 0 ns is not between 1 µs and 1 s");
        assert_eq!(policy("solo_share = 201"), "3: 201 is not between 0 and 200");
        assert_eq!(policy("confine = 91"), "3: 91 is not between 0 and 90");
        assert_eq!(policy("tolerance = 1001"), "3: 1001 is not between 0 and 1000");
        for kind in ["strict", "gaps", "fair", "deadline"] {
            let wrong = policy(&format!("beside = \"5us\"\nkind = \"{kind}\""));
            assert!(wrong.starts_with(&format!("3: beside means nothing to {kind}")), "{wrong}");
            let wrong = policy(&format!("kind = \"{kind}\"\nconfine = 50"));
            assert!(wrong.starts_with(&format!("4: confine means nothing to {kind}")), "{wrong}");
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
        assert_eq!((other.kind, other.hand.quiet), (Kind::Strict, Some(Nanos::from_micros(9))));
        let wrong = complaint(&format!("[gpu.{called}.policy]\nkind = \"fair\"\nbeside = \"1us\""));
        assert!(wrong.starts_with("4: beside means nothing to fair"), "{wrong}");
        let wrong = complaint("[gpu.0.policy]\nkind = \"fair\"");
        assert_eq!(wrong, "2: `0` is no GPU; write its UUID, as `ebb status` shows it");
        assert!(
            complaint(&format!("[gpu.{called}]\nkind = \"fair\""))
                .starts_with("3: unknown key `kind` of a GPU")
        );
    }

    #[test]
    fn a_bound_that_is_said_twice_is_not_guessed() {
        let wrong = complaint("[token]\nin_flight = \"5ms\"\n[policy]\nin_flight = \"4ms\"");
        assert_eq!(wrong, "5: in_flight is said twice, here and under [token]");
        let token = read("[token]\nin_flight = \"5ms\"").unwrap();
        assert_eq!(token.policy.hand.in_flight, Some(Nanos::from_millis(5)));
    }
}
