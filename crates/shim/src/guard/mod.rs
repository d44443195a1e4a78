//! The guard: stopping this process's kernels between their blocks, and letting them go on.
//!
//! A best-effort tenant in the shared domain launches twins (`twins`) whose blocks look, before they begin, at a word in
//! device memory. While it is raised no block begins; those that began finish. What the program sees of that is time, and
//! nothing else: launches that were cut are completed before anything that comes behind them, in the same stream or in one
//! that waits for it, and before any question about them is answered.
//!
//! * `mode`: whether launches are guarded just now
//! * `launch`: the launch of a twin; `record` keeps what is needed to make it again, in `words`; `marks` which blocks have
//!   run; `overlap`: whether it may begin while the one before it ends
//! * `lane`: a stream, its launches and its gates; `order`: which calls need a gate before them
//! * `copies`: calls that wait inside the driver, and must not wait there for a cut launch
//! * `alone`: calls for which the driver may bring the GPU to rest, and which must therefore not meet a cut launch
//! * `queues`: how many lanes there may be; `set`: some of them
//! * `site`: the context of the lanes; `control`: the words by which host and GPU speak
//! * `resume`: the steward, who stops and resumes; `job`: launches made again; `watchdog`: blocks that do not leave
//! * `siding`: some of the SMs, for what may not run otherwise
//! * `storm`: stops at random moments, for tests; `extent`: how much of a launch ran before it was cut
//! * `verify`: twins held against their originals
//! * `driver`: calls of the driver on our own account

mod alone;
pub mod certificate;
mod control;
mod copies;
pub mod driver;
mod extent;
mod job;
mod lane;
pub mod launch;
mod marks;
mod mode;
mod order;
mod overlap;
mod pace;
mod queues;
mod record;
mod resume;
mod set;
mod siding;
mod site;
mod storm;
mod verify;
mod watchdog;
mod words;

use cuda_abi::{CUcontext, CUdevice, CUstream};

use crate::twins::sample;

pub use alone::before as before_rest;
pub use alone::{Called, Uses, alone, kernel_in, rest};
pub use copies::{before as before_copy, copies, told_in};
pub use mode::Mode;
pub use mode::is_on as may_be_wanted;
pub use mode::set as set_mode;
pub use order::{before, could_hold, hold, stream_in, touch};
pub use resume::{Counts, Steward, Wish, let_go};
pub use siding::want as want_sms;
pub use verify::{disturbs_trials, pass};

/// A stream is about to be destroyed. It was waited for.
pub fn stream_ends(stream: CUstream) {
    if site::any()
        && let Some(lane) = lane::Lane::of(lane::key(stream, false), &driver::Here::new())
    {
        lane.forget();
    }
}

/// A context is about to be destroyed. Everything in it was waited for.
pub fn context_ends(context: CUcontext) {
    sample::context_ends(Some(context.expose_provenance()));
    if site::any() {
        site::close(|site| site.context() == context.expose_provenance());
    }
}

/// A device's own context may be about to end.
pub fn context_of_device_ends(device: CUdevice) {
    sample::context_ends(None);
    if site::any() {
        site::close(|site| site.device() == device);
    }
}

/// The first site of a device: its number, and the handle by which others open the memory that begins with its stop word.
pub fn stop_word(device: CUdevice) -> Option<StopWord> {
    let site = site::all().find(|site| site.device() == device)?;
    Some(StopWord { generation: site.generation(), site })
}

/// Whether the steward has stopped what runs on a device.
pub fn is_stopped(device: CUdevice) -> bool {
    site::all().any(|site| site.device() == device && site.is_stopped())
}

/// Whether there are SMs on which what is stopped can go on.
pub fn has_siding(device: CUdevice) -> bool {
    site::all().any(|site| site.device() == device && site.siding.is_there())
}

/// A stop word that can be published.
pub struct StopWord {
    /// Another one for every context.
    pub generation: u32,
    site: &'static site::Site,
}

impl StopWord {
    pub fn handle(&self) -> Option<[u8; 64]> {
        let _held = self.site.hold()?;
        driver::within(self.site.context(), || self.site.control.handle())
    }
}

/// In the child of a fork.
pub fn in_child() {
    site::in_child();
    lane::in_child();
    mode::in_child();
    storm::in_child();
    verify::in_child();
    alone::in_child();
}
