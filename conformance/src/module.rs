//! Kernel sources, loaded modules, and launches with typed arguments.

use crate::context::Context;
use crate::driver::{
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, CUdeviceptr, CUfunction, CUmodule, CUstream, Driver,
};
use crate::memory::{Buffer, Element, bytes_of};
use anyhow::{Context as _, Result, bail};
use std::ffi::{CString, c_void};
use std::ptr;

/// One `.cu` of `kernels/`, as the four PTX texts that nvcc made of it. Build one with [`crate::source!`].
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pub name: &'static str,
    pub texts: [Text; 4],
}

/// One of the four: for which target and at which optimisation level nvcc compiled it.
#[derive(Debug, Clone, Copy)]
pub struct Text {
    pub variant: &'static str,
    /// Ends with a zero byte, as `cuModuleLoadData` wants it.
    pub ptx: &'static str,
}

/// `source!("vector_add")`: the PTX of `kernels/vector_add.cu`, embedded in the binary.
#[macro_export]
macro_rules! source {
    ($name:literal) => {
        $crate::module::Source {
            name: $name,
            texts: [
                $crate::source!(@text $name, "compute_80.O3"),
                $crate::source!(@text $name, "compute_80.O0"),
                $crate::source!(@text $name, "compute_90.O3"),
                $crate::source!(@text $name, "compute_90.O0"),
            ],
        }
    };
    (@text $name:literal, $variant:literal) => {
        $crate::module::Text {
            variant: $variant,
            ptx: concat!(
                include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/ptx/", $name, ".", $variant, ".ptx")),
                "\0"
            ),
        }
    };
}

impl Source {
    /// The text that most cases about the API want: any will do, so the newest target, optimised.
    pub fn usual(&self) -> &'static str {
        self.texts[2].ptx
    }

    /// Loads each of the four texts and runs `body` on it; collects every failure, naming its variant.
    pub fn each_variant(
        &self,
        context: &Context<'_>,
        mut body: impl FnMut(&Module<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut failures = Vec::new();
        for text in &self.texts {
            let result = Module::load(context, text.ptx).and_then(|module| body(&module));
            if let Err(error) = result {
                failures.push(format!("{}.{}: {error:#}", self.name, text.variant));
            }
        }
        if failures.is_empty() { Ok(()) } else { bail!("{}", failures.join("\n")) }
    }
}

/// A loaded module.
pub struct Module<'d> {
    driver: &'d Driver,
    handle: CUmodule,
}

// SAFETY: CUDA handles and device addresses are names that the driver lets every thread use.
unsafe impl Send for Module<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Module<'_> {}

impl<'d> Module<'d> {
    /// Loads PTX text, which must end with a zero byte.
    #[track_caller]
    pub fn load(context: &Context<'d>, ptx: &str) -> Result<Module<'d>> {
        assert!(ptx.ends_with('\0'), "PTX text is handed over as a C string");
        let driver = context.driver();
        let mut handle = ptr::null_mut();
        driver.cuModuleLoadData(&mut handle, ptx.as_ptr().cast()).ok()?;
        Ok(Module { driver, handle })
    }

    pub fn handle(&self) -> CUmodule {
        self.handle
    }

    pub fn driver(&self) -> &'d Driver {
        self.driver
    }

    #[track_caller]
    pub fn function(&self, name: &str) -> Result<Function<'d>> {
        let name = CString::new(name)?;
        let mut handle = ptr::null_mut();
        self.driver.cuModuleGetFunction(&mut handle, self.handle, name.as_ptr()).ok()?;
        Ok(Function { driver: self.driver, handle })
    }

    /// Address and size of a `__device__` or `__constant__` variable.
    #[track_caller]
    pub fn global(&self, name: &str) -> Result<(CUdeviceptr, usize)> {
        let name = CString::new(name)?;
        let (mut address, mut bytes) = (0, 0);
        self.driver.cuModuleGetGlobal_v2(&mut address, &mut bytes, self.handle, name.as_ptr()).ok()?;
        Ok((address, bytes))
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // Fails only after a sticky error, which the case has judged.
        let _ = self.driver.cuModuleUnload(self.handle);
    }
}

/// Threads or blocks in three directions; made from a number, a pair or a triple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim3(pub u32, pub u32, pub u32);

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Dim3(x, 1, 1)
    }
}
impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Dim3(x, y, 1)
    }
}
impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Dim3(x, y, z)
    }
}

/// Something that can be a kernel's argument: a number, a buffer (its address), or an array of numbers by value.
pub trait Argument {
    fn to_bytes(&self) -> Vec<u8>;
}

impl<T: Element> Argument for T {
    fn to_bytes(&self) -> Vec<u8> {
        bytes_of(std::slice::from_ref(self)).to_vec()
    }
}

impl<T: Element> Argument for &Buffer<'_, T> {
    fn to_bytes(&self) -> Vec<u8> {
        self.address().to_ne_bytes().to_vec()
    }
}

/// Kernel arguments in order; build them with [`crate::args!`].
#[derive(Debug, Default)]
pub struct Arguments {
    /// Each argument in storage aligned for any element.
    values: Vec<Vec<u128>>,
}

impl Arguments {
    #[must_use]
    pub fn with(mut self, argument: &dyn Argument) -> Self {
        let bytes = argument.to_bytes();
        let mut value = vec![0u128; bytes.len().div_ceil(16).max(1)];
        for (word, chunk) in value.iter_mut().zip(bytes.chunks(16)) {
            let mut padded = [0u8; 16];
            padded[..chunk.len()].copy_from_slice(chunk);
            *word = u128::from_ne_bytes(padded);
        }
        self.values.push(value);
        self
    }

    /// The array of pointers that `cuLaunchKernel` takes; valid while `self` is neither moved nor changed.
    pub fn pointers(&mut self) -> Vec<*mut c_void> {
        self.values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect()
    }
}

/// `args![&buffer, 3u32, 1.5f32]`: kernel arguments, whose Rust types must have the sizes of the C types.
#[macro_export]
macro_rules! args {
    ($($argument:expr),* $(,)?) => {
        $crate::module::Arguments::default()$(.with(&$argument))*
    };
}

/// A kernel of a loaded module.
#[derive(Clone, Copy)]
pub struct Function<'d> {
    driver: &'d Driver,
    handle: CUfunction,
}

// SAFETY: CUDA handles and device addresses are names that the driver lets every thread use.
unsafe impl Send for Function<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Function<'_> {}

impl<'d> Function<'d> {
    pub fn handle(&self) -> CUfunction {
        self.handle
    }

    /// Launches on the legacy default stream without dynamic shared memory, and waits for the end.
    #[track_caller]
    pub fn run(&self, grid: impl Into<Dim3>, block: impl Into<Dim3>, arguments: Arguments) -> Result<()> {
        self.launch(grid, block, 0, ptr::null_mut(), arguments)?;
        self.driver.cuCtxSynchronize().ok()
    }

    /// As [`Function::run`], with `shared` bytes of dynamic shared memory, opting in where that is more than 48 KiB.
    #[track_caller]
    pub fn run_shared(
        &self,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        shared: u32,
        arguments: Arguments,
    ) -> Result<()> {
        if shared > 48 * 1024 {
            let bytes = i32::try_from(shared).context("more shared memory than an int holds")?;
            self.driver
                .cuFuncSetAttribute(self.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)
                .ok()?;
        }
        self.launch(grid, block, shared, ptr::null_mut(), arguments)?;
        self.driver.cuCtxSynchronize().ok()
    }

    /// Launches on `stream` (null for the legacy default stream) and does not wait.
    #[track_caller]
    pub fn launch(
        &self,
        grid: impl Into<Dim3>,
        block: impl Into<Dim3>,
        shared: u32,
        stream: CUstream,
        mut arguments: Arguments,
    ) -> Result<()> {
        let (grid, block) = (grid.into(), block.into());
        let mut pointers = arguments.pointers();
        self.driver
            .cuLaunchKernel(
                self.handle,
                grid.0,
                grid.1,
                grid.2,
                block.0,
                block.1,
                block.2,
                shared,
                stream,
                pointers.as_mut_ptr(),
                ptr::null_mut(),
            )
            .ok()
    }
}
