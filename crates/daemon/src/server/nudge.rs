//! Nobody holds the daemon's thread up with a file that does not let itself be closed.
//!
//! A descriptor that somebody sends and we do not take is closed by the kernel, in the thread that reads on or closes the
//! connection. For most files that takes no time. But a socket can be told to linger: closing it takes until all is sent, for
//! as long as its owner likes. Any signal ends such a wait. So while the thread does something for others it has a timer that
//! sends it one every few milliseconds, to which it does nothing. Nobody else notices, since hardly any round takes that long.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use libc::{itimerspec, timespec};
use signal_hook::consts::SIGALRM;

/// For so long one message, or the end of one connection, may hold us up.
const EVERY: libc::c_long = 2_000_000;

/// A timer for the thread that has made it.
pub(super) struct Nudge(libc::timer_t);

impl Nudge {
    pub(super) fn new() -> io::Result<Nudge> {
        // SAFETY: it does nothing, which may be done at any time.
        unsafe { signal_hook::low_level::register(SIGALRM, || {}) }?;
        // SAFETY: zero is a value of all its fields.
        let mut event: libc::sigevent = unsafe { MaybeUninit::zeroed().assume_init() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGALRM;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_pid();
        let mut timer = ptr::null_mut();
        // SAFETY: an event that lives as long as the call, and a place for the answer.
        match unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) } {
            0 => Ok(Nudge(timer)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// From now on nothing is waited for.
    pub(super) fn begin(&self) {
        self.set(EVERY);
    }

    /// Now it is waited for what there is to do.
    pub(super) fn pause(&self) {
        self.set(0);
    }

    fn set(&self, span: libc::c_long) {
        let span = timespec { tv_sec: 0, tv_nsec: span };
        let spans = itimerspec { it_interval: span, it_value: span };
        // SAFETY: our own timer, and spans that live as long as the call. It fails for other timers and spans only.
        unsafe { libc::timer_settime(self.0, 0, &spans, ptr::null_mut()) };
    }
}

impl Drop for Nudge {
    fn drop(&mut self) {
        // SAFETY: our own timer, which nobody uses any more.
        unsafe { libc::timer_delete(self.0) };
    }
}
