//! Constants which the header writes as casts, and which bindgen therefore leaves out.

use core::ffi::c_void;
use core::ptr::without_provenance_mut;

use crate::{CUdevice, CUstream};

/// The default stream that waits for all others.
pub const CU_STREAM_LEGACY: CUstream = without_provenance_mut(1);
/// The calling thread's own default stream.
pub const CU_STREAM_PER_THREAD: CUstream = without_provenance_mut(2);

/// Ends the list of `extra` options of a launch.
pub const CU_LAUNCH_PARAM_END: *mut c_void = without_provenance_mut(0);
/// The next element of `extra` points to the packed parameters.
pub const CU_LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = without_provenance_mut(1);
/// The next element of `extra` points to their size.
pub const CU_LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = without_provenance_mut(2);

/// The host as a place for memory.
pub const CU_DEVICE_CPU: CUdevice = -1;
/// No device.
pub const CU_DEVICE_INVALID: CUdevice = -2;
