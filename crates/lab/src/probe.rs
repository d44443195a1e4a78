//! What a driver says about itself, and how that travels between processes: a few lines of words.
//!
//! A driver that is broken may crash, so this is meant for a process of its own, whose end its parent can tell.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use cuda_abi::{CUDA_SUCCESS, CUdevice, CUresult};

use crate::Error;
use crate::driver::{ErrorName, Library, error_name, functions};

functions! {
    error_name = "cuGetErrorName" (CUresult, *mut *const c_char);
    version = "cuDriverGetVersion" (*mut c_int);
    init = "cuInit" (c_uint);
    count = "cuDeviceGetCount" (*mut c_int);
    name = "cuDeviceGetName" (*mut c_char, c_int, CUdevice);
    memory = "cuDeviceTotalMem_v2" (*mut usize, CUdevice);
    attribute = "cuDeviceGetAttribute" (*mut c_int, u32, CUdevice);
}

/// A driver's answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The newest CUDA it serves, as CUDA writes it: 13010 is 13.1. Zero if it did not tell.
    pub version: i32,
    /// What `cuInit` answered, and the driver's word for it.
    pub init: u32,
    pub init_name: String,
    /// The GPUs, of which there are none to see if `cuInit` failed.
    pub gpus: Vec<Gpu>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    pub memory_bytes: u64,
    /// Whether processes may have contexts on it: 0 (any), 2 (none), 3 (one).
    pub compute_mode: i32,
}

/// Asks the driver at `path`, or the one which the loader finds under a bare name.
pub fn probe(path: &Path) -> Result<Probe, Error> {
    let library = Library::open(path)?;
    let functions = Functions::load(&library)?;
    let ask: ErrorName = functions.error_name;
    let check = |call, result| match result {
        CUDA_SUCCESS => Ok(()),
        CUresult(code) => Err(Error::Driver { call, code, name: error_name(ask, result) }),
    };
    let mut version = 0;
    // SAFETY: a valid place for the answer.
    let told = unsafe { (functions.version)(&mut version) };
    let version = if told == CUDA_SUCCESS { version } else { 0 };
    // SAFETY: no pointers.
    let init = unsafe { (functions.init)(0) };
    let mut count = 0;
    if init == CUDA_SUCCESS {
        // SAFETY: a valid place for the answer.
        check("cuDeviceGetCount", unsafe { (functions.count)(&mut count) })?;
    }
    let gpus = (0..count).map(|device| gpu(&functions, device, &check)).collect::<Result<_, _>>()?;
    Ok(Probe { version, init: init.0, init_name: error_name(ask, init), gpus })
}

fn gpu(
    functions: &Functions,
    device: CUdevice,
    check: &dyn Fn(&'static str, CUresult) -> Result<(), Error>,
) -> Result<Gpu, Error> {
    const MAJOR: u32 = 75;
    const MINOR: u32 = 76;
    const COMPUTE_MODE: u32 = 20;
    let attribute = |which| {
        let mut value = 0;
        // SAFETY: a valid place for the answer.
        let result = unsafe { (functions.attribute)(&mut value, which, device) };
        check("cuDeviceGetAttribute", result).map(|()| value)
    };
    let mut name = [0u8; 256];
    // SAFETY: `name` has as many bytes as it says.
    let result = unsafe { (functions.name)(name.as_mut_ptr().cast(), 256, device) };
    check("cuDeviceGetName", result)?;
    let mut memory = 0;
    // SAFETY: a valid place for the answer.
    check("cuDeviceTotalMem", unsafe { (functions.memory)(&mut memory, device) })?;
    let name = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy();
    Ok(Gpu {
        name: name.split_whitespace().collect::<Vec<_>>().join(" "),
        capability: (attribute(MAJOR)?, attribute(MINOR)?),
        memory_bytes: memory as u64,
        compute_mode: attribute(COMPUTE_MODE)?,
    })
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "driver {} {} {}", self.version, self.init, self.init_name)?;
        for Gpu { name, capability: (major, minor), memory_bytes, compute_mode } in &self.gpus {
            writeln!(f, "gpu {major} {minor} {memory_bytes} {compute_mode} {name}")?;
        }
        Ok(())
    }
}

impl FromStr for Probe {
    type Err = Error;

    /// Lines that a driver printed in between are passed over.
    fn from_str(text: &str) -> Result<Probe, Error> {
        let refused = || Error::Protocol(text.trim().to_owned());
        let mut lines = text.lines().map(|line| line.splitn(6, ' ').collect::<Vec<_>>());
        let found = lines.find(|words| words.first() == Some(&"driver")).ok_or_else(refused)?;
        let [_, version, init, init_name @ ..] = found.as_slice() else { return Err(refused()) };
        let mut probe = Probe {
            version: version.parse().map_err(|_| refused())?,
            init: init.parse().map_err(|_| refused())?,
            init_name: init_name.join(" "),
            gpus: Vec::new(),
        };
        for words in lines.filter(|words| words.first() == Some(&"gpu")) {
            let [_, major, minor, memory, mode, name] = words.as_slice() else { return Err(refused()) };
            let number = |text: &str| text.parse().map_err(|_| refused());
            probe.gpus.push(Gpu {
                name: (*name).to_owned(),
                capability: (number(major)?, number(minor)?),
                memory_bytes: memory.parse().map_err(|_| refused())?,
                compute_mode: number(mode)?,
            });
        }
        Ok(probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_arrives() {
        let memory_bytes = 150_754_820_096;
        let gpu = |name: &str| Gpu { name: name.into(), capability: (9, 0), memory_bytes, compute_mode: 3 };
        let sent = Probe {
            version: 13000,
            init: 0,
            init_name: "CUDA_SUCCESS".into(),
            gpus: vec![gpu("NVIDIA H200"), gpu("second")],
        };
        assert_eq!(format!("noise of a driver\n{sent}").parse::<Probe>().unwrap(), sent);
    }

    #[test]
    fn a_refused_start_arrives_in_words() {
        let sent =
            Probe { version: 12040, init: 999, init_name: "an unknown error".into(), gpus: Vec::new() };
        assert_eq!(sent.to_string().parse::<Probe>().unwrap(), sent);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "driver", "driver new 0 X", "driver 13000 0 CUDA_SUCCESS\ngpu 9 zero 1 x"] {
            assert!(text.parse::<Probe>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_missing_driver_is_named() {
        let error = probe(Path::new("/nowhere/libcuda.so.1")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/libcuda.so.1"), "{error}");
    }
}
