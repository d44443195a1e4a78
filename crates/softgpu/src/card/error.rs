//! Why a card could not be had. Each message says in one sentence what is wrong and how to mend it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum Error {
    #[error(transparent)]
    Folder(#[from] installation::Error),
    #[error("the folder {} cannot be used for software GPUs ({source}); name another with EBB_SOFTGPU_DIR", .path.display())]
    Unusable { path: PathBuf, source: io::Error },
    #[error("the folder {} for software GPUs is another user's or can be emptied by others; `chmod 1777` it to share it, or name another with EBB_SOFTGPU_DIR", .path.display())]
    Open { path: PathBuf },
    #[error("cannot open the card file {}: {source}; remove the file or set EBB_SOFTGPU_DIR to another folder", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("there is no room for the card file {}, which has {bytes} bytes ({source}); make room in its folder or set EBB_SOFTGPU_DIR to another one", .path.display())]
    NoRoom { path: PathBuf, bytes: usize, source: io::Error },
    #[error("the card file {} belongs to user {owner}, not to you ({me}); set EBB_SOFTGPU to another name", .path.display())]
    ForeignFile { path: PathBuf, owner: u32, me: u32 },
    #[error("the card file {} is of another ebb (layout {found}, ours is {ours}) and in use; end its processes or set EBB_SOFTGPU to another name", .path.display())]
    OtherVersion { path: PathBuf, found: u32, ours: u32 },
    #[error("`{0}` is not a name for a software GPU; use up to 64 letters, digits, `-`, `_` and `.`")]
    Name(String),
    #[error("{variable}={value}: {reason}")]
    Setting { variable: &'static str, value: String, reason: String },
    #[error("the software GPU is full: {limit} {what} are the most it takes; end some and try again")]
    Full { what: &'static str, limit: usize },
    #[error("there is no context {0} on this card; `ebb soft show` lists those there are")]
    NoContext(u64),
}
