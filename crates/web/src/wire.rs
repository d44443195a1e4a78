//! Bytes with a deadline.
//!
//! A time limit on each read or write does not help against a peer that sends a byte just before it is over, again and again. So
//! there is a moment by which all of it must be done, and each call waits no longer than until then.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Wire {
    stream: Arc<TcpStream>,
    deadline: Instant,
}

impl Wire {
    pub fn new(stream: Arc<TcpStream>, patience: Duration) -> Wire {
        Wire { stream, deadline: Instant::now() + patience }
    }

    /// From now on everything must be done within this.
    pub fn allow(&mut self, patience: Duration) {
        self.deadline = Instant::now() + patience;
    }

    /// Nothing more is sent. What the peer still sends is thrown away for a moment: a connection that is closed with unread bytes
    /// is reset, and the peer might never see its answer.
    pub fn finish(&mut self, patience: Duration) {
        self.allow(patience);
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let mut thrown = [0; 1024];
        while matches!(self.read(&mut thrown), Ok(more) if more > 0) {}
    }

    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        (&*self.stream).read(buffer)
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        (&*self.stream).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.stream).flush()
    }
}
