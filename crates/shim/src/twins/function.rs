//! The function of a twin: the name by which one context knows it.
//!
//! A twin is a kernel of a library, which any context takes. But then the driver has to find, at every launch, what the kernel
//! is called in the context at hand. So that is asked once. It is known of one context at a time; programs have one, and in
//! others the kernel itself is launched. A context that has ended takes its functions with it, and another may begin at the
//! same address: so contexts go by numbers here that no two of them ever have.

use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use cuda_abi::CUfunction;

/// The number of a context. Never nought, and not [`BUSY`].
pub type Home = u64;

/// No context's, and that of whoever is about to write.
const NONE: Home = 0;
const BUSY: Home = u64::MAX;

pub struct Function {
    home: AtomicU64,
    /// Zero: the driver has given none, or has not taken it.
    handle: AtomicUsize,
}

impl Function {
    pub const fn new() -> Function {
        Function { home: AtomicU64::new(NONE), handle: AtomicUsize::new(0) }
    }

    /// What to launch in a context, if it is known.
    #[inline]
    pub fn within(&self, home: Home) -> Option<CUfunction> {
        // SYNC(twin-function): who finds the home finds its handle, or a later one, before which the home was changed.
        if self.home.load(Ordering::Acquire) != home {
            return None;
        }
        let handle = self.handle.load(Ordering::Acquire);
        let is_still = self.home.load(Ordering::Relaxed) == home;
        (is_still && handle != 0).then(|| ptr::with_exposed_provenance_mut(handle))
    }

    /// Whether the driver is to be asked for it in a context: nobody has, and that of another is of no more use.
    #[inline]
    pub fn is_wanted(&self, home: Home, is_there: impl FnOnce(Home) -> bool) -> bool {
        let known = self.home.load(Ordering::Relaxed);
        known != home && known != BUSY && (known == NONE || !is_there(known))
    }

    /// What the driver has answered in a context. Somebody who writes at the same time may be the one who is heard.
    pub fn put(&self, home: Home, function: Option<CUfunction>) {
        let known = self.home.load(Ordering::Relaxed);
        let mine = known != BUSY
            && self.home.compare_exchange(known, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if mine {
            // SYNC(twin-function): pairs with the loads in `within`.
            self.handle.store(function.map_or(0, |function| function.expose_provenance()), Ordering::Release);
            self.home.store(home, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(handle: usize) -> CUfunction {
        ptr::without_provenance_mut(handle)
    }

    fn handle(known: &Function, home: Home) -> Option<usize> {
        known.within(home).map(|function| function.addr())
    }

    #[test]
    fn it_is_known_in_the_context_in_which_it_was_asked_for() {
        let known = Function::new();
        assert!(known.is_wanted(1, |_| unreachable!("there was none before")));
        known.put(1, Some(function(64)));
        assert_eq!((handle(&known, 1), handle(&known, 2)), (Some(64), None));
        assert!(!known.is_wanted(1, |_| true) && !known.is_wanted(1, |_| false));
    }

    #[test]
    fn a_context_that_is_there_keeps_it_and_one_that_has_ended_does_not() {
        let known = Function::new();
        known.put(1, Some(function(64)));
        assert!(!known.is_wanted(2, |home| home == 1), "in a second context the kernel is launched");
        assert!(known.is_wanted(2, |home| home != 1));
        known.put(2, Some(function(128)));
        assert_eq!((handle(&known, 1), handle(&known, 2)), (None, Some(128)));
    }

    #[test]
    fn where_there_is_none_nobody_asks_again() {
        let known = Function::new();
        known.put(1, None);
        assert_eq!(handle(&known, 1), None);
        assert!(!known.is_wanted(1, |_| true));
    }

    #[test]
    fn nobody_finds_the_function_of_another_context() {
        let known = Function::new();
        let write =
            |home: Home| (0..20_000).for_each(|_| known.put(home, Some(function(home as usize * 64))));
        let read = |home: Home| {
            for _ in 0..20_000 {
                assert!(handle(&known, home).is_none_or(|handle| handle == home as usize * 64));
            }
        };
        std::thread::scope(|scope| {
            for home in [1, 2] {
                scope.spawn(move || write(home));
                scope.spawn(move || read(home));
            }
        });
    }
}
