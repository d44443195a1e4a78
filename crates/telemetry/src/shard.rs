//! In which of several places a thread writes.
//!
//! Where many threads change one word, its line goes back and forth between processors, which takes longer than the change.
//! So what every launch changes is there several times, and threads that run at the same time seldom meet.

/// How many places there are.
pub(crate) const SHARDS: usize = 16;

/// The place of this thread. The thread pointer tells threads apart and costs one instruction, where a thread-local
/// variable of a loaded library costs a call.
#[inline]
pub(crate) fn of_this_thread() -> usize {
    let mixed = thread_pointer().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SHARDS.ilog2())) as usize
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: the first word behind fs is the thread control block's own address, by the ABI of this system.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly, pure))
    };
    pointer
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn thread_pointer() -> u64 {
    let pointer: u64;
    // SAFETY: reads a register that every thread has.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags))
    };
    pointer
}

const _: () = assert!(SHARDS.is_power_of_two());
