//! Libraries: images that are loaded into a context when it needs them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use cuda_abi::*;

use super::context::Context;
use super::function::{Function, Settings};
use super::image::Program;
use super::module::Module;
use super::{current, lock};
use crate::error::{Result, refuse};
use crate::handles::{Handle, Object, object};

pub struct Library {
    pub handle: Handle<Library>,
    program: Program,
    pub kernels: Vec<Arc<LibraryKernel>>,
    /// By id of the context.
    modules: Mutex<BTreeMap<u64, Arc<Module>>>,
}

/// A kernel of a library, in no context or in all of them.
pub struct LibraryKernel {
    pub handle: Handle<LibraryKernel>,
    pub name: String,
    library: Weak<Library>,
    /// Common to all contexts; made with the first function.
    settings: Mutex<Option<Arc<Mutex<Settings>>>>,
}

object!(Library, CUlib_st, CUDA_ERROR_INVALID_HANDLE);
object!(LibraryKernel, CUkern_st, CUDA_ERROR_INVALID_HANDLE);

/// A context that goes takes its modules along.
pub fn forget(context: u64) {
    for library in Library::registry().select(|_| true) {
        lock(&library.modules).remove(&context);
    }
}

impl Library {
    pub fn create(program: Program) -> Arc<Library> {
        let handle = Handle::fresh();
        let library = Arc::new_cyclic(|library: &Weak<Library>| {
            let functions = program.image.functions.iter().filter(|function| function.kernel.is_some());
            let kernel = |name: &String| {
                let handle = Handle::fresh();
                Arc::new(LibraryKernel {
                    handle,
                    name: name.clone(),
                    library: library.clone(),
                    settings: Mutex::default(),
                })
            };
            let kernels = functions.map(|function| kernel(&function.name)).collect();
            Library { handle, program, kernels, modules: Mutex::default() }
        });
        handle.bind(Arc::clone(&library));
        for kernel in &library.kernels {
            kernel.handle.bind(Arc::clone(kernel));
        }
        library
    }

    pub fn kernel(&self, name: &str) -> Result<Arc<LibraryKernel>> {
        let known = self.kernels.iter().find(|kernel| kernel.name == name);
        known.cloned().ok_or(CUDA_ERROR_NOT_FOUND.into())
    }

    /// The library's module in a context, loaded if it is not there.
    pub fn module(&self, context: &Arc<Context>) -> Result<Arc<Module>> {
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&context.id) {
            return Ok(Arc::clone(module));
        }
        let module = Module::load(context, &self.program)?;
        modules.insert(context.id, Arc::clone(&module));
        Ok(module)
    }

    pub fn unload(&self) {
        let _ = self.handle.take();
        for kernel in &self.kernels {
            let _ = kernel.handle.take();
        }
        for module in std::mem::take(&mut *lock(&self.modules)).into_values() {
            module.unload();
        }
    }
}

impl LibraryKernel {
    pub fn library(&self) -> Result<Arc<Library>> {
        self.library.upgrade().ok_or(CUDA_ERROR_INVALID_HANDLE.into())
    }

    /// The kernel as a function of a context.
    pub fn function(&self, context: &Arc<Context>) -> Result<Arc<Function>> {
        let module = self.library()?.module(context)?;
        module.function_with(&self.name, |kernel| {
            let mut settings = lock(&self.settings);
            Arc::clone(settings.get_or_insert_with(|| Settings::new(kernel, &context.driver.properties)))
        })
    }
}

/// What a `CUfunction` stands for: a function, or a kernel of a library in the calling thread's context.
pub fn function_of(handle: Handle<Function>) -> Result<Arc<Function>> {
    function_in(handle, current::context)
}

/// As [`function_of`], where something else says in which context a kernel of a library is meant: at a launch the
/// stream does.
pub fn function_in(
    handle: Handle<Function>,
    context: impl FnOnce() -> Result<Arc<Context>>,
) -> Result<Arc<Function>> {
    if let Some(function) = handle.find() {
        return Ok(function);
    }
    match Handle::<LibraryKernel>::of(handle.value()).find() {
        Some(kernel) => kernel.function(&context()?),
        None => refuse(CUDA_ERROR_INVALID_HANDLE),
    }
}
