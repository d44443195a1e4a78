//! The symbols of the library, but for those that are answered here.
//!
//! The arguments of a function are not known, so it cannot be written as one: each is a jump that leaves the stack and all
//! registers in which arguments may lie as they came. Only `r11` is used, which the ABI gives to jumps like these.

use std::ffi::c_int;

/// Says that a library is ebb's own, so that it is not taken for NVIDIA's.
#[unsafe(no_mangle)]
pub extern "C" fn ebb_nvml_version() -> c_int {
    1
}

#[cfg(target_arch = "x86_64")]
mod symbols {
    use crate::names::for_each_name;
    use crate::next::{Place, SLOTS, resolve};

    const WORD: usize = size_of::<usize>();

    macro_rules! jumps {
        (answered { $($answered:ident)* } passed { $($passed:ident)* }) => {
            $(
                /// # Safety
                /// As NVIDIA's manual says.
                #[unsafe(naked)]
                #[unsafe(no_mangle)]
                #[allow(non_snake_case)]
                pub unsafe extern "C" fn $passed() {
                    // SYNC(library-open): a load on this architecture acquires, and pairs with the exchange in `next::fill`.
                    std::arch::naked_asm!(
                        "mov r11, qword ptr [rip + {slots} + {offset}]",
                        "test r11, r11",
                        "jz 2f",
                        "jmp r11",
                        "2:",
                        "mov r11d, {place}",
                        "jmp {first}",
                        slots = sym SLOTS,
                        offset = const Place::$passed as usize * WORD,
                        place = const Place::$passed as usize,
                        first = sym first,
                    )
                }
            )*
        };
    }
    for_each_name!(jumps);

    /// The first call of a function, whose place is in `r11`: asks where it is, and goes there.
    ///
    /// Kept over the question are the six registers of integer arguments, `rax` (which tells functions with any number of
    /// arguments how many are in vector registers), and of the vector registers the halves in which a `float` or a `double` can
    /// be; no function of NVML takes more than that in one. Seven words and the return address, and eight vectors of sixteen
    /// bytes, leave the stack aligned for the call.
    ///
    /// # Safety
    /// Only the jumps above come here.
    #[unsafe(naked)]
    unsafe extern "C" fn first() {
        std::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "push rax",
            "sub rsp, 128",
            "movups xmmword ptr [rsp], xmm0",
            "movups xmmword ptr [rsp + 16], xmm1",
            "movups xmmword ptr [rsp + 32], xmm2",
            "movups xmmword ptr [rsp + 48], xmm3",
            "movups xmmword ptr [rsp + 64], xmm4",
            "movups xmmword ptr [rsp + 80], xmm5",
            "movups xmmword ptr [rsp + 96], xmm6",
            "movups xmmword ptr [rsp + 112], xmm7",
            "mov rdi, r11",
            "call {resolve}",
            "mov r11, rax",
            "movups xmm0, xmmword ptr [rsp]",
            "movups xmm1, xmmword ptr [rsp + 16]",
            "movups xmm2, xmmword ptr [rsp + 32]",
            "movups xmm3, xmmword ptr [rsp + 48]",
            "movups xmm4, xmmword ptr [rsp + 64]",
            "movups xmm5, xmmword ptr [rsp + 80]",
            "movups xmm6, xmmword ptr [rsp + 96]",
            "movups xmm7, xmmword ptr [rsp + 112]",
            "add rsp, 128",
            "pop rax",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp r11",
            resolve = sym resolve,
        )
    }
}
