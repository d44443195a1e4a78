//! Scripts and their interpreters.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::find;
use crate::Error;

/// As much of a file as the kernel looks at to know what it is.
const KERNEL_LOOKS_AT: u64 = 256;

/// What `execvp` runs a text without a `#!` line by.
const SHELL: &str = "/bin/sh";

/// The program that a script is given to; none for a program.
///
/// `#!/usr/bin/env python3` is followed through `env`, because that only looks for the name and steps aside.
pub(super) fn interpreter(file: &Path, path: Option<&OsStr>) -> Result<Option<PathBuf>, Error> {
    let mut head = Vec::new();
    let unreadable = |source| Error::Unreadable { path: file.to_owned(), source };
    let opened = File::open(file).map_err(unreadable)?;
    opened.take(KERNEL_LOOKS_AT).read_to_end(&mut head).map_err(unreadable)?;
    if head.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let Some(line) = head.strip_prefix(b"#!") else {
        return match head.contains(&0) {
            true => Err(Error::NoProgram { path: file.to_owned() }),
            false => Ok(Some(PathBuf::from(SHELL))),
        };
    };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let mut words =
        line.split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty()).map(OsStr::from_bytes);
    let Some(interpreter) = words.next().map(PathBuf::from) else {
        return Err(Error::NoProgram { path: file.to_owned() });
    };
    let found = match (interpreter.file_name(), through_env(words)) {
        (Some(name), Some(command)) if name == "env" => find::find(command, path),
        _ => find::executable(&interpreter).map(|()| interpreter.clone()),
    };
    let failed =
        |source| Error::Interpreter { script: file.to_owned(), interpreter, source: Box::new(source) };
    found.map(Some).map_err(failed)
}

/// The first word for `env` that is neither an option nor an assignment.
fn through_env<'a>(words: impl Iterator<Item = &'a OsStr>) -> Option<&'a OsStr> {
    let mut words = words.filter(|word| !word.as_bytes().contains(&b'='));
    words.find(|word| !word.as_bytes().starts_with(b"-"))
}
