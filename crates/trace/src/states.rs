//! When a best-effort tenant was let run on a GPU, and when it was stopped.
//!
//! In the shared domain it runs from when it has its seat, but for stops; in the isolated domain while it has the token,
//! but for stops. That somebody else has raised its stop word, a tenant only sees when it resumes: then it was stopped from
//! the first time that a latency tenant has said so.

use model::{Class, Domain, Nanos, Rung};
use telemetry::{Event, What};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has no turn.
    Away,
    /// It may have work on the GPU.
    Running,
    /// It was told to leave the GPU, and is on it still.
    Stopping {
        rung: Rung,
    },
    Stopped {
        rung: Rung,
        took: Option<Nanos>,
    },
}

/// A state for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    pub state: State,
    pub from: Nanos,
    pub until: Nanos,
}

/// The states of one process on one GPU, from its events there; `raised`: when latency tenants raised stop words there.
pub fn states<'a>(events: impl Iterator<Item = &'a Event>, raised: &[Nanos], end: Nanos) -> Vec<Stay> {
    let mut states = States { stays: Vec::new(), state: State::Away, since: Nanos::ZERO };
    events.for_each(|event| states.take(event, raised));
    states.become_at(State::Away, end);
    states.stays
}

struct States {
    stays: Vec<Stay>,
    state: State,
    since: Nanos,
}

impl States {
    fn take(&mut self, event: &Event, raised: &[Nanos]) {
        let at = event.time;
        match (event.what, self.state) {
            (What::Seated { class: Class::BestEffort, domain: Domain::Shared }, State::Away) => {
                self.become_at(State::Running, at);
            }
            (What::Seated { class: Class::Latency, .. } | What::Left, _) => self.become_at(State::Away, at),
            // Whoever was taken off the GPU goes on when it says so.
            (What::Held { .. }, State::Away | State::Stopped { rung: Rung::Hold, .. }) => {
                self.become_at(State::Running, at);
            }
            (What::Given { .. }, State::Running) => self.become_at(State::Away, at),
            (What::Stopping { rung }, _) => self.become_at(State::Stopping { rung }, at),
            (What::Stopped { rung, took }, _) => {
                self.become_at(State::Stopped { rung, took: Some(took) }, at);
            }
            (What::Resumed { rung }, before) => {
                if matches!(before, State::Running | State::Away) {
                    self.infer(rung, raised, at);
                }
                self.become_at(State::Running, at);
            }
            _ => {}
        }
    }

    /// It resumes, though it never said that it was stopped.
    fn infer(&mut self, rung: Rung, raised: &[Nanos], at: Nanos) {
        let first = raised.partition_point(|time| *time < self.since);
        if let Some(&from) = raised.get(first).filter(|time| **time < at) {
            self.become_at(State::Stopped { rung, took: None }, from);
        }
    }

    fn become_at(&mut self, state: State, at: Nanos) {
        // Clocks of two threads may cross.
        let at = at.max(self.since);
        if self.state != State::Away && at > self.since {
            self.stays.push(Stay { state: self.state, from: self.since, until: at });
        }
        (self.state, self.since) = (state, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(events: &[(u64, What)], raised: &[u64]) -> Vec<Stay> {
        let events: Vec<Event> =
            events.iter().map(|&(time, what)| Event { time: Nanos(time), post: 0, what }).collect();
        let raised: Vec<Nanos> = raised.iter().copied().map(Nanos).collect();
        states(events.iter(), &raised, Nanos(100))
    }

    fn stay(state: State, from: u64, until: u64) -> Stay {
        Stay { state, from: Nanos(from), until: Nanos(until) }
    }

    const SEATED: What = What::Seated { class: Class::BestEffort, domain: Domain::Shared };
    const GUARD: Rung = Rung::Guard;

    #[test]
    fn a_stop_has_a_beginning_a_length_and_an_end() {
        let took = Nanos(5);
        let found = of(
            &[
                (10, SEATED),
                (20, What::Stopping { rung: GUARD }),
                (25, What::Stopped { rung: GUARD, took }),
                (40, What::Resumed { rung: GUARD }),
            ],
            &[],
        );
        let expected = [
            stay(State::Running, 10, 20),
            stay(State::Stopping { rung: GUARD }, 20, 25),
            stay(State::Stopped { rung: GUARD, took: Some(took) }, 25, 40),
            stay(State::Running, 40, 100),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn who_was_stopped_by_others_was_stopped_since_they_said_so() {
        let found = of(&[(10, SEATED), (40, What::Resumed { rung: GUARD })], &[5, 30, 35]);
        let stopped = State::Stopped { rung: GUARD, took: None };
        assert_eq!(found[..2], [stay(State::Running, 10, 30), stay(stopped, 30, 40)]);
    }

    #[test]
    fn in_the_isolated_domain_it_runs_in_its_turn() {
        let (held, given) = (What::Held { waited: Nanos(1) }, What::Given { held: Nanos(20) });
        let switch = Rung::Switch;
        let found = of(
            &[
                (10, held),
                (30, What::Stopped { rung: switch, took: Nanos(1) }),
                (30, given),
                (50, held),
                (51, What::Resumed { rung: switch }),
                (60, given),
            ],
            &[],
        );
        let stopped = State::Stopped { rung: switch, took: Some(Nanos(1)) };
        let expected = [stay(State::Running, 10, 30), stay(stopped, 30, 51), stay(State::Running, 51, 60)];
        assert_eq!(found, expected, "with the token it still stands until it is resumed");
    }
}
