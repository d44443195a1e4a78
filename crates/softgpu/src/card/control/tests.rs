//! The controls on one context, by hand and in any order.

use super::*;
use crate::card::tests::{card, child, on, small, wait_for};
use crate::card::{Defaults, Footprint, Turn};
use proptest::prelude::*;

fn shared() -> Defaults {
    Defaults { domain: Domain::Shared, ..small() }
}

/// A context that has work.
fn working(card: &Card) -> ContextHandle {
    let context = card.create_context().unwrap();
    card.set_runnable(&context, true);
    context
}

#[test]
fn a_timeslice_can_be_read_back() {
    let (_folder, card) = card(small());
    let context = card.create_context().unwrap();
    assert_eq!(card.timeslice(context.id).unwrap(), small().timeslice);
    card.set_timeslice(context.id, Nanos(1000)).unwrap();
    assert_eq!(card.timeslice(context.id).unwrap(), Nanos(1000));
}

#[test]
fn contexts_that_are_not_there_are_named() {
    let (_folder, card) = card(small());
    let gone = card.create_context().unwrap();
    card.destroy_context(&gone);
    let id = gone.id;
    let answers = [card.timeslice(id).map(drop), card.preempt(id), card.disable(id), card.enable(id)];
    for answer in answers {
        assert!(matches!(answer, Err(Error::NoContext(named)) if named == id));
    }
}

#[test]
fn a_preempted_context_makes_room_for_the_next_in_the_round() {
    let (_folder, card) = card(small());
    let (first, second) = (working(&card), working(&card));
    let before = now();
    card.preempt(first.id).unwrap();
    assert!(!on(&card, &first));
    let Turn::On { begins, .. } = card.turn(&second) else { panic!("it is the second one's turn") };
    assert!(begins >= before + card.switch_cost());
    card.preempt(first.id).unwrap();
    assert!(on(&card, &second), "there is nothing to preempt of a context that waits");
    card.preempt(second.id).unwrap();
    assert!(on(&card, &first) && !on(&card, &second));
}

#[test]
fn a_preempted_context_that_is_alone_comes_back_for_the_price_of_a_switch() {
    for defaults in [small(), shared()] {
        let (_folder, card) = card(defaults);
        let context = working(&card);
        let (before, switches) = (now(), card.switches());
        let Turn::On { offset, .. } = card.turn(&context) else { panic!("it is on") };
        card.preempt(context.id).unwrap();
        let Turn::On { begins, offset: later } = card.turn(&context) else { panic!("it is on again") };
        assert!(begins >= before + card.switch_cost());
        assert_eq!(later - offset, card.switch_cost(), "context time stood still meanwhile");
        assert_eq!(card.switches(), switches + 1);
        // Once more, while the switch goes on: the clock neither jumps nor goes back.
        card.preempt(context.id).unwrap();
        let Turn::On { begins: again, offset: last } = card.turn(&context) else { panic!("it is on again") };
        assert_eq!(again - last, begins - later);
    }
}

#[test]
fn an_idle_context_is_not_preempted() {
    for defaults in [small(), shared()] {
        let (_folder, card) = card(defaults);
        let context = card.create_context().unwrap();
        let before = card.turn(&context);
        card.preempt(context.id).unwrap();
        assert_eq!((card.turn(&context), card.switches()), (before, 0));
    }
}

#[test]
fn a_disabled_context_gives_way_at_once_and_has_no_turn() {
    let (_folder, card) = card(small());
    let (first, second) = (working(&card), working(&card));
    card.disable(first.id).unwrap();
    card.disable(first.id).unwrap();
    assert!(on(&card, &second) && !on(&card, &first));
    assert_eq!(card.next_arbitration(), None, "nobody waits for the end of this slice");
    card.set_runnable(&second, false);
    assert!(!on(&card, &first) && !on(&card, &second), "work that is disabled is no work");
    card.set_runnable(&first, false);
    card.set_runnable(&first, true);
    assert!(!on(&card, &first), "what is submitted meanwhile waits too");
    card.enable(first.id).unwrap();
    assert!(on(&card, &first));
    card.set_runnable(&second, true);
    assert!(card.next_arbitration().is_some());
}

#[test]
fn in_the_shared_domain_only_the_disabled_one_is_off() {
    let (_folder, card) = card(shared());
    let (first, second) = (working(&card), working(&card));
    card.disable(first.id).unwrap();
    let Turn::Off { at } = card.turn(&first) else { panic!("it is off") };
    assert!(on(&card, &second));
    for domain in [Domain::Isolated, Domain::Shared] {
        card.set_domain(domain);
        assert!(on(&card, &second) && !on(&card, &first), "{domain}");
    }
    card.enable(first.id).unwrap();
    let Turn::On { begins, offset } = card.turn(&first) else { panic!("it is on again") };
    assert_eq!(begins - offset, at, "it goes on where it stopped");
}

#[test]
fn suspended_blocks_leave_their_room_to_others_and_come_back() {
    let (_folder, card) = card(shared());
    let (first, second) = (working(&card), working(&card));
    let each = Footprint { threads: 1024, registers: 0, shared: 0 };
    let place = |context, wanted| {
        let mut places = Vec::new();
        card.place(context, 0, &each, wanted, None, &mut places);
        places
    };
    let mine = place(&first, 8);
    card.set_pending(&first, Some(-5));
    assert!(place(&second, 8).is_empty());
    card.disable(first.id).unwrap();
    assert!(card.may_inherit(&second, 0), "the urgency of a disabled context does not count");
    let theirs = place(&second, 8);
    assert_eq!(theirs.len(), 8);
    card.set_pending(&first, None);
    card.enable(first.id).unwrap();
    assert_eq!(card.resident_blocks(), [4, 4, 4, 4]);
    assert!(!card.may_inherit(&second, 0) && place(&second, 1).is_empty(), "there is less than no room");
    card.release(&second, &each, &theirs);
    assert!(card.may_inherit(&first, 0) && place(&second, 1).is_empty(), "there is none");
    card.release(&first, &each, &mine);
    assert_eq!((place(&second, 9).len(), card.resident_blocks()), (8, vec![2, 2, 2, 2]));
}

#[test]
fn whoever_disabled_a_context_may_die() {
    let (folder, card) = card(small());
    let context = working(&card);
    let mut other = child(folder.path(), "disable all and die with the lock");
    wait_for(|| card.is_disabled(&context));
    // Whether it is killed before, in or after the rest of what it does under the lock: all must be mended.
    other.kill().unwrap();
    other.wait().unwrap();
    card.reap_dead();
    assert!(!on(&card, &context) && card.contexts().len() == 1);
    card.enable(context.id).unwrap();
    assert!(on(&card, &context));
}

#[derive(Clone, Debug)]
enum Deed {
    Runnable(usize, bool),
    Disable(usize),
    Enable(usize),
    Preempt(usize),
    Timeslice(usize, u64),
    Domain(Domain),
    Place(usize, u64),
    Release(usize),
    Replace(usize),
    EndOfSlice,
}

const CONTEXTS: usize = 3;

fn deed() -> impl Strategy<Value = Deed> {
    let which = || 0..CONTEXTS;
    prop_oneof![
        (which(), any::<bool>()).prop_map(|(which, runnable)| Deed::Runnable(which, runnable)),
        which().prop_map(Deed::Disable),
        which().prop_map(Deed::Enable),
        which().prop_map(Deed::Preempt),
        (which(), 1u64..10_000).prop_map(|(which, slice)| Deed::Timeslice(which, slice)),
        prop_oneof![Just(Domain::Isolated), Just(Domain::Shared)].prop_map(Deed::Domain),
        (which(), 1u64..12).prop_map(|(which, blocks)| Deed::Place(which, blocks)),
        which().prop_map(Deed::Release),
        which().prop_map(Deed::Replace),
        Just(Deed::EndOfSlice),
    ]
}

/// A card, its contexts, and what was seen of them last.
struct Trial {
    card: std::sync::Arc<Card>,
    contexts: Vec<ContextHandle>,
    places: Vec<Vec<u32>>,
    seen: Vec<Option<(Turn, Nanos)>>,
}

const EACH: Footprint = Footprint { threads: 1024, registers: 0, shared: 0 };

impl Trial {
    fn perform(&mut self, deed: Deed) {
        let card = std::sync::Arc::clone(&self.card);
        let id = |which: usize| self.contexts[which].id;
        match deed {
            Deed::Runnable(which, runnable) => card.set_runnable(&self.contexts[which], runnable),
            Deed::Disable(which) => card.disable(id(which)).unwrap(),
            Deed::Enable(which) => card.enable(id(which)).unwrap(),
            Deed::Preempt(which) => card.preempt(id(which)).unwrap(),
            Deed::Timeslice(which, slice) => card.set_timeslice(id(which), Nanos(slice)).unwrap(),
            Deed::Domain(domain) => card.set_domain(domain),
            Deed::Place(which, blocks) => {
                card.place(&self.contexts[which], 0, &EACH, blocks, None, &mut self.places[which]);
            }
            Deed::Release(which) => {
                card.release(&self.contexts[which], &EACH, &std::mem::take(&mut self.places[which]));
            }
            Deed::Replace(which) => {
                card.destroy_context(&self.contexts[which]);
                self.contexts[which] = card.create_context().unwrap();
                self.places[which].clear();
                self.seen[which] = None;
            }
            Deed::EndOfSlice => {
                if let Some(end) = card.next_arbitration() {
                    while now() < end {
                        std::thread::yield_now();
                    }
                    card.arbitrate_if_due(now());
                }
            }
        }
    }

    fn check(&mut self) {
        let views = self.card.contexts();
        let competing = views.iter().filter(|view| view.runnable && !view.disabled).count();
        assert_eq!(self.card.segment().runnable.load(Relaxed) as usize, competing);
        let running: Vec<_> = views.iter().filter(|view| view.on).collect();
        match self.card.domain() {
            Domain::Shared => assert!(views.iter().all(|view| view.on != view.disabled), "{views:?}"),
            Domain::Isolated => {
                assert_eq!(running.len(), competing.min(1), "no gap and no overlap: {views:?}");
                assert!(running.iter().all(|view| view.runnable && !view.disabled), "{views:?}");
            }
        }
        let enabled = |which: &usize| !self.card.is_disabled(&self.contexts[*which]);
        let resident: usize = (0..CONTEXTS).filter(enabled).map(|which| self.places[which].len()).sum();
        assert_eq!(self.card.resident_blocks().iter().sum::<u32>() as usize, resident);
        for (context, seen) in self.contexts.iter().zip(&mut self.seen) {
            let turn = self.card.turn(context);
            let time = match turn {
                Turn::On { begins, offset } => now().max(begins) - offset,
                Turn::Off { at } => at,
            };
            if let Some((before, earlier)) = *seen {
                assert!(time >= earlier, "context time never goes back: {before:?}, {turn:?}");
                let off = |turn| matches!(turn, Turn::Off { .. });
                assert!(!(off(before) && off(turn)) || before == turn, "{before:?}, {turn:?}");
            }
            *seen = Some((turn, time));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_turns_time_and_room_stay_right(deeds in prop::collection::vec(deed(), 1..80)) {
        let brief = Nanos::from_micros(5);
        let (_folder, card) = card(Defaults { timeslice: brief, switch_cost: brief, ..small() });
        let contexts = (0..CONTEXTS).map(|_| card.create_context().unwrap()).collect();
        let mut trial =
            Trial { card, contexts, places: vec![Vec::new(); CONTEXTS], seen: vec![None; CONTEXTS] };
        for deed in deeds {
            trial.perform(deed);
            trial.check();
        }
    }
}
