//! What can go wrong when a file is looked at.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::Architecture;

#[derive(Debug, Error)]
pub enum Error {
    #[error("there is no command {command} in PATH; check the spelling, or give its path")]
    NoCommand { command: String },
    #[error("there is no file {}; check the path", .path.display())]
    NoFile { path: PathBuf },
    #[error("{} is a folder; name a file in it", .path.display())]
    Folder { path: PathBuf },
    #[error("{} may not be executed by you; `chmod +x` makes a file a command", .path.display())]
    NotExecutable { path: PathBuf },
    #[error("{} is neither a program nor a script that this system can execute; check what it was built for", .path.display())]
    NoProgram { path: PathBuf },
    #[error("{} is a script whose interpreters are scripts without end; its #! line must lead to a program", .path.display())]
    EndlessScripts { path: PathBuf },
    #[error("the script {} wants the interpreter {}, which cannot be used: {source}", .script.display(), .interpreter.display())]
    Interpreter { script: PathBuf, interpreter: PathBuf, source: Box<Error> },
    #[error("cannot read {}: {source}; ask its owner for read permission", .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is no library, since it does not begin as an ELF file does; name another, or install it again", .path.display())]
    NotElf { path: PathBuf },
    #[error("{} is no CUDA driver, since it does not export cuInit; name another", .path.display())]
    NoDriver { path: PathBuf },
    #[error("{} is damaged ({reason}); install it again", .path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("{} is for {found}, and this system needs {}; install the one for this system", .path.display(), Architecture::HERE)]
    Architecture { path: PathBuf, found: Architecture },
    #[error("the folder {} cannot be used ({source}); name another with EBB_RUNTIME_DIR", .path.display())]
    UnusableFolder { path: PathBuf, source: io::Error },
    #[error("the folder {} belongs to another user; name another with EBB_RUNTIME_DIR", .path.display())]
    ForeignFolder { path: PathBuf },
    #[error("the folder {} is a symbolic link, which somebody else may have made; name the folder itself with EBB_RUNTIME_DIR", .path.display())]
    LinkFolder { path: PathBuf },
    #[error("the folder {} may be changed by others; `chmod 700` it or name another with EBB_RUNTIME_DIR", .path.display())]
    OpenFolder { path: PathBuf },
    #[error("{} cannot be read ({source})", .path.display())]
    UnreadableSecret { path: PathBuf, source: io::Error },
    #[error("{} {reason}", .path.display())]
    OpenSecret { path: PathBuf, reason: String },
}
