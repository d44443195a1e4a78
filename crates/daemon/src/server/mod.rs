//! The daemon's one thread: it waits for everybody at once, and for nobody.
//!
//! Every descriptor is non-blocking and every peer has a deadline until it has a seat. A message is short, is read whole
//! and answered at once; only a report may be longer than a peer has room for, and waits in memory until it is read or
//! its reader is given up. So the worst that a slow or hostile peer can do is to take up its own share of the
//! connections (`limits`).
//!
//! * `connection`: one peer
//! * `service`: what is done for it
//! * `limits`: how much anybody may take; `nudge`: nobody holds it up with a file
//! * `endpoint`: where metrics and the dashboard are served
//! * `signals`: TERM and INT end it, HUP makes it read its configuration again
//! * `standing`: the configuration in force; `watch`: hearing of it when its files change
//! * `lifetime`: how a daemon comes to be the only one in its folder, and when it ends; `machine_watch`: for whom it does

mod connection;
mod endpoint;
mod lifetime;
mod limits;
mod machine_watch;
mod nudge;
mod service;
mod signals;
mod standing;
mod watch;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use export::{Asker, Desk};
use model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::access::{FileDisposal, GpuAccess};
use crate::listener::Listener;
use crate::log::Log;
use crate::manager::Manager;
use crate::nvml::{Cards, Surveyor};
use crate::picture::Picture;
use crate::registry::{End, Registry, TenantKey};
use crate::shared::Shared;
use crate::traces::Traces;
use crate::{Error, Place, Scope};
use connection::Connection;
use limits::Limits;
use machine_watch::MachineWatch;
use nudge::Nudge;
use signals::Signals;
use standing::Standing;

use endpoint::NextTrial;
pub use endpoint::{Endpoint, NotServed, Serve, Serving};
pub use lifetime::{Options, Outcome, serve};

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watched {
    Stop,
    Reload,
    /// The files of the configuration.
    Files,
    Tenants,
    Admins,
    /// What a connection sends, or has room for.
    Connection(u64),
    /// The end of the process behind a connection.
    Life(u64),
    /// The end of a process that attends.
    Guest(u64),
    /// What becomes of MPS.
    Shared,
    /// A file that somebody has shown is closed.
    Disposal,
    /// Somebody asks for metrics.
    Desk,
    /// Somebody looks at the dashboard.
    Gallery,
}

struct Server {
    scope: Scope,
    standing: Standing,
    tenants: Listener,
    admins: Listener,
    group: Option<u32>,
    admin_group: Option<u32>,
    signals: Signals,
    limits: Limits,
    registry: Registry,
    connections: BTreeMap<u64, Connection>,
    /// Processes that were there when a tenant began, and whose tenants they are.
    guests: BTreeMap<u64, (OwnedFd, TenantKey)>,
    next: u64,
    /// Nobody is let in before this.
    closed_until: Option<Nanos>,
    log: Log,
    shared: Option<Shared>,
    /// How metrics come to be served, if they may be, and by whom they are.
    serve: Option<Serve>,
    endpoint: Option<Endpoint>,
    /// When it is tried again to serve them.
    metrics_trial: Option<NextTrial>,
    asker: Asker,
    desk: Desk,
    viewer: Asker<Picture>,
    gallery: Desk<Picture>,
    place: Place,
    surveyor: Option<Surveyor>,
    /// When it is looked next who is on the GPUs.
    survey_due: Nanos,
    cards: Option<Cards>,
    access: GpuAccess,
    disposal: FileDisposal,
    traces: Traces,
    manager: Manager,
    /// It would end by itself, without tenants.
    on_demand: bool,
    machine_watch: Option<MachineWatch>,
    told_to_end: bool,
    /// The last, so that it is there while connections end with the server.
    nudge: Nudge,
}

impl Server {
    /// One round: waits at most until `until`, and does what there is to do. `false` when it should end.
    fn round(&mut self, until: Option<Nanos>) -> Result<bool, Error> {
        let ready = self.wait(until)?;
        self.nudge.begin();
        let now = board::now();
        let mut go_on = true;
        for (watched, flags) in ready {
            match watched {
                Watched::Stop => go_on = !self.signals.stop.came(),
                Watched::Reload => self.reload_as_told(),
                Watched::Files => self.standing.stir(now),
                Watched::Tenants | Watched::Admins => self.let_in(watched, now),
                Watched::Connection(key) => self.serve_connection(key, flags, now),
                Watched::Life(key) => self.drop_connection(key, End::Gone),
                Watched::Guest(key) => self.drop_guest(key),
                Watched::Shared => self.hear_of_mps(now),
                Watched::Disposal => self.disposal.take_ring(),
                Watched::Desk => self.observe(now),
                Watched::Gallery => self.show(now),
            }
        }
        let late = |connection: &Connection| connection.deadline.is_some_and(|deadline| deadline <= now);
        let late: Vec<_> =
            self.connections.iter().filter(|(_, one)| late(one)).map(|(key, _)| *key).collect();
        late.into_iter().for_each(|key| self.give_up(key));
        self.manager.show_life(now);
        self.reload_if_due(now);
        self.serve_metrics_if_due(now);
        self.registry.clear_tables(now);
        let mut found = self.registry.look(now);
        found.extend(self.registry.inspect_if_due(now));
        found.iter().for_each(|sentence| self.log.say(sentence));
        self.survey_if_due(now);
        self.look_for_late(now);
        self.tell_terms();
        self.keep_changes(now);
        self.nudge.pause();
        Ok(go_on)
    }

    /// Has written down what happened where a request was late, if that is wanted.
    fn look_for_late(&mut self, now: Nanos) {
        let trace = self.registry.trace();
        for members in self.registry.take_late().into_iter().filter(|_| trace.on_miss) {
            self.traces.missed(members, trace.last, now);
        }
        if let Some(news) = self.traces.news() {
            self.log.say(&news);
        }
    }

    /// The next moment at which something must be done though nobody calls.
    fn next_moment(&self) -> Option<Nanos> {
        let deadlines = self.connections.values().filter_map(|connection| connection.deadline);
        let of_tables = self.registry.next_clearance().into_iter().chain(self.registry.next_look());
        let of_tables = of_tables.chain(self.registry.next_inspection()).chain(self.next_survey());
        let of_others =
            self.closed_until.into_iter().chain(self.manager.next_sign()).chain(self.standing.due());
        let of_others = of_others.chain(self.metrics_trial.map(|trial| trial.at));
        let of_others = of_others.chain(self.registry.next_forgetting());
        deadlines.chain(of_others).chain(of_tables).min()
    }

    fn wait(&mut self, until: Option<Nanos>) -> Result<Vec<(Watched, PollFlags)>, Error> {
        let now = board::now();
        self.closed_until = self.closed_until.filter(|until| *until > now);
        let until = self.next_moment().into_iter().chain(until).min();
        // A little later than said: what is waited for has then happened.
        let timeout = until.map(|until| until.since(now) + Nanos::from_millis(1));
        let timeout = timeout.map(|span| Timespec {
            tv_sec: i64::try_from(span.0 / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (span.0 % 1_000_000_000) as i64,
        });
        let (watched, mut descriptors) = self.watched();
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(Error::System(error.into())),
        }
        let ready = watched.into_iter().zip(&descriptors).map(|(watched, fd)| (watched, fd.revents()));
        Ok(ready.filter(|(_, flags)| !flags.is_empty()).collect())
    }

    fn watched(&self) -> (Vec<Watched>, Vec<PollFd<'_>>) {
        let mut list = vec![
            (Watched::Stop, PollFd::new(&self.signals.stop, PollFlags::IN)),
            (Watched::Reload, PollFd::new(&self.signals.reload, PollFlags::IN)),
            (Watched::Desk, PollFd::new(&self.desk, PollFlags::IN)),
            (Watched::Gallery, PollFd::new(&self.gallery, PollFlags::IN)),
            (Watched::Disposal, PollFd::new(&self.disposal, PollFlags::IN)),
        ];
        let files = self.standing.watch();
        list.extend(files.map(|watch| (Watched::Files, PollFd::new(watch, PollFlags::IN))));
        if self.closed_until.is_none() {
            list.push((Watched::Tenants, PollFd::new(&self.tenants, PollFlags::IN)));
            list.push((Watched::Admins, PollFd::new(&self.admins, PollFlags::IN)));
        }
        for (key, connection) in &self.connections {
            let interest =
                if self.must_wait(connection) { PollFlags::empty() } else { connection.interest() };
            list.push((Watched::Connection(*key), PollFd::new(&connection.socket, interest)));
            let life = connection.peer.life.as_ref();
            list.extend(life.map(|life| (Watched::Life(*key), PollFd::new(life, PollFlags::IN))));
        }
        list.extend(self.shared.as_ref().map(|shared| (Watched::Shared, PollFd::new(shared, PollFlags::IN))));
        let guests = self.guests.iter();
        list.extend(guests.map(|(key, (life, _))| (Watched::Guest(*key), PollFd::new(life, PollFlags::IN))));
        list.into_iter().unzip()
    }

    fn hear_of_mps(&mut self, now: Nanos) {
        let (Some(shared), Some(fate)) = (&self.shared, &mut self.registry.fate) else { return };
        fate.forget(now);
        for news in shared.news() {
            self.log.say(&fate.hear(news, now));
        }
    }
}
