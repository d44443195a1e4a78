//! What a latency tenant's requests take alone: without the first ones, which load and allocate, not before there are enough, and
//! also where best-effort work is always there.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;
#[path = "common/driver.rs"]
mod driver;

use std::ffi::{CString, c_void};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use common::json::Value;
use common::runtime::{Runtime, wait_for};
use common::text;
use driver::{Driver, call};

const VARIABLE: &str = "EBB_TEST_SOLO";
/// What the server says begins so; the test harness prints lines of its own.
const MARK: &str = "> ";

/// A request of a server that is warm, and one while it warms up. Far from each other, so that a busy machine changes nothing.
const QUICK: u32 = 2;
const SLOW: u32 = 300;
/// Nothing that a busy machine does to a quick request makes it as long as this, and no slow one is as short.
const BETWEEN: Duration = Duration::from_millis(200);
const NEEDED: i128 = 100;

const KERNEL: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry pause(.param .u32 milliseconds)
{
    .reg .pred %p<2>;
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [milliseconds];
AGAIN:
    nanosleep.u32 1000000;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra AGAIN;
    ret;
}
";

struct Device {
    driver: Driver,
    stream: *mut c_void,
    memory: u64,
    kernel: *mut c_void,
}

impl Device {
    fn new() -> Result<Device, u32> {
        let driver = Driver::open();
        let mut stream = std::ptr::null_mut::<c_void>();
        call!(driver, cuStreamCreate(&raw mut stream => *mut *mut c_void, 1 => u32))?;
        let mut device = Device { driver, stream, memory: 0, kernel: std::ptr::null_mut() };
        device.warm_up()?;
        Ok(device)
    }

    /// Loads a module and allocates memory, as a framework does for whatever it uses for the first time.
    fn warm_up(&mut self) -> Result<(), u32> {
        let [mut module, mut kernel] = [std::ptr::null_mut::<c_void>(); 2];
        let (text, name) = (CString::new(KERNEL).unwrap(), c"pause".as_ptr());
        call!(self.driver, cuMemAlloc_v2(&raw mut self.memory => *mut u64, 4096 => usize))?;
        call!(self.driver, cuModuleLoadData(&raw mut module => *mut *mut c_void, text.as_ptr().cast() => *const c_void))?;
        call!(self.driver, cuModuleGetFunction(&raw mut kernel => *mut *mut c_void, module => *mut c_void, name => *const i8))?;
        self.kernel = kernel;
        Ok(())
    }

    fn begin(&self) -> Result<(), u32> {
        call!(self.driver, cuMemsetD8Async(self.memory => u64, 1 => u8, 4096 => usize, self.stream => *mut c_void))
    }

    fn end(&self, mut milliseconds: u32) -> Result<(), u32> {
        let mut parameters = [(&raw mut milliseconds).cast::<c_void>()];
        let (parameters, nothing) = (parameters.as_mut_ptr(), std::ptr::null_mut());
        call!(self.driver, cuLaunchKernel(
            self.kernel => *mut c_void, 1 => u32, 1 => u32, 1 => u32, 32 => u32, 1 => u32, 1 => u32, 0 => u32,
            self.stream => *mut c_void, parameters => *mut *mut c_void, nothing => *mut *mut c_void
        ))?;
        call!(self.driver, cuStreamSynchronize(self.stream => *mut c_void))
    }
}

/// Each line it reads has it answer some requests.
#[test]
#[ignore = "another role of this program, not a test"]
fn server() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    let mut device = Device::new().unwrap();
    println!("{MARK}ready");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (how, count) = line.split_once(' ').unwrap();
        for _ in 0..count.parse::<u32>().unwrap() {
            device.begin().unwrap();
            if how == "warm-up" {
                device.warm_up().unwrap();
            }
            device.end(if how == "quick" { QUICK } else { SLOW }).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        println!("{MARK}done");
    }
}

struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Server {
    fn start(runtime: &Runtime, options: &[&str]) -> Server {
        let mut run = runtime.command();
        run.args(["run", "--device", "soft", "--class", "latency", "--name", "chat"]).args(options);
        run.arg("--").arg(std::env::current_exe().unwrap());
        run.args(["server", "--exact", "--ignored", "--nocapture"]).env(VARIABLE, "1");
        let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut server = Server { child, lines };
        server.hear("ready");
        wait_for("the server has its seat", || seat(runtime).is_some());
        server
    }

    fn hear(&mut self, word: &str) {
        let marked = |line: &String| line.ends_with(&format!("{MARK}{word}"));
        assert!(self.lines.by_ref().map(Result::unwrap).any(|line| marked(&line)), "the server lives");
    }

    fn answer(&mut self, how: &str, count: u32) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{how} {count}").unwrap();
        self.hear("done");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn seat(runtime: &Runtime) -> Option<Value> {
    runtime.seats().into_iter().find(|seat| seat["name"].text() == "chat")
}

fn requests(runtime: &Runtime) -> Value {
    seat(runtime).unwrap()["requests"].clone()
}

fn samples(runtime: &Runtime) -> (i128, i128) {
    let samples = &requests(runtime)["alone_samples"];
    (samples["seen"].number(), samples["needed"].number())
}

fn is_known(runtime: &Runtime) -> bool {
    requests(runtime)["alone"]["p99_ns"] != Value::Null
}

fn page(runtime: &Runtime) -> String {
    text(&runtime.ebb(&["status"]))
}

#[test]
fn first_requests_that_load_and_allocate_are_no_part_of_it() {
    let runtime = Runtime::new();
    let mut server = Server::start(&runtime, &[]);
    server.answer("warm-up", 4);
    assert_eq!(samples(&runtime), (0, NEEDED));
    assert!(page(&runtime).contains("alone is not known yet (0 of 100)"), "{}", page(&runtime));
    server.answer("quick", 40);
    let (seen, _) = samples(&runtime);
    assert!((1..=40).contains(&seen) && !is_known(&runtime), "{seen}");
    assert!(page(&runtime).contains("alone is not known yet ("), "{}", page(&runtime));
    assert_eq!(requests(&runtime)["slowdown_p99_permille"], Value::Null);

    server.answer("quick", 100);
    let told = requests(&runtime);
    assert!(is_known(&runtime), "{told:?}");
    let alone = told["alone"]["p99_ns"].number();
    assert!((0..BETWEEN.as_nanos() as i128).contains(&alone), "{told:?}");
    assert!(page(&runtime).contains("times as long as alone at p50"), "{}", page(&runtime));
}

#[test]
fn an_objective_that_is_kept_is_never_called_unattainable() {
    let runtime = Runtime::new();
    let slo = format!("{}ms", BETWEEN.as_millis());
    let mut server = Server::start(&runtime, &["--slo-p99", &slo]);
    server.answer("warm-up", 3);
    let _train = runtime.tenant("train", "best-effort", &[]);
    server.answer("quick", 400);
    let told = seat(&runtime).unwrap();
    assert_eq!(told["objective"].text(), "kept", "{told:?}");
    assert_eq!(told["unattainable_p99_ns"], Value::Null, "{told:?}");
    assert!(page(&runtime).contains("p99 should be below 200 ms: kept lately"), "{}", page(&runtime));
    assert!(!page(&runtime).contains("unattainable"), "{}", page(&runtime));
}

#[test]
fn beside_work_that_never_rests_it_is_known_after_some_hundred_requests() {
    let runtime = Runtime::new();
    let train = runtime.tenant("train", "best-effort", &[]);
    wait_for("the training is at work", || runtime.counter(&train, "gpu_ns") > 0);
    let mut server = Server::start(&runtime, &[]);
    server.answer("warm-up", 2);
    // A busy machine answers so slowly that not all of the first requests are made alone.
    let known = (0..10).any(|_| {
        server.answer("quick", 200);
        is_known(&runtime)
    });
    let told = requests(&runtime);
    assert!(known, "{told:?}");
    assert!(told["alone"]["p99_ns"].number() < BETWEEN.as_nanos() as i128, "{told:?}");
    let before = runtime.counter(&train, "gpu_ns");
    wait_for("the training goes on", || runtime.counter(&train, "gpu_ns") > before);
}
