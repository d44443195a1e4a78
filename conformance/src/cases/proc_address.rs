//! `cuGetProcAddress`: the table by which the runtime and everybody above it finds the driver.

use crate::answer::Code;
use crate::driver::*;
use crate::suite::Case;
use anyhow::{Result, bail, ensure};
use std::ffi::{CString, c_void};
use std::ptr;

pub const CASES: &[Case] = &[
    Case::bare("proc_address/answers_the_exported_symbols", table),
    Case::bare("proc_address/refusals", refusals),
    Case::bare("proc_address/found_functions_work", works),
];

fn table(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    let mut newest = 0;
    driver.cuDriverGetVersion(&mut newest).ok()?;
    // A library in front of a driver exports every name, also those that the driver behind lacks and does not give.
    let stands_in_front = !driver.symbol(c"ebb_shim_version").is_null();
    let (mut asked, mut absent) = (0, Vec::new());
    let mut wrong = Vec::new();
    for name in base_names() {
        for &version in VERSIONS.iter().filter(|&&version| version <= newest) {
            for flag in [0u64, 1, 2] {
                let Lookup::Found(function) = symbol(name, version, flag) else { continue };
                asked += 1;
                let exported = driver.symbol(&CString::new(function.name())?);
                let (answer, got) = ask(driver, name, version, flag)?;
                if got.is_null() && (exported.is_null() || stands_in_front) {
                    absent.push(function.name());
                } else if got != exported || answer != Code::SUCCESS {
                    let other = if got.is_null() { answer.to_string() } else { who_is(driver, got) };
                    wrong.push(format!("{name} {version} {flag}: {other}, wanted {}", function.name()));
                }
            }
        }
    }
    absent.sort_unstable();
    absent.dedup();
    println!("note: {asked} questions asked; {} symbols of the header are not in this driver", absent.len());
    if !absent.is_empty() {
        println!("absent: {}", absent.join(" "));
    }
    if !wrong.is_empty() {
        bail!("{} of {asked} answers are wrong: {}", wrong.len(), wrong[..wrong.len().min(12)].join("; "));
    }
    Ok(())
}

fn who_is(driver: &Driver, address: *mut c_void) -> String {
    let names = Function::all().map(Function::name);
    let found = names.filter(|name| CString::new(*name).is_ok_and(|name| driver.symbol(&name) == address));
    let found: Vec<_> = found.collect();
    if found.is_empty() { "an unknown function".into() } else { found.join("=") }
}

fn ask(driver: &Driver, name: &str, version: i32, flag: u64) -> Result<(Code, *mut c_void)> {
    let name = CString::new(name)?;
    let mut found = ptr::null_mut();
    let mut status = CUdriverProcAddressQueryResult_enum(77);
    let answer = driver.cuGetProcAddress_v2(name.as_ptr(), &mut found, version, flag, &mut status);
    Ok((answer.code, found))
}

fn refusals(driver: &Driver) -> Result<()> {
    driver.cuInit(0).ok()?;
    let (not_found, too_old) =
        (CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    let known = driver.symbol(c"cuInit");
    // The call succeeds; that nothing was found is said by the status and by the pointer.
    for (name, version, want) in [
        (c"cuNoSuchThing", 13000, not_found),
        (c"", 13000, not_found),
        (c"cuMemAlloc_v2", 13000, not_found),
        (c"cuMemAllocAsync", 11010, too_old),
        (c"cuInit", 0, too_old),
    ] {
        let (mut found, mut status) = (known, CUdriverProcAddressQueryResult_enum(77));
        driver.cuGetProcAddress_v2(name.as_ptr(), &mut found, version, 0, &mut status).ok()?;
        ensure!(status == want, "{name:?} at {version}: status {status:?}");
        ensure!(found.is_null(), "{name:?} at {version} has an address");
    }
    let (mut found, mut status) = (ptr::null_mut(), CUdriverProcAddressQueryResult_enum(77));
    let name = c"cuInit".as_ptr();
    driver.cuGetProcAddress_v2(name, &mut found, 13000, 8, &mut status).is(Code::INVALID_VALUE)?;
    driver.cuGetProcAddress_v2(name, &mut found, 99_999, 0, &mut status).is(Code::INVALID_VALUE)?;
    // The status is optional.
    driver.cuGetProcAddress_v2(name, &mut found, 13000, 0, ptr::null_mut()).ok()?;
    ensure!(found == known);
    // Version 1 of the function itself has no status at all.
    found = ptr::null_mut();
    driver.cuGetProcAddress(c"cuMemAlloc".as_ptr(), &mut found, 13000, 0).ok()?;
    ensure!(found == driver.symbol(c"cuMemAlloc_v2"));
    Ok(())
}

fn works(driver: &Driver) -> Result<()> {
    // The lookup is allowed before initialisation: cudart does it in that order.
    let (code, address) = ask(driver, "cuDriverGetVersion", 13000, 0)?;
    ensure!(code == Code::SUCCESS && !address.is_null(), "cuDriverGetVersion before cuInit: {code}");
    // SAFETY: the driver says that this is cuDriverGetVersion, whose signature this is.
    let function: unsafe extern "C" fn(*mut i32) -> u32 = unsafe { std::mem::transmute(address) };
    let (mut version, mut direct) = (0, 0);
    // SAFETY: the pointer is to a local integer.
    let result = unsafe { function(&mut version) };
    ensure!(result == 0, "cuDriverGetVersion answered {result}");
    driver.cuDriverGetVersion(&mut direct).ok()?;
    ensure!(version == direct);
    Ok(())
}
