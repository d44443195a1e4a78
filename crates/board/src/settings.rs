//! What the daemon decides for all seats of a GPU.

use model::{Domain, Nanos};

use crate::layout::Header;
use crate::sync::Ordering;

/// The rules of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How the tenants' contexts share the GPU. In the shared domain nobody needs the token.
    pub domain: Domain,
    /// How long a seat has the token while others want it.
    pub quantum: Nanos,
    /// A holder with nothing to do for so long passes the token on.
    pub idle: Nanos,
    /// A holder that has shown no life for so long loses the token.
    pub grace: Nanos,
    /// A best-effort tenant whose work has stood still for this long beside programs without ebb takes an ordinary timeslice
    /// for a part of the time. `None`: it yields for as long as they have work.
    pub starve_after: Option<Nanos>,
    /// By how much a latency tenant without an objective may be slower than alone, in thousandths.
    pub tolerance: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            domain: Domain::Isolated,
            quantum: Nanos::from_millis(50),
            idle: Nanos::from_micros(500),
            grace: Nanos::from_millis(250),
            starve_after: None,
            tolerance: 50,
        }
    }
}

impl Settings {
    /// The nearest settings that can work. Whoever writes them to a board or reads them from one gets these: a board may
    /// say anything.
    pub fn sane(self) -> Settings {
        let within = |time: Nanos, least: Nanos, most: Nanos| time.clamp(least, most);
        let minute = Nanos::from_millis(60_000);
        Settings {
            domain: self.domain,
            quantum: within(self.quantum, Nanos::from_micros(100), minute),
            idle: within(self.idle, Nanos::from_micros(10), minute),
            grace: within(self.grace, Nanos::from_millis(1), minute),
            starve_after: self.starve_after.map(|span| span.max(Nanos::from_millis(100))),
            // Ten times as slow as alone is no tolerance any more.
            tolerance: self.tolerance.min(9_000),
        }
    }

    pub(crate) fn write(self, header: &Header) {
        let sane = self.sane();
        header.quantum.store(sane.quantum.0, Ordering::Relaxed);
        header.idle.store(sane.idle.0, Ordering::Relaxed);
        header.grace.store(sane.grace.0, Ordering::Relaxed);
        let millis = |span: Nanos| u32::try_from(span.0 / 1_000_000).unwrap_or(u32::MAX);
        header.starve_after.store(sane.starve_after.map_or(0, millis), Ordering::Relaxed);
        header.tolerance.store(sane.tolerance, Ordering::Relaxed);
        header.domain.store(u32::from(sane.domain == Domain::Shared), Ordering::Relaxed);
    }

    pub(crate) fn read(header: &Header) -> Settings {
        let of = |word: &std::sync::atomic::AtomicU64| Nanos(word.load(Ordering::Relaxed));
        // A number that means nothing is the one that needs nobody's help.
        let shared = header.domain.load(Ordering::Relaxed) == 1;
        let domain = if shared { Domain::Shared } else { Domain::Isolated };
        let tolerance = header.tolerance.load(Ordering::Relaxed);
        let (quantum, idle, grace) = (of(&header.quantum), of(&header.idle), of(&header.grace));
        let starve_after = Nanos::from_millis(header.starve_after.load(Ordering::Relaxed).into());
        let starve_after = Some(starve_after).filter(|span| *span > Nanos::ZERO);
        Settings { domain, quantum, idle, grace, starve_after, tolerance }.sane()
    }
}
