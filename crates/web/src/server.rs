//! Who listens, and how many are let in.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use rustls::ServerConfig;

use crate::access::Access;
use crate::peer::PeerName;
use crate::places::Places;
use crate::{Error, Method, Pages, Request, Response, connection, tls};

const STACK: usize = 256 * 1024;
/// How long nobody is let in when the system has no room.
const BREATH: Duration = Duration::from_millis(100);

/// Where to listen.
#[derive(Clone, Debug)]
pub struct Options {
    pub listen: SocketAddr,
    /// The files of a certificate and of its key: TLS and nothing else.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The file of those who may read; everybody, where none is named.
    pub basic_auth: Option<PathBuf>,
}

/// What every connection needs to know.
pub struct Door {
    pages: Arc<dyn Pages>,
    loopback: bool,
    access: Option<Access>,
    pub tls: Option<Arc<ServerConfig>>,
    ending: AtomicBool,
}

impl Door {
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    pub fn answer(&self, request: &Request) -> Response {
        if self.loopback && !request.is_for_loopback() {
            return Response::because(
                403,
                "This is asked for by the name of this machine, such as localhost.",
            );
        }
        // Who wants something changed proves more than who reads, by the same header, to the page that can change it.
        let reads = request.method != Method::Post;
        if reads && self.access.as_ref().is_some_and(|access| !access.admits(request)) {
            let who = "Basic realm=\"ebb\", charset=\"UTF-8\"";
            return Response::because(401, "Who are you?").with("WWW-Authenticate", who);
        }
        self.pages.page(request)
    }
}

/// A server. It ends when it is dropped; connections that are open then end within their deadlines, and answers that go on
/// within a moment.
pub struct Server {
    address: SocketAddr,
    door: Arc<Door>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(options: &Options, pages: Arc<dyn Pages>) -> Result<Server, Error> {
        let tls = options.tls.as_ref().map(|(certificate, key)| tls::read(certificate, key)).transpose()?;
        let access = options.basic_auth.as_deref().map(Access::read).transpose()?;
        let refused = |source| Error::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?);
        let loopback = address.ip().is_loopback();
        let door = Arc::new(Door { pages, loopback, access, tls, ending: AtomicBool::new(false) });
        let (heard, entry) = (stop.clone(), door.clone());
        let thread = thread::Builder::new().name("ebb-web".to_owned());
        let thread = thread.spawn(move || let_in(&listener, &heard, &entry))?;
        Ok(Server { address, door, stop, thread: Some(thread) })
    }

    /// Where it listens, which the system may have chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.door.ending.store(true, Ordering::Relaxed);
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn let_in(listener: &TcpListener, stop: &OwnedFd, door: &Arc<Door>) {
    let places = Places::default();
    loop {
        let mut both = [PollFd::new(listener, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut both, None) {
            Ok(_) if !both[1].revents().is_empty() => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => thread::sleep(BREATH),
        }
        match listener.accept() {
            Ok((stream, peer)) => attend(stream, peer, &places, door),
            Err(error) if is_passing(&error) => {}
            // No descriptors, say. It is not made better by trying at once.
            Err(_) => thread::sleep(BREATH),
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

/// Serves a connection in a thread of its own, or closes it where no place can be had.
fn attend(stream: TcpStream, peer: SocketAddr, places: &Places, door: &Arc<Door>) {
    // What is accepted may have inherited that it does not wait.
    let (Ok(()), Ok(own)) = (stream.set_nonblocking(false), stream.local_addr()) else { return };
    let stream = Arc::new(stream);
    let Some(place) = places.take(PeerName::of(own, peer), &stream) else { return };
    let door = door.clone();
    let serve = move || connection::serve(stream, &place, &door);
    // Where there can be no thread the connection closes, and the place is free again.
    let _ = thread::Builder::new().name("ebb-web-reader".to_owned()).stack_size(STACK).spawn(serve);
}
