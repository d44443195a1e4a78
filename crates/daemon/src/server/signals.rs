//! Signals as descriptors, so that they can be waited for together with everything else.

use std::io::{self, Read as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// A signal, or one of several, as something to wait for.
#[derive(Debug)]
pub struct Call(UnixStream);

impl Call {
    fn on(signals: &[i32]) -> io::Result<Call> {
        let (here, there) = UnixStream::pair()?;
        here.set_nonblocking(true)?;
        for signal in signals {
            pipe::register(*signal, there.try_clone()?)?;
        }
        Ok(Call(here))
    }

    /// Whether it came since the last time.
    pub fn came(&mut self) -> bool {
        let mut any = [0; 64];
        self.0.read(&mut any).is_ok_and(|count| count > 0)
    }
}

impl AsFd for Call {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The signals a daemon obeys.
#[derive(Debug)]
pub struct Signals {
    pub stop: Call,
    pub reload: Call,
}

impl Signals {
    pub fn catch() -> io::Result<Signals> {
        Ok(Signals { stop: Call::on(&[SIGTERM, SIGINT])?, reload: Call::on(&[SIGHUP])? })
    }
}
