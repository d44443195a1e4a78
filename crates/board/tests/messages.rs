//! Requests and replies as bytes.

use board::link::{Granted, Malformed, Reason, Registration, Reply, Request};
use board::{Gpu, Label, Place, SEATS, Terms, VERSION};
use model::{Bytes, Class, Domain, Nanos};
use proptest::prelude::*;

fn class() -> impl Strategy<Value = Class> {
    prop_oneof![Just(Class::Latency), Just(Class::BestEffort)]
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(1u8.., 0..200)
}

prop_compose! {
    fn registration()(
        gpu: [u8; 16],
        class in class(),
        weight in 1u32..=1_000,
        priority in 0u32..=9,
        slo in proptest::option::of(1u64..),
        memory in proptest::option::of(1u64..),
        tenant: u64,
        name in text(),
        program in text(),
    ) -> Registration {
        let (name, program) = (Label::new(&name), Label::new(&program));
        Registration {
            class, weight, priority, slo: slo.map(Nanos), memory: memory.map(Bytes), name, program,
            ..Registration::new(Gpu(gpu), tenant)
        }
    }
}

prop_compose! {
    fn terms()(
        class in class(),
        weight in 1u32..=1_000,
        priority in 0u32..=9,
        slo in proptest::option::of(1u64..),
        memory in proptest::option::of(1u64..),
        paused: bool,
    ) -> Terms {
        Terms { class, weight, priority, slo: slo.map(Nanos), memory: memory.map(Bytes), paused }
    }
}

prop_compose! {
    fn granted()(
        seat in 0..SEATS as u16, generation: u32, terms in terms(), lowered: bool, shared: bool, daemon: u64,
    ) -> Granted {
        let domain = if shared { Domain::Shared } else { Domain::Isolated };
        Granted { place: Place { seat, generation }, terms, lowered, domain, generation: daemon }
    }
}

proptest! {
    #[test]
    fn requests_round_trip(registration in registration()) {
        let request = Request::Register(registration);
        prop_assert_eq!(Request::decode(&request.encode()), Ok(request));
    }

    #[test]
    fn replies_round_trip(granted in granted(), terms in terms(), other in 9u32..) {
        for reply in [Reply::Granted(granted), Reply::NewTerms(terms)] {
            prop_assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
        }
        for reason in [Reason::Version, Reason::Full, Reason::TooMany, Reason::NotAllowed, Reason::NotUnderstood,
            Reason::Failed, Reason::NoAccess, Reason::UnknownGpu, Reason::Other(other)] {
            let reply = Reply::Refused(reason);
            prop_assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(Request::decode(&bytes).is_err() && Reply::decode(&bytes).is_err());
    }

    /// What is accepted is what would have been sent: there is one way to write a request.
    #[test]
    fn a_changed_byte_is_another_request_or_none(registration in registration(), place: prop::sample::Index, byte: u8) {
        let mut bytes = Request::Register(registration).encode();
        *place.get_mut(&mut bytes) = byte;
        if let Ok(request) = Request::decode(&bytes) {
            prop_assert_eq!(request.encode(), bytes);
        }
    }

    #[test]
    fn a_changed_byte_of_an_answer_is_another_answer_or_none(
        granted in granted(), terms in terms(), place: prop::sample::Index, byte: u8,
    ) {
        for reply in [Reply::Granted(granted), Reply::NewTerms(terms)] {
            let mut bytes = reply.encode();
            *place.get_mut(&mut bytes) = byte;
            if let Ok(other @ (Reply::Granted(_) | Reply::NewTerms(_))) = Reply::decode(&bytes) {
                prop_assert_eq!(other.encode(), bytes);
            }
        }
    }

    #[test]
    fn a_cut_or_longer_request_is_refused(registration in registration(), length in 0usize..400) {
        let mut bytes = Request::Register(registration).encode().to_vec();
        let whole = bytes.len();
        bytes.resize(length, 0);
        prop_assert_eq!(Request::decode(&bytes).is_ok(), length == whole);
    }
}

#[test]
fn another_version_is_named_and_its_refusal_understood() {
    let registration = Registration { version: VERSION + 1, ..Registration::new(Gpu([0; 16]), 1) };
    let request = Request::Register(registration).encode();
    assert_eq!(Request::decode(&request), Err(Malformed::Version(VERSION + 1)));
    let mut refusal = Reply::Refused(Reason::Version).encode();
    refusal[4..8].copy_from_slice(&(VERSION + 1).to_le_bytes());
    assert_eq!(Reply::decode(&refusal), Ok(Reply::Refused(Reason::Version)));
}

#[test]
fn a_seat_that_no_board_has_is_refused() {
    let place = Place { seat: SEATS as u16, generation: 1 };
    let (terms, domain) = (Terms::default(), Domain::Isolated);
    let granted = Granted { place, terms, lowered: false, domain, generation: 1 };
    assert_eq!(Reply::decode(&Reply::Granted(granted).encode()), Err(Malformed::Value));
}
