//! How this process shows the daemon that it may use a GPU: with a descriptor of the GPU's own file, open for reading and writing.
//!
//! With NVIDIA's driver that is `/dev/nvidiaN`, where the kernel's driver says which N a GPU is; it knows the GPU by its place on the
//! bus, as CUDA does. A software GPU gives a descriptor of its card. Where neither can be had nothing is shown, and the daemon
//! decides what that means.

use std::ffi::{CStr, c_int};

use board::link::OwnDescriptor;
use cuda_abi::{CUDA_SUCCESS, CUdevice};
use rustix::fd::{FromRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};

use super::lever::software_file;
use crate::next;

/// The number of `ebb_softgpu_control` that gives the card's file.
const CARD_FILE: u32 = 7;
const NAME_BYTES: usize = 16;

/// A new descriptor of the file of a device, for as long as the daemon is asked.
pub fn device_file(device: CUdevice) -> Option<OwnDescriptor> {
    let file = software_file(CARD_FILE, 0).map(owned).or_else(|| of_nvidia(device))?;
    OwnDescriptor::new(file).ok()
}

fn owned(number: c_int) -> OwnedFd {
    // SAFETY: a descriptor that the software GPU opened for us just now, and that nobody else knows.
    unsafe { OwnedFd::from_raw_fd(number) }
}

fn of_nvidia(device: CUdevice) -> Option<OwnedFd> {
    let mut place = [0; NAME_BYTES];
    let name = pci_name(device, &mut place)?;
    let mut path = [0; 80];
    let path = joined(&["/proc/driver/nvidia/gpus/", name, "/information"], &mut path)?;
    let information = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 2048];
    let length = rustix::io::read(&information, &mut text[..]).ok()?;
    let minor = minor_of(text.get(..length)?)?;
    let mut path = [0; 80];
    let path = joined(&["/dev/nvidia", minor], &mut path)?;
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// Where a device is on the bus, as the kernel writes it: `0000:3b:00.0`.
pub fn pci_name(device: CUdevice, place: &mut [u8; NAME_BYTES]) -> Option<&str> {
    let mut name = [0 as std::ffi::c_char; NAME_BYTES];
    // SAFETY: a place of the length that is said.
    let told = unsafe { next::call::cuDeviceGetPCIBusId(name.as_mut_ptr(), NAME_BYTES as c_int, device) };
    if told != CUDA_SUCCESS {
        return None;
    }
    *place = name.map(|byte| byte.cast_unsigned().to_ascii_lowercase());
    CStr::from_bytes_until_nul(place).ok()?.to_str().ok()
}

/// What stands behind `Device Minor:`.
fn minor_of(information: &[u8]) -> Option<&str> {
    let line = |line: &&[u8]| line.starts_with(b"Device Minor:");
    let line = information.split(|&byte| byte == b'\n').find(line)?;
    let number = str::from_utf8(line).ok()?.split(':').nth(1)?.trim();
    number.parse::<u8>().is_ok().then_some(number)
}

/// Parts of a path one behind the other, without a heap.
fn joined<'a>(parts: &[&str], place: &'a mut [u8; 80]) -> Option<&'a CStr> {
    let mut length = 0;
    for part in parts {
        place.get_mut(length..length + part.len())?.copy_from_slice(part.as_bytes());
        length += part.len();
    }
    *place.get_mut(length)? = 0;
    CStr::from_bytes_until_nul(place).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minor_of_a_gpu_is_what_the_driver_says() {
        let said = b"Model: \t\t NVIDIA H200\nIRQ:   \t\t 0\nGPU UUID: \t GPU-1\nDevice Minor: \t 5\nGPU Excluded:\t No\n";
        assert_eq!(minor_of(said), Some("5"));
        for nonsense in [&b""[..], b"Device Minor:\n", b"Device Minor: ../5\n", b"Device Minor: 256\n"] {
            assert_eq!(minor_of(nonsense), None);
        }
    }

    #[test]
    fn paths_are_joined_or_are_none() {
        let mut place = [0xff; 80];
        assert_eq!(joined(&["/dev/nvidia", "5"], &mut place), Some(c"/dev/nvidia5"));
        assert_eq!(joined(&["x".repeat(80).as_str()], &mut place), None);
    }
}
