//! Libraries and their kernels.

use super::jit::{Options, source_at, source_of_file};
use super::prelude::*;
use crate::state::image::Source;
use crate::state::library::{Library, LibraryKernel};

/// What a library is loaded with: options of compilation as for a module, and options of its own.
fn load(
    out: &Out<CUlibrary>,
    source: impl FnOnce() -> Result<Source>,
    jit: (Array<CUjit_option>, Array<*mut c_void>, c_uint),
    own: (Array<CUlibraryOption>, c_uint),
) -> Result<()> {
    driver()?;
    out.check()?;
    let known = [CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE, CU_LIBRARY_BINARY_IS_PRESERVED];
    require(own.0.read(own.1 as usize)?.iter().all(|option| known.contains(option)))?;
    let options = Options::read(jit.2, &jit.0, jit.1)?;
    let program = options.compile(&source()?)?;
    out.set(Library::create(program).handle.raw())
}

pub fn cuLibraryLoadData(
    library: Out<CUlibrary>,
    code: Address,
    jitOptions: Array<CUjit_option>,
    jitOptionsValues: Array<*mut c_void>,
    numJitOptions: c_uint,
    libraryOptions: Array<CUlibraryOption>,
    _libraryOptionValues: Array<*mut c_void>,
    numLibraryOptions: c_uint,
) -> Result<()> {
    let jit = (jitOptions, jitOptionsValues, numJitOptions);
    load(&library, || source_at(code), jit, (libraryOptions, numLibraryOptions))
}

pub fn cuLibraryLoadFromFile(
    library: Out<CUlibrary>,
    fileName: Text,
    jitOptions: Array<CUjit_option>,
    jitOptionsValues: Array<*mut c_void>,
    numJitOptions: c_uint,
    libraryOptions: Array<CUlibraryOption>,
    _libraryOptionValues: Array<*mut c_void>,
    numLibraryOptions: c_uint,
) -> Result<()> {
    let jit = (jitOptions, jitOptionsValues, numJitOptions);
    load(&library, || source_of_file(&fileName.get()?), jit, (libraryOptions, numLibraryOptions))
}

pub fn cuLibraryUnload(library: Handle<Library>) -> Result<()> {
    driver()?;
    library.get()?.unload();
    Ok(())
}

pub fn cuLibraryGetKernel(pKernel: Out<CUkernel>, library: Handle<Library>, name: Text) -> Result<()> {
    driver()?;
    pKernel.check()?;
    let name = name.get()?;
    pKernel.set(library.get()?.kernel(&name)?.handle.raw())
}

pub fn cuLibraryGetKernelCount(count: Out<c_uint>, lib: Handle<Library>) -> Result<()> {
    driver()?;
    count.set(lib.get()?.kernels.len() as c_uint)
}

pub fn cuLibraryEnumerateKernels(
    kernels: Array<CUkernel>,
    numKernels: c_uint,
    lib: Handle<Library>,
) -> Result<()> {
    driver()?;
    let library = lib.get()?;
    require(numKernels > 0)?;
    let wanted = library.kernels.iter().take(numKernels as usize);
    kernels.write(&wanted.map(|kernel| kernel.handle.raw()).collect::<Vec<CUkernel>>())
}

pub fn cuLibraryGetModule(pMod: Out<CUmodule>, library: Handle<Library>) -> Result<()> {
    let context = current::context()?;
    pMod.set(library.get()?.module(&context)?.handle.raw())
}

pub fn cuLibraryGetGlobal(
    dptr: Out<CUdeviceptr>,
    bytes: Out<usize>,
    library: Handle<Library>,
    name: Text,
) -> Result<()> {
    let context = current::context()?;
    let (library, name) = (library.get()?, name.get()?);
    require(!dptr.is_null() || !bytes.is_null())?;
    let module = library.module(&context)?;
    let (address, size) = module.loaded.global(&name).ok_or(CUDA_ERROR_NOT_FOUND)?;
    dptr.set_if_wanted(address);
    bytes.set_if_wanted(size as usize);
    Ok(())
}

pub fn cuKernelGetFunction(pFunc: Out<CUfunction>, kernel: Handle<LibraryKernel>) -> Result<()> {
    let context = current::context()?;
    pFunc.set(kernel.get()?.function(&context)?.handle.raw())
}

pub fn cuKernelGetLibrary(pLib: Out<CUlibrary>, kernel: Handle<LibraryKernel>) -> Result<()> {
    driver()?;
    pLib.set(kernel.get()?.library()?.handle.raw())
}

pub fn cuKernelGetName(name: Out<*const c_char>, hfunc: Handle<LibraryKernel>) -> Result<()> {
    driver()?;
    name.set(super::function::lasting_name(&hfunc.get()?.name))
}
