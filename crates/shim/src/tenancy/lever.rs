//! The switch rung of this process: how fast its work leaves the GPU, and whether it runs at all.
//!
//! With NVIDIA's driver the lever moves the process's own channel groups (`channels`); a software GPU has a function for
//! it. Where neither is known to work there is no lever, and the reason is said.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use board::Why;
use model::Nanos;
use rustix::fs::{Mode, OFlags};
use switch::{Halt, Micros, Scope, Switch, driver};

use crate::channels::OwnFiles;
use crate::log::say;
use crate::{channels, next};

/// What a software GPU exports to control the contexts of the calling process.
type Software = unsafe extern "C" fn(u32, u64, *mut u64) -> c_int;

#[derive(Clone, Copy)]
pub enum Lever {
    /// NVIDIA's driver, of a version with which this was tried.
    Channels,
    Software(Software),
    None(Why),
}

/// Why the lever did not move.
#[derive(Clone, Copy)]
pub struct Refusal {
    pub why: Why,
    /// The driver's or the system's own number.
    pub detail: u32,
}

mod operation {
    pub const SET_TIMESLICE: u32 = 2;
    pub const DISABLE: u32 = 4;
    pub const ENABLE: u32 = 5;
    pub const LOCK_FILE: u32 = 6;
}

impl Lever {
    pub fn find() -> Lever {
        if crate::surroundings::variable(c"EBB_RUNG").is_some_and(|rung| rung == c"hold") {
            return Lever::None(Why::SwitchedOff);
        }
        if let Some(function) = software() {
            return Lever::Software(function);
        }
        match known_driver() {
            Err(why) => Lever::None(why),
            Ok(()) if channels::CAPTURE.groups().next().is_none() => Lever::None(unseen()),
            Ok(()) => Lever::Channels,
        }
    }

    /// How long the work of this process stays on the GPU once somebody else has work; `None`: as the driver made it.
    pub fn slice(self, slice: Option<Nanos>) -> Result<(), Refusal> {
        match self {
            Lever::None(why) => Err(Refusal { why, detail: 0 }),
            Lever::Software(function) => {
                ask(function, operation::SET_TIMESLICE, slice.unwrap_or(policy::slice::DEFAULT).0)
            }
            Lever::Channels => {
                let switch = Switch::new(&channels::CAPTURE, OwnFiles);
                each(channels::CAPTURE.groups().map(|group| match slice {
                    Some(slice) => {
                        originals::remember(&switch, &group)?;
                        switch.set_timeslice(&group, Micros((slice.0 / 1_000).max(1)))
                    }
                    None => originals::of(&group).map_or(Ok(()), |slice| switch.set_timeslice(&group, slice)),
                }))
            }
        }
    }

    /// Takes everything of this process off the GPU, in the middle of whatever runs, and keeps it off.
    pub fn stop(self) -> Result<(), Refusal> {
        match self {
            Lever::None(why) => Err(Refusal { why, detail: 0 }),
            Lever::Software(function) => ask(function, operation::DISABLE, 0),
            Lever::Channels => {
                let switch = Switch::new(&channels::CAPTURE, OwnFiles);
                each([switch.disable(Scope::Process, Halt::Preempt)].into_iter())
            }
        }
    }

    /// Lets it go on where it was.
    pub fn resume(self) -> Result<(), Refusal> {
        match self {
            Lever::None(why) => Err(Refusal { why, detail: 0 }),
            Lever::Software(function) => ask(function, operation::ENABLE, 0),
            Lever::Channels => {
                let switch = Switch::new(&channels::CAPTURE, OwnFiles);
                each([switch.enable(Scope::Process)].into_iter())
            }
        }
    }
}

/// The control function of a software GPU, where the driver is one.
fn software() -> Option<Software> {
    static SOFTWARE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let mut function = SOFTWARE.load(Ordering::Relaxed);
    if function.is_null() {
        function = next::foreign(c"ebb_softgpu_control");
        SOFTWARE.store(function, Ordering::Relaxed);
    }
    // SAFETY: a driver that exports this name is a software GPU of ours, and this is its signature.
    (!function.is_null()).then(|| unsafe { std::mem::transmute::<*mut c_void, Software>(function) })
}

/// A new descriptor of one of the files on which tenants of a software GPU meet (`gpu_lock`).
pub fn software_lock_file(which: u64) -> Option<c_int> {
    software_file(operation::LOCK_FILE, which)
}

/// A new descriptor of a file of a software GPU, where the driver is one and has such a file.
pub fn software_file(operation: u32, which: u64) -> Option<c_int> {
    let mut answer = 0;
    // SAFETY: the function may be called at any time; there is a place for the answer.
    let asked = unsafe { software()?(operation, which, &mut answer) };
    (asked == 0).then(|| c_int::try_from(answer).ok()).flatten()
}

/// The slices that the driver gave to groups, before they were changed: groups for computing and for copying differ.
mod originals {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Micros, OwnFiles, Switch};

    /// A process has four groups for each context.
    const ROOM: usize = 64;
    /// Which group, and its slice; a group is named by its client and its handle, of which neither is ever zero.
    static GROUPS: [(AtomicU64, AtomicU64); ROOM] = [const { (AtomicU64::new(0), AtomicU64::new(0)) }; ROOM];

    fn name(group: &switch::Group) -> u64 {
        u64::from(group.object().client()) << 32 | u64::from(group.object().handle())
    }

    /// Only keepers come here, and of a process on several GPUs two may write down the same: it is the same.
    pub fn remember(switch: &Switch<'_, OwnFiles>, group: &switch::Group) -> Result<(), switch::Error> {
        let name = name(group);
        let known = |place: &&(AtomicU64, AtomicU64)| [0, name].contains(&place.0.load(Ordering::Acquire));
        let Some(place) = GROUPS.iter().find(known).filter(|place| place.0.load(Ordering::Acquire) == 0)
        else {
            return Ok(());
        };
        place.1.store(switch.timeslice(group)?.0, Ordering::Relaxed);
        place.0.store(name, Ordering::Release);
        Ok(())
    }

    pub fn of(group: &switch::Group) -> Option<Micros> {
        let name = name(group);
        let place = GROUPS.iter().find(|place| place.0.load(Ordering::Acquire) == name)?;
        Some(Micros(place.1.load(Ordering::Relaxed)))
    }
}

/// Whether the kernel's driver is one with which channel groups were tried.
fn known_driver() -> Result<(), Why> {
    let mut text = [0; 512];
    let path = c"/proc/driver/nvidia/version";
    let read = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .and_then(|file| rustix::io::read(file, &mut text[..]));
    match driver::judge(&text[..read.unwrap_or(0)]) {
        Ok(_) => Ok(()),
        Err(unknown) => {
            say!("{unknown}");
            Err(Why::UnknownDriver)
        }
    }
}

/// Why there is a context but no group of its own.
fn unseen() -> Why {
    let named = crate::surroundings::variable(c"CUDA_MPS_PIPE_DIRECTORY").is_some();
    let served = named || rustix::fs::access(c"/tmp/nvidia-mps/control", rustix::fs::Access::EXISTS).is_ok();
    if served { Why::Mps } else { Why::NotPreloaded }
}

fn ask(function: Software, operation: u32, value: u64) -> Result<(), Refusal> {
    let mut answer = 0;
    // SAFETY: the function may be called at any time; there is a place for the answer.
    match unsafe { function(operation, value, &mut answer) } {
        0 => Ok(()),
        error => Err(Refusal { why: Why::Refused, detail: error.unsigned_abs() }),
    }
}

/// All of them are tried; the first refusal is what is said. An object that went away meanwhile is no refusal.
fn each<T>(results: impl Iterator<Item = Result<T, switch::Error>>) -> Result<(), Refusal> {
    let mut first = Ok(());
    for result in results {
        let Err(error) = result else { continue };
        if matches!(error, switch::Error::Gone(_)) {
            continue;
        }
        say!("{error}");
        let detail = match error {
            switch::Error::Refused { status, .. } => status.0,
            _ => 0,
        };
        first = first.and(Err(Refusal { why: Why::Refused, detail }));
    }
    first
}
