//! Where metrics are served, and beside them the dashboard.
//!
//! The daemon does not serve them itself: who does is handed in by whoever starts it, is told where to listen and is given an asker.
//! Questions come to the desk, which is waited for together with everything else.

use std::net::SocketAddr;

use export::Asker;
use model::Nanos;

use super::Server;
use super::standing::unix_time;
use crate::Place;
use crate::configuration::Metrics;
use crate::nvml::Surveyor;
use crate::picture::Picture;

/// How often it is looked who is on the GPUs, while there are tenants.
const SURVEY_EVERY: Nanos = Nanos::from_millis(1_000);
/// What is older was found before the tenants that are there now.
const SURVEY_STALE: Nanos = Nanos::from_millis(2_500);
/// How soon it is asked again what a look has found.
const SURVEY_SOON: Nanos = Nanos::from_millis(50);

/// How metrics come to be served.
pub type Serve = fn(Serving<'_>) -> Result<Endpoint, NotServed>;

/// Why metrics cannot be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotServed {
    pub reason: String,
    /// It may pass by itself: the address is taken, or not there yet.
    pub passing: bool,
}

/// For so long is waited before an address is tried again: longer every time, up to a minute.
const FIRST_PAUSE: Nanos = Nanos::from_millis(1_000);
const LONGEST_PAUSE: Nanos = Nanos::from_millis(60_000);

/// When an address is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextTrial {
    pub at: Nanos,
    pause: Nanos,
}

impl NextTrial {
    fn after(before: Option<NextTrial>, now: Nanos) -> NextTrial {
        let pause = before.map_or(FIRST_PAUSE, |before| Nanos(before.pause.0 * 2).min(LONGEST_PAUSE));
        NextTrial { at: now + pause, pause }
    }
}

/// What whoever serves needs to know.
pub struct Serving<'a> {
    /// Where, by the configuration.
    pub wanted: &'a Metrics,
    /// For metrics.
    pub asker: Asker,
    /// For the dashboard.
    pub viewer: Asker<Picture>,
    /// Where the daemon itself is asked for changes.
    pub place: &'a Place,
}

/// Somebody who serves, until this is dropped.
pub struct Endpoint {
    pub address: SocketAddr,
    /// How it is asked for: `http` or `https`.
    pub scheme: &'static str,
    pub keep: Box<dyn Send>,
}

impl Server {
    /// Has metrics served as the configuration says, in place of how they were served before. That they cannot be is no reason
    /// not to serve tenants.
    pub(super) fn serve_metrics(&mut self) {
        self.metrics_trial = None;
        self.try_to_serve_metrics();
    }

    /// Tries again where the last trial failed for a reason that may have passed. It is said once that it failed, and once that it
    /// did not.
    pub(super) fn serve_metrics_if_due(&mut self, now: Nanos) {
        if self.metrics_trial.is_some_and(|trial| trial.at <= now) {
            self.try_to_serve_metrics();
        }
    }

    fn try_to_serve_metrics(&mut self) {
        let before = self.metrics_trial.take();
        // Before the next one, which may want the same address.
        self.endpoint = None;
        (self.registry.metrics, self.registry.metrics_trouble) = (None, None);
        self.registry.dashboard = None;
        let wanted = self.registry.metrics_wanted().clone();
        let (Some(serve), Some(listen)) = (self.serve, wanted.listen) else { return };
        let (asker, viewer) = (self.asker.clone(), self.viewer.clone());
        match serve(Serving { wanted: &wanted, asker, viewer, place: &self.place }) {
            Ok(endpoint) => {
                let Endpoint { address, scheme, .. } = &endpoint;
                let url = format!("{scheme}://{address}/metrics");
                let open = !address.ip().is_loopback() && wanted.basic_auth.is_none();
                let beware = if open { ", for whoever can reach that" } else { "" };
                self.log.say(&format!("serves metrics at {url}{beware}"));
                self.registry.metrics = Some(url);
                self.registry.dashboard = wanted.dashboard.enabled.then(|| format!("{scheme}://{address}/"));
                self.endpoint = Some(endpoint);
                self.survey();
            }
            Err(NotServed { reason, passing }) => {
                self.metrics_trial = passing.then(|| NextTrial::after(before, board::now()));
                let again = if passing { "; it is tried again" } else { "" };
                if before.is_none() {
                    self.log.say(&format!("serves no metrics at {listen}: {reason}{again}"));
                }
                self.registry.metrics_trouble = Some(format!("There are no metrics: {reason}{again}."));
            }
        }
    }

    /// Has the registry know who is on the GPUs, as it was found last.
    pub(super) fn survey(&mut self) {
        let start = || Surveyor::start(self.cards, self.place.folder().to_owned());
        self.surveyor = self.surveyor.take().or_else(start);
        let found = self.surveyor.as_ref().map(Surveyor::latest);
        let news = found.map(|found| self.registry.take_survey(found)).unwrap_or_default();
        news.iter().for_each(|sentence| self.log.say(sentence));
    }

    /// Has it look again if it is time. Without tenants nobody wants to know, and a library that stays open keeps GPUs awake.
    pub(super) fn survey_if_due(&mut self, now: Nanos) {
        if self.registry.is_empty() {
            self.surveyor.take_if(|_| self.endpoint.is_none());
            self.survey_due = Nanos::ZERO;
            return;
        }
        if now >= self.survey_due {
            self.survey();
            let fresh = self.registry.surveyed.is_some_and(|at| now.since(at) < SURVEY_STALE);
            self.survey_due = now + if fresh { SURVEY_EVERY } else { SURVEY_SOON };
        }
    }

    /// When that is, if it is wanted at all.
    pub(super) fn next_survey(&self) -> Option<Nanos> {
        (!self.registry.is_empty()).then_some(self.survey_due)
    }

    /// Answers those who ask for metrics.
    pub(super) fn observe(&mut self, now: Nanos) {
        self.survey();
        self.desk.answer(|| self.registry.observe(now));
    }

    /// Answers those who look at the dashboard.
    pub(super) fn show(&mut self, now: Nanos) {
        self.survey();
        self.gallery.answer(|| self.registry.picture(now, unix_time()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_have_an_end() {
        let mut trial = NextTrial::after(None, Nanos::ZERO);
        let mut pauses = Vec::new();
        for _ in 0..10 {
            pauses.push(trial.pause.0 / 1_000_000_000);
            trial = NextTrial::after(Some(trial), trial.at);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    }
}
