//! How a daemon comes to be the only one in its folder, and when it ends.

use std::path::PathBuf;
use std::time::Duration;

use model::{Domain, Kind, Nanos};
use mps::Access;
use rustix::fs::Mode;
use rustix::net::SocketType;

use super::limits::Limits;
use super::signals::Signals;
use super::{BTreeMap, Server};
use crate::listener::Listener;
use crate::log::Log;
use crate::registry::{Fate, Registry};
use crate::shared::Shared;
use crate::{Configuration, Error, Place, Scope, client, configuration};

/// How long a daemon that was started on demand tries to become the one.
const PATIENCE: Nanos = Nanos::from_millis(2_000);

/// How often a daemon that may end by itself sees whether it can still be found.
const LOOK_EVERY: Nanos = Nanos::from_millis(2_000);

/// How a daemon should be.
#[derive(Clone, Debug)]
pub struct Options {
    pub scope: Scope,
    /// Ends after so long without tenants; never, where none is given.
    pub idle: Option<Duration>,
    /// Should there be another daemon, waits for it to end, and is content if it serves.
    pub patient: bool,
    /// Another file than the usual one.
    pub configuration: Option<PathBuf>,
    /// Another domain than the configuration's.
    pub domain: Option<Domain>,
    /// Another policy than the configuration's.
    pub policy: Option<Kind>,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It served, and was told to end or had nothing left to do.
    Served,
    /// Another one serves.
    Another,
}

/// Serves until told otherwise.
pub fn serve(options: &Options) -> Result<Outcome, Error> {
    let place = Place::prepare(options.scope)?;
    let user = rustix::process::geteuid().as_raw();
    let named = options.configuration.is_some();
    let file = options.configuration.clone().or_else(|| configuration::usual_place(options.scope));
    let mut configuration = match &file {
        Some(path) => Configuration::read(path, named, options.scope, user)?,
        None => Configuration::plain(options.scope, user),
    };
    configuration.token.domain = options.domain.unwrap_or(configuration.token.domain);
    options.policy.into_iter().for_each(|kind| configuration.force(kind));
    let Some(_lock) = become_the_one(&place, options)? else { return Ok(Outcome::Another) };
    // Before the sockets: who finds them finds everything.
    let shared = share(&place, options.scope, &configuration)?;
    let mut server = Server::open(&place, options.scope, configuration, file.map(|path| (path, named)))?;
    server.registry.fate = shared.as_ref().map(|shared| Fate::new(shared.pipes().to_owned()));
    server.shared = shared;
    server.policy = options.policy;
    server.log.say(&format!("serves in {}", place.folder().display()));
    let reason = server.run(options.idle.map(Nanos::from))?;
    server.log.say(reason);
    Ok(Outcome::Served)
}

/// The service that the shared domain needs, on a machine with NVIDIA's driver. The software GPU needs none.
fn share(place: &Place, scope: Scope, configuration: &Configuration) -> Result<Option<Shared>, Error> {
    let real = || installation::Machine::here().kernel_module().is_some();
    let needed = configuration.token.domain == Domain::Shared && configuration.mps.unwrap_or_else(real);
    let access = if scope == Scope::Machine { Access::Everybody } else { Access::Owner };
    needed.then(|| Shared::start(place.folder().join("mps"), access)).transpose()
}

/// The lock of the folder. One that was started on demand may meet one that is just ending, and waits for it; but one
/// that answers needs no second.
fn become_the_one(place: &Place, options: &Options) -> Result<Option<std::fs::File>, Error> {
    let deadline = board::now() + PATIENCE;
    loop {
        if let Some(lock) = place.lock()? {
            return Ok(Some(lock));
        }
        if !options.patient {
            return Err(Error::Taken { folder: place.folder().to_owned() });
        }
        if client::answers(place) || board::now() > deadline {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Server {
    fn open(
        place: &Place,
        scope: Scope,
        configuration: Configuration,
        file: Option<(PathBuf, bool)>,
    ) -> Result<Server, Error> {
        let signals = Signals::catch()?;
        let limits = Limits::here();
        let sockets = configuration.sockets;
        let admin_mode = if sockets.admin_group.is_some() { 0o660 } else { 0o600 };
        // The admins' first: who finds the tenants' socket finds a daemon that is complete.
        let admins = Listener::bind(
            &place.admin_socket(),
            SocketType::STREAM,
            Mode::from_raw_mode(admin_mode),
            sockets.admin_group,
        )?;
        let mode = Mode::from_raw_mode(0o660);
        let tenants = Listener::bind(&place.socket(), SocketType::SEQPACKET, mode, sockets.group)?;
        let mut registry = Registry::new(configuration, generation(), place.folder().to_owned());
        registry.configuration_file = file.as_ref().map(|(path, _)| path.clone());
        Ok(Server {
            scope,
            configuration_file: file,
            policy: None,
            tenants,
            admins,
            admin_group: sockets.admin_group,
            signals,
            limits,
            registry,
            connections: BTreeMap::new(),
            guests: BTreeMap::new(),
            next: 0,
            closed_until: None,
            log: Log::default(),
            shared: None,
        })
    }

    /// Goes round until something ends it, and says what.
    fn run(&mut self, idle: Option<Nanos>) -> Result<&'static str, Error> {
        let mut busy = board::now();
        loop {
            let end = idle.map(|idle| busy + idle);
            let look = idle.map(|_| board::now() + LOOK_EVERY);
            if !self.round(end.into_iter().chain(look).min())? {
                return Ok("ends, as it was told to");
            }
            let now = board::now();
            if !self.registry.is_empty() || !self.guests.is_empty() || !self.connections.is_empty() {
                busy = now;
            }
            if idle.is_some_and(|idle| now.since(busy) >= idle) {
                return Ok("ends, since there are no tenants");
            }
            if idle.is_some() && self.registry.is_empty() && !self.tenants.is_reachable() {
                return Ok("ends, since its socket is gone");
            }
        }
    }
}

/// A number that no daemon before this one had: time and process.
fn generation() -> u64 {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    (u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) << 8) ^ u64::from(std::process::id())
}
