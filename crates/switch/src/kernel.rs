//! The way to the driver.

use core::fmt;

use rustix::fd::BorrowedFd;
use rustix::ioctl::Updater;

use crate::wire::Control;

/// Makes a control call. The system's own is [`System`]; tests make one up.
pub trait Kernel {
    /// One `ioctl` on `fd`, with request [`Control::REQUEST`]. The address of `parameters` is put into the call by
    /// whoever implements this, so that nobody else writes addresses into bytes. What the driver answers is left in
    /// `call` and in `parameters`.
    fn ioctl(&self, fd: i32, call: &mut Control, parameters: &mut [u8]) -> Result<(), Errno>;
}

impl<K: Kernel + ?Sized> Kernel for &K {
    fn ioctl(&self, fd: i32, call: &mut Control, parameters: &mut [u8]) -> Result<(), Errno> {
        (**self).ioctl(fd, call, parameters)
    }
}

/// Why a system call failed, in the system's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl fmt::Display for Errno {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "errno {}", self.0)
    }
}

/// The kernel of this machine, called directly: not through the C library, whose `ioctl` may be interposed and whose
/// `errno` belongs to the program.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

/// A call that a signal interrupts is made again, so often.
const ATTEMPTS: usize = 16;

impl Kernel for System {
    fn ioctl(&self, fd: i32, call: &mut Control, parameters: &mut [u8]) -> Result<(), Errno> {
        if fd < 0 {
            return Err(Errno(rustix::io::Errno::BADF.raw_os_error()));
        }
        call.set_parameters(parameters.as_mut_ptr().expose_provenance() as u64, parameters.len() as u32);
        let mut result = Err(rustix::io::Errno::INTR);
        for _ in 0..ATTEMPTS {
            result = once(fd, call);
            if result != Err(rustix::io::Errno::INTR) {
                break;
            }
        }
        // The address means nothing after the call, and must not be found there by another.
        call.set_parameters(0, parameters.len() as u32);
        result.map_err(|errno| Errno(errno.raw_os_error()))
    }
}

fn once(fd: i32, call: &mut Control) -> rustix::io::Result<()> {
    // SAFETY: not negative; if it is closed meanwhile, the call fails or is refused as unknown by another file's driver.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    // SAFETY: this request reads and writes the bytes of a `Control`, and the parameters that it names.
    let update = unsafe { Updater::<{ Control::REQUEST }, Control>::new(call) };
    // SAFETY: the address in the call is that of parameters of that length, which the caller has borrowed to us.
    unsafe { rustix::ioctl::ioctl(fd, update) }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_file_that_is_not_the_driver_refuses() {
        let mut call = Control::new(1, 2, 3);
        let mut parameters = [0; 8];
        assert_eq!(System.ioctl(-1, &mut call, &mut parameters), Err(Errno(9)));
        // A number that no process here has open.
        assert_eq!(System.ioctl(1 << 20, &mut call, &mut parameters), Err(Errno(9)));
        let other = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(System.ioctl(other.as_raw_fd(), &mut call, &mut parameters), Err(Errno(25)));
        assert_eq!(call.parameters(), (0, 8));
        assert!(!call.status().is_ok());
    }
}
