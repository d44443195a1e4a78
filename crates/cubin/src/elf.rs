//! Cubins: ELF files of machine code.
//!
//! This tells what a cubin is for and which kernels it has, which is what a refusal should name. [`File`] has the rest.

use crate::{Error, File, Target};

/// A cubin, as far as its names go.
#[derive(Clone, Debug)]
pub struct Cubin<'a> {
    /// Number only: the file's header does not tell `sm_90a` from `sm_90`.
    pub target: Target,
    pub abi: u8,
    /// Names of the kernels, in the order of the symbol table.
    pub kernels: Vec<&'a str>,
}

impl<'a> Cubin<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<Cubin<'a>, Error> {
        let file = File::read(bytes)?;
        let kernels = file.symbols().iter().filter(|symbol| symbol.is_kernel());
        let kernels = kernels.map(|symbol| symbol.name).collect();
        Ok(Cubin { target: file.target(), abi: file.abi(), kernels })
    }
}
