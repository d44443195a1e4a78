//! Who lives: workers by their place, which is whatever makes one worker as good as another.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::protocol::{Order, Ready, Reply};
use super::stop::Stop;
use super::worker::{FAREWELL, Start, Worker};
use crate::Error;

/// What a worker is for; equal places can be served by one worker, one after the other.
pub trait Place: Clone + Ord {
    /// For messages.
    fn name(&self) -> String;
}

struct Member {
    worker: Worker,
    ready: Ready,
}

/// The living workers.
pub struct Roster<P> {
    members: BTreeMap<P, Member>,
    stop: Stop,
}

impl<P: Place> Roster<P> {
    pub fn new(stop: Stop) -> Roster<P> {
        Roster { members: BTreeMap::new(), stop }
    }

    pub fn has(&self, place: &P) -> bool {
        self.members.contains_key(place)
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// What a worker said when it was ready.
    pub fn ready(&self, place: &P) -> Option<&Ready> {
        self.members.get(place).map(|member| &member.ready)
    }

    /// Starts all of these together and waits for each: to load a framework is mostly waiting. What failed is told by
    /// place; what did not is there.
    pub fn start(&mut self, wanted: Vec<(P, Start)>, patience: Duration) -> Result<Vec<(P, Error)>, Error> {
        let deadline = Instant::now() + patience;
        let mut failed = Vec::new();
        let mut coming = Vec::new();
        for (place, start) in wanted {
            match Worker::start(place.name(), &start) {
                Ok(worker) => coming.push((place, worker)),
                Err(error) => failed.push((place, error)),
            }
        }
        let mut coming = coming.into_iter();
        while let Some((place, mut worker)) = coming.next() {
            let left = deadline.saturating_duration_since(Instant::now());
            match worker.await_ready(left, &self.stop) {
                Ok(ready) => _ = self.members.insert(place, Member { worker, ready }),
                Err(Error::Stopped) => {
                    // Who is loading a framework does not listen yet.
                    worker.kill();
                    coming.for_each(|(_, mut worker)| worker.kill());
                    return Err(Error::Stopped);
                }
                Err(error) => {
                    worker.kill();
                    failed.push((place, error));
                }
            }
        }
        Ok(failed)
    }

    /// Gives orders to several workers at once and gathers one reply to each order, in the order of the orders. A worker
    /// that fails is ended; the others are heard to their end, because they are to be used again.
    pub fn ask(&mut self, orders: &[(P, Vec<Order<'_>>)], patience: Duration) -> Result<Replies<P>, Error> {
        let deadline = Instant::now() + patience;
        let mut replies = Replies { heard: Vec::new(), failed: Vec::new() };
        for (place, orders) in orders {
            let Some(member) = self.members.get_mut(place) else { continue };
            if let Err(error) = orders.iter().try_for_each(|order| member.worker.tell(order)) {
                self.lose(place, error, &mut replies)?;
            }
        }
        for (place, orders) in orders {
            let Some(member) = self.members.get_mut(place) else { continue };
            match gather(&mut member.worker, orders.len(), deadline, &self.stop) {
                Ok(heard) => replies.heard.push((place.clone(), heard)),
                Err(error) => self.lose(place, error, &mut replies)?,
            }
        }
        Ok(replies)
    }

    fn lose(&mut self, place: &P, error: Error, replies: &mut Replies<P>) -> Result<(), Error> {
        if matches!(error, Error::Stopped) {
            return Err(error);
        }
        if let Some(mut member) = self.members.remove(place) {
            member.worker.kill();
        }
        replies.failed.push((place.clone(), error));
        Ok(())
    }

    /// Ends those that somebody has no more use for.
    pub fn end_where(&mut self, mut useless: impl FnMut(&P) -> bool) {
        let going: Vec<P> = self.members.keys().filter(|place| useless(place)).cloned().collect();
        let members: Vec<Member> = going.iter().filter_map(|place| self.members.remove(place)).collect();
        end(members);
    }

    /// Makes room: no more than `most` stay. Those go first that are used again latest, by what `next_use` says, and
    /// those before all that are not used again.
    pub fn make_room(&mut self, most: usize, next_use: impl Fn(&P) -> Option<usize>) {
        let going = departures(self.members.keys(), most, next_use);
        self.end_where(|place| going.contains(place));
    }
}

impl<P> Drop for Roster<P> {
    fn drop(&mut self) {
        end(std::mem::take(&mut self.members).into_values().collect());
    }
}

/// All are told before the first is waited for, and wait for the same deadline.
fn end(mut members: Vec<Member>) {
    members.iter_mut().for_each(|member| member.worker.dismiss());
    let deadline = Instant::now() + FAREWELL;
    for member in &mut members {
        if !member.worker.ended(deadline.saturating_duration_since(Instant::now())) {
            member.worker.kill();
        }
    }
}

/// What came of orders.
pub struct Replies<P> {
    pub heard: Vec<(P, Vec<Reply>)>,
    pub failed: Vec<(P, Error)>,
}

/// As many replies as orders, sorted by tenant.
fn gather(worker: &mut Worker, count: usize, deadline: Instant, stop: &Stop) -> Result<Vec<Reply>, Error> {
    let mut replies = Vec::with_capacity(count);
    while replies.len() < count {
        replies.push(worker.reply(deadline, stop)?);
    }
    replies.sort_by_key(Reply::tenant);
    Ok(replies)
}

fn departures<'a, P: Place + 'a>(
    living: impl Iterator<Item = &'a P>,
    most: usize,
    next_use: impl Fn(&P) -> Option<usize>,
) -> Vec<P> {
    let mut by_use: Vec<&P> = living.collect();
    // Stable, so that the same campaign makes the same choices.
    by_use.sort_by_key(|place| next_use(place).unwrap_or(usize::MAX));
    by_use.into_iter().skip(most).cloned().collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Numbered(usize);

    impl Place for Numbered {
        fn name(&self) -> String {
            format!("worker {}", self.0)
        }
    }

    #[test]
    fn those_go_whose_next_use_is_furthest_away() {
        let living = [Numbered(1), Numbered(2), Numbered(3), Numbered(4)];
        let next_use = |place: &Numbered| [None, Some(9), None, Some(2), Some(5)][place.0];
        assert_eq!(departures(living.iter(), 4, next_use), []);
        assert_eq!(departures(living.iter(), 2, next_use), [Numbered(1), Numbered(2)]);
        assert_eq!(departures(living.iter(), 3, next_use), [Numbered(2)]);
    }

    /// A worker in the shell: it says it is ready and then does what its script says.
    fn shell(folder: &Path, number: usize, script: &str) -> (Numbered, Start) {
        let ready = r#"echo 'a library says hello'; echo '{"say":"ready","tenants":[{"gpu_us":1}]}'"#;
        let words = ["/bin/sh", "-c", &format!("{ready}; {script}")].map(Into::into).to_vec();
        let log = folder.join(format!("{number}.log"));
        (Numbered(number), Start { words, environment: Vec::new(), log })
    }

    const OBEYS: &str = r#"while read order; do echo '{"say":"prepared","tenant":0}'; done"#;

    fn prepare(number: usize) -> (Numbered, Vec<Order<'static>>) {
        (Numbered(number), vec![Order::Prepare { tenant: 0 }])
    }

    #[test]
    fn a_worker_that_dies_or_hangs_is_named_and_the_others_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let mut roster = Roster::new(Stop::default());
        let wanted = vec![
            shell(folder.path(), 1, OBEYS),
            shell(folder.path(), 2, "read order; echo 'the GPU fell off' >&2; kill -9 $$"),
            shell(folder.path(), 3, "sleep 600"),
        ];
        assert!(roster.start(wanted, Duration::from_secs(20)).unwrap().is_empty());
        let replies = roster.ask(&[prepare(1), prepare(2), prepare(3)], Duration::from_millis(600)).unwrap();
        assert_eq!(replies.heard, [(Numbered(1), vec![Reply::Prepared { tenant: 0 }])]);
        let reasons: Vec<String> = replies.failed.iter().map(|(_, error)| error.to_string()).collect();
        assert_eq!(reasons[0], "worker 2: was ended by signal 9; its last words: the GPU fell off");
        assert_eq!(reasons[1], "worker 3: did not answer in time");
        assert!(roster.has(&Numbered(1)) && !roster.has(&Numbered(2)) && !roster.has(&Numbered(3)));
        assert!(roster.ask(&[prepare(1)], Duration::from_secs(20)).unwrap().failed.is_empty());
    }

    #[test]
    fn a_worker_that_cannot_start_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let mut roster = Roster::new(Stop::default());
        let words = ["/bin/sh", "-c", r#"echo '{"say":"error","reason":"no model foo"}'; exit 1"#];
        let start = Start {
            words: words.map(Into::into).to_vec(),
            log: folder.path().join("log"),
            ..Start::default()
        };
        let failed = roster.start(vec![(Numbered(7), start)], Duration::from_secs(20)).unwrap();
        assert_eq!(failed[0].1.to_string(), "worker 7: no model foo");
        assert!(roster.is_empty());
    }

    #[test]
    fn a_worker_that_does_not_read_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let mut roster = Roster::new(Stop::default());
        roster.start(vec![shell(folder.path(), 1, "sleep 600")], Duration::from_secs(20)).unwrap();
        // More than a pipe holds.
        let due = vec![1_000_000; 100_000];
        let run = Order::Run { tenant: 0, begin_ns: 0, due_us: Some(&due), until_us: 1, drain_us: 1 };
        let replies = roster.ask(&[(Numbered(1), vec![run])], Duration::from_millis(300)).unwrap();
        assert!(replies.failed[0].1.to_string().contains("did not answer in time"));
    }

    #[test]
    fn a_stop_ends_a_wait_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        let mut roster = Roster::new(stop.clone());
        roster.start(vec![shell(folder.path(), 1, "sleep 600")], Duration::from_secs(20)).unwrap();
        stop.word().store(2, std::sync::atomic::Ordering::Relaxed);
        let begin = Instant::now();
        let answer = roster.ask(&[prepare(1)], Duration::from_secs(600));
        assert!(matches!(answer, Err(Error::Stopped)) && begin.elapsed() < Duration::from_secs(60));
    }
}
