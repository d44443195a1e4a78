//! The runtime folder: where processes find each other.
//!
//! `EBB_RUNTIME_DIR` if set, else `$XDG_RUNTIME_DIR/ebb`, else `/tmp/ebb-UID`. The folder is private to its
//! user: everything in it is trusted by every process that maps it, so a folder somebody else could write to
//! is refused.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::Error;

/// The folder of the current user, made if it is missing.
pub fn runtime_folder() -> Result<PathBuf, Error> {
    let folder = wanted_folder();
    prepare(&folder)?;
    Ok(folder)
}

fn wanted_folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("EBB_RUNTIME_DIR")
        .or_else(|| set("XDG_RUNTIME_DIR").map(|base| base.join("ebb")))
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/ebb-{}", rustix::process::geteuid().as_raw())))
}

fn prepare(folder: &Path) -> Result<(), Error> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    let refused = |source| Error::Folder { path: folder.to_owned(), source };
    made.map_err(refused)?;
    let owner = fs::metadata(folder).map_err(refused)?;
    let me = rustix::process::geteuid().as_raw();
    if owner.uid() != me {
        return Err(Error::ForeignFolder { path: folder.to_owned(), owner: owner.uid(), me });
    }
    if owner.mode() & 0o022 != 0 {
        return Err(Error::OpenFolder { path: folder.to_owned(), mode: owner.mode() & 0o777 });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_others_can_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let message = prepare(folder.path()).unwrap_err().to_string();
        assert!(message.contains("chmod 700"), "{message}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_says_what_to_do() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let message = prepare(&file.path().join("below")).unwrap_err().to_string();
        assert!(message.contains("EBB_RUNTIME_DIR"), "{message}");
    }

    #[test]
    fn a_missing_folder_is_made_private() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("a/b");
        prepare(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
    }
}
