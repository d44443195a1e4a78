//! From the image of a module to twins of its kernels.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::ptr;

use cuda_abi::{CUDA_SUCCESS, CUkernel, CUlibrary};
use guard::{Kernel, Reason, Rewritten, Verdict};

use super::cache::Cache;
use super::piece::{self, Code, Piece};
use super::smith::at_the_driver;
use crate::frames::Module;
use crate::log::say;
use crate::{fault, next};

/// What became of an image: the rewritten one, loaded, and what is known of its kernels.
pub struct Product {
    /// The key of the code that the driver runs.
    pub key: u128,
    /// `None` where no kernel of it can be guarded.
    library: Option<Library>,
    kernels: BTreeMap<String, Kernel>,
}

impl Product {
    /// Makes it. The reason, if there can be none, is one for all kernels of the module.
    pub fn make(module: &Module, capability: u32, cache: &Cache) -> Result<Product, Reason> {
        let mut outcome = Err(Reason::NoImage);
        for piece in piece::pieces(&module.kept, &module.image, capability) {
            outcome = Product::of(&piece, cache);
            if matches!(&outcome, Ok(product) if product.library.is_some()) || runs(&piece.code) {
                return outcome;
            }
        }
        outcome
    }

    fn of(piece: &Piece, cache: &Cache) -> Result<Product, Reason> {
        let rewritten = match cache.get(piece.key) {
            Some(rewritten) => rewritten,
            None => {
                let rewritten = rewrite(&piece.code)?;
                cache.put(piece.key, &rewritten);
                rewritten
            }
        };
        let Rewritten { image, kernels } = rewritten;
        let some = kernels.iter().any(|kernel| matches!(kernel.verdict, Verdict::Guard(_)));
        let library = match some {
            true => Some(Library::load(&image).ok_or(Reason::RefusedByDriver)?),
            false => None,
        };
        let kernels = kernels.into_iter().map(|kernel| (kernel.name.clone(), kernel)).collect();
        Ok(Product { key: piece.key, library, kernels })
    }

    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.get(name)
    }

    /// The handle of a kernel's twin.
    pub fn handle(&self, name: &str) -> Option<CUkernel> {
        self.library.as_ref()?.kernel(name)
    }
}

fn rewrite(code: &Code) -> Result<Rewritten, Reason> {
    let rewritten = match code {
        Code::Cubin(code) => guard::rewrite_cubin(code),
        Code::Ptx(text) => guard::rewrite_ptx(&fault::twin(text)),
    };
    rewritten.map_err(|error| {
        say!("an image cannot be rewritten: {error}");
        Reason::UnknownRecords
    })
}

/// Whether the driver runs this code, of all that there is for a device. Only machine code is in question: a driver that
/// has a device which cannot run it (the software GPU) takes the PTX beside it.
fn runs(code: &Code) -> bool {
    match code {
        Code::Cubin(code) => Library::load(code).is_some(),
        Code::Ptx(_) => true,
    }
}

/// A library of ours, unloaded when this value goes.
struct Library(CUlibrary);

impl Library {
    /// The driver copies what it needs of the image.
    fn load(image: &[u8]) -> Option<Library> {
        let (mut library, none, nothing) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let image = image.as_ptr().cast();
        let result = at_the_driver(|| {
            // SAFETY: a whole image, which says itself how long it is; no options; a place for the answer.
            unsafe {
                next::call::cuLibraryLoadData(
                    &mut library,
                    image,
                    ptr::null_mut(),
                    none,
                    0,
                    ptr::null_mut(),
                    nothing,
                    0,
                )
            }
        })?;
        (result == CUDA_SUCCESS).then_some(Library(library))
    }

    fn kernel(&self, name: &str) -> Option<CUkernel> {
        let name = CString::new(name).ok()?;
        let mut kernel = ptr::null_mut();
        let result = at_the_driver(|| {
            // SAFETY: a library of ours, a C string, and a place for the answer.
            unsafe { next::call::cuLibraryGetKernel(&mut kernel, self.0, name.as_ptr()) }
        })?;
        (result == CUDA_SUCCESS && !kernel.is_null()).then_some(kernel)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        at_the_driver(|| {
            // SAFETY: a library of ours, of which nothing is launched any more: its module was unloaded, or it never was.
            unsafe { next::call::cuLibraryUnload(self.0) }
        });
    }
}
