//! The lock of a segment: a robust pthread mutex, because its holder may be killed at any instruction.
//!
//! When that happens the kernel hands the lock to the next taker with a remark. The taker then mends what the
//! dead may have left half done, which is always possible: everything under the lock can be computed again
//! from what each living context holds.

use std::mem::MaybeUninit;

use super::layout::LockWord;

pub struct Guard<'a>(&'a LockWord);

pub enum Taken<'a> {
    Sound(Guard<'a>),
    /// The last holder died with the lock; the state needs mending.
    FromTheDead(Guard<'a>),
}

impl LockWord {
    /// Makes the mutex anew. Only for a segment that nobody else uses.
    pub fn initialise(&self) {
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let pointer = attributes.as_mut_ptr();
        // SAFETY: `pointer` is valid for writes of an attribute object.
        unsafe { libc::pthread_mutexattr_init(pointer) };
        // SAFETY: the attribute object was initialised above.
        unsafe { libc::pthread_mutexattr_setpshared(pointer, libc::PTHREAD_PROCESS_SHARED) };
        // SAFETY: as above.
        unsafe { libc::pthread_mutexattr_setrobust(pointer, libc::PTHREAD_MUTEX_ROBUST) };
        // SAFETY: the word lies in a mapped segment nobody else uses yet, and the attributes are initialised.
        let result = unsafe { libc::pthread_mutex_init(self.0.get(), pointer) };
        assert_eq!(result, 0, "a mutex with valid attributes can be made");
        // SAFETY: initialised above and not used again.
        unsafe { libc::pthread_mutexattr_destroy(pointer) };
    }

    pub fn take(&self) -> Taken<'_> {
        // SAFETY: whoever published the segment initialised the mutex, and it is never destroyed.
        match unsafe { libc::pthread_mutex_lock(self.0.get()) } {
            libc::EOWNERDEAD => {
                // SAFETY: this thread holds the lock, as EOWNERDEAD says.
                unsafe { libc::pthread_mutex_consistent(self.0.get()) };
                Taken::FromTheDead(Guard(self))
            }
            result => {
                assert_eq!(result, 0, "an initialised robust mutex can be locked");
                Taken::Sound(Guard(self))
            }
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        // SAFETY: a guard exists only while its thread holds the lock.
        unsafe { libc::pthread_mutex_unlock(self.0.0.get()) };
    }
}
