//! Contexts that are preempted, disabled and enabled while real kernels run in them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use model::{Domain, Nanos};

use super::tests::{Bench, four_sms};
use super::{Context, Task, Work};
use crate::card::{self, Card, Defaults};

const DOMAINS: [Domain; 2] = [Domain::Isolated, Domain::Shared];

fn bench(domain: Domain) -> Bench {
    Bench::new(Defaults { domain, ..four_sms() })
}

fn card(bench: &Bench) -> &Card {
    bench.engine.card()
}

fn wait_for(mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed().as_secs() < 60, "it never came true");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether nothing happened for a while in which much would have.
fn stands_still(bench: &Bench) -> bool {
    let before = bench.count();
    std::thread::sleep(Duration::from_millis(50));
    bench.count() == before
}

fn launch(bench: &Bench, context: &Context, kernel: &str, blocks: u32, argument: u64) -> Task {
    context.submit(Work::Launch(bench.launch(kernel, blocks, argument)), &[], 0)
}

#[test]
fn a_computing_block_is_suspended_in_the_middle() {
    for domain in DOMAINS {
        let bench = bench(domain);
        bench.submit("for_ever", 8, 0, &[], 0);
        for _ in 0..3 {
            let before = bench.count();
            wait_for(|| bench.count() > before);
            card(&bench).disable(bench.context.id()).unwrap();
            wait_for(|| stands_still(&bench));
            card(&bench).enable(bench.context.id()).unwrap();
        }
    }
}

#[test]
fn what_is_left_of_a_sleep_is_left_after_it() {
    for domain in DOMAINS {
        let bench = bench(domain);
        let length = Nanos::from_millis(400);
        let submitted = card::now();
        let task = bench.submit("sleep", 4, length.0, &[], 0);
        wait_for(|| card(&bench).resident_blocks().iter().sum::<u32>() == 4);
        card(&bench).disable(bench.context.id()).unwrap();
        let spent = card::now() - submitted;
        std::thread::sleep(Duration::from_millis(500));
        assert!(!task.is_done() && bench.count() == 0);
        let enabled = card::now();
        card(&bench).enable(bench.context.id()).unwrap();
        bench.context.wait(&task).unwrap();
        assert!(task.finished_at().unwrap() >= enabled + (length - spent));
        assert_eq!(bench.count(), 4);
    }
}

#[test]
fn the_clock_of_a_disabled_context_goes_on() {
    let bench = bench(Domain::Isolated);
    let ticks = Nanos::from_millis(600);
    let task = bench.submit("wait_for_clock", 4, ticks.0, &[], 0);
    wait_for(|| card(&bench).resident_blocks().iter().sum::<u32>() == 4);
    std::thread::sleep(Duration::from_millis(20));
    card(&bench).disable(bench.context.id()).unwrap();
    std::thread::sleep(Duration::from_millis(600));
    card(&bench).enable(bench.context.id()).unwrap();
    bench.context.wait(&task).unwrap();
    // It saw that many ticks go by without having had the GPU for as long.
    let on_time = card(&bench).contexts()[0].on_time;
    assert!(on_time < ticks, "{on_time}");
}

#[test]
fn others_have_the_gpu_while_one_is_disabled() {
    for domain in DOMAINS {
        let bench = bench(domain);
        let other = bench.engine.create_context().unwrap();
        // In the isolated domain the others would have to wait for ever, in the shared domain for room.
        card(&bench).set_timeslice(bench.context.id(), Nanos::from_millis(10_000_000)).unwrap();
        bench.submit("for_ever", 4 * 32, 0, &[], 0);
        wait_for(|| bench.count() > 0 && card(&bench).resident_blocks() == [32; 4]);
        let task = launch(&bench, &other, "sleep", 4 * 32 * 2, 1000);
        std::thread::sleep(Duration::from_millis(20));
        assert!(!task.is_done());
        card(&bench).disable(bench.context.id()).unwrap();
        other.wait(&task).unwrap();
        wait_for(|| stands_still(&bench));
        let before = bench.count();
        card(&bench).enable(bench.context.id()).unwrap();
        wait_for(|| bench.count() > before);
    }
}

#[test]
fn work_for_a_disabled_context_waits_copies_included() {
    for domain in DOMAINS {
        let bench = bench(domain);
        let other = bench.engine.create_context().unwrap();
        card(&bench).disable(bench.context.id()).unwrap();
        let copied = Arc::new(AtomicU32::new(0));
        let copy = |copied: &Arc<AtomicU32>| {
            let copied = Arc::clone(copied);
            Work::Host(Box::new(move || _ = copied.fetch_add(1, Ordering::AcqRel)))
        };
        let kernel = bench.submit("sleep", 10, 0, &[], 0);
        let mine = bench.context.submit(copy(&copied), &[], 0);
        // The other's copy is behind that one in the queue, and is not held up by it.
        let theirs = other.submit(copy(&copied), &[], 0);
        other.wait(&theirs).unwrap();
        assert_eq!(copied.load(Ordering::Acquire), 1);
        assert!(!kernel.is_done() && !mine.is_done());
        card(&bench).enable(bench.context.id()).unwrap();
        // Nobody waits for them, so nobody helps.
        wait_for(|| kernel.is_done() && mine.is_done());
        assert_eq!((copied.load(Ordering::Acquire), bench.count()), (2, 10));
    }
}

#[test]
fn a_disabled_context_can_be_destroyed() {
    for domain in DOMAINS {
        let bench = bench(domain);
        let endless = bench.submit("for_ever", 4 * 32, 0, &[], 0);
        wait_for(|| bench.count() > 0);
        card(&bench).disable(bench.context.id()).unwrap();
        let copy = bench.context.submit(Work::Host(Box::new(|| ())), &[], 0);
        bench.context.destroy();
        wait_for(|| endless.is_done() && copy.is_done());
        assert_eq!(card(&bench).resident_blocks(), [0; 4]);
        let other = bench.engine.create_context().unwrap();
        assert!(!card(&bench).contexts()[0].disabled, "its slot is as new");
        let task = launch(&bench, &other, "sleep", 1, 0);
        other.wait(&task).unwrap();
    }
}

#[test]
fn every_block_runs_once_whatever_is_done_to_its_context() {
    let bench = Bench::new(Defaults { timeslice: Nanos::from_micros(200), ..four_sms() });
    let other = bench.engine.create_context().unwrap();
    let blocks = 4 * 32 * 40;
    let tasks = [&bench.context, &other].map(|context| launch(&bench, context, "sleep", blocks, 300_000));
    let ids = [bench.context.id(), other.id()];
    for round in 0..200u64 {
        let (id, card) = (ids[(round / 3 % 2) as usize], card(&bench));
        match round % 7 {
            0 | 3 => card.preempt(id).unwrap(),
            1 => card.disable(id).unwrap(),
            2 | 4 => ids.iter().for_each(|id| card.enable(*id).unwrap()),
            5 => card.set_timeslice(id, Nanos::from_micros(1 + round)).unwrap(),
            _ => card.set_domain(DOMAINS[(round / 7 % 2) as usize]),
        }
        std::thread::sleep(Duration::from_micros(100 + 37 * (round % 11)));
    }
    ids.iter().for_each(|id| card(&bench).enable(*id).unwrap());
    bench.context.wait(&tasks[0]).unwrap();
    other.wait(&tasks[1]).unwrap();
    assert_eq!(bench.count(), u64::from(2 * blocks));
    assert_eq!(card(&bench).resident_blocks(), [0; 4]);
}
