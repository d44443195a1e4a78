use super::*;
use crate::configuration::{Ceiling, Rule, Scope, Subject};
use crate::report::State;

const GPU: Gpu = Gpu([7; 16]);

fn registry(rules: &[Rule]) -> Registry {
    let mut configuration = Configuration::plain(Scope::User, 1000);
    configuration.ceilings.rules = rules.to_vec();
    Registry::new(configuration, 0xabcd, "/here".into())
}

fn peer(user: u32, pid: i32) -> Peer {
    Peer { user, groups: vec![user], pid: rustix::process::Pid::from_raw(pid), life: None }
}

fn registration(tenant: u64, name: &str) -> Registration {
    Registration { name: board::Label::new(name.as_bytes()), ..Registration::new(GPU, tenant) }
}

fn low() -> Ceiling {
    Ceiling { class: Class::BestEffort, weight: 2, priority: 0 }
}

fn process(registry: &Registry, pid: u32) -> crate::report::Process {
    let report = registry.report(board::now());
    report.gpus[0].processes.iter().find(|process| process.pid == pid).unwrap().clone()
}

#[test]
fn a_claim_above_its_ceiling_is_lowered_and_told() {
    let mut registry = registry(&[Rule { subject: Subject::User(5), ceiling: low() }]);
    let claim = Registration { class: Class::Latency, weight: 9, ..registration(1, "serve") };
    let (_, lowered) = registry.register(&peer(5, 50), &claim).unwrap();
    assert_eq!((lowered.class, lowered.lowered, lowered.generation), (Class::BestEffort, true, 0xabcd));
    let (_, granted) = registry.register(&peer(6, 60), &Registration { tenant: 2, ..claim }).unwrap();
    assert_eq!((granted.class, granted.lowered), (Class::Latency, false));
    let (first, second) = (process(&registry, 50), process(&registry, 60));
    assert!(
        first.lowered && first.class == "best-effort" && first.asked.class == "latency" && first.weight == 2
    );
    assert!(!second.lowered && second.weight == 9);
    let sentences = registry.report(board::now()).sentences;
    assert_eq!(sentences.len(), 1, "{sentences:?}");
    assert!(sentences[0].starts_with("serve (50) asked for class latency"), "{sentences:?}");
}

#[test]
fn nobody_joins_the_tenant_of_another_user() {
    let mut registry = registry(&[]);
    registry.register(&peer(5, 50), &registration(1, "mine")).unwrap();
    registry.register(&peer(5, 51), &registration(1, "mine")).unwrap();
    registry.register(&peer(6, 60), &registration(1, "theirs")).unwrap();
    let number = |pid| process(&registry, pid).tenant;
    assert_eq!(number(50), "0000000000000001");
    assert_eq!(number(50), number(51));
    assert_ne!(number(50), number(60));
}

#[test]
fn who_says_no_tenant_is_one_alone() {
    let mut registry = registry(&[]);
    for pid in [50, 51] {
        registry.register(&peer(5, pid), &registration(0, "plain")).unwrap();
    }
    assert_ne!(process(&registry, 50).tenant, process(&registry, 51).tenant);
}

#[test]
fn changes_hold_for_the_whole_tenant_and_for_whom_it_starts_later() {
    let mut registry = registry(&[Rule { subject: Subject::Everyone, ceiling: low() }]);
    let (first, _) = registry.register(&peer(5, 50), &registration(1, "train")).unwrap();
    registry.register(&peer(5, 51), &registration(1, "train")).unwrap();
    registry.register(&peer(5, 52), &registration(2, "other")).unwrap();
    let wish = Wish { class: Some(Class::Latency), weight: Some(100), paused: Some(true), ..Wish::default() };
    let changed = registry.change("51", wish).unwrap();
    assert_eq!((changed.name.as_str(), changed.processes), ("train", vec![50, 51]));
    registry.register(&peer(5, 53), &registration(1, "train")).unwrap();
    for pid in [50, 51, 53] {
        let process = process(&registry, pid);
        assert_eq!((process.class.as_str(), process.weight, process.state), ("latency", 100, State::Paused));
        assert!(!process.lowered, "an admin's word is above a ceiling");
    }
    assert_eq!(process(&registry, 52).state, State::Idle);
    // What the board says to the tenant is the same.
    let board = registry.tables[&GPU].board;
    let place = registry.sittings[&first].place;
    let seat = board.sit(place).unwrap();
    assert!(seat.terms().paused && seat.terms().class == Class::Latency);
    registry.change("train", Wish { paused: Some(false), ..Wish::default() }).unwrap();
    assert!(!seat.terms().paused && seat.terms().weight == 100);
}

#[test]
fn who_is_meant_must_be_clear_or_nothing_changes() {
    let mut registry = registry(&[]);
    registry.register(&peer(5, 50), &registration(1, "train")).unwrap();
    registry.register(&peer(5, 51), &registration(2, "train")).unwrap();
    let (third, _) = registry.register(&peer(5, 52), &registration(3, "50")).unwrap();
    let pause = Wish { paused: Some(true), ..Wish::default() };
    let unclear = registry.change("train", pause).unwrap_err();
    assert!(unclear.contains("0000000000000001 (train, pid 50)"), "{unclear}");
    assert!(registry.change("50", pause).unwrap_err().contains("may be any of"));
    assert!(registry.change("nobody", pause).unwrap_err().contains("ebb ps"));
    assert!([50, 51, 52].iter().all(|pid| process(&registry, *pid).state == State::Idle));
    registry.leave(third, board::now());
    assert_eq!(registry.change("50", pause).unwrap().processes, [50]);
    assert_eq!(registry.change("0000000000000002", pause).unwrap().processes, [51]);
}

#[test]
fn what_is_known_of_a_tenant_goes_with_its_last_member() {
    let mut registry = registry(&[]);
    let guest = registry.expect(5, 1);
    let (seat, _) = registry.register(&peer(5, 50), &registration(1, "train")).unwrap();
    registry.change("train", Wish { paused: Some(true), ..Wish::default() }).unwrap();
    registry.leave(seat, board::now());
    let (seat, _) = registry.register(&peer(5, 51), &registration(1, "train")).unwrap();
    assert_eq!(process(&registry, 51).state, State::Paused, "its first process lives and may start others");
    registry.leave(seat, board::now());
    registry.forget(guest);
    registry.register(&peer(5, 52), &registration(1, "train")).unwrap();
    assert_eq!(process(&registry, 52).state, State::Idle);
    assert_eq!(registry.tenants.len(), 1);
}

#[test]
fn another_configuration_holds_for_those_who_are_there() {
    let mut registry = registry(&[]);
    let claim = Registration { class: Class::Latency, ..registration(1, "serve") };
    registry.register(&peer(5, 50), &claim).unwrap();
    let mut configuration = registry.configuration.clone();
    configuration.token.quantum = Nanos::from_millis(77);
    configuration.ceilings.rules = vec![Rule { subject: Subject::Everyone, ceiling: low() }];
    registry.configure(configuration);
    let lowered = process(&registry, 50);
    assert!(lowered.lowered && lowered.class == "best-effort");
    assert_eq!(registry.report(board::now()).gpus[0].settings.quantum_ns, 77_000_000);
    registry.configure(Configuration::plain(Scope::User, 1000));
    assert_eq!(process(&registry, 50).class, "latency");
}

#[test]
fn seats_are_bounded_and_come_back() {
    let mut registry = registry(&[]);
    let mut tickets = Vec::new();
    for pid in 1.. {
        match registry.register(&peer(5, pid), &registration(1, "many")) {
            Ok((ticket, _)) => tickets.push(ticket),
            Err(reason) => {
                assert_eq!(reason, Reason::Full);
                break;
            }
        }
    }
    assert_eq!(tickets.len(), board::SEATS);
    registry.leave(tickets[3], board::now());
    registry.register(&peer(5, 4000), &registration(1, "many")).unwrap();
    assert_eq!(process(&registry, 4000).seat, 3);
}

#[test]
fn boards_are_bounded_and_go_when_nobody_sits_there() {
    let mut registry = registry(&[]);
    let begin = board::now();
    let at = |gpu: u8| Registration { gpu: Gpu([gpu; 16]), ..registration(1, "greedy") };
    let tickets: Vec<_> = (0..64).map(|gpu| registry.register(&peer(5, 50), &at(gpu)).unwrap().0).collect();
    assert_eq!(registry.register(&peer(5, 50), &at(64)).unwrap_err(), Reason::TooMany);
    tickets[1..].iter().for_each(|ticket| registry.leave(*ticket, begin));
    registry.clear_tables(begin);
    assert_eq!(registry.tables.len(), 64, "who comes back soon finds its board");
    assert_eq!(registry.next_clearance(), Some(begin + EMPTY_FOR));
    registry.clear_tables(begin + EMPTY_FOR);
    assert_eq!(registry.tables.len(), 1);
    assert_eq!(registry.next_clearance(), None);
}
