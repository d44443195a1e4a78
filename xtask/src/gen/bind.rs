//! Reads the CUDA headers with bindgen.
//!
//! One header says different things depending on what is defined: the old versions of functions and types
//! appear only in NVIDIA's own "internal" mode, and there the names of today's functions are replaced by their
//! per-thread-stream twins. No single mode shows everything, so the generator reads all three.

use std::path::Path;

use anyhow::{Context, Result};
use bindgen::callbacks::{ItemInfo, ParseCallbacks};
use bindgen::{CodegenConfig, EnumVariation, Formatter};

use crate::workspace;

/// How the headers are to present themselves.
#[derive(Clone, Copy, Debug)]
pub enum Mode {
    /// What an ordinary program sees.
    Plain,
    /// What a program sees which asked for per-thread default streams.
    PerThread,
    /// What NVIDIA's own programs see: every version ever published.
    Internal,
}

impl Mode {
    fn defines(self) -> &'static [&'static str] {
        match self {
            Mode::Plain => &[],
            Mode::PerThread => &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"],
            // The second keeps an end marker out of an enum, which would change with every release.
            Mode::Internal => &["-D__CUDA_API_VERSION_INTERNAL", "-D__CUDA_API_VERSION_INTERNAL_ODR"],
        }
    }
}

/// Everything the headers declare in `mode`, as Rust.
pub fn read(include: &Path, mode: Mode) -> Result<syn::File> {
    let text = bindgen::Builder::default()
        .header_contents("driver.h", DRIVER_H)
        .clang_args(["-nostdinc", "--target=x86_64-unknown-linux-gnu", "-I"])
        .clang_arg(workspace::root().join("xtask/headers").display().to_string())
        .clang_arg("-I")
        .clang_arg(include.display().to_string())
        .clang_args(mode.defines())
        .parse_callbacks(Box::new(Names))
        .formatter(Formatter::None)
        .with_codegen_config(CodegenConfig::TYPES | CodegenConfig::VARS | CodegenConfig::FUNCTIONS)
        .allowlist_file(".*/cuda(|Typedefs|GL|GLTypedefs|EGL|EGLTypedefs|Profiler|ProfilerTypedefs|VDPAU|VDPAUTypedefs)\\.h")
        .blocklist_item("__.*")
        .default_enum_style(EnumVariation::NewType { is_bitfield: false, is_global: true })
        .prepend_enum_name(false)
        .generate_comments(false)
        .layout_tests(false)
        .use_core()
        .merge_extern_blocks(true)
        .derive_default(true)
        .disable_header_comment()
        .generate()
        .with_context(|| format!("bindgen could not read the CUDA headers in mode {mode:?}"))?
        .to_string();
    syn::parse_file(&text).context("bindgen's output is not Rust")
}

/// The driver's whole surface, with its corners that few programs see.
const DRIVER_H: &str = "#include <cudaTypedefs.h>\n#include <cudaProfilerTypedefs.h>\n#include <cudaGLTypedefs.h>\n\
                        #include <cudaEGLTypedefs.h>\n#include <cudaVDPAUTypedefs.h>\n";

/// bindgen names an enum after its tag (`cudaError_enum`); everyone knows it by its typedef (`CUresult`).
#[derive(Debug)]
struct Names;

impl ParseCallbacks for Names {
    fn item_name(&self, item: ItemInfo<'_>) -> Option<String> {
        (item.name == "cudaError_enum").then(|| "CUresult".to_owned())
    }
}
