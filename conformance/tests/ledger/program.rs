//! What sections are written with: code to load, kernels to launch, and the tally of both.

use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use conformance::context::Context;
use conformance::driver::{CUfunction, CUmodule, CUstream, Driver};
use telemetry::{Counter, Note};

use crate::TALLIES_AT;
use crate::tally::{KernelName, Tally};

/// The driver as a section sees it, and what the section has done with it.
pub struct Program<'d> {
    pub driver: &'d Driver,
    tally: Mutex<Tally>,
}

impl<'d> Program<'d> {
    pub fn new(driver: &'d Driver) -> Program<'d> {
        Program { driver, tally: Mutex::default() }
    }

    pub fn did(&self, counter: Counter, times: u64) {
        *self.tally().counts.entry(counter).or_default() += times;
    }

    pub fn noted(&self, note: Note) {
        self.tally().notes.insert(note);
    }

    /// A launch of its own, on a stream that counts there.
    pub fn launched(&self, kernel: &Kernel, counter: Counter, blocks: u64) {
        self.did(counter, 1);
        self.change(kernel, |tally| {
            tally.launches += 1;
            tally.blocks += blocks;
        });
    }

    /// So many runs as nodes of launched graphs.
    pub fn ran_in_graphs(&self, kernel: &Kernel, times: u64) {
        self.did(Counter::KernelsInGraphs, times);
        self.change(kernel, |tally| tally.in_graphs += times);
    }

    fn change(&self, kernel: &Kernel, change: impl FnOnce(&mut crate::tally::KernelTally)) {
        let mut tally = self.tally();
        let name = KernelName { name: kernel.name.clone(), image: kernel.image.clone() };
        let known = tally.kernels.entry(name).or_default();
        (known.parameter_bytes, known.parameter_count) = kernel.parameters;
        change(known);
    }

    fn tally(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().expect("nothing panics meanwhile")
    }

    /// Does something in a context, which is made and destroyed for it.
    pub fn in_context(&self, work: impl FnOnce(&Context<'d>) -> Result<()>) -> Result<()> {
        let context = Context::new(self.driver)?;
        self.did(Counter::ContextsCreated, 1);
        work(&context)?;
        drop(context);
        self.did(Counter::ContextsDestroyed, 1);
        Ok(())
    }

    /// Loads code as text.
    pub fn load(&self, image: &Image) -> Result<CUmodule> {
        let mut module = ptr::null_mut();
        self.driver.cuModuleLoadData(&mut module, image.text.as_ptr().cast()).ok()?;
        self.did(Counter::ModulesPtx, 1);
        Ok(module)
    }

    pub fn unload(&self, module: CUmodule) -> Result<()> {
        self.driver.cuModuleUnload(module).ok()?;
        self.did(Counter::ModulesUnloaded, 1);
        Ok(())
    }

    /// A kernel of a module that was loaded from that image.
    pub fn function(&self, module: CUmodule, image: &Image, name: &str) -> Result<Kernel> {
        let (mut handle, c_name) = (ptr::null_mut(), CString::new(name)?);
        self.driver.cuModuleGetFunction(&mut handle, module, c_name.as_ptr()).ok()?;
        self.did(Counter::FunctionsFound, 1);
        Ok(image.kernel(name, handle))
    }

    /// Plain launches with a grid of that shape.
    pub fn launch(
        &self,
        kernel: &Kernel,
        grid: (u32, u32, u32),
        stream: CUstream,
        counter: Counter,
    ) -> Result<()> {
        launch(self.driver, kernel, grid, stream)?;
        self.launched(kernel, counter, blocks(grid));
        Ok(())
    }

    /// Leaves the tally where the other side looks for it.
    pub fn tell(&self) -> Result<()> {
        let tally = self.tally();
        if *tally == Tally::default() {
            return Ok(());
        }
        let folder = std::env::var_os(TALLIES_AT).context("no folder for tallies")?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        tally.write(&std::path::Path::new(&folder).join(format!("{}-{now}", std::process::id())))
    }
}

/// A plain launch that nobody has tallied.
pub fn launch(driver: &Driver, kernel: &Kernel, grid: (u32, u32, u32), stream: CUstream) -> Result<()> {
    let (x, y, z) = grid;
    with_arguments(|list| {
        driver.cuLaunchKernel(kernel.handle(), x, y, z, 1, 1, 1, 0, stream, list, ptr::null_mut()).ok()
    })
}

pub fn blocks((x, y, z): (u32, u32, u32)) -> u64 {
    u64::from(x) * u64::from(y) * u64::from(z)
}

/// Zeros for as many parameters as any kernel here has.
pub fn with_arguments<T>(work: impl FnOnce(*mut *mut c_void) -> T) -> T {
    let mut zero = 0u64;
    let mut list = [(&raw mut zero).cast(); 8];
    work(list.as_mut_ptr())
}

/// A kernel under a handle that can be launched.
#[derive(Clone, Debug)]
pub struct Kernel {
    handle: usize,
    name: String,
    image: String,
    /// Bytes and number.
    parameters: (u32, u32),
}

impl Kernel {
    /// Of an image that is not one of ours.
    pub fn foreign<T>(handle: *mut T, name: &str, image: &str, parameters: (u32, u32)) -> Kernel {
        Kernel { handle: handle.expose_provenance(), name: name.into(), image: image.into(), parameters }
    }

    pub fn handle(&self) -> CUfunction {
        ptr::with_exposed_provenance_mut(self.handle)
    }
}

/// Code: kernels that do nothing, with parameters of chosen types.
pub struct Image {
    word: String,
    kernels: Vec<(String, Vec<&'static str>)>,
    /// Ends with a zero byte.
    pub text: String,
}

impl Image {
    /// `kernels` are names and the types of parameters, blanks between.
    pub fn new(word: &str, kernels: &[(&str, &'static str)]) -> Image {
        let kernels: Vec<(String, Vec<&'static str>)> =
            kernels.iter().map(|(name, types)| ((*name).to_owned(), types.split(' ').collect())).collect();
        let entries: String = kernels.iter().map(|(name, types)| entry(name, types)).collect();
        let text = format!("// {word}\n.version 8.0\n.target sm_80\n.address_size 64\n{entries}\0");
        Image { word: word.to_owned(), kernels, text }
    }

    /// Two kernels: `alpha` has 16 bytes of parameters with a gap between them, `beta` has none.
    pub fn usual(word: &str) -> Image {
        Image::new(word, &[("alpha", "u64 u8 u32"), ("beta", "")])
    }

    pub fn kernel<T>(&self, name: &str, handle: *mut T) -> Kernel {
        let known = self.kernels.iter().find(|(known, _)| known == name);
        let (_, types) = known.expect("a section asks for kernels that it has written");
        Kernel::foreign(handle, name, &self.word, parameters(types))
    }
}

fn entry(name: &str, types: &[&str]) -> String {
    let types = types.iter().filter(|kind| !kind.is_empty()).enumerate();
    let list: Vec<String> = types.map(|(index, kind)| format!(".param .{kind} {name}_{index}")).collect();
    format!(".visible .entry {name}({}) {{ ret; }}\n", list.join(", "))
}

/// Each parameter lies at a multiple of its size.
fn parameters(types: &[&str]) -> (u32, u32) {
    let (mut bytes, mut count) = (0u32, 0);
    for bits in types.iter().filter_map(|kind| kind.get(1..)?.parse::<u32>().ok()) {
        bytes = bytes.next_multiple_of(bits / 8) + bits / 8;
        count += 1;
    }
    (bytes, count)
}
