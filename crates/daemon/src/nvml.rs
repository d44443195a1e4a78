//! Who computes on the GPUs of this machine, as NVIDIA's management library says.
//!
//! Tenants are known without it. It is asked for those who are none: a process that goes round ebb takes the GPU from everybody
//! and stands in no account. Software GPUs are looked at in the same way, by the program that starts the daemon and knows of them. The library may be missing, older than a function or slow, so it is opened when somebody first wants to know
//! and asked by a thread of its own; whoever wants to know is given what was found last. Nothing here is needed for anything
//! else.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use board::Gpu;
use model::Nanos;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::report::Stranger;
use crate::strangers::{Occupant, OnGpu};
use crate::uuid;

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// As NVIDIA's tools count it; a software GPU is not counted.
    pub index: Option<u32>,
    /// Processes that compute on it. `None`: it is not told, or in numbers that mean nothing here.
    pub processes: Option<Vec<Stranger>>,
}

pub type Survey = BTreeMap<Gpu, Seen>;

/// Software GPUs and who is on them, by the folder of the daemon.
pub type Cards = fn(&Path) -> Vec<(Gpu, Vec<Occupant>)>;

/// How old what was found may be before it is looked again.
const FRESH: Nanos = Nanos::from_millis(900);
/// A first look is about the time before it.
const FIRST_SPAN: Nanos = Nanos::from_millis(1_000);

/// Looks once, at real GPUs and at software GPUs. May take as long as NVIDIA's library takes to start.
pub fn survey(cards: Option<Cards>, folder: &Path) -> Survey {
    look(Library::open().as_ref(), cards, folder, &mut EarlierTimes::default())
}

fn look(library: Option<&Library>, cards: Option<Cards>, folder: &Path, before: &mut EarlierTimes) -> Survey {
    let mut survey = library.map(|library| library.survey(before)).unwrap_or_default();
    for (gpu, occupants) in cards.map(|cards| cards(folder)).unwrap_or_default() {
        let occupants: Vec<_> = occupants.into_iter().map(|one| before.compare(gpu, one)).collect();
        let seen = || Seen { index: None, processes: known_here(occupants.into_iter()) };
        survey.entry(gpu).or_insert_with(seen);
    }
    before.end_look();
    survey
}

/// What the last look found, so that the next can tell what happened since.
#[derive(Default)]
struct EarlierTimes {
    looked: Option<Nanos>,
    /// By GPU and process, which may be on several.
    totals: BTreeMap<(Gpu, u32), Nanos>,
    found: BTreeMap<(Gpu, u32), Nanos>,
}

impl EarlierTimes {
    /// For how long nobody has looked. A first look is about the last second.
    fn span(&self) -> Nanos {
        self.looked.map_or(FIRST_SPAN, |looked| board::now().since(looked))
    }

    /// What a process had of a GPU since the last look, where it says what it had since it began.
    fn compare(&mut self, gpu: Gpu, occupant: Occupant) -> Occupant {
        let OnGpu::Total(total) = occupant.on_gpu else { return occupant };
        let key = (gpu, occupant.pid);
        self.found.insert(key, total);
        let (span, before) = (self.span(), self.totals.get(&key));
        let part = |before: &Nanos| u128::from(total.since(*before).0) * 1_000 / u128::from(span.0.max(1));
        let lately = before.map(|before| OnGpu::Lately(part(before).min(1_000) as u32));
        Occupant { on_gpu: lately.unwrap_or_default(), ..occupant }
    }

    fn end_look(&mut self) {
        self.looked = Some(board::now());
        self.totals = std::mem::take(&mut self.found);
    }
}

/// Asks in a thread of its own.
#[derive(Debug)]
pub struct Surveyor {
    found: Arc<Mutex<Found>>,
    wish: SyncSender<()>,
}

/// What was found, and when.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub survey: Survey,
    pub at: Option<Nanos>,
}

impl Surveyor {
    /// Begins with a first look. `None` where there can be no thread.
    pub fn start(cards: Option<Cards>, folder: PathBuf) -> Option<Surveyor> {
        let found = Arc::new(Mutex::new(Found::default()));
        // One wish is as good as many.
        let (wish, wishes) = sync_channel(1);
        let place = found.clone();
        let run = move || {
            let (library, mut before) = (Library::open(), EarlierTimes::default());
            loop {
                let survey = look(library.as_ref(), cards, &folder, &mut before);
                let news = Found { survey, at: Some(board::now()) };
                *place.lock().unwrap_or_else(PoisonError::into_inner) = news;
                if wishes.recv().is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("ebb-nvml".to_owned()).spawn(run).ok()?;
        Some(Surveyor { found, wish })
    }

    /// What was found last. If that was some time ago it is looked again meanwhile, for the next one who asks.
    pub fn latest(&self) -> Found {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if found.at.is_some_and(|at| board::now().since(at) > FRESH) {
            let _ = self.wish.try_send(());
        }
        found
    }
}

type Device = *mut c_void;
type Status = c_int;

const SUCCESS: Status = 0;
/// Nobody was on the GPU since the moment that was asked about.
const NOT_FOUND: Status = 6;
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

/// What a process did in one of the library's own spans, in percent.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Utilization {
    pid: c_uint,
    /// In microseconds since 1970.
    stamp: u64,
    sm: c_uint,
    memory: c_uint,
    encoder: c_uint,
    decoder: c_uint,
}

/// The functions that are used. The library stays loaded: its threads may not be pulled from under it.
struct Library {
    count: unsafe extern "C" fn(*mut c_uint) -> Status,
    device: unsafe extern "C" fn(c_uint, *mut Device) -> Status,
    uuid: unsafe extern "C" fn(Device, *mut c_char, c_uint) -> Status,
    processes: Option<unsafe extern "C" fn(Device, *mut c_uint, *mut Process) -> Status>,
    utilization: Option<unsafe extern "C" fn(Device, *mut Utilization, *mut c_uint, u64) -> Status>,
    end: Option<unsafe extern "C" fn() -> Status>,
}

/// An open library keeps its GPUs awake.
impl Drop for Library {
    fn drop(&mut self) {
        if let Some(end) = self.end {
            // SAFETY: it was begun, and has no arguments.
            unsafe { end() };
        }
    }
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
            utilization: find(c"nvmlDeviceGetProcessUtilization").map(|symbol| {
                // SAFETY: as above.
                unsafe {
                    std::mem::transmute::<
                        *mut c_void,
                        unsafe extern "C" fn(Device, *mut Utilization, *mut c_uint, u64) -> Status,
                    >(symbol)
                }
            }),
            end: find(c"nvmlShutdown").map(|symbol| {
                // SAFETY: as above.
                unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> Status>(symbol) }
            }),
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

    fn survey(&self, before: &EarlierTimes) -> Survey {
        let mut count = 0;
        // SAFETY: a place for the answer.
        let status = unsafe { (self.count)(&mut count) };
        let count = if status == SUCCESS { count } else { 0 };
        let gpus = (0..count).filter_map(|index| {
            let device = self.device(index)?;
            let gpu = self.uuid(device)?;
            let usage = self.usage(device, before.span());
            Some((gpu, Seen { index: Some(index), processes: self.processes(device, usage.as_ref()) }))
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

    /// Which part of a span that ends now each process was on the GPU, in permille. A process that is missing was not.
    fn usage(&self, device: Device, span: Nanos) -> Option<BTreeMap<u32, u32>> {
        let ask = self.utilization?;
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
        let since = u64::try_from(wall.as_micros()).ok()?.saturating_sub(span.0 / 1_000);
        let mut count = 0;
        // SAFETY: a device that was just given; without room, only how much there is is told.
        match unsafe { ask(device, ptr::null_mut(), &mut count, since) } {
            SUCCESS | INSUFFICIENT_SIZE => {}
            NOT_FOUND => return Some(BTreeMap::new()),
            _ => return None,
        }
        let mut samples = vec![Utilization::default(); (count as usize).min(MOST)];
        count = samples.len() as c_uint;
        // SAFETY: a device that was just given, and room for so many samples.
        match unsafe { ask(device, samples.as_mut_ptr(), &mut count, since) } {
            SUCCESS => samples.truncate(count as usize),
            NOT_FOUND => samples.clear(),
            _ => return None,
        }
        Some(mean_usage(&samples))
    }

    fn processes(&self, device: Device, usage: Option<&BTreeMap<u32, u32>>) -> Option<Vec<Stranger>> {
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
                    return known_here(list.iter().map(|process| process.occupant(usage)));
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

impl Process {
    fn occupant(&self, usage: Option<&BTreeMap<u32, u32>>) -> Occupant {
        // The library says so where it does not know.
        let memory_bytes = Some(self.memory).filter(|memory| *memory != u64::MAX);
        let lately = |usage: &BTreeMap<u32, u32>| OnGpu::Lately(usage.get(&self.pid).copied().unwrap_or(0));
        Occupant { pid: self.pid, memory_bytes, active: None, on_gpu: usage.map(lately).unwrap_or_default() }
    }
}

/// The mean of each process's samples, in permille.
fn mean_usage(samples: &[Utilization]) -> BTreeMap<u32, u32> {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.pid != 0) {
        let (sum, count) = sums.entry(sample.pid).or_default();
        *sum += u64::from(sample.sm.min(100)) * 10;
        *count += 1;
    }
    let mean = |(sum, count): (u64, u64)| u32::try_from(sum / count.max(1)).unwrap_or(1_000);
    sums.into_iter().map(|(pid, sums)| (pid, mean(sums))).collect()
}

/// The processes without MPS's own. Inside a container the library names them as the machine outside does; then nothing can be
/// said, and none of the numbers is anybody's here. Where others are known, such a number is a process that has just ended.
fn known_here(occupants: impl Iterator<Item = Occupant>) -> Option<Vec<Stranger>> {
    let (mut known, mut ended) = (Vec::new(), false);
    for occupant in occupants {
        match occupant.look_up() {
            Some(found) => known.push(found),
            None if is_nobodys(occupant.pid) => ended = true,
            None => return None,
        }
    }
    if ended && known.is_empty() {
        return None;
    }
    // As long as such a name can be.
    known.retain(|one| one.command != "nvidia-cuda-mps");
    Some(known)
}

/// Whether no process has this number. Whose folder in `/proc` is hidden from us has one all the same, and 0 stands for one
/// that somebody hides.
fn is_nobodys(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GPU: Gpu = Gpu([7; 16]);

    #[test]
    fn processes_that_nobody_here_knows_mean_that_nothing_is_known() {
        let on_gpu = OnGpu::Unknown;
        let own = Occupant { pid: std::process::id(), memory_bytes: None, active: None, on_gpu };
        let hidden = Occupant { pid: 0, ..own };
        let ended = || {
            let mut child = std::process::Command::new("true").spawn().unwrap();
            child.wait().unwrap();
            Occupant { pid: child.id(), ..own }
        };
        let pids = |all: &[Occupant]| {
            known_here(all.iter().copied()).map(|all| all.iter().map(|one| one.pid).collect::<Vec<_>>())
        };
        assert_eq!(pids(&[own]), Some(vec![own.pid]));
        assert_eq!(pids(&[own, hidden]), None);
        assert_eq!(pids(&[ended(), ended()]), None, "numbers that are nobody's");
        assert_eq!(pids(&[ended(), own]), Some(vec![own.pid]), "it ended since the list was made");
        assert_eq!(pids(&[]), Some(Vec::new()));
    }

    #[test]
    fn what_a_process_had_lately_is_told_by_two_looks() {
        let mut before = EarlierTimes::default();
        let one = |total| Occupant { pid: 7, memory_bytes: None, active: None, on_gpu: OnGpu::Total(total) };
        assert_eq!(before.compare(GPU, one(Nanos::from_millis(5))).on_gpu, OnGpu::Unknown, "a first look");
        before.end_look();
        before.looked = Some(board::now().since(Nanos::from_millis(1_000)).max(Nanos(1)));
        let OnGpu::Lately(part) = before.compare(GPU, one(Nanos::from_millis(505))).on_gpu else { panic!() };
        assert!((400..=500).contains(&part), "{part}");
    }

    #[test]
    fn a_process_on_two_cards_has_a_part_of_each() {
        let mut before = EarlierTimes::default();
        let one =
            |total| Occupant { pid: 7, memory_bytes: None, active: Some(true), on_gpu: OnGpu::Total(total) };
        let mut look = |idle: u64, busy: u64| {
            before.looked = before.looked.map(|at| at.since(Nanos::from_millis(1_000)).max(Nanos(1)));
            let at = [(GPU, idle), (Gpu([8; 16]), busy)];
            let parts = at.map(|(gpu, total)| before.compare(gpu, one(Nanos::from_millis(total))).on_gpu);
            before.end_look();
            parts
        };
        assert_eq!(look(10_000, 500), [OnGpu::Unknown; 2]);
        let [OnGpu::Lately(idle), OnGpu::Lately(busy)] = look(10_000, 1_000) else { panic!() };
        assert!(idle == 0 && (400..=500).contains(&busy), "{idle} and {busy}");
    }

    /// What an active process had is not known at first, so it may be all of the GPU.
    #[test]
    fn after_a_first_look_at_a_software_gpu_somebody_active_may_fill_it() {
        let on_gpu = OnGpu::Total(Nanos::from_millis(5));
        let own = Occupant { pid: std::process::id(), memory_bytes: None, active: Some(true), on_gpu };
        let mut before = EarlierTimes::default();
        let mut look = || {
            let found = before.compare(GPU, own).look_up().unwrap();
            before.end_look();
            (found.gpu_permille, crate::strangers::seen(Some(&[found])).fill)
        };
        assert_eq!(look(), (None, true));
        assert_eq!(look(), (Some(0), false), "it was there and hardly ever on the GPU");
    }

    #[test]
    fn samples_of_a_process_become_their_mean() {
        let sample = |pid, sm| Utilization { pid, sm, ..Utilization::default() };
        let found = mean_usage(&[sample(7, 10), sample(7, 30), sample(8, 250), sample(0, 50)]);
        assert_eq!(found, BTreeMap::from([(7, 200), (8, 1_000)]));
    }
}
