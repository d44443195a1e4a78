//! Other people's products, where a user has built them.
//!
//! Each is given as the folder of its build. [`check`] says whether that is one, before anything starts; [`Rivals`]
//! lays the ground: it starts what the product needs, as a [`Service`](super::Service) in the given private folder, and
//! knows what a worker of each class finds in its environment. Every product is set up as its own documentation says,
//! and where there is a choice, as it suits the latency tenant best; what a reader of figures must know about that goes
//! into the record of every run. `docs/rivals.md` says how each is built and what was seen of it.
//!
//! * `xsched`: a stand-in for the driver and a server that suspends the queues of lower priority
//! * `hami`: a preloaded library that throttles a process by its share of the GPU's time
//! * `nvshare`: a preloaded library and a scheduler that hands the whole GPU from process to process

mod hami;
mod nvshare;
mod xsched;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use installation::Library;
use scenario::Mode;
use serde_json::{Value, json};

use self::xsched::Xsched;
use super::{Absence, Environment, Surroundings};

/// What a build consists of.
struct Parts {
    product: &'static str,
    libraries: &'static [&'static str],
    programs: &'static [&'static str],
}

fn parts(mode: Mode) -> Result<&'static Parts, Absence> {
    match mode {
        Mode::Xsched | Mode::XschedTimeslice => Ok(&xsched::PARTS),
        Mode::Hami => Ok(&hami::PARTS),
        Mode::Nvshare => Ok(&nvshare::PARTS),
        _ => Err(Absence(format!("{mode} is nobody else's product"))),
    }
}

/// Whether a folder holds a build of this product for this machine.
pub fn check(mode: Mode, path: &Path) -> Result<(), Absence> {
    let Parts { product, libraries, programs } = parts(mode)?;
    let refuse = |reason: String| {
        let path = path.display();
        Absence(format!("{path} is no build of {product}: {reason} (docs/rivals.md says how to make one)"))
    };
    for library in *libraries {
        Library::read(&path.join(library)).map_err(|error| refuse(error.to_string()))?;
    }
    for program in *programs {
        let there = fs::metadata(path.join(program))
            .is_ok_and(|is| is.is_file() && is.permissions().mode() & 0o111 != 0);
        if !there {
            return Err(refuse(format!("there is no program {program} in it")));
        }
    }
    Ok(())
}

/// What the rivals of one campaign have in common.
#[derive(Default)]
pub struct Rivals {
    xserver: std::rc::Weak<xsched::Server>,
}

impl Rivals {
    /// Lays the ground of a build that was checked.
    pub fn start(
        &mut self,
        mode: Mode,
        path: &Path,
        folder: &Path,
    ) -> Result<Box<dyn Surroundings>, Absence> {
        // Libraries are found from wherever a worker stands.
        let path = fs::canonicalize(path).map_err(|error| Absence(format!("{}: {error}", path.display())))?;
        match mode {
            Mode::Xsched | Mode::XschedTimeslice => {
                let server = xsched::Server::shared(&mut self.xserver, &path, folder)?;
                Ok(Box::new(Xsched::new(server, &path, folder, mode == Mode::XschedTimeslice)?))
            }
            Mode::Hami => Ok(Box::new(hami::Hami::new(&path, folder))),
            Mode::Nvshare => Ok(Box::new(nvshare::Nvshare::start(&path, folder, nvshare::SOCKET.as_ref())?)),
            _ => Err(Absence(format!("{mode} is nobody else's product"))),
        }
    }
}

/// For the record of a run: what its figures are to be read with.
fn remark(product: &str, remarks: &[&str]) -> Value {
    json!({ "rival": product, "remarks": remarks })
}

fn set(variable: &str, value: impl Into<OsString>) -> (OsString, Option<OsString>) {
    (variable.into(), Some(value.into()))
}

/// A list of paths with one more in front of what this process has.
fn in_front(variable: &str, paths: &[&OsStr]) -> OsString {
    let mut list = paths.join(OsStr::new(":"));
    if let Some(own) = std::env::var_os(variable).filter(|own| !own.is_empty()) {
        list.push(":");
        list.push(own);
    }
    list
}

/// The environment of a worker that has a library preloaded.
fn preload(library: &Path) -> Environment {
    vec![set("LD_PRELOAD", in_front("LD_PRELOAD", &[library.as_os_str()]))]
}

/// A process by the name that the kernel has for it, which ends after fifteen characters.
fn process_named(proc: &Path, name: &str) -> Option<u32> {
    let known = name.get(..15).unwrap_or(name);
    let entries = fs::read_dir(proc).ok()?;
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let comm = fs::read_to_string(proc.join(pid.to_string()).join("comm"));
        comm.is_ok_and(|comm| comm.trim_end() == known)
    })
    .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIVALS: [Mode; 4] = [Mode::Xsched, Mode::XschedTimeslice, Mode::Hami, Mode::Nvshare];

    /// Parts that are what they should be only from outside.
    fn build(mode: Mode) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let Parts { libraries, programs, .. } = parts(mode).unwrap();
        for part in libraries.iter().chain(*programs) {
            let part = folder.path().join(part);
            fs::create_dir_all(part.parent().unwrap()).unwrap();
            fs::copy("/bin/sh", part).unwrap();
        }
        folder
    }

    #[test]
    fn a_build_is_known_by_its_parts() {
        for mode in RIVALS {
            let folder = build(mode);
            assert_eq!(check(mode, folder.path()), Ok(()), "{mode}");
            let Parts { libraries, programs, .. } = parts(mode).unwrap();
            for part in libraries.iter().chain(*programs) {
                let (here, away) = (folder.path().join(part), folder.path().join("away"));
                fs::rename(&here, &away).unwrap();
                let said = check(mode, folder.path()).unwrap_err().to_string();
                assert!(said.contains(part) && said.contains("docs/rivals.md"), "{mode}: {said}");
                fs::rename(&away, &here).unwrap();
            }
        }
    }

    #[test]
    fn sources_of_a_product_are_no_build_of_it() {
        for mode in RIVALS {
            let folder = build(mode);
            fs::write(folder.path().join(parts(mode).unwrap().libraries[0]), "int main() {}\n").unwrap();
            let said = check(mode, folder.path()).unwrap_err().to_string();
            assert!(said.contains("no build of") && said.contains("ELF"), "{said}");
        }
        assert!(check(Mode::Hami, Path::new("/nowhere")).unwrap_err().to_string().contains("/nowhere"));
    }

    #[test]
    fn a_program_that_may_not_be_executed_is_missing() {
        for mode in [Mode::Xsched, Mode::Nvshare] {
            let folder = build(mode);
            let program = folder.path().join(parts(mode).unwrap().programs[0]);
            fs::set_permissions(program, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(check(mode, folder.path()).is_err(), "{mode}");
        }
    }

    #[test]
    fn what_is_ours_is_no_rival() {
        assert!(check(Mode::EbbIsolated, Path::new("/")).is_err());
        for mode in Mode::ALL {
            assert_eq!(parts(mode).is_ok(), mode.is_rival(), "{mode}");
        }
    }

    #[test]
    fn a_process_is_found_by_the_name_that_the_kernel_keeps() {
        let proc = tempfile::tempdir().unwrap();
        for (pid, comm) in [("71", "nvshare-schedul\n"), ("72", "xserver\n"), ("self", "xserver\n")] {
            fs::create_dir(proc.path().join(pid)).unwrap();
            fs::write(proc.path().join(pid).join("comm"), comm).unwrap();
        }
        assert_eq!(process_named(proc.path(), "nvshare-scheduler"), Some(71));
        assert_eq!(process_named(proc.path(), "xserver"), Some(72));
        assert_eq!(process_named(proc.path(), "xserve"), None);
    }
}
