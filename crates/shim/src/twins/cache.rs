//! Rewritten images on disk, by what they were made of.
//!
//! Many processes of a user read and write here at once: a file is written under another name and then renamed, so that it
//! is there whole or not at all, and is never changed. The oldest go when there are too many. What cannot be read is made
//! again, what cannot be written is not kept; neither is anybody's problem.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use guard::{Rewritten, kept};
use installation::memory;

/// All files together.
const ROOM: u64 = 4 << 30;
/// No image is longer than this.
const LONGEST: u64 = 1 << 30;

pub struct Cache {
    folder: Option<PathBuf>,
    room: u64,
}

impl Cache {
    /// `None`: nothing is kept.
    pub fn open(folder: Option<PathBuf>) -> Cache {
        Cache { folder: folder.filter(|folder| memory::prepare(folder).is_ok()), room: ROOM }
    }

    pub fn get(&self, key: u128) -> Option<Rewritten> {
        let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(self.path(key)?).ok()?;
        let facts = file.metadata().ok()?;
        if facts.uid() != rustix::process::geteuid().as_raw() || facts.len() > LONGEST {
            return None;
        }
        let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).ok()?);
        (&file).take(LONGEST).read_to_end(&mut bytes).ok()?;
        let rewritten = kept::read(&bytes)?;
        // What is used stays longest.
        let _ = file.set_modified(SystemTime::now());
        Some(rewritten)
    }

    pub fn put(&self, key: u128, rewritten: &Rewritten) {
        let (Some(folder), Some(path)) = (&self.folder, self.path(key)) else { return };
        let bytes = kept::write(rewritten);
        if bytes.len() as u64 <= LONGEST.min(self.room / 2) && place(folder, &path, &bytes).is_ok() {
            make_room(folder, self.room);
        }
    }

    fn path(&self, key: u128) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(format!("{key:032x}-{}.{}", guard::VERSION, memory::TWIN)))
    }
}

/// A file that is there whole or not at all.
fn place(folder: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    // One smith in a process, so one attempt. What a killed process left under this name is of no use to anybody; it has
    // the ending of a twin, so that it goes with the oldest.
    let attempt = folder.join(format!("attempt-{}.{}", std::process::id(), memory::TWIN));
    let _ = fs::remove_file(&attempt);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&attempt)?;
    let placed = file.write_all(bytes).and_then(|()| fs::rename(&attempt, path));
    if placed.is_err() {
        let _ = fs::remove_file(&attempt);
    }
    placed
}

/// Removes the oldest files, until all together are no larger than this.
fn make_room(folder: &Path, room: u64) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let twins = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == memory::TWIN));
    let mut files: Vec<(SystemTime, u64, PathBuf)> = twins
        .filter_map(|entry| {
            let facts = entry.metadata().ok()?;
            Some((facts.modified().ok()?, facts.len(), entry.path()))
        })
        .collect();
    let mut total: u64 = files.iter().map(|(_, length, _)| length).sum();
    files.sort();
    for (_, length, path) in files {
        if total <= room {
            return;
        }
        let _ = fs::remove_file(path);
        total -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn image(bytes: usize) -> Rewritten {
        Rewritten { image: vec![7; bytes], kernels: Vec::new() }
    }

    fn open(folder: &Path, room: u64) -> Cache {
        Cache { room, ..Cache::open(Some(folder.to_owned())) }
    }

    #[test]
    fn what_was_put_is_got_by_others() {
        let folder = tempfile::tempdir().unwrap();
        open(folder.path(), ROOM).put(5, &image(100));
        assert_eq!(open(folder.path(), ROOM).get(5), Some(image(100)));
        assert_eq!(open(folder.path(), ROOM).get(6), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left of the attempt");
    }

    #[test]
    fn what_is_damaged_is_as_if_it_were_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), ROOM);
        cache.put(5, &image(100));
        let path = cache.path(5).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(cache.get(5), None);
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), 25_000);
        for key in 0..3 {
            cache.put(key, &image(10_000));
            let file = File::options().write(true).open(cache.path(key).unwrap()).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1000 + key as u64)).unwrap();
        }
        assert_eq!(cache.get(0), None);
        assert!(cache.get(1).is_some() && cache.get(2).is_some());
    }

    #[test]
    fn a_link_is_not_followed_and_no_folder_is_no_cache() {
        let folder = tempfile::tempdir().unwrap();
        let cache = open(folder.path(), ROOM);
        cache.put(1, &image(10));
        std::os::unix::fs::symlink(cache.path(1).unwrap(), cache.path(2).unwrap()).unwrap();
        assert_eq!(cache.get(2), None);
        let none = Cache::open(None);
        none.put(1, &image(10));
        assert_eq!(none.get(1), None);
    }
}
