//! Linking.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::jit::Options;
use super::prelude::*;
use crate::state::image::Source;
use crate::state::link::Linker;

/// The options of a linker live as long as it does: what goes wrong later is told through them.
static MESSAGES: Mutex<BTreeMap<u64, Places>> = Mutex::new(BTreeMap::new());

/// Where the program wants its messages, as numbers.
#[derive(Clone, Copy)]
struct Places {
    count: c_uint,
    options: u64,
    values: u64,
}

impl Places {
    fn read(self) -> Result<Options> {
        Options::read(self.count, &Address(self.options).values(), Address(self.values).values())
    }
}

pub fn cuLinkCreate_v2(
    numOptions: c_uint,
    options: Address,
    optionValues: Address,
    stateOut: Out<CUlinkState>,
) -> Result<()> {
    current::context()?;
    stateOut.check()?;
    let places = Places { count: numOptions, options: options.0, values: optionValues.0 };
    places.read()?;
    let linker = Linker::create();
    lock(&MESSAGES).insert(linker.handle.value(), places);
    stateOut.set(linker.handle.raw())
}

fn add(linker: &Linker, kind: CUjitInputType, bytes: &[u8]) -> Result<()> {
    match kind {
        CU_JIT_INPUT_PTX | CU_JIT_INPUT_FATBINARY | CU_JIT_INPUT_OBJECT => {}
        CU_JIT_INPUT_CUBIN | CU_JIT_INPUT_LIBRARY | CU_JIT_INPUT_NVVM => {
            return Err(Error::new(CUDA_ERROR_NO_BINARY_FOR_GPU, "only PTX can be linked"));
        }
        _ => return refuse(CUDA_ERROR_INVALID_VALUE),
    }
    match Source::of_bytes(bytes)? {
        Source::Ptx(text) if kind == CU_JIT_INPUT_PTX => linker.add(text),
        source @ (Source::Fatbin(_) | Source::Cubin) if kind != CU_JIT_INPUT_PTX => linker.add(source.ptx()?),
        _ => refuse(CUDA_ERROR_INVALID_IMAGE),
    }
}

/// Runs a step of a linker so that its messages arrive.
fn step<T>(state: Handle<Linker>, work: impl FnOnce(&Linker) -> Result<T>) -> Result<T> {
    driver()?;
    let linker = state.get()?;
    let places = lock(&MESSAGES).get(&state.value()).copied();
    match places {
        Some(places) => places.read()?.run(|| work(&linker)),
        None => work(&linker),
    }
}

pub fn cuLinkAddData_v2(
    state: Handle<Linker>,
    type_: CUjitInputType,
    data: Address,
    size: usize,
    _name: Text,
    _numOptions: c_uint,
    _options: Array<CUjit_option>,
    _optionValues: Array<*mut c_void>,
) -> Result<()> {
    step(state, |linker| {
        require(!data.is_null() && size > 0)?;
        add(linker, type_, &data.values::<u8>().read(size)?)
    })
}

pub fn cuLinkAddFile_v2(
    state: Handle<Linker>,
    type_: CUjitInputType,
    path: Text,
    _numOptions: c_uint,
    _options: Array<CUjit_option>,
    _optionValues: Array<*mut c_void>,
) -> Result<()> {
    step(state, |linker| {
        let path = path.get()?;
        let missing = |error| Error::new(CUDA_ERROR_FILE_NOT_FOUND, format!("{path}: {error}"));
        add(linker, type_, &std::fs::read(&path).map_err(missing)?)
    })
}

pub fn cuLinkComplete(state: Handle<Linker>, cubinOut: Out<*mut c_void>, sizeOut: Out<usize>) -> Result<()> {
    step(state, |linker| {
        cubinOut.check()?;
        let image = linker.complete()?;
        cubinOut.set(image.as_ptr().cast_mut().cast())?;
        sizeOut.set_if_wanted(image.len());
        Ok(())
    })
}

pub fn cuLinkDestroy(state: Handle<Linker>) -> Result<()> {
    driver()?;
    lock(&MESSAGES).remove(&state.value());
    state.take().map(drop)
}
