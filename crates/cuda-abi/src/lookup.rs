//! Which function a program means when it asks for a name, a version and a flag.
//!
//! The rule, as a driver of the 580 line answers it for every name, version and flag we know:
//!
//! - A name is known by its base alone: `cuMemAlloc` is found, `cuMemAlloc_v2` and `cuLaunchKernel_ptsz` are not.
//! - Of a name's versions, the newest counts which is not newer than the version asked for. A version of 0 is
//!   older than everything; a negative one is newer than everything.
//! - Under the per-thread flag a name with per-thread versions has only those, even where an older plain one
//!   would have served: `cuMemcpyHtoD` at 3.2 is too low then. A name without any ignores the flag.

use crate::generated::functions::NAMES;
use crate::generated::procs::PROCS;
use crate::{CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, Function, Lookup};

/// The versions of one name, oldest first, each with the index of its symbol.
pub(crate) struct Proc {
    pub name: &'static str,
    pub plain: &'static [(u32, u16)],
    pub per_thread: &'static [(u32, u16)],
}

impl Function {
    /// How many functions there are.
    pub const COUNT: usize = NAMES.len();

    /// The function which the symbol `name` stands for, `cuMemAlloc_v2` say.
    pub fn named(name: &str) -> Option<Function> {
        let index = NAMES.binary_search(&name).ok()?;
        Some(Function(u16::try_from(index).expect("there are fewer than 65536 functions")))
    }

    /// The symbol as a library exports it.
    pub fn name(self) -> &'static str {
        NAMES[self.index()]
    }

    /// The place in the order in which [`for_each_function!`](crate::for_each_function) deals: sorted by name.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// All of them, in order.
    pub fn all() -> impl ExactSizeIterator<Item = Function> + Clone {
        (0..NAMES.len() as u16).map(Function)
    }
}

/// What `cuGetProcAddress(name, version, flags)` means; see [`Lookup`].
///
/// `name` is a base name such as `cuMemAlloc`, `version` a CUDA version such as 12050. Of `flags` only
/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM` matters here; whether unknown ones and versions newer than
/// the driver's are refused is the driver's affair.
pub fn symbol(name: &str, version: i32, flags: u64) -> Lookup {
    let Ok(index) = PROCS.binary_search_by_key(&name, |proc| proc.name) else { return Lookup::NotFound };
    let proc = &PROCS[index];
    let wants_per_thread = flags & u64::from(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM.0) != 0;
    let versions = if wants_per_thread && !proc.per_thread.is_empty() { proc.per_thread } else { proc.plain };
    let asked = version.cast_unsigned();
    match versions.iter().rev().find(|(since, _)| *since <= asked) {
        Some((_, index)) => Lookup::Found(Function(*index)),
        None => Lookup::VersionTooLow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: u64 = 0;
    const LEGACY: u64 = 1;
    const PER_THREAD: u64 = 2;

    fn found(name: &str, version: i32, flags: u64) -> &'static str {
        match symbol(name, version, flags) {
            Lookup::Found(function) => function.name(),
            other => panic!("{name} at {version} with {flags}: {other:?}"),
        }
    }

    #[test]
    fn the_newest_version_not_newer_than_asked_is_found() {
        assert_eq!(found("cuMemAlloc", 2000, PLAIN), "cuMemAlloc");
        assert_eq!(found("cuMemAlloc", 3019, PLAIN), "cuMemAlloc");
        assert_eq!(found("cuMemAlloc", 3020, PLAIN), "cuMemAlloc_v2");
        assert_eq!(found("cuMemAlloc", 13000, PLAIN), "cuMemAlloc_v2");
    }

    #[test]
    fn every_context_creation_has_its_version() {
        let expected = [
            (2000, "cuCtxCreate"),
            (3020, "cuCtxCreate_v2"),
            (11030, "cuCtxCreate_v2"),
            (11040, "cuCtxCreate_v3"),
            (12040, "cuCtxCreate_v3"),
            (12050, "cuCtxCreate_v4"),
            (13040, "cuCtxCreate_v4"),
        ];
        for (version, name) in expected {
            assert_eq!(found("cuCtxCreate", version, PLAIN), name);
        }
    }

    #[test]
    fn the_flag_chooses_the_default_stream() {
        assert_eq!(found("cuLaunchKernel", 13000, PLAIN), "cuLaunchKernel");
        assert_eq!(found("cuLaunchKernel", 13000, LEGACY), "cuLaunchKernel");
        assert_eq!(found("cuLaunchKernel", 13000, PER_THREAD), "cuLaunchKernel_ptsz");
        assert_eq!(found("cuMemcpyHtoD", 13000, PER_THREAD), "cuMemcpyHtoD_v2_ptds");
        assert_eq!(found("cuStreamGetCaptureInfo", 11030, PER_THREAD), "cuStreamGetCaptureInfo_v2_ptsz");
    }

    #[test]
    fn a_function_without_streams_ignores_the_flag() {
        assert_eq!(found("cuMemAlloc", 13000, PER_THREAD), "cuMemAlloc_v2");
    }

    #[test]
    fn per_thread_versions_stand_alone() {
        assert_eq!(symbol("cuMemcpyHtoD", 3020, PER_THREAD), Lookup::VersionTooLow);
        assert_eq!(symbol("cuLaunchKernel", 4000, PER_THREAD), Lookup::VersionTooLow);
    }

    #[test]
    fn a_version_before_the_first_is_too_low() {
        assert_eq!(symbol("cuMemAllocAsync", 11010, PLAIN), Lookup::VersionTooLow);
        assert_eq!(symbol("cuInit", 0, PLAIN), Lookup::VersionTooLow);
        assert_eq!(found("cuInit", -1, PLAIN), "cuInit");
    }

    #[test]
    fn names_are_base_names() {
        for name in ["cuMemAlloc_v2", "cuLaunchKernel_ptsz", "cuNoSuchThing", "", "cuI", "cuInitt"] {
            assert_eq!(symbol(name, 13000, PLAIN), Lookup::NotFound, "{name}");
        }
    }

    #[test]
    fn a_renamed_function_keeps_its_old_name_too() {
        assert_eq!(found("cuGraphInstantiate", 13000, PLAIN), "cuGraphInstantiate_v2");
        assert_eq!(found("cuGraphInstantiateWithFlags", 13000, PLAIN), "cuGraphInstantiateWithFlags");
    }

    #[test]
    fn tables_are_sorted_and_whole() {
        assert!(NAMES.is_sorted_by(|a, b| a < b));
        assert!(PROCS.is_sorted_by(|a, b| a.name < b.name));
        let mut reached = [false; Function::COUNT];
        for proc in &PROCS {
            for versions in [proc.plain, proc.per_thread] {
                assert!(versions.is_sorted_by(|a, b| a < b), "{}", proc.name);
                versions.iter().for_each(|(_, index)| reached[usize::from(*index)] = true);
            }
        }
        assert!(reached.iter().all(|reached| *reached), "every symbol can be had by some version");
    }

    #[test]
    fn functions_know_their_names() {
        let init = Function::named("cuInit").unwrap();
        assert_eq!(init.name(), "cuInit");
        assert_eq!(Function::all().nth(init.index()), Some(init));
        assert_eq!(Function::named("cuNoSuchThing"), None);
    }
}
