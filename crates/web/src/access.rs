//! Who may read, where not everybody may.
//!
//! A file as `htpasswd -B` writes it: a name, a colon and a password in bcrypt, on each line. To see whether a password is right takes
//! tens of milliseconds on purpose, so it is done for one reader at a time, and what was right the last time is right again without it
//! and without waiting for those who guess.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use installation::secret::{self, SecretReaders};

use crate::{Error, Request};

/// A password that takes longer to try would be a way to keep the machine busy.
const HIGHEST_COST: u32 = 14;

#[derive(Debug)]
pub struct Access {
    readers: Vec<Reader>,
    /// What was last found right, as it was sent.
    last: Mutex<Option<String>>,
    /// Held while a password is tried: one core of the machine is enough for those who guess.
    trial: Mutex<()>,
}

#[derive(Debug)]
struct Reader {
    name: String,
    hash: String,
}

impl Access {
    pub fn read(path: &Path) -> Result<Access, Error> {
        let bytes = secret::read(path, SecretReaders::OwnerAndGroup)?;
        let wrong = |(line, reason)| Error::Passwords { path: path.to_owned(), line, reason };
        let text = String::from_utf8(bytes).map_err(|_| wrong((1, "it is no text")))?;
        Access::parse(&text).map_err(wrong)
    }

    /// What the text of such a file says, or in which line it is wrong and why.
    pub fn parse(text: &str) -> Result<Access, (usize, &'static str)> {
        let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
        let said = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let readers: Result<Vec<_>, _> =
            said.map(|(number, line)| Reader::parse(line).map_err(|reason| (number, reason))).collect();
        let readers = readers?;
        if readers.is_empty() {
            return Err((1, "there is nobody in it"));
        }
        Ok(Access { readers, last: Mutex::new(None), trial: Mutex::new(()) })
    }

    pub fn admits(&self, request: &Request) -> bool {
        let Some(sent) = &request.authorization else { return false };
        if self.last().as_ref() == Some(sent) {
            return true;
        }
        let _one = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
        let right = self.is_right(sent);
        if right {
            *self.last() = Some(sent.clone());
        }
        right
    }

    /// Never held for longer than it takes to compare.
    fn last(&self) -> MutexGuard<'_, Option<String>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The readers, each with the password as the file has it.
    #[cfg(any(test, feature = "trials"))]
    pub(crate) fn lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.readers.iter().map(|reader| (reader.name.as_str(), reader.hash.as_str()))
    }

    fn is_right(&self, sent: &str) -> bool {
        let Some((name, password)) = credentials(sent) else { return false };
        let known = self.readers.iter().find(|reader| reader.name == name);
        // A name that nobody has takes as long as one that somebody has.
        let hash = &known.unwrap_or(&self.readers[0]).hash;
        bcrypt::verify(password.as_bytes(), hash).unwrap_or(false) && known.is_some()
    }
}

impl Reader {
    fn parse(line: &str) -> Result<Reader, &'static str> {
        let (name, hash) =
            line.split_once(':').ok_or("a line is a name, a colon and a password in bcrypt")?;
        if name.is_empty() {
            return Err("a line begins with the name of a reader");
        }
        let parts: bcrypt::HashParts =
            hash.parse().map_err(|_| "the password is not in bcrypt; write the file with `htpasswd -B`")?;
        if parts.get_cost() > HIGHEST_COST {
            return Err("the password takes too long to try; its cost may be 14 at most");
        }
        Ok(Reader { name: name.to_owned(), hash: hash.to_owned() })
    }
}

/// Name and password out of the header.
fn credentials(sent: &str) -> Option<(String, String)> {
    let (scheme, packed) = sent.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(packed.trim()).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::Method;

    /// `open sesame`.
    const HASH: &str = "$2b$04$9eovBu2ifo7pbLojN4okzO/LXRBRupjZPZV1dNA7e.OWyagu6.StC";

    fn access(text: &str) -> Result<Access, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("readers");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        Access::read(&path).map_err(|error| error.to_string())
    }

    fn sends(authorization: Option<String>) -> Request {
        let (path, accept) = ("/metrics".to_owned(), String::new());
        let (host, origin, body) = (None, None, Vec::new());
        Request { method: Method::Get, path, accept, host, origin, authorization, body }
    }

    fn basic(text: &str) -> Request {
        sends(Some(format!("Basic {}", STANDARD.encode(text))))
    }

    #[test]
    fn who_has_name_and_password_is_admitted_again_and_again() {
        let access = access(&format!("# readers\n\nprometheus:{HASH}\n")).unwrap();
        for _ in 0..3 {
            assert!(access.admits(&basic("prometheus:open sesame")));
            assert!(!access.admits(&basic("prometheus:open barley")));
            assert!(!access.admits(&basic("grafana:open sesame")));
            assert!(!access.admits(&sends(None)));
        }
        for odd in ["", "Basic", "Basic %%%", "Bearer eDp5", "Basic eA=="] {
            assert!(!access.admits(&sends(Some(odd.to_owned()))), "{odd}");
        }
    }

    #[test]
    fn who_is_known_does_not_wait_for_those_who_guess() {
        let access = access(&format!("prometheus:{HASH}\n")).unwrap();
        assert!(access.admits(&basic("prometheus:open sesame")));
        let _guessing = access.trial.lock().unwrap();
        assert!(access.admits(&basic("prometheus:open sesame")));
    }

    #[test]
    fn a_file_that_admits_nobody_or_by_weak_means_is_refused() {
        let complaint = |text: &str| access(text).unwrap_err();
        assert!(complaint("# nobody\n").contains("there is nobody in it"));
        assert!(complaint("a:open sesame").contains(":1: the password is not in bcrypt"));
        assert!(complaint("\n\nnonsense").contains(":3: a line is"));
        assert!(complaint(&format!(":{HASH}")).contains(":1: a line begins with"));
        assert!(complaint(&format!("a:{}", HASH.replace("$04$", "$31$"))).contains("too long to try"));
        assert!(Access::read(Path::new("/nowhere")).is_err());
    }
}
