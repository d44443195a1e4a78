//! The folder: a file for each platform, read by anybody, changed under one lock.
//!
//! Who appends holds the lock while it writes one batch at the end of a file. Who has too much before it writes a new file
//! beside and renames it over the old one. So a reader, who takes no lock, finds the old file or the new one, whole but for what
//! is being appended; and whoever is killed leaves at worst the beginning of a frame, or a file called `attempt` which the next
//! one overwrites. The lock is the kernel's, and goes with its process.
//!
//! Nothing is flushed to the disk: what a process has written survives its death, and what a loss of power takes is learned anew.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use installation::memory;
use model::Nanos;
use rustix::fs::OFlags;

use crate::aside::{self, Trouble};
use crate::header::{BadHeader, Header};
use crate::{Batch, Damage, Error, Platform, Profile, frame, header, platform};

const LOCK: &str = "lock";
const ATTEMPT: &str = "attempt";

/// The profiles of one user.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    limits: Limits,
}

/// How much is kept, and how long somebody waits to keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// No file is longer, in bytes; it is cut to half of this when it would be.
    pub file: u64,
    /// So many records stay when a file is put in order.
    pub records: usize,
    /// So many files; those that were not written to for longest go.
    pub platforms: usize,
    /// So many files that could not be read.
    pub aside: u64,
    /// For so long the lock is waited for. Somebody who writes a batch is done in far less than a millisecond.
    pub patience: Nanos,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file: 8 << 20,
            records: 16 << 10,
            platforms: 16,
            aside: 3,
            patience: Nanos::from_millis(200),
        }
    }
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    pub profile: Profile,
    /// What of the file was passed over: a batch whose writer was killed, or a disk that lies.
    pub damage: Damage,
    /// The file was no good as a whole, and what was kept in it is gone. Whoever is told this is the only one, and should say it.
    pub trouble: Option<Trouble>,
}

impl Reading {
    /// What the bytes of a file say.
    pub fn of(bytes: &[u8], platform: &Platform) -> Result<Reading, Rotten> {
        // Killed writers leave a torn frame here and there. When more is bad than good, it was something else.
        const A_FEW: usize = 8 * frame::MOST_PAYLOAD;
        let frames = ours(bytes, platform)?;
        let mut profile = Profile::default();
        let damage = profile.take_in_frames(frames);
        if damage.bytes > A_FEW.max(frames.len() / 2) {
            return Err(Rotten::Mostly);
        }
        Ok(Reading { profile, damage, trouble: None })
    }
}

/// A file in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub path: PathBuf,
    /// `None` if that cannot be read any more, or is of another format.
    pub platform: Option<Platform>,
    pub bytes: u64,
}

impl Store {
    /// Nothing is made or looked at before it is needed.
    pub fn new(folder: PathBuf) -> Store {
        Store { folder, limits: Limits::default() }
    }

    /// Where this user's profiles are; `None` where nothing is to be kept.
    pub fn of_this_user() -> Option<Store> {
        memory::profiles().map(Store::new)
    }

    pub fn with_limits(self, limits: Limits) -> Store {
        Store { limits, ..self }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All that is known on a platform. A file that is no good is set aside.
    pub fn read(&self, platform: &Platform) -> Result<Reading, Error> {
        let path = self.path(platform);
        let Some(bytes) = self.bytes(&path)? else { return Ok(Reading::default()) };
        let reason = match Reading::of(&bytes, platform) {
            Ok(reading) => return Ok(reading),
            Err(reason) => reason,
        };
        // Somebody may have been in the middle of it, or may have set it aside already.
        let Ok(lock) = self.lock() else { return Ok(Reading::default()) };
        let Some(bytes) = self.bytes(&path)? else { return Ok(Reading::default()) };
        let again = Reading::of(&bytes, platform);
        Ok(again.unwrap_or_else(|_| Reading {
            trouble: Some(self.set_aside(&lock, &path, reason)),
            ..Reading::default()
        }))
    }

    /// Adds a batch to what is kept on a platform. On an error nothing is kept, and the batch may be handed over again.
    pub fn append(&self, platform: &Platform, batch: &Batch) -> Result<Option<Trouble>, Error> {
        if batch.is_empty() {
            return Ok(None);
        }
        let lock = self.lock()?;
        let path = self.path(platform);
        let Some(file) = self.open(&path, OpenOptions::new().read(true).append(true))? else {
            self.make(&lock, platform, batch)?;
            return Ok(None);
        };
        let mut beginning = Vec::new();
        (&file).take(header::LONGEST as u64).read_to_end(&mut beginning).map_err(Error::io("read", &path))?;
        if let Err(reason) = ours(&beginning, platform) {
            let trouble = self.set_aside(&lock, &path, reason);
            self.make(&lock, platform, batch)?;
            return Ok(Some(trouble));
        }
        let length = file.metadata().map_err(Error::io("look at", &path))?.len();
        if length.saturating_add(batch.as_bytes().len() as u64) > self.limits.file {
            return self.put_in_order(&lock, platform, batch);
        }
        add(&file, length, batch.as_bytes()).map_err(Error::io("write to", &path))?;
        Ok(None)
    }

    /// Adds up what was appended, if there is much of it: what lies in many small records is read more quickly as one. For
    /// somebody who has the time, now and then; a file that grows too long is put in order by whoever appends to it.
    pub fn tidy(&self, platform: &Platform) -> Result<Option<Trouble>, Error> {
        let path = self.path(platform);
        let Some(bytes) = self.bytes(&path)? else { return Ok(None) };
        let appended = match Header::read(&bytes) {
            Ok((header, _)) => (bytes.len() as u64).saturating_sub(header.base),
            Err(_) => u64::MAX,
        };
        const LITTLE: u64 = 64 << 10;
        if appended <= LITTLE.max(bytes.len() as u64 / 2) {
            return Ok(None);
        }
        self.put_in_order(&self.lock()?, platform, &Batch::new())
    }

    /// Which platforms there are profiles of.
    pub fn platforms(&self) -> Result<Vec<Found>, Error> {
        let mut found = Vec::new();
        for path in self.files()?.into_iter().filter(|path| is_profile(path)) {
            let Some(file) = self.open(&path, OpenOptions::new().read(true))? else { continue };
            let mut beginning = Vec::new();
            let read = (&file).take(header::LONGEST as u64).read_to_end(&mut beginning);
            let header = read.ok().and_then(|_| Header::read(&beginning).ok());
            let platform = header.map(|(header, _)| header.platform);
            let platform = platform.filter(|platform| path == self.path(platform));
            let bytes = file.metadata().map_or(0, |facts| facts.len());
            found.push(Found { path, platform, bytes });
        }
        found.sort_by(|a, b| (&a.platform, &a.path).cmp(&(&b.platform, &b.path)));
        Ok(found)
    }

    /// Throws everything away, also what was set aside; how many files that were.
    pub fn clear(&self) -> Result<usize, Error> {
        if self.files()?.is_empty() {
            return Ok(0);
        }
        let _lock = self.lock()?;
        let mut removed = 0;
        for path in self.files()? {
            // The folder may have been named by a user, and hold what is not ours.
            let attempt = path.file_name().is_some_and(|name| name == ATTEMPT);
            if is_profile(&path) || aside::number(&path).is_some() || attempt {
                fs::remove_file(&path).map_err(Error::io("remove", &path))?;
                removed += usize::from(!attempt);
            }
        }
        Ok(removed)
    }

    fn path(&self, platform: &Platform) -> PathBuf {
        self.folder.join(platform.file_name())
    }

    fn files(&self) -> Result<Vec<PathBuf>, Error> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(Error::io("list", &self.folder))?,
        };
        Ok(entries.flatten().map(|entry| entry.path()).collect())
    }

    /// A file of ours, and no link to somewhere; `None` if there is none.
    fn open(&self, path: &Path, how: &mut OpenOptions) -> Result<Option<File>, Error> {
        let file = match how.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(Error::io("open", path))?,
        };
        let facts = file.metadata().map_err(Error::io("look at", path))?;
        if facts.uid() == rustix::process::geteuid().as_raw() && facts.is_file() {
            return Ok(Some(file));
        }
        Err(Error::Foreign { path: path.to_owned() })
    }

    /// All of a file, up to the length that files have.
    fn bytes(&self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        let Some(file) = self.open(path, OpenOptions::new().read(true))? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(self.limits.file).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
        Ok(Some(bytes))
    }

    /// The right to change things in the folder, until it is dropped.
    fn lock(&self) -> Result<Lock, Error> {
        let path = self.folder.join(LOCK);
        memory::prepare(&self.folder).map_err(|source| Error::Folder {
            path: self.folder.clone(),
            variable: memory::PROFILES_VARIABLE,
            source,
        })?;
        let how = &mut OpenOptions::new();
        let file = self.open(&path, how.write(true).create(true).truncate(false).mode(0o600))?;
        let file = file.expect("it is made where it is missing");
        let until = Instant::now() + Duration::from(self.limits.patience);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock(file)),
                Err(fs::TryLockError::Error(error)) => return Err(Error::io("lock", &path)(error)),
                Err(fs::TryLockError::WouldBlock) if Instant::now() >= until => {
                    return Err(Error::Busy { path });
                }
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(500)),
            }
        }
    }

    fn set_aside(&self, _lock: &Lock, path: &Path, reason: Rotten) -> Trouble {
        aside::set_aside(&self.folder, path, self.limits, reason)
    }

    /// The first file of a platform.
    fn make(&self, lock: &Lock, platform: &Platform, batch: &Batch) -> Result<(), Error> {
        let mut profile = Profile::default();
        profile.take_in(batch);
        self.replace(lock, platform, &profile)?;
        self.make_room();
        Ok(())
    }

    /// Rewrites a file, with a batch more.
    fn put_in_order(
        &self,
        lock: &Lock,
        platform: &Platform,
        batch: &Batch,
    ) -> Result<Option<Trouble>, Error> {
        let path = self.path(platform);
        let bytes = self.bytes(&path)?.unwrap_or_default();
        let (mut profile, trouble) = match Reading::of(&bytes, platform) {
            Ok(reading) => (reading.profile, None),
            Err(reason) => (Profile::default(), Some(self.set_aside(lock, &path, reason))),
        };
        profile.take_in(batch);
        self.replace(lock, platform, &profile)?;
        Ok(trouble)
    }

    fn replace(&self, _lock: &Lock, platform: &Platform, profile: &Profile) -> Result<(), Error> {
        let mut header = Header { platform: platform.clone(), base: 0 };
        let room = usize::try_from(self.limits.file / 2).unwrap_or(usize::MAX);
        let frames = profile.frames(room.saturating_sub(header.write().len()), self.limits.records);
        header.base = (header.write().len() + frames.len()) as u64;
        let attempt = self.folder.join(ATTEMPT);
        let _ = fs::remove_file(&attempt);
        let path = self.path(platform);
        let placed = place(&attempt, &path, &[&header.write(), &frames]);
        if placed.is_err() {
            let _ = fs::remove_file(&attempt);
        }
        placed.map_err(Error::io("write", &path))
    }

    /// Removes the files that were not written to for longest, if there are too many.
    fn make_room(&self) {
        let profiles = self.files().unwrap_or_default().into_iter().filter(|path| is_profile(path));
        let changed = |path: &PathBuf| fs::symlink_metadata(path).and_then(|facts| facts.modified()).ok();
        let mut files: Vec<_> = profiles.map(|path| (changed(&path), path)).collect();
        files.sort();
        let surplus = files.len().saturating_sub(self.limits.platforms);
        for (_, path) in files.into_iter().take(surplus) {
            let _ = fs::remove_file(path);
        }
    }
}

struct Lock(File);

impl Drop for Lock {
    /// Said, not only left to the closing of the file: a child forked meanwhile has the file open too.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Why a file is no good as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rotten {
    #[error(transparent)]
    Header(#[from] BadHeader),
    #[error("it tells of another platform")]
    Platform,
    #[error("most of it is damaged")]
    Mostly,
}

/// Whether the beginning of a file is that of one for this platform; what comes behind.
fn ours<'a>(bytes: &'a [u8], platform: &Platform) -> Result<&'a [u8], Rotten> {
    let (header, frames) = Header::read(bytes)?;
    if header.platform == *platform { Ok(frames) } else { Err(Rotten::Platform) }
}

/// Adds to a file, all or nothing as far as it is in our power.
fn add(mut file: &File, length: u64, bytes: &[u8]) -> io::Result<()> {
    let added = file.write_all(bytes);
    if added.is_err() {
        let _ = file.set_len(length);
    }
    added
}

/// A file that is there whole or not at all.
fn place(attempt: &Path, path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(attempt)?;
    parts.iter().try_for_each(|part| file.write_all(part))?;
    fs::rename(attempt, path)
}

fn is_profile(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == platform::ENDING)
}
