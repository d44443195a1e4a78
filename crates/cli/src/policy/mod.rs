//! `ebb policy`: what another policy would have done.

pub mod arguments;
mod diff;

use anyhow::Result;

use arguments::PolicyVerb;

pub fn run(verb: &PolicyVerb) -> Result<()> {
    match verb {
        PolicyVerb::Diff(options) => diff::run(options),
    }
}
