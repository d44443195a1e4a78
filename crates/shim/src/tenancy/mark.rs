//! Requests that the program marks itself.
//!
//! When a latency tenant is at work is guessed from its streams (`burst`), since no program says so. One that does is believed:
//! from the first mark on the process is busy, before it has launched anything, and until the last mark ends, whatever
//! its streams do meanwhile. The program calls `ebb_request_begin` and `ebb_request_end`, which stand beside the driver's
//! functions; Python's `ebb.request()` does nothing else.
//!
//! A mark is a number that means something once. Who ends one twice, or one of another time, or none at all, changes
//! nothing; what is begun and never ended is given up when the process has launched nothing for a while.

use std::panic;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use model::Nanos;

/// More requests than this at once are not marked, and are guessed as those of others are.
const MOST: usize = 64;

/// The keeper looks four times a second; a mark under which nothing was launched for ten seconds is given up.
const PATIENCE: u32 = 40;

pub struct Marks {
    places: [Place; MOST],
    /// Marks that are open.
    open: AtomicUsize,
    /// How much work there had been when the keeper last looked, and how often it was the same.
    looked: AtomicU64,
    still: AtomicU32,
}

struct Place {
    /// Counts who had it; odd while somebody has.
    turn: AtomicU32,
    since: AtomicU64,
}

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    place: u8,
    turn: u32,
}

impl Marks {
    pub const fn new() -> Marks {
        Marks {
            places: [const { Place { turn: AtomicU32::new(0), since: AtomicU64::new(0) } }; MOST],
            open: AtomicUsize::new(0),
            looked: AtomicU64::new(0),
            still: AtomicU32::new(0),
        }
    }

    #[inline]
    pub fn are_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) != 0
    }

    pub fn begin(&self, now: Nanos) -> Option<Mark> {
        let (number, turn) = self.places.iter().zip(0u8..).find_map(|(place, number)| {
            let turn = place.turn.load(Ordering::Relaxed);
            let (free, taken) = (turn & 1 == 0, turn.wrapping_add(1));
            let took =
                || place.turn.compare_exchange(turn, taken, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            (free && took()).then_some((number, taken))
        })?;
        self.places[usize::from(number)].since.store(now.0, Ordering::Relaxed);
        self.still.store(0, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::AcqRel);
        Some(Mark { place: number, turn })
    }

    /// When the request began, if this is the end of one.
    pub fn end(&self, mark: Mark) -> Option<Nanos> {
        let place = self.places.get(usize::from(mark.place)).filter(|_| mark.turn & 1 == 1)?;
        let since = place.since.load(Ordering::Relaxed);
        let free = mark.turn.wrapping_add(1);
        // Whoever makes this change ends it, and nobody else does.
        place.turn.compare_exchange(mark.turn, free, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        self.open.fetch_sub(1, Ordering::AcqRel);
        Some(Nanos(since))
    }

    /// Ends all marks, if there has been no more work for too long; `work` is how much there was in all.
    pub fn abandon(&self, work: u64, each: &mut dyn FnMut(Nanos)) {
        if !self.are_open() || self.looked.swap(work, Ordering::Relaxed) != work {
            return self.still.store(0, Ordering::Relaxed);
        }
        if self.still.fetch_add(1, Ordering::Relaxed) >= PATIENCE {
            self.end_all(each);
        }
    }

    /// Ends all marks.
    pub fn end_all(&self, each: &mut dyn FnMut(Nanos)) {
        for (place, number) in self.places.iter().zip(0u8..) {
            let turn = place.turn.load(Ordering::Relaxed);
            self.end(Mark { place: number, turn }).into_iter().for_each(&mut *each);
        }
    }
}

impl Mark {
    /// As a number for a program, which is never nought. `post` is where it was made.
    fn number(self, post: usize) -> u64 {
        u64::from(self.turn) << 32 | (post as u64 & 0xff) << 8 | u64::from(self.place)
    }

    fn of(number: u64) -> (Mark, usize) {
        let turn = u32::try_from(number >> 32).expect("half of a word");
        (Mark { place: (number & 0xff) as u8, turn }, (number >> 8 & 0xff) as usize)
    }
}

/// A request begins, on the GPU of the calling thread. Gives what [`ebb_request_end`] wants; nought if there is nothing to mark: in
/// a process that is no latency tenant, or has no context yet.
#[unsafe(no_mangle)]
pub extern "C" fn ebb_request_begin() -> u64 {
    let begun = || {
        let post = super::here().filter(|post| post.is_latency())?;
        let place = super::taken().iter().position(|taken| std::ptr::eq(taken, post))?;
        Some(post.begin_request()?.number(place))
    };
    panic::catch_unwind(begun).unwrap_or(None).unwrap_or(0)
}

/// The request ends, whatever thread says so.
#[unsafe(no_mangle)]
pub extern "C" fn ebb_request_end(request: u64) {
    let end = || {
        let (mark, place) = Mark::of(request);
        if let Some(post) = super::taken().get(place) {
            post.end_request(mark);
        }
    };
    let _ = panic::catch_unwind(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_ends_once() {
        let marks = Marks::new();
        let first = marks.begin(Nanos(10)).unwrap();
        let second = marks.begin(Nanos(20)).unwrap();
        assert_eq!(marks.end(first), Some(Nanos(10)));
        assert!(marks.are_open());
        assert_eq!(marks.end(first), None);
        let third = marks.begin(Nanos(30)).unwrap();
        assert_eq!(marks.end(first), None, "its place has another by now");
        assert_eq!((marks.end(second), marks.end(third)), (Some(Nanos(20)), Some(Nanos(30))));
        assert!(!marks.are_open());
    }

    #[test]
    fn numbers_that_nobody_was_given_mean_nothing() {
        let marks = Marks::new();
        let mark = marks.begin(Nanos(10)).unwrap();
        assert_ne!(mark.number(3), 0);
        assert_eq!(Mark::of(mark.number(3)), (mark, 3));
        for number in [0, 1, u64::MAX, mark.number(0) ^ 1 << 32, mark.number(0) ^ 0xff, 0xff << 56] {
            assert_eq!(marks.end(Mark::of(number).0), None, "{number:x}");
        }
        assert_eq!(ebb_request_begin(), 0, "this process is no tenant");
        [0, 1, u64::MAX].into_iter().for_each(|number| ebb_request_end(number));
        assert_eq!(marks.end(mark), Some(Nanos(10)));
    }

    #[test]
    fn there_is_room_for_so_many() {
        let marks = Marks::new();
        let all: Vec<_> = (0..MOST).map(|_| marks.begin(Nanos(1)).unwrap()).collect();
        assert_eq!(marks.begin(Nanos(2)), None);
        assert!(all.into_iter().all(|mark| marks.end(mark).is_some()));
        assert!(marks.begin(Nanos(3)).is_some());
    }

    #[test]
    fn what_is_never_ended_is_given_up_when_nothing_happens() {
        let marks = Marks::new();
        let mark = marks.begin(Nanos(10)).unwrap();
        let mut ended = Vec::new();
        for work in 1..100 {
            marks.abandon(work, &mut |since| ended.push(since));
        }
        assert_eq!(ended, [], "it is at work");
        for _ in 0..PATIENCE {
            marks.abandon(99, &mut |since| ended.push(since));
        }
        assert_eq!(ended, []);
        marks.abandon(99, &mut |since| ended.push(since));
        assert_eq!((ended, marks.end(mark)), (vec![Nanos(10)], None));
    }
}
