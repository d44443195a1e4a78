//! What will happen if a command is run with the shim preloaded.
//!
//! The loader ignores a preload without a word where it must (set-user-id programs) and is not there at all in a
//! static program. So a command is followed as the kernel would follow it, through `PATH` and `#!` lines, to the
//! program that will be mapped in the end, and that file is asked. What that program then starts is not known:
//! a shell works, and what it runs is another command.

mod elf;
mod find;
mod script;

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{Architecture, Error};

/// The kernel gives up after as many interpreters.
const MOST_SCRIPTS: usize = 4;

/// A command, followed to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file the command's name stands for.
    pub path: PathBuf,
    /// The program which runs: the file itself or, for a script, its interpreter.
    pub binary: PathBuf,
    pub preload: Preload,
}

/// Whether a preloaded library gets into the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preload {
    Works,
    No(Reason),
}

/// Why a preload is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No loader is asked to start it.
    Static,
    /// Its loader belongs to the C library musl, for which the shim is not built.
    Musl,
    /// Its loader is not on this machine, so it cannot start.
    NoLoader(PathBuf),
    /// It runs as another user or group.
    SetId,
    /// Its file carries capabilities which its caller has not.
    Capabilities,
    Architecture(Architecture),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Static => f.write_str("it is statically linked, so nothing can be preloaded"),
            Reason::Musl => f.write_str("it uses the C library musl, for which CUDA and ebb are not made"),
            Reason::NoLoader(path) => write!(f, "its loader {} is not installed", path.display()),
            Reason::SetId => f.write_str(
                "it runs with the rights of another user or group, where the loader ignores preloads",
            ),
            Reason::Capabilities => f.write_str("its file has capabilities, so the loader ignores preloads"),
            Reason::Architecture(found) => {
                write!(f, "it is built for {found}, and ebb for {}", Architecture::HERE)
            }
        }
    }
}

impl Reason {
    /// What a user can do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            Reason::Static => {
                "link it dynamically (only the CUDA driver API needs to be; a static CUDA runtime is fine)"
            }
            Reason::Musl => "run it in a system with glibc",
            Reason::NoLoader(_) => {
                "install the system libraries it was built for, or build it for this system"
            }
            Reason::SetId => {
                "run it directly as the user it is meant for, or copy it without its set-id bits"
            }
            Reason::Capabilities => {
                "copy the program: copies have no capabilities; or remove them with `setcap -r`"
            }
            Reason::Architecture(_) => "use a build of the program for the architecture of ebb",
        }
    }
}

/// Who will execute the program.
#[derive(Clone, Copy, Debug)]
struct Caller {
    user: u32,
    group: u32,
}

/// Follows a command to the program that will run. `path` is the value of `PATH`; without one, that of `execvp`.
///
/// An error means that the command will not start, except [`Error::Unreadable`]: the kernel may execute what we
/// may not read.
pub fn inspect(command: &OsStr, path: Option<&OsStr>) -> Result<Program, Error> {
    let caller =
        Caller { user: rustix::process::getuid().as_raw(), group: rustix::process::getgid().as_raw() };
    inspect_as(caller, command, path)
}

fn inspect_as(caller: Caller, command: &OsStr, path: Option<&OsStr>) -> Result<Program, Error> {
    let file = find::find(command, path)?;
    let binary = follow(&file, path)?;
    let preload = judge(caller, &binary)?;
    Ok(Program { path: file, binary, preload })
}

/// Goes from interpreter to interpreter until there is a program.
fn follow(file: &Path, path: Option<&OsStr>) -> Result<PathBuf, Error> {
    let mut current = file.to_owned();
    for _ in 0..=MOST_SCRIPTS {
        let Some(next) = script::interpreter(&current, path)? else { return Ok(current) };
        current = next;
    }
    Err(Error::EndlessScripts { path: file.to_owned() })
}

fn judge(caller: Caller, binary: &Path) -> Result<Preload, Error> {
    let described = elf::describe(binary)?;
    if described.architecture != Architecture::HERE {
        return Ok(Preload::No(Reason::Architecture(described.architecture)));
    }
    let Some(loader) = described.loader else { return Ok(Preload::No(Reason::Static)) };
    let name = loader.file_name().unwrap_or_default().to_string_lossy();
    let metadata =
        fs::metadata(binary).map_err(|source| Error::Unreadable { path: binary.to_owned(), source })?;
    Ok(if name.starts_with("ld-musl") {
        Preload::No(Reason::Musl)
    } else if !loader.exists() {
        Preload::No(Reason::NoLoader(loader))
    } else if changes_identity(caller, &metadata) {
        Preload::No(Reason::SetId)
    } else if caller.user != 0 && has_capabilities(binary) {
        Preload::No(Reason::Capabilities)
    } else {
        Preload::Works
    })
}

/// Set-id bits matter only where they change somebody; without the group's execute bit, set-group-id means
/// something else.
fn changes_identity(caller: Caller, metadata: &Metadata) -> bool {
    const SET_USER: u32 = 0o4000;
    const SET_GROUP: u32 = 0o2010;
    let mode = metadata.mode();
    mode & SET_USER != 0 && metadata.uid() != caller.user
        || mode & SET_GROUP == SET_GROUP && metadata.gid() != caller.group
}

/// File systems without such attributes have none to find.
fn has_capabilities(binary: &Path) -> bool {
    // The attribute's longest form has 24 bytes.
    let mut value = [0u8; 64];
    rustix::fs::getxattr(binary, "security.capability", &mut value).is_ok_and(|length| length > 0)
}

#[cfg(test)]
mod tests;
