//! What must find guarded launches whole.
//!
//! A launch that was cut has not done what the program thinks is done or under way. So whatever the program hands to a
//! stream behind guarded launches, and whatever it asks or waits for, has a gate before it. Which calls these are is told
//! by their names and by the types of their arguments: a call that takes a stream touches it, unless it is known only to
//! ask about it.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe};

use cuda_abi::CUstream;

use super::driver::Here;
use super::lane::{self, Lane};
use super::{launch, mode, site};
use crate::tenancy::key::Key;
use crate::watch;

/// What a call touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// The streams among its arguments, if there are any: they are given something to do.
    Work,
    /// The same streams, but they are only waited for, or asked whether they are done.
    Streams,
    /// Nothing, though there may be a stream among its arguments: it asks about it, or about a capture.
    Nothing,
    /// The default stream, and it returns when that is done.
    AtOnce,
    /// The default stream.
    Default,
    /// Every stream.
    Everything,
    /// What it ends may be in use by any stream: it waits until all of them are whole.
    Ends,
    /// The same for the streams among its arguments.
    EndsStreams,
}

/// Questions, and calls about captures, into which no guarded launch goes. Names begin so.
const ASK: &[&str] = &[
    "cuStreamGet",
    "cuStreamIsCapturing",
    "cuStreamSetAttribute",
    "cuStreamCopyAttributes",
    "cuStreamEndCapture",
    "cuStreamUpdateCaptureDependencies",
    // They see to it themselves.
    "cuLaunchKernel",
];

/// Nothing comes into the stream by these. Names begin so.
const WAIT: &[&str] = &["cuStreamQuery", "cuStreamSynchronize"];

/// Work for streams that are not named, or are named out of our sight; and a capture, which nothing may disturb once it
/// has begun.
const EVERYTHING: &[&str] = &[
    "cuCtxSynchronize",
    "cuCtxRecordEvent",
    "cuCtxWaitEvent",
    "cuGreenCtxRecordEvent",
    "cuGreenCtxWaitEvent",
    "cuEGLStream",
    "cuGLMapBufferObject",
    "cuGLUnmapBufferObject",
    "cuLaunchCooperativeKernelMultiDevice",
    "cuStreamBeginCapture",
    "cuStreamBeginRecapture",
];

/// Calls that give back what kernels may be using. The driver waits for all work before most of them, holding locks that
/// whoever resumes needs.
const END: &[&str] = &[
    "cuMemFree",
    "cuMemHostUnregister",
    "cuMemUnmap",
    "cuMemPoolDestroy",
    "cuArrayDestroy",
    "cuMipmappedArrayDestroy",
    "cuIpcCloseMemHandle",
    "cuDestroyExternalMemory",
    "cuGraphicsUnregisterResource",
    "cuModuleUnload",
    "cuLibraryUnload",
    "cuCtxDestroy",
    "cuCtxDetach",
    "cuCtxSetLimit",
    "cuGreenCtxDestroy",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxReset",
];

/// What the function of that name touches.
pub const fn touch(name: &str) -> Touch {
    if begins_one(name, &["cuStreamDestroy"]) {
        return Touch::EndsStreams;
    }
    if begins_one(name, EVERYTHING) {
        return Touch::Everything;
    }
    if begins_one(name, ASK) {
        return Touch::Nothing;
    }
    // What is asynchronous names its stream.
    if contains(name, "Async") {
        return Touch::Work;
    }
    if begins_one(name, END) {
        return Touch::Ends;
    }
    if begins_one(name, &["cuMemcpy"]) {
        return Touch::AtOnce;
    }
    if begins_one(name, &["cuMemset"]) || is(name, "cuLaunch") || is(name, "cuLaunchGrid") {
        return Touch::Default;
    }
    if begins_one(name, WAIT) { Touch::Streams } else { Touch::Work }
}

pub const fn begins_one(name: &str, beginnings: &[&str]) -> bool {
    let mut index = 0;
    while index < beginnings.len() {
        if begins(name.as_bytes(), 0, beginnings[index].as_bytes()) {
            return true;
        }
        index += 1;
    }
    false
}

const fn begins(name: &[u8], from: usize, beginning: &[u8]) -> bool {
    let mut index = 0;
    while index < beginning.len() {
        if from + index >= name.len() || name[from + index] != beginning[index] {
            return false;
        }
        index += 1;
    }
    true
}

pub const fn contains(name: &str, part: &str) -> bool {
    let mut from = 0;
    while from < name.len() {
        if begins(name.as_bytes(), from, part.as_bytes()) {
            return true;
        }
        from += 1;
    }
    false
}

const fn is(name: &str, other: &str) -> bool {
    name.len() == other.len() && begins(name.as_bytes(), 0, other.as_bytes())
}

/// The stream that an argument is, if it is one. The type decides, so nothing is left of this when the call is compiled.
#[inline(always)]
pub fn stream_in<T: Any>(argument: &T) -> Option<CUstream> {
    (argument as &dyn Any).downcast_ref::<CUstream>().copied()
}

/// A call is about to be made: sees to it that what it touches is found whole, and that there is room for it in its stream. Costs a load
/// while nothing is guarded.
#[inline(always)]
pub fn before<const N: usize>(touch: Touch, per_thread: bool, streams: [Option<CUstream>; N]) {
    let gates_suffice = matches!(touch, Touch::Streams | Touch::Everything);
    let concerned = match touch {
        Touch::Nothing => false,
        Touch::Work | Touch::Streams | Touch::EndsStreams => streams.iter().any(Option::is_some),
        Touch::Default | Touch::Everything | Touch::AtOnce | Touch::Ends => true,
    };
    if concerned && if gates_suffice { lane::any_ungated() } else { site::any() } {
        see_to(touch, per_thread, &streams);
    }
}

#[cold]
fn see_to(touch: Touch, per_thread: bool, streams: &[Option<CUstream>]) {
    let streams = || streams.iter().copied().flatten();
    // Needed also when hooks are off already: something may still be cut.
    let done = panic::catch_unwind(AssertUnwindSafe(|| match touch {
        Touch::Nothing => {}
        Touch::Work => streams().for_each(|stream| before_work(stream, per_thread)),
        Touch::Streams => streams().for_each(|stream| {
            before_stream(stream, per_thread);
        }),
        Touch::Default => before_work(std::ptr::null_mut(), per_thread),
        Touch::Everything => gate_all(),
        Touch::AtOnce => wait_for_default(per_thread),
        Touch::Ends => wait_for_all(),
        Touch::EndsStreams => streams().for_each(|stream| wait_for_stream(stream, per_thread)),
    }));
    if done.is_err() {
        mode::end();
    }
}

/// Has the stream of a call, if it is the only one, hold what comes next until nobody stops this process. `false`: it cannot, and who
/// calls has to wait himself.
pub fn hold<const N: usize>(per_thread: bool, streams: [Option<CUstream>; N]) -> bool {
    let here = Here::new();
    lane_to_hold(per_thread, streams, &here).is_some_and(|(lane, key)| lane.hold(key, &here))
}

/// Whether a stream could hold it once this process is stopped. Many calls name no stream, and for those nothing need be stopped.
pub fn could_hold<const N: usize>(per_thread: bool, streams: [Option<CUstream>; N]) -> bool {
    lane_to_hold(per_thread, streams, &Here::new()).is_some()
}

fn lane_to_hold<const N: usize>(
    per_thread: bool,
    streams: [Option<CUstream>; N],
    here: &Here,
) -> Option<(Lane, Key)> {
    let mut streams = streams.into_iter().flatten();
    let (Some(stream), None) = (streams.next(), streams.next()) else { return None };
    let key = lane::key(stream, per_thread);
    let watch = watch::of_this_process()?;
    if launch::is_captured(watch, key.handle(), key.is_legacy()) {
        return None;
    }
    Some((Lane::of(key, here)?, key))
}

/// Puts gates behind all launches that what comes next in a stream must wait for. The stream's lane, if it has one.
fn before_stream(stream: CUstream, per_thread: bool) -> Option<Lane> {
    let key = lane::key(stream, per_thread);
    let lane = Lane::of(key, &Here::new());
    match lane {
        Some(lane) => {
            lane.gate();
            gate_others(lane);
        }
        // A stream without guarded launches may wait for streams that have some.
        None => lanes().filter(|other| other.kind() != lane::Kind::NonBlocking).for_each(Lane::gate),
    }
    lane
}

/// The same, and finds room for what comes: the driver must not wait for it, holding locks that whoever resumes needs.
fn before_work(stream: CUstream, per_thread: bool) {
    let Some(lane) = before_stream(stream, per_thread) else { return };
    let key = lane.key();
    // What is captured does not come into the stream.
    let is_captured = |watch| launch::is_captured(watch, key.handle(), key.is_legacy());
    if !watch::of_this_process().is_some_and(is_captured) {
        lane.make_room();
        lane.count();
    }
}

/// Those that the driver itself orders before what comes next in this lane.
#[inline]
pub fn gate_others(lane: Lane) {
    if lane.kind() == lane::Kind::NonBlocking {
        return;
    }
    // Mostly there are none.
    for number in lane.site.ungated.but(lane.number()) {
        let other = Lane::at(lane.site, number);
        if lane.kind().waits_for(other.kind()) {
            other.gate();
        }
    }
}

pub fn lanes() -> impl Iterator<Item = Lane> {
    site::all().flat_map(|site| site.lanes())
}

pub fn gate_all() {
    lanes().for_each(Lane::gate);
}

fn wait_for_all() {
    gate_all();
    lanes().for_each(|lane| lane.wait_for(lane.gates()));
}

fn wait_for_stream(stream: CUstream, per_thread: bool) {
    if let Some(lane) = Lane::of(lane::key(stream, per_thread), &Here::new()) {
        lane.gate();
        lane.wait_for(lane.gates());
    }
}

/// The driver may hold locks while it waits, and whoever resumes needs the driver; so the wait is made here.
fn wait_for_default(per_thread: bool) {
    let stream = std::ptr::null_mut();
    before_work(stream, per_thread);
    let kind = if per_thread { lane::Kind::OfThread } else { lane::Kind::Legacy };
    let key = lane::key(stream, per_thread);
    lanes().filter(|lane| lane.key() == key || kind.waits_for(lane.kind())).for_each(|lane| {
        lane.wait_for(lane.gates());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_abi::Function;

    #[test]
    fn what_names_no_stream_or_several_cannot_wait_in_one() {
        let stream = Some(std::ptr::null_mut());
        assert!(!could_hold(false, []));
        assert!(!could_hold(false, [None, None]));
        assert!(!could_hold(false, [stream, stream]));
    }

    /// Every function, with the types of its arguments.
    fn functions() -> Vec<(&'static str, Vec<&'static str>)> {
        macro_rules! list {
            ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
                vec![$((stringify!($name), vec![$(stringify!($type)),*])),*]
            };
        }
        cuda_abi::for_each_function!(list)
    }

    fn takes(types: &[&str], ending: &str) -> bool {
        types.iter().any(|text| text.replace(' ', "").ends_with(ending))
    }

    #[test]
    fn every_function_that_takes_a_stream_touches_it_or_is_known_only_to_ask() {
        for (name, types) in functions() {
            if takes(&types, "::CUstream") && !takes(&types, "*mut$crate::CUstream") {
                let asks = touch(name) == Touch::Nothing;
                assert_eq!(asks, begins_one(name, ASK), "{name}");
            }
        }
        assert_eq!(touch("cuStreamQuery_ptsz"), Touch::Streams);
        assert_eq!(touch("cuMemPrefetchBatchAsync"), Touch::Work);
        assert_eq!(touch("cuStreamWaitValue32_v2"), Touch::Work);
        assert_eq!(touch("cuEventRecord_ptsz"), Touch::Work);
        assert_eq!(touch("cuGraphLaunch_ptsz"), Touch::Work);
    }

    #[test]
    fn streams_behind_pointers_are_new_or_touched_with_all_others() {
        let new = ["cuStreamCreate", "cuStreamCreateWithPriority", "cuGreenCtxStreamCreate"];
        for (name, types) in functions() {
            if types
                .iter()
                .any(|text| text.contains("CUstream") && text.contains("*mut") && text.ends_with("CUstream"))
            {
                assert!(touch(name) == Touch::Everything || new.contains(&name), "{name}");
            }
        }
    }

    #[test]
    fn launches_whose_streams_lie_in_structures_are_seen_to() {
        let structures = ["CUlaunchConfig", "CUDA_LAUNCH_PARAMS"];
        for (name, types) in functions() {
            if types.iter().any(|text| structures.iter().any(|name| text.ends_with(name)))
                && name.starts_with("cuLaunch")
            {
                assert!(matches!(touch(name), Touch::Nothing | Touch::Everything), "{name}");
            }
        }
    }

    #[test]
    fn copies_and_fills_without_a_stream_are_of_the_default_stream() {
        assert_eq!(touch("cuMemcpyDtoH_v2_ptds"), Touch::AtOnce);
        assert_eq!(touch("cuMemcpy2D_v2"), Touch::AtOnce);
        assert_eq!(touch("cuMemsetD32_v2"), Touch::Default);
        assert_eq!(touch("cuMemsetD32Async"), Touch::Work);
        for (name, types) in functions() {
            let work = ["cuMemcpy", "cuMemset"].iter().any(|begin| name.starts_with(begin));
            if work && !takes(&types, "::CUstream") {
                assert!(matches!(touch(name), Touch::AtOnce | Touch::Default), "{name}");
            }
        }
    }

    #[test]
    fn what_ends_something_waits() {
        for name in ["cuMemFree_v2", "cuMemFreeHost", "cuModuleUnload", "cuLibraryUnload", "cuCtxDestroy_v2"]
        {
            assert_eq!(touch(name), Touch::Ends);
        }
        assert_eq!(touch("cuMemFreeAsync_ptsz"), Touch::Work);
        assert_eq!(touch("cuStreamDestroy_v2"), Touch::EndsStreams);
    }

    #[test]
    fn the_lists_name_functions_that_exist() {
        for beginning in ASK.iter().chain(WAIT).chain(EVERYTHING).chain(END) {
            assert!(functions().iter().any(|(name, _)| name.starts_with(beginning)), "{beginning}");
        }
        assert!(Function::named("cuLaunchGrid").is_some());
    }
}
