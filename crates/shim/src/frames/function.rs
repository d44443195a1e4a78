//! Functions and kernels: what a launch names.

use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use cuda_abi::{CUDA_SUCCESS, CUdevice, CUfunction_attribute, CUresult};
use telemetry::{Kernel, KernelIdentity, Note};

use super::{Frames, Module};
use crate::guard::{self, Uses};
use crate::tenancy::warm_up;
use crate::twins::{self, Place};
use crate::watch::Watch;
use crate::{arena, next};

/// Which of the two kinds of handle a kernel goes by. Both may be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A `CUfunction`.
    Module,
    /// A `CUkernel`.
    Library,
}

/// What is known about a kernel from the moment its handle was given out.
pub struct Frame {
    pub name: &'static [u8],
    pub module: &'static Module,
    handle: usize,
    of: Of,
    pub place: Place,
    pub uses: Uses,
    /// Null until the first launch.
    learned: AtomicPtr<Learned>,
}

/// What is looked up when a kernel is first launched.
pub struct Learned {
    #[expect(
        dead_code,
        reason = "what a hook must know that copies a launch's parameters; the ledger has it too"
    )]
    pub parameters: Parameters,
    /// Its place in the ledger, if there was one left.
    pub kernel: Option<Kernel>,
}

/// The most bytes of parameters that a kernel can have, and so the most parameters.
const LARGEST: usize = 32 << 10;

#[derive(Clone, Copy, Default)]
pub struct Parameters {
    pub count: u32,
    /// From the first byte of the first to the last byte of the last.
    pub bytes: u32,
}

impl Frames {
    /// The driver has given out a handle for a name in a module or library.
    pub fn found(&self, handle: usize, of: Of, module: usize, name: &CStr) -> Option<()> {
        let (module, name) = (self.module(module), name.to_bytes());
        let known = self.functions.get(handle);
        if known.is_some_and(|frame| frame.name == name && ptr::eq(frame.module, module)) {
            return Some(());
        }
        let name = arena::copy(name)?;
        let (place, uses, learned) = (Place::new(), Uses::new(), AtomicPtr::new(ptr::null_mut()));
        self.functions.put(handle, arena::place(Frame { name, module, handle, of, place, uses, learned })?)
    }

    /// The same kernel under another handle.
    pub fn function_of(&self, function: usize, kernel: usize) {
        if let Some(frame) = self.functions.get(kernel) {
            self.functions.put(function, frame);
        }
    }

    #[inline]
    pub fn function(&self, handle: usize) -> Option<&'static Frame> {
        self.functions.get(handle)
    }

    pub fn each_function(&self, mut look: impl FnMut(&'static Frame)) {
        self.functions.each(&mut look);
    }
}

impl Frame {
    /// What is known about the kernel, looked up now if it never was. `None` when there is no memory to keep it.
    #[inline]
    pub fn learned(&'static self, watch: &Watch) -> Option<&'static Learned> {
        // SYNC(frame-learned): whoever sees it sees all of it.
        let learned = self.learned.load(Ordering::Acquire);
        if learned.is_null() {
            return self.learn(watch);
        }
        // SAFETY: not null, so a value in the arena, which stays.
        Some(unsafe { &*learned })
    }

    #[cold]
    fn learn(&'static self, watch: &Watch) -> Option<&'static Learned> {
        // The driver loads a kernel's code when it is first launched.
        warm_up::note();
        if guard::may_be_wanted() {
            // Made now, it is there when somebody first wants this process to stop.
            let _ = twins::of(self);
        }
        let ledger = &watch.ledger;
        let parameters = self.parameters(watch.frames.may_ask_in_vain);
        let identity = KernelIdentity {
            name: self.name,
            module_hash: self.module.image.hash,
            parameter_bytes: parameters.bytes,
            parameter_count: parameters.count,
        };
        let Some(learned) = arena::place(Learned { parameters, kernel: ledger.kernel(&identity) }) else {
            ledger.note(Note::OutOfMemory);
            return None;
        };
        // SYNC(frame-learned): pairs with the load in `learned`. Two threads may learn at once, and learn the same.
        self.learned.store(ptr::from_ref(learned).cast_mut(), Ordering::Release);
        Some(learned)
    }

    /// As the driver tells. From CUDA 13.2 on it says how many parameters there are. Before, the end is where it
    /// answers with an error, which shows in its log and under compute-sanitizer: a guest asks such a thing only if the
    /// user has said that he may, with `EBB_PARAMETERS=1`.
    fn parameters(&self, may_ask_in_vain: bool) -> Parameters {
        let most = match self.parameter_count() {
            Some(count) => count,
            None if may_ask_in_vain => LARGEST / 4,
            None => 0,
        };
        let mut found = Parameters::default();
        while (found.count as usize) < most {
            let Some(end) = self.parameter_end(found.count as usize) else { break };
            found.count += 1;
            found.bytes = found.bytes.max(end);
        }
        found
    }

    fn parameter_count(&self) -> Option<usize> {
        let mut count = 0;
        let result: CUresult = match self.of {
            Of::Module => {
                // SAFETY: a handle that the driver gave out and that is just being launched; a place for the answer.
                unsafe { next::call::cuFuncGetParamCount(self.handle(), &mut count) }
            }
            Of::Library => {
                // SAFETY: a handle that the driver gave out and that is just being launched; a place for the answer.
                unsafe { next::call::cuKernelGetParamCount(self.handle(), &mut count) }
            }
        };
        (result == CUDA_SUCCESS).then_some(count.min(LARGEST))
    }

    fn parameter_end(&self, index: usize) -> Option<u32> {
        let (mut offset, mut size) = (0, 0);
        let result: CUresult = match self.of {
            Of::Module => {
                // SAFETY: a handle that the driver gave out and that is just being launched; places for the answers.
                unsafe { next::call::cuFuncGetParamInfo(self.handle(), index, &mut offset, &mut size) }
            }
            Of::Library => {
                // SAFETY: a handle that the driver gave out and that is just being launched; places for the answers.
                unsafe { next::call::cuKernelGetParamInfo(self.handle(), index, &mut offset, &mut size) }
            }
        };
        (result == CUDA_SUCCESS).then(|| u32::try_from(offset.saturating_add(size)).unwrap_or(u32::MAX))
    }

    /// What holds for the kernel on a device, as far as the driver tells.
    pub fn attribute(&self, attribute: CUfunction_attribute, device: CUdevice) -> Option<c_int> {
        let mut value = 0;
        let result: CUresult = match self.of {
            Of::Module => {
                // SAFETY: a handle that the driver gave out and that is about to be launched; a place for the answer.
                unsafe { next::call::cuFuncGetAttribute(&mut value, attribute, self.handle()) }
            }
            Of::Library => {
                // SAFETY: a handle that the driver gave out and that is about to be launched; a place for the answer.
                unsafe { next::call::cuKernelGetAttribute(&mut value, attribute, self.handle(), device) }
            }
        };
        (result == CUDA_SUCCESS).then_some(value)
    }

    fn handle<T>(&self) -> *mut T {
        ptr::without_provenance_mut(self.handle)
    }
}
