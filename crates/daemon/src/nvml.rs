//! Who computes on the GPUs of this machine, as NVIDIA's management library says.
//!
//! Tenants are known without it. It is asked for those who are none: a process that goes round ebb takes the GPU from everybody
//! and stands in no account. The library may be missing, older than a function or slow, so it is opened when somebody first wants to know
//! and asked by a thread of its own; whoever wants to know is given what was found last. Nothing here is needed for anything
//! else.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs;
use std::ptr;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use board::Gpu;

use crate::uuid;

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// As NVIDIA's tools count it.
    pub index: u32,
    /// Processes that compute on it. `None`: it is not told, or in numbers that mean nothing here.
    pub processes: Option<Vec<u32>>,
}

pub type Survey = BTreeMap<Gpu, Seen>;

/// Asks in a thread of its own.
#[derive(Debug)]
pub struct Surveyor {
    found: Arc<Mutex<Survey>>,
    wish: SyncSender<()>,
}

impl Surveyor {
    /// Begins with a first look. `None` where there can be no thread.
    pub fn start() -> Option<Surveyor> {
        let found = Arc::new(Mutex::new(Survey::new()));
        // One wish is as good as many.
        let (wish, wishes) = sync_channel(1);
        let place = found.clone();
        let look = move || {
            let Some(library) = Library::open() else { return };
            loop {
                let survey = library.survey();
                *place.lock().unwrap_or_else(PoisonError::into_inner) = survey;
                if wishes.recv().is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("ebb-nvml".to_owned()).spawn(look).ok()?;
        Some(Surveyor { found, wish })
    }

    /// What was found last. It is looked again meanwhile, for whoever asks next.
    pub fn latest(&self) -> Survey {
        let _ = self.wish.try_send(());
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

type Device = *mut c_void;
type Status = c_int;

const SUCCESS: Status = 0;
const INSUFFICIENT_SIZE: Status = 7;
const UUID_BYTES: usize = 96;
/// More processes than this on a GPU are not counted.
const MOST: usize = 4096;

/// What the second and third version of the question are answered with.
#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    pid: c_uint,
    memory: u64,
    instances: [c_uint; 2],
}

/// The functions that are used. The library stays loaded: its threads may not be pulled from under it.
struct Library {
    count: unsafe extern "C" fn(*mut c_uint) -> Status,
    device: unsafe extern "C" fn(c_uint, *mut Device) -> Status,
    uuid: unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Status,
    processes: Option<unsafe extern "C" fn(Device, *mut c_uint, *mut Process) -> Status>,
}

impl Library {
    fn open() -> Option<Library> {
        // SAFETY: a name that ends with a nought; the library's constructors are NVIDIA's.
        let handle =
            unsafe { libc::dlopen(c"libnvidia-ml.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return None;
        }
        let find = |name: &CStr| {
            // SAFETY: an open library and a name that ends with a nought.
            let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!symbol.is_null()).then_some(symbol)
        };
        let begin = find(c"nvmlInit_v2")?;
        // SAFETY: the signature that NVIDIA's header gives for this name.
        let begin = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> Status>(begin) };
        // SAFETY: it may be called at any time, and has no arguments.
        if unsafe { begin() } != SUCCESS {
            return None;
        }
        let count = find(c"nvmlDeviceGetCount_v2")?;
        let device = find(c"nvmlDeviceGetHandleByIndex_v2")?;
        let uuid = find(c"nvmlDeviceGetUUID")?;
        let processes = find(c"nvmlDeviceGetComputeRunningProcesses_v3")
            .or_else(|| find(c"nvmlDeviceGetComputeRunningProcesses_v2"));
        Some(Library {
            // SAFETY: the signature that NVIDIA's header gives for this name.
            count: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_uint) -> Status>(count)
            },
            // SAFETY: as above.
            device: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(c_uint, *mut Device) -> Status>(
                    device,
                )
            },
            // SAFETY: as above.
            uuid: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Status>(
                    uuid,
                )
            },
            processes: processes.map(|symbol| {
                // SAFETY: as above; both versions have this signature and this structure.
                unsafe {
                    std::mem::transmute::<
                        *mut c_void,
                        unsafe extern "C" fn(Device, *mut c_uint, *mut Process) -> Status,
                    >(symbol)
                }
            }),
        })
    }

    fn survey(&self) -> Survey {
        let mut count = 0;
        // SAFETY: a place for the answer.
        let status = unsafe { (self.count)(&mut count) };
        let count = if status == SUCCESS { count } else { 0 };
        let gpus = (0..count).filter_map(|index| {
            let device = self.device(index)?;
            let gpu = self.uuid(device)?;
            Some((gpu, Seen { index, processes: self.processes(device) }))
        });
        gpus.collect()
    }

    fn device(&self, index: u32) -> Option<Device> {
        let mut device = ptr::null_mut();
        // SAFETY: a place for the answer.
        let status = unsafe { (self.device)(index, &mut device) };
        (status == SUCCESS).then_some(device)
    }

    fn uuid(&self, device: Device) -> Option<Gpu> {
        let mut text = [0u8; UUID_BYTES];
        // SAFETY: a device that was just given, and room for so many bytes.
        let status = unsafe { (self.uuid)(device, text.as_mut_ptr().cast(), UUID_BYTES as c_uint) };
        (status == SUCCESS).then_some(())?;
        uuid::read(CStr::from_bytes_until_nul(&text).ok()?.to_str().ok()?)
    }

    fn processes(&self, device: Device) -> Option<Vec<u32>> {
        let ask = self.processes?;
        let mut list = vec![Process { pid: 0, memory: 0, instances: [0; 2] }; 64];
        loop {
            let mut count = list.len() as c_uint;
            // SAFETY: a device that was just given, and room for so many processes.
            let status = unsafe { ask(device, &mut count, list.as_mut_ptr()) };
            let count = count as usize;
            match status {
                SUCCESS => {
                    list.truncate(count);
                    return known_here(list.iter().map(|process| process.pid));
                }
                // There are more than there were a moment ago.
                INSUFFICIENT_SIZE if list.len() < MOST => {
                    let wanted = (count + 16).clamp(list.len() * 2, MOST);
                    list.resize(wanted, list[0]);
                }
                _ => return None,
            }
        }
    }
}

/// The processes without MPS's own. Inside a container the library names them as the machine outside does; then nothing can be
/// said.
fn known_here(pids: impl Iterator<Item = u32>) -> Option<Vec<u32>> {
    let mut known = Vec::new();
    for pid in pids {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        // As long as such a name can be.
        if name.trim_end() != "nvidia-cuda-mps" {
            known.push(pid);
        }
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_nobody_here_knows_mean_that_nothing_is_known() {
        let own = std::process::id();
        assert_eq!(known_here([own].into_iter()), Some(vec![own]));
        assert_eq!(known_here([own, 0].into_iter()), None);
        assert_eq!(known_here([].into_iter()), Some(Vec::new()));
    }
}
