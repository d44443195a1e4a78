//! Who has a place, and who must give it up.
//!
//! There are so many places, and so many for one peer. Who comes when all are taken is given the place of somebody who is slow: who has
//! not asked yet, for the longest, or else who does not read its answer. So somebody who asks at once and reads at once is always
//! served, however many others hold connections open. Whose answer is being made keeps its place.

use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::peer::PeerName;

/// Each has a thread and little else.
const CONNECTIONS: usize = 64;
const OF_PEER: usize = 16;
/// Of those, so many may be answers that go on.
const STREAMS: usize = 16;
const STREAMS_OF_PEER: usize = 8;
/// For so long an answer may be read before somebody else is given the place.
const TO_READ_UNDISTURBED: Duration = Duration::from_secs(1);

/// How far a visit has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VisitPhase {
    /// The request is not here yet.
    Asking,
    Reading,
    /// The answer is being made.
    Answering,
    /// The answer goes on.
    Following,
}

#[derive(Debug)]
struct Visitor {
    number: u64,
    peer: PeerName,
    phase: VisitPhase,
    since: Instant,
    socket: Arc<TcpStream>,
}

impl Visitor {
    fn may_be_disturbed(&self) -> bool {
        match self.phase {
            VisitPhase::Asking => true,
            VisitPhase::Reading => self.since.elapsed() >= TO_READ_UNDISTURBED,
            VisitPhase::Answering | VisitPhase::Following => false,
        }
    }
}

#[derive(Debug, Default)]
struct Visitors {
    list: Vec<Visitor>,
    next: u64,
}

impl Visitors {
    fn of(&self, peer: PeerName) -> usize {
        self.list.iter().filter(|visitor| visitor.peer == peer).count()
    }

    fn followers(&self) -> impl Iterator<Item = &Visitor> {
        self.list.iter().filter(|visitor| visitor.phase == VisitPhase::Following)
    }

    /// Makes room for somebody, if it can be made.
    fn make_room(&mut self, peer: PeerName) -> bool {
        if self.of(peer) >= OF_PEER {
            return self.dismiss(|visitor| visitor.peer == peer);
        }
        if self.list.len() < CONNECTIONS {
            return true;
        }
        let most = self.list.iter().map(|visitor| visitor.peer).max_by_key(|&peer| self.of(peer));
        self.dismiss(|visitor| Some(visitor.peer) == most) || self.dismiss(|_| true)
    }

    /// Ends the visit of the slowest of these.
    fn dismiss(&mut self, among: impl Fn(&Visitor) -> bool) -> bool {
        let slow = self.list.iter().filter(|visitor| among(visitor) && visitor.may_be_disturbed());
        let slowest = slow.min_by_key(|visitor| (visitor.phase, visitor.since)).map(|visitor| visitor.number);
        let Some(at) = self.list.iter().position(|visitor| Some(visitor.number) == slowest) else {
            return false;
        };
        // Its thread finds the connection closed.
        let _ = self.list.swap_remove(at).socket.shutdown(Shutdown::Both);
        true
    }
}

/// All places.
#[derive(Clone, Debug, Default)]
pub struct Places(Arc<Mutex<Visitors>>);

impl Places {
    fn visitors(&self) -> MutexGuard<'_, Visitors> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a connection; `None` where there is none that could be had.
    pub fn take(&self, peer: PeerName, socket: &Arc<TcpStream>) -> Option<Place> {
        let mut visitors = self.visitors();
        if !visitors.make_room(peer) {
            return None;
        }
        visitors.next += 1;
        let number = visitors.next;
        let (phase, since, socket) = (VisitPhase::Asking, Instant::now(), socket.clone());
        visitors.list.push(Visitor { number, peer, phase, since, socket });
        Some(Place { places: self.clone(), number })
    }
}

/// One place, until it is dropped or given to somebody else.
#[derive(Debug)]
pub struct Place {
    places: Places,
    number: u64,
}

impl Place {
    /// The visit has come this far. `false`: not for this one, because too many are that far, or because its place is gone.
    pub fn enter(&self, phase: VisitPhase) -> bool {
        let mut visitors = self.places.visitors();
        let of_peer = |peer| visitors.followers().filter(|visitor| visitor.peer == peer).count();
        let Some(at) = visitors.list.iter().position(|visitor| visitor.number == self.number) else {
            return false;
        };
        let full =
            visitors.followers().count() >= STREAMS || of_peer(visitors.list[at].peer) >= STREAMS_OF_PEER;
        if phase == VisitPhase::Following && full {
            return false;
        }
        let visitor = &mut visitors.list[at];
        (visitor.phase, visitor.since) = (phase, Instant::now());
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.visitors().list.retain(|visitor| visitor.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const ALICE: PeerName = PeerName::User(1);
    const BOB: PeerName = PeerName::User(2);

    fn socket() -> Arc<TcpStream> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap())
    }

    #[test]
    fn who_comes_is_given_the_place_of_the_slowest_of_its_own() {
        let (places, socket) = (Places::default(), socket());
        let other = places.take(BOB, &socket).unwrap();
        let held: Vec<_> = (0..OF_PEER).map(|_| places.take(ALICE, &socket).unwrap()).collect();
        assert!(held[0].enter(VisitPhase::Answering));
        let newcomer = places.take(ALICE, &socket).unwrap();
        assert!(held[0].enter(VisitPhase::Answering), "whose answer is being made stays");
        assert!(!held[1].enter(VisitPhase::Answering), "who has not asked for the longest goes");
        assert!(newcomer.enter(VisitPhase::Answering) && other.enter(VisitPhase::Answering));
        for place in &held {
            place.enter(VisitPhase::Answering);
        }
        assert!(places.take(ALICE, &socket).is_none() && places.take(BOB, &socket).is_some());
    }

    #[test]
    fn who_has_most_gives_way_where_all_is_taken() {
        let (places, socket) = (Places::default(), socket());
        let peers = (0..).map(PeerName::User);
        let mut held = Vec::new();
        for peer in peers.take(CONNECTIONS / OF_PEER) {
            held.extend((0..OF_PEER).map(|_| places.take(peer, &socket).unwrap()));
        }
        let newcomer = places.take(PeerName::User(99), &socket).unwrap();
        assert!(newcomer.enter(VisitPhase::Answering));
        assert_eq!(held.iter().filter(|place| !place.enter(VisitPhase::Answering)).count(), 1);
        drop((held, newcomer));
        assert_eq!(places.visitors().list.len(), 0);
    }

    #[test]
    fn one_peer_does_not_have_all_answers_that_go_on() {
        let (places, socket) = (Places::default(), socket());
        let follows = |peer| {
            let place = places.take(peer, &socket).unwrap();
            place.enter(VisitPhase::Following).then_some(place)
        };
        let first: Vec<_> = (0..STREAMS_OF_PEER + 1).filter_map(|_| follows(ALICE)).collect();
        let second: Vec<_> = (0..STREAMS_OF_PEER + 1).filter_map(|_| follows(BOB)).collect();
        assert_eq!((first.len(), second.len()), (STREAMS_OF_PEER, STREAMS_OF_PEER));
        assert!(follows(PeerName::User(3)).is_none(), "all are taken");
    }
}
