//! How a daemon comes to be the only one in its folder, and when it ends.

use std::path::{Path, PathBuf};
use std::time::Duration;

use model::{Domain, Kind, Nanos};
use mps::Access;
use rustix::fs::Mode;
use rustix::net::SocketType;

use super::endpoint::Serve;
use super::limits::Limits;
use super::machine_watch::MachineWatch;
use super::nudge::Nudge;
use super::signals::Signals;
use super::standing::{Standing, unix_time};
use super::{BTreeMap, Server};
use crate::access::{CardFiles, FileDisposal, GpuAccess};
use crate::listener::Listener;
use crate::log::Log;
use crate::manager::{self, Manager};
use crate::nvml::Cards;
use crate::registry::{Configured, Fate, Registry, remembered};
use crate::shared::Shared;
use crate::traces::Traces;
use crate::{
    Choice, Configuration, Error, Loaded, Place, Scope, Sources, Wanted, automatic, client, configuration,
};

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
    /// Ends when the machine's daemon comes.
    pub makes_room: bool,
    /// Should there be another daemon, takes its place and its tenants. One that was started on demand and has none is
    /// replaced in any case.
    pub replace: bool,
    /// Another file than the usual one.
    pub configuration: Option<PathBuf>,
    /// Another domain than the configuration's.
    pub domain: Option<Wanted>,
    /// Another policy than the configuration's.
    pub policy: Option<Kind>,
    /// How metrics are served where the configuration wants them to be; not at all, where none is given.
    pub metrics: Option<Serve>,
    /// How it is seen who is on software GPUs.
    pub cards: Option<Cards>,
    /// Which files software GPUs are.
    pub card_files: Option<CardFiles>,
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
    // Others ask where it is, and are elsewhere.
    let file = file.map(std::path::absolute).transpose()?;
    let sources = file.map(|file| Sources::beside(&file, named, options.scope, user));
    let mut standing = Standing::new(sources, Loaded::plain(options.scope, user));
    let unheard = standing.listen().err();
    if let Some(sources) = &standing.sources {
        standing.loaded = Loaded::read(sources)?;
    }
    let mut configuration = standing.loaded.configuration.clone();
    options.domain.into_iter().for_each(|wanted| configuration.share(wanted));
    options.policy.into_iter().for_each(|kind| configuration.force(kind));
    let Some(_lock) = become_the_one(&place, options)? else { return Ok(Outcome::Another) };
    let choice = configuration.automatic.then(|| automatic::choice(&configuration, &place.mps()));
    configuration.token.domain = choice.map_or(configuration.token.domain, |choice| choice.domain);
    // Before the sockets: who finds them finds everything.
    let shared = share(&place, options.scope, &configuration)?;
    (standing.policy, standing.domain) = (options.policy, options.domain);
    let mut server = Server::open(&place, options.scope, configuration, standing)?;
    server.registry.fate = shared.as_ref().map(|shared| Fate::new(shared.pipes().to_owned()));
    server.shared = shared;
    server.registry.choice = choice;
    if let Some(Choice { domain, because }) = choice {
        server.log.say(&format!("chose the {domain} domain: {}", because.sentence()));
    }
    if let Some(error) = unheard {
        server.log.say(&format!("changes of the configuration are not heard of ({error}); send HUP"));
    }
    server.serve = options.metrics;
    server.cards = options.cards;
    server.access.cards = options.card_files;
    server.on_demand = options.patient;
    server.serve_metrics();
    if options.patient {
        // All paths are known. Nobody who wants to remove or unmount the folder it was started in is kept from that.
        let _ = std::env::set_current_dir("/");
    }
    let serves = format!("serves in {}", place.folder().display());
    server.log.say(&serves);
    server.manager.ready(&serves);
    server.machine_watch = options.makes_room.then(MachineWatch::new);
    let reason = server.run(options.idle.map(Nanos::from));
    // Nor may anybody hold up the end.
    server.nudge.begin();
    let reason = reason?;
    server.manager.stopping();
    server.log.say(reason);
    Ok(Outcome::Served)
}

/// The service that the shared domain needs, on a machine with NVIDIA's driver. The software GPU needs none.
fn share(place: &Place, scope: Scope, configuration: &Configuration) -> Result<Option<Shared>, Error> {
    let real = || installation::Machine::here().kernel_module().is_some();
    let needed = configuration.token.domain == Domain::Shared && configuration.mps.unwrap_or_else(real);
    let access = if scope == Scope::Machine { Access::Everybody } else { Access::Owner };
    needed.then(|| Shared::start(place.mps(), access)).transpose()
}

/// The lock of the folder. One that was started on demand may meet one that is just ending, and waits for it; but one
/// that answers needs no second. All others have the one that is there end, if it may.
fn become_the_one(place: &Place, options: &Options) -> Result<Option<std::fs::File>, Error> {
    let deadline = board::now() + PATIENCE;
    let mut replaced = None;
    loop {
        if let Some(lock) = place.lock()? {
            let said = replaced.map(|pid| format!("takes the place of daemon {pid}"));
            said.into_iter().for_each(|said| Log::default().say(&said));
            return Ok(Some(lock));
        }
        if options.patient {
            if client::answers(place) || board::now() > deadline {
                return Ok(None);
            }
        } else if board::now() > deadline {
            return Err(Error::Taken { folder: place.folder().to_owned() });
        } else {
            match client::end(place, !options.replace) {
                Ok(ended) => replaced = Some(ended.pid),
                Err(Error::Refused(said)) => {
                    return Err(Error::Busy { folder: place.folder().to_owned(), said });
                }
                // It is just beginning or ending, or does not answer.
                Err(_) => {}
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Server {
    fn open(
        place: &Place,
        scope: Scope,
        configuration: Configuration,
        standing: Standing,
    ) -> Result<Server, Error> {
        let signals = Signals::catch()?;
        let limits = Limits::here();
        let sockets = configuration.sockets;
        let admin_mode = if sockets.admin_group.is_some() { 0o660 } else { 0o600 };
        let mut opened = manager::sockets();
        let mut listen = |path: &Path, kind, mode, group| match Listener::adopt(path, kind, &mut opened)? {
            Some(listener) => Ok(listener),
            None => Listener::bind(path, kind, Mode::from_raw_mode(mode), group),
        };
        // The admins' first: who finds the tenants' socket finds a daemon that is complete.
        let admins = listen(&place.admin_socket(), SocketType::STREAM, admin_mode, sockets.admin_group)?;
        let tenants = listen(&place.socket(), SocketType::SEQPACKET, 0o660, sockets.group)?;
        let mut registry = Registry::new(configuration, generation(), place.folder().to_owned());
        let main = standing.sources.as_ref().and_then(Sources::main);
        registry.configured = Configured {
            file: main.map(|path| path.display().to_string()),
            files: standing.loaded.files.iter().map(|file| file.display().to_string()).collect(),
            generation: 1,
            error: None,
            loaded_ns: unix_time(),
            loaded: board::now(),
        };
        let mut log = Log::default();
        match remembered::read(place.folder()) {
            Ok(changes) => registry.remember(changes),
            Err(error) => log.say(&format!("what was changed about tenants before is not known: {error}")),
        }
        let (asker, desk) = export::desk()?;
        let (viewer, gallery) = export::desk()?;
        Ok(Server {
            scope,
            standing,
            tenants,
            admins,
            group: sockets.group,
            admin_group: sockets.admin_group,
            signals,
            limits,
            registry,
            connections: BTreeMap::new(),
            guests: BTreeMap::new(),
            next: 0,
            closed_until: None,
            log,
            shared: None,
            serve: None,
            endpoint: None,
            metrics_trial: None,
            asker,
            desk,
            viewer,
            gallery,
            place: place.clone(),
            surveyor: None,
            survey_due: Nanos::ZERO,
            cards: None,
            access: GpuAccess::new(place.folder().to_owned()),
            disposal: FileDisposal::new()?,
            traces: Traces::new(place.folder().join("traces")),
            manager: Manager::here(),
            on_demand: false,
            machine_watch: None,
            told_to_end: false,
            nudge: Nudge::new()?,
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
            if self.told_to_end {
                return Ok("ends, as an admin wants it to");
            }
            let now = board::now();
            let domain = self.registry.domain();
            if self.machine_watch.as_mut().is_some_and(|watch| watch.has_come(domain, now)) {
                return Ok("ends, to make room for the machine's daemon");
            }
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
    (unix_time() << 8) ^ u64::from(std::process::id())
}
