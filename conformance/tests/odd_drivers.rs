//! The shim in front of drivers that are older or newer than the header, that fail, or that are none.
//!
//! The drivers are made here, from a line of source per function: each function looks at no argument and answers a
//! number of its own, so that a call which arrives at the wrong function, or nowhere, is seen.

use conformance::driver::{Driver, Function};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

mod common;

const NO_DEVICE: u32 = 100;
const CALL_REQUIRES_NEWER_DRIVER: u32 = 36;
/// What the functions of a made driver answer: this and their place in the table.
const FIRST: u32 = 1000;

static SHIM: LazyLock<PathBuf> = LazyLock::new(|| common::built("shim"));

/// A driver made of some functions and some more source.
fn driver(
    folder: &Path,
    exports: &dyn Fn(Function) -> bool,
    answer: &dyn Fn(Function) -> u32,
    more: &str,
) -> PathBuf {
    let mut source = String::from("#![allow(non_snake_case)]\n");
    for function in Function::all().filter(|function| exports(*function)) {
        let (name, answer) = (function.name(), answer(function));
        writeln!(source, "#[unsafe(no_mangle)] pub extern \"C\" fn {name}() -> u32 {{ {answer} }}")
            .expect("a string takes all that is written");
    }
    source.push_str(more);
    compiled(folder, "driver", &source)
}

fn compiled(folder: &Path, name: &str, source: &str) -> PathBuf {
    let (text, library) = (folder.join(format!("{name}.rs")), folder.join(format!("lib{name}.so")));
    std::fs::write(&text, source).expect("a temporary folder takes a file");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args([
        "--edition",
        "2024",
        "--crate-type",
        "cdylib",
        "-C",
        "link-arg=-Wl,-soname,libcuda.so.1",
        "-o",
    ]);
    let output = rustc.arg(&library).arg(&text).output().expect("rustc has compiled this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

fn number_of(function: Function) -> u32 {
    FIRST + u32::try_from(function.index()).expect("there are fewer than 65536 functions")
}

/// Runs the conformance binary on the shim with that driver behind it. It must come to an end, and say nothing.
fn through_the_shim(driver: &Path, arguments: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_conformance"))
        .arg("--driver")
        .arg(&*SHIM)
        .args(arguments)
        .env("EBB_DRIVER", driver)
        .env_remove("EBB_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().expect("it is our child").is_none() {
        if Instant::now() > deadline {
            child.kill().expect("it is our child");
            panic!("it hangs: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("it is our child")
}

/// What every function answers when it is called with zeros.
fn answers(driver: &Path) -> BTreeMap<String, u32> {
    let output = through_the_shim(driver, &["--call-all"]);
    let (said, complained) = (
        String::from_utf8(output.stdout).expect("it prints names and numbers"),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{:?} after {:?}: {complained}", output.status, said.lines().last());
    assert_eq!(complained, "");
    let answers: BTreeMap<String, u32> = said
        .lines()
        .map(|line| line.split_once(' ').expect("a name and a number"))
        .map(|(name, code)| (name.to_owned(), code.parse().expect("the shim exports every function")))
        .collect();
    assert_eq!(answers.len(), Function::COUNT);
    answers
}

#[test]
fn every_call_arrives_at_the_function_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let answers = answers(&driver(folder.path(), &|_| true, &number_of, ""));
    for function in Function::all() {
        assert_eq!(answers[function.name()], number_of(function), "{}", function.name());
    }
}

/// What a driver of the time before `cuGetProcAddress_v2`, libraries and extended launches has, and no more.
const OLD: &[&str] = &[
    "cuCtxCreate_v2",
    "cuCtxDestroy_v2",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxGetFlags",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuCtxSetCurrent",
    "cuCtxSynchronize",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGetProcAddress",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD_v2",
    "cuMemsetD8_v2",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

#[test]
fn an_older_driver_gives_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let library = driver(folder.path(), &|function| OLD.contains(&function.name()), &number_of, "");
    let answers = answers(&library);
    for function in Function::all() {
        let known = OLD.contains(&function.name());
        let want = if known { number_of(function) } else { CALL_REQUIRES_NEWER_DRIVER };
        assert_eq!(answers[function.name()], want, "{}", function.name());
    }
}

#[test]
fn a_driver_that_fails_everywhere_is_passed_on() {
    for code in [3, 100, 802, 999] {
        let folder = tempfile::tempdir().unwrap();
        let library = driver(folder.path(), &|_| true, &|_| code, "");
        assert!(answers(&library).values().all(|answer| *answer == code), "{code}");
    }
}

/// Success where nothing was done: places for answers are null or hold what they held.
#[test]
fn a_driver_that_agrees_to_everything_is_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    let library = driver(folder.path(), &|_| true, &|_| 0, "");
    assert!(answers(&library).values().all(|answer| *answer == 0));
    assert!(answers(&common::built("nullcuda")).into_iter().all(|(name, answer)| {
        // These three have something to say, and say it to nobody.
        let speaks =
            ["cuDriverGetVersion", "cuGetProcAddress", "cuGetProcAddress_v2"].contains(&name.as_str());
        answer == u32::from(speaks)
    }));
}

/// Names that no header has: exported ones, and some that only `cuGetProcAddress` knows.
const NEWER: &str = r#"
#[unsafe(no_mangle)] pub extern "C" fn cuFromTheFuture() -> u32 { 77 }
extern "C" fn hidden() -> u32 { 78 }
#[unsafe(no_mangle)] pub extern "C" fn cuDriverGetVersion(version: *mut i32) -> u32 {
    unsafe { *version = 15000 };
    0
}
#[unsafe(no_mangle)] pub unsafe extern "C" fn cuGetProcAddress(
    name: *const std::ffi::c_char, address: *mut *const (), version: i32, _flags: u64,
) -> u32 {
    let name = unsafe { std::ffi::CStr::from_ptr(name) };
    let found = match name.to_bytes() {
        b"cuFromTheFuture" => cuFromTheFuture as *const (),
        b"cuHidden" => hidden as *const (),
        // A version of a known function that came after the header: not the one that is exported.
        b"cuLaunchKernel" if version >= 15000 => hidden as *const (),
        b"cuLaunchKernel" => cuLaunchKernel as *const (),
        _ => std::ptr::null(),
    };
    unsafe { *address = found };
    if found.is_null() { 500 } else { 0 }
}
#[unsafe(no_mangle)] pub unsafe extern "C" fn cuGetProcAddress_v2(
    name: *const std::ffi::c_char, address: *mut *const (), version: i32, flags: u64, status: *mut u32,
) -> u32 {
    let found = unsafe { cuGetProcAddress(name, address, version, flags) };
    if !status.is_null() {
        unsafe { *status = u32::from(found != 0) };
    }
    0
}
"#;

#[test]
fn a_newer_driver_gives_what_nobody_here_knows() {
    let folder = tempfile::tempdir().unwrap();
    let written = ["cuDriverGetVersion", "cuGetProcAddress", "cuGetProcAddress_v2"];
    let library = driver(folder.path(), &|function| !written.contains(&function.name()), &number_of, NEWER);
    let ask = |name: &str, version: i32| {
        let output = through_the_shim(&library, &["--call-found", name, &version.to_string()]);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(ask("cuFromTheFuture", 15000), "77");
    assert_eq!(ask("cuHidden", 15000), "78");
    let launch = Function::named("cuLaunchKernel").unwrap();
    assert_eq!(ask("cuLaunchKernel", 13000), number_of(launch).to_string());
    assert_eq!(ask("cuLaunchKernel", 15000), "78");
    assert_eq!(ask("cuNeverWas", 15000), "absent");
}

#[test]
fn without_a_driver_there_is_no_device() {
    let folder = tempfile::tempdir().unwrap();
    let no_driver =
        compiled(folder.path(), "other", "#[unsafe(no_mangle)] pub extern \"C\" fn unrelated() {}\n");
    let text = folder.path().join("text.so");
    std::fs::write(&text, "not a library").unwrap();
    // Another file with the same contents: only by looking into it can it be known for a shim.
    let copy = folder.path().join("libcuda.so.1");
    std::fs::copy(&*SHIM, &copy).unwrap();
    for behind in
        [&no_driver, &text, &copy, &*SHIM, &folder.path().join("missing.so"), &PathBuf::from("relative.so")]
    {
        let answers = answers(behind);
        let wrong: Vec<_> = answers.iter().filter(|(_, answer)| **answer != NO_DEVICE).take(5).collect();
        assert!(wrong.is_empty(), "{}: {wrong:?}", behind.display());
    }
}

/// Two shims in one process: one in front of the other must find out, not call in circles.
#[test]
fn a_shim_behind_a_preloaded_shim_is_seen_through() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("libcuda.so.1");
    std::fs::copy(&*SHIM, &copy).unwrap();
    let library = driver(folder.path(), &|_| true, &number_of, "");
    let output = Command::new(env!("CARGO_BIN_EXE_conformance"))
        .args(["--driver", "libcuda.so.1", "--call-all"])
        .env("LD_PRELOAD", format!("{}:{}", SHIM.display(), copy.display()))
        .env("EBB_DRIVER", &library)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let init = Function::named("cuInit").unwrap();
    assert!(said.contains(&format!("cuInit {}\n", number_of(init))), "{:?} {said:.200}", output.status);
}

/// A function table that is bound at run time would be bound to a shim which was loaded first.
#[test]
fn libraries_are_bound_to_themselves_and_stay() {
    for package in ["shim", "softcuda", "nullcuda"] {
        let library = common::built(package);
        let elf = |what: &str| {
            let output = Command::new("readelf").args(["--wide", what]).arg(&library).output();
            output.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let (Some(dynamic), Some(relocations)) = (elf("--dynamic"), elf("--relocs")) else {
            println!("there is no readelf here, so the libraries cannot be looked into");
            return;
        };
        assert!(dynamic.contains("[libcuda.so.1]"), "{package} goes by another name: {dynamic}");
        assert!(dynamic.contains("NODELETE"), "{package} can be unloaded: {dynamic}");
        let bound_late = relocations.lines().find(|line| {
            line.split_whitespace()
                .any(|word| Function::named(word.split('@').next().unwrap_or_default()).is_some())
        });
        assert_eq!(bound_late, None, "{package} looks for its own functions at run time");
        assert!(
            relocations.matches("R_X86_64_RELATIVE").count() >= Function::COUNT,
            "{package} has no table"
        );
    }
}

/// The table of the null driver holds the null driver's functions even where a shim was preloaded.
#[test]
fn a_preloaded_shim_does_not_enter_the_tables_of_the_driver() {
    for package in ["softcuda", "nullcuda"] {
        let behind = common::built(package);
        let output = Command::new(env!("CARGO_BIN_EXE_conformance"))
            .args(["--driver", "libcuda.so.1", "--call-found", "cuDriverGetVersion", "13000"])
            .env("LD_PRELOAD", &*SHIM)
            .env("EBB_DRIVER", &behind)
            .output()
            .unwrap();
        // With null for a place, which the driver refuses; a shim that called itself would never answer.
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "1", "{package}: {:?}", output.status);
    }
    // Only to be sure that the test opens what it says.
    assert!(Driver::open(&common::built("nullcuda")).unwrap().file().unwrap().ends_with("libnullcuda.so"));
}
