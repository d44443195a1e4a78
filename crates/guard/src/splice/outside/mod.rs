//! What kernels reach outside of themselves: variables of their module, functions, other kernels.
//!
//! A twin is loaded as a module of its own, with variables of its own. Where a kernel uses a variable that the program
//! or another kernel can write, the twin would see another one. Instructions find variables in three ways:
//!
//! * through constant bank 4, which holds addresses that the driver fills in by relocations, one *slot* each;
//! * in constant bank 3, which holds the `__constant__` variables themselves;
//! * in files put together by a linker, through relocations of the instructions.
//!
//! In the first and the last way they also find functions with instructions of their own, which reach for more in turn.
//!
//! Not every variable varies. Texts for `printf` and `assert`, and tables of the mathematical functions, are read only;
//! compilers and headers give them names of their own.

mod banks;

use crate::machine::{Generation, facts};
use banks::Banks;
use cubin::File;
use cubin::file::Symbol;
use std::ops::BitOrAssign;

/// The bank of `__constant__` variables.
const CONSTANTS: &str = ".nv.constant3";

/// Beginnings of names of variables that nobody writes.
const READ_ONLY: [&str; 6] = [
    // Texts.
    "$str",
    "__unnamed_",
    // Tables of sin, cos and tan, and of lgamma.
    "__cudart_",
    "__cr_",
    // Tables of cuRAND's generators.
    "precalc_xorwow_",
    "mrg32k3aM",
];

/// Beginnings of names of functions that start kernels from kernels.
const LAUNCHES: [&str; 3] = ["__cudaCDP2", "__cuda_syscall_cnpv2", "cudaLaunchDevice"];

/// What was reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reach {
    /// Variables that may change.
    pub variables: bool,
    /// Functions that start kernels.
    pub launches: bool,
    /// Functions with instructions in other sections.
    pub functions: bool,
    /// Functions that synchronise the grid.
    pub grid: bool,
}

impl BitOrAssign for Reach {
    fn bitor_assign(&mut self, other: Reach) {
        self.variables |= other.variables;
        self.launches |= other.launches;
        self.functions |= other.functions;
        self.grid |= other.grid;
    }
}

/// A section of instructions, and one with a function that it may call.
type Call = (usize, usize);

/// What the instructions of each section reach, through those they call as well.
pub(super) struct Outside {
    /// By section.
    reach: Vec<Reach>,
    /// By section: whether its first instruction is to be filled in.
    filled_in: Vec<bool>,
}

impl Outside {
    pub fn read(file: &File<'_>, generation: Generation) -> Outside {
        let count = file.sections().len();
        let mut outside = Outside { reach: vec![Reach::default(); count], filled_in: vec![false; count] };
        let mut calls = outside.look_into_banks(file);
        calls.extend(outside.follow_relocations(file));
        calls.retain(|(caller, called)| caller != called);
        calls.sort_unstable_by_key(|&(caller, called)| (called, caller));
        calls.dedup();
        outside.follow_calls(file, generation, &calls);
        outside
    }

    /// What the instructions in a section reach.
    pub fn reached_by(&self, text: usize) -> Reach {
        self.reach[text]
    }

    /// Whether the first instruction is not what it is until the driver has filled it in.
    pub fn fills_in_beginning(&self, text: usize) -> bool {
        self.filled_in[text]
    }

    fn look_into_banks(&mut self, file: &File<'_>) -> Vec<Call> {
        let mut calls = Vec::new();
        let banks = Banks::read(file);
        if banks.are_harmless() {
            return calls;
        }
        let mut seen = vec![false; self.reach.len()];
        for symbol in file.symbols().iter().filter(|symbol| symbol.is_function()) {
            let text = symbol.section;
            if text != 0 && text < seen.len() && !std::mem::replace(&mut seen[text], true) {
                self.reach[text] |= banks.reached_by(&file.sections()[text].data, |called| {
                    calls.push((text, called));
                });
            }
        }
        calls
    }

    fn follow_relocations(&mut self, file: &File<'_>) -> Vec<Call> {
        let mut calls = Vec::new();
        for table in file.sections() {
            let Some(from) = table.relocates().filter(|from| *from < self.reach.len()) else { continue };
            for relocation in table.relocations() {
                let Some(symbol) = file.symbols().get(relocation.symbol) else { continue };
                self.reach[from] |= named(file, symbol);
                self.filled_in[from] |= relocation.offset < 16;
                calls.extend(function(file, symbol).map(|called| (from, called)));
            }
        }
        calls
    }

    /// Callers reach what those they call reach. Calls are in the order of those that are called.
    fn follow_calls(&mut self, file: &File<'_>, generation: Generation, calls: &[Call]) {
        let mut pending: Vec<usize> = calls.iter().map(|&(_, called)| called).collect();
        pending.dedup();
        for &called in &pending {
            let facts = facts(generation, &file.sections()[called].data);
            self.reach[called].grid |= facts.synchronises_grid;
        }
        while let Some(called) = pending.pop() {
            let more = Reach { functions: true, ..self.reach[called] };
            let first = calls.partition_point(|&(_, other)| other < called);
            for &(caller, _) in calls[first..].iter().take_while(|&&(_, other)| other == called) {
                let before = self.reach[caller];
                self.reach[caller] |= more;
                if self.reach[caller] != before {
                    pending.push(caller);
                }
            }
        }
    }
}

/// The section with the instructions of a function, if this symbol is one of this file.
fn function(file: &File<'_>, symbol: &Symbol<'_>) -> Option<usize> {
    let here = symbol.section != 0 && symbol.section < file.sections().len();
    (symbol.is_function() && here).then_some(symbol.section)
}

/// What somebody reaches who uses this symbol.
fn named(file: &File<'_>, symbol: &Symbol<'_>) -> Reach {
    let begins = |names: &[&str]| names.iter().any(|name| symbol.name.starts_with(name));
    if symbol.is_function() {
        return Reach { launches: begins(&LAUNCHES), ..Reach::default() };
    }
    let section = file.sections().get(symbol.section).map_or("", |section| section.name);
    // A variable of another module is nowhere in this file; what has a dot before its name is no variable.
    let elsewhere = symbol.section == 0 && symbol.is_object() && !symbol.name.starts_with('.');
    let memory = section.starts_with(".nv.global") || section == CONSTANTS || elsewhere;
    Reach { variables: memory && !begins(&READ_ONLY), ..Reach::default() }
}
