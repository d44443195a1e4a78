//! A tenant: a program over the driver's C ABI that holds the result of every iteration against the processor's.
//!
//! It is this test binary itself, started by `ebb run`, and knows nothing of ebb. It waits for a line before it opens the
//! driver, so that it can come to the GPU while there is no daemon, and ends when its standard input does.

use std::ffi::{CString, c_int, c_void};
use std::io::BufRead as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::figures::{FigureFile, Figures};
use crate::driver::{Driver, call};

/// The name of the test that is the program.
pub const ROLE: &str = "worker";
/// The file for its figures, and what kind of program it is.
pub const FIGURES: &str = "EBB_CAMPAIGN_FIGURES";
pub const SHAPE: &str = "EBB_CAMPAIGN_SHAPE";

/// What a tenant may have, and what it asks for that is within and beyond, in mebibytes.
pub const LIMIT: &str = "64Mi";
const WITHIN: usize = 1 << 20;
const BEYOND: usize = 100 << 20;
const OUT_OF_MEMORY: u32 = 2;
/// How often it tries.
const MEMORY_EVERY: u64 = 16;

/// What kind of program a tenant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Launches of several waves of blocks, a few of them ahead.
    Train,
    /// Two streams that wait for each other, with copies between them.
    Streams,
    /// A few short launches now and then.
    Serve,
}

impl Shape {
    pub const ALL: [Shape; 3] = [Shape::Train, Shape::Streams, Shape::Serve];

    pub fn name(self) -> &'static str {
        match self {
            Shape::Train => "train",
            Shape::Streams => "streams",
            Shape::Serve => "serve",
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Shape::Serve => "latency",
            _ => "best-effort",
        }
    }

    fn blocks(self) -> u32 {
        match self {
            Shape::Train => 48,
            Shape::Streams => 24,
            Shape::Serve => 8,
        }
    }

    fn block(self) -> Duration {
        match self {
            Shape::Serve => Duration::from_micros(50),
            _ => Duration::from_micros(200),
        }
    }

    fn launches(self) -> u32 {
        match self {
            Shape::Train => 8,
            Shape::Streams | Shape::Serve => 4,
        }
    }

    /// Between two iterations.
    fn pause(self) -> Duration {
        match self {
            Shape::Serve => Duration::from_millis(5),
            _ => Duration::ZERO,
        }
    }
}

/// Each word becomes `word * mul + add`, after the block has slept.
const SOURCE: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry step(.param .u64 words, .param .u32 mul, .param .u32 add, .param .u32 nanoseconds)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<9>;
    ld.param.u64 %rd1, [words];
    ld.param.u32 %r1, [mul];
    ld.param.u32 %r2, [add];
    ld.param.u32 %r3, [nanoseconds];
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %ntid.x;
    mov.u32 %r6, %tid.x;
    mad.lo.u32 %r7, %r4, %r5, %r6;
    nanosleep.u32 %r3;
    mul.wide.u32 %rd2, %r7, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r8, [%rd3];
    mad.lo.u32 %r8, %r8, %r1, %r2;
    st.global.u32 [%rd3], %r8;
    ret;
}
";

const THREADS: u32 = 32;
/// An SM has room for two such blocks.
const SHARED: u32 = 100 << 10;

/// The program.
pub fn program() {
    let (Some(path), Ok(name)) = (std::env::var_os(FIGURES), std::env::var(SHAPE)) else { return };
    let shape = Shape::ALL.into_iter().find(|shape| shape.name() == name).unwrap();
    let file = FigureFile::create(Path::new(&path));
    if std::io::stdin().lock().read_line(&mut String::new()).unwrap() == 0 {
        return;
    }
    let enough = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&enough);
    std::thread::spawn(move || {
        while std::io::stdin().lock().read_line(&mut String::new()).is_ok_and(|length| length > 0) {}
        told.store(true, Ordering::Relaxed);
    });
    let mut worker = Worker::new(shape);
    let mut figures = Figures::default();
    while !enough.load(Ordering::Relaxed) {
        let right = worker.iterate(figures.done);
        figures.done += 1;
        figures.wrong += u64::from(!right);
        if figures.done % MEMORY_EVERY == 1 {
            worker.try_memory(&mut figures);
        }
        file.write(&figures);
        std::thread::sleep(shape.pause());
    }
}

type Stream = *mut c_void;

struct Worker {
    shape: Shape,
    driver: Driver,
    function: *mut c_void,
    streams: [Stream; 2],
    events: [*mut c_void; 2],
    /// Two arrays of words on the GPU, and what they must hold.
    words: [u64; 2],
    expected: [Vec<u32>; 2],
}

impl Worker {
    fn new(shape: Shape) -> Worker {
        let driver = Driver::open();
        let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
        let source = CString::new(SOURCE).unwrap();
        call!(driver, cuModuleLoadData(&raw mut module => *mut *mut c_void, source.as_ptr().cast() => *const c_void))
            .unwrap();
        call!(driver, cuModuleGetFunction(&raw mut function => *mut *mut c_void, module => *mut c_void, c"step".as_ptr() => *const std::ffi::c_char))
            .unwrap();
        const MAX_DYNAMIC_SHARED: u32 = 8;
        call!(driver, cuFuncSetAttribute(function => *mut c_void, MAX_DYNAMIC_SHARED => u32, SHARED as c_int => c_int))
            .unwrap();
        let mut worker = Worker {
            shape,
            driver,
            function,
            streams: [std::ptr::null_mut(); 2],
            events: [std::ptr::null_mut(); 2],
            words: [0; 2],
            expected: [const { Vec::new() }; 2],
        };
        (0..2).for_each(|which| worker.prepare(which));
        worker
    }

    fn prepare(&mut self, which: usize) {
        const NON_BLOCKING: u32 = 1;
        const DISABLE_TIMING: u32 = 2;
        let seed = std::process::id();
        let count = self.shape.blocks() * THREADS;
        self.expected[which] = (0..count).map(|word| word.wrapping_mul(2_654_435_761) ^ seed).collect();
        let driver = &self.driver;
        call!(driver, cuStreamCreate(&raw mut self.streams[which] => *mut Stream, NON_BLOCKING => u32))
            .unwrap();
        call!(driver, cuEventCreate(&raw mut self.events[which] => *mut *mut c_void, DISABLE_TIMING => u32))
            .unwrap();
        call!(driver, cuMemAlloc_v2(&raw mut self.words[which] => *mut u64, self.bytes() => usize)).unwrap();
        let from = self.expected[which].as_ptr().cast();
        call!(driver, cuMemcpyHtoD_v2(self.words[which] => u64, from => *const c_void, self.bytes() => usize))
            .unwrap();
    }

    fn bytes(&self) -> usize {
        size_of_val(self.expected[0].as_slice())
    }

    /// Whether the results are right.
    fn iterate(&mut self, number: u64) -> bool {
        for launch in 0..self.shape.launches() {
            let mul = (number as u32).wrapping_mul(2).wrapping_add(3);
            let add = launch.wrapping_add(number as u32);
            self.step(0, mul, add);
            if self.shape == Shape::Streams {
                self.cross();
                self.step(1, mul ^ 4, add);
            }
        }
        for stream in self.streams {
            call!(self.driver, cuStreamSynchronize(stream => Stream)).unwrap();
        }
        (0..2).all(|which| self.is_right(which))
    }

    fn step(&mut self, which: usize, mul: u32, add: u32) {
        let (mut words, mut mul, mut add) = (self.words[which], mul, add);
        let mut nanoseconds = self.shape.block().as_nanos() as u32;
        let mut parameters: [*mut c_void; 4] = [
            (&raw mut words).cast(),
            (&raw mut mul).cast(),
            (&raw mut add).cast(),
            (&raw mut nanoseconds).cast(),
        ];
        let (blocks, stream) = (self.shape.blocks(), self.streams[which]);
        let none: *mut *mut c_void = std::ptr::null_mut();
        let parameters = parameters.as_mut_ptr();
        call!(self.driver, cuLaunchKernel(
            self.function => *mut c_void, blocks => u32, 1 => u32, 1 => u32, THREADS => u32, 1 => u32, 1 => u32,
            SHARED => u32, stream => Stream, parameters => *mut *mut c_void, none => *mut *mut c_void
        ))
        .unwrap();
        for word in &mut self.expected[which] {
            *word = word.wrapping_mul(mul).wrapping_add(add);
        }
    }

    /// The second stream copies what the first has made, and the first goes on when it has.
    fn cross(&mut self) {
        let driver = &self.driver;
        let [first, second] = self.streams;
        let [made, copied] = self.events;
        call!(driver, cuEventRecord(made => *mut c_void, first => Stream)).unwrap();
        call!(driver, cuStreamWaitEvent(second => Stream, made => *mut c_void, 0 => u32)).unwrap();
        call!(driver, cuMemcpyDtoDAsync_v2(self.words[1] => u64, self.words[0] => u64, self.bytes() => usize, second => Stream))
            .unwrap();
        call!(driver, cuEventRecord(copied => *mut c_void, second => Stream)).unwrap();
        call!(driver, cuStreamWaitEvent(first => Stream, copied => *mut c_void, 0 => u32)).unwrap();
        self.expected[1] = self.expected[0].clone();
    }

    /// What is wrong counts once: the next iteration goes on from what is there.
    fn is_right(&mut self, which: usize) -> bool {
        let mut found = vec![0u32; self.expected[which].len()];
        let to = found.as_mut_ptr().cast();
        call!(self.driver, cuMemcpyDtoH_v2(to => *mut c_void, self.words[which] => u64, self.bytes() => usize))
            .unwrap();
        let right = found == self.expected[which];
        self.expected[which] = found;
        right
    }

    fn try_memory(&self, figures: &mut Figures) {
        for (bytes, count) in [(WITHIN, &mut figures.refused), (BEYOND, &mut figures.beyond)] {
            let mut given = 0u64;
            let answer = call!(self.driver, cuMemAlloc_v2(&raw mut given => *mut u64, bytes => usize));
            match answer {
                Ok(()) => call!(self.driver, cuMemFree_v2(given => u64)).unwrap(),
                Err(code) => assert_eq!(code, OUT_OF_MEMORY),
            }
            *count += u64::from(answer.is_ok() == (bytes == BEYOND));
        }
    }
}
