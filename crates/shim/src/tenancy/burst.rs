//! Bursts: when a latency tenant is at work, and how long each time.
//!
//! A burst begins when a stream that had nothing to do is given work, and ends when a synchronisation that covers the
//! stream returns to the program: that is the time the program waited. Each stream has its own bursts. What nobody ever
//! waits for is closed by the keeper and counted apart, without a time.
//!
//! While requests are marked by the program itself (`mark`), each of them is a burst, and nothing is guessed.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use model::Nanos;

use super::key::{Key, spread};
use super::mark::{Mark, Marks};

const STREAMS: usize = 64;
const NEAR: usize = 4;
const EVENTS: usize = 256;

pub struct Bursts {
    streams: [Stream; STREAMS],
    events: [Event; EVENTS],
    marks: Marks,
    /// Streams with an open burst, and marks.
    open: AtomicUsize,
    /// When the process became busy.
    busy_since: AtomicU64,
}

struct Stream {
    key: AtomicUsize,
    /// When its burst began; zero: it has none.
    since: AtomicU64,
    /// Counts what it was given.
    work: AtomicU64,
    /// The count as the keeper last saw it.
    looked: AtomicU64,
}

/// Behind how much work of which stream an event was recorded.
struct Event {
    event: AtomicUsize,
    stream: AtomicUsize,
    work: AtomicU64,
}

/// What a call changed for the process as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    /// It was idle until now.
    Began {
        at: Nanos,
    },
    /// Work that was announced did not come; the process is idle, having been thought busy since then.
    Withdrawn {
        at: Nanos,
        since: Nanos,
    },
    /// A burst of this length ended; with it, the process became idle, having been busy since then.
    Ended {
        at: Nanos,
        lasted: Nanos,
        idle: Option<Nanos>,
    },
}

impl Bursts {
    pub const fn new() -> Bursts {
        Bursts {
            streams: [const { Stream::new() }; STREAMS],
            events: [const { Event::new() }; EVENTS],
            marks: Marks::new(),
            open: AtomicUsize::new(0),
            busy_since: AtomicU64::new(0),
        }
    }

    /// In the child of a fork, which has been given nothing.
    pub fn forget(&self) {
        self.streams.iter().for_each(|stream| stream.since.store(0, Ordering::Relaxed));
        self.open.store(0, Ordering::Relaxed);
    }

    /// A stream was given work.
    #[inline]
    pub fn given(&self, key: Key, now: impl FnOnce() -> Nanos) -> Change {
        let Some(stream) = self.stream(key) else { return Change::None };
        stream.work.fetch_add(1, Ordering::Relaxed);
        if stream.since.load(Ordering::Relaxed) != 0 || self.marks.are_open() {
            return Change::None;
        }
        self.begin(stream, now())
    }

    #[cold]
    fn begin(&self, stream: &Stream, now: Nanos) -> Change {
        let began = stream.since.compare_exchange(0, now.0.max(1), Ordering::Relaxed, Ordering::Relaxed);
        if began.is_err() || self.open.fetch_add(1, Ordering::AcqRel) != 0 {
            return Change::None;
        }
        fence(Ordering::SeqCst);
        self.busy_since.store(now.0, Ordering::Relaxed);
        Change::Began { at: now }
    }

    /// Since when the process has been at work, if it is.
    pub fn busy_since(&self) -> Option<Nanos> {
        self.is_open().then(|| Nanos(self.busy_since.load(Ordering::Relaxed)))
    }

    /// Whether the process is at work, or about to be.
    #[inline]
    pub fn is_open(&self) -> bool {
        // SYNC(burst-open): pairs with `announce` and `begin`; who was idle a moment ago looks here again.
        self.open.load(Ordering::Acquire) != 0
    }

    /// Work is about to be given to a stream: until it is, or is refused, the process counts as busy.
    pub fn announce(&self, now: Nanos) -> Change {
        // SYNC(burst-open): counted before anybody is told.
        let first = self.open.fetch_add(1, Ordering::AcqRel) == 0;
        fence(Ordering::SeqCst);
        if first {
            self.busy_since.store(now.0, Ordering::Relaxed);
        }
        if first { Change::Began { at: now } } else { Change::None }
    }

    /// The announced work was given, and has a burst, or was not.
    pub fn withdraw(&self, now: impl FnOnce() -> Nanos) -> Change {
        if self.open.fetch_sub(1, Ordering::AcqRel) != 1 {
            return Change::None;
        }
        Change::Withdrawn { at: now(), since: Nanos(self.busy_since.load(Ordering::Relaxed)) }
    }

    /// The program says that a request begins; `None` if there are too many already.
    pub fn mark(&self, now: Nanos) -> Option<(Mark, Change)> {
        let mark = self.marks.begin(now)?;
        Some((mark, self.announce(now)))
    }

    /// The program says that a request ends.
    pub fn end_mark(&self, mark: Mark, now: Nanos) -> Change {
        self.marks.end(mark).map_or(Change::None, |since| self.close(since, now))
    }

    /// In the child of a fork, where nobody has marked anything.
    pub fn in_child(&self) {
        self.marks.end_all(&mut |since| {
            self.close(since, since);
        });
    }

    /// The program has waited for a stream.
    pub fn waited(&self, key: Key, now: Nanos) -> Change {
        match self.found(key) {
            Some(stream) => self.end(stream, now),
            None => Change::None,
        }
    }

    /// An event is recorded behind what the stream was given so far.
    pub fn recorded(&self, event: usize, key: Key) {
        let Some(stream) = self.found(key) else { return };
        let place = &self.events[spread(event, EVENTS)];
        place.event.store(event, Ordering::Relaxed);
        place.work.store(stream.work.load(Ordering::Relaxed), Ordering::Relaxed);
        place.stream.store(key.0, Ordering::Relaxed);
    }

    /// An event has happened: the burst of its stream is over, if the stream was given nothing since.
    pub fn happened(&self, event: usize, now: Nanos) -> Change {
        let place = &self.events[spread(event, EVENTS)];
        if place.event.load(Ordering::Relaxed) != event {
            return Change::None;
        }
        let stream = self.found(Key(place.stream.load(Ordering::Relaxed)));
        match stream
            .filter(|stream| stream.work.load(Ordering::Relaxed) == place.work.load(Ordering::Relaxed))
        {
            Some(stream) => self.end(stream, now),
            None => Change::None,
        }
    }

    /// The program has waited for everything.
    pub fn waited_for_all(&self, now: Nanos, each: &mut dyn FnMut(Change)) {
        for stream in &self.streams {
            each(self.end(stream, now));
        }
    }

    /// How much all streams were given.
    pub fn work(&self) -> u64 {
        self.streams.iter().map(|stream| stream.work.load(Ordering::Relaxed)).fold(0, u64::wrapping_add)
    }

    /// Ends bursts for which nothing happened since the last time this was asked; says how many.
    pub fn abandon(&self, now: Nanos, each: &mut dyn FnMut(Change)) -> u64 {
        let mut count = 0;
        for stream in self.streams.iter().filter(|stream| stream.since.load(Ordering::Relaxed) != 0) {
            let work = stream.work.load(Ordering::Relaxed);
            if stream.looked.swap(work, Ordering::Relaxed) == work {
                each(self.end(stream, now));
                count += 1;
            }
        }
        self.marks.abandon(self.work(), &mut |since| {
            each(self.close(since, now));
            count += 1;
        });
        count
    }

    fn end(&self, stream: &Stream, now: Nanos) -> Change {
        match stream.since.swap(0, Ordering::Relaxed) {
            0 => Change::None,
            since => self.close(Nanos(since), now),
        }
    }

    fn close(&self, since: Nanos, now: Nanos) -> Change {
        let lasted = now.since(since);
        let last = self.open.fetch_sub(1, Ordering::AcqRel) == 1;
        let idle = last.then(|| Nanos(self.busy_since.load(Ordering::Relaxed)));
        Change::Ended { at: now, lasted, idle }
    }

    fn found(&self, key: Key) -> Option<&Stream> {
        self.near(key).find(|stream| stream.key.load(Ordering::Relaxed) == key.0)
    }

    #[inline]
    fn stream(&self, key: Key) -> Option<&Stream> {
        self.found(key).or_else(|| self.take(key))
    }

    /// A place that is free, or whose stream has nothing to do.
    #[cold]
    fn take(&self, key: Key) -> Option<&Stream> {
        self.near(key).find(|stream| {
            let old = stream.key.load(Ordering::Relaxed);
            stream.since.load(Ordering::Relaxed) == 0
                && stream.key.compare_exchange(old, key.0, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        })
    }

    fn near(&self, key: Key) -> impl Iterator<Item = &Stream> {
        let first = key.place(STREAMS);
        (0..NEAR).map(move |step| &self.streams[(first + step) % STREAMS])
    }
}

impl Stream {
    const fn new() -> Stream {
        Stream {
            key: AtomicUsize::new(0),
            since: AtomicU64::new(0),
            work: AtomicU64::new(0),
            looked: AtomicU64::new(0),
        }
    }
}

impl Event {
    const fn new() -> Event {
        Event { event: AtomicUsize::new(0), stream: AtomicUsize::new(0), work: AtomicU64::new(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_lasts_from_the_first_work_to_the_return_of_the_wait() {
        let bursts = Bursts::new();
        assert_eq!(bursts.given(Key(64), || Nanos(10)), Change::Began { at: Nanos(10) });
        assert_eq!(bursts.given(Key(64), || panic!("the clock is read once a burst")), Change::None);
        let ended = Change::Ended { at: Nanos(40), lasted: Nanos(30), idle: Some(Nanos(10)) };
        assert_eq!(bursts.waited(Key(64), Nanos(40)), ended);
        assert_eq!(bursts.waited(Key(64), Nanos(50)), Change::None);
        assert_eq!(bursts.given(Key(64), || Nanos(60)), Change::Began { at: Nanos(60) });
    }

    #[test]
    fn announced_work_makes_the_process_busy_before_it_comes() {
        let bursts = Bursts::new();
        assert_eq!(bursts.announce(Nanos(10)), Change::Began { at: Nanos(10) });
        assert!(bursts.is_open());
        assert_eq!(bursts.given(Key(64), || Nanos(12)), Change::None);
        assert_eq!(bursts.withdraw(|| panic!("the clock is not read")), Change::None);
        let ended = Change::Ended { at: Nanos(40), lasted: Nanos(28), idle: Some(Nanos(10)) };
        assert_eq!(bursts.waited(Key(64), Nanos(40)), ended);
    }

    #[test]
    fn announced_work_that_is_refused_leaves_the_process_idle() {
        let bursts = Bursts::new();
        bursts.announce(Nanos(10));
        assert_eq!(bursts.announce(Nanos(11)), Change::None);
        assert_eq!(bursts.withdraw(|| Nanos(12)), Change::None);
        let withdrawn = Change::Withdrawn { at: Nanos(13), since: Nanos(10) };
        assert_eq!(bursts.withdraw(|| Nanos(13)), withdrawn);
        assert!(!bursts.is_open());
    }

    #[test]
    fn the_process_is_idle_when_no_stream_has_a_burst() {
        let bursts = Bursts::new();
        assert_eq!(bursts.given(Key(64), || Nanos(10)), Change::Began { at: Nanos(10) });
        assert_eq!(bursts.given(Key(128), || Nanos(20)), Change::None);
        let first = Change::Ended { at: Nanos(30), lasted: Nanos(20), idle: None };
        assert_eq!(bursts.waited(Key(64), Nanos(30)), first);
        let last = Change::Ended { at: Nanos(40), lasted: Nanos(20), idle: Some(Nanos(10)) };
        assert_eq!(bursts.waited(Key(128), Nanos(40)), last);
    }

    #[test]
    fn an_event_ends_the_burst_only_if_nothing_came_behind_it() {
        let bursts = Bursts::new();
        bursts.given(Key(64), || Nanos(10));
        bursts.recorded(0x1000, Key(64));
        bursts.given(Key(64), || Nanos(20));
        assert_eq!(bursts.happened(0x1000, Nanos(30)), Change::None);
        bursts.recorded(0x1000, Key(64));
        assert!(matches!(bursts.happened(0x1000, Nanos(40)), Change::Ended { lasted: Nanos(30), .. }));
        assert_eq!(bursts.happened(0x2000, Nanos(50)), Change::None);
    }

    #[test]
    fn a_marked_request_is_one_burst_whatever_its_streams_do() {
        let bursts = Bursts::new();
        let (mark, began) = bursts.mark(Nanos(10)).unwrap();
        assert_eq!(began, Change::Began { at: Nanos(10) });
        for _ in 0..3 {
            assert_eq!(bursts.given(Key(64), || panic!("nothing is guessed")), Change::None);
            assert_eq!(bursts.waited(Key(64), Nanos(20)), Change::None);
        }
        assert!(bursts.is_open());
        let (second, began) = bursts.mark(Nanos(30)).unwrap();
        assert_eq!(began, Change::None);
        let ended = Change::Ended { at: Nanos(40), lasted: Nanos(30), idle: None };
        assert_eq!(bursts.end_mark(mark, Nanos(40)), ended);
        assert_eq!(bursts.end_mark(mark, Nanos(41)), Change::None);
        let ended = Change::Ended { at: Nanos(50), lasted: Nanos(20), idle: Some(Nanos(10)) };
        assert_eq!(bursts.end_mark(second, Nanos(50)), ended);
        assert_eq!(bursts.given(Key(64), || Nanos(60)), Change::Began { at: Nanos(60) });
    }

    #[test]
    fn a_child_has_no_requests_of_its_parents() {
        let bursts = Bursts::new();
        let (mark, _) = bursts.mark(Nanos(10)).unwrap();
        bursts.in_child();
        assert!(!bursts.is_open());
        assert_eq!(bursts.end_mark(mark, Nanos(20)), Change::None);
        assert_eq!(bursts.given(Key(64), || Nanos(30)), Change::Began { at: Nanos(30) });
    }

    #[test]
    fn what_nobody_waits_for_is_given_up_when_it_stands_still() {
        let bursts = Bursts::new();
        bursts.given(Key(64), || Nanos(10));
        assert_eq!(bursts.abandon(Nanos(20), &mut |_| ()), 0);
        bursts.given(Key(64), || Nanos(30));
        assert_eq!(bursts.abandon(Nanos(40), &mut |_| ()), 0);
        assert_eq!(bursts.abandon(Nanos(50), &mut |_| ()), 1);
        assert_eq!(bursts.given(Key(64), || Nanos(60)), Change::Began { at: Nanos(60) });
    }
}
