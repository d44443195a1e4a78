//! A best-effort tenant that gives memory back while its work is under way, and is taken off the GPU meanwhile.
//!
//! Who frees memory waits inside the driver for the work, with locks that everybody needs who asks about a stream. The shim's keeper, who
//! took the process off the GPU, must not ask then: nobody else would let the work go on for which that thread waits.

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
use std::time::Duration;

use common::runtime::{Runtime, wait_for};
use driver::{Driver, call};
use model::Domain;
use requests::{MARK, Program, Server};

const VARIABLE: &str = "EBB_TEST_REST";

const THREADS: u32 = 32;
const WORDS: usize = THREADS as usize;
/// After so many rounds the program says that it has begun.
const BEGUN: u32 = 5;
/// How long a launch takes, so that the program is nearly always inside the call that frees.
const MILLISECONDS: u32 = 5;
const REQUESTS: u32 = 5;
const REQUEST: Duration = Duration::from_millis(100);
const LET_RUN: Duration = Duration::from_millis(50);

/// x[i] = x[i] * factor + i, by way of `aside[i]`, and only after a while: memory that was given back too early is seen in the result.
const KERNEL: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry slowly(.param .u64 x, .param .u64 aside, .param .u32 factor, .param .u32 milliseconds)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [aside];
    ld.param.u32 %r1, [factor];
    ld.param.u32 %r5, [milliseconds];
    mov.u32 %r2, %tid.x;
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mul.wide.u32 %rd5, %r2, 4;
    add.u64 %rd6, %rd3, %rd5;
    add.u64 %rd7, %rd4, %rd5;
    ld.global.u32 %r3, [%rd6];
    mad.lo.u32 %r3, %r3, %r1, %r2;
    st.global.u32 [%rd7], %r3;
AGAIN:
    nanosleep.u32 1000000;
    sub.u32 %r5, %r5, 1;
    setp.ne.u32 %p1, %r5, 0;
    @%p1 bra AGAIN;
    ld.global.u32 %r4, [%rd7];
    st.global.u32 [%rd6], %r4;
    ret;
}
";

fn factor(round: u32) -> u32 {
    2 * round + 1
}

/// The words on the device, and what it takes to work on them.
struct Device {
    driver: Driver,
    words: u64,
    stream: *mut c_void,
    kernel: *mut c_void,
}

impl Device {
    fn new() -> Result<Device, u32> {
        let driver = Driver::open();
        let mut words = 0_u64;
        let [mut module, mut kernel, mut stream] = [std::ptr::null_mut::<c_void>(); 3];
        let text = CString::new(KERNEL).unwrap();
        call!(driver, cuMemAlloc_v2(&raw mut words => *mut u64, 4 * WORDS => usize))?;
        call!(driver, cuMemsetD32_v2(words => u64, 0 => u32, WORDS => usize))?;
        call!(driver, cuModuleLoadData(&raw mut module => *mut *mut c_void, text.as_ptr().cast() => *const c_void))?;
        let name = c"slowly".as_ptr();
        call!(driver, cuModuleGetFunction(&raw mut kernel => *mut *mut c_void, module => *mut c_void, name => *const i8))?;
        call!(driver, cuStreamCreate(&raw mut stream => *mut *mut c_void, 1 => u32))?;
        Ok(Device { driver, words, stream, kernel })
    }

    /// Allocates, launches what uses the memory, and frees it with that under way.
    fn round(&self, round: u32) -> Result<(), u32> {
        let mut aside = 0_u64;
        call!(self.driver, cuMemAlloc_v2(&raw mut aside => *mut u64, 4 * WORDS => usize))?;
        self.launch(aside, factor(round))?;
        call!(self.driver, cuMemFree_v2(aside => u64))
    }

    fn launch(&self, mut aside: u64, mut factor: u32) -> Result<(), u32> {
        let Device { driver, stream, kernel, .. } = self;
        let (mut words, mut milliseconds) = (self.words, MILLISECONDS);
        let mut parameters = [
            (&raw mut words).cast::<c_void>(),
            (&raw mut aside).cast(),
            (&raw mut factor).cast(),
            (&raw mut milliseconds).cast(),
        ];
        let (parameters, nothing) = (parameters.as_mut_ptr(), std::ptr::null_mut());
        call!(driver, cuLaunchKernel(
            *kernel => *mut c_void, 1 => u32, 1 => u32, 1 => u32, THREADS => u32, 1 => u32, 1 => u32, 0 => u32,
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

#[test]
#[ignore = "a program that the other test starts"]
fn program() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    let device = Device::new().unwrap();
    let mut want: Vec<u32> = vec![0; WORDS];
    let wanted = Arc::new(AtomicBool::new(true));
    let until_told = Arc::clone(&wanted);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        until_told.store(false, Ordering::Relaxed);
    });
    for round in (0..).take_while(|round| *round <= BEGUN || wanted.load(Ordering::Relaxed)) {
        device.round(round).unwrap();
        for (word, index) in want.iter_mut().zip(0..) {
            *word = word.wrapping_mul(factor(round)).wrapping_add(index);
        }
        if round == BEGUN {
            println!("{MARK}begun");
        }
    }
    println!("{MARK}{}", if device.read().unwrap() == want { "right" } else { "wrong" });
}

#[test]
fn who_frees_memory_under_work_that_is_taken_off_the_gpu_goes_on_after_the_request() {
    let runtime = Runtime::new();
    fs::create_dir_all(runtime.path().join("ebb")).unwrap();
    let configuration = "schema_version = 1\n[policy]\nkind = \"strict\"\n";
    fs::write(runtime.path().join("ebb/ebb.toml"), configuration).unwrap();
    let mut program = Program::start(&runtime, &[(VARIABLE, "1")]);
    assert_eq!(program.hear().as_deref(), Some("begun"));
    let seat = || runtime.seats().into_iter().find(|seat| seat["class"].text() == "best-effort");
    let server = Server::sit(&runtime, Domain::Isolated);
    for _ in 0..REQUESTS {
        server.request(REQUEST);
        std::thread::sleep(LET_RUN);
    }
    let stops = seat().map(|seat| seat["counters"]["stops_switch"].number());
    program.end();
    assert_eq!(program.hear().as_deref(), Some("right"), "after {stops:?} stops");
    assert!(stops.is_some_and(|stops| stops > 0), "{stops:?}");
    wait_for("its seat is free", || seat().is_none());
}
