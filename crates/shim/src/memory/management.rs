//! What NVIDIA's management library is to say of a GPU's memory, for the library that stands in front of it.
//!
//! NVML knows GPUs by their UUID and by a number of its own, and programs ask it before they use CUDA, often in order not to: a
//! process that has initialised CUDA cannot fork and go on with it. So nothing is begun here. As long as CUDA has not been
//! initialised the environment says what the limit is, and nothing is used; from then on it is what `cuMemGetInfo` goes by.
//!
//! A limit is how much a tenant may have of *each* GPU, so one that CUDA does not show to this process is shown with it too,
//! and what a program is told does not change when it initialises CUDA.

use board::Gpu;
use cuda_abi::{CUDA_SUCCESS, CUdevice, CUuuid};
use model::Bytes;

use super::account::{self, Room};
use super::{Home, MOST, limit, quietly};
use crate::surroundings::{Variables, variable};
use crate::{next, tenancy, watch};

/// What there is for this process of the GPU with this UUID, which NVML has under this number.
pub fn room(uuid: &[u8], index: u32) -> Option<Room> {
    let gpu = parsed(uuid)?;
    if !watch::is_begun() {
        return if Variables::read().disabled { None } else { beforehand(uuid, index) };
    }
    quietly("ebb_memory_view", |watch| match device_of(gpu).and_then(Home::on) {
        Some(home) => account::of(home.device).room(watch),
        None => beforehand(uuid, index),
    })
    .flatten()
}

/// What the environment says.
fn beforehand(uuid: &[u8], index: u32) -> Option<Room> {
    let visible = variable(c"CUDA_VISIBLE_DEVICES").map(|list| list.to_bytes());
    let Bytes(limit) = limit::of_environment(expected(visible, uuid, index), None)?;
    Some(Room { limit, left: limit })
}

/// The number that CUDA will give a GPU, as far as can be told: its place in the list of visible ones, by number or by the
/// beginning of its UUID, and without a list the number that it has in NVML. CUDA counts the fastest first unless
/// `CUDA_DEVICE_ORDER` says otherwise, so with GPUs of different kinds a number may be another's.
fn expected(visible: Option<&[u8]>, uuid: &[u8], index: u32) -> Option<usize> {
    let Some(visible) = visible else { return usize::try_from(index).ok() };
    visible.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).position(|entry| {
        let number = str::from_utf8(entry).ok().and_then(|entry| entry.parse::<u32>().ok());
        // What distinguishes one from another begins behind the first word.
        number == Some(index) || (entry.len() > b"GPU-".len() && uuid.starts_with(entry))
    })
}

/// The device that CUDA has for a GPU; `None` too as long as CUDA has not been initialised, which is not ours to do.
fn device_of(gpu: Gpu) -> Option<CUdevice> {
    if let Some(device) = tenancy::device_of(gpu) {
        return Some(device);
    }
    let mut count = 0;
    // SAFETY: a place for the answer. Before CUDA is initialised it is an error, and nothing else happens.
    if unsafe { next::call::cuDeviceGetCount(&mut count) } != CUDA_SUCCESS {
        return None;
    }
    let most = CUdevice::try_from(MOST).unwrap_or(CUdevice::MAX);
    (0..count.min(most)).find(|&device| {
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: a place for the answer, and a device that there is.
        let asked = unsafe { next::call::cuDeviceGetUuid_v2(&mut uuid, device) };
        asked == CUDA_SUCCESS && uuid.bytes.map(|byte| byte as u8) == gpu.0
    })
}

/// `GPU-` or `MIG-`, and sixteen bytes in hexadecimal, with strokes anywhere.
fn parsed(uuid: &[u8]) -> Option<Gpu> {
    let digits = uuid.strip_prefix(b"GPU-").or_else(|| uuid.strip_prefix(b"MIG-"))?;
    let mut digits = digits.iter().filter(|&&byte| byte != b'-').map(|&byte| char::from(byte).to_digit(16));
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        let (high, low) = (digits.next()??, digits.next()??);
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    digits.next().is_none().then_some(Gpu(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &[u8] = b"GPU-00112233-4455-6677-8899-aabbccddeeff";

    #[test]
    fn a_uuid_is_read_as_nvml_writes_it() {
        let bytes =
            [0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
        assert_eq!(parsed(UUID), Some(Gpu(bytes)));
        assert_eq!(parsed(b"MIG-00112233-4455-6677-8899-AABBCCDDEEFF"), Some(Gpu(bytes)));
        for wrong in [&b""[..], b"GPU-", b"GPU-0011", b"00112233-4455-6677-8899-aabbccddeeff", &UUID[..39]] {
            assert_eq!(parsed(wrong), None);
        }
        assert_eq!(parsed(b"GPU-00112233-4455-6677-8899-aabbccddeeff0"), None);
        assert_eq!(parsed(b"GPU-0011223g-4455-6677-8899-aabbccddeeff"), None);
    }

    #[test]
    fn the_number_of_a_gpu_is_its_place_among_those_that_are_visible() {
        assert_eq!(expected(None, UUID, 3), Some(3));
        assert_eq!(expected(Some(b"2, 3"), UUID, 3), Some(1));
        assert_eq!(expected(Some(b"GPU-ff,GPU-001122"), UUID, 3), Some(1));
        for hidden in [&b"0,1"[..], b"", b"-1", b"GPU-", b"GPU-01"] {
            assert_eq!(expected(Some(hidden), UUID, 3), None);
        }
    }
}
