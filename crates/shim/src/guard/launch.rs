//! A guarded launch.
//!
//! The twin is launched in place of the kernel that the program names, with the same grid and the same parameters, and the
//! control words behind them. What stands in the way of that (no twin yet, a capture, an attribute that we do not carry
//! over) makes the launch an ordinary one: it waits at the gate of the post, and finds what was guarded before it whole.

#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::{c_uint, c_void};
use std::sync::atomic::Ordering;

use cuda_abi::{
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CU_LAUNCH_PARAM_BUFFER_POINTER,
    CU_LAUNCH_PARAM_BUFFER_SIZE, CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS, CUfunction,
    CUlaunchAttributeID, CUlaunchConfig, CUresult, CUstream, CUstreamCaptureStatus,
};
use guard::{Reason, Rule, Verdict};
use model::{Dim3, Geometry, Rung};

use super::driver::Here;
use super::lane::{self, Kind, Lane};
use super::marks::Wish;
use super::record::{self, Attribute, Launch};
use super::{alone, certificate, mode, order, siding, site, storm, verify};
use crate::frames::Frame;
use crate::lock::Held;
use crate::tenancy::key::Key;
use crate::twins::sample::{self, Candidate, Timing};
use crate::twins::{self, Twin};
use crate::watch::Watch;
use crate::{entry, next, tenancy, watch};

/// What a program asks for, by whichever call.
struct Request {
    config: CUlaunchConfig,
    function: CUfunction,
    parameters: *mut *mut c_void,
    extra: *mut *mut c_void,
    per_thread: bool,
}

macro_rules! launches {
    ($($name:ident($per_thread:literal);)*) => {
        $(
            /// # Safety
            /// As the driver's manual says.
            #[inline(always)]
            pub unsafe fn $name(
                function: CUfunction, gx: c_uint, gy: c_uint, gz: c_uint, bx: c_uint, by: c_uint, bz: c_uint,
                shared: c_uint, stream: CUstream, parameters: *mut *mut c_void, extra: *mut *mut c_void,
            ) -> CUresult {
                let config = || CUlaunchConfig {
                    gridDimX: gx, gridDimY: gy, gridDimZ: gz, blockDimX: bx, blockDimY: by, blockDimZ: bz,
                    sharedMemBytes: shared, hStream: stream, attrs: std::ptr::null_mut(), numAttrs: 0,
                };
                let request = || Request { config: config(), function, parameters, extra, per_thread: $per_thread };
                // SAFETY: the arguments of a launch, passed on to our caller.
                let ordinary = || unsafe {
                    next::call::$name(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
                };
                // SAFETY: the arguments of a launch, passed on to our caller.
                unsafe { launch(request, function, stream, $per_thread, ordinary) }
            }
        )*
    };
}
launches! {
    cuLaunchKernel(false);
    cuLaunchKernel_ptsz(true);
}

macro_rules! extended_launches {
    ($($name:ident($per_thread:literal);)*) => {
        $(
            /// # Safety
            /// As the driver's manual says.
            #[inline(always)]
            pub unsafe fn $name(
                config: *const CUlaunchConfig, function: CUfunction, parameters: *mut *mut c_void,
                extra: *mut *mut c_void,
            ) -> CUresult {
                // SAFETY: passed on to our caller.
                let ordinary = || unsafe { next::call::$name(config, function, parameters, extra) };
                if config.is_null() {
                    return ordinary();
                }
                // SAFETY: not null, so a configuration that the driver is about to read.
                let config = unsafe { config.read() };
                let request = || Request { config, function, parameters, extra, per_thread: $per_thread };
                // SAFETY: the arguments of a launch, passed on to our caller.
                unsafe { launch(request, function, config.hStream, $per_thread, ordinary) }
            }
        )*
    };
}
extended_launches! {
    cuLaunchKernelEx(false);
    cuLaunchKernelEx_ptsz(true);
}

/// # Safety
/// What is requested must be a launch as the driver's manual describes it.
#[inline(always)]
unsafe fn launch(
    request: impl Fn() -> Request,
    function: CUfunction,
    stream: CUstream,
    per_thread: bool,
    ordinary: impl Fn() -> CUresult,
) -> CUresult {
    let mut refused = None;
    if mode::is_guarded() {
        // SAFETY: passed on to our caller.
        match unsafe { guarded(&request(), &ordinary) } {
            Guarded::Yes => return CUDA_SUCCESS,
            Guarded::No => {}
            Guarded::Refused(frame) => refused = Some(frame),
        }
    }
    let _inside = tenancy::admit(
        tenancy::Work::Kernels,
        || order::could_hold(per_thread, [Some(stream)]),
        || order::hold(per_thread, [Some(stream)]),
    );
    order::before(order::Touch::Work, per_thread, [Some(stream)]);
    let result = {
        let _alone = alone::before_launch(function);
        let timing = if sample::is_on(mode::is_on()) { timed(&request()) } else { None };
        let result = ordinary();
        if let Some(timing) = timing {
            timing.after(result == CUDA_SUCCESS);
        }
        result
    };
    if let Some(frame) = refused.filter(|_| result == CUDA_SUCCESS) {
        twins::demote(frame, Reason::RefusedByDriver);
    }
    result
}

/// Has an original timed, if it is its turn.
fn timed(request: &Request) -> Option<Timing> {
    let frame = watch::of_this_process()?.frames.function(request.function.addr())?;
    let rung = if mode::is_on() { Rung::Hold } else { tenancy::rung_here() };
    sample::before(Candidate {
        frame,
        geometry: geometry(&request.config),
        rung,
        stream: request.config.hStream,
        per_thread: request.per_thread,
    })
}

fn geometry(config: &CUlaunchConfig) -> Geometry {
    Geometry {
        grid: Dim3::new(config.gridDimX, config.gridDimY, config.gridDimZ),
        block: Dim3::new(config.blockDimX, config.blockDimY, config.blockDimZ),
        shared_bytes: config.sharedMemBytes,
    }
}

enum Guarded {
    Yes,
    No,
    /// The driver did not take the twin. Whether it is the twin's fault, the original shows.
    Refused(&'static Frame),
}

/// # Safety
/// As of `launch`.
unsafe fn guarded(request: &Request, original: &dyn Fn() -> CUresult) -> Guarded {
    let Some(watch) = watch::of_this_process() else { return Guarded::No };
    let Some(frame) = watch.frames.function(request.function.addr()) else { return Guarded::No };
    let mut result = Guarded::No;
    entry::guarded(watch, "guard", || {
        let Some(twin) = twins::of(frame) else { return };
        twin.equip();
        let mut launch = Launch::of(twin);
        // SAFETY: passed on to our caller.
        if unsafe { describe(request, twin, &mut launch) }.is_none() {
            return;
        }
        let key = lane::key(request.config.hStream, request.per_thread);
        result = match verify::verify(&mut launch, key, watch, original) {
            true => Guarded::Yes,
            false => enter(request, watch, twin, &mut launch),
        };
    });
    result
}

/// Says of the launch of a twin what the request says. `None`: it cannot be guarded.
///
/// # Safety
/// As of `launch`.
unsafe fn describe(request: &Request, twin: &'static Twin, launch: &mut Launch) -> Option<()> {
    let config = &request.config;
    launch.grid = [config.gridDimX, config.gridDimY, config.gridDimZ];
    launch.block = [config.blockDimX, config.blockDimY, config.blockDimZ];
    launch.shared = config.sharedMemBytes;
    // SAFETY: the attributes of a launch.
    let (cooperative, cluster) = unsafe { carry_over(config, launch)? };
    let asked = guard::Launch { cooperative, cluster, blocks: launch.blocks() };
    let Verdict::Guard(rule) = Verdict::Guard(launch.rule).for_launch(asked) else { return None };
    launch.rule = rule;
    // SAFETY: the parameters of a launch of the kernel whose twin this is.
    unsafe { pack(request, twin, launch) }
}

/// Copies the attributes that the twin is to have. Whether the launch is cooperative, and the size of its clusters; `None`
/// when it asks for something that a launch which may be made twice cannot have.
///
/// # Safety
/// The configuration must be one that the driver may read.
unsafe fn carry_over(config: &CUlaunchConfig, launch: &mut Launch) -> Option<(bool, u32)> {
    let count = if config.attrs.is_null() { 0 } else { config.numAttrs as usize };
    if count > record::MOST_ATTRIBUTES {
        return None;
    }
    let (mut cooperative, mut cluster) = (false, 1);
    for index in 0..count {
        // SAFETY: so many attributes are there for the driver to read.
        let attribute: Attribute = unsafe { config.attrs.wrapping_add(index).cast::<Attribute>().read() };
        match CUlaunchAttributeID(attribute[0] as u32) {
            CU_LAUNCH_ATTRIBUTE_COOPERATIVE => cooperative = attribute[1] as u32 != 0,
            CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION => {
                let sides = [attribute[1] as u32, (attribute[1] >> 32) as u32, attribute[2] as u32];
                cluster = sides.into_iter().fold(1, u32::saturating_mul);
            }
            // How early a launch may begin the twin knows, not the program. It gets an attribute of ours (`overlap`).
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION => continue,
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT
            | CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT
            | CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
            | CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => return None,
            _ => {}
        }
        launch.attributes.add(&attribute)?;
    }
    Some((cooperative, cluster))
}

/// Copies the parameters, which a program gives one by one or in a buffer.
///
/// # Safety
/// As of `launch`.
unsafe fn pack(request: &Request, twin: &Twin, launch: &mut Launch) -> Option<()> {
    let words = twin.control_offset as usize / 8;
    if words * 8 > record::MOST_BYTES {
        return None;
    }
    let packed = launch.parameters.grow(words)?;
    let (packed, room) = (packed.as_mut_ptr().cast::<u8>(), size_of_val(packed));
    if !request.parameters.is_null() {
        for (index, parameter) in twin.parameters.iter().enumerate() {
            let (offset, size) = (parameter.offset as usize, parameter.size as usize);
            // SAFETY: there is a pointer for every parameter of the kernel.
            let from = unsafe { request.parameters.wrapping_add(index).read() };
            if from.is_null() || offset.checked_add(size)? > room {
                return None;
            }
            // SAFETY: so many bytes are there for the driver to read; where they go, it was just seen.
            unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), packed.wrapping_add(offset), size) };
        }
        return Some(());
    }
    if request.extra.is_null() {
        return twin.parameters.is_empty().then_some(());
    }
    // SAFETY: a list as the driver reads it.
    let (from, bytes) = unsafe { buffer(request.extra)? };
    // SAFETY: so many bytes are there for the driver to read, and no more are copied than there is room for.
    unsafe { std::ptr::copy_nonoverlapping(from, packed, bytes.min(room)) };
    Some(())
}

/// The buffer in a list of extra arguments.
///
/// # Safety
/// The list must be one that the driver may read.
unsafe fn buffer(extra: *mut *mut c_void) -> Option<(*const u8, usize)> {
    const LONGEST: usize = 8;
    let (mut from, mut bytes) = (std::ptr::null::<u8>(), None);
    for index in 0..LONGEST {
        // SAFETY: a list goes on until its end.
        let name = unsafe { extra.wrapping_add(2 * index).read() };
        if name.is_null() {
            break;
        }
        // SAFETY: every name has a value behind it.
        let value = unsafe { extra.wrapping_add(2 * index + 1).read() };
        match name {
            CU_LAUNCH_PARAM_BUFFER_POINTER => from = value.cast_const().cast(),
            // SAFETY: under this name the driver reads a size.
            CU_LAUNCH_PARAM_BUFFER_SIZE => bytes = Some(unsafe { value.cast::<usize>().read_unaligned() }),
            _ => return None,
        }
    }
    Some((from, bytes?)).filter(|(from, _)| !from.is_null())
}

/// Puts a launch into its lane.
fn enter(request: &Request, watch: &Watch, twin: &Twin, launch: &mut Launch) -> Guarded {
    let key = lane::key(request.config.hStream, request.per_thread);
    if is_captured(watch, key.handle(), key.is_legacy()) {
        return Guarded::No;
    }
    let here = Here::new();
    let Some(lane) = Lane::made_for(key, &here) else { return Guarded::No };
    storm::begin_if_asked();
    siding::prepare(lane.site);
    order::gate_others(lane);
    lane.make_room();
    let is_stopped = tenancy::wait_beside(certificate::of(launch.frame, watch));
    let asked_about = is_asked_about(twin, lane, &here);
    let Some(_under) = alone::before_twin(launch.frame, asked_about) else { return Guarded::No };
    if asked_about {
        twin.find_function(lane.site.home());
    }
    launch.function = twin.function.within(lane.site.home());
    let Some(Place { held, cleared }) = find_place(lane, key, launch, is_stopped, &here) else {
        return Guarded::No;
    };
    let state = lane.state();
    let timing = match sample::is_on(true) {
        true => sample::before(Candidate {
            frame: launch.frame,
            geometry: geometry(&request.config),
            rung: Rung::Guard,
            stream: lane.stream(),
            per_thread: false,
        }),
        false => None,
    };
    // An event before it and one behind.
    state.count(u32::from(timing.is_some()) * 2);
    let overlaps = state.last.followed_by(launch.overlaps, cleared || timing.is_some());
    let made = hand_over(lane, twin, launch, overlaps);
    if let Some(timing) = timing {
        timing.after(made);
    }
    if !made {
        state.last.clear();
        state.ring.pop(launch);
        return Guarded::Refused(launch.frame);
    }
    if let Some(kernel) = launch.frame.learned(watch).and_then(|learned| learned.kernel) {
        kernel.guarded();
    }
    // Nobody but its own thread could put a gate into the default stream of a thread.
    if lane.entered(launch.blocks()) || lane.kind() == Kind::OfThread {
        lane.put_gate(&here);
    }
    drop(held);
    Guarded::Yes
}

/// Where a launch is kept, for as long as it may have to be made again.
struct Place {
    held: Held<'static>,
    /// Whether its marks had to be cleared, in the stream.
    cleared: bool,
}

/// Keeps a launch. If there is no room for it, that of others comes free as they are seen to be whole: to launch it unguarded
/// instead would be to have something in the way of requests that cannot be stopped.
fn find_place(lane: Lane, key: Key, launch: &mut Launch, is_stopped: bool, here: &Here) -> Option<Place> {
    loop {
        let held = lane.lock()?;
        if lane.key() != key {
            // Somebody has taken the place since.
            return None;
        }
        if is_stopped {
            lane.hold_back(here);
        }
        lane.free();
        if let Some(cleared) = place_marks(lane, launch) {
            // Counted also if there is no room for the record.
            lane.state().count(u32::from(cleared));
            let gate = lane.gates().wrapping_add(1);
            if lane.state().ring.push(launch, gate).is_some() {
                return Some(Place { held, cleared });
            }
        }
        drop(held);
        lane.wait_for_oldest()?;
    }
}

/// Whether the driver is to be asked what a twin is called in the context of a lane: it answers in the thread's own.
fn is_asked_about(twin: &Twin, lane: Lane, here: &Here) -> bool {
    twin.function.is_wanted(lane.site.home(), site::is_there) && here.context() == lane.site.context()
}

/// Under the lane's lock. Whether the driver has taken it.
fn hand_over(lane: Lane, twin: &Twin, launch: &mut Launch, overlaps: bool) -> bool {
    let (control, stream) = (&lane.site.control, lane.stream());
    let (stop, away) = (control.stop(), control.away(lane.number()));
    let make = |launch: &mut Launch| match overlaps {
        true => launch.make_overlapping(stream, stop, away) == CUDA_SUCCESS,
        false => launch.make(stream, stop, away) == CUDA_SUCCESS,
    };
    if make(launch) {
        return true;
    }
    // The kernel may be taken where its function is not, as when the program has set something about it since.
    let made = launch.function.take().is_some() && make(launch);
    if made {
        twin.function.put(lane.site.home(), None);
    }
    made
}

/// Under the lane's lock. Whether they had to be cleared, in the stream.
fn place_marks(lane: Lane, launch: &mut Launch) -> Option<bool> {
    const CELLS: u64 = 16;
    let bytes = if launch.rule == Rule::Ordered { CELLS } else { launch.blocks() * 4 };
    let (serial, era) = lane.site.next_serial();
    let next_gate = lane.gates().wrapping_add(1);
    let wish = Wish { lane: lane.number() as u32, bytes, era, next_gate, stream: lane.stream() };
    let passed = |number: u32| lane.site.control.passed(number as usize).0;
    let taken = lane.site.marks.take(&lane.state().cursor, &wish, passed)?;
    launch.marks = taken.at;
    launch.serial = serial;
    Some(taken.cleared)
}

/// What goes into a graph is not guarded. The default stream cannot be captured, and to ask about it while another is
/// would be an error.
pub(super) fn is_captured(watch: &Watch, stream: usize, legacy: bool) -> bool {
    if legacy || watch.frames.captures.load(Ordering::Relaxed) == 0 {
        return false;
    }
    let mut status = CUstreamCaptureStatus(0);
    // SAFETY: a stream that the program is about to use, and a place for the answer.
    let result = unsafe { next::call::cuStreamIsCapturing(super::driver::stream(stream), &mut status) };
    result != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE
}
