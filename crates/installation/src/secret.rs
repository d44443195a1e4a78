//! Files with secrets in them: whose they must be, and who may read them.
//!
//! A key that everybody on the machine can read keeps nothing from anybody, and nobody notices. So such a file is refused, as
//! ssh refuses it, with a sentence that says what to do.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::Error;

/// Longer files hold no secret of ours.
const LONGEST: u64 = 1 << 20;

/// Who may read a secret besides root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretReaders {
    /// The user who owns it: mode 600.
    Owner,
    /// Its group too, as is usual for keys and passwords that several services share: mode 640.
    OwnerAndGroup,
}

/// Reads a secret. What is looked at is the file that is read, and not what has its name a moment later.
pub fn read(path: &Path, readers: SecretReaders) -> Result<Vec<u8>, Error> {
    let unreadable = |source| Error::UnreadableSecret { path: path.to_owned(), source };
    // A pipe that nobody writes to would be waited for.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unreadable)?;
    let facts = file.metadata().map_err(unreadable)?;
    if let Some(reason) = distrust(&facts, readers) {
        return Err(Error::OpenSecret { path: path.to_owned(), reason });
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Why a file is none for a secret: nobody but this user or root may have written it, and nobody else may read it.
pub fn distrust(facts: &Metadata, readers: SecretReaders) -> Option<String> {
    let own = [rustix::process::geteuid().as_raw(), 0].contains(&facts.uid());
    let (others, mend) = match readers {
        SecretReaders::Owner => (0o077, "chmod 600"),
        SecretReaders::OwnerAndGroup => (0o037, "chmod 600 (or 640, for its group)"),
    };
    match facts.mode() & others {
        _ if !facts.is_file() => Some("is no file".to_owned()),
        _ if !own => Some(format!("belongs to user {}, and not to the daemon's", facts.uid())),
        0 => None,
        open => Some(format!("is open to others (mode {open:03o} of it); run {mend} on it")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_secret_that_others_can_read_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "secret").unwrap();
        let with = |mode: u32, readers| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            read(&path, readers).map_err(|error| error.to_string())
        };
        for (mode, readers) in [
            (0o600, SecretReaders::Owner),
            (0o400, SecretReaders::Owner),
            (0o600, SecretReaders::OwnerAndGroup),
            (0o640, SecretReaders::OwnerAndGroup),
        ] {
            assert_eq!(with(mode, readers), Ok(b"secret".to_vec()), "{mode:o}");
        }
        for (mode, readers) in [
            (0o640, SecretReaders::Owner),
            (0o644, SecretReaders::OwnerAndGroup),
            (0o660, SecretReaders::OwnerAndGroup),
            (0o602, SecretReaders::OwnerAndGroup),
        ] {
            let refused = with(mode, readers).unwrap_err();
            assert!(refused.contains("is open to others") && refused.contains("chmod 600"), "{refused}");
        }
        assert!(read(folder.path(), SecretReaders::Owner).unwrap_err().to_string().contains("is no file"));
        assert!(read(&folder.path().join("none"), SecretReaders::Owner).is_err());
    }
}
