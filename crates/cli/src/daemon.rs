//! `ebb daemon`: the process that seats tenants.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use daemon::request::Ended;
use daemon::{Endpoint, Error, NotServed, Options, Outcome, Place, Scope, Serving, client, serve, start};
use dashboard::{Admin, Dashboard};

use crate::arguments::{DaemonOptions, DaemonVerb};
use crate::company;

/// How long a daemon that was started on demand stays without tenants.
const IDLE: u64 = 60;

/// How long a daemon that was told to end may take.
const TO_END: Duration = Duration::from_secs(5);

pub fn run(options: &DaemonOptions) -> Result<()> {
    if let Some(DaemonVerb::Stop { machine }) = options.verb {
        return stop(scope(machine || options.machine));
    }
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
        scope: scope(options.machine),
        idle: idle.map(Duration::from_secs),
        patient: options.on_demand,
        makes_room: options.make_room,
        replace: options.replace,
        configuration: options.config.clone(),
        domain: options.domain,
        policy: options.policy,
        metrics: Some(serve_metrics),
        cards: Some(company::cards),
        card_files: Some(company::card_files),
    })?;
    match outcome {
        Outcome::Served | Outcome::Another => Ok(()),
    }
}

fn scope(machine: bool) -> Scope {
    if machine { Scope::Machine } else { Scope::User }
}

/// `ebb daemon stop`.
fn stop(scope: Scope) -> Result<()> {
    let place = match scope {
        // Who ends the machine's daemon need not be able to make its folder.
        Scope::Machine => Place::machine(),
        Scope::User => Place::prepare(scope)?,
    };
    let folder = place.folder().display();
    let Ended { pid, tenants } = match client::end(&place, false) {
        Err(Error::NoDaemon { .. }) if place.is_taken() => {
            bail!("the daemon in {folder} does not answer; end its process, which holds daemon.lock there")
        }
        Err(Error::NoDaemon { .. }) => bail!("there is no daemon in {folder}"),
        other => other?,
    };
    let begin = Instant::now();
    while place.is_taken() {
        ensure!(begin.elapsed() < TO_END, "daemon {pid} in {folder} was told to end, and does not");
        std::thread::sleep(Duration::from_millis(5));
    }
    match tenants.as_slice() {
        [] => println!("ended daemon {pid} in {folder}"),
        some => {
            println!(
                "ended daemon {pid} in {folder}; these go on until the next one comes: {}",
                some.join(", ")
            );
        }
    }
    Ok(())
}

/// Has the web server serve what the daemon knows.
fn serve_metrics(serving: Serving<'_>) -> Result<Endpoint, NotServed> {
    let Serving { wanted, asker, viewer, place } = serving;
    let listen = wanted.listen.ok_or_else(|| not_served("nobody said where".to_owned()))?;
    let metrics = web::Metrics::new(asker);
    let pages: Arc<dyn web::Pages> = if wanted.dashboard.enabled {
        let token = wanted.dashboard.admin_token.as_deref();
        let admin = token.map(|token| Admin::read(token, place.clone())).transpose();
        Arc::new(Dashboard::new(viewer, metrics, admin.map_err(|error| not_served(error.to_string()))?))
    } else {
        Arc::new(metrics)
    };
    let options = web::Options { listen, tls: wanted.tls.clone(), basic_auth: wanted.basic_auth.clone() };
    let server = web::Server::start(&options, pages).map_err(|error| NotServed {
        passing: matches!(error, web::Error::Listen { .. }),
        reason: error.to_string(),
    })?;
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    Ok(Endpoint { address: server.address(), scheme, keep: Box::new(server) })
}

/// For a reason that stays until somebody does something about it.
fn not_served(reason: String) -> NotServed {
    NotServed { reason, passing: false }
}
