//! The page for monitoring.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use export::{Asker, Format};

use crate::{Method, Pages, Request, Response};

/// The daemon's thread answers within a round; if it does not, it has other troubles.
const PATIENCE: Duration = Duration::from_secs(5);
/// Who asks again so soon is given the same: however many readers there are, the daemon is asked ten times a second.
const FRESH: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Metrics {
    asker: Asker,
    /// What was written last in each format, and when.
    last: Mutex<[Option<(Instant, String)>; 2]>,
}

impl Metrics {
    pub fn new(asker: Asker) -> Metrics {
        Metrics { asker, last: Mutex::new([None, None]) }
    }

    fn metrics(&self, format: Format) -> Response {
        // Held while the daemon is asked: who comes meanwhile wants the same answer.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = &mut last[format as usize];
        if let Some((_, text)) = last.as_ref().filter(|(at, _)| at.elapsed() < FRESH) {
            return Response::new(format.media_type(), text.as_str());
        }
        let Some(observation) = self.asker.ask(PATIENCE) else {
            return Response::because(503, "The daemon does not answer.");
        };
        let text = export::text(&observation, format);
        *last = Some((Instant::now(), text.clone()));
        Response::new(format.media_type(), text)
    }
}

impl Pages for Metrics {
    fn page(&self, request: &Request) -> Response {
        if request.method == Method::Post {
            return Response::read_only();
        }
        match request.path.as_str() {
            "/metrics" => self.metrics(Format::for_reader(&request.accept)),
            "/" => Response::because(200, "This is an ebb daemon. Metrics are at /metrics."),
            _ => Response::because(404, "There is nothing here. Metrics are at /metrics."),
        }
    }
}
