//! Launches that begin before the one before them in their stream is complete.
//!
//! The driver lets a launch that asks for it begin as soon as all blocks of the launch before it have ended, or have said that
//! it may; until that one is complete, and all that it wrote is there, it has to wait by itself. Twins of machine code since
//! `sm_90` do, in their prologue (`guard::Kernel::overlaps`; its source says why that is right). So most of what the prologue
//! costs is spent while the GPU would wait for its memory anyway.
//!
//! A launch asks for it if its twin waits, and if what stands before it in the stream is a launch of such a twin too. Behind
//! anything else (a gate, an event that times a launch, marks being cleared) it begins when all is complete, as ever. A twin
//! that was rewritten as text counts as something else: it may say early that others can begin, and its blocks do not make
//! sure that what they write about themselves is there for those.

use std::sync::atomic::{AtomicBool, Ordering};

use cuda_abi::{
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
    CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_SUCCESS, CUresult,
};

use super::record::Attribute;

/// Asks the driver for it.
pub const REQUEST: Attribute =
    [CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION.0 as u64, 1, 0, 0, 0, 0, 0, 0, 0];

/// Whether the driver may be asked.
pub struct Driver {
    refused: AtomicBool,
}

impl Driver {
    pub const fn new() -> Driver {
        Driver { refused: AtomicBool::new(false) }
    }

    /// Makes a launch that overlaps, or, if the driver does not take it, one that does not. It was the request if that one is
    /// taken; then it is not asked again.
    pub fn launch(&self, mut make: impl FnMut(Option<Attribute>) -> CUresult) -> CUresult {
        if self.refused.load(Ordering::Relaxed) {
            return make(None);
        }
        let result = make(Some(REQUEST));
        if !is_refusal(result) {
            return result;
        }
        let result = make(None);
        if result == CUDA_SUCCESS {
            self.refused.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// What drivers say that do not know an attribute, or the call that takes any.
fn is_refusal(result: CUresult) -> bool {
    [CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER]
        .contains(&result)
}

/// What stands last in a lane, as far as the next launch is concerned. It is written under the lane's lock.
pub struct Last {
    lets_overlap: AtomicBool,
}

impl Last {
    pub const fn new() -> Last {
        Last { lets_overlap: AtomicBool::new(false) }
    }

    /// A launch is about to be put behind it, `overlaps` if its twin does; `apart` if something stands before or behind the
    /// launch that is none. Whether it may overlap.
    pub fn followed_by(&self, overlaps: bool, apart: bool) -> bool {
        let before = self.lets_overlap.load(Ordering::Relaxed);
        self.lets_overlap.store(overlaps && !apart, Ordering::Relaxed);
        before && overlaps && !apart
    }

    /// Something else stands there.
    pub fn clear(&self) {
        self.lets_overlap.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cuda_abi::CUDA_ERROR_INVALID_HANDLE;

    #[test]
    fn launches_overlap_behind_their_like_and_nothing_else() {
        let last = Last::new();
        assert!(!last.followed_by(true, false), "nothing stands there");
        assert!(last.followed_by(true, false) && last.followed_by(true, false));
        assert!(!last.followed_by(false, false), "it does not wait by itself");
        assert!(!last.followed_by(true, false), "the one before it may let it begin early");
        assert!(last.followed_by(true, false));
        last.clear();
        assert!(!last.followed_by(true, false), "behind a gate");
        assert!(!last.followed_by(true, true), "with something between them");
        assert!(!last.followed_by(true, false), "and with something behind it");
    }

    #[test]
    fn a_driver_that_refuses_is_asked_once() {
        for refusal in
            [CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER]
        {
            let (driver, mut asked) = (Driver::new(), Vec::new());
            for _ in 0..2 {
                let result = driver.launch(|request| {
                    asked.push(request);
                    if request.is_some() { refusal } else { CUDA_SUCCESS }
                });
                assert_eq!(result, CUDA_SUCCESS);
            }
            assert_eq!(asked, [Some(REQUEST), None, None]);
        }
    }

    #[test]
    fn what_fails_either_way_says_nothing_about_the_driver() {
        let (driver, mut count) = (Driver::new(), 0);
        for _ in 0..2 {
            let result = driver.launch(|_| {
                count += 1;
                CUDA_ERROR_INVALID_VALUE
            });
            assert_eq!(result, CUDA_ERROR_INVALID_VALUE);
        }
        assert_eq!(count, 4, "it is asked again");
        let result = driver.launch(|request| {
            assert!(request.is_some(), "another failure is the launch's own");
            CUDA_ERROR_INVALID_HANDLE
        });
        assert_eq!(result, CUDA_ERROR_INVALID_HANDLE);
    }
}
