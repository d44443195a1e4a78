//! What a case is, what comes of it, and the list of all.

use crate::context::Context;
use crate::driver::Driver;
use crate::{breadth, cases};
use anyhow::Result;
use std::fmt;

/// One program run against the driver.
#[derive(Clone, Copy)]
pub struct Case {
    /// `group/what_is_shown`.
    pub name: &'static str,
    pub run: Run,
    /// Whether it leaves the process unfit for another case (sticky errors, changed process-wide state).
    pub spoils_process: bool,
    /// Whether NVIDIA's own driver does not survive it; such cases are for drivers that mean to be sturdier.
    pub beyond_the_card: bool,
    /// Whether it counts on having the process to itself while it runs.
    pub wants_quiet: bool,
}

/// How a case begins.
#[derive(Clone, Copy)]
pub enum Run {
    /// With a context of its own, current on the calling thread.
    Context(fn(&Context<'_>) -> Result<()>),
    /// With the driver as opened, before `cuInit`.
    Bare(fn(&Driver) -> Result<()>),
}

impl Case {
    /// A case that wants a context, as nearly all do.
    pub const fn new(name: &'static str, run: fn(&Context<'_>) -> Result<()>) -> Case {
        Case {
            name,
            run: Run::Context(run),
            spoils_process: false,
            beyond_the_card: false,
            wants_quiet: false,
        }
    }

    /// A case that initialises the driver itself.
    pub const fn bare(name: &'static str, run: fn(&Driver) -> Result<()>) -> Case {
        Case { name, run: Run::Bare(run), spoils_process: true, beyond_the_card: false, wants_quiet: false }
    }

    /// Marks a case after which the process is not to be used again.
    #[must_use]
    pub const fn spoiling(mut self) -> Case {
        self.spoils_process = true;
        self
    }

    /// Marks a case that asks more of a driver than NVIDIA's gives.
    #[must_use]
    pub const fn beyond_the_card(mut self) -> Case {
        self.beyond_the_card = true;
        self
    }

    /// Marks a case that no other may run beside in the same process.
    #[must_use]
    pub const fn quiet(mut self) -> Case {
        self.wants_quiet = true;
        self
    }

    /// Whether it cannot be one of many in a process.
    pub const fn wants_a_process(&self) -> bool {
        self.spoils_process || self.wants_quiet
    }

    /// Runs the case in this process.
    pub fn execute(&self, driver: &Driver) -> Outcome {
        let result = match self.run {
            Run::Bare(run) => run(driver),
            Run::Context(run) => Context::new(driver).and_then(|context| run(&context)),
        };
        match result {
            Ok(()) => Outcome::Passed,
            Err(error) => match error.downcast_ref::<Skipped>() {
                Some(skipped) => Outcome::Skipped(skipped.0.clone()),
                None => Outcome::Failed(format!("{error:#}")),
            },
        }
    }
}

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// The error by which a case says that this driver or device lacks what the case is about.
#[derive(Debug)]
pub struct Skipped(pub String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "skipped: {}", self.0)
    }
}

impl std::error::Error for Skipped {}

/// Ends a case as skipped: `return skip("the device has no managed memory")`.
pub fn skip(reason: impl Into<String>) -> Result<()> {
    Err(Skipped(reason.into()).into())
}

/// The other process of a case that needs two; started by [`crate::runner::Peer`].
#[derive(Clone, Copy)]
pub struct PeerProgram {
    pub name: &'static str,
    pub run: fn(&Driver, &[String]) -> Result<()>,
}

/// Every case, in the order in which a reader learns the API.
pub fn all() -> Vec<Case> {
    let mut all = cases::all();
    all.extend(breadth::cases());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_grouped() {
        let mut names: Vec<_> = all().iter().map(|case| case.name).collect();
        assert!(names.iter().all(|name| name.contains('/')));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
