//! Handles that a program holds: numbers, looked up whenever they are used.
//!
//! A handle is never used again after its object is gone, so a stale one, or one made up, is found out and
//! refused, where a pointer would be undefined behaviour.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use cuda_abi::CUresult;

use crate::error::{Result, refuse};

/// Something a program can hold a handle of.
pub trait Object: Sized + Send + Sync + 'static {
    /// What C points to with such a handle; never looked into.
    type Raw;
    /// How a handle of nothing is refused.
    const STALE: CUresult;

    fn registry() -> &'static Registry<Self>;
}

/// The live objects of one kind.
pub struct Registry<T> {
    live: RwLock<BTreeMap<u64, Arc<T>>>,
}

/// A handle as it came from outside: an allegation, until `get` has found it.
pub struct Handle<T> {
    value: u64,
    kind: PhantomData<fn() -> T>,
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Handle<T> {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Handle<T>) -> bool {
        self.value == other.value
    }
}

impl<T> Eq for Handle<T> {}

impl<T: Object> Handle<T> {
    pub fn of(value: u64) -> Handle<T> {
        Handle { value, kind: PhantomData }
    }

    /// A number no handle has had yet. They look like addresses in a range where nothing is mapped, aligned,
    /// and never like the small numbers that name special streams.
    pub fn fresh() -> Handle<T> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Handle::of(NEXT.fetch_add(1, Ordering::Relaxed) << 8)
    }

    pub fn value(self) -> u64 {
        self.value
    }

    pub fn is_null(self) -> bool {
        self.value == 0
    }

    /// As C has it.
    pub fn raw(self) -> *mut T::Raw {
        ptr::without_provenance_mut(self.value as usize)
    }

    pub fn find(self) -> Option<Arc<T>> {
        T::registry().read().get(&self.value).cloned()
    }

    pub fn get(self) -> Result<Arc<T>> {
        match self.find() {
            Some(object) => Ok(object),
            None => refuse(T::STALE),
        }
    }

    /// Makes the handle invalid and gives what it stood for.
    pub fn take(self) -> Result<Arc<T>> {
        match T::registry().write().remove(&self.value) {
            Some(object) => Ok(object),
            None => refuse(T::STALE),
        }
    }

    /// From now on the handle stands for `object`.
    pub fn bind(self, object: Arc<T>) {
        T::registry().write().insert(self.value, object);
    }
}

impl<T> Registry<T> {
    pub const fn new() -> Registry<T> {
        Registry { live: RwLock::new(BTreeMap::new()) }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<u64, Arc<T>>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<u64, Arc<T>>> {
        self.live.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those for which `wanted` holds.
    pub fn select(&self, wanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        self.read().values().filter(|object| wanted(object)).cloned().collect()
    }

    /// Forgets those for which `unwanted` holds, and gives them, so that they are dropped outside the lock.
    pub fn sweep(&self, unwanted: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        self.write().extract_if(.., |_, object| unwanted(object)).map(|(_, object)| object).collect()
    }
}

/// Makes a type an object with a registry of its own.
macro_rules! object {
    ($type:ty, $raw:ty, $stale:expr) => {
        impl $crate::handles::Object for $type {
            type Raw = $raw;
            const STALE: cuda_abi::CUresult = $stale;

            fn registry() -> &'static $crate::handles::Registry<$type> {
                static REGISTRY: $crate::handles::Registry<$type> = $crate::handles::Registry::new();
                &REGISTRY
            }
        }
    };
}
pub(crate) use object;

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_abi::CUDA_ERROR_INVALID_HANDLE;

    struct Thing(u32);
    object!(Thing, u8, CUDA_ERROR_INVALID_HANDLE);

    #[test]
    fn a_handle_stands_for_its_object_until_taken() {
        let handle = Handle::<Thing>::fresh();
        assert!(handle.get().is_err());
        handle.bind(Arc::new(Thing(7)));
        assert_eq!(handle.get().unwrap().0, 7);
        assert_eq!(Handle::<Thing>::of(handle.raw().addr() as u64).get().unwrap().0, 7);
        assert_eq!(handle.take().unwrap().0, 7);
        assert_eq!(handle.get().err().map(|error| error.code), Some(CUDA_ERROR_INVALID_HANDLE));
        assert!(handle.take().is_err());
        assert_ne!(Handle::<Thing>::fresh().value(), handle.value());
        assert!(Handle::<Thing>::of(0).get().is_err());
    }
}
