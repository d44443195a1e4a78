//! The clock that all workers of a run share, and waiting by it.

use std::num::NonZeroU64;

use model::Nanos;
use rustix::thread::{clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// So long before a moment that matters a sleeper wakes and spins: sleeps of a machine end a little late, and some
/// machines' sleeps later.
const SPIN: Nanos = Nanos::from_micros(100);

/// The machine's monotonic clock.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Nanos(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Lets this thread's sleeps end when they should: by default the kernel may add 50 µs.
pub fn be_punctual() {
    // One that refuses leaves us less punctual, and the figures show it.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Sleeps until a moment, and some more as it happens.
pub fn sleep_until(moment: Nanos) {
    let seconds = i64::try_from(moment.0 / 1_000_000_000).unwrap_or(i64::MAX);
    let until = Timespec { tv_sec: seconds, tv_nsec: (moment.0 % 1_000_000_000) as _ };
    while now() < moment && clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err() {}
}

/// Returns at the moment, as exactly as this machine can, or at once if it is over.
pub fn wait_until(moment: Nanos) {
    if moment > now() + SPIN {
        sleep_until(moment.since(SPIN));
    }
    while now() < moment {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wakes_before_the_moment() {
        be_punctual();
        for micros in [0, 30, 150, 2000] {
            for wait in [sleep_until, wait_until] {
                let moment = now() + Nanos::from_micros(micros);
                wait(moment);
                assert!(now() >= moment);
            }
        }
    }

    #[test]
    fn the_past_is_not_waited_for() {
        let begin = now();
        wait_until(Nanos::ZERO);
        sleep_until(begin.since(Nanos(1)));
        assert!(now().since(begin) < Nanos::from_millis(1000));
    }
}
