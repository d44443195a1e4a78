//! Memory: how much of each GPU this process has, and how much it may have.
//!
//! Everything that a program allocates on a device is counted when it is allocated and counted off when it is freed. Where
//! there is a limit, an allocation that would go beyond it is answered with "out of memory" before the driver is asked,
//! and the program's questions about memory are answered as if the limit were the card: what a framework sizes its caches
//! by is then its own share, whoever else is there.
//!
//! The processes of a tenant have one limit together. Each says on the board what it has; without a daemon each stands for
//! itself.
//!
//! Counted is what the program asked for: linear, pitched and managed memory, arrays, physical memory for mapping, and
//! what is allocated from pools. Not counted is what is not the program's doing or not on the card: the context itself and
//! its code, memory that graphs own, what a pool keeps back after a free, memory of the host, memory of other processes.
//!
//! * `calls`: the functions of the driver that allocate and free
//! * `view`: those that say how much there is; `management`: the same for NVML, by the names that GPUs have there
//! * `physical`: memory that is made, mapped, unmapped and released, and lives until the last of these
//! * `shape`: how large something is before the driver has laid it out
//! * `account`: what is used of each device, against its limit; `limit`: what the environment says of that
//! * `holdings`, `table`: what is held, by pointer or handle, so that a free knows how much it gives back
//!
//! What fails here fails open: the call goes to the driver, uncounted.

mod account;
pub mod calls;
mod holdings;
mod limit;
pub mod management;
mod physical;
pub mod shape;
mod table;
pub mod view;

use cuda_abi::{CUDA_SUCCESS, CUcontext, CUdevice};
use model::Bytes;

use crate::entry;
use crate::next;
use crate::watch::{self, Watch};

/// Memory of more GPUs than this in one process is not counted.
const MOST: usize = 16;

/// Where an allocation belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Home {
    device: usize,
    /// The context that it dies with; nought if with none.
    context: u64,
}

impl Home {
    /// The context that is current, and its device; `None` too where nothing is watched, and the driver is not to be asked.
    fn here() -> Option<Home> {
        watch::of_this_process()?;
        let (mut context, mut device) = (std::ptr::null_mut(), 0);
        // SAFETY: a place for the answer.
        let asked = unsafe { next::call::cuCtxGetCurrent(&mut context) };
        if asked != CUDA_SUCCESS || context.is_null() {
            return None;
        }
        // SAFETY: a place for the answer, which there is because there is a context.
        let asked = unsafe { next::call::cuCtxGetDevice(&mut device) };
        let home = Home { context: context.addr() as u64, ..Home::on(device)? };
        (asked == CUDA_SUCCESS).then_some(home)
    }

    /// The device that is current. What is allocated there outlives the context.
    fn on_device_here() -> Option<Home> {
        Home::here().map(|home| Home { context: 0, ..home })
    }

    fn on(device: CUdevice) -> Option<Home> {
        let device = usize::try_from(device).ok().filter(|device| *device < MOST)?;
        Some(Home { device, context: 0 })
    }
}

/// Does something about a call, unless hooks are off; a panic ends here, and hooks with it.
fn quietly<T>(name: &'static str, work: impl FnOnce(&'static Watch) -> T) -> Option<T> {
    let watch = watch::of_this_process()?;
    let mut answer = None;
    entry::guarded(watch, name, || answer = Some(work(watch)));
    answer
}

/// What the environment allows of a device.
pub fn asked(device: CUdevice) -> Option<Bytes> {
    let watch = watch::of_this_process()?;
    account::of(Home::on(device)?.device).asked(watch)
}

/// The process has a new seat at a device, where nobody knows yet what it has.
pub fn seated(device: CUdevice) {
    if let Some(home) = Home::on(device) {
        account::of(home.device).publish();
    }
}

/// A context has been destroyed, and what was allocated in it with it.
pub fn context_ended(context: CUcontext) {
    holdings::lose_context(context.addr() as u64);
}

/// The primary context of a device was retained, and is this one.
pub fn primary_retained(device: CUdevice, context: CUcontext) {
    if let Some(home) = Home::on(device) {
        account::of(home.device).set_primary(context.addr() as u64);
    }
}

/// The primary context of a device was released; that may have been the end of it.
pub fn primary_released(device: CUdevice) {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: places for the answers, and a device that the driver has just dealt with.
    let asked = unsafe { next::call::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) };
    if asked == CUDA_SUCCESS && active == 0 {
        primary_ended(device);
    }
}

pub fn primary_ended(device: CUdevice) {
    let Some(home) = Home::on(device) else { return };
    match account::of(home.device).primary() {
        0 => {}
        context => holdings::lose_context(context),
    }
}

/// In the child of a fork, which has none of it.
pub fn in_child() {
    holdings::in_child();
    account::in_child();
}
