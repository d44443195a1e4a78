//! Quiet: when best-effort work resumes behind a latency tenant's, in the shared domain.
//!
//! Requests often come one behind the other. Whoever resumes in the few microseconds between two of them has a block on the
//! GPU when the second begins, which then waits for it; and is cut before it got anywhere. Measured on an H200 beside
//! GPT-2: 501 launches were cut, and made again 17,579 times. So nothing is resumed before the latency tenants have been
//! without work for [`QUIET`]: longer than a program takes from one answer to its next request, and far shorter than the gaps
//! that are worth filling.

use model::Nanos;

/// How long nobody has had work when best-effort work resumes.
pub const QUIET: Nanos = Nanos::from_micros(100);

/// How much longer to wait, if a latency tenant last had work then; nought: best-effort work may run. `None`: none ever had.
pub fn wait(last_active: Option<Nanos>, now: Nanos) -> Nanos {
    last_active.map_or(Nanos::ZERO, |last| QUIET.since(now.since(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_work_is_waited_for_and_a_little_longer() {
        let now = Nanos::from_millis(7);
        assert_eq!(wait(None, now), Nanos::ZERO);
        assert_eq!(wait(Some(now), now), QUIET);
        assert_eq!(wait(Some(now), now + Nanos::from_micros(40)), Nanos::from_micros(60));
        assert_eq!(wait(Some(now), now + QUIET), Nanos::ZERO);
        assert_eq!(wait(Some(now + QUIET), now), QUIET, "a clock that was read a little later");
    }
}
