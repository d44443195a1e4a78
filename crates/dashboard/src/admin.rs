//! Changes, for whoever knows the secret.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use daemon::request::{Changed, Request};
use daemon::{Place, client};
use installation::secret::{self, SecretReaders};

use crate::Error;

/// A secret that is shorter could be guessed.
const LEAST: usize = 16;
/// How long who guesses wrong waits, one at a time.
const PENANCE: Duration = Duration::from_millis(300);

/// The secret, and where changes are asked for.
#[derive(Debug)]
pub struct Admin {
    secret: String,
    place: Place,
    guess: Mutex<()>,
}

/// What may be done to a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    Pause,
    Resume,
}

impl Admin {
    /// Reads the secret: the first line of a file.
    pub fn read(path: &Path, place: Place) -> Result<Admin, Error> {
        let text = String::from_utf8(secret::read(path, SecretReaders::Owner)?);
        let text = text.map_err(|_| Error::NoText { path: path.to_owned() })?;
        let secret = text.lines().next().unwrap_or_default().trim().to_owned();
        if secret.len() < LEAST {
            return Err(Error::Short { path: path.to_owned(), least: LEAST });
        }
        Ok(Admin { secret, place, guess: Mutex::new(()) })
    }

    /// Whether this is the secret, as the header has it.
    pub fn admits(&self, authorization: Option<&str>) -> bool {
        let sent = authorization.and_then(|sent| sent.split_once(' '));
        let sent = sent.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        if sent.is_some_and(|(_, sent)| is_same(sent.trim().as_bytes(), self.secret.as_bytes())) {
            return true;
        }
        // Held meanwhile: who guesses on many connections is no faster.
        let _one = self.guess.lock().unwrap_or_else(PoisonError::into_inner);
        thread::sleep(PENANCE);
        false
    }

    /// Asks the daemon as `ebb pause` and `ebb resume` do, and with the same checks.
    pub fn change(&self, deed: Deed, tenant: &str) -> Result<Changed, daemon::Error> {
        let target = tenant.to_owned();
        let request = match deed {
            Deed::Pause => Request::Pause { target },
            Deed::Resume => Request::Resume { target },
        };
        client::change(&self.place, &request)
    }
}

/// How long it takes tells the length and nothing else.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differ = one.iter().zip(other).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admin(text: &str) -> Result<Admin, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, text).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, private).unwrap();
        Admin::read(&path, Place::at(folder.path()))
    }

    #[test]
    fn who_knows_the_secret_is_admitted() {
        let admin = admin("  a long enough secret\nand a remark\n").unwrap();
        assert!(admin.admits(Some("Bearer a long enough secret")));
        assert!(admin.admits(Some("bearer  a long enough secret ")));
        let wrong =
            [None, Some("Bearer a long enough secreT"), Some("Bearer a"), Some("Basic a long enough secret")];
        assert!(wrong.into_iter().all(|sent| !admin.admits(sent)));
    }

    #[test]
    fn a_secret_that_can_be_guessed_is_none() {
        assert!(matches!(admin("short\n"), Err(Error::Short { .. })));
        assert!(matches!(admin(""), Err(Error::Short { .. })));
        assert!(matches!(
            Admin::read(Path::new("/nowhere"), Place::at(Path::new("/"))),
            Err(Error::Token { .. })
        ));
    }
}
