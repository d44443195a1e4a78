//! What a shim costs: the same calls to a driver that does nothing, directly and through the shim in front of it.
//!
//! Both libraries are in one process, and batches of calls to the one and to the other take turns, so that whatever
//! the machine is busy with meets both. A batch is measured in the CPU time of its thread: on a loaded machine that is
//! still the time the calls took. The median over many batches counts.

use std::ffi::{c_int, c_uint, c_void};
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr;
use std::time::Duration;

use cuda_abi::{CUdeviceptr, CUevent, CUfunction, CUlaunchConfig, CUmodule, CUresult, CUstream};
use model::Nanos;

use crate::driver::{Library, functions};
use crate::{Error, Quantiles};

/// Calls in a batch: many times what reading the clock takes.
const BATCH: u32 = 2_000;
const BATCHES: usize = 300;

/// The handles of a driver that does nothing may be any numbers.
const MODULE: usize = 0x1000;
const FUNCTION: usize = 0x2000;
const STREAM: usize = 0x3000;
const EVENT: usize = 0x4000;

// The functions that are measured, and those by which a program makes itself known to a shim.
functions! {
    init = "cuInit" (c_uint);
    version = "cuDriverGetVersion" (*mut c_int);
    load = "cuModuleLoadData" (*mut CUmodule, *const c_void);
    function = "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const std::ffi::c_char);
    flags = "cuCtxGetFlags" (*mut c_uint);
    query = "cuStreamQuery" (CUstream);
    record = "cuEventRecord" (CUevent, CUstream);
    allocate = "cuMemAlloc_v2" (*mut CUdeviceptr, usize);
    launch = "cuLaunchKernel" (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream,
        *mut *mut c_void, *mut *mut c_void
    );
    launch_extended = "cuLaunchKernelEx" (
        *const CUlaunchConfig, CUfunction, *mut *mut c_void, *mut *mut c_void
    );
}

/// A call that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `cuCtxGetFlags`, which no hook looks at.
    Forwarded,
    /// `cuStreamQuery`.
    Query,
    /// `cuEventRecord`.
    Record,
    /// `cuMemAlloc_v2`.
    Allocate,
    /// `cuLaunchKernel`.
    Launch,
    /// `cuLaunchKernelEx`.
    LaunchExtended,
}

impl Call {
    pub const ALL: [Call; 6] =
        [Call::Forwarded, Call::Query, Call::Record, Call::Allocate, Call::Launch, Call::LaunchExtended];

    pub fn name(self) -> &'static str {
        match self {
            Call::Forwarded => "cuCtxGetFlags",
            Call::Query => "cuStreamQuery",
            Call::Record => "cuEventRecord",
            Call::Allocate => "cuMemAlloc_v2",
            Call::Launch => "cuLaunchKernel",
            Call::LaunchExtended => "cuLaunchKernelEx",
        }
    }

    /// The nanoseconds that the shim may add.
    pub fn bar(self) -> f64 {
        match self {
            Call::Forwarded => 20.0,
            _ => 50.0,
        }
    }
}

/// Nanoseconds per call, medians.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub call: Call,
    pub direct: f64,
    pub through: f64,
}

impl Cost {
    pub fn added(&self) -> f64 {
        self.through - self.direct
    }
}

/// A driver that does nothing, and the shim in front of it.
pub struct Forwarding {
    direct: Functions,
    through: Functions,
}

impl Forwarding {
    /// `EBB_DRIVER` must name `null` in this process, or the shim would look for a driver of its own.
    pub fn open(null: &Path, shim: &Path) -> Result<Forwarding, Error> {
        let [direct, through] = [null, shim].map(|path| Functions::load(&Library::open(path)?));
        let forwarding = Forwarding { direct: direct?, through: through? };
        for functions in [&forwarding.direct, &forwarding.through] {
            functions.prepare()?;
        }
        Ok(forwarding)
    }

    /// Calls made through the shim for each cost that is measured on one thread.
    pub const CALLS: u64 = (BATCH as u64) * (BATCHES as u64);

    /// Measures a call on so many threads at once.
    pub fn cost(&self, call: Call, threads: usize) -> Cost {
        let measured = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.batches(call))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("measuring does not panic"))
                .collect::<Vec<_>>()
        });
        let median = |samples: Vec<Nanos>| {
            let per_batch = Quantiles::of(samples).at(0.5).unwrap_or_default();
            per_batch.0 as f64 / f64::from(BATCH)
        };
        let direct = measured.iter().flat_map(|(direct, _)| direct.iter().copied()).collect();
        let through = measured.iter().flat_map(|(_, through)| through.iter().copied()).collect();
        Cost { call, direct: median(direct), through: median(through) }
    }

    /// Batches of both, in turns.
    fn batches(&self, call: Call) -> (Vec<Nanos>, Vec<Nanos>) {
        let (mut direct, mut through) = (Vec::with_capacity(BATCHES), Vec::with_capacity(BATCHES));
        for _ in 0..BATCHES {
            direct.push(self.direct.batch(call));
            through.push(self.through.batch(call));
        }
        (direct, through)
    }
}

impl Functions {
    /// What a program does before it launches: the shim knows modules and functions from these calls.
    fn prepare(&self) -> Result<(), Error> {
        let (mut version, mut module, mut function) = (0, handle(MODULE), handle(FUNCTION));
        let source = c".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
        // SAFETY: no pointers.
        let mut results = vec![("cuInit", unsafe { (self.init)(0) })];
        // SAFETY: a place for the answer.
        results.push(("cuDriverGetVersion", unsafe { (self.version)(&mut version) }));
        // SAFETY: a place for the answer, and PTX that ends in a zero byte.
        results.push(("cuModuleLoadData", unsafe { (self.load)(&mut module, source.as_ptr().cast()) }));
        // SAFETY: a place for the answer, a handle that the driver does not look at, a C string.
        let found = unsafe { (self.function)(&mut function, module, c"nothing".as_ptr()) };
        results.push(("cuModuleGetFunction", found));
        match results.into_iter().find(|(_, result)| *result != cuda_abi::CUDA_SUCCESS) {
            None => Ok(()),
            Some((call, result)) => Err(Error::Driver { call, code: result.0, name: format!("{result:?}") }),
        }
    }

    /// The CPU time of one batch of calls.
    fn batch(&self, call: Call) -> Nanos {
        let (function, stream, event) = (handle(FUNCTION), handle(STREAM), handle(EVENT));
        let (mut flags, mut address) = (0, 0x10_0000);
        let mut first = 1u64;
        let mut parameters = [ptr::from_mut(&mut first).cast::<c_void>()];
        let parameters = parameters.as_mut_ptr();
        let config = CUlaunchConfig {
            gridDimX: 8,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 128,
            blockDimY: 1,
            blockDimZ: 1,
            hStream: stream,
            ..Default::default()
        };
        let none = ptr::null_mut();
        let repeat = |call: &mut dyn FnMut() -> CUresult| {
            let begin = thread_time();
            for _ in 0..BATCH {
                black_box(call());
            }
            thread_time() - begin
        };
        match call {
            // SAFETY: a place for the answer.
            Call::Forwarded => repeat(&mut || unsafe { (self.flags)(&mut flags) }),
            // SAFETY: a handle that the driver does not look at.
            Call::Query => repeat(&mut || unsafe { (self.query)(stream) }),
            // SAFETY: handles that the driver does not look at.
            Call::Record => repeat(&mut || unsafe { (self.record)(event, stream) }),
            // SAFETY: a place for the answer.
            Call::Allocate => repeat(&mut || unsafe { (self.allocate)(&mut address, 4096) }),
            // SAFETY: handles that the driver does not look at, and as many parameters as the kernel has at most.
            Call::Launch => repeat(&mut || unsafe {
                (self.launch)(function, 8, 1, 1, 128, 1, 1, 0, stream, parameters, none)
            }),
            Call::LaunchExtended => repeat(&mut || {
                // SAFETY: as for the plain launch; the configuration lives as long as the call.
                unsafe { (self.launch_extended)(&config, function, parameters, none) }
            }),
        }
    }
}

fn handle<T>(number: usize) -> *mut T {
    ptr::without_provenance_mut(number)
}

/// CPU time of the calling thread.
fn thread_time() -> Nanos {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Time since the machine was started, the same in all its processes.
fn uptime() -> Nanos {
    clock(libc::CLOCK_MONOTONIC)
}

fn clock(which: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid place for the answer, and clocks that every Linux has.
    unsafe { libc::clock_gettime(which, &mut time) };
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Nanos::from(Duration::new(part(time.tv_sec), u32::try_from(time.tv_nsec).unwrap_or(0)))
}

/// From the start of a program to the end of its `cuInit`, medians.
#[derive(Clone, Copy, Debug)]
pub struct StartUp {
    pub direct: Nanos,
    pub through: Nanos,
}

impl StartUp {
    /// Starts `program`, which must hand what follows `--started` to [`started`] and print what it gives, many times
    /// with and without the shim.
    pub fn measure(program: &Path, null: &Path, shim: &Path, runs: usize) -> Result<StartUp, Error> {
        let (mut direct, mut through) = (Vec::new(), Vec::new());
        for run in 0..=runs {
            let plain = one_start(Command::new(program).arg("--started").arg(null))?;
            let mut command = Command::new(program);
            command.args(["--started", "libcuda.so.1"]).env("LD_PRELOAD", shim).env("EBB_DRIVER", null);
            let shimmed = one_start(&mut command)?;
            // The first of each reads the files from the disk.
            if run > 0 {
                direct.push(plain);
                through.push(shimmed);
            }
        }
        let median = |samples| Quantiles::of(samples).at(0.5).unwrap_or_default();
        Ok(StartUp { direct: median(direct), through: median(through) })
    }
}

fn one_start(command: &mut Command) -> Result<Nanos, Error> {
    let begin = uptime();
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().map_err(Error::Start)?;
    if !output.status.success() {
        return Err(Error::Start(io::Error::other(format!("it ended with {}", output.status))));
    }
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let end = said.parse().map(Nanos).map_err(|_| Error::Protocol(said))?;
    Ok(end - begin)
}

/// The side of the program that is started: opens the driver, begins to use it, and says when that was done.
pub fn started(driver: &Path) -> Result<u64, Error> {
    let functions = Functions::load(&Library::open(driver)?)?;
    // SAFETY: no pointers.
    let result = unsafe { (functions.init)(0) };
    if result != cuda_abi::CUDA_SUCCESS {
        return Err(Error::Driver { call: "cuInit", code: result.0, name: format!("{result:?}") });
    }
    Ok(uptime().0)
}
