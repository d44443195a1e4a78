//! Tenancy: how this process shares the GPU with others.
//!
//! A process that `ebb run` gave a socket has a *post* on each GPU on which it makes a context, and on each post a
//! *keeper*, a thread that speaks to the daemon and to the board. The program's own threads pass the post's gate before
//! they hand over work and leave a mark afterwards; that is all the sharing costs them. A process without a socket has no
//! posts, and pays one load.
//!
//! * `post`: the gate, the marks, the bell
//! * `keeper`: the thread and its rounds; `membership` (daemon and seat), `turn` (the best-effort token)
//! * `granted`: what the daemon has granted, for all threads; `proof`: how it is shown that the GPU may be used
//! * `shared`: a best-effort tenant of the shared domain, who stops between blocks (`guard`) and takes no turns
//! * `account`, `meter`: what it has launched, and for how long it has had work; `presence`: whether the board says so
//! * `streams`, `flight`: what was handed over, and how much time of it is in flight
//! * `burst`: when a latency tenant is at work; `mark`: what the program itself says of that; `outlook`: what it says of what is to come; `raise`: how it stops others, in
//!   the shared domain; `priority`: its streams there
//! * `warm_up`: which requests are not like those to come
//! * `decision`: what the policy says to a best-effort tenant; `aside`: how one of the isolated domain keeps away from requests
//! * `lever`: the switch rung: the slice of this process, and stopping it in the middle of a kernel
//! * `gpu_lock`: where best-effort tenants of several daemons take turns
//! * `tell`: what is written down of all this, for whoever asks later why a request was late
//! * `around`: functions of the driver before which something has to be done here

mod account;
pub mod around;
mod aside;
mod burst;
mod decision;
mod flight;
mod gpu_lock;
mod granted;
mod keeper;
pub mod key;
mod lever;
mod mark;
mod membership;
mod meter;
mod outlook;
mod post;
mod presence;
pub mod priority;
mod proof;
mod raise;
mod shared;
mod streams;
mod tell;
mod turn;
pub mod warm_up;

pub use keeper::{Awake, follow_the_end};
pub use tell::{event_log, number_here, number_of, tell};

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use board::{Gpu, Seat};
use cuda_abi::{CUDA_SUCCESS, CUdevice, CUstream, CUuuid};
use key::Key;
use model::{Bytes, Nanos, Rung};
use post::Post;

use crate::lock::Lock;
use crate::{next, surroundings};

/// More GPUs than this in one process are shared without us.
const MOST: usize = 16;

static POSTS: [Post; MOST] = [const { Post::new() }; MOST];
/// So many posts are taken. Zero in a process that is no tenant.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static LOCK: Lock = Lock::new();

/// Counts the contexts that were made.
static ARRIVALS: AtomicU32 = AtomicU32::new(0);

/// A number that changes whenever a context is complete. The driver's last step in making one is to set its slice.
fn arrivals() -> u32 {
    ARRIVALS.load(Ordering::Acquire)
}

/// A context was made on a device.
pub fn arrived(device: CUdevice) {
    ARRIVALS.fetch_add(1, Ordering::AcqRel);
    warm_up::note();
    if let Some(post) = taken().iter().find(|post| post.device() == device) {
        // There are new channels to see to.
        return post.ring();
    }
    if surroundings::variable(c"EBB_SOCKET").is_some() {
        take(device);
    }
}

#[cold]
fn take(device: CUdevice) {
    let Some(gpu) = uuid(device) else { return };
    let Some(_held) = LOCK.acquire() else { return };
    let count = TAKEN.load(Ordering::Relaxed);
    if count == MOST || taken().iter().any(|post| post.device() == device) {
        return;
    }
    let post = &POSTS[count];
    post.prepare(device, gpu, membership::class());
    tell::introduce(count, gpu);
    // SYNC(posts): whoever counts the post sees it prepared.
    TAKEN.store(count + 1, Ordering::Release);
    if !keeper::start(post) {
        post.set_gate(post::Gate::Open);
        post.introduce();
    }
}

fn taken() -> &'static [Post] {
    // SYNC(posts): pairs with the store in `take`.
    &POSTS[..TAKEN.load(Ordering::Acquire)]
}

/// Whether this process is no tenant, and has nobody who keeps its posts.
pub fn is_nobody() -> bool {
    taken().is_empty()
}

/// Whether this process is at work on one GPU only.
fn is_alone() -> bool {
    taken().len() == 1
}

/// This process's seat at a device, if it has one. A process that is about to get one waits for it, for a while.
pub fn seat_at(device: CUdevice) -> Option<&'static Seat> {
    let post = taken().iter().find(|post| post.device() == device)?;
    post.seat_when_introduced().filter(|seat| seat.is_mine())
}

/// How much memory the daemon has granted on a device. `None`: no daemon has said anything; otherwise a limit, or that there is none.
/// A seat that somebody else has written over changes nothing about it.
pub fn granted_memory(device: CUdevice) -> Option<Option<Bytes>> {
    let post = taken().iter().find(|post| post.device() == device)?;
    let seat = post.seat_when_introduced();
    let granted = || post.granted.get().map(|(terms, _)| terms.memory);
    let copy = seat.map(|seat| seat.terms().memory);
    if copy.is_some_and(|copy| granted().is_some_and(|granted| granted != copy)) {
        // Either the daemon has said something that the keeper has not heard yet, or somebody writes on the board. The
        // keeper finds out which.
        post.have_heard();
    }
    granted()
}

/// The device on which this process has a post, by its GPU.
pub fn device_of(gpu: Gpu) -> Option<CUdevice> {
    taken().iter().find(|post| post.gpu() == gpu).map(Post::device)
}

fn ring_all() {
    taken().iter().for_each(Post::ring);
}

/// The program ends in the ordinary way.
fn farewell() {
    taken().iter().for_each(Post::farewell);
}

fn uuid(device: CUdevice) -> Option<Gpu> {
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: a place for the answer, and a device on which there is a context.
    let result = unsafe { next::call::cuDeviceGetUuid_v2(&mut uuid, device) };
    (result == CUDA_SUCCESS).then(|| Gpu(uuid.bytes.map(|byte| byte as u8)))
}

/// The post on whose GPU the calling thread works.
#[inline]
fn here() -> Option<&'static Post> {
    match taken() {
        [] => None,
        [post] => Some(post),
        posts => Some(chosen(posts)),
    }
}

#[cold]
fn chosen(posts: &'static [Post]) -> &'static Post {
    let (mut context, mut device) = (std::ptr::null_mut(), 0);
    // SAFETY: a place for the answer.
    let _ = unsafe { next::call::cuCtxGetCurrent(&mut context) };
    if !context.is_null() {
        // SAFETY: a place for the answer, which there is because there is a context.
        let _ = unsafe { next::call::cuCtxGetDevice(&mut device) };
    }
    posts.iter().find(|post| post.device() == device).unwrap_or(&posts[0])
}

/// Threads of best-effort posts that have passed the gate and not come back from the driver yet.
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// Whether no thread is handing over work. When the gate was closed before, none will.
fn is_quiet() -> bool {
    // SYNC(inside): see `Inside::enter`.
    INSIDE.load(Ordering::SeqCst) == 0
}

/// A thread that hands over work, until the driver has answered.
pub enum Inside {
    /// Has passed the gate, and is counted.
    Counted,
    /// Has said that a burst begins on this post.
    Announced(&'static Post),
}

impl Inside {
    /// SYNC(inside): a thread counts itself, then looks at the gate; a keeper closes the gate, then looks at the count. All
    /// four in one order, so either the thread finds the gate closed or the keeper finds the thread.
    fn enter() -> Inside {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        Inside::Counted
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        match self {
            Inside::Counted => drop(INSIDE.fetch_sub(1, Ordering::SeqCst)),
            Inside::Announced(post) => post.answered(),
        }
    }
}

/// What a thread hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Kernels that are not guarded, graphs of them, and whatever else may keep SMs busy.
    Kernels,
    /// Copies and fills, which take no SM, or take it for a moment. Where kernels may go on beside a latency tenant's work, so may they.
    Transfer,
}

/// A thread is about to hand over work: it waits for its turn. What it is given is held until the driver has answered. `hold` has
/// the GPU wait in its place, where `could_hold` says that it can.
#[inline(always)]
pub fn admit(work: Work, could_hold: impl Fn() -> bool, hold: impl Fn() -> bool) -> Option<Inside> {
    if TAKEN.load(Ordering::Relaxed) == 0 { None } else { at_the_gate(work, &could_hold, &hold) }
}

fn at_the_gate(work: Work, could_hold: &dyn Fn() -> bool, hold: &dyn Fn() -> bool) -> Option<Inside> {
    let pass = || here().and_then(|post| post.pass(work, could_hold, hold));
    // What fails here fails open.
    panic::catch_unwind(AssertUnwindSafe(pass)).unwrap_or(None)
}

/// A guarded launch is about to be made, of what takes so long to stop. Whether the stop word is raised, and will be lowered.
#[inline]
pub fn wait_beside(certificate: Nanos) -> bool {
    here().is_some_and(|post| post.wait_beside(certificate))
}

/// A thread has handed over work, which was not captured.
#[inline(always)]
pub fn handed_over(stream: CUstream, per_thread: bool) {
    if let Some(post) = here() {
        post.handed_over(stream, per_thread);
    }
}

/// A thread has launched kernels, which were not captured.
#[inline(always)]
pub fn launched(kernels: u64) {
    if let Some(post) = here() {
        post.launched(kernels);
    }
}

/// A thread has waited for a stream, or found it done.
#[inline(always)]
pub fn waited(stream: CUstream, per_thread: bool) {
    let Some(post) = here() else { return };
    post.waited(Key::new(stream.addr(), per_thread));
}

/// What a stream was given will be done in a moment, and nobody will say so.
pub fn all_but_done(stream: CUstream, per_thread: bool) {
    if let Some(post) = here() {
        post.all_but_done(Key::new(stream.addr(), per_thread));
    }
}

/// A thread has waited for everything in its context.
pub fn waited_for_all() {
    if let Some(post) = here() {
        post.waited_for_all();
    }
}

/// An event was recorded in a stream.
pub fn recorded(event: usize, stream: CUstream, per_thread: bool) {
    if let Some(post) = here() {
        post.recorded(event, Key::new(stream.addr(), per_thread));
    }
}

/// A thread has waited for an event, or found that it has happened.
pub fn happened(event: usize) {
    if let Some(post) = here() {
        post.happened(event);
    }
}

/// By which means kernels of the calling thread are stopped where nobody guards them.
pub fn rung_here() -> Rung {
    match here() {
        Some(post) if !post.is_latency() => Rung::Switch,
        _ => Rung::None,
    }
}

/// Hooks are off for good: what is handed over is not seen any more, so it cannot be shared by turns either.
pub fn retire() {
    keeper::retire();
}

/// In the child of a fork, which is no tenant until it makes a context of its own.
pub fn in_child() {
    LOCK.reset();
    board::link::close_in_child();
    streams::in_child();
    POSTS.iter().for_each(|post| post.raise.in_child());
    POSTS.iter().for_each(|post| post.bursts.in_child());
    keeper::in_child();
    TAKEN.store(0, Ordering::Relaxed);
    INSIDE.store(0, Ordering::Relaxed);
}
