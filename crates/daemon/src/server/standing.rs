//! The configuration in force, and how it comes to be another one.
//!
//! It is read again when somebody says so (HUP, or an admin) and when its files change. One that is wrong changes nothing
//! but what is said about it. The number of the configuration counts those that were in force: to read the same again is no
//! new one.

use std::time::{SystemTime, UNIX_EPOCH};

use model::{Kind, Nanos};

use super::Server;
use super::watch::{self, Watch};
use crate::registry::read_now;
use crate::report::Entry;
use crate::request::Reloaded;
use crate::{Error, Loaded, Sources, Wanted};

/// What the server knows of its configuration.
pub(super) struct Standing {
    /// None, where there is no place for one.
    pub sources: Option<Sources>,
    /// As it was read, before anything that was said when the daemon was started.
    pub loaded: Loaded,
    /// Said when the daemon was started, and so above all files.
    pub policy: Option<Kind>,
    pub domain: Option<Wanted>,
    watch: Option<Watch>,
    /// When the files are to be read, and when they began to change.
    due: Option<(Nanos, Nanos)>,
}

impl Standing {
    pub fn new(sources: Option<Sources>, loaded: Loaded) -> Standing {
        Standing { sources, loaded, policy: None, domain: None, watch: None, due: None }
    }

    pub fn watch(&self) -> Option<&Watch> {
        self.watch.as_ref()
    }

    pub fn due(&self) -> Option<Nanos> {
        self.due.map(|(due, _)| due)
    }

    /// The files may have changed.
    pub fn stir(&mut self, now: Nanos) {
        if self.watch.as_ref().is_some_and(Watch::stirred) {
            let since = self.due.map_or(now, |(_, since)| since);
            self.due = Some(((now + watch::QUIET).min(since + watch::AT_MOST), since));
        }
    }

    /// Begins to listen, before the files are read. Without it there is still HUP.
    pub fn listen(&mut self) -> Result<(), std::io::Error> {
        self.due = None;
        self.watch = None;
        self.watch = self.sources.as_ref().map(Watch::of).transpose()?;
        Ok(())
    }

    /// What is in force, key by key.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = self.loaded.entries.clone();
        let mut put = |key: &str, value: &str, from: &str| {
            entries.retain(|entry| entry.key != key);
            let (key, value, from) = (key.to_owned(), value.to_owned(), Some(from.to_owned()));
            entries.push(Entry { key, value, from });
        };
        if let Some(kind) = self.policy {
            put("policy.kind", kind.name(), "--policy");
        }
        match self.domain {
            Some(Wanted::Auto) => put("domain", "auto", "--domain"),
            Some(Wanted::This(domain)) => put("domain", &domain.to_string(), "--domain"),
            None => {}
        }
        entries
    }
}

impl Server {
    /// Somebody sent HUP. A service manager that did so waits to hear that it was done.
    pub(super) fn reload_as_told(&mut self) {
        if self.signals.reload.came() {
            self.manager.reloading(board::now());
            // What came of it is in the log and in the report.
            let _ = self.reload(true);
            self.manager.ready("has read its configuration again");
        }
    }

    /// The files are read again if they have been left alone for a moment.
    pub(super) fn reload_if_due(&mut self, now: Nanos) {
        if self.standing.due().is_some_and(|due| due <= now) {
            // What came of it is in the log and in the report.
            let _ = self.reload(false);
        }
    }

    /// Reads the configuration again; a wrong one changes nothing but the log and the report. Where nobody `asked`, nothing
    /// is said about nothing new.
    pub(super) fn reload(&mut self, asked: bool) -> Result<Reloaded, Error> {
        if let Err(error) = self.standing.listen() {
            self.log.say(&format!("changes of the configuration are not heard of ({error}); send HUP"));
        }
        let Some(sources) = &self.standing.sources else {
            return Err(Error::Refused("this daemon has no place for a configuration".to_owned()));
        };
        match Loaded::read(sources) {
            Ok(loaded) => Ok(self.take_into_use(loaded, asked)),
            Err(error) => {
                let told = error.to_string();
                if asked || self.registry.configured.error.as_ref() != Some(&told) {
                    self.log.say(&format!("{told}; the last good configuration stays in force"));
                }
                self.registry.configured.error = Some(told);
                self.registry.reload.successful = false;
                Err(error)
            }
        }
    }

    fn take_into_use(&mut self, loaded: Loaded, asked: bool) -> Reloaded {
        let changed = loaded.configuration != self.standing.loaded.configuration;
        let configured = &mut self.registry.configured;
        configured.generation += u64::from(changed);
        configured.error = None;
        configured.loaded_ns = unix_time();
        configured.loaded = board::now();
        configured.files = loaded.files.iter().map(|file| file.display().to_string()).collect();
        let generation = configured.generation;
        self.registry.reload = read_now();
        if changed {
            self.log.say(&format!("configuration {generation} is in force"));
        } else if asked {
            self.log.say(&format!("configuration {generation} was read again, and nothing has changed"));
        }
        let mut configuration = loaded.configuration.clone();
        self.standing.loaded = loaded;
        self.standing.policy.into_iter().for_each(|kind| configuration.force(kind));
        self.standing.domain.into_iter().for_each(|wanted| configuration.share(wanted));
        self.admin_group = configuration.sockets.admin_group;
        let (domain, other) = (self.registry.domain(), configuration.token.domain);
        // Who leaves the choice to us has got it.
        let differs = domain != other && !configuration.automatic;
        if changed || asked {
            let before = self.registry.metrics_wanted().clone();
            self.registry.configure(configuration);
            let now = self.registry.metrics_wanted();
            // Files that are named may have changed though their names have not.
            if before != *now
                || now.tls.is_some()
                || now.basic_auth.is_some()
                || now.dashboard.admin_token.is_some()
            {
                self.serve_metrics();
            }
        }
        self.registry.remark = differs.then(|| {
            format!("The configuration asks for the {other} domain, which begins with the next daemon.")
        });
        Reloaded { config_generation: generation, changed }
    }
}

/// Nanoseconds since 1970, as others tell the time.
pub(super) fn unix_time() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
