//! Where a configuration is written: a file, and the folder `conf.d` beside it.
//!
//! The files of the folder are read in the order of their names, after the file; what is said later holds. A rule about
//! ceilings of a later file comes before those of earlier ones, for the first that fits decides.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::{Mistake, Scope};

/// The folder beside the file.
const FOLDER: &str = "conf.d";

/// What `ebb policy apply` writes there.
pub const APPLIED: &str = "50-apply.toml";

/// More than anybody writes by hand; a larger file is something else.
const LONGEST: u64 = 1 << 20;
const MOST_FILES: usize = 256;

/// A file, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    pub path: PathBuf,
    pub text: String,
}

/// Where a configuration is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    main: Option<PathBuf>,
    /// Somebody named the file, so it must be there.
    named: bool,
    folder: Option<PathBuf>,
    scope: Scope,
    /// The user as whom the daemon runs.
    daemon: u32,
}

impl Sources {
    /// A file and the folder beside it.
    pub fn beside(main: &Path, named: bool, scope: Scope, daemon: u32) -> Sources {
        let folder = Some(main.with_file_name(FOLDER));
        Sources { main: Some(main.to_owned()), named, folder, scope, daemon }
    }

    /// This file and no other.
    pub fn only(file: &Path, scope: Scope, daemon: u32) -> Sources {
        Sources { main: Some(file.to_owned()), named: true, folder: None, scope, daemon }
    }

    /// A folder as the daemon's own, or one that is like `conf.d`.
    pub fn within(folder: &Path, scope: Scope, daemon: u32) -> Sources {
        let main = folder.join("ebb.toml");
        if main.exists() || folder.join(FOLDER).exists() {
            return Sources::beside(&main, false, scope, daemon);
        }
        Sources { main: None, named: false, folder: Some(folder.to_owned()), scope, daemon }
    }

    pub fn main(&self) -> Option<&Path> {
        self.main.as_deref()
    }

    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub fn scope(&self) -> Scope {
        self.scope
    }

    pub fn daemon(&self) -> u32 {
        self.daemon
    }

    /// All that is written, in order.
    pub fn texts(&self) -> Result<Vec<Text>, Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let mut texts = Vec::new();
        if let Some(main) = &self.main {
            self.read(main, self.named, &mut texts, &mut mistakes);
        }
        if let Some(folder) = &self.folder {
            match self.names(folder) {
                Ok(names) => names.iter().for_each(|path| self.read(path, true, &mut texts, &mut mistakes)),
                Err(message) => mistakes.push(mistake(folder, message)),
            }
        }
        if mistakes.is_empty() { Ok(texts) } else { Err(mistakes) }
    }

    /// As if a file of the folder had this text.
    pub fn texts_with(&self, name: &str, text: &str) -> Result<Vec<Text>, Vec<Mistake>> {
        let mut texts = self.texts()?;
        let Some(folder) = &self.folder else { return Ok(texts) };
        let path = folder.join(name);
        texts.retain(|text| text.path != path);
        let of_folder = |text: &Text| text.path.parent() == Some(folder);
        let after = texts.iter().position(|other| of_folder(other) && other.path > path);
        texts.insert(after.unwrap_or(texts.len()), Text { path, text: text.to_owned() });
        Ok(texts)
    }

    /// The files of the folder. One that is not there is an empty one.
    fn names(&self, folder: &Path) -> Result<Vec<PathBuf>, String> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(format!("cannot be read: {error}")),
        };
        let facts = fs::metadata(folder).map_err(|error| format!("cannot be read: {error}"))?;
        self.trust(&facts)?;
        let names: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.file_name())).collect();
        let mut names = names.map_err(|error| format!("cannot be read: {error}"))?;
        names.retain(|name| is_ours(name));
        if names.len() > MOST_FILES {
            return Err(format!("has {} files, and {MOST_FILES} are read at most", names.len()));
        }
        names.sort();
        Ok(names.iter().map(|name| folder.join(name)).collect())
    }

    fn read(&self, path: &Path, needed: bool, texts: &mut Vec<Text>, mistakes: &mut Vec<Mistake>) {
        match self.text(path) {
            Ok(text) => texts.push(Text { path: path.to_owned(), text }),
            Err(Unread::Missing) if !needed => {}
            Err(Unread::Missing) => {
                mistakes.push(mistake(path, "cannot be read: it is not there".to_owned()))
            }
            Err(Unread::Wrong(message)) => mistakes.push(mistake(path, message)),
        }
    }

    fn text(&self, path: &Path) -> Result<String, Unread> {
        let refused = |error: io::Error| Unread::Wrong(format!("cannot be read: {error}"));
        // A pipe in place of a file must not make us wait for who writes to it.
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file: File = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Unread::Missing),
            Err(error) => return Err(refused(error)),
        };
        let facts = file.metadata().map_err(refused)?;
        if !facts.is_file() {
            return Err(Unread::Wrong("is no file".to_owned()));
        }
        self.trust(&facts).map_err(Unread::Wrong)?;
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(refused)?;
        if bytes.len() as u64 > LONGEST {
            return Err(Unread::Wrong(format!("is longer than {} KiB", LONGEST >> 10)));
        }
        String::from_utf8(bytes).map_err(|_| Unread::Wrong("is no text in UTF-8".to_owned()))
    }

    /// Who can write a file of the machine's daemon can give himself any class, so it must be root's or the daemon's own.
    fn trust(&self, facts: &Metadata) -> Result<(), String> {
        let stranger = facts.uid() != 0 && facts.uid() != self.daemon;
        match self.scope {
            Scope::Machine if stranger || facts.mode() & 0o002 != 0 => {
                Err("may be changed by users who are no admins; `chown root` and `chmod o-w` it".to_owned())
            }
            _ => Ok(()),
        }
    }
}

enum Unread {
    Missing,
    Wrong(String),
}

fn mistake(path: &Path, message: String) -> Mistake {
    Mistake { file: path.to_owned(), line: None, message }
}

/// What editors and package managers leave lying about is not meant.
fn is_ours(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.ends_with(b".toml") && !name.starts_with(b".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn names(sources: &Sources) -> Vec<String> {
        let texts = sources.texts().unwrap();
        texts.iter().map(|text| text.path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn place() -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid().as_raw();
        let sources = Sources::beside(&folder.path().join("ebb.toml"), false, Scope::Machine, user);
        (folder, sources)
    }

    #[test]
    fn nothing_is_a_configuration_and_the_folder_comes_in_the_order_of_its_names() {
        let (folder, sources) = place();
        assert_eq!(sources.texts().unwrap(), []);
        let inside = sources.folder().unwrap();
        fs::create_dir(inside).unwrap();
        for name in ["b.toml", "10-a.toml", "9.toml", ".hidden.toml", "c.toml~", "notes"] {
            fs::write(inside.join(name), "").unwrap();
        }
        fs::write(folder.path().join("ebb.toml"), "").unwrap();
        assert_eq!(names(&sources), ["ebb.toml", "10-a.toml", "9.toml", "b.toml"]);
        let with = sources.texts_with(APPLIED, "new").unwrap();
        let place = with.iter().position(|text| text.text == "new").unwrap();
        assert_eq!((place, with.len()), (2, 5), "{with:?}");
        fs::write(inside.join(APPLIED), "old").unwrap();
        assert_eq!(sources.texts_with(APPLIED, "new").unwrap(), with);
    }

    #[test]
    fn what_is_no_file_of_admins_is_refused() {
        let (_folder, sources) = place();
        let inside = sources.folder().unwrap();
        fs::create_dir(inside).unwrap();
        let refused = || sources.texts().unwrap_err()[0].to_string();
        let file = inside.join("a.toml");
        fs::create_dir(&file).unwrap();
        assert!(refused().ends_with("a.toml: is no file"), "{}", refused());
        fs::remove_dir(&file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(refused().ends_with("a.toml: is no file"), "and nobody waits for a writer");
        fs::remove_file(&file).unwrap();
        fs::write(&file, [0xff]).unwrap();
        assert!(refused().contains("UTF-8"));
        fs::write(&file, vec![b'#'; LONGEST as usize + 1]).unwrap();
        assert!(refused().contains("longer"));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(refused().contains("chmod o-w"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        fs::set_permissions(inside, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(refused().contains("conf.d: may be changed"), "{}", refused());
    }

    #[test]
    fn a_file_that_somebody_named_must_be_there() {
        let (folder, _) = place();
        let named = Sources::beside(&folder.path().join("mine.toml"), true, Scope::User, 0);
        assert!(named.texts().unwrap_err()[0].to_string().contains("mine.toml: cannot be read"));
    }

    #[test]
    fn a_folder_is_the_daemons_or_like_the_one_beside_its_file() {
        let (folder, sources) = place();
        fs::create_dir(sources.folder().unwrap()).unwrap();
        fs::write(sources.folder().unwrap().join("a.toml"), "").unwrap();
        assert_eq!(names(&Sources::within(folder.path(), Scope::User, 0)), ["a.toml"]);
        assert_eq!(names(&Sources::within(sources.folder().unwrap(), Scope::User, 0)), ["a.toml"]);
    }
}
