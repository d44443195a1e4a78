//! The smith: the thread that makes twins.
//!
//! One in a process, started when a twin is first wanted. It works through a queue of orders and sleeps when there is none.
//! It may take seconds and much memory, and be wrong about an image that somebody made up; none of that is allowed to reach
//! the program. A panic ends with the refusal of the kernel, and without memory the smith sleeps for ever (`starve`).
//! When there is nothing to make it keeps the *book* of what timed launches have shown, which takes time and memory too.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::panic::{self, AssertUnwindSafe};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::time::Duration;

use cuda_abi::{
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, CUDA_SUCCESS,
    CUdevice, CUdevice_attribute,
};
use guard::{Reason, Verdict};
use installation::memory;

use super::book::Book;
use super::cache::Cache;
use super::demotions::Demotions;
use super::forge::Product;
use super::queue::{Order, Queue};
use super::{Twin, entered, foreseen, sample};
use crate::frames::{Frame, Module};
use crate::log::say;
use crate::{arena, next, thread};

static QUEUE: Queue = Queue::new();
static STARTED: AtomicBool = AtomicBool::new(false);
/// The smith's thread; zero while there is none, and when it has stopped working.
static THREAD: AtomicI32 = AtomicI32::new(0);

/// The program is ending: the smith looks at the last timed launches, writes down what it knows, and then goes.
static CLOSING: AtomicBool = AtomicBool::new(false);
/// The smith sleeps, and so needs no longer than that takes.
static AT_REST: AtomicBool = AtomicBool::new(false);
/// The driver is ending.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Calls of the driver that are under way.
static AT_THE_DRIVER: AtomicU32 = AtomicU32::new(0);

/// Has something done. `None` when it cannot be.
pub fn order(order: Order) -> Option<()> {
    start();
    QUEUE.put(order)
}

/// Has the smith there, who also looks at timed launches.
pub fn start() {
    if !STARTED.swap(true, Ordering::Relaxed) {
        // SAFETY: a function that may be called at any time.
        unsafe { libc::atexit(at_exit) };
        if !thread::start(work, ptr::null_mut()) {
            THREAD.store(LOST, Ordering::Relaxed);
            say!("no thread for twins of kernels could be started");
        }
    }
}

/// Wakes the smith, for whom something was left.
pub fn ring() {
    QUEUE.ring();
}

/// Whether anything was ever ordered in this process.
pub fn is_started() -> bool {
    STARTED.load(Ordering::Relaxed)
}

/// Whether anybody works through the queue, as far as is known: one who has been started may not be there yet.
pub fn is_at_work() -> bool {
    THREAD.load(Ordering::Relaxed) != LOST
}

const LOST: i32 = -1;

extern "C" fn work(_: *mut c_void) -> *mut c_void {
    THREAD.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    thread::begin(c"ebb-smith");
    let worked = panic::catch_unwind(|| Smith::new().run());
    THREAD.store(LOST, Ordering::Relaxed);
    if worked.is_err() {
        say!("the smith failed; no more twins are made");
    }
    ptr::null_mut()
}

/// There is no memory. To come back would be the end of the process, so the smith does not; for anybody else nothing can be
/// done.
#[cold]
pub fn starve() {
    if THREAD.load(Ordering::Relaxed) != rustix::thread::gettid().as_raw_nonzero().get() {
        return;
    }
    THREAD.store(LOST, Ordering::Relaxed);
    say!("there is no memory for twins of kernels");
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// A call of the driver that is under way, for as long as it is.
struct UnderWay;

impl UnderWay {
    fn now() -> UnderWay {
        AT_THE_DRIVER.fetch_add(1, Ordering::SeqCst);
        UnderWay
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        AT_THE_DRIVER.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Calls the driver for something that may bring the GPU to rest, unless it is about to end.
pub fn at_the_driver<T>(call: impl FnOnce() -> T) -> Option<T> {
    let _alone = crate::guard::alone();
    unless_ending(call)
}

/// Calls the driver, unless it is about to end. The end of the program waits for such a call. This is enough for questions about
/// devices, for which nothing comes to rest. Asked alone they would keep launches from being guarded meanwhile: a twin can be
/// launched while the smith still asks, and who asks alone waits for lanes that may stand still.
pub fn unless_ending<T>(call: impl FnOnce() -> T) -> Option<T> {
    // SYNC(smith-end): the smith counts itself, then looks for the end; the end is said, then the count is looked at. All
    // four in one order, so either the call is not made or it is waited for.
    let _under_way = UnderWay::now();
    (!ENDING.load(Ordering::SeqCst)).then(call)
}

extern "C" fn at_exit() {
    /// Who sleeps is done in a millisecond or two, unless the machine is busy or others write down something too. Who is at work
    /// may not be done for seconds, and what he knows is not worth those.
    const A_MOMENT: u32 = 50;
    const A_WHILE: u32 = 500;
    /// To load a large image takes a good part of a second.
    const PATIENCE: u32 = 2_000;
    if !is_started() {
        // The child of a fork, which has inherited no more than this call.
        return;
    }
    let at_rest = AT_REST.load(Ordering::Relaxed);
    CLOSING.store(true, Ordering::Relaxed);
    QUEUE.ring();
    wait_until(if at_rest { A_WHILE } else { A_MOMENT }, || !is_at_work());
    // SYNC(smith-end): see `unless_ending`.
    ENDING.store(true, Ordering::SeqCst);
    wait_until(PATIENCE, || AT_THE_DRIVER.load(Ordering::SeqCst) == 0 || !is_at_work());
}

/// Waits for something, and for so many milliseconds at most.
fn wait_until(at_most: u32, is_so: impl Fn() -> bool) {
    for _ in 0..at_most {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// In the child of a fork, which has no smith.
pub fn in_child() {
    QUEUE.in_child();
    STARTED.store(false, Ordering::Relaxed);
    THREAD.store(0, Ordering::Relaxed);
    AT_THE_DRIVER.store(0, Ordering::Relaxed);
    AT_REST.store(false, Ordering::Relaxed);
}

struct Smith {
    cache: Cache,
    demotions: Demotions,
    /// Of all devices, if they are alike.
    capability: Option<u32>,
    /// By the address of the module, which is never used again.
    products: BTreeMap<usize, Result<Product, Reason>>,
    book: Book,
}

impl Smith {
    fn new() -> Smith {
        let folder = memory::folder();
        let cache = Cache::open(folder.clone());
        let demotions = Demotions::open(folder.as_deref());
        Smith {
            cache,
            demotions,
            capability: capability_of_all(),
            products: BTreeMap::new(),
            book: Book::open(),
        }
    }

    fn run(&mut self) {
        while !CLOSING.load(Ordering::Relaxed) {
            let seen = QUEUE.bell();
            match QUEUE.take() {
                Some(Order::Make(frame)) => self.make(frame),
                Some(Order::Remember(frame)) => self.remember(frame),
                Some(Order::Forget(module)) => self.forget(module),
                None => {
                    unless_ending(sample::collect);
                    self.keep_book(Book::tend);
                    AT_REST.store(true, Ordering::Relaxed);
                    QUEUE.rest(seen);
                    AT_REST.store(false, Ordering::Relaxed);
                }
            }
        }
        unless_ending(sample::collect);
        self.keep_book(Book::close);
    }

    /// A book that fails is not opened again; twins are made without.
    fn keep_book<T>(&mut self, work: impl FnOnce(&mut Book) -> T) -> Option<T> {
        let done = panic::catch_unwind(AssertUnwindSafe(|| work(&mut self.book)));
        if done.is_err() {
            say!("what is known of kernels cannot be kept");
            self.book = Book::closed();
        }
        done.ok()
    }

    fn make(&mut self, frame: &'static Frame) {
        let made = panic::catch_unwind(AssertUnwindSafe(|| self.twin(frame)));
        match made.unwrap_or(Err(Reason::UnknownRecords)) {
            Ok(twin) => {
                frame.place.put(twin);
                if let Some(known) = self.keep_book(|book| book.known(frame)).flatten() {
                    foreseen(frame, known.block, known.certificate);
                }
            }
            Err(reason) => {
                say!("no twin of {}: {reason}", String::from_utf8_lossy(frame.name));
                frame.place.refuse(reason);
            }
        }
        entered(frame);
    }

    fn twin(&mut self, frame: &'static Frame) -> Result<&'static Twin, Reason> {
        let capability = self.capability.ok_or(Reason::UnknownArchitecture)?;
        let cache = &self.cache;
        let address = ptr::from_ref(frame.module).addr();
        let product = self.products.entry(address);
        let product = product.or_insert_with(|| Product::make(frame.module, capability, cache));
        let product = product.as_ref().map_err(|reason| *reason)?;
        let name = std::str::from_utf8(frame.name).map_err(|_| Reason::NoImage)?;
        let kernel = product.kernel(name).ok_or(Reason::NoImage)?;
        let verdict = self.demotions.judge(product.key, name, kernel.verdict);
        if let Verdict::Refuse(reason) = verdict {
            return Err(reason);
        }
        let handle = product.handle(name).ok_or(Reason::RefusedByDriver)?;
        let parameters = arena::copy(&kernel.parameters).ok_or(Reason::NoImage)?;
        let twin = Twin::new(handle, kernel, parameters, frame, verdict);
        arena::place(twin).ok_or(Reason::NoImage)
    }

    /// Keeps for later runs what was found out about a kernel.
    fn remember(&mut self, frame: &'static Frame) {
        let product = self.products.get(&ptr::from_ref(frame.module).addr());
        if let (Some(Ok(product)), Some(verdict)) = (product, frame.place.verdict()) {
            let name = String::from_utf8_lossy(frame.name);
            self.demotions.remember(product.key, &name, verdict);
        }
        if let Some(Verdict::Refuse(reason)) = frame.place.verdict() {
            self.keep_book(|book| book.demoted(frame, reason));
        }
    }

    fn forget(&mut self, module: &'static Module) {
        let product = self.products.remove(&ptr::from_ref(module).addr());
        // To unload is the driver's work, and may fail as any other.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(product)));
    }
}

/// A twin is loaded for one architecture. In a process with devices of several, nobody knows which one a kernel will be
/// launched on.
fn capability_of_all() -> Option<u32> {
    let mut count = 0;
    // SAFETY: a place for the answer.
    let result = unless_ending(|| unsafe { next::call::cuDeviceGetCount(&mut count) })?;
    let mut capabilities = (0..count).map(capability);
    let first = capabilities.next().flatten().filter(|_| result == CUDA_SUCCESS)?;
    capabilities.all(|other| other == Some(first)).then_some(first)
}

fn capability(device: CUdevice) -> Option<u32> {
    let attribute = |attribute: CUdevice_attribute| {
        let mut value = 0;
        let result = unless_ending(|| {
            // SAFETY: a device that there is, and a place for the answer.
            unsafe { next::call::cuDeviceGetAttribute(&mut value, attribute, device) }
        })?;
        u32::try_from(value).ok().filter(|_| result == CUDA_SUCCESS)
    };
    let major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    Some(major * 10 + attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?)
}
