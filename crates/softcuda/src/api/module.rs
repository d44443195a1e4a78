//! Modules.

use super::jit::{Options, source_at, source_of_file};
use super::prelude::*;
use crate::state::function::Function;
use crate::state::image::Source;
use crate::state::module::Module;

fn load(out: &Out<CUmodule>, source: &Source, options: &Options) -> Result<()> {
    let context = current::context()?;
    out.check()?;
    let program = options.compile(source)?;
    out.set(Module::load(&context, &program)?.handle.raw())
}

fn no_options() -> Result<Options> {
    Options::read(0, &Address(0).values(), Address(0).values())
}

pub fn cuModuleLoad(module: Out<CUmodule>, fname: Text) -> Result<()> {
    current::context()?;
    module.check()?;
    load(&module, &source_of_file(&fname.get()?)?, &no_options()?)
}

pub fn cuModuleLoadData(module: Out<CUmodule>, image: Address) -> Result<()> {
    current::context()?;
    module.check()?;
    load(&module, &source_at(image)?, &no_options()?)
}

pub fn cuModuleLoadDataEx(
    module: Out<CUmodule>,
    image: Address,
    numOptions: c_uint,
    options: Array<CUjit_option>,
    optionValues: Array<*mut c_void>,
) -> Result<()> {
    current::context()?;
    module.check()?;
    let options = Options::read(numOptions, &options, optionValues)?;
    load(&module, &source_at(image)?, &options)
}

/// The wrapper that compilers put before a container is not followed: it is for the runtime, which unwraps.
pub fn cuModuleLoadFatBinary(module: Out<CUmodule>, fatCubin: Address) -> Result<()> {
    cuModuleLoadData(module, fatCubin)
}

pub fn cuModuleUnload(hmod: Handle<Module>) -> Result<()> {
    current::context_whatever_its_state()?;
    let module = hmod.get()?;
    // A kernel in flight keeps what it needs, but variables may be used from outside: let it finish.
    let _ = module.context.wait_for_all();
    module.unload();
    Ok(())
}

pub fn cuModuleGetLoadingMode(mode: Out<CUmoduleLoadingMode>) -> Result<()> {
    driver()?;
    mode.set(CU_MODULE_EAGER_LOADING)
}

pub fn cuModuleGetFunction(hfunc: Out<CUfunction>, hmod: Handle<Module>, name: Text) -> Result<()> {
    current::context()?;
    hfunc.check()?;
    let name = name.get()?;
    require(!name.is_empty())?;
    hfunc.set(hmod.get()?.function(&name)?.handle.raw())
}

pub fn cuModuleGetFunctionCount(count: Out<c_uint>, mod_: Handle<Module>) -> Result<()> {
    current::context()?;
    count.set(mod_.get()?.names().len() as c_uint)
}

pub fn cuModuleEnumerateFunctions(
    functions: Array<CUfunction>,
    numFunctions: c_uint,
    mod_: Handle<Module>,
) -> Result<()> {
    current::context()?;
    let module = mod_.get()?;
    require(numFunctions > 0)?;
    let names = module.names();
    let wanted = names.iter().take(numFunctions as usize);
    let handles =
        wanted.map(|name| Ok(module.function(name)?.handle.raw())).collect::<Result<Vec<CUfunction>>>()?;
    functions.write(&handles)
}

pub fn cuModuleGetGlobal_v2(
    dptr: Out<CUdeviceptr>,
    bytes: Out<usize>,
    hmod: Handle<Module>,
    name: Text,
) -> Result<()> {
    current::context()?;
    let (module, name) = (hmod.get()?, name.get()?);
    require(!dptr.is_null() || !bytes.is_null())?;
    let Some((address, size)) = module.loaded.global(&name) else {
        // A name that is something else has its own code.
        let is_kernel = module.loaded.kernel(&name).is_some();
        return refuse(if is_kernel { CUDA_ERROR_INVALID_VALUE } else { CUDA_ERROR_NOT_FOUND });
    };
    dptr.set_if_wanted(address);
    bytes.set_if_wanted(size as usize);
    Ok(())
}

pub fn cuFuncGetModule(hmod: Out<CUmodule>, hfunc: Handle<Function>) -> Result<()> {
    driver()?;
    let function = crate::state::library::function_of(hfunc)?;
    let module = function.module.upgrade().ok_or(CUDA_ERROR_INVALID_HANDLE)?;
    hmod.set(module.handle.raw())
}
