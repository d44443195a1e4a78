//! Every function called with nothing but zeros: which function answers, not what it does.
//!
//! Drivers made for tests look at no argument and answer each function with a code of its own, so a shim in front of
//! one shows whether each call arrives where it should. A real driver would follow the null pointers.

use crate::driver::{Driver, Function};
use anyhow::Result;
use std::ffi::{CString, c_void};
use std::io::Write;
use std::ptr;

/// More than the longest list of arguments has, structs by value included.
type WithZeros = unsafe extern "C" fn(
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
    u64,
) -> u32;

/// Prints `name code` for every function, `name absent` where the library has none.
///
/// The name goes out before the call is made, so that the last line of a process that died says where.
pub fn call_all(driver: &Driver) {
    for function in Function::all() {
        print!("{} ", function.name());
        let _ = std::io::stdout().flush();
        let name = CString::new(function.name()).expect("names of functions hold no zero byte");
        let address = driver.symbol(&name);
        if address.is_null() {
            println!("absent");
        } else {
            println!("{}", call(address));
        }
    }
}

/// Asks `cuGetProcAddress` for a name and prints what the function found there answers.
pub fn call_found(driver: &Driver, name: &str, version: i32) -> Result<()> {
    let (name, mut address) = (CString::new(name)?, ptr::null_mut());
    let _ = driver.cuGetProcAddress(name.as_ptr(), &mut address, version, 0);
    if address.is_null() {
        println!("absent");
    } else {
        println!("{}", call(address));
    }
    Ok(())
}

fn call(address: *mut c_void) -> u32 {
    // SAFETY: a function of the C ABI, in which a caller may pass more than the callee looks at.
    let function: WithZeros = unsafe { std::mem::transmute(address) };
    // SAFETY: zeros are valid for a driver that looks at no argument, which the user of this has.
    unsafe { function(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }
}
