//! `ebb policy`: the configuration in force, another one in its place, and what another policy would have done.
//!
//! * `check`, `apply`, `show`: the daemon's configuration; `change`: what another one would change about it
//! * `diff`: two policies on what was recorded
//! * `target`: whose configuration is meant

mod apply;
pub mod arguments;
mod change;
mod check;
mod diff;
mod show;
mod target;

use anyhow::Result;

use arguments::PolicyVerb;

pub fn run(verb: &PolicyVerb) -> Result<()> {
    match verb {
        PolicyVerb::Check(options) => check::run(options),
        PolicyVerb::Apply(options) => apply::run(options),
        PolicyVerb::Show(options) => show::run(options),
        PolicyVerb::Diff(options) => match &options.after {
            Some(after) => diff::run(options, after),
            None => change::run(options.before.as_ref(), options.output),
        },
    }
}
