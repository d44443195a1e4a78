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
use crate::picture::Picture;

/// How metrics come to be served.
pub type Serve = fn(Serving<'_>) -> Result<Endpoint, String>;

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
                self.surveyor = self.surveyor.take().or_else(crate::nvml::Surveyor::start);
            }
            Err(reason) => {
                self.log.say(&format!("serves no metrics at {listen}: {reason}"));
                self.registry.metrics_trouble = Some(format!("There are no metrics: {reason}."));
            }
        }
    }

    /// Answers those who ask for metrics.
    pub(super) fn observe(&mut self, now: Nanos) {
        if let Some(surveyor) = &self.surveyor {
            self.registry.survey = surveyor.latest();
        }
        self.desk.answer(|| self.registry.observe(now));
    }

    /// Answers those who look at the dashboard.
    pub(super) fn show(&mut self, now: Nanos) {
        if let Some(surveyor) = &self.surveyor {
            self.registry.survey = surveyor.latest();
        }
        self.gallery.answer(|| self.registry.picture(now, unix_time()));
    }
}
