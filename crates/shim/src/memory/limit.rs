//! What the environment says about how much memory a process may have.
//!
//! `EBB_MEM_LIMIT` holds for every GPU. `CUDA_DEVICE_MEMORY_LIMIT_<i>`, for the device with that number, and
//! `CUDA_DEVICE_MEMORY_LIMIT` are what schedulers of clusters set for other libraries, and mean the same. The first that is
//! there and can be understood counts.

use std::ffi::CStr;
use std::io::Write as _;

use model::Bytes;
use telemetry::Note;

use crate::log::say;
use crate::surroundings::variable;
use crate::watch::Watch;

/// The limit for a device; `None` if there is none. Of a device without a number only what holds for all is known. What
/// cannot be understood is noted where there is a watch.
pub fn of_environment(device: Option<usize>, watch: Option<&Watch>) -> Option<Bytes> {
    let mut buffer = [0; 64];
    let own = device.and_then(|device| name_of(device, &mut buffer));
    let names = [Some(c"EBB_MEM_LIMIT"), own, Some(c"CUDA_DEVICE_MEMORY_LIMIT")];
    let said = names.into_iter().flatten().find_map(|name| understood(name, variable(name)?, watch))?;
    // Nought is how one says that there is none.
    Some(said).filter(|limit| *limit != Bytes::ZERO)
}

fn name_of(device: usize, buffer: &mut [u8; 64]) -> Option<&CStr> {
    write!(&mut buffer[..], "CUDA_DEVICE_MEMORY_LIMIT_{device}\0").ok()?;
    CStr::from_bytes_until_nul(buffer).ok()
}

/// What is not understood is not guessed at: it counts as not said, and the ledger tells.
fn understood(name: &CStr, text: &CStr, watch: Option<&Watch>) -> Option<Bytes> {
    let parsed = text.to_str().ok().and_then(|text| text.parse().ok());
    if parsed.is_none()
        && let Some(watch) = watch
    {
        say!("{name:?} cannot be {text:?}; it is ignored");
        watch.ledger.note(Note::LimitIgnored);
        watch.ledger.detail(text.to_bytes());
    }
    parsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_has_a_variable_of_its_own() {
        let mut buffer = [0; 64];
        assert_eq!(name_of(0, &mut buffer), Some(c"CUDA_DEVICE_MEMORY_LIMIT_0"));
        let mut buffer = [0; 64];
        assert_eq!(name_of(15, &mut buffer), Some(c"CUDA_DEVICE_MEMORY_LIMIT_15"));
    }
}
