//! Objects of the program whose lives graphs share: freed when nobody holds a reference any more.

use std::sync::{Arc, Mutex};

use cuda_abi::*;

use super::lock;
use crate::entry::HostFunction;
use crate::error::{Result, require};
use crate::handles::{Handle, object};

pub struct UserObject {
    pub handle: Handle<UserObject>,
    destroy: HostFunction,
    references: Mutex<u32>,
}

object!(UserObject, CUuserObject_st, CUDA_ERROR_INVALID_VALUE);

impl UserObject {
    pub fn create(destroy: HostFunction, references: u32) -> Arc<UserObject> {
        let handle = Handle::fresh();
        let object = Arc::new(UserObject { handle, destroy, references: Mutex::new(references) });
        handle.bind(Arc::clone(&object));
        object
    }

    pub fn retain(&self, count: u32) -> Result<()> {
        let mut references = lock(&self.references);
        let sum = references.checked_add(count).filter(|_| count > 0 && *references > 0);
        *references = sum.ok_or(CUDA_ERROR_INVALID_VALUE)?;
        Ok(())
    }

    pub fn release(&self, count: u32) -> Result<()> {
        let mut references = lock(&self.references);
        require(count > 0 && count <= *references)?;
        *references -= count;
        let unused = *references == 0;
        drop(references);
        if unused {
            let _ = self.handle.take();
            self.destroy.call();
        }
        Ok(())
    }
}

/// References that a graph holds. Copies of the graph, and what is made of it, hold them together.
pub struct Held {
    pub object: Arc<UserObject>,
    pub count: u32,
}

impl Drop for Held {
    fn drop(&mut self) {
        let released = self.object.release(self.count);
        debug_assert!(released.is_ok(), "a graph gives back what it was given");
    }
}
