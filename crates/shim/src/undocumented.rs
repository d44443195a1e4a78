//! Functions that drivers export and no header declares.
//!
//! Their arguments are unknown, so they cannot be written as functions: each is a jump that leaves all registers and
//! the stack as they came. The names were read off a driver of the 580 line; `ebb doctor` says whether the installed one
//! has more. Its exported *variables*, which debuggers look for in the driver's own file, stay there.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::next;

/// One slot per function: null until the driver has been opened, then its function or [`absent`].
macro_rules! undocumented {
    ($($name:ident)*) => {
        #[allow(non_upper_case_globals)]
        mod slots {
            use super::*;
            $(pub static $name: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());)*
        }

        /// Tells each slot where its function is.
        pub fn fill(address_of: impl Fn(&CStr) -> *mut c_void) {
            $({
                let name = CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes());
                let found = address_of(name.expect("names of functions hold no zero byte"));
                let address = if found.is_null() { absent as *mut c_void } else { found };
                // SYNC(driver-open): pairs with the load in the jump.
                slots::$name.store(address, Ordering::Release);
            })*
        }

        #[cfg(target_arch = "x86_64")]
        #[allow(non_snake_case)]
        mod jumps {
            use super::*;
            $(
                /// # Safety
                /// As whoever calls it knows.
                #[unsafe(naked)]
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $name() {
                    // The six registers of arguments are kept over the call that opens the driver; seven words leave
                    // the stack aligned for it.
                    std::arch::naked_asm!(
                        "mov rax, qword ptr [rip + {slot}]",
                        "test rax, rax",
                        "jnz 2f",
                        "push rdi",
                        "push rsi",
                        "push rdx",
                        "push rcx",
                        "push r8",
                        "push r9",
                        "sub rsp, 8",
                        "call {open}",
                        "add rsp, 8",
                        "pop r9",
                        "pop r8",
                        "pop rcx",
                        "pop rdx",
                        "pop rsi",
                        "pop rdi",
                        "mov rax, qword ptr [rip + {slot}]",
                        "test rax, rax",
                        "jnz 2f",
                        "lea rax, [rip + {absent}]",
                        "2:",
                        "jmp rax",
                        slot = sym slots::$name,
                        open = sym open,
                        absent = sym absent,
                    )
                }
            )*
        }
    };
}
undocumented! {
    cuEGLApiInit
    cuMemGetAttribute
    cuMemGetAttribute_v2
    cudbgApiAttach
    cudbgApiDetach
    cudbgApiInit
    cudbgGetAPI
    cudbgGetAPIVersion
    cudbgMain
    cudbgReportDriverApiError
    cudbgReportDriverInternalError
}

extern "C" fn open() {
    next::open();
}

extern "C" fn absent() -> u32 {
    next::absence().0
}
