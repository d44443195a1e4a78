//! Copies from and to memory that is not pinned.
//!
//! They are called asynchronous, and where the driver knows the host's memory they are. Where it does not, it waits inside the call until the
//! copy is done, or until there is room for what is to be copied; and while it does, it keeps a lock that every other copy needs.
//! The steward's copies too: if the stream stands behind a launch that was cut, the one who could resume it waits for the one who waits
//! for it. (Seen on an H200: `tensor.cpu()` behind a cut launch never came back.) So before such a call everything that it would wait for in
//! there is waited for out here, where nobody needs anything of ours.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_abi::{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CUDA_SUCCESS, CUstream};
use model::Nanos;

use super::lane::{self, Lane};
use super::order::{self, begins_one, contains};
use super::{launch, mode, site};
use crate::{next, watch};

/// How a call copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// Not at all, not in a stream, or not from or to the host.
    Never,
    ToHost,
    FromHost,
    /// From and to anywhere; the first address is where to.
    Anywhere,
    /// From and to places that are written somewhere else.
    Unseen,
    /// Not at all, but it has a stream wait for what others do.
    Orders,
}

/// Whether the program has ever had a stream wait for another. Most have not, and theirs need not be waited for.
static ORDERED: AtomicBool = AtomicBool::new(false);

/// What an argument of a copy says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Host(u64),
    Address(u64),
    Bytes(u64),
    Nothing,
}

/// So many bytes the driver takes into its queue as they are, and waits for nobody.
const FEW: u64 = 64 << 10;
/// What runs and is not cut may be waiting for the program itself, which is waiting here.
const AT_MOST: Nanos = Nanos::from_millis(1_000);

/// How the function of that name copies.
pub const fn copies(name: &str) -> Copies {
    const NEVER: &[&str] =
        &["cuMemcpyDtoD", "cuMemcpyDtoA", "cuMemcpyAtoD", "cuMemcpyAtoA", "cuMemcpyPeer", "cuMemcpy3DPeer"];
    const ORDERS: &[&str] = &["cuStreamWait", "cuCtxWaitEvent", "cuGreenCtxWaitEvent", "cuStreamBatchMemOp"];
    if begins_one(name, ORDERS) {
        Copies::Orders
    } else if !begins_one(name, &["cuMemcpy"]) || !contains(name, "Async") || begins_one(name, NEVER) {
        Copies::Never
    } else if contains(name, "toH") {
        Copies::ToHost
    } else if contains(name, "Hto") {
        Copies::FromHost
    } else if begins_one(name, &["cuMemcpyAsync", "cuMemcpyWithAttributes"]) {
        Copies::Anywhere
    } else {
        Copies::Unseen
    }
}

/// What an argument says. The type decides, so nothing is left of this when the call is compiled.
#[inline(always)]
pub fn told_in<T: Any>(argument: &T) -> Told {
    let argument = argument as &dyn Any;
    if let Some(host) = argument.downcast_ref::<*mut c_void>() {
        return Told::Host(host.addr() as u64);
    }
    if let Some(host) = argument.downcast_ref::<*const c_void>() {
        return Told::Host(host.addr() as u64);
    }
    if let Some(address) = argument.downcast_ref::<u64>() {
        return Told::Address(*address);
    }
    argument.downcast_ref::<usize>().map_or(Told::Nothing, |bytes| Told::Bytes(*bytes as u64))
}

/// A call is about to be made. One load while nothing was ever guarded, and none for calls that copy nothing.
#[inline(always)]
pub fn before<const N: usize>(
    copies: Copies,
    per_thread: bool,
    streams: [Option<CUstream>; N],
    told: [Told; N],
) {
    if copies != Copies::Never && site::any() {
        see_to(copies, per_thread, streams.into_iter().flatten().next(), &told);
    }
}

#[cold]
fn see_to(copies: Copies, per_thread: bool, stream: Option<CUstream>, told: &[Told]) {
    if copies == Copies::Orders {
        return ORDERED.store(true, Ordering::Relaxed);
    }
    let Some(stream) = stream else { return };
    // Needed also when hooks are off already: something may still be cut.
    let done = panic::catch_unwind(AssertUnwindSafe(|| {
        if any_under_way() && waits(copies, told) && !is_captured(stream, per_thread) {
            wait(stream, per_thread);
        }
    }));
    if done.is_err() {
        mode::end();
    }
}

fn any_under_way() -> bool {
    lane::any_ungated() || order::lanes().any(|lane| !lane.has_passed(lane.gates()))
}

/// Whether the driver would wait.
fn waits(copies: Copies, told: &[Told]) -> bool {
    let host = || told.iter().find_map(|told| if let Told::Host(host) = told { Some(*host) } else { None });
    let bytes =
        || told.iter().rev().find_map(|told| if let Told::Bytes(bytes) = told { Some(*bytes) } else { None });
    let is_much = || bytes().is_none_or(|bytes| bytes > FEW);
    match copies {
        Copies::Never | Copies::Orders => false,
        Copies::ToHost => host().is_none_or(is_pageable),
        Copies::FromHost => is_much() && host().is_none_or(is_pageable),
        Copies::Anywhere => {
            let mut places = told
                .iter()
                .filter_map(|told| if let Told::Address(place) = told { Some(*place) } else { None });
            places.next().is_none_or(is_pageable) || is_much() && places.next().is_none_or(is_pageable)
        }
        Copies::Unseen => true,
    }
}

/// Whether an address is of host memory that the driver does not know.
fn is_pageable(address: u64) -> bool {
    let mut kind = 0_u32;
    let (place, attribute) = (&raw mut kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
    // SAFETY: a place for the answer, which is a number of that size.
    let result = unsafe { next::call::cuPointerGetAttribute(place.cast(), attribute, address) };
    result != CUDA_SUCCESS || kind == 0
}

fn is_captured(stream: CUstream, per_thread: bool) -> bool {
    let key = lane::key(stream, per_thread);
    watch::of_this_process().is_some_and(|watch| launch::is_captured(watch, key.handle(), key.is_legacy()))
}

/// Waits for what comes before in the stream, as long as it takes: so would the driver. What other streams have may be waited for by this
/// one, where the program has ever used events so; they are waited for while that cannot be the program's own fault.
fn wait(stream: CUstream, per_thread: bool) {
    order::gate_all();
    let key = lane::key(stream, per_thread);
    let kind = order::lanes().find(|lane| lane.key() == key).map(Lane::kind);
    let before = |lane: &Lane| lane.key() == key || kind.is_some_and(|kind| kind.waits_for(lane.kind()));
    order::lanes().filter(before).for_each(|lane| lane.wait_for(lane.gates()));
    if !ORDERED.load(Ordering::Relaxed) {
        return;
    }
    let mut patience = AT_MOST;
    order::lanes().for_each(|lane| lane.wait_for_rest(lane.gates(), &mut patience));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_known_of_every_copy_in_a_stream_where_its_places_are_told() {
        let is = |name| copies(name);
        assert_eq!([is("cuMemcpyDtoHAsync_v2"), is("cuMemcpyAtoHAsync_v2_ptsz")], [Copies::ToHost; 2]);
        assert_eq!([is("cuMemcpyHtoDAsync_v2_ptsz"), is("cuMemcpyHtoAAsync")], [Copies::FromHost; 2]);
        assert_eq!([is("cuMemcpyAsync_ptsz"), is("cuMemcpyWithAttributesAsync")], [Copies::Anywhere; 2]);
        assert_eq!([is("cuMemcpy2DAsync_v2"), is("cuMemcpyBatchAsync_v2")], [Copies::Unseen; 2]);
        assert_eq!([is("cuStreamWaitEvent_ptsz"), is("cuStreamWaitValue32_v2")], [Copies::Orders; 2]);
        for name in [
            "cuMemcpyDtoDAsync_v2",
            "cuMemcpyPeerAsync",
            "cuMemcpy3DPeerAsync_ptsz",
            "cuMemcpyDtoH_v2",
            "cuMemsetD8Async",
        ] {
            assert_eq!(is(name), Copies::Never, "{name}");
        }
    }

    #[test]
    fn arguments_are_told_apart_by_their_types() {
        let (mut byte, address) = (0_u8, 7_u64);
        let place: *mut c_void = (&raw mut byte).cast();
        assert_eq!(told_in(&place), Told::Host(place.addr() as u64));
        assert_eq!(told_in(&place.cast_const()), Told::Host(place.addr() as u64));
        assert_eq!(
            [told_in(&address), told_in(&8_usize), told_in(&9_u32)],
            [Told::Address(7), Told::Bytes(8), Told::Nothing]
        );
    }
}
