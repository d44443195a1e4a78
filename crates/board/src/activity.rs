//! What latency and best-effort seats tell each other.
//!
//! A latency tenant says that it has work with one store, and that it has none with another. In the isolated domain
//! the hardware leaves best-effort work by itself; whoever wants to stay away for longer than it would listens for the beginning.
//! In the shared domain best-effort work stops because its *stop word*, in device memory, is raised: by a latency tenant that has opened the word, before its first
//! launch, or by the best-effort tenant itself on sight of this board. And it goes on when no latency tenant has work.
//!
//! * *Raised*: a latency tenant says here that it has work, then raises the words; a best-effort tenant lowers its word,
//!   then looks here. So either the one finds the word lowered before, or the other finds that there is work and raises
//!   the word again. (`SYNC(latency-active)`)
//! * *Idle*: a latency tenant says that it has no more work, then looks who is stopped and rings their bells; a
//!   best-effort tenant says that it is stopped, then looks whether there is work. So nobody sleeps who could go on.
//!   (`SYNC(stopped-idle)`)
//! * *Begun*: a latency tenant says that it has work, then looks who listens and rings their bells; a best-effort tenant says that
//!   it listens, then looks whether there is work. So nobody sleeps through a beginning. (`SYNC(latency-active)`)

use model::{Class, Nanos};

use crate::board::{Board, Place};
use crate::layout;
use crate::seat::Seat;
use crate::seat_set::SeatSet;
use crate::standing::Standing;
use crate::stop_word::{HANDLE_BYTES, StopWord};
use crate::sync::{Ordering, fence};
use crate::token::{self, Token};

impl Board {
    /// For how long latency tenants have had work, all of them added up. It never goes back, so the difference of two
    /// answers is the time they had in between.
    pub fn latency_busy(&self, now: Nanos) -> Nanos {
        let busy = |seat: &layout::Seat| {
            // A seat that ends its activity first forgets the beginning, then adds it up: between the two it is counted
            // too low, never twice.
            let done = Nanos(seat.heart.busy.load(Ordering::Relaxed));
            active_since(seat).map_or(done, |since| done + now.since(since))
        };
        let sum = self.layout.used().iter().map(busy).fold(Nanos::ZERO, |sum, time| sum + time);
        let highest = self.layout.round.busy.fetch_max(sum.0, Ordering::Relaxed);
        sum.max(Nanos(highest))
    }

    /// Whether any latency tenant has work now.
    pub fn latency_active(&self, now: Nanos) -> bool {
        // SYNC(latency-active), SYNC(stopped-idle): what we did before is done before we look.
        fence(Ordering::SeqCst);
        self.layout.used().iter().any(|seat| active_since(seat).is_some() && !is_gone(seat, now))
    }

    /// When a latency tenant last had work, whoever that was: now, if one has. `None`: none ever had.
    pub fn latency_last_active(&self, now: Nanos) -> Option<Nanos> {
        let moment = |seat: &layout::Seat| match active_since(seat).filter(|_| !is_gone(seat, now)) {
            Some(_) => now,
            // What lies in the future has not happened.
            None => Nanos(seat.heart.last_active.load(Ordering::Relaxed)).min(now),
        };
        self.layout.used().iter().map(moment).max().filter(|moment| *moment != Nanos::ZERO)
    }

    /// The stop words that can be raised now.
    pub fn stop_words(&self) -> impl Iterator<Item = StopWord> {
        let seats = self.layout.used().iter().zip(0u16..);
        seats.filter_map(|(seat, number)| {
            let standing = Standing::of(&seat.standing);
            let theirs = standing.is_taken() && seat.terms.read().class == Class::BestEffort;
            let place = Place { seat: number, generation: standing.generation() };
            theirs.then(|| seat.stop_word.read(place)).flatten()
        })
    }
}

/// Of a latency tenant.
impl Seat {
    /// There is work from now on: best-effort tenants leave the GPU.
    #[inline]
    pub fn activate(&self, now: Nanos) {
        self.beat(now);
        self.own().heart.active_since.store(now.0.max(1), Ordering::Relaxed);
        // SYNC(latency-active): whoever lowers a stop word after we raised it finds this.
        fence(Ordering::SeqCst);
        let holder = Token::of(&self.board().layout.round.token).holder();
        if let Some(holder) = holder.and_then(|seat| self.board().layout.seats.get(usize::from(seat))) {
            holder.tally.preempted.add(1);
        }
        self.board().ring_all(&self.board().layout.round.listening);
    }

    /// The work that began at `since` is done: who is stopped may go on.
    #[inline]
    pub fn deactivate(&self, now: Nanos, since: Nanos) {
        let heart = &self.own().heart;
        heart.last_active.store(now.0, Ordering::Relaxed);
        heart.active_since.store(0, Ordering::Relaxed);
        heart.busy.fetch_add(now.since(since).0, Ordering::Relaxed);
        self.board().wake_stopped();
    }

    /// Wakes best-effort tenants that do not listen for the end of our work, because there was none for a while: they run
    /// what cannot be stopped by a word.
    pub fn wake_unsuspecting(&self) {
        let layout = self.board().layout;
        for (seat, number) in layout.used().iter().zip(0u16..) {
            let there = Standing::of(&seat.standing).is_taken() && !layout.round.stopped.contains(number);
            if there && seat.terms.read().class == Class::BestEffort {
                seat.bell.ring();
            }
        }
    }

    /// From now on we raise this word whenever we have work. `false`: it is not the one that is published any more.
    pub fn say_raises(&self, word: &StopWord) -> bool {
        self.own().raises.insert(word.place.seat);
        let seat = self.board().seat(word.place);
        let same = seat.is_some_and(|seat| seat.stop_word.number() == Some(word.number));
        if !same {
            self.say_raises_not(word.place);
        }
        same
    }

    pub fn say_raises_not(&self, place: Place) {
        self.own().raises.remove(place.seat);
    }
}

/// Of a best-effort tenant.
impl Seat {
    /// Says where our stop word is. Latency tenants hear of it and open it.
    pub fn publish_stop_word(&self, handle: [u8; HANDLE_BYTES], offset: u64) {
        self.forget_stop_word();
        self.own().stop_word.publish(&handle, offset);
        self.board().ring_latency();
    }

    /// There is no stop word that others could raise, from now on.
    pub fn forget_stop_word(&self) {
        self.own().stop_word.withdraw();
        // Whoever said that it raises ours meant the one that is no more. Who says so just now finds another number.
        let seats = self.board().layout.used().iter();
        seats.for_each(|seat| seat.raises.remove(self.place().seat));
        self.board().ring_latency();
    }

    /// Whether every latency tenant that is here raises our stop word itself.
    pub fn latency_seats_raise(&self) -> bool {
        let own = self.place().seat;
        self.board().latency_seats().all(|seat| seat.raises.contains(own))
    }

    /// Says that we are stopped because a latency tenant has work: the one whose work ends last rings our bell. Look
    /// whether one has work after this, and before sleeping.
    pub fn say_stopped(&self, stopped: bool) {
        let (set, own) = (&self.board().layout.round.stopped, self.place().seat);
        if stopped { set.insert(own) } else { set.remove(own) }
    }

    /// Says whether we want to hear when a latency tenant begins to have work: it rings our bell then. Look whether one has
    /// work after this, and before sleeping. It costs that tenant a system call, so listen only where you would act on it.
    pub fn say_listening(&self, listening: bool) {
        let (set, own) = (&self.board().layout.round.listening, self.place().seat);
        if set.contains(own) == listening {
            return;
        }
        if listening { set.insert(own) } else { set.remove(own) }
    }
}

impl Board {
    /// Somebody's work is done, or there is one latency tenant less.
    pub(crate) fn wake_stopped(&self) {
        // SYNC(stopped-idle): this fence and the one in `latency_active`. Either we find who is stopped, or he finds that
        // there is no more work.
        fence(Ordering::SeqCst);
        self.ring_all(&self.layout.round.stopped);
    }

    fn ring_all(&self, set: &SeatSet) {
        set.for_each(|number| {
            if let Some(seat) = self.layout.seats.get(number) {
                seat.bell.ring();
            }
        });
    }

    fn ring_latency(&self) {
        self.latency_seats().for_each(|seat| seat.bell.ring());
    }

    fn latency_seats(&self) -> impl Iterator<Item = &'static layout::Seat> {
        let layout = self.layout;
        let taken = layout.used().iter().filter(|seat| Standing::of(&seat.standing).is_taken());
        taken.filter(|seat| seat.terms.read().class == Class::Latency)
    }
}

/// Whether a latency tenant has shown no life for so long that nobody waits for it. Its keeper does four times a second. A
/// daemon clears the seats of the dead at once; where there is none, this is what ends the wait for them.
pub(crate) fn is_gone(seat: &layout::Seat, now: Nanos) -> bool {
    const LIFELESS: Nanos = Nanos::from_millis(3_000);
    token::is_lifeless(seat, now, LIFELESS)
}

/// Since when a seat has had work that must not wait. What a process says whose seat was taken from it does not count.
pub(crate) fn active_since(seat: &layout::Seat) -> Option<Nanos> {
    let since = seat.heart.active_since.load(Ordering::Relaxed);
    let counts =
        since != 0 && Standing::of(&seat.standing).is_taken() && seat.terms.read().class == Class::Latency;
    counts.then_some(Nanos(since))
}
