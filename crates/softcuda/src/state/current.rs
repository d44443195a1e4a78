//! Which context a thread works in.

use std::cell::RefCell;
use std::sync::Arc;

use cuda_abi::*;

use super::context::Context;
use super::driver::driver;
use crate::error::{Result, refuse};
use crate::handles::Handle;

thread_local! {
    /// The topmost is current. A context that was destroyed stays until it is popped; the primary context may
    /// come back to life under its old handle, so the handle is what counts.
    static STACK: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone)]
struct Entry {
    handle: Handle<Context>,
    context: Arc<Context>,
}

impl Entry {
    fn of(context: &Arc<Context>) -> Entry {
        Entry { handle: context.handle, context: Arc::clone(context) }
    }

    fn live(&mut self) -> Result<Arc<Context>> {
        if self.context.is_destroyed() {
            match self.handle.find() {
                Some(context) => self.context = context,
                None => return refuse(CUDA_ERROR_CONTEXT_IS_DESTROYED),
            }
        }
        Ok(Arc::clone(&self.context))
    }
}

/// The calling thread's context, if it is in order: the call is refused with what the context died of.
pub fn context() -> Result<Arc<Context>> {
    let context = context_whatever_its_state()?;
    context.check()?;
    Ok(context)
}

/// The calling thread's context, even when a kernel has ruined it.
pub fn context_whatever_its_state() -> Result<Arc<Context>> {
    driver()?;
    STACK.with_borrow_mut(|stack| match stack.last_mut() {
        Some(entry) => entry.live(),
        None => refuse(CUDA_ERROR_INVALID_CONTEXT),
    })
}

/// The handle of the calling thread's context, or null.
pub fn handle() -> Handle<Context> {
    STACK.with_borrow(|stack| stack.last().map_or(Handle::of(0), |entry| entry.handle))
}

pub fn push(context: &Arc<Context>) {
    STACK.with_borrow_mut(|stack| stack.push(Entry::of(context)));
}

pub fn pop() -> Result<Handle<Context>> {
    let popped = STACK.with_borrow_mut(Vec::pop);
    popped.map(|entry| entry.handle).ok_or(CUDA_ERROR_INVALID_CONTEXT.into())
}

/// Replaces the topmost context; `None` leaves the thread with what is below.
pub fn set(context: Option<&Arc<Context>>) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        stack.extend(context.map(Entry::of));
    });
}

/// A context that is destroyed leaves the destroying thread's stack, if it is on top.
pub fn forget(context: &Context) {
    STACK.with_borrow_mut(|stack| {
        if stack.last().is_some_and(|entry| entry.handle == context.handle) {
            stack.pop();
        }
    });
}
