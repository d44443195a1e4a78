//! Which context a thread works in.

use std::cell::RefCell;
use std::sync::Arc;

use cuda_abi::*;

use super::context::{self, Context};
use super::driver::driver;
use crate::error::{Result, refuse};
use crate::handles::Handle;

thread_local! {
    /// The topmost is current. A context that was destroyed stays until it is popped; the primary context may
    /// come back to life under its old handle, so the handle is what counts.
    static STACK: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

struct Entry {
    handle: Handle<Context>,
    /// What the handle stood for when it was last looked up.
    context: Option<Arc<Context>>,
}

impl Entry {
    /// Of a handle that is a context's, or was one's.
    fn of(handle: Handle<Context>) -> Result<Entry> {
        let context = handle.find();
        if context.is_none() && !context::is_destroyed(handle) {
            return refuse(CUDA_ERROR_INVALID_CONTEXT);
        }
        Ok(Entry { handle, context })
    }

    fn live(&mut self) -> Result<Arc<Context>> {
        if self.context.as_ref().is_none_or(|context| context.is_destroyed()) {
            self.context = self.handle.find();
        }
        self.context.clone().ok_or(CUDA_ERROR_CONTEXT_IS_DESTROYED.into())
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

pub fn push(context: Handle<Context>) -> Result<()> {
    let entry = Entry::of(context)?;
    STACK.with_borrow_mut(|stack| stack.push(entry));
    Ok(())
}

pub fn pop() -> Result<Handle<Context>> {
    let popped = STACK.with_borrow_mut(Vec::pop);
    popped.map(|entry| entry.handle).ok_or(CUDA_ERROR_INVALID_CONTEXT.into())
}

/// Replaces the topmost context; null leaves the thread with what is below.
pub fn set(context: Handle<Context>) -> Result<()> {
    let entry = if context.is_null() { None } else { Some(Entry::of(context)?) };
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        stack.extend(entry);
    });
    Ok(())
}

/// A context that is destroyed leaves the destroying thread's stack, if it is on top.
pub fn forget(context: &Context) {
    STACK.with_borrow_mut(|stack| {
        if stack.last().is_some_and(|entry| entry.handle == context.handle) {
            stack.pop();
        }
    });
}
