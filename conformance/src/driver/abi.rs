//! C types and entry points.

use crate::answer::{Answer, Code};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

pub type CUdevice = c_int;
pub type CUdeviceptr = u64;
pub type CUcontext = *mut c_void;
pub type CUmodule = *mut c_void;
pub type CUfunction = *mut c_void;
pub type CUstream = *mut c_void;
pub type CUevent = *mut c_void;

macro_rules! entry_points {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// One address per entry point, null where the library has none.
        #[allow(non_snake_case)]
        pub struct Table {
            $(pub $name: *mut c_void,)*
        }

        impl Table {
            pub(super) fn fill(find: impl Fn(&CStr) -> *mut c_void) -> Table {
                Table { $($name: find(cstr(concat!(stringify!($name), "\0"))),)* }
            }
        }

        /// The entry points, under their C names and with their C signatures.
        #[allow(non_snake_case, clippy::too_many_arguments, clippy::not_unsafe_ptr_arg_deref)]
        impl super::Driver {
            $(pub fn $name(&self, $($argument: $type),*) -> Answer {
                let address = self.table.$name;
                assert!(!address.is_null(), concat!("the driver exports no ", stringify!($name)));
                // SAFETY: the address was exported under this name, whose C signature this is.
                let function: unsafe extern "C" fn($($type),*) -> u32 = unsafe { std::mem::transmute(address) };
                // SAFETY: see the head of `driver`: what the arguments may be is the question under test.
                let code = unsafe { function($($argument),*) };
                Answer { call: stringify!($name), code: Code(code) }
            })*
        }
    };
}

fn cstr(bytes: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(bytes.as_bytes()).expect("the macro ends every name with one zero byte")
}

entry_points! {
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(version: *mut c_int);
    fn cuGetErrorName(code: u32, text: *mut *const c_char);
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    fn cuCtxCreate_v2(context: *mut CUcontext, flags: c_uint, device: CUdevice);
    fn cuCtxDestroy_v2(context: CUcontext);
    fn cuCtxSynchronize();
    fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    fn cuMemFree_v2(address: CUdeviceptr);
    fn cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, bytes: usize);
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize);
    fn cuMemsetD8_v2(to: CUdeviceptr, value: u8, count: usize);
    fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    fn cuModuleUnload(module: CUmodule);
    fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    fn cuModuleGetGlobal_v2(address: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char);
    fn cuFuncSetAttribute(function: CUfunction, attribute: u32, value: c_int);
    fn cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared: c_uint,
        stream: CUstream,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
    fn cuStreamCreate(stream: *mut CUstream, flags: c_uint);
    fn cuStreamCreateWithPriority(stream: *mut CUstream, flags: c_uint, priority: c_int);
    fn cuStreamDestroy_v2(stream: CUstream);
    fn cuStreamSynchronize(stream: CUstream);
    fn cuStreamQuery(stream: CUstream);
    fn cuEventCreate(event: *mut CUevent, flags: c_uint);
    fn cuEventDestroy_v2(event: CUevent);
    fn cuEventRecord(event: CUevent, stream: CUstream);
    fn cuEventSynchronize(event: CUevent);
    fn cuEventQuery(event: CUevent);
    fn cuEventElapsedTime_v2(milliseconds: *mut f32, start: CUevent, end: CUevent);
    fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint);
}
