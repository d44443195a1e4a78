//! Programs: from the bytes a caller hands over to an image that can be loaded.

use std::sync::Arc;

use cuda_abi::*;
use softgpu::isa::Image;
use softgpu::lower;

use super::link;
use crate::error::{Error, Result};

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Program {
    pub image: Arc<Image>,
}

/// What the bytes at an address were found to be.
pub enum Source {
    Ptx(String),
    Fatbin(Vec<u8>),
    /// Machine code, which only a real GPU runs.
    Cubin,
    /// What `cuLinkComplete` gave.
    Linked(Vec<u8>),
}

impl Source {
    /// Tells what a whole file is.
    pub fn of_bytes(bytes: &[u8]) -> Result<Source> {
        if bytes.starts_with(link::MAGIC) {
            return Ok(Source::Linked(bytes.to_vec()));
        }
        match cubin::Image::read(bytes).map_err(damaged)? {
            cubin::Image::Ptx(text) => Ok(Source::Ptx(text.to_owned())),
            cubin::Image::Fatbin(_) => Ok(Source::Fatbin(bytes.to_vec())),
            cubin::Image::Cubin(_) => Ok(Source::Cubin),
        }
    }

    pub fn compile(&self) -> Result<Program> {
        match self {
            Source::Ptx(text) => compile(text),
            Source::Fatbin(bytes) => compile(&best_ptx(bytes)?),
            Source::Linked(bytes) => link::load(bytes),
            Source::Cubin => Err(only_machine_code()),
        }
    }
}

/// The newest architecture whose PTX the device takes.
pub const ARCHITECTURE: u32 = 90;

fn only_machine_code() -> Error {
    Error::new(CUDA_ERROR_NO_BINARY_FOR_GPU, "only machine code is there, and the software GPU runs PTX")
}

pub fn compile(text: &str) -> Result<Program> {
    let image = lower::compile(text).map_err(refused)?;
    if image.target.is_empty() {
        return Err(Error::new(CUDA_ERROR_INVALID_PTX, "the text has no .target"));
    }
    Ok(Program { image: Arc::new(image) })
}

/// Names that nobody defines are found out only now; a card's linker has no better word for it than this.
pub fn compile_linked(texts: &[&str]) -> Result<Program> {
    lower::link(texts).map(|image| Program { image: Arc::new(image) }).map_err(|error| match error {
        lower::Error::Unresolved { .. } => Error::new(CUDA_ERROR_UNKNOWN, error.to_string()),
        error => refused(error),
    })
}

/// Whether a text can be part of a program: what it declares may be defined by another.
pub fn check_part(text: &str) -> Result<()> {
    match lower::compile(text) {
        Ok(_) | Err(lower::Error::Unresolved { .. }) => Ok(()),
        Err(error) => Err(refused(error)),
    }
}

/// The code for a program that could not be lowered.
fn refused(error: lower::Error) -> Error {
    Error::new(code_of(&error), error.to_string())
}

fn code_of(error: &lower::Error) -> CUresult {
    use lower::Error as E;
    match error {
        E::TooNew { what, .. } if what.starts_with("PTX") => CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
        // "Compilation of PTX failed" is what this code means, for whatever reason.
        E::TooNew { .. }
        | E::Unsupported { .. }
        | E::TooLarge { .. }
        | E::Invalid { .. }
        | E::Unresolved { .. }
        | E::Duplicate { .. } => CUDA_ERROR_INVALID_PTX,
    }
}

impl Source {
    /// The PTX in it, as text.
    pub fn ptx(&self) -> Result<String> {
        match self {
            Source::Ptx(text) => Ok(text.clone()),
            Source::Fatbin(bytes) => best_ptx(bytes),
            Source::Cubin | Source::Linked(_) => Err(only_machine_code()),
        }
    }
}

/// The newest PTX in a fatbin that the device takes.
fn best_ptx(bytes: &[u8]) -> Result<String> {
    let fatbin = cubin::Fatbin::read(bytes).map_err(damaged)?;
    match fatbin.best_ptx(ARCHITECTURE) {
        Some(entry) => entry.text().map_err(damaged),
        None => Err(Error::new(
            CUDA_ERROR_NO_BINARY_FOR_GPU,
            format!("the fatbin holds {fatbin}, nothing for this device"),
        )),
    }
}

/// The code for an image that cannot be read, as a driver of the 580 line gives it.
pub fn damaged(error: cubin::Error) -> Error {
    let code = match error {
        cubin::Error::NotAscii { .. } => CUDA_ERROR_INVALID_PTX,
        cubin::Error::Decompression { .. } | cubin::Error::Size { .. } | cubin::Error::TooLarge { .. } => {
            CUDA_ERROR_UNKNOWN
        }
        cubin::Error::Truncated { .. } | cubin::Error::Field { .. } => CUDA_ERROR_NO_BINARY_FOR_GPU,
        _ => CUDA_ERROR_INVALID_IMAGE,
    };
    Error::new(code, error.to_string())
}
