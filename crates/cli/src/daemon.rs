//! `ebb daemon`: the process that seats tenants.

use std::time::Duration;

use anyhow::{Context as _, Result};
use daemon::{Options, Outcome, Scope, serve, start};

use crate::arguments::DaemonOptions;

/// How long a daemon that was started on demand stays without tenants.
const IDLE: u64 = 60;

pub fn run(options: &DaemonOptions) -> Result<()> {
    if options.on_demand && !options.detached {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let words: Vec<_> = std::env::args_os().skip(1).collect();
        return Ok(start::detach(&program, &words)?);
    }
    if options.detached {
        start::settle();
    }
    let idle = options.idle.or(options.on_demand.then_some(IDLE));
    let outcome = serve(&Options {
        scope: if options.machine { Scope::Machine } else { Scope::User },
        idle: idle.map(Duration::from_secs),
        patient: options.on_demand,
        configuration: options.config.clone(),
        domain: options.domain,
        policy: options.policy,
    })?;
    match outcome {
        Outcome::Served | Outcome::Another => Ok(()),
    }
}
