//! `cargo xtask gen`: the generated half of `cuda-abi`, from the CUDA headers.
//!
//! headers → [`bind`] (C becomes Rust) → [`surface`] (Rust is sorted) → [`procs`] (versions find their symbols)
//! → [`emit`] (text). The headers' comments are NVIDIA's and stay behind; what passes is the interface.

mod bind;
mod emit;
mod procs;
mod surface;

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;
use crate::{compare, fetch};
use bind::Mode;
use surface::Surface;

/// Writes the generated files or, with `check`, complains if those committed are not what would be written.
pub fn run(check: bool) -> Result<()> {
    let folder = workspace::root().join("crates/cuda-abi/src/generated");
    let mut stale = Vec::new();
    for (name, text) in generate()? {
        let path = folder.join(name);
        if !check {
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            continue;
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        stale.extend(compare::summary(&format!("generated/{name}"), &committed, &text));
    }
    if !stale.is_empty() {
        bail!("cuda-abi is not what `cargo xtask gen` writes:\n{}", stale.join("\n"));
    }
    Ok(())
}

/// The files' names and contents.
fn generate() -> Result<Vec<(&'static str, String)>> {
    let include = fetch::fetch(&fetch::HEADERS)?.join("nvidia/cu13/include");
    provide_libclang()?;
    let surface = Surface::new(bind::read(&include, Mode::Internal)?)?;
    for mode in [Mode::Plain, Mode::PerThread] {
        expect_nothing_new(&surface, &Surface::new(bind::read(&include, mode)?)?, mode)?;
    }
    let procs = procs::join(&surface)?;
    Ok(vec![
        ("types.rs", emit::types(&surface)?),
        ("functions.rs", emit::functions(&surface)?),
        ("procs.rs", emit::procs(&surface, &procs)?),
        ("errors.rs", emit::errors(&surface)?),
    ])
}

/// What programs see must be part of what NVIDIA's own programs see, or the list would have holes.
fn expect_nothing_new(all: &Surface, seen: &Surface, mode: Mode) -> Result<()> {
    for (name, signature) in &seen.functions {
        let known = all.functions.get(name);
        ensure!(
            known.is_some_and(|known| all.alike(known, signature)),
            "{name} is different in mode {mode:?}"
        );
    }
    Ok(())
}

/// bindgen loads libclang at run time from where this variable says. A user's own choice stands.
fn provide_libclang() -> Result<()> {
    if std::env::var_os("LIBCLANG_PATH").is_none() {
        let folder = fetch::fetch(&fetch::LIBCLANG)?.join("libclang-18.1.1.data/platlib/clang/native");
        // SAFETY: no other thread runs in this process: it starts none before bindgen is called, and none
        // that outlives the function which started it.
        unsafe { std::env::set_var("LIBCLANG_PATH", folder) };
    }
    Ok(())
}
