//! A client of the driver API, over any `libcuda.so.1` given by its path.
//!
//! Only what the synthetic tenants need. The functions are looked up once; every call is checked, and a
//! failure becomes an error with the driver's own name for it.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

use cuda_abi::{CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUmodule, CUresult, CUstream};
use model::Nanos;

use crate::Error;

/// What the driver is asked for, in pointers; the safe calls are the methods of `Driver`.
macro_rules! functions {
    ($($field:ident = $name:literal ($($type:ty),*);)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($type),*) -> CUresult,)*
        }

        impl Functions {
            fn load(library: &Library) -> Result<Functions, Error> {
                Ok(Functions {
                    $($field: {
                        let address = library.find($name)?;
                        // SAFETY: the driver exports this name with this signature; `cuda-abi` took both from its header.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> CUresult>(address) }
                    },)*
                })
            }
        }
    };
}
pub(crate) use functions;

functions! {
    init = "cuInit" (c_uint);
    error_name = "cuGetErrorName" (CUresult, *mut *const c_char);
    attribute = "cuDeviceGetAttribute" (*mut c_int, u32, CUdevice);
    retain = "cuDevicePrimaryCtxRetain" (*mut CUcontext, CUdevice);
    set_current = "cuCtxSetCurrent" (CUcontext);
    load = "cuModuleLoadData" (*mut CUmodule, *const c_void);
    function = "cuModuleGetFunction" (*mut CUfunction, CUmodule, *const c_char);
    allocate = "cuMemAlloc_v2" (*mut CUdeviceptr, usize);
    clear = "cuMemsetD8_v2" (CUdeviceptr, u8, usize);
    read = "cuMemcpyDtoH_v2" (*mut c_void, CUdeviceptr, usize);
    write = "cuMemcpyHtoD_v2" (CUdeviceptr, *const c_void, usize);
    set_attribute = "cuFuncSetAttribute" (CUfunction, u32, c_int);
    launch = "cuLaunchKernel" (
        CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream,
        *mut *mut c_void, *mut *mut c_void
    );
    stream_create = "cuStreamCreateWithPriority" (*mut CUstream, c_uint, c_int);
    stream_synchronize = "cuStreamSynchronize" (CUstream);
    event_create = "cuEventCreate" (*mut CUevent, c_uint);
    event_record = "cuEventRecord" (CUevent, CUstream);
    event_synchronize = "cuEventSynchronize" (CUevent);
    event_elapsed = "cuEventElapsedTime" (*mut f32, CUevent, CUevent);
    version = "cuDriverGetVersion" (*mut c_int);
    name = "cuDeviceGetName" (*mut c_char, c_int, CUdevice);
}

pub(crate) struct Library {
    handle: *mut c_void,
    path: PathBuf,
}

impl Library {
    pub fn open(path: &Path) -> Result<Library, Error> {
        let refused = |reason| Error::Open { path: path.to_owned(), reason };
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|_| refused("a zero byte in the path".into()))?;
        // SAFETY: a C string; a driver's initialisers are as trustworthy as the driver the user chose.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(refused(dl_error()));
        }
        Ok(Library { handle, path: path.to_owned() })
    }

    pub fn find(&self, name: &'static str) -> Result<*mut c_void, Error> {
        let symbol = CString::new(name).expect("names of functions hold no zero byte");
        // SAFETY: the handle is open for the life of the process and the name is a C string.
        let address = unsafe { libc::dlsym(self.handle, symbol.as_ptr()) };
        if address.is_null() {
            return Err(Error::Missing { path: self.path.clone(), name });
        }
        Ok(address)
    }
}

fn dl_error() -> String {
    // SAFETY: no preconditions.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: a non-null answer is a C string, valid until this thread's next dl call.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A driver with a current context on its first device and one stream.
pub struct Driver {
    functions: Functions,
    stream: CUstream,
}

/// A mark in the driver's stream.
#[derive(Clone, Copy)]
pub struct Event(CUevent);

/// A kernel of a loaded module.
#[derive(Clone, Copy)]
pub struct Function(CUfunction);

/// The shape of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub blocks: u32,
    pub threads: u32,
    /// Bytes of dynamic shared memory for each block.
    pub shared: u32,
}

impl Driver {
    /// `priority` is the stream's: lower is more urgent.
    pub fn open(path: &Path, priority: i32) -> Result<Driver, Error> {
        let functions = Functions::load(&Library::open(path)?)?;
        let mut driver = Driver { functions, stream: ptr::null_mut() };
        // SAFETY: no pointers.
        driver.check("cuInit", unsafe { (driver.functions.init)(0) })?;
        let mut context: CUcontext = ptr::null_mut();
        // SAFETY: a valid place for the answer.
        driver.check("cuDevicePrimaryCtxRetain", unsafe { (driver.functions.retain)(&mut context, 0) })?;
        // SAFETY: the context was just retained.
        driver.check("cuCtxSetCurrent", unsafe { (driver.functions.set_current)(context) })?;
        let mut stream: CUstream = ptr::null_mut();
        const NON_BLOCKING: c_uint = 1;
        // SAFETY: a valid place for the answer.
        let result = unsafe { (driver.functions.stream_create)(&mut stream, NON_BLOCKING, priority) };
        driver.check("cuStreamCreateWithPriority", result)?;
        driver.stream = stream;
        Ok(driver)
    }

    /// A number from the device's list of attributes.
    pub fn attribute(&self, attribute: u32) -> Result<i32, Error> {
        let mut value = 0;
        // SAFETY: a valid place for the answer.
        let result = unsafe { (self.functions.attribute)(&mut value, attribute, 0) };
        self.check("cuDeviceGetAttribute", result).map(|()| value)
    }

    /// What the driver calls its first device.
    pub fn device_name(&self) -> Result<String, Error> {
        let mut name = [0u8; 256];
        // SAFETY: a valid place for as many bytes as it is said to have.
        let result = unsafe { (self.functions.name)(name.as_mut_ptr().cast(), name.len() as c_int, 0) };
        self.check("cuDeviceGetName", result)?;
        let text = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy);
        Ok(text.unwrap_or_default().into_owned())
    }

    /// The newest CUDA that the driver serves, as people write it: 13.0.
    pub fn version(&self) -> Result<String, Error> {
        let mut version = 0;
        // SAFETY: a valid place for the answer.
        self.check("cuDriverGetVersion", unsafe { (self.functions.version)(&mut version) })?;
        Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
    }

    /// Loads a module and finds one of its kernels. The module stays for the life of the process.
    pub fn function(&self, source: &str, name: &str) -> Result<Function, Error> {
        let text = CString::new(source).expect("PTX holds no zero byte");
        let name = CString::new(name).expect("a kernel's name holds no zero byte");
        let mut module: CUmodule = ptr::null_mut();
        // SAFETY: a valid place for the answer, and PTX text that ends in a zero byte.
        self.check("cuModuleLoadData", unsafe { (self.functions.load)(&mut module, text.as_ptr().cast()) })?;
        let mut function: CUfunction = ptr::null_mut();
        // SAFETY: a valid place for the answer, a live module, a C string.
        let result = unsafe { (self.functions.function)(&mut function, module, name.as_ptr()) };
        self.check("cuModuleGetFunction", result).map(|()| Function(function))
    }

    /// Allows a kernel this much dynamic shared memory.
    pub fn allow_shared(&self, function: Function, bytes: u32) -> Result<(), Error> {
        const MAX_DYNAMIC_SHARED: u32 = 8;
        let bytes = c_int::try_from(bytes).expect("shared memory is counted in kilobytes");
        // SAFETY: no pointers but a live function.
        let result = unsafe { (self.functions.set_attribute)(function.0, MAX_DYNAMIC_SHARED, bytes) };
        self.check("cuFuncSetAttribute", result)
    }

    /// Zeroed memory for `words` numbers. It stays for the life of the process.
    pub fn allocate(&self, words: usize) -> Result<u64, Error> {
        let mut address: CUdeviceptr = 0;
        // SAFETY: a valid place for the answer.
        self.check("cuMemAlloc", unsafe { (self.functions.allocate)(&mut address, words * 8) })?;
        // SAFETY: the range was just allocated.
        self.check("cuMemsetD8", unsafe { (self.functions.clear)(address, 0, words * 8) })?;
        Ok(address)
    }

    pub fn read<const N: usize>(&self, address: u64) -> Result<[u64; N], Error> {
        let mut words = [0u64; N];
        // SAFETY: `words` has room for what is asked for.
        let result = unsafe { (self.functions.read)(words.as_mut_ptr().cast(), address, N * 8) };
        self.check("cuMemcpyDtoH", result).map(|()| words)
    }

    /// Reads as many numbers as there is room for.
    pub fn read_into(&self, address: u64, words: &mut [u64]) -> Result<(), Error> {
        // SAFETY: `words` has room for what is asked for.
        let result = unsafe { (self.functions.read)(words.as_mut_ptr().cast(), address, size_of_val(words)) };
        self.check("cuMemcpyDtoH", result)
    }

    /// Zeroes so many numbers, and returns when they are zero for every stream.
    pub fn clear(&self, address: u64, words: usize) -> Result<(), Error> {
        // SAFETY: no pointers of ours; an address that is not the driver's is its to refuse.
        self.check("cuMemsetD8", unsafe { (self.functions.clear)(address, 0, words * 8) })?;
        // SAFETY: the stream of the calls without one is always there.
        let result = unsafe { (self.functions.stream_synchronize)(ptr::null_mut()) };
        self.check("cuStreamSynchronize", result)
    }

    /// Copies numbers to an address that has room for them.
    pub fn write(&self, address: u64, words: &[u64]) -> Result<(), Error> {
        // SAFETY: `words` has what is asked for.
        let result = unsafe { (self.functions.write)(address, words.as_ptr().cast(), size_of_val(words)) };
        self.check("cuMemcpyHtoD", result)
    }

    /// Launches with two 64-bit parameters.
    pub fn launch(
        &self,
        function: Function,
        blocks: u32,
        threads: u32,
        shared: u32,
        parameters: [u64; 2],
    ) -> Result<(), Error> {
        self.launch_shaped(function, Shape { blocks, threads, shared }, parameters)
    }

    /// Launches with 64-bit parameters, as many as the kernel has.
    pub fn launch_shaped<const N: usize>(
        &self,
        function: Function,
        shape: Shape,
        mut parameters: [u64; N],
    ) -> Result<(), Error> {
        let Shape { blocks, threads, shared } = shape;
        let mut pointers = parameters.each_mut().map(|parameter| ptr::from_mut(parameter).cast::<c_void>());
        // SAFETY: the kernel takes so many 64-bit parameters, and the driver copies them during the call.
        let result = unsafe {
            (self.functions.launch)(
                function.0,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                shared,
                self.stream,
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        self.check("cuLaunchKernel", result)
    }

    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the stream lives as long as the driver.
        self.check("cuStreamSynchronize", unsafe { (self.functions.stream_synchronize)(self.stream) })
    }

    /// An event without a time. It stays for the life of the process.
    pub fn event(&self) -> Result<Event, Error> {
        const DISABLE_TIMING: c_uint = 2;
        self.event_with(DISABLE_TIMING)
    }

    /// An event that notes when the GPU came to it.
    pub fn timed_event(&self) -> Result<Event, Error> {
        self.event_with(0)
    }

    fn event_with(&self, flags: c_uint) -> Result<Event, Error> {
        let mut event: CUevent = ptr::null_mut();
        // SAFETY: a valid place for the answer.
        let result = unsafe { (self.functions.event_create)(&mut event, flags) };
        self.check("cuEventCreate", result).map(|()| Event(event))
    }

    /// The time between two events that have a time and are over.
    pub fn between(&self, from: Event, to: Event) -> Result<Nanos, Error> {
        let mut milliseconds = 0.0f32;
        // SAFETY: a valid place for the answer; events live as long as the driver.
        let result = unsafe { (self.functions.event_elapsed)(&mut milliseconds, from.0, to.0) };
        self.check("cuEventElapsedTime", result)?;
        // Floats convert with saturation, so that what comes before counts as no time.
        Ok(Nanos((f64::from(milliseconds) * 1e6) as u64))
    }

    /// Puts the event behind all that was launched so far.
    pub fn record(&self, event: Event) -> Result<(), Error> {
        // SAFETY: event and stream live as long as the driver.
        self.check("cuEventRecord", unsafe { (self.functions.event_record)(event.0, self.stream) })
    }

    pub fn await_event(&self, event: Event) -> Result<(), Error> {
        // SAFETY: the event lives as long as the driver.
        self.check("cuEventSynchronize", unsafe { (self.functions.event_synchronize)(event.0) })
    }

    fn check(&self, call: &'static str, result: CUresult) -> Result<(), Error> {
        if result == cuda_abi::CUDA_SUCCESS {
            return Ok(());
        }
        Err(Error::Driver { call, code: result.0, name: error_name(self.functions.error_name, result) })
    }
}

/// `cuGetErrorName`.
pub(crate) type ErrorName = unsafe extern "C" fn(CUresult, *mut *const c_char) -> CUresult;

/// The driver's own word for an answer.
pub(crate) fn error_name(ask: ErrorName, result: CUresult) -> String {
    let mut text: *const c_char = ptr::null();
    // SAFETY: a valid place for the answer.
    unsafe { ask(result, &mut text) };
    if text.is_null() {
        return "an unknown error".to_owned();
    }
    // SAFETY: the driver answers with a static C string.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
