//! Programs that open the driver by its path.
//!
//! Preloaded, this library answers every `dlopen("libcuda.so.1")` by its name; but a program may look for the file
//! itself and open `/usr/lib/…/libcuda.so.1`, and would then reach the driver round us. So `dlopen` is interposed:
//! an open of the very file that is the driver behind gets this library instead, and the ledger notes it. Every other
//! open passes as it came.
//!
//! `dlopen` looks at its return address to learn who calls, and searches that caller's own paths. A wrapper would be
//! the caller itself and break them, so this one is a jump: the frame the real function sees is the program's.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use telemetry::{Counter, Note};

use crate::{next, own, watch};

type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// The real `dlopen`, once it has been asked for.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Opens a library by the real `dlopen`.
pub fn open(path: &CStr) -> *mut c_void {
    // SAFETY: what `real` gives is a `dlopen`.
    let open: Open = unsafe { std::mem::transmute(real()) };
    // SAFETY: a C string, and flags that exist.
    unsafe { open(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }
}

fn real() -> *mut c_void {
    let known = REAL.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: a C string; the next library behind this one that has the name is asked for.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) };
    let usable = if found.is_null() { no_loader as *mut c_void } else { found };
    REAL.store(usable, Ordering::Relaxed);
    usable
}

/// Where there is no loader nothing can be loaded.
extern "C" fn no_loader(_: *const c_char, _: c_int) -> *mut c_void {
    std::ptr::null_mut()
}

#[cfg(target_arch = "x86_64")]
mod interposed {
    use super::*;

    /// `dlopen(path, flags)`: asks `seen` which path to open, and jumps on with everything else as it was.
    ///
    /// # Safety
    /// As the manual of `dlopen` says.
    #[unsafe(naked)]
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void {
        // The two arguments are kept on the stack, which three words leave aligned for the call.
        std::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "sub rsp, 8",
            "call {seen}",
            "add rsp, 8",
            "pop rsi",
            "pop rdi",
            "mov rdi, rax",
            "mov rax, qword ptr [rip + {real}]",
            "jmp rax",
            seen = sym seen,
            real = sym REAL,
        )
    }
}

/// Which path a program that opens `path` is given. Also makes sure that the real `dlopen` is known.
extern "C" fn seen(path: *const c_char) -> *const c_char {
    real();
    if path.is_null() {
        return path;
    }
    // SAFETY: the argument of a `dlopen` that is not null is a C string.
    let text = unsafe { CStr::from_ptr(path) };
    if !names_a_driver(text.to_bytes()) {
        return path;
    }
    redirect(text).map_or(path, CStr::as_ptr)
}

/// A path, not a plain name, of a file that is called as drivers are.
fn names_a_driver(path: &[u8]) -> bool {
    let Some(slash) = path.iter().rposition(|&byte| byte == b'/') else { return false };
    path[slash + 1..].starts_with(b"libcuda.so")
}

#[cold]
fn redirect(path: &CStr) -> Option<&'static CStr> {
    let own = own::path()?;
    if !next::is_behind(path) {
        return None;
    }
    crate::log::say!("{path:?} was opened by its path and is answered by ebb");
    watch::quietly("dlopen", |watch| {
        watch.ledger.add(Counter::PathsRedirected, 1);
        watch.ledger.note(Note::OpenedByPath);
        watch.ledger.detail(path.to_bytes());
    });
    Some(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_drivers_are_looked_at() {
        assert!(names_a_driver(b"/usr/lib/x86_64-linux-gnu/libcuda.so.1"));
        assert!(names_a_driver(b"./libcuda.so"));
        assert!(names_a_driver(b"/usr/lib/libcuda.so.580.159.04"));
        assert!(!names_a_driver(b"libcuda.so.1"));
        assert!(!names_a_driver(b"/usr/lib/libcudart.so.13"));
        assert!(!names_a_driver(b"/usr/lib/libcudadebugger.so.1"));
        assert!(!names_a_driver(b""));
    }
}
