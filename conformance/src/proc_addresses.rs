//! Whether a shim answers `cuGetProcAddress` as the driver behind it does.
//!
//! Every question is put to both: each name that the header knows, each symbol with the suffixes that symbols have,
//! and names nobody knows; each version at which something changes, its neighbours, and impossible ones; each flag and
//! combination; both forms of the function. The codes and the status must be the same. The addresses must not be: where
//! the driver gives its own export of a symbol, the shim must give *its* export of that symbol, or calls would go past
//! it. What the shim does not export it must pass on as it is.

use crate::answer::Code;
use crate::driver::{CUdriverProcAddressQueryResult_enum, Driver, Function, Lookup, symbol};
use anyhow::{Context as _, Result, ensure};
use std::collections::{BTreeSet, HashMap};
use std::ffi::{CString, c_void};
use std::fmt;
use std::path::Path;
use std::ptr;

/// Names that are in no header.
const STRANGE: &[&str] =
    &["", "cu", "cuNoSuchThing", "cudaMalloc", "CUINIT", "cuInit ", "cu\u{e9}", "dlsym", "printf"];
const SUFFIXES: &[&str] = &["", "_v2", "_v3", "_ptsz", "_ptds", "_v2_ptsz"];
/// For names which no version knows.
const FEW: [i32; 8] = [-1, 0, 2000, 11_030, 12_000, 13_000, 13_010, 14_000];
const FLAGS: &[u64] = &[0, 1, 2, 3, 4, 7];

/// What was asked and what was found.
pub struct Comparison {
    pub asked: usize,
    pub differences: Vec<Difference>,
}

/// A question with two answers.
#[derive(Debug)]
pub struct Difference {
    question: Question,
    driver: Reply,
    shim: Reply,
    wanted: *mut c_void,
}

#[derive(Debug, Clone)]
struct Question {
    name: CString,
    version: i32,
    flags: u64,
    /// Whether it is put to `cuGetProcAddress_v2`.
    second_form: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reply {
    code: Code,
    status: u32,
    address: *mut c_void,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Question { name, version, flags, second_form } = &self.question;
        let form = if *second_form { "cuGetProcAddress_v2" } else { "cuGetProcAddress" };
        let (driver, shim) = (&self.driver, &self.shim);
        write!(
            f,
            "{form}({name:?}, {version}, {flags}): driver {driver}, shim {shim}, wanted {:p}",
            self.wanted
        )
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} status {} at {:p}", self.code, self.status, self.address)
    }
}

/// Opens the driver and the shim with that driver behind it, and puts every question to both.
pub fn compare(driver: &Path, shim: &Path) -> Result<Comparison> {
    let absolute =
        |path: &Path| path.canonicalize().with_context(|| format!("cannot find {}", path.display()));
    let (driver, shim) = (absolute(driver)?, absolute(shim)?);
    // SAFETY: this process has one thread so far, and the driver is opened after this.
    unsafe { std::env::set_var("EBB_DRIVER", &driver) };
    let (driver, shim) = (Driver::open(&driver)?, Driver::open(&shim)?);
    let (behind, before) = (driver.file()?, shim.file()?);
    ensure!(behind != before, "{} answers to both names", behind.display());
    let exports = Exports::of(&driver, &shim);
    let forms: Vec<bool> = [c"cuGetProcAddress", c"cuGetProcAddress_v2"]
        .into_iter()
        .enumerate()
        .filter(|(_, name)| !driver.symbol(name).is_null())
        .map(|(form, _)| form == 1)
        .collect();
    ensure!(!forms.is_empty(), "the driver has no cuGetProcAddress");
    let (versions, few) = (versions(), BTreeSet::from(FEW));
    let mut comparison = Comparison { asked: 0, differences: Vec::new() };
    for name in names()? {
        let known = name.to_str().is_ok_and(is_known);
        for &version in if known { &versions } else { &few } {
            for &flags in FLAGS {
                for &second_form in &forms {
                    let question = Question { name: name.clone(), version, flags, second_form };
                    comparison.asked += 1;
                    comparison.differences.extend(exports.judge(question, &driver, &shim));
                }
            }
        }
    }
    Ok(comparison)
}

/// What the shim must give for each address that the driver gives.
struct Exports {
    twins: HashMap<*mut c_void, Vec<*mut c_void>>,
}

impl Exports {
    fn of(driver: &Driver, shim: &Driver) -> Exports {
        let mut twins: HashMap<_, Vec<_>> = HashMap::new();
        for function in Function::all() {
            let name = CString::new(function.name()).expect("names of functions hold no zero byte");
            let (theirs, ours) = (driver.symbol(&name), shim.symbol(&name));
            if !theirs.is_null() && !ours.is_null() {
                // A driver may have one function under several names; any of them is right then.
                twins.entry(theirs).or_default().push(ours);
            }
        }
        Exports { twins }
    }

    fn judge(&self, question: Question, driver: &Driver, shim: &Driver) -> Option<Difference> {
        let (theirs, ours) = (question.put_to(driver), question.put_to(shim));
        let wanted = match self.twins.get(&theirs.address) {
            Some(twins) if twins.contains(&ours.address) => ours.address,
            Some(twins) => twins[0],
            None => theirs.address,
        };
        let right = Reply { address: wanted, ..theirs };
        (ours != right).then_some(Difference { question, driver: theirs, shim: ours, wanted })
    }
}

impl Question {
    /// The places for the answers hold marks, so that leaving one alone is an answer too.
    fn put_to(&self, driver: &Driver) -> Reply {
        let mut address = ptr::without_provenance_mut(0x5ebb);
        let mut status = CUdriverProcAddressQueryResult_enum(77);
        let (name, version, flags) = (self.name.as_ptr(), self.version, self.flags);
        let answer = if self.second_form {
            driver.cuGetProcAddress_v2(name, &mut address, version, flags, &mut status)
        } else {
            driver.cuGetProcAddress(name, &mut address, version, flags)
        };
        Reply { code: answer.code, status: status.0, address }
    }
}

/// Whether some version has the name.
fn is_known(name: &str) -> bool {
    symbol(name, -1, 0) != Lookup::NotFound
}

fn names() -> Result<Vec<CString>> {
    let known = Function::all()
        .flat_map(|function| SUFFIXES.iter().map(move |suffix| format!("{}{suffix}", function.name())));
    let long = "cu".repeat(5000);
    let names: BTreeSet<String> =
        known.chain(STRANGE.iter().map(|name| (*name).to_owned())).chain([long]).collect();
    names.into_iter().map(|name| Ok(CString::new(name)?)).collect()
}

/// Every version at which some name begins to mean something else, with its neighbours, and some that never were.
fn versions() -> BTreeSet<i32> {
    let step = 10;
    let mut versions = BTreeSet::from([0, -1, i32::MIN, i32::MAX, 1, 14_000]);
    versions.extend((11_030..=13_040).step_by(step));
    let all: Vec<i32> = (0..=14_000).step_by(step).collect();
    for function in Function::all() {
        for flags in [0, 2] {
            let meaning = |version| symbol(function.name(), version, flags);
            if !is_known(function.name()) {
                continue;
            }
            let changes = all.windows(2).filter(|pair| meaning(pair[0]) != meaning(pair[1]));
            versions.extend(changes.flat_map(|pair| [pair[0], pair[1], pair[1] + 10]));
        }
    }
    versions
}
