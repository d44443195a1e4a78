//! A best-effort tenant that launches far more than a stream's queue takes, while it is stopped for long, or goes on beside a request, on some
//! of the SMs.
//!
//! The driver keeps 1,020 entries of a stream; who hands over one more waits inside, with a lock that everybody needs who
//! would open the gate at which that stream stands. The shim keeps clear of that by counting; if it counted wrongly, this would never end.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;
#[path = "common/driver.rs"]
mod driver;
#[path = "common/requests.rs"]
mod requests;

use std::ffi::{CString, c_void};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::runtime::{PATIENCE, Runtime, wait_for};
use driver::{Driver, call};
use model::Domain;
use requests::{MARK, Program, Server};

const VARIABLE: &str = "EBB_TEST_DEPTH";

const BLOCKS: u32 = 4;
const THREADS: u32 = 32;
const WORDS: usize = (BLOCKS * THREADS) as usize;
/// After so many operations the program says that it has begun.
const BEGUN: u32 = 100;
/// Far more than may be under way.
const PINNED_WORDS: usize = 1 << 16;
/// How often it is stopped, and for how long: the program fills its queue in far less.
const STOPS: u32 = 3;
const STOPPED: Duration = Duration::from_millis(800);
const LET_RUN: Duration = Duration::from_millis(100);

/// x[i] = x[i] * factor + i: a launch that is made twice, not at all or in another place is seen in the result.
const KERNEL: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry affine(.param .u64 x, .param .u32 factor)
{
    .reg .b32 %r<7>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [x];
    ld.param.u32 %r1, [factor];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.u64 %rd4, %rd2, %rd3;
    ld.global.u32 %r6, [%rd4];
    mad.lo.u32 %r6, %r6, %r1, %r5;
    st.global.u32 [%rd4], %r6;
    ret;
}
";

/// How many of so many operations are no launches.
#[derive(Clone, Copy)]
enum Mix {
    /// Three of 32.
    Few,
    /// Three of eight.
    Many,
}

impl Mix {
    fn of(word: &str) -> Option<Mix> {
        [Mix::Few, Mix::Many].into_iter().find(|mix| mix.word() == word)
    }

    fn word(self) -> &'static str {
        match self {
            Mix::Few => "few",
            Mix::Many => "many",
        }
    }
}

/// What is done with the words, in turn.
enum Operation {
    Launch {
        factor: u32,
    },
    Fill {
        place: usize,
        value: u32,
    },
    /// The first half to the second.
    CopyOnTheDevice,
    CopyFromTheHost {
        place: usize,
        value: u32,
    },
}

impl Operation {
    fn of(number: u32, mix: Mix) -> Operation {
        let place = number as usize % WORDS;
        let turn = match mix {
            Mix::Few => number % 32,
            Mix::Many => number % 8,
        };
        match turn {
            3 => Operation::Fill { place, value: number },
            5 => Operation::CopyOnTheDevice,
            7 => Operation::CopyFromTheHost { place, value: !number },
            _ => Operation::Launch { factor: 2 * number + 1 },
        }
    }

    fn apply(&self, words: &mut [u32]) {
        match *self {
            Operation::Launch { factor } => {
                for (word, index) in words.iter_mut().zip(0..) {
                    *word = word.wrapping_mul(factor).wrapping_add(index);
                }
            }
            Operation::Fill { place, value } | Operation::CopyFromTheHost { place, value } => {
                words[place] = value
            }
            Operation::CopyOnTheDevice => words.copy_within(..WORDS / 2, WORDS / 2),
        }
    }
}

/// The words on the device, and what it takes to work on them.
struct Device {
    driver: Driver,
    words: u64,
    stream: *mut c_void,
    kernel: *mut c_void,
    /// Pinned: a copy reads from it when its turn comes.
    host: *mut u32,
}

impl Device {
    fn new() -> Result<Device, u32> {
        let driver = Driver::open();
        let (mut words, mut host) = (0_u64, std::ptr::null_mut::<c_void>());
        let [mut module, mut kernel, mut stream] = [std::ptr::null_mut::<c_void>(); 3];
        let text = CString::new(KERNEL).unwrap();
        call!(driver, cuMemAlloc_v2(&raw mut words => *mut u64, 4 * WORDS => usize))?;
        call!(driver, cuMemsetD32_v2(words => u64, 0 => u32, WORDS => usize))?;
        let bytes = 4 * PINNED_WORDS;
        call!(driver, cuMemAllocHost_v2(&raw mut host => *mut *mut c_void, bytes => usize))?;
        call!(driver, cuModuleLoadData(&raw mut module => *mut *mut c_void, text.as_ptr().cast() => *const c_void))?;
        let name = c"affine".as_ptr();
        call!(driver, cuModuleGetFunction(&raw mut kernel => *mut *mut c_void, module => *mut c_void, name => *const i8))?;
        call!(driver, cuStreamCreate(&raw mut stream => *mut *mut c_void, 1 => u32))?;
        Ok(Device { driver, words, stream, kernel, host: host.cast() })
    }

    fn hand_over(&self, number: u32, mix: Mix) -> Result<(), u32> {
        let Device { driver, stream, .. } = self;
        let at = |place: usize| self.words + 4 * place as u64;
        match Operation::of(number, mix) {
            Operation::Launch { factor } => self.launch(factor),
            Operation::Fill { place, value } => {
                call!(driver, cuMemsetD32Async(at(place) => u64, value => u32, 1 => usize, *stream => *mut c_void))
            }
            Operation::CopyOnTheDevice => {
                let (to, bytes) = (at(WORDS / 2), 2 * WORDS);
                call!(driver, cuMemcpyDtoDAsync_v2(to => u64, at(0) => u64, bytes => usize, *stream => *mut c_void))
            }
            Operation::CopyFromTheHost { place, value } => {
                let from = self.host.wrapping_add(number as usize % PINNED_WORDS);
                // SAFETY: it is one of those words, and the operation that had it before is long done.
                unsafe { from.write(value) };
                let from = from.cast_const().cast();
                call!(driver, cuMemcpyHtoDAsync_v2(at(place) => u64, from => *const c_void, 4 => usize, *stream => *mut c_void))
            }
        }
    }

    fn launch(&self, mut factor: u32) -> Result<(), u32> {
        let Device { driver, stream, kernel, .. } = self;
        let mut words = self.words;
        let mut parameters = [(&raw mut words).cast::<c_void>(), (&raw mut factor).cast()];
        let (parameters, nothing) = (parameters.as_mut_ptr(), std::ptr::null_mut());
        call!(driver, cuLaunchKernel(
            *kernel => *mut c_void, BLOCKS => u32, 1 => u32, 1 => u32, THREADS => u32, 1 => u32, 1 => u32, 0 => u32,
            *stream => *mut c_void, parameters => *mut *mut c_void, nothing => *mut *mut c_void
        ))
    }

    fn read(&self) -> Result<Vec<u32>, u32> {
        let mut words = vec![0; WORDS];
        call!(self.driver, cuStreamSynchronize(self.stream => *mut c_void))?;
        let to = words.as_mut_ptr().cast();
        call!(self.driver, cuMemcpyDtoH_v2(to => *mut c_void, self.words => u64, 4 * WORDS => usize))?;
        Ok(words)
    }
}

/// Whether the words are right, or else where they are not.
fn verdict(words: &[u32], want: &[u32]) -> String {
    let wrong: Vec<usize> = (0..WORDS).filter(|&place| words[place] != want[place]).collect();
    match wrong.first() {
        None => "right".to_owned(),
        Some(&first) => {
            let (is, should) = (words[first], want[first]);
            format!("wrong in {} words: {first} is {is:#x} and should be {should:#x}; {wrong:?}", wrong.len())
        }
    }
}

#[test]
#[ignore = "a program that the other tests start"]
fn program() {
    let Some(mix) = std::env::var(VARIABLE).ok().and_then(|word| Mix::of(&word)) else { return };
    let device = Device::new().unwrap();
    let mut want = vec![0; WORDS];
    let wanted = Arc::new(AtomicBool::new(true));
    let until_told = Arc::clone(&wanted);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        until_told.store(false, Ordering::Relaxed);
    });
    for number in (0..).take_while(|number| *number <= BEGUN || wanted.load(Ordering::Relaxed)) {
        device.hand_over(number, mix).unwrap();
        Operation::of(number, mix).apply(&mut want);
        if number == BEGUN {
            println!("{MARK}begun");
        }
    }
    println!("{MARK}handed over");
    println!("{MARK}{}", verdict(&device.read().unwrap(), &want));
}

#[test]
fn who_is_stopped_for_long_may_launch_more_than_a_queue_takes() {
    assert_eq!(confined_when_stopped_again_and_again(Mix::Few, 0, 0), 0);
}

#[test]
fn who_is_stopped_for_long_may_copy_more_than_a_queue_takes() {
    assert_eq!(confined_when_stopped_again_and_again(Mix::Many, 0, 0), 0);
}

/// More than a queue takes: it goes on, and not only with what was there when the request began.
const MANY: i128 = 2_000;

#[test]
fn who_has_sms_beside_a_request_goes_on_with_its_launches() {
    let confined = confined_when_stopped_again_and_again(Mix::Few, 50, MANY);
    assert!(confined > MANY, "{confined}");
}

#[test]
fn who_has_sms_beside_a_request_goes_on_with_its_copies() {
    let confined = confined_when_stopped_again_and_again(Mix::Many, 50, MANY / 4);
    assert!(confined > MANY / 4, "{confined}");
}

/// A daemon of the shared domain with these dials set, and the program under it. Every launch waits for its twin, so that all of them can be
/// stopped, however soon the stop comes.
fn begun(mix: Mix, dials: &str) -> (Runtime, Program) {
    let runtime = Runtime::new();
    fs::create_dir_all(runtime.path().join("ebb")).unwrap();
    let configuration = format!("schema_version = 1\ndomain = \"shared\"\nmps = false\n[policy]\n{dials}");
    fs::write(runtime.path().join("ebb/ebb.toml"), configuration).unwrap();
    let program = Program::start(&runtime, &[(VARIABLE, mix.word()), ("EBB_GUARD", "now")]);
    assert_eq!(program.hear().as_deref(), Some("begun"));
    (runtime, program)
}

#[test]
fn who_can_be_stopped_in_time_goes_on_beside_requests_that_leave_no_pause() {
    let (runtime, mut program) = begun(Mix::Few, "beside = \"10ms\"\n");
    let launches = || {
        let seat = runtime.seats().into_iter().find(|seat| seat["class"].text() == "best-effort");
        seat.map_or(0, |seat| seat["counters"]["launches"].number())
    };
    let server = Server::sit(&runtime, Domain::Shared);
    server.expect(Duration::from_millis(100));
    let before = launches();
    request_until(&server, || launches() - before > MANY);
    let beside = launches() - before;
    program.end();
    assert_eq!(program.hear().as_deref(), Some("handed over"));
    assert_eq!(program.hear().as_deref(), Some("right"));
    assert!(beside > MANY, "{beside}");
}

/// A request that lasts until something is so, or for longer than anything should take.
fn request_until(server: &Server, is_so: impl Fn() -> bool + Sync) {
    let (begun, is_over) = (Instant::now(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // It takes longer to ask than a request may go without a sign of life.
        scope.spawn(|| {
            while !is_so() && begun.elapsed() < PATIENCE {}
            is_over.store(true, Ordering::Relaxed);
        });
        server.request_until(|| is_over.load(Ordering::Relaxed));
    });
}

/// How many launches were made on so many hundredths of the SMs. The last request lasts until they are more than `many`, or longer than
/// anything should take.
fn confined_when_stopped_again_and_again(mix: Mix, share: u32, many: i128) -> i128 {
    let (runtime, mut program) = begun(mix, &format!("beside = \"0us\"\nconfine = {share}\n"));
    let seat = || runtime.seats().into_iter().find(|seat| seat["class"].text() == "best-effort");
    let server = Server::sit(&runtime, Domain::Shared);
    for _ in 0..STOPS {
        // What it is in the middle of is cut.
        server.request(STOPPED);
        std::thread::sleep(LET_RUN);
    }
    let count = |name: &str| seat().map(|seat| seat["counters"][name].number());
    if share != 0 {
        request_until(&server, || count("confined").is_none_or(|confined| confined > many));
    }
    let (stops, confined) = (count("stops_guard"), count("confined").unwrap());
    let counts = ["cut", "relaunched", "rounds", "watchdog"].map(|name| (name, count(name)));
    program.end();
    assert_eq!(program.hear().as_deref(), Some("handed over"), "it stands still for ever");
    assert_eq!(program.hear().as_deref(), Some("right"), "{counts:?}, {confined} confined");
    assert!(stops.is_some_and(|stops| stops > 0), "{stops:?}");
    wait_for("its seat is free", || seat().is_none());
    confined
}
