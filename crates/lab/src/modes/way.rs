//! A way of sharing as a campaign measures it: a mode, and for ebb's own the policy and what tenants tell it.

use std::collections::BTreeSet;
use std::fmt;

use model::Kind;
use results::mode::{Factor, Name};
use scenario::Mode;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Way {
    pub mode: Mode,
    /// The policy by which ebb's daemon goes; `None`: its own choice.
    pub policy: Option<Kind>,
    /// Latency tenants tell ebb so many times their own p99 alone as their SLO; `None`: they tell nothing.
    pub slo: Option<Factor>,
}

impl Way {
    /// The modes under these policies, each of ebb's once for each of them; all others, and ebb's where no policy is named,
    /// once and as they come.
    pub fn all(modes: &[Mode], policies: &[Kind], slo: Option<Factor>) -> Vec<Way> {
        let mut ways = Vec::new();
        for &mode in modes {
            match (mode.is_ebb(), policies) {
                (false, _) => ways.push(Way::from(mode)),
                (true, []) => ways.push(Way { mode, policy: None, slo }),
                (true, named) => {
                    ways.extend(named.iter().map(|&policy| Way { mode, policy: Some(policy), slo }));
                }
            }
        }
        // Said twice, it is still one.
        let mut seen = BTreeSet::new();
        ways.retain(|way| seen.insert(*way));
        ways
    }
}

impl From<Mode> for Way {
    fn from(mode: Mode) -> Way {
        Way { mode, policy: None, slo: None }
    }
}

/// As result files call it.
impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Name { base: self.mode.name(), policy: self.policy, slo: self.slo }, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modes_of_ebb_have_policies_and_without_any_all_are_as_they_come() {
        let modes = [Mode::Alone, Mode::EbbIsolated, Mode::EbbShared];
        let names = |policies: &[Kind], slo: Option<&str>| -> Vec<String> {
            let slo = slo.map(|text| text.parse().unwrap());
            Way::all(&modes, policies, slo).iter().map(Way::to_string).collect()
        };
        assert_eq!(names(&[], None), ["alone", "ebb-isolated", "ebb-shared"]);
        assert_eq!(names(&[], Some("1.2")), ["alone", "ebb-isolated:1.2x", "ebb-shared:1.2x"]);
        assert_eq!(
            names(&[Kind::Strict, Kind::Slo, Kind::Strict], None),
            ["alone", "ebb-isolated:strict", "ebb-isolated:slo", "ebb-shared:strict", "ebb-shared:slo"]
        );
    }
}
