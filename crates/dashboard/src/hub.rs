//! Who looks, and what they are sent.
//!
//! One thread looks at the daemon once a second, for all who watch, and only while somebody does. When the last has gone it goes on for a
//! moment, so that a page which is loaded again finds its timeline, and then ends. Watchers wait for news in the threads of
//! their own connections. One that is slow finds that what it has not read is gone, and is told everything anew; nobody
//! waits for it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use daemon::picture::Picture;
use daemon::report::Report;
use daemon::scene::Scene;
use export::Asker;
use web::{Next, Stream};

use crate::chronicle::Chronicle;
use crate::document::Document;
use crate::shelf::Shelf;

/// How often the daemon is looked at.
const PERIOD: Duration = Duration::from_millis(1_000);
/// For how long it goes on being looked at when nobody watches.
const LINGER: Duration = Duration::from_secs(5);
/// The daemon's thread answers within a round; if it does not, it has other troubles.
const PATIENCE: Duration = Duration::from_secs(5);
/// News that are kept for watchers who are late.
const KEPT: usize = 8;

#[derive(Debug)]
pub struct Hub {
    viewer: Asker<Picture>,
    admin: bool,
    state: Mutex<State>,
    news: Condvar,
    pub shelf: Mutex<Shelf>,
}

#[derive(Debug, Default)]
struct State {
    watchers: usize,
    /// When there last was one.
    watched: Option<Instant>,
    looking: bool,
    closed: bool,
    document: Option<Document>,
    /// Only grows, also over times at which nobody looked.
    number: u64,
    recent: VecDeque<(u64, Arc<str>)>,
    picture: Option<(Instant, Arc<Picture>)>,
}

impl Hub {
    pub fn new(viewer: Asker<Picture>, admin: bool) -> Hub {
        Hub { viewer, admin, state: Mutex::default(), news: Condvar::new(), shelf: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody is sent anything any more.
    pub fn close(&self) {
        self.state().closed = true;
        self.news.notify_all();
    }

    /// What was last seen; the daemon is asked where that is long ago.
    pub fn picture(&self) -> Option<Arc<Picture>> {
        let seen = self.state().picture.clone().filter(|(at, _)| at.elapsed() < 2 * PERIOD);
        if let Some((_, picture)) = seen {
            return Some(picture);
        }
        let picture = self.viewer.ask(PATIENCE)?;
        self.shelf().attend(&picture.report);
        self.state().picture = Some((Instant::now(), picture.clone()));
        Some(picture)
    }

    pub fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody who looks, from now on.
    pub fn watch(self: &Arc<Hub>) -> Watcher {
        let mut state = self.state();
        state.watchers += 1;
        if !state.looking {
            let hub = self.clone();
            let thread = thread::Builder::new().name("ebb-dashboard".to_owned());
            // Without a thread there are no news, and the page says so.
            state.looking = thread.spawn(move || hub.look()).is_ok();
        }
        Watcher { hub: self.clone(), seen: None }
    }

    /// Looks until nobody watches.
    fn look(&self) {
        let (mut before, mut chronicle): (Option<Report>, _) = (None, Chronicle::default());
        let mut next = Instant::now();
        while self.is_watched() {
            if let Some(picture) = self.viewer.ask(PATIENCE) {
                self.publish(before.as_ref(), &picture, &mut chronicle);
                before = Some(picture.report.clone());
            }
            // Who was late is not made up for.
            next = (next + PERIOD).max(Instant::now());
            self.rest(next);
        }
    }

    fn publish(&self, before: Option<&Report>, picture: &Arc<Picture>, chronicle: &mut Chronicle) {
        let scene = Scene::new(before, &picture.report);
        let lines = {
            let mut shelf = self.shelf();
            shelf.attend(&picture.report);
            chronicle.read(picture, &mut shelf)
        };
        let mut state = self.state();
        let state = &mut *state;
        state.number += 1;
        match &mut state.document {
            Some(document) => {
                let text = document.advance(picture, &scene, &lines);
                state.recent.push_back((state.number, text.into()));
                let late = state.recent.len().saturating_sub(KEPT);
                state.recent.drain(..late);
            }
            none => *none = Some(Document::new(picture, &scene, self.admin, state.number, lines)),
        }
        state.picture = Some((Instant::now(), picture.clone()));
        self.news.notify_all();
    }

    /// Waits until then, or until all is over.
    fn rest(&self, until: Instant) {
        let mut state = self.state();
        while !state.closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether to go on. If not, what was seen is forgotten: the next watcher begins anew.
    fn is_watched(&self) -> bool {
        let mut state = self.state();
        let lately = state.watched.is_some_and(|at| at.elapsed() < LINGER);
        if !state.closed && (state.watchers > 0 || lately) {
            return true;
        }
        state.looking = false;
        (state.document, state.picture) = (None, None);
        state.recent.clear();
        false
    }
}

/// Somebody who looks.
#[derive(Debug)]
pub struct Watcher {
    hub: Arc<Hub>,
    /// The number of what was sent last.
    seen: Option<u64>,
}

impl Watcher {
    /// What comes next, if it is there.
    fn piece(&mut self, state: &State) -> Option<Arc<str>> {
        if let Some(seen) = self.seen {
            let next = state.recent.iter().find(|(number, _)| *number == seen + 1);
            if let Some((number, text)) = next {
                self.seen = Some(*number);
                return Some(text.clone());
            }
            if seen == state.number {
                return None;
            }
        }
        let document = state.document.as_ref()?;
        self.seen = Some(document.number);
        Some(document.all().into())
    }
}

impl Stream for Watcher {
    fn next(&mut self, patience: Duration) -> Next {
        let until = Instant::now() + patience;
        let hub = self.hub.clone();
        let mut state = hub.state();
        loop {
            if state.closed {
                return Next::End;
            }
            if let Some(piece) = self.piece(&state) {
                return Next::Piece(piece);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Nothing;
            }
            state = hub.news.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut state = self.hub.state();
        state.watchers -= 1;
        state.watched = Some(Instant::now());
    }
}
