use super::*;
use std::process::{Child, Command, Stdio};

pub(super) fn small() -> Defaults {
    Defaults { sms: 4, memory_bytes: 1 << 20, ..Defaults::default() }
}

pub(super) fn card(defaults: Defaults) -> (tempfile::TempDir, Arc<Card>) {
    let folder = tempfile::tempdir().unwrap();
    let card = Card::attach_in(folder.path(), "test", defaults).unwrap();
    (folder, card)
}

pub(super) fn on(card: &Card, context: &ContextHandle) -> bool {
    matches!(card.turn(context), Turn::On { .. })
}

#[test]
fn a_lone_context_keeps_the_gpu() {
    let (_folder, card) = card(small());
    let context = card.create_context().unwrap();
    assert!(!on(&card, &context), "an idle context is off");
    card.set_runnable(&context, true);
    assert!(on(&card, &context));
    card.arbitrate_if_due(now() + Nanos::from_millis(100));
    assert!(on(&card, &context), "nobody waits, so no slice ends");
    card.set_runnable(&context, false);
    assert!(!on(&card, &context));
}

#[test]
fn contexts_take_turns_by_their_own_timeslices() {
    let (_folder, card) = card(small());
    let (first, second) = (card.create_context().unwrap(), card.create_context().unwrap());
    card.set_timeslice(second.id, Nanos(1)).unwrap();
    card.set_runnable(&first, true);
    card.set_runnable(&second, true);
    assert!(on(&card, &first), "the second waits for the end of the first one's slice");
    let end = card.next_arbitration().unwrap();
    card.arbitrate_if_due(end - Nanos(1));
    assert!(on(&card, &first));
    card.arbitrate_if_due(end);
    assert!(on(&card, &second) && !on(&card, &first));
    let Turn::On { begins, .. } = card.turn(&second) else { panic!("it is on") };
    assert_eq!(begins, end + card.switch_cost(), "the switch has its price");
    card.arbitrate_if_due(begins + Nanos(1));
    assert!(on(&card, &first), "a slice of a nanosecond ends at once when somebody waits");
    assert_eq!(card.switches(), 3);
}

#[test]
fn who_comes_to_a_busy_gpu_waits_for_the_rest_of_a_slice() {
    let slice = Nanos::from_millis(10_000);
    let (_folder, card) = card(Defaults { timeslice: slice, ..small() });
    let (first, second) = (card.create_context().unwrap(), card.create_context().unwrap());
    card.set_runnable(&first, true);
    // As if it had been alone for two and a half slices.
    let over = now() - Nanos(slice.0 * 3 / 2);
    card.segment().slice_end.store(over.0, Relaxed);
    card.set_runnable(&second, true);
    assert!(on(&card, &first) && !on(&card, &second));
    assert_eq!(card.next_arbitration(), Some(over + Nanos(slice.0 * 2)));
    // From now on the end of the slice is the end.
    card.arbitrate_if_due(over + Nanos(slice.0 * 2));
    assert!(on(&card, &second) && !on(&card, &first));
}

#[test]
fn context_time_stands_still_while_off() {
    let (_folder, card) = card(small());
    let (first, second) = (card.create_context().unwrap(), card.create_context().unwrap());
    card.set_runnable(&first, true);
    card.set_runnable(&second, true);
    let end = card.next_arbitration().unwrap();
    let Turn::On { offset, .. } = card.turn(&first) else { panic!("it is on") };
    card.arbitrate_if_due(end);
    let Turn::Off { at } = card.turn(&first) else { panic!("it is off") };
    assert_eq!(at, end - offset);
    let next = card.next_arbitration().unwrap();
    card.arbitrate_if_due(next);
    let Turn::On { begins, offset } = card.turn(&first) else { panic!("it is on again") };
    assert_eq!(begins - offset, at, "it goes on where it stopped");
}

#[test]
fn in_the_shared_domain_everybody_is_on() {
    let (_folder, card) = card(Defaults { domain: Domain::Shared, ..small() });
    let (first, second) = (card.create_context().unwrap(), card.create_context().unwrap());
    card.set_runnable(&first, true);
    assert!(on(&card, &first) && on(&card, &second));
    card.set_domain(Domain::Isolated);
    assert!(on(&card, &first) && !on(&card, &second), "only the one with work has the GPU now");
    card.set_domain(Domain::Shared);
    assert!(on(&card, &first) && on(&card, &second));
}

#[test]
fn shared_contexts_share_the_room_and_isolated_ones_do_not() {
    let each = Footprint { threads: 1024, registers: 0, shared: 0 };
    for (domain, second_gets) in [(Domain::Shared, 3), (Domain::Isolated, 8)] {
        let (_folder, card) = card(Defaults { domain, ..small() });
        let (first, second) = (card.create_context().unwrap(), card.create_context().unwrap());
        let mut places = Vec::new();
        card.place(&first, 0, &each, 5, None, &mut places);
        assert_eq!(places, [0, 1, 2, 3, 0], "blocks go round the SMs");
        let mut others = Vec::new();
        card.place(&second, 0, &each, 100, None, &mut others);
        assert_eq!(others.len(), second_gets);
        card.release(&first, &each, &places);
        card.release(&second, &each, &others);
        assert_eq!(card.resident_blocks(), [0, 0, 0, 0]);
    }
}

#[test]
fn a_more_urgent_context_goes_first() {
    let (_folder, card) = card(Defaults { domain: Domain::Shared, ..small() });
    let (low, high) = (card.create_context().unwrap(), card.create_context().unwrap());
    let each = Footprint { threads: 1024, registers: 0, shared: 0 };
    card.set_pending(&high, Some(-5));
    assert!(!card.may_inherit(&low, 0) && card.may_inherit(&high, -5));
    let mut places = Vec::new();
    card.place(&low, 0, &each, 1, None, &mut places);
    assert!(places.is_empty());
    card.set_pending(&high, None);
    card.place(&low, 0, &each, 1, None, &mut places);
    assert_eq!(places.len(), 1);
}

#[test]
fn occupancy_follows_the_scarcest_resource() {
    let (_folder, card) = card(small());
    let properties = card.properties();
    let blocks = |threads, registers, shared| {
        Footprint::of(&properties, threads, registers, shared).blocks_per_sm(&properties)
    };
    assert_eq!(blocks(128, 32, 0), 16, "threads");
    assert_eq!(blocks(32, 16, 0), 32, "blocks");
    assert_eq!(blocks(256, 128, 0), 2, "registers");
    assert_eq!(blocks(128, 32, 100 << 10), 2, "shared memory");
}

#[test]
fn memory_is_bounded_for_all_together() {
    let (_folder, card) = card(small());
    assert!(card.charge(600 << 10));
    assert!(!card.charge(600 << 10));
    card.refund(600 << 10);
    assert!(card.charge(1 << 20));
    assert!(!card.charge(u64::MAX));
}

#[test]
fn a_file_of_garbage_is_made_anew_and_settings_outlive_processes() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("softgpu-x.{}.card", layout::VERSION);
    std::fs::write(folder.path().join(file), b"not a card at all").unwrap();
    let first = Card::attach_in(folder.path(), "x", small()).unwrap();
    first.set_switch_cost(Nanos(7));
    drop(first);
    let second = Card::attach_in(folder.path(), "x", small()).unwrap();
    assert_eq!(second.switch_cost(), Nanos(7));
}

#[test]
fn names_cannot_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["", "../x", ".", "a/b", "a b"] {
        assert!(matches!(Card::attach_in(folder.path(), name, small()), Err(Error::Name(_))), "{name}");
    }
}

/// Runs one test of this file in a child process, with the card's folder in the environment.
pub(super) fn child(folder: &std::path::Path, role: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["card::tests::as_child", "--exact", "--ignored", "--nocapture"])
        .env("EBB_TEST_FOLDER", folder)
        .env("EBB_TEST_ROLE", role)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

pub(super) fn wait_for(mut condition: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !condition() {
        assert!(begin.elapsed().as_secs() < 20, "it never came true");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
#[ignore = "the other process of the tests below"]
fn as_child() {
    let (Ok(folder), Ok(role)) = (std::env::var("EBB_TEST_FOLDER"), std::env::var("EBB_TEST_ROLE")) else {
        return;
    };
    let card = Card::attach_in(folder.as_ref(), "test", small()).unwrap();
    let context = card.create_context().unwrap();
    assert!(card.charge(4096));
    card.set_runnable(&context, true);
    card.place(&context, 0, &Footprint { threads: 2048, registers: 0, shared: 0 }, 2, None, &mut Vec::new());
    if role == "disable all and die with the lock" {
        let others = card.contexts().into_iter().filter(|other| other.id != context.id);
        others.for_each(|other| card.disable(other.id).unwrap());
    }
    if role.ends_with("die with the lock") {
        std::mem::forget(card.lock());
    }
    loop {
        std::thread::park();
    }
}

#[test]
fn who_must_share_with_the_dead_notices() {
    for domain in [Domain::Isolated, Domain::Shared] {
        let (folder, card) = card(Defaults { domain, ..small() });
        let mut other = child(folder.path(), "hold");
        wait_for(|| card.resident_blocks().iter().sum::<u32>() == 2);
        let context = card.create_context().unwrap();
        card.set_runnable(&context, true);
        card.set_pending(&context, Some(0));
        other.kill().unwrap();
        other.wait().unwrap();
        wait_for(|| {
            card.arbitrate_if_due(now());
            card.contexts().len() == 1
        });
        assert!(on(&card, &context));
        assert_eq!((card.memory_used(), card.resident_blocks()), (0, vec![0; 4]));
    }
}

#[test]
fn a_process_that_is_killed_frees_what_it_held() {
    let (folder, card) = card(Defaults { domain: Domain::Shared, ..small() });
    for role in ["hold", "die with the lock"] {
        let mut other = child(folder.path(), role);
        let pid = other.id();
        let resident = || card.resident_blocks().iter().sum::<u32>() == 2;
        wait_for(resident);
        if role == "hold" {
            wait_for(|| card.contexts().iter().any(|context| context.pid == pid));
        } else {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        other.kill().unwrap();
        other.wait().unwrap();
        card.reap_dead();
        assert_eq!(card.contexts(), []);
        assert_eq!(card.memory_used(), 0);
        assert_eq!(card.resident_blocks(), [0, 0, 0, 0]);
        assert_eq!(card.next_arbitration(), None);
    }
}
