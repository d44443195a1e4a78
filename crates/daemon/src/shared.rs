//! The shared domain: MPS, kept running by a thread of its own.
//!
//! To start the service, to ask it how it is and to end it takes seconds, and the daemon's one thread waits for nobody.
//! So another one looks after it and tells the daemon what has happened: by a queue, and by a descriptor that becomes
//! readable when there is something in it.
//!
//! A fault of one client takes all clients along. The server usually gets over it when the last of them has gone; one
//! that does not, because a client hangs in it, would refuse everybody who comes, so it is started anew after a while.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mps::{Access, Event, Service};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::Error;

/// How often it is looked how the service is.
const LOOK: Duration = Duration::from_millis(250);
/// How long a server may stay in a fault.
const RECOVERY: Duration = Duration::from_secs(10);
/// When to try again what failed.
const AGAIN: Duration = Duration::from_secs(5);

/// What has become of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A client's fault took the other clients along; the service's words.
    Fault(String),
    /// It is gone, or does not get over a fault, and is started anew.
    Down(String),
    /// It runs again.
    Up,
    /// It cannot be started; it is tried again.
    Failed(String),
}

/// The service, and the thread that has it. Dropped, both are ended, the service when its last client has gone.
pub struct Shared {
    pipes: PathBuf,
    news: Receiver<News>,
    bell: OwnedFd,
    /// Dropped first: the thread ends when nobody could tell it anything any more.
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Shared {
    /// Returns when the service answers.
    pub fn start(folder: PathBuf, access: Access) -> Result<Shared, Error> {
        let program = mps::find()?;
        let service = Service::keep(&program, &folder, access)?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = eventfd(0, flags).map_err(|error| Error::System(error.into()))?;
        let (teller, news) = channel();
        let (end, ended) = channel();
        let pipes = service.pipes();
        let voice = Voice { teller, bell: bell.try_clone()? };
        let watch = Watch { program, folder, access, voice, ended, fault: None };
        let thread = std::thread::Builder::new().name("ebb-mps".to_owned());
        let thread = thread.spawn(move || watch.keep(Some(service)))?;
        Ok(Shared { pipes, news, bell, end: Some(end), thread: Some(thread) })
    }

    /// Where clients find it.
    pub fn pipes(&self) -> &std::path::Path {
        &self.pipes
    }

    /// What has happened since this was last asked.
    pub fn news(&self) -> Vec<News> {
        let mut count = [0; 8];
        // Nothing to read means that nobody rang, and then there is nothing in the queue that was not seen.
        let _ = rustix::io::read(&self.bell, &mut count);
        self.news.try_iter().collect()
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It ends the service or leaves it to its clients, and has its own bounds.
            let _ = thread.join();
        }
    }
}

struct Voice {
    teller: Sender<News>,
    bell: OwnedFd,
}

impl Voice {
    fn tell(&self, news: News) {
        let _ = self.teller.send(news);
        // A count that is full has rung already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

struct Watch {
    program: PathBuf,
    folder: PathBuf,
    access: Access,
    voice: Voice,
    ended: Receiver<()>,
    /// Since when a server has been in a fault.
    fault: Option<Instant>,
}

impl Watch {
    fn keep(mut self, mut service: Option<Service>) {
        let mut pause = LOOK;
        while self.ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            pause = LOOK;
            if let Some(running) = &mut service {
                if let Some(reason) = self.look(running) {
                    self.voice.tell(News::Down(reason));
                    // Ended before another begins in the same folder.
                    service.take().into_iter().for_each(Service::end);
                }
                continue;
            }
            match Service::keep(&self.program, &self.folder, self.access) {
                Ok(started) => {
                    service = Some(started);
                    self.voice.tell(News::Up);
                }
                Err(error) => {
                    self.voice.tell(News::Failed(error.to_string()));
                    pause = AGAIN;
                }
            }
        }
    }

    /// Why the service must be started anew, if it must.
    fn look(&mut self, service: &mut Service) -> Option<String> {
        for event in service.look() {
            match event {
                Event::Fault(words) | Event::ServerGone(words) => {
                    self.voice.tell(News::Fault(words));
                    self.fault.get_or_insert_with(Instant::now);
                }
                Event::ControlGone => {
                    self.fault = None;
                    return Some("the control daemon is gone".to_owned());
                }
            }
        }
        let since = self.fault?;
        if service.is_well() {
            self.fault = None;
        } else if since.elapsed() > RECOVERY {
            self.fault = None;
            return Some("the server does not get over a fault".to_owned());
        }
        None
    }
}
