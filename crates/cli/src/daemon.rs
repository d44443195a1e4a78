//! `ebb daemon`: the process that seats tenants.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use daemon::{Endpoint, Options, Outcome, Scope, Serving, serve, start};
use dashboard::{Admin, Dashboard};

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
        metrics: Some(serve_metrics),
    })?;
    match outcome {
        Outcome::Served | Outcome::Another => Ok(()),
    }
}

/// Has the web server serve what the daemon knows.
fn serve_metrics(serving: Serving<'_>) -> Result<Endpoint, String> {
    let Serving { wanted, asker, viewer, place } = serving;
    let listen = wanted.listen.ok_or("nobody said where")?;
    let metrics = web::Metrics::new(asker);
    let pages: Arc<dyn web::Pages> = if wanted.dashboard.enabled {
        let token = wanted.dashboard.admin_token.as_deref();
        let admin = token.map(|token| Admin::read(token, place.clone())).transpose();
        Arc::new(Dashboard::new(viewer, metrics, admin.map_err(|error| error.to_string())?))
    } else {
        Arc::new(metrics)
    };
    let options = web::Options { listen, tls: wanted.tls.clone(), basic_auth: wanted.basic_auth.clone() };
    let server = web::Server::start(&options, pages).map_err(|error| error.to_string())?;
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    Ok(Endpoint { address: server.address(), scheme, keep: Box::new(server) })
}
