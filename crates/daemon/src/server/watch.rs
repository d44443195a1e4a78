//! Hearing of it when the configuration's files change.
//!
//! Folders are watched rather than files: editors, package managers and container runtimes replace files, and a watch of a
//! file would follow the old one into oblivion. What came is not looked at closely; whoever hears of it reads everything
//! again and compares. A folder that is not there yet is waited for at the nearest one that is.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

use crate::Sources;

/// So long after the last change the files are read.
pub const QUIET: model::Nanos = model::Nanos::from_millis(200);
/// And so long after the first, should changes not end.
pub const AT_MOST: model::Nanos = model::Nanos::from_millis(1_000);

/// What can become of a file that matters. It is whole when it is closed, moved here or gone.
const CHANGES: WatchFlags = WatchFlags::CLOSE_WRITE
    .union(WatchFlags::CREATE)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// How a folder can come to be.
const ARRIVALS: WatchFlags = WatchFlags::CREATE.union(WatchFlags::MOVED_TO).union(WatchFlags::DELETE_SELF);

#[derive(Debug)]
pub struct Watch {
    inotify: OwnedFd,
    folders: Vec<(i32, PathBuf)>,
}

impl Watch {
    /// Watches what is there now. To be made anew before every reading, so that no change falls between the two.
    pub fn of(sources: &Sources) -> io::Result<Watch> {
        let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let mut watch = Watch { inotify, folders: Vec::new() };
        for folder in [sources.main().and_then(Path::parent), sources.folder()].into_iter().flatten() {
            watch.aim(folder)?;
        }
        Ok(watch)
    }

    /// A folder, or the nearest one above it.
    fn aim(&mut self, folder: &Path) -> io::Result<()> {
        for (distance, folder) in folder.ancestors().enumerate() {
            let what = if distance == 0 { CHANGES } else { ARRIVALS | WatchFlags::MASK_ADD };
            match add_watch(&self.inotify, folder, what | WatchFlags::ONLYDIR) {
                Ok(number) => {
                    self.folders.push((number, folder.to_owned()));
                    return Ok(());
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether something happened that may matter.
    pub fn stirred(&self) -> bool {
        let mut room = [MaybeUninit::uninit(); 4096];
        let mut events = Reader::new(&self.inotify, &mut room);
        let mut stirred = false;
        // There is an end to what is queued; others come in while we read, but no faster than files are made.
        while let Ok(event) = events.next() {
            let begun = event.events().contains(ReadFlags::CREATE) && {
                let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
                self.is_being_written(event.wd(), name.as_deref())
            };
            stirred |= !begun;
        }
        stirred
    }

    /// A new file is heard of once more when it is whole. A folder and a link are whole at once.
    fn is_being_written(&self, number: i32, name: Option<&str>) -> bool {
        let folder = self.folders.iter().find(|(known, _)| *known == number);
        let path = folder.zip(name).map(|((_, folder), name)| folder.join(name));
        path.and_then(|path| path.symlink_metadata().ok()).is_some_and(|facts| facts.is_file())
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scope;
    use std::fs;

    #[test]
    fn it_hears_of_files_that_come_change_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("etc/ebb/ebb.toml");
        let sources = Sources::beside(&main, false, Scope::User, 0);
        let again = || Watch::of(&sources).unwrap();
        let mut watch = again();
        assert!(!watch.stirred(), "nothing has happened");
        fs::create_dir_all(main.parent().unwrap()).unwrap();
        assert!(watch.stirred(), "the nearest folder above was watched");
        watch = again();
        fs::write(&main, "").unwrap();
        assert!(watch.stirred() && !watch.stirred());
        fs::create_dir(sources.folder().unwrap()).unwrap();
        assert!(watch.stirred());
        watch = again();
        let fresh = sources.folder().unwrap().join("a.new");
        let file = fs::File::create(&fresh).unwrap();
        assert!(!watch.stirred(), "it is being written");
        drop(file);
        assert!(watch.stirred());
        fs::rename(&fresh, fresh.with_extension("toml")).unwrap();
        assert!(watch.stirred());
        std::os::unix::fs::symlink("a.toml", sources.folder().unwrap().join("b.toml")).unwrap();
        assert!(watch.stirred());
        fs::remove_dir_all(sources.folder().unwrap()).unwrap();
        assert!(watch.stirred());
        fs::write(folder.path().join("unrelated"), "").unwrap();
        assert!(!watch.stirred());
    }
}
