//! Names and descriptions of errors, for `cuGetErrorName` and `cuGetErrorString`.
//!
//! The names are the header's. The descriptions are our own: a few words which tell a user what happened.

use core::ffi::CStr;

use crate::CUresult;
use crate::generated::errors::ERRORS;

impl CUresult {
    /// The name of the constant, `CUDA_ERROR_OUT_OF_MEMORY` say; nothing if there is no such error.
    pub fn name(self) -> Option<&'static CStr> {
        let index = ERRORS.binary_search_by_key(&self.0, |(value, _)| *value).ok()?;
        Some(ERRORS[index].1)
    }

    /// A few words on what happened; nothing if there is no such error.
    pub fn description(self) -> Option<&'static CStr> {
        let index = DESCRIPTIONS.binary_search_by_key(&self.0, |(value, _)| *value).ok()?;
        Some(DESCRIPTIONS[index].1)
    }
}

/// Sorted by value.
static DESCRIPTIONS: [(u32, &CStr); 106] = [
    (0, c"no error"),
    (1, c"invalid argument"),
    (2, c"out of memory"),
    (3, c"the driver is not initialised"),
    (4, c"the driver is shutting down"),
    (5, c"the profiler is disabled"),
    (6, c"the profiler is not initialised"),
    (7, c"the profiler is already running"),
    (8, c"the profiler is not running"),
    (34, c"a stub stands in for the driver library"),
    (36, c"this call needs a newer driver"),
    (46, c"the device is busy or unavailable"),
    (47, c"no multicast resources are left"),
    (100, c"there is no CUDA device"),
    (101, c"there is no device of that number"),
    (102, c"the device has no licence"),
    (200, c"the image is not a kernel image"),
    (201, c"there is no valid context"),
    (202, c"the context is already current"),
    (205, c"mapping failed"),
    (206, c"unmapping failed"),
    (207, c"the array is mapped"),
    (208, c"the resource is already mapped"),
    (209, c"no kernel image fits this device"),
    (210, c"the resource is already acquired"),
    (211, c"the resource is not mapped"),
    (212, c"the resource is not mapped as an array"),
    (213, c"the resource is not mapped as a pointer"),
    (214, c"memory has an error that cannot be corrected"),
    (215, c"the device does not know this limit"),
    (216, c"another thread uses the context"),
    (217, c"these devices cannot reach each other's memory"),
    (218, c"the PTX is not valid"),
    (219, c"the graphics context is not valid"),
    (220, c"a link between devices has an error that cannot be corrected"),
    (221, c"the PTX compiler was not found"),
    (222, c"the PTX is of a version this driver does not know"),
    (223, c"compiling PTX is disabled"),
    (224, c"the device does not know this execution affinity"),
    (225, c"the code synchronises on the device in a way that is not supported"),
    (226, c"a fault was contained; the process must end"),
    (227, c"the driver's loader is too old for this library"),
    (300, c"the kernel source is not valid"),
    (301, c"file not found"),
    (302, c"a symbol was not found in a shared library"),
    (303, c"a shared library could not be initialised"),
    (304, c"the operating system refused a call"),
    (400, c"the handle is not valid"),
    (401, c"the object is in the wrong state for this"),
    (402, c"the answer would leave something out"),
    (500, c"nothing of that name was found"),
    (600, c"the work has not finished yet"),
    (700, c"a kernel used an illegal address"),
    (701, c"the launch asks for more than the device has"),
    (702, c"a kernel ran longer than allowed"),
    (703, c"the launch does not fit the texture mode"),
    (704, c"access to that device is already enabled"),
    (705, c"access to that device is not enabled"),
    (708, c"the primary context is already active"),
    (709, c"the context is destroyed"),
    (710, c"an assertion failed in a kernel"),
    (711, c"no more devices can be reached from this one"),
    (712, c"this host memory is already registered"),
    (713, c"this host memory is not registered"),
    (714, c"the call stack of a kernel is damaged or too small"),
    (715, c"a kernel met an illegal instruction"),
    (716, c"a kernel used a misaligned address"),
    (717, c"a kernel used an address of the wrong memory space"),
    (718, c"a kernel jumped to an illegal place"),
    (719, c"a kernel failed"),
    (720, c"a cooperative launch has more blocks than fit at once"),
    (721, c"a kernel ended without giving back tensor memory"),
    (800, c"not permitted"),
    (801, c"not supported"),
    (802, c"the system is not ready for CUDA yet"),
    (803, c"the driver library and the kernel module do not match"),
    (804, c"this device does not support forward compatibility"),
    (805, c"the MPS control daemon cannot be reached"),
    (806, c"a call to the MPS server failed"),
    (807, c"the MPS server is not ready yet"),
    (808, c"the MPS server has no room for another client"),
    (809, c"the MPS server has no room for another connection"),
    (810, c"the MPS server ended this client"),
    (811, c"launches from kernels are not supported"),
    (812, c"launches from kernels need another version"),
    (900, c"a stream that is being captured does not allow this"),
    (901, c"an earlier error broke the capture"),
    (902, c"this would merge two captures"),
    (903, c"the capture was not begun in this stream"),
    (904, c"the capture has a branch that was not joined"),
    (905, c"this would make the capture depend on work outside it"),
    (906, c"this would make the capture wait for the default stream"),
    (907, c"the event was last recorded in a capture"),
    (908, c"another thread began the capture"),
    (909, c"the time allowed has passed"),
    (910, c"the graph differs too much to update the executable one"),
    (911, c"a device outside CUDA reported an error"),
    (912, c"the cluster size does not fit"),
    (913, c"the function is not loaded"),
    (914, c"resources of this type do not fit here"),
    (915, c"these resources do not fit together"),
    (916, c"an encryption key is being rotated"),
    (917, c"the stream is detached from its context"),
    (918, c"capturing the graph again failed"),
    (919, c"the fabric is not ready yet"),
    (999, c"unknown error"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CUDA_ERROR_OUT_OF_MEMORY, CUDA_SUCCESS};

    #[test]
    fn errors_have_a_name_and_a_description() {
        assert_eq!(CUDA_SUCCESS.name(), Some(c"CUDA_SUCCESS"));
        assert_eq!(CUDA_ERROR_OUT_OF_MEMORY.name(), Some(c"CUDA_ERROR_OUT_OF_MEMORY"));
        assert_eq!(CUDA_ERROR_OUT_OF_MEMORY.description(), Some(c"out of memory"));
    }

    #[test]
    fn every_name_has_a_description_and_every_description_a_name() {
        assert!(ERRORS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(ERRORS.iter().map(|(value, _)| value).eq(DESCRIPTIONS.iter().map(|(value, _)| value)));
    }

    #[test]
    fn a_value_of_the_future_has_neither() {
        assert_eq!(CUresult(12345).name(), None);
        assert_eq!(CUresult(12345).description(), None);
        assert_eq!(CUresult(u32::MAX).name(), None);
    }
}
