//! Modules: an image loaded into one context.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cuda_abi::*;
use softgpu::simt::{self, Kernel};

use super::context::Context;
use super::function::{Function, Settings};
use super::image::Program;
use super::lock;
use crate::error::{Error, Result, refuse};
use crate::handles::{Handle, Object, object};

pub struct Module {
    pub handle: Handle<Module>,
    pub context: Arc<Context>,
    pub loaded: Arc<simt::Module>,
    functions: Mutex<BTreeMap<String, Arc<Function>>>,
}

object!(Module, CUmod_st, CUDA_ERROR_INVALID_HANDLE);

/// The modules of a context go with it.
pub fn forget(context: u64) {
    Module::registry().sweep(|module| module.context.id == context);
}

impl Module {
    pub fn load(context: &Arc<Context>, program: &Program) -> Result<Arc<Module>> {
        // The loader gives variables memory of the device, where the host could not reach them.
        if let Some(variable) = program.image.variables.iter().find(|variable| variable.managed) {
            return Err(Error::unsupported(format!("the managed variable `{}`", variable.name)));
        }
        let loaded = simt::Module::load(Arc::clone(&program.image), &context.driver.space, context.owner())?;
        let handle = Handle::fresh();
        let module =
            Arc::new(Module { handle, context: Arc::clone(context), loaded, functions: Mutex::default() });
        handle.bind(Arc::clone(&module));
        Ok(module)
    }

    /// The function of that name, always under the same handle.
    pub fn function(self: &Arc<Module>, name: &str) -> Result<Arc<Function>> {
        self.function_with(name, |kernel| Settings::new(kernel, &self.context.driver.properties))
    }

    pub fn function_with(
        self: &Arc<Module>,
        name: &str,
        settings: impl FnOnce(&Kernel) -> Arc<Mutex<Settings>>,
    ) -> Result<Arc<Function>> {
        let mut functions = lock(&self.functions);
        if let Some(function) = functions.get(name) {
            return Ok(Arc::clone(function));
        }
        let Some(kernel) = self.loaded.kernel(name) else { return refuse(CUDA_ERROR_NOT_FOUND) };
        let settings = settings(&kernel);
        let function = Function::create(self, kernel, settings, &self.context);
        functions.insert(name.to_owned(), Arc::clone(&function));
        Ok(function)
    }

    pub fn names(&self) -> Vec<String> {
        self.loaded.kernels().map(|kernel| kernel.name().to_owned()).collect()
    }

    /// The handle and those of its functions become invalid. What is running keeps what it needs.
    pub fn unload(&self) {
        let _ = self.handle.take();
        for function in std::mem::take(&mut *lock(&self.functions)).into_values() {
            let _ = function.handle.take();
        }
    }
}
