//! Functions: attributes, parameters, names.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Mutex;

use super::prelude::*;
use crate::state::function::Function;
use crate::state::library::{LibraryKernel, function_of};

/// A name as a string that C can keep: names of kernels are few, so each is kept once for ever.
pub fn lasting_name(name: &str) -> *const c_char {
    static NAMES: Mutex<BTreeMap<String, CString>> = Mutex::new(BTreeMap::new());
    let mut names = lock(&NAMES);
    let text = names
        .entry(name.to_owned())
        .or_insert_with(|| CString::new(name.replace('\0', "")).unwrap_or_default());
    text.as_ptr()
}

pub fn cuFuncGetAttribute(
    pi: Out<c_int>,
    attrib: CUfunction_attribute,
    hfunc: Handle<Function>,
) -> Result<()> {
    let context = current::context()?;
    pi.check()?;
    pi.set(function_of(hfunc)?.attribute(attrib, &context.driver.properties)?)
}

pub fn cuFuncSetAttribute(hfunc: Handle<Function>, attrib: CUfunction_attribute, value: c_int) -> Result<()> {
    let context = current::context()?;
    function_of(hfunc)?.set_attribute(attrib, value, &context.driver.properties)
}

/// There is no cache to configure; a wish is checked and forgotten.
pub fn cuFuncSetCacheConfig(hfunc: Handle<Function>, config: CUfunc_cache) -> Result<()> {
    current::context()?;
    function_of(hfunc)?;
    require(config.0 <= CU_FUNC_CACHE_PREFER_EQUAL.0)
}

pub fn cuFuncSetSharedMemConfig(hfunc: Handle<Function>, config: CUsharedconfig) -> Result<()> {
    current::context()?;
    function_of(hfunc)?;
    require(config.0 <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE.0)
}

pub fn cuFuncGetName(name: Out<*const c_char>, hfunc: Handle<Function>) -> Result<()> {
    driver()?;
    name.set(lasting_name(function_of(hfunc)?.kernel.name()))
}

pub fn cuFuncGetParamInfo(
    func: Handle<Function>,
    paramIndex: usize,
    paramOffset: Out<usize>,
    paramSize: Out<usize>,
) -> Result<()> {
    driver()?;
    require(!func.is_null())?;
    let function = function_of(func)?;
    paramOffset.check()?;
    let parameter = function.kernel.parameters().get(paramIndex).ok_or(CUDA_ERROR_INVALID_VALUE)?;
    paramOffset.set(parameter.offset as usize)?;
    paramSize.set_if_wanted(parameter.size as usize);
    Ok(())
}

pub fn cuFuncGetParamCount(func: Handle<Function>, paramCount: Out<usize>) -> Result<()> {
    driver()?;
    paramCount.set(function_of(func)?.kernel.parameters().len())
}

pub fn cuFuncIsLoaded(state: Out<CUfunctionLoadingState>, function: Handle<Function>) -> Result<()> {
    driver()?;
    function_of(function)?;
    state.set(CU_FUNCTION_LOADING_STATE_LOADED)
}

pub fn cuFuncLoad(function: Handle<Function>) -> Result<()> {
    driver()?;
    function_of(function).map(drop)
}

/// A kernel as a function of the calling thread's context, for the calls that name a device besides.
fn of_kernel(kernel: Handle<LibraryKernel>, device: CUdevice) -> Result<Arc<Function>> {
    let driver = driver()?;
    let kernel = kernel.get()?;
    driver.check_device(device)?;
    let context = current::context().or_else(|_| match &lock(&driver.primary).context {
        Some(context) => Ok(Arc::clone(context)),
        None => refuse(CUDA_ERROR_INVALID_CONTEXT),
    })?;
    kernel.function(&context)
}

pub fn cuKernelGetAttribute(
    pi: Out<c_int>,
    attrib: CUfunction_attribute,
    kernel: Handle<LibraryKernel>,
    dev: CUdevice,
) -> Result<()> {
    let function = of_kernel(kernel, dev)?;
    pi.check()?;
    pi.set(function.attribute(attrib, &driver()?.properties)?)
}

pub fn cuKernelSetAttribute(
    attrib: CUfunction_attribute,
    val: c_int,
    kernel: Handle<LibraryKernel>,
    dev: CUdevice,
) -> Result<()> {
    of_kernel(kernel, dev)?.set_attribute(attrib, val, &driver()?.properties)
}

pub fn cuKernelSetCacheConfig(
    kernel: Handle<LibraryKernel>,
    config: CUfunc_cache,
    dev: CUdevice,
) -> Result<()> {
    of_kernel(kernel, dev)?;
    require(config.0 <= CU_FUNC_CACHE_PREFER_EQUAL.0)
}

pub fn cuKernelGetParamInfo(
    kernel: Handle<LibraryKernel>,
    paramIndex: usize,
    paramOffset: Out<usize>,
    paramSize: Out<usize>,
) -> Result<()> {
    driver()?;
    kernel.get()?;
    cuFuncGetParamInfo(Handle::of(kernel.value()), paramIndex, paramOffset, paramSize)
}

pub fn cuKernelGetParamCount(kernel: Handle<LibraryKernel>, paramCount: Out<usize>) -> Result<()> {
    driver()?;
    kernel.get()?;
    cuFuncGetParamCount(Handle::of(kernel.value()), paramCount)
}
