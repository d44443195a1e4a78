//! What a shim costs: the same calls to a driver that does nothing, directly and through the shim in front of it.
//!
//! Both libraries are in one process, and batches of calls to the one and to the other take turns, so that whatever
//! the machine is busy with meets both. A batch is measured in the CPU time of its thread: on a loaded machine that is
//! still the time the calls took. The median over many batches counts.
//!
//! In a process that is a tenant a launch passes the gate, and a wait may end a burst; so the same is measured in a tenant
//! of each class. There the first launch waits until the process has its seat.

use std::ffi::{c_int, c_uint, c_ulong, c_void};
use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::ptr;
use std::str::FromStr;
use std::time::Duration;

use cuda_abi::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUlaunchConfig, CUmodule, CUresult, CUstream,
};
use model::{Class, Nanos};

use crate::driver::{Library, functions};
use crate::{Error, Quantiles};

/// Calls in a batch: many times what reading the clock takes.
const BATCH: u32 = 2_000;
const BATCHES: usize = 300;

/// The handles of a driver that does nothing may be any numbers. Every thread has a stream and an event of its own.
const CONTEXT: usize = 0x800;
const MODULE: usize = 0x1000;
const FUNCTION: usize = 0x2000;
const STREAM: usize = 0x10_000;
const EVENT: usize = 0x20_000;
const APART: usize = 0x100;

/// A question about terminals, which the null device does not understand.
const TCGETS: c_ulong = 0x5401;

// The functions that are measured, and those by which a program makes itself known to a shim.
functions! {
    init = "cuInit" (c_uint);
    version = "cuDriverGetVersion" (*mut c_int);
    retain = "cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
    load = "cuModuleLoadData" (*mut CUmodule, *const c_void);
    function = "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const std::ffi::c_char);
    flags = "cuCtxGetFlags" (*mut c_uint);
    query = "cuStreamQuery" (CUstream);
    synchronize = "cuStreamSynchronize" (CUstream);
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
    /// `cuLaunchKernel` on an idle stream and `cuStreamSynchronize`: two calls, which are a whole burst.
    Burst,
    /// `ioctl` of the C library, with a request that is not the driver's.
    Ioctl,
    /// `cuLaunchKernel`, guarded, in a stream of its own ([`Guarding`](crate::Guarding)).
    Guarded,
    /// The same in the default stream.
    GuardedDefault,
}

impl Call {
    const FORWARDED: [Call; 8] = [
        Call::Forwarded,
        Call::Query,
        Call::Record,
        Call::Allocate,
        Call::Launch,
        Call::LaunchExtended,
        Call::Burst,
        Call::Ioctl,
    ];

    /// What is measured on the software GPU, in a process that guards every launch.
    pub const GUARDED: [Call; 2] = [Call::Guarded, Call::GuardedDefault];

    /// What is measured in a process that is a tenant of this class, or none.
    pub fn within(class: Option<Class>) -> &'static [Call] {
        match class {
            None => &Call::FORWARDED,
            Some(_) => &[Call::Query, Call::Record, Call::Launch, Call::LaunchExtended, Call::Burst],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Call::Forwarded => "cuCtxGetFlags",
            Call::Query => "cuStreamQuery",
            Call::Record => "cuEventRecord",
            Call::Allocate => "cuMemAlloc_v2",
            Call::Launch => "cuLaunchKernel",
            Call::LaunchExtended => "cuLaunchKernelEx",
            Call::Burst => "cuLaunchKernel+cuStreamSynchronize",
            Call::Ioctl => "ioctl",
            Call::Guarded => "cuLaunchKernel,guarded",
            Call::GuardedDefault => "cuLaunchKernel,guarded,default",
        }
    }

    /// The nanoseconds that the shim may add.
    pub fn bar(self, class: Option<Class>) -> f64 {
        match (self, class) {
            (Call::Forwarded | Call::Ioctl, _) => 20.0,
            // What a launch of a best-effort tenant may cost.
            (Call::Guarded | Call::GuardedDefault, _) => 500.0,
            (Call::Burst, None) => 100.0,
            (_, None) => 50.0,
            // A launch that neither begins nor ends a burst; a whole burst may cost what a launch of the others may.
            (Call::Query | Call::Record | Call::Launch | Call::LaunchExtended, Some(Class::Latency)) => 100.0,
            (_, Some(_)) => 500.0,
        }
    }

    /// Whether the ledger counts it as a plain launch.
    pub fn is_plain_launch(self) -> bool {
        matches!(self, Call::Launch | Call::Burst)
    }
}

/// Nanoseconds per call, medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub call: Call,
    pub threads: usize,
    pub direct: f64,
    pub through: f64,
}

impl Cost {
    pub fn added(&self) -> f64 {
        self.through - self.direct
    }
}

/// As it travels to whoever started the process that measured: one line of words.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.call.name(), self.threads, self.direct, self.through)
    }
}

impl FromStr for Cost {
    type Err = Error;

    fn from_str(line: &str) -> Result<Cost, Error> {
        let read = || {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let [name, threads, direct, through] = words[..] else { return None };
            let mut calls = Call::FORWARDED.into_iter().chain(Call::GUARDED);
            let call = calls.find(|call| call.name() == name)?;
            let (direct, through) = (direct.parse().ok()?, through.parse().ok()?);
            Some(Cost { call, threads: threads.parse().ok()?, direct, through })
        };
        read().ok_or_else(|| Error::Protocol(line.to_owned()))
    }
}

/// A driver that does nothing, and the shim in front of it.
pub struct Forwarding {
    direct: Side,
    through: Side,
}

/// One of the two ways.
struct Side {
    functions: Functions,
    ioctl: Ioctl,
}

type Ioctl = unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int;

impl Forwarding {
    /// The process must have been started by `ebb run`, so that the shim stands in front of the C library too and knows
    /// the driver. In a tenant this returns when it may launch.
    pub fn open(null: &Path, shim: &Path) -> Result<Forwarding, Error> {
        let forwarding = Forwarding {
            direct: Side::open(null, Path::new("libc.so.6"))?,
            through: Side::open(shim, shim)?,
        };
        for side in [&forwarding.direct, &forwarding.through] {
            side.functions.prepare()?;
        }
        Ok(forwarding)
    }

    /// Launches made through the shim before anything is measured.
    pub const FIRST: u64 = 1;

    /// Calls made through the shim for each cost that is measured on one thread.
    pub const CALLS: u64 = (BATCH as u64) * (BATCHES as u64);

    /// Measures a call on so many threads at once.
    pub fn cost(&self, call: Call, threads: usize) -> Cost {
        let measured = std::thread::scope(|scope| {
            let one = |thread| scope.spawn(move || self.batches(call, thread));
            let threads: Vec<_> = (0..threads).map(one).collect();
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
        Cost { call, threads, direct: median(direct), through: median(through) }
    }

    /// Batches of both, in turns.
    fn batches(&self, call: Call, thread: usize) -> (Vec<Nanos>, Vec<Nanos>) {
        let (mut direct, mut through) = (Vec::with_capacity(BATCHES), Vec::with_capacity(BATCHES));
        for _ in 0..BATCHES {
            direct.push(self.direct.batch(call, thread));
            through.push(self.through.batch(call, thread));
        }
        (direct, through)
    }
}

impl Side {
    fn open(driver: &Path, with_ioctl: &Path) -> Result<Side, Error> {
        let functions = Functions::load(&Library::open(driver)?)?;
        let address = Library::open(with_ioctl)?.find("ioctl")?;
        // SAFETY: a function of this name in the C library, or in a library that stands in front of it, is called so.
        let ioctl = unsafe { std::mem::transmute::<*mut c_void, Ioctl>(address) };
        Ok(Side { functions, ioctl })
    }

    /// The CPU time of one batch of calls.
    fn batch(&self, call: Call, thread: usize) -> Nanos {
        if call != Call::Ioctl {
            return self.functions.batch(call, thread);
        }
        let null = File::open("/dev/null");
        let file = null.as_ref().map_or(-1, |file| file.as_raw_fd());
        // SAFETY: the null device refuses the request before anybody looks at the argument.
        repeat(|| unsafe { (self.ioctl)(file, TCGETS, ptr::null_mut()) })
    }
}

impl Functions {
    /// What a program does until it has launched for the first time: the shim knows contexts, modules and functions from
    /// these calls.
    fn prepare(&self) -> Result<(), Error> {
        let (mut version, mut context) = (0, handle(CONTEXT));
        let (mut module, mut function) = (handle(MODULE), handle(FUNCTION));
        let source = c".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
        // SAFETY: no pointers.
        let mut results = vec![("cuInit", unsafe { (self.init)(0) })];
        // SAFETY: a place for the answer.
        results.push(("cuDriverGetVersion", unsafe { (self.version)(&mut version) }));
        // SAFETY: a place for the answer.
        results.push(("cuDevicePrimaryCtxRetain", unsafe { (self.retain)(&mut context, 0) }));
        // SAFETY: a place for the answer, and PTX that ends in a zero byte.
        results.push(("cuModuleLoadData", unsafe { (self.load)(&mut module, source.as_ptr().cast()) }));
        // SAFETY: a place for the answer, a handle that the driver does not look at, a C string.
        let found = unsafe { (self.function)(&mut function, module, c"nothing".as_ptr()) };
        results.push(("cuModuleGetFunction", found));
        let none = ptr::null_mut();
        // SAFETY: handles that the driver does not look at, and a kernel without parameters.
        let launched =
            unsafe { (self.launch)(function, 1, 1, 1, 1, 1, 1, 0, handle(STREAM), ptr::null_mut(), none) };
        results.push(("cuLaunchKernel", launched));
        match results.into_iter().find(|(_, result)| *result != cuda_abi::CUDA_SUCCESS) {
            None => Ok(()),
            Some((call, result)) => Err(Error::Driver { call, code: result.0, name: format!("{result:?}") }),
        }
    }

    fn batch(&self, call: Call, thread: usize) -> Nanos {
        let function = handle(FUNCTION);
        let (stream, event) = (handle(STREAM + thread * APART), handle(EVENT + thread * APART));
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
        // SAFETY: handles that the driver does not look at, and as many parameters as the kernel has at most.
        let launch = || unsafe { (self.launch)(function, 8, 1, 1, 128, 1, 1, 0, stream, parameters, none) };
        match call {
            // SAFETY: a place for the answer.
            Call::Forwarded => repeat(|| unsafe { (self.flags)(&mut flags) }),
            // SAFETY: a handle that the driver does not look at.
            Call::Query => repeat(|| unsafe { (self.query)(stream) }),
            // SAFETY: handles that the driver does not look at.
            Call::Record => repeat(|| unsafe { (self.record)(event, stream) }),
            // SAFETY: a place for the answer.
            Call::Allocate => repeat(|| unsafe { (self.allocate)(&mut address, 4096) }),
            Call::Launch => repeat(launch),
            Call::LaunchExtended => repeat(|| {
                // SAFETY: as for the plain launch; the configuration lives as long as the call.
                unsafe { (self.launch_extended)(&config, function, parameters, none) }
            }),
            Call::Burst => repeat(|| {
                black_box(launch());
                // SAFETY: a handle that the driver does not look at.
                unsafe { (self.synchronize)(stream) }
            }),
            Call::Ioctl | Call::Guarded | Call::GuardedDefault => Nanos::ZERO,
        }
    }
}

/// The CPU time of so many calls.
fn repeat<T>(mut call: impl FnMut() -> T) -> Nanos {
    let begin = thread_time();
    for _ in 0..BATCH {
        black_box(call());
    }
    thread_time() - begin
}

fn handle<T>(number: usize) -> *mut T {
    ptr::without_provenance_mut(number)
}

/// CPU time of the calling thread.
pub(crate) fn thread_time() -> Nanos {
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
    pub fn added(&self) -> Nanos {
        self.through - self.direct
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_travels_as_a_line() {
        for call in Call::FORWARDED.into_iter().chain(Call::GUARDED) {
            let cost = Cost { call, threads: 8, direct: 2.5, through: 10.125 };
            assert_eq!(cost.to_string().parse::<Cost>().unwrap(), cost);
        }
        assert!("cuInit 1 2.5 3".parse::<Cost>().is_err());
        assert!("ioctl 1 2.5".parse::<Cost>().is_err());
    }
}
