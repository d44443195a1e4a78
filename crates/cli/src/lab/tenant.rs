//! `ebb lab tenant`: synthetic tenants, started by the lab.

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use lab::player::Player;

use super::arguments::TenantOptions;

/// Plays until its standard input ends, and comes back only if it cannot.
pub fn run(options: &TenantOptions) -> Result<ExitCode> {
    let TenantOptions { spec, driver, profiles } = options.clone();
    let player = Player { spec, driver, profiles };
    Err(player.serve(io::stdin().lock(), Box::new(io::stdout())).into())
}
