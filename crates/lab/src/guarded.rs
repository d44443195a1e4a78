//! What a guarded launch costs the processor: the same launches on the software GPU, directly and through a shim that guards
//! every one of them.
//!
//! A driver that does nothing would not do here: a guarded launch wants a twin, device memory, and a stream that passes gates.
//! So what stands against it is what the software driver takes for a launch. Both ways lead to one driver in one process, in
//! batches that take turns, in the CPU time of the thread. While a batch is launched its stream stands still, so that nobody
//! is woken for it; it is let go and waited for before the next begins, out of the count. The direct launch has its parameters
//! in a buffer, as the guard hands them on, so that the driver does the same for both.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::hint::black_box;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_abi::{
    CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END,
    CU_STREAM_WAIT_VALUE_EQ, CUDA_SUCCESS, CUcontext, CUdevice, CUdeviceptr, CUfunction, CUmodule, CUresult,
    CUstream,
};
use model::Nanos;

use crate::driver::{Library, functions};
use crate::forwarding::{Call, Cost, thread_time};
use crate::{Error, Quantiles};

/// Launches in a batch, gates among them: fewer are in flight than a stream may have.
const BATCH: u32 = 256;
const BATCHES: usize = 400;

/// A kernel that does nothing, with as many parameters as most have.
const SOURCE: &std::ffi::CStr = c"
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing(
    .param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d,
    .param .u64 e, .param .u64 f, .param .u64 g, .param .u64 h)
{
    ret;
}
";
const PARAMETERS: usize = 8;

functions! {
    init = "cuInit" (c_uint);
    retain = "cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
    set_current = "cuCtxSetCurrent" (CUcontext);
    load = "cuModuleLoadData" (*mut CUmodule, *const c_void);
    function = "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const c_char);
    stream = "cuStreamCreateWithPriority" (*mut CUstream, c_uint, c_int);
    allocate = "cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
    seen = "cuMemHostGetDevicePointer_v2" (*mut CUdeviceptr, *mut c_void, c_uint);
    wait = "cuStreamWaitValue32_v2" (CUstream, CUdeviceptr, u32, c_uint);
    synchronize = "cuStreamSynchronize" (CUstream);
    launch = "cuLaunchKernel" (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream,
        *mut *mut c_void, *mut *mut c_void
    );
}

/// The software GPU, and a shim in front of it that guards.
pub struct Guarding {
    direct: Functions,
    through: Functions,
    function: CUfunction,
    stream: CUstream,
    signal: Signal,
}

/// How a launch is given its parameters.
#[derive(Clone, Copy)]
enum Given {
    OneByOne,
    InABuffer,
}

/// A word for which a stream waits.
struct Signal {
    word: &'static AtomicU32,
    address: CUdeviceptr,
}

impl Guarding {
    /// Calls made through the shim for each cost, and those before anything is measured.
    pub const CALLS: u64 = (BATCH as u64) * (BATCHES as u64 + 1);

    /// The process must have been started by `ebb run` on this driver, with `EBB_GUARD=now`.
    pub fn open(driver: &Path, shim: &Path) -> Result<Guarding, Error> {
        let direct = Functions::load(&Library::open(driver)?)?;
        let through = Functions::load(&Library::open(shim)?)?;
        let (function, stream) = through.prepare()?;
        let signal = direct.signal()?;
        Ok(Guarding { direct, through, function, stream, signal })
    }

    /// Measures launches in a stream of their own, or in the default stream.
    pub fn cost(&self, call: Call) -> Result<Cost, Error> {
        let stream = if call == Call::GuardedDefault { ptr::null_mut() } else { self.stream };
        let (mut direct, mut through) = (Vec::with_capacity(BATCHES), Vec::with_capacity(BATCHES));
        for batch in 0..=BATCHES {
            let plain = self.batch(&self.direct, Given::InABuffer, stream)?;
            let guarded = self.batch(&self.through, Given::OneByOne, stream)?;
            // The first waits for the twin.
            if batch > 0 {
                direct.push(plain);
                through.push(guarded);
            }
        }
        let median = |samples: Vec<Nanos>| {
            Quantiles::of(samples).at(0.5).unwrap_or_default().0 as f64 / f64::from(BATCH)
        };
        Ok(Cost { call, threads: 1, direct: median(direct), through: median(through) })
    }

    /// One batch, in a stream that stands still meanwhile.
    fn batch(&self, side: &Functions, given: Given, stream: CUstream) -> Result<Nanos, Error> {
        self.signal.word.store(0, Ordering::Release);
        // SAFETY: a stream that exists, and a word that stays.
        let waits = unsafe { (self.direct.wait)(stream, self.signal.address, 1, CU_STREAM_WAIT_VALUE_EQ.0) };
        done("cuStreamWaitValue32_v2", waits)?;
        let took = side.batch(self.function, given, stream);
        self.signal.word.store(1, Ordering::Release);
        // SAFETY: a stream that exists.
        done("cuStreamSynchronize", unsafe { (side.synchronize)(stream) })?;
        took
    }
}

impl Functions {
    /// A context, a kernel and a stream, as the shim sees them come into being.
    fn prepare(&self) -> Result<(CUfunction, CUstream), Error> {
        const NON_BLOCKING: c_uint = 1;
        let (mut context, mut module) = (ptr::null_mut(), ptr::null_mut());
        let (mut function, mut stream) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: no pointers.
        done("cuInit", unsafe { (self.init)(0) })?;
        // SAFETY: a place for the answer.
        done("cuDevicePrimaryCtxRetain", unsafe { (self.retain)(&mut context, 0) })?;
        // SAFETY: the context that was just given.
        done("cuCtxSetCurrent", unsafe { (self.set_current)(context) })?;
        // SAFETY: a place for the answer, and PTX that ends in a zero byte.
        done("cuModuleLoadData", unsafe { (self.load)(&mut module, SOURCE.as_ptr().cast()) })?;
        // SAFETY: a place for the answer, a module that was just loaded, a C string.
        let found = unsafe { (self.function)(&mut function, module, c"nothing".as_ptr()) };
        done("cuModuleGetFunction", found)?;
        // SAFETY: a place for the answer.
        let made = unsafe { (self.stream)(&mut stream, NON_BLOCKING, 0) };
        done("cuStreamCreateWithPriority", made)?;
        Ok((function, stream))
    }

    fn signal(&self) -> Result<Signal, Error> {
        let (mut memory, mut address) = (ptr::null_mut(), 0);
        // SAFETY: a place for the answer.
        done("cuMemHostAlloc", unsafe { (self.allocate)(&mut memory, 4096, 0) })?;
        // SAFETY: memory that was just given, and a place for the answer.
        let seen = unsafe { (self.seen)(&mut address, memory, 0) };
        done("cuMemHostGetDevicePointer_v2", seen)?;
        // SAFETY: the first word of memory that is never given back; driver and host only change it as a whole.
        let word = unsafe { AtomicU32::from_ptr(memory.cast()) };
        Ok(Signal { word, address })
    }

    /// The CPU time of one batch of launches.
    fn batch(&self, function: CUfunction, given: Given, stream: CUstream) -> Result<Nanos, Error> {
        let mut values = [0_u64; PARAMETERS];
        let mut parameters = values.each_mut().map(|value| ptr::from_mut(value).cast::<c_void>());
        let mut bytes = size_of_val(&values);
        let mut buffer = [
            CU_LAUNCH_PARAM_BUFFER_POINTER,
            ptr::from_mut(&mut values).cast(),
            CU_LAUNCH_PARAM_BUFFER_SIZE,
            ptr::from_mut(&mut bytes).cast(),
            CU_LAUNCH_PARAM_END,
        ];
        let (parameters, extra) = match given {
            Given::OneByOne => (parameters.as_mut_ptr(), ptr::null_mut()),
            Given::InABuffer => (ptr::null_mut(), buffer.as_mut_ptr()),
        };
        let begin = thread_time();
        for _ in 0..BATCH {
            // SAFETY: a function and a stream that exist, and as many parameters as the kernel has.
            let result = unsafe { (self.launch)(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, extra) };
            done("cuLaunchKernel", black_box(result))?;
        }
        Ok(thread_time() - begin)
    }
}

fn done(call: &'static str, result: CUresult) -> Result<(), Error> {
    match result {
        CUDA_SUCCESS => Ok(()),
        _ => Err(Error::Driver { call, code: result.0, name: format!("{result:?}") }),
    }
}
