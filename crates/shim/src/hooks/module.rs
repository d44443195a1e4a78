//! Code: modules and libraries, and the kernels found in them.

#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use cuda_abi::{
    CUDA_SUCCESS, CUdevice, CUfunc_cache, CUfunction, CUfunction_attribute, CUkernel, CUlibrary, CUmodule,
    CUresult,
};
use telemetry::{Counter, Note};

use crate::entry::{Raw, Seen};
use crate::frames::{Image, Module, Of};
use crate::next;
use crate::tenancy::warm_up;
use crate::twins::{self, Kept};

fn loaded(seen: &Seen, handle: usize, module: Module) {
    warm_up::note();
    seen.count(Counter::modules(module.image.kind));
    if seen.watch.frames.loaded(handle, module).is_none() {
        seen.watch.ledger.note(Note::OutOfMemory);
    }
}

fn in_memory(address: *const c_void) -> Module {
    let image = Image::in_memory(address);
    let kept = if twins::are_wanted() { Kept::in_memory(address, &image) } else { Kept::nothing() };
    Module { image, kept }
}

fn in_file(path: &CStr) -> Module {
    let image = Image::in_file(path);
    let kept = if twins::are_wanted() { Kept::in_file(path, &image) } else { Kept::nothing() };
    Module { image, kept }
}

fn found(seen: &Seen, handle: usize, of: Of, module: usize, name: &CStr) {
    // Some programs look for their kernels by name at every launch.
    if seen.watch.frames.function(handle).is_none() {
        warm_up::note();
    }
    if seen.watch.frames.found(handle, of, module, name).is_none() {
        seen.watch.ledger.note(Note::OutOfMemory);
    }
}

pub fn cuModuleLoad(seen: &Seen, module: Raw<*mut CUmodule>, path: Raw<*const c_char>) {
    let (Some(module), Some(path)) = (module.written(), path.text()) else { return };
    loaded(seen, module.addr(), in_file(path));
}

pub fn cuModuleLoadData(seen: &Seen, module: Raw<*mut CUmodule>, image: Raw<*const c_void>) {
    let Some(module) = module.written() else { return };
    loaded(seen, module.addr(), in_memory(image.value()));
}

pub fn cuModuleLoadDataEx<A, B, C>(
    seen: &Seen,
    module: Raw<*mut CUmodule>,
    image: Raw<*const c_void>,
    _: A,
    _: B,
    _: C,
) {
    cuModuleLoadData(seen, module, image);
}

/// An image says itself what it is.
pub use self::cuModuleLoadData as cuModuleLoadFatBinary;

pub fn cuLibraryLoadData<A, B, C, D, E, F>(
    seen: &Seen,
    library: Raw<*mut CUlibrary>,
    image: Raw<*const c_void>,
    _: A,
    _: B,
    _: C,
    _: D,
    _: E,
    _: F,
) {
    let Some(library) = library.written() else { return };
    loaded(seen, library.addr(), in_memory(image.value()));
}

pub fn cuLibraryLoadFromFile<A, B, C, D, E, F>(
    seen: &Seen,
    library: Raw<*mut CUlibrary>,
    path: Raw<*const c_char>,
    _: A,
    _: B,
    _: C,
    _: D,
    _: E,
    _: F,
) {
    let (Some(library), Some(path)) = (library.written(), path.text()) else { return };
    loaded(seen, library.addr(), in_file(path));
}

pub fn cuModuleUnload(seen: &Seen, module: Raw<CUmodule>) {
    warm_up::note();
    seen.count(Counter::ModulesUnloaded);
    seen.watch.frames.unloaded(module.handle());
}

pub fn cuLibraryUnload(seen: &Seen, library: Raw<CUlibrary>) {
    warm_up::note();
    seen.count(Counter::ModulesUnloaded);
    seen.watch.frames.unloaded(library.handle());
}

/// What was linked arrives as a module's image later on.
pub fn cuLinkComplete<A, B, C>(seen: &Seen, _: A, _: B, _: C) {
    warm_up::note();
    seen.count(Counter::LinksCompleted);
}

pub fn cuLibraryGetModule(seen: &Seen, module: Raw<*mut CUmodule>, library: Raw<CUlibrary>) {
    let Some(module) = module.written() else { return };
    seen.watch.frames.also(module.addr(), library.handle());
}

pub fn cuModuleGetFunction(
    seen: &Seen,
    function: Raw<*mut CUfunction>,
    module: Raw<CUmodule>,
    name: Raw<*const c_char>,
) {
    let (Some(function), Some(name)) = (function.written(), name.text()) else { return };
    seen.count(Counter::FunctionsFound);
    found(seen, function.addr(), Of::Module, module.handle(), name);
}

pub fn cuLibraryGetKernel(
    seen: &Seen,
    kernel: Raw<*mut CUkernel>,
    library: Raw<CUlibrary>,
    name: Raw<*const c_char>,
) {
    let (Some(kernel), Some(name)) = (kernel.written(), name.text()) else { return };
    seen.count(Counter::KernelsFound);
    found(seen, kernel.addr(), Of::Library, library.handle(), name);
}

pub fn cuKernelGetFunction(seen: &Seen, function: Raw<*mut CUfunction>, kernel: Raw<CUkernel>) {
    let Some(function) = function.written() else { return };
    seen.watch.frames.function_of(function.addr(), kernel.handle());
}

pub fn cuFuncGetModule(seen: &Seen, module: Raw<*mut CUmodule>, function: Raw<CUfunction>) {
    let Some(module) = module.written() else { return };
    seen.watch.frames.home_of(function.handle(), module.addr());
}

pub fn cuFuncSetAttribute(
    seen: &Seen,
    function: Raw<CUfunction>,
    attribute: Raw<CUfunction_attribute>,
    value: Raw<c_int>,
) {
    if let Some(frame) = seen.watch.frames.function(function.handle()) {
        twins::attribute_set(frame, attribute.value(), value.value(), None);
    }
}

pub fn cuKernelSetAttribute(
    seen: &Seen,
    attribute: Raw<CUfunction_attribute>,
    value: Raw<c_int>,
    kernel: Raw<CUkernel>,
    device: Raw<CUdevice>,
) {
    if let Some(frame) = seen.watch.frames.function(kernel.handle()) {
        twins::attribute_set(frame, attribute.value(), value.value(), Some(device.value()));
    }
}

pub fn cuFuncSetCacheConfig(seen: &Seen, function: Raw<CUfunction>, preference: Raw<CUfunc_cache>) {
    if let Some(frame) = seen.watch.frames.function(function.handle()) {
        twins::cache_set(frame, preference.value(), None);
    }
}

pub fn cuKernelSetCacheConfig(
    seen: &Seen,
    kernel: Raw<CUkernel>,
    preference: Raw<CUfunc_cache>,
    device: Raw<CUdevice>,
) {
    if let Some(frame) = seen.watch.frames.function(kernel.handle()) {
        twins::cache_set(frame, preference.value(), Some(device.value()));
    }
}

pub fn cuModuleEnumerateFunctions(
    seen: &Seen,
    functions: Raw<*mut CUfunction>,
    count: Raw<c_uint>,
    module: Raw<CUmodule>,
) {
    let mut there = 0;
    // SAFETY: a module that the driver has just read, and a place for the answer.
    let result = unsafe { next::call::cuModuleGetFunctionCount(&mut there, module.value()) };
    let count = given(count.value(), result, there);
    for function in functions.each(count).filter(|function| !function.is_null()) {
        let mut name = ptr::null();
        // SAFETY: a function that the driver has just given out, and a place for the answer.
        let result = unsafe { next::call::cuFuncGetName(&mut name, function) };
        enumerated(seen, function.addr(), Of::Module, module.handle(), (result, name));
    }
}

pub fn cuLibraryEnumerateKernels(
    seen: &Seen,
    kernels: Raw<*mut CUkernel>,
    count: Raw<c_uint>,
    library: Raw<CUlibrary>,
) {
    let mut there = 0;
    // SAFETY: a library that the driver has just read, and a place for the answer.
    let result = unsafe { next::call::cuLibraryGetKernelCount(&mut there, library.value()) };
    let count = given(count.value(), result, there);
    for kernel in kernels.each(count).filter(|kernel| !kernel.is_null()) {
        let mut name = ptr::null();
        // SAFETY: a kernel that the driver has just given out, and a place for the answer.
        let result = unsafe { next::call::cuKernelGetName(&mut name, kernel) };
        enumerated(seen, kernel.addr(), Of::Library, library.handle(), (result, name));
    }
}

/// How many handles there are in a list: a program may have room for more, and what lies there is none.
fn given(room: c_uint, result: CUresult, there: c_uint) -> c_uint {
    if result == CUDA_SUCCESS { room.min(there) } else { 0 }
}

/// A handle in a list, and what the driver has answered when asked for its name.
fn enumerated(seen: &Seen, handle: usize, of: Of, module: usize, (result, name): (CUresult, *const c_char)) {
    if result == CUDA_SUCCESS && !name.is_null() {
        // SAFETY: the driver's own name of the kernel.
        let name = unsafe { CStr::from_ptr(name) };
        seen.count(Counter::FunctionsEnumerated);
        found(seen, handle, of, module, name);
    }
}
