//! Where cards lie, and who may share them.
//!
//! A card lies in the runtime folder of its user, unless `EBB_SOFTGPU_DIR` names another folder. That one may be shared: where it
//! has mode 1777, as `/tmp` has, everybody who can reach it may use the cards in it, whatever their user. All of them then
//! trust each other with the card, which is right for tests and for nothing else.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use installation::runtime;

use super::Error;

/// The variable that names the folder.
const VARIABLE: &str = "EBB_SOFTGPU_DIR";

/// Everybody may add to a folder of this mode, and nobody may remove what is another's.
const SHARED: u32 = 0o1777;
const PRIVATE: u32 = 0o700;

/// The folder that somebody named.
pub fn named() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The folder of the cards, made if it is missing: shared if root makes it, otherwise its user's own.
pub fn prepare() -> Result<PathBuf, Error> {
    match named() {
        Some(folder) => {
            make(&folder, rustix::process::geteuid().is_root())?;
            Ok(folder)
        }
        None => Ok(runtime::folder()?),
    }
}

fn make(folder: &Path, shared: bool) -> Result<(), Error> {
    let unusable = |source| Error::Unusable { path: folder.to_owned(), source };
    if !folder.exists() {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).map_err(unusable)?;
        }
        match DirBuilder::new().mode(PRIVATE).create(folder) {
            // The mode of a new folder is subject to the umask, so it is set afterwards.
            Ok(()) if shared => {
                fs::set_permissions(folder, Permissions::from_mode(SHARED)).map_err(unusable)?;
            }
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(unusable(error)),
            _ => {}
        }
    }
    let facts = fs::metadata(folder).map_err(unusable)?;
    let own = facts.uid() == rustix::process::geteuid().as_raw();
    if is_shared(&facts) || own && facts.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(Error::Open { path: folder.to_owned() })
}

fn is_shared(folder: &fs::Metadata) -> bool {
    folder.is_dir() && folder.mode() & 0o1002 == 0o1002
}

/// Opens a card's file, made empty if it is missing. In a shared folder it may be another user's, and everybody may write to it.
pub fn open_card(path: &Path) -> Result<File, Error> {
    let failed = |source: io::Error| Error::File { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    let shared = fs::metadata(folder).is_ok_and(|facts| is_shared(&facts));
    let file = match open(path) {
        // Where files are protected, a file that is another's must not be opened as if it might be made.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create(path, if shared { 0o666 } else { 0o600 }).map_err(failed)?;
            open(path)
        }
        other => other,
    };
    let file = file.map_err(failed)?;
    let (owner, me) = (file.metadata().map_err(failed)?.uid(), rustix::process::geteuid().as_raw());
    if owner != me && !shared {
        return Err(Error::ForeignFile { path: path.to_owned(), owner, me });
    }
    Ok(file)
}

/// Opens a card's file that is there.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC).open(path)
}

/// Makes an empty file that has its mode from the beginning: it gets its name last.
fn create(path: &Path, mode: u32) -> io::Result<()> {
    let thread = rustix::thread::gettid().as_raw_nonzero();
    let draft = path.with_extension(format!("draft-{}-{thread}", std::process::id()));
    let result = write_draft(&draft, mode).and_then(|()| fs::hard_link(&draft, path));
    let _ = fs::remove_file(&draft);
    match result {
        // Somebody else made it meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn write_draft(draft: &Path, mode: u32) -> io::Result<()> {
    let _ = fs::remove_file(draft);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    file.set_permissions(Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_shared_folder_has_cards_for_everybody_and_a_private_one_has_not() {
        let base = tempfile::tempdir().unwrap();
        for (shared, folder_mode, card_mode) in [(true, 0o1777, 0o666), (false, 0o700, 0o600)] {
            let folder = base.path().join(format!("deep/{shared}"));
            make(&folder, shared).unwrap();
            assert_eq!(mode(&folder), folder_mode);
            let card = folder.join("softgpu-default.1.card");
            open_card(&card).unwrap();
            assert_eq!(mode(&card), card_mode);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "a draft does not stay");
            make(&folder, !shared).unwrap();
            assert_eq!(mode(&folder), folder_mode, "a folder that is there stays as it is");
        }
    }

    #[test]
    fn a_folder_that_others_may_empty_is_refused() {
        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), Permissions::from_mode(0o777)).unwrap();
        let message = make(base.path(), false).unwrap_err().to_string();
        assert!(message.contains("chmod 1777") && message.contains(VARIABLE), "{message}");
    }

    #[test]
    fn links_are_not_followed() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("file"), "").unwrap();
        let card = base.path().join("card");
        std::os::unix::fs::symlink(base.path().join("file"), &card).unwrap();
        assert!(open_card(&card).is_err());
    }
}
