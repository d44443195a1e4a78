//! What users are called, beside their numbers.
//!
//! The daemon knows numbers only: to look a name up may take a server of the network, for which it must not wait. So names are
//! looked up here, once each, and a number that has none stands for itself.

use std::collections::BTreeMap;

use daemon::report::Report;

/// The names that were looked up.
#[derive(Clone, Debug, Default)]
pub struct UserNames {
    known: BTreeMap<u32, Option<String>>,
}

impl UserNames {
    pub fn of(report: &Report) -> UserNames {
        let mut names = UserNames::default();
        names.learn(report);
        names
    }

    /// Looks up those that are new.
    pub fn learn(&mut self, report: &Report) {
        for process in report.gpus.iter().flat_map(|gpu| &gpu.processes) {
            self.known.entry(process.user).or_insert_with(|| daemon::name_of_user(process.user));
        }
    }

    /// The name alone, or the number.
    pub fn short(&self, user: u32) -> String {
        self.name(user).map_or_else(|| user.to_string(), str::to_owned)
    }

    /// The name, and the number beside it.
    pub fn full(&self, user: u32) -> String {
        self.name(user).map_or_else(|| user.to_string(), |name| format!("{name} ({user})"))
    }

    fn name(&self, user: u32) -> Option<&str> {
        self.known.get(&user)?.as_deref()
    }
}

#[cfg(test)]
impl UserNames {
    /// As if these had been looked up.
    pub fn known(names: &[(u32, &str)]) -> UserNames {
        UserNames { known: names.iter().map(|(user, name)| (*user, Some((*name).to_owned()))).collect() }
    }
}
