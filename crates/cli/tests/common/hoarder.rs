//! A program that allocates what it is told to.
//!
//! It is this test binary itself, started by `ebb run` to run one ignored test, which reads commands line by line and
//! answers each with one line. It finds the driver as programs do, by its name, and knows nothing of ebb.

use std::ffi::{c_int, c_void};
use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use cuda_abi::{
    CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ATTACH_GLOBAL, CU_MEM_LOCATION_TYPE_DEVICE, CUdeviceptr,
    CUmemAllocationProp, CUmemLocation,
};

use crate::driver::{Driver, call};

/// The name of the test that is the program.
const PROGRAM: &str = "hoarder";
/// What its answers begin with; the test harness prints lines of its own.
const MARK: &str = "> ";
/// Only a run with this in its environment is meant to be the program.
const VARIABLE: &str = "EBB_TEST_HOARDER";

/// The program, at work.
pub struct Hoarder {
    pub child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Hoarder {
    /// Starts it behind what `run` has so far, which ends with what stands before a command.
    pub fn start(mut run: Command) -> Hoarder {
        run.arg(std::env::current_exe().unwrap()).args([PROGRAM, "--exact", "--ignored", "--nocapture"]);
        run.env(VARIABLE, "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = run.spawn().unwrap();
        let commands = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Hoarder { child, commands, answers }
    }

    pub fn ask(&mut self, command: &str) -> String {
        self.say(command);
        self.hear()
    }

    pub fn say(&mut self, command: &str) {
        writeln!(self.commands, "{command}").unwrap();
    }

    pub fn hear(&mut self) -> String {
        loop {
            let line = self.answers.next().expect("it answers").unwrap();
            // The harness does not end its line before the test prints.
            if let Some((_, answer)) = line.split_once(MARK) {
                return answer.to_owned();
            }
        }
    }

    /// What it was given by a command that should work, to be named in others.
    pub fn gets(&mut self, command: &str) -> String {
        let answer = self.ask(command);
        answer.strip_prefix("ok ").unwrap_or_else(|| panic!("{command}: {answer}")).to_owned()
    }

    pub fn is_refused(&mut self, command: &str) {
        assert_eq!(self.ask(command), "error 2", "{command}");
    }

    pub fn does(&mut self, command: &str) {
        assert_eq!(self.ask(command), "ok", "{command}");
    }

    /// What `cuMemGetInfo` says, in mebibytes: what is free, and the total.
    pub fn info(&mut self) -> (u64, u64) {
        let said = self.gets("info");
        let (free, total) = said.split_once(' ').unwrap();
        (free.parse().unwrap(), total.parse().unwrap())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn end(mut self) {
        self.say("end");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Hoarder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program.
pub fn program() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    let driver = Driver::open();
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        if words == ["end"] {
            return;
        }
        let answer = match driver.obey(&words) {
            Ok(answer) if answer.is_empty() => "ok".to_owned(),
            Ok(answer) => format!("ok {answer}"),
            Err(code) => format!("error {code}"),
        };
        println!("{MARK}{answer}");
    }
}

const MIB: usize = 1 << 20;

impl Driver {
    /// Amounts are in mebibytes, and what is given out is a number.
    fn obey(&self, words: &[&str]) -> Result<String, u32> {
        let number = |at: usize| words[at].parse::<usize>().unwrap();
        let bytes = |at| number(at) * MIB;
        let mut given: CUdeviceptr = 0;
        let place = &raw mut given;
        let stream: *mut c_void = std::ptr::null_mut();
        match words[0] {
            "alloc" => call!(self, cuMemAlloc_v2(place => *mut u64, bytes(1) => usize))?,
            "managed" => {
                let flags = CU_MEM_ATTACH_GLOBAL.0;
                call!(self, cuMemAllocManaged(place => *mut u64, bytes(1) => usize, flags => u32))?;
            }
            "async" => {
                call!(self, cuMemAllocAsync(place => *mut u64, bytes(1) => usize, stream => *mut c_void))?;
            }
            "pitch" => {
                let (mut pitch, rows) = (0usize, bytes(1) / 512);
                let pitch = &raw mut pitch;
                call!(self, cuMemAllocPitch_v2(place => *mut u64, pitch => *mut usize, 1 => usize, rows => usize, 4 => u32))?;
            }
            "host" => {
                call!(self, cuMemAllocHost_v2(place.cast() => *mut *mut c_void, bytes(1) => usize))?;
            }
            "create" => {
                let mut location = CUmemLocation { type_: CU_MEM_LOCATION_TYPE_DEVICE, ..Default::default() };
                location.__bindgen_anon_1.id = 0;
                let properties = CUmemAllocationProp {
                    type_: CU_MEM_ALLOCATION_TYPE_PINNED,
                    location,
                    ..Default::default()
                };
                let properties = &raw const properties;
                call!(self, cuMemCreate(place => *mut u64, bytes(1) => usize, properties => *const CUmemAllocationProp, 0 => u64))?;
            }
            "map" => {
                call!(self, cuMemAddressReserve(place => *mut u64, bytes(2) => usize, 0 => usize, 0 => u64, 0 => u64))?;
                call!(self, cuMemMap(given => u64, bytes(2) => usize, 0 => usize, number(1) as u64 => u64, 0 => u64))?;
            }
            "unmap" => {
                call!(self, cuMemUnmap(number(1) as u64 => u64, bytes(2) => usize))?;
            }
            "release" => call!(self, cuMemRelease(number(1) as u64 => u64))?,
            "free" => call!(self, cuMemFree_v2(number(1) as u64 => u64))?,
            "free-async" => {
                call!(self, cuMemFreeAsync(number(1) as u64 => u64, stream => *mut c_void))?;
            }
            "works" => return self.works(),
            "info" => {
                let (mut free, mut total) = (0usize, 0usize);
                call!(self, cuMemGetInfo_v2(&raw mut free => *mut usize, &raw mut total => *mut usize))?;
                return Ok(format!("{} {}", free / MIB, total / MIB));
            }
            "total" => {
                let mut total = 0usize;
                call!(self, cuDeviceTotalMem_v2(&raw mut total => *mut usize, 0 => c_int))?;
                return Ok((total / MIB).to_string());
            }
            "reset" => {
                call!(self, cuDevicePrimaryCtxReset_v2(0 => c_int))?;
                self.make_current();
            }
            other => panic!("{other}"),
        }
        Ok(if given == 0 { String::new() } else { given.to_string() })
    }

    /// Memory can be had, written and read.
    fn works(&self) -> Result<String, u32> {
        let (mut given, mut read) = (0u64, [0u8; 64]);
        call!(self, cuMemAlloc_v2(&raw mut given => *mut u64, 64 => usize))?;
        call!(self, cuMemsetD8_v2(given => u64, 7 => u8, 64 => usize))?;
        call!(self, cuMemcpyDtoH_v2(read.as_mut_ptr().cast() => *mut c_void, given => u64, 64 => usize))?;
        call!(self, cuMemFree_v2(given => u64))?;
        Ok(if read == [7; 64] { String::new() } else { "wrong".to_owned() })
    }
}
