//! The engine with real kernels: order, priorities, time, faults, and two contexts that take turns.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use model::{Dim3, Domain, Nanos};

use super::{Context, Engine, Task, Work};
use crate::card::{Card, Defaults};
use crate::error::Fault;
use crate::lower;
use crate::memory::{AddressSpace, ContextId, DevicePointer};
use crate::simt::{Launch, Module, Output};

const SOURCE: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .entry sleep(.param .u64 out, .param .u64 nanoseconds) {
    .reg .b32 %r<2>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [nanoseconds];
    cvt.u32.u64 %r1, %rd2;
    nanosleep.u32 %r1;
    red.global.add.u64 [%rd1], 1;
    ret;
}
.visible .entry wait_for_clock(.param .u64 out, .param .u64 ticks) {
    .reg .pred %p<2>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [ticks];
    mov.u64 %rd3, %clock64;
again:
    mov.u64 %rd4, %clock64;
    sub.s64 %rd5, %rd4, %rd3;
    setp.lt.s64 %p1, %rd5, %rd2;
    @%p1 bra again;
    red.global.add.u64 [%rd1], 1;
    ret;
}
.visible .entry for_ever(.param .u64 out, .param .u64 unused) {
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
again:
    red.global.add.u64 [%rd1], 1;
    bra again;
}
.visible .entry stray(.param .u64 out, .param .u64 unused) {
    .reg .b64 %rd<2>;
    mov.u64 %rd1, 16;
    st.global.u64 [%rd1], %rd1;
    ret;
}
";

pub(super) struct Bench {
    _folder: tempfile::TempDir,
    pub engine: Arc<Engine>,
    pub context: Arc<Context>,
    module: Arc<Module>,
    counter: DevicePointer,
}

impl Bench {
    pub fn new(defaults: Defaults) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let card = Card::attach_in(folder.path(), "test", defaults).unwrap();
        let space = Arc::new(AddressSpace::new(1 << 30, Arc::clone(&card) as _).unwrap());
        let engine = Engine::start(card, Arc::clone(&space));
        let context = engine.create_context().unwrap();
        let image = Arc::new(lower::compile(SOURCE).unwrap());
        let module = Module::load(image, &space, ContextId(1)).unwrap();
        let counter = space.allocate(ContextId(1), 64).unwrap();
        Bench { _folder: folder, engine, context, module, counter }
    }

    pub fn launch(&self, kernel: &str, blocks: u32, argument: u64) -> Arc<Launch> {
        let mut parameters = self.counter.0.to_le_bytes().to_vec();
        parameters.extend(argument.to_le_bytes());
        Arc::new(Launch {
            kernel: self.module.kernel(kernel).unwrap(),
            grid: Dim3::new(blocks, 1, 1),
            block: Dim3::new(1, 1, 1),
            dynamic_shared: 0,
            parameters: parameters.into(),
            grid_workspace: 0,
            grid_id: 0,
            sm_count: 4,
            sms: None,
            stack_limit: 1024,
            output: Arc::new(Output::default()),
        })
    }

    pub fn submit(&self, kernel: &str, blocks: u32, argument: u64, after: &[Task], priority: i32) -> Task {
        self.context.submit(Work::Launch(self.launch(kernel, blocks, argument)), after, priority)
    }

    pub fn count(&self) -> u64 {
        let mut bytes = [0; 8];
        self.engine.space().read(self.counter.0, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }
}

pub(super) fn four_sms() -> Defaults {
    Defaults { sms: 4, switch_cost: Nanos::from_micros(50), ..Defaults::default() }
}

#[test]
fn every_block_runs_once() {
    let bench = Bench::new(four_sms());
    let task = bench.submit("sleep", 1000, 0, &[], 0);
    bench.context.wait(&task).unwrap();
    assert_eq!(bench.count(), 1000);
}

#[test]
fn tasks_follow_each_other_and_join() {
    let bench = Bench::new(four_sms());
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let order = Arc::clone(&order);
        Work::Host(Box::new(move || order.lock().unwrap().push(name)))
    };
    let first = bench.submit("sleep", 4, 2_000_000, &[], 0);
    let left = bench.context.submit(note("left"), std::slice::from_ref(&first), 0);
    let right = bench.submit("sleep", 1, 3_000_000, std::slice::from_ref(&first), 0);
    let last = bench.context.submit(note("last"), &[left, right], 0);
    bench.context.wait(&last).unwrap();
    assert_eq!(*order.lock().unwrap(), ["left", "last"]);
    let span = last.finished_at().unwrap() - first.finished_at().unwrap();
    assert!(span >= Nanos::from_millis(3), "{span}");
}

#[test]
fn nothing_ends_before_its_time_and_lateness_does_not_add_up() {
    let bench = Bench::new(four_sms());
    let begin = Instant::now();
    // 4 SMs of 32 places: ten waves of 2 ms.
    let submitted = crate::card::now();
    let task = bench.submit("sleep", 4 * 32 * 10, 2_000_000, &[], 0);
    bench.context.wait(&task).unwrap();
    assert!(begin.elapsed().as_millis() >= 20);
    let (nominal, real) = (task.finished_at().unwrap() - submitted, crate::card::now() - submitted);
    assert!(nominal >= Nanos::from_micros(19_900) && nominal <= real, "{nominal} of {real}");
}

#[test]
fn a_loop_on_the_clock_is_slept_through() {
    let bench = Bench::new(four_sms());
    let begin = Instant::now();
    let task = bench.submit("wait_for_clock", 128, 30_000_000, &[], 0);
    bench.context.wait(&task).unwrap();
    assert!(begin.elapsed().as_millis() >= 30);
    assert_eq!(bench.count(), 128);
}

#[test]
fn urgent_blocks_overtake_at_block_boundaries() {
    let bench = Bench::new(four_sms());
    // The card is full for 20 waves of 2 ms; the urgent grid comes in the first and must not wait for the last.
    let slow = bench.submit("sleep", 4 * 32 * 20, 2_000_000, &[], 0);
    while bench.engine.card().resident_blocks().iter().sum::<u32>() < 4 * 32 {
        std::thread::yield_now();
    }
    let urgent = bench.submit("sleep", 4 * 32, 2_000_000, &[], -5);
    bench.context.wait(&urgent).unwrap();
    assert!(bench.count() < 4 * 32 * 10, "{} blocks ended first", bench.count());
    bench.context.wait(&slow).unwrap();
    assert_eq!(bench.count(), 4 * 32 * 21);
}

#[test]
fn a_fault_kills_its_context_and_no_other() {
    let bench = Bench::new(four_sms());
    let other = bench.engine.create_context().unwrap();
    let stray = bench.submit("stray", 1, 0, &[], 0);
    let behind = bench.submit("sleep", 1, 0, std::slice::from_ref(&stray), 0);
    let report = bench.context.wait(&behind).unwrap_err();
    assert!(matches!(report.fault, Fault::IllegalAddress { address: 16, .. }), "{report}");
    assert_eq!(report.kernel, "stray");
    let after = bench.submit("sleep", 1, 0, &[], 0);
    assert!(bench.context.wait(&after).is_err(), "the fault is sticky");
    let fine = other.submit(Work::Launch(bench.launch("sleep", 1, 0)), &[], 0);
    other.wait(&fine).unwrap();
    assert_eq!(bench.count(), 1);
}

#[test]
fn an_endless_kernel_ends_with_its_context() {
    let bench = Bench::new(four_sms());
    let endless = bench.submit("for_ever", 8, 0, &[], 0);
    while bench.count() == 0 {
        std::thread::yield_now();
    }
    bench.context.destroy();
    while !endless.is_done() {
        std::thread::yield_now();
    }
    let other = bench.engine.create_context().unwrap();
    let fine = other.submit(Work::Launch(bench.launch("sleep", 1, 0)), &[], 0);
    other.wait(&fine).unwrap();
}

#[test]
fn two_contexts_take_turns_and_share_the_time() {
    let bench = Bench::new(Defaults { timeslice: Nanos::from_millis(1), ..four_sms() });
    let other = bench.engine.create_context().unwrap();
    // Each alone would take 40 ms; taking turns, both take about 80.
    let blocks = 4 * 32 * 40;
    let mine = bench.submit("sleep", blocks, 1_000_000, &[], 0);
    let theirs = other.submit(Work::Launch(bench.launch("sleep", blocks, 1_000_000)), &[], 0);
    let begin = crate::card::now();
    bench.context.wait(&mine).unwrap();
    other.wait(&theirs).unwrap();
    let spans = [mine, theirs].map(|task| task.finished_at().unwrap() - begin);
    assert!(spans.iter().all(|span| *span > Nanos::from_millis(60)), "{spans:?}");
    assert!(bench.engine.card().switches() > 20);
    assert_eq!(bench.count(), u64::from(2 * blocks));
}

#[test]
fn clocks_go_on_while_a_context_is_off() {
    let bench = Bench::new(Defaults { timeslice: Nanos::from_millis(5), ..four_sms() });
    let other = bench.engine.create_context().unwrap();
    let theirs = other.submit(Work::Launch(bench.launch("sleep", 4 * 32 * 700, 1_000_000)), &[], 0);
    let mine = bench.submit("wait_for_clock", 4, 300_000_000, &[], 0);
    let begin = crate::card::now();
    bench.context.wait(&mine).unwrap();
    let span = mine.finished_at().unwrap() - begin;
    // It has the GPU for about half of the time; with a clock that stood still meanwhile it would take 600 ms.
    assert!(span < Nanos::from_millis(500), "{span}");
    other.destroy();
    assert!(theirs.is_done());
}

#[test]
fn the_shared_domain_runs_contexts_at_the_same_time() {
    let bench = Bench::new(Defaults { domain: Domain::Shared, ..four_sms() });
    let other = bench.engine.create_context().unwrap();
    let mine = bench.submit("sleep", 16, 200_000_000, &[], 0);
    let theirs = other.submit(Work::Launch(bench.launch("sleep", 16, 200_000_000)), &[], 0);
    let begin = crate::card::now();
    bench.context.wait(&mine).unwrap();
    other.wait(&theirs).unwrap();
    let span = theirs.finished_at().unwrap() - begin;
    assert!(span < Nanos::from_millis(390), "{span}, which is one after the other");
    assert_eq!(bench.engine.card().switches(), 0);
}

#[test]
fn in_the_shared_domain_time_spent_waiting_for_others_is_not_caught_up() {
    let bench = Bench::new(Defaults { domain: Domain::Shared, ..four_sms() });
    let other = bench.engine.create_context().unwrap();
    let length = 5_000_000;
    let mine = bench.submit("sleep", 4 * 32, length, &[], 0);
    while bench.engine.card().resident_blocks().iter().sum::<u32>() < 4 * 32 {
        std::thread::yield_now();
    }
    let theirs = other.submit(Work::Launch(bench.launch("sleep", 4 * 32, length)), &[], 0);
    bench.context.wait(&mine).unwrap();
    other.wait(&theirs).unwrap();
    let span = theirs.finished_at().unwrap() - mine.finished_at().unwrap();
    assert!(span >= Nanos(length), "{span}, as if there had been room from the beginning");
}

#[test]
fn host_functions_may_block_without_stopping_kernels() {
    let bench = Bench::new(four_sms());
    let gate = Arc::new(AtomicU32::new(0));
    let (opened, waiting) = (Arc::clone(&gate), Arc::clone(&gate));
    let blocked = bench.context.submit(
        Work::Callback(Box::new(move || {
            while waiting.load(Ordering::Acquire) == 0 {
                std::thread::yield_now();
            }
        })),
        &[],
        0,
    );
    let kernel = bench.submit("sleep", 4, 1000, &[], 0);
    bench.context.wait(&kernel).unwrap();
    assert!(!blocked.is_done());
    opened.store(1, Ordering::Release);
    bench.context.wait(&blocked).unwrap();
}

#[test]
fn work_behind_a_poll_and_behind_a_host_function_starts_by_itself() {
    let bench = Bench::new(four_sms());
    let gate = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&gate);
    let poll = bench.context.submit(Work::Poll(Box::new(move || seen.load(Ordering::Acquire) == 1)), &[], 0);
    let copy = bench.context.submit(Work::Host(Box::new(|| ())), &[poll], 0);
    let call = bench.context.submit(Work::Callback(Box::new(|| ())), &[copy], 0);
    let last = bench.context.submit(Work::Host(Box::new(|| ())), &[call], 0);
    std::thread::sleep(std::time::Duration::from_millis(5));
    gate.store(1, Ordering::Release);
    // Nobody waits for it, so nobody helps.
    while !last.is_done() {
        std::thread::yield_now();
    }
}

#[test]
fn a_poll_ends_when_its_condition_holds() {
    let bench = Bench::new(four_sms());
    let space = Arc::clone(bench.engine.space());
    let address = bench.counter.0;
    let two = move || {
        let mut bytes = [0; 8];
        space.read(address, &mut bytes).is_ok() && u64::from_le_bytes(bytes) >= 2
    };
    let waiting = bench.context.submit(Work::Poll(Box::new(two)), &[], 0);
    let one = bench.submit("sleep", 1, 0, &[], 0);
    bench.context.wait(&one).unwrap();
    assert!(!waiting.is_done());
    bench.submit("sleep", 1, 0, &[], 0);
    bench.context.wait(&waiting).unwrap();
}
