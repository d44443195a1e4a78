//! The driver of this process: one device, one address space, one engine.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use cuda_abi::*;
use softgpu::card::{Card, Properties};
use softgpu::engine::Engine;
use softgpu::memory::{AddressSpace, Quota};

use super::context::Context;
use super::lock;
use super::pool::Pool;
use crate::entry;
use crate::error::{Error, Result, refuse};
use crate::handles::Handle;

/// The version of CUDA that the library claims to be.
pub const VERSION: i32 = 13000;
/// The version of the interface that contexts report, as every driver since CUDA 3.2.
pub const CONTEXT_VERSION: u32 = 3020;
/// The only device there is.
pub const DEVICE: CUdevice = 0;

pub struct Driver {
    pub card: Arc<Card>,
    pub space: Arc<AddressSpace>,
    pub engine: Arc<Engine>,
    pub properties: Properties,
    pub primary: Mutex<Primary>,
    pub default_pool: Arc<Pool>,
    /// The pool that plain asynchronous allocations take from.
    pub current_pool: Mutex<Arc<Pool>>,
    /// Held while a control is imposed on the contexts.
    pub controls: Mutex<()>,
}

/// The primary context: one handle for the life of the process, an object while somebody retains it.
pub struct Primary {
    pub handle: Handle<Context>,
    pub retained: u32,
    pub context: Option<Arc<Context>>,
    pub flags: u32,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();
/// Set in the child of a fork, where no thread and no place on the card has come along.
static FORKED: AtomicBool = AtomicBool::new(false);

/// The driver, if `cuInit` has succeeded in this process. Host functions in a stream may not use it: what they
/// wait for might be waiting for them.
pub fn driver() -> Result<&'static Driver> {
    match DRIVER.get() {
        Some(driver) if !FORKED.load(Ordering::Relaxed) => match entry::is_forbidden_here() {
            true => refuse(CUDA_ERROR_NOT_PERMITTED),
            false => Ok(driver),
        },
        _ => refuse(CUDA_ERROR_NOT_INITIALIZED),
    }
}

/// The same for controls, which wait for nothing that a host function could be waited for: it may ask, too.
pub fn running() -> Option<&'static Driver> {
    DRIVER.get().filter(|_| !FORKED.load(Ordering::Relaxed))
}

pub fn init() -> Result<()> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _starting = lock(&STARTING);
    if FORKED.load(Ordering::Relaxed) {
        return refuse(CUDA_ERROR_NOT_INITIALIZED);
    }
    if DRIVER.get().is_none() {
        let driver = start()?;
        watch_forks();
        let _ = DRIVER.set(driver);
    }
    Ok(())
}

fn start() -> Result<Driver> {
    let name = std::env::var("EBB_SOFTGPU").ok().filter(|name| !name.is_empty());
    let card = Card::attach(name.as_deref().unwrap_or("default"))
        .map_err(|error| Error::new(CUDA_ERROR_OPERATING_SYSTEM, error.to_string()))?;
    let space = Arc::new(reserve(&card)?);
    let engine = Engine::start(Arc::clone(&card), Arc::clone(&space));
    let default_pool = Pool::register_default();
    Ok(Driver {
        properties: card.properties(),
        card,
        space,
        engine,
        primary: Mutex::new(Primary { handle: Handle::fresh(), retained: 0, context: None, flags: 0 }),
        current_pool: Mutex::new(Arc::clone(&default_pool)),
        default_pool,
        controls: Mutex::default(),
    })
}

/// Room for addresses is wanted generously, since programs reserve many times what they use; a limit on
/// virtual memory makes us modest.
fn reserve(card: &Arc<Card>) -> Result<AddressSpace> {
    let quota: Arc<dyn Quota> = Arc::<Card>::clone(card);
    let least = card.properties().memory_bytes.next_power_of_two();
    let mut bytes = (1u64 << 40).max(2 * least);
    loop {
        match AddressSpace::new(bytes, Arc::clone(&quota)) {
            Ok(space) => return Ok(space),
            Err(_) if bytes > least => bytes /= 4,
            Err(error) => return Err(error.into()),
        }
    }
}

fn watch_forks() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler only stores to a static; it lives as long as the library, which is never unloaded.
    let registered = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    debug_assert_eq!(registered, 0, "there is room for one more handler");
}

impl Driver {
    pub fn check_device(&self, device: CUdevice) -> Result<()> {
        if device == DEVICE { Ok(()) } else { refuse(CUDA_ERROR_INVALID_DEVICE) }
    }

    /// The primary context, made if nobody holds it.
    pub fn retain_primary(&'static self) -> Result<Arc<Context>> {
        let mut primary = lock(&self.primary);
        let context = match &primary.context {
            Some(context) => Arc::clone(context),
            None => {
                let context = Context::create(self, Some(primary.handle), primary.flags)?;
                primary.context = Some(Arc::clone(&context));
                context
            }
        };
        primary.retained += 1;
        Ok(context)
    }

    pub fn release_primary(&self) -> Result<()> {
        let mut primary = lock(&self.primary);
        if primary.retained == 0 {
            return refuse(CUDA_ERROR_INVALID_CONTEXT);
        }
        primary.retained -= 1;
        let context = if primary.retained == 0 { primary.context.take() } else { None };
        drop(primary);
        if let Some(context) = context {
            context.destroy();
        }
        Ok(())
    }

    /// Takes the primary context away from everybody.
    pub fn reset_primary(&self) {
        let mut primary = lock(&self.primary);
        primary.retained = 0;
        let context = primary.context.take();
        drop(primary);
        if let Some(context) = context {
            context.destroy();
        }
    }

    /// Memory that is free now. What processes that died held counts as free.
    pub fn memory_free(&self) -> u64 {
        self.card.reap_dead();
        self.properties.memory_bytes.saturating_sub(self.card.memory_used())
    }
}

/// Numbers for streams, graphs and contexts that programs may ask for.
pub fn next_id() -> u64 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    u64::from(NEXT.fetch_add(1, Ordering::Relaxed))
}
