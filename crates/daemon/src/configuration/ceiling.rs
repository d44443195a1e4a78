//! Ceilings: the most a user may claim.
//!
//! Class, weight and priority are claims that anybody can make, so a rule says how high they may be; the first rule that
//! fits decides. A claim above its ceiling is lowered, never refused: the program runs, and is told.

use board::{HIGHEST_PRIORITY, HIGHEST_WEIGHT, Terms};
use model::Class;

use super::Scope;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ceiling {
    pub class: Class,
    pub weight: u32,
    pub priority: u32,
}

impl Ceiling {
    pub const NONE: Ceiling =
        Ceiling { class: Class::Latency, weight: HIGHEST_WEIGHT, priority: HIGHEST_PRIORITY };

    /// What is left of a claim, and whether that is less. A number outside its range is brought into it, which is not
    /// what is meant by lowering.
    pub fn lower(self, asked: Terms) -> (Terms, bool) {
        let asked = Terms {
            weight: asked.weight.clamp(1, HIGHEST_WEIGHT),
            priority: asked.priority.min(HIGHEST_PRIORITY),
            ..asked
        };
        let granted = Terms {
            class: if self.class == Class::BestEffort { Class::BestEffort } else { asked.class },
            weight: asked.weight.min(self.weight),
            priority: asked.priority.min(self.priority),
            ..asked
        };
        (granted, granted != asked)
    }
}

/// Whom a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    User(u32),
    Group(u32),
    Everyone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub subject: Subject,
    pub ceiling: Ceiling,
}

/// The rules in their order, and what holds for those whom none is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ceilings {
    pub rules: Vec<Rule>,
    pub scope: Scope,
    /// The user as whom the daemon runs.
    pub daemon: u32,
}

impl Ceilings {
    pub fn of(&self, user: u32, groups: &[u32]) -> Ceiling {
        let about = |rule: &&Rule| match rule.subject {
            Subject::User(uid) => uid == user,
            Subject::Group(gid) => groups.contains(&gid),
            Subject::Everyone => true,
        };
        let rule = self.rules.iter().find(about).map(|rule| rule.ceiling);
        rule.unwrap_or(match self.scope {
            Scope::Machine if user != 0 && user != self.daemon => {
                Ceiling { class: Class::BestEffort, ..Ceiling::NONE }
            }
            _ => Ceiling::NONE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLAIM: Terms =
        Terms { class: Class::Latency, weight: 50, priority: 7, slo: None, memory: None, paused: false };

    fn ceilings(scope: Scope, rules: &[Rule]) -> Ceilings {
        Ceilings { rules: rules.to_vec(), scope, daemon: 100 }
    }

    #[test]
    fn a_users_own_daemon_grants_all_and_the_machines_only_to_root_and_itself() {
        let own = ceilings(Scope::User, &[]);
        assert_eq!(own.of(1000, &[]).lower(CLAIM), (CLAIM, false));
        let machine = ceilings(Scope::Machine, &[]);
        for trusted in [0, 100] {
            assert_eq!(machine.of(trusted, &[]).lower(CLAIM), (CLAIM, false));
        }
        let (granted, lowered) = machine.of(1000, &[]).lower(CLAIM);
        assert_eq!((granted.class, granted.weight, lowered), (Class::BestEffort, 50, true));
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let low = Ceiling { class: Class::BestEffort, weight: 2, priority: 0 };
        let rules = [
            Rule { subject: Subject::User(1), ceiling: Ceiling::NONE },
            Rule { subject: Subject::Group(5), ceiling: Ceiling { class: Class::Latency, ..low } },
            Rule { subject: Subject::Everyone, ceiling: low },
        ];
        let ceilings = ceilings(Scope::Machine, &rules);
        assert_eq!(ceilings.of(1, &[5]), Ceiling::NONE);
        assert_eq!(ceilings.of(2, &[4, 5]).class, Class::Latency);
        assert_eq!(ceilings.of(2, &[4]), low);
        assert_eq!(ceilings.of(0, &[]), low, "a rule may lower root too");
    }

    #[test]
    fn numbers_out_of_range_are_brought_into_it_without_a_word() {
        let odd = Terms { weight: 0, priority: 99, ..CLAIM };
        let (granted, lowered) = Ceiling::NONE.lower(odd);
        assert_eq!((granted.weight, granted.priority, lowered), (1, HIGHEST_PRIORITY, false));
    }
}
