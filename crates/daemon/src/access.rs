//! Whether somebody who wants a seat at a GPU may use that GPU, and with whom it is seated there.
//!
//! A registration names a GPU, and a name proves nothing. So it comes with a descriptor of the GPU's own file, open for reading
//! and writing: the kernel has let that process open it, whatever modes, access lists, containers or device groups say. With
//! NVIDIA's driver the file is `/dev/nvidiaN`, and the kernel's driver says which GPU that is; a software GPU is the file of its
//! card. Who has shown it sits at the board of all users of that GPU.
//!
//! There are GPUs of which this cannot be known: a slice of a GPU (MIG) has a name of its own, a container may hide the driver's
//! list, some systems have none, and the card of a software GPU may lie in its user's own folder. Then users do not meet: each has a board of its own for that name, at which nobody else is
//! seated. A made-up name so gives nobody anything but a board for itself, and of those a user has few (`registry`).
//!
//! A descriptor may lead to a file of somebody who means no good, a file system in its own process say, which need never answer.
//! So it is asked nothing that the file system would be asked for, and closed by a thread of its own ([`FileDisposal`]).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use board::Gpu;
use board::link::Reason;
use model::Nanos;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{AtFlags, FileType, OFlags, StatxFlags};

use crate::uuid;

/// The files of software GPUs, by the folder of the daemon: each with its file system and its number there.
pub type CardFiles = fn(&Path) -> Vec<(Gpu, u64, u64)>;

/// Where the kernel's driver tells of its GPUs.
const DRIVER: &str = "/proc/driver/nvidia";
/// NVIDIA's devices have this major number.
const NVIDIA: u32 = 195;
/// The driver's list is read no more often, since anybody who registers can make us look.
const READ_EVERY: Nanos = Nanos::from_millis(1_000);
/// Descriptors of one user that are still being closed. Who has so many is not heard until some are.
const CLOSING: usize = 8;

/// At whose board somebody is seated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeatedWith {
    /// With everybody who may use the GPU.
    Everybody,
    /// With processes of its own user only.
    OwnUser,
}

/// Who wants a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Applicant {
    pub user: u32,
    /// Root, or the daemon's own user, need not show anything.
    pub trusted: bool,
}

/// What a descriptor is, of one that is open for reading and writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownFile {
    Device { major: u32, minor: u32 },
    File { device: u64, inode: u64, owner: u32 },
}

/// What is known of the machine's GPUs.
pub struct GpuAccess {
    driver: PathBuf,
    folder: PathBuf,
    pub cards: Option<CardFiles>,
    /// The GPUs of NVIDIA's driver, with the minor numbers of their files.
    devices: BTreeMap<Gpu, u32>,
    read_at: Option<Nanos>,
}

impl GpuAccess {
    pub fn new(folder: PathBuf) -> GpuAccess {
        GpuAccess::of_driver(DRIVER.into(), folder)
    }

    fn of_driver(driver: PathBuf, folder: PathBuf) -> GpuAccess {
        GpuAccess { driver, folder, cards: None, devices: BTreeMap::new(), read_at: None }
    }

    /// At whose board a process is seated that shows this file, or why at none.
    pub fn judge(
        &mut self,
        gpu: Gpu,
        shown: Option<BorrowedFd<'_>>,
        applicant: Applicant,
        now: Nanos,
    ) -> Result<SeatedWith, Reason> {
        let Applicant { user, trusted } = applicant;
        let shown = shown.and_then(ShownFile::of);
        let allowed = |is_it: bool| {
            if is_it || trusted { Ok(SeatedWith::Everybody) } else { Err(Reason::NoAccess) }
        };
        let is_device = |minor: u32| shown == Some(ShownFile::Device { major: NVIDIA, minor });
        if !self.devices.get(&gpu).copied().is_some_and(is_device) {
            self.read_devices(now);
        }
        if let Some(minor) = self.devices.get(&gpu) {
            return allowed(is_device(*minor));
        }
        let cards = self.cards.map(|cards| cards(&self.folder)).unwrap_or_default();
        let mut named = cards.iter().filter(|(card, ..)| *card == gpu);
        match (named.next(), named.next()) {
            (Some(&(_, device, inode)), None) => {
                let is_it = |file| matches!(file, ShownFile::File { device: d, inode: i, .. } if (d, i) == (device, inode));
                return allowed(shown.is_some_and(is_it));
            }
            // Somebody has given its own card the name of another, and which is which nobody can say.
            (Some(_), Some(_)) => return Ok(SeatedWith::OwnUser),
            (None, _) => {}
        }
        let cannot_be_known = match shown {
            Some(ShownFile::Device { major: NVIDIA, minor }) => self.is_sliced(minor),
            // As good as the card of a software GPU in a folder that we cannot see.
            Some(ShownFile::File { owner, .. }) => owner == user,
            _ => false,
        };
        let nothing_known = self.devices.is_empty() && cards.is_empty();
        let seated = cannot_be_known || nothing_known || trusted;
        seated.then_some(SeatedWith::OwnUser).ok_or(Reason::UnknownGpu)
    }

    fn read_devices(&mut self, now: Nanos) {
        if self.read_at.is_some_and(|at| now.since(at) < READ_EVERY) {
            return;
        }
        self.read_at = Some(now);
        let entries = fs::read_dir(self.driver.join("gpus")).into_iter().flatten().flatten();
        let texts = entries.filter_map(|entry| fs::read_to_string(entry.path().join("information")).ok());
        self.devices = texts.filter_map(|text| told(&text)).collect();
    }

    /// Whether there are slices of a GPU. Their names are not in the driver's list.
    fn is_sliced(&self, minor: u32) -> bool {
        let slices = self.driver.join(format!("capabilities/gpu{minor}/mig"));
        let entries = fs::read_dir(slices).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().as_encoded_bytes().starts_with(b"gi"))
    }
}

/// A GPU and the minor number of its file, as the driver tells them.
fn told(information: &str) -> Option<(Gpu, u32)> {
    let value = |name: &str| {
        let line = information.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
    };
    Some((uuid::read(value("GPU UUID:")?)?, value("Device Minor:")?.parse().ok()?))
}

impl ShownFile {
    /// What can be said of a descriptor without asking the keeper of its file. `None`: it was not opened for reading and writing.
    fn of(file: BorrowedFd<'_>) -> Option<ShownFile> {
        let flags = rustix::fs::fcntl_getfl(file).ok()?;
        if flags.contains(OFlags::PATH) || flags & OFlags::RWMODE != OFlags::RDWR {
            return None;
        }
        let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let facts =
            rustix::fs::statx(file, c"", how, StatxFlags::TYPE | StatxFlags::INO | StatxFlags::UID).ok()?;
        match FileType::from_raw_mode(facts.stx_mode.into()) {
            FileType::CharacterDevice => {
                Some(ShownFile::Device { major: facts.stx_rdev_major, minor: facts.stx_rdev_minor })
            }
            FileType::RegularFile => {
                let device = rustix::fs::makedev(facts.stx_dev_major, facts.stx_dev_minor);
                Some(ShownFile::File { device, inode: facts.stx_ino, owner: facts.stx_uid })
            }
            _ => None,
        }
    }
}

/// Closes what was shown. To close a file may ask its keeper, and that may take for ever; so it is done elsewhere, and
/// counted for the user who has shown it.
#[derive(Debug)]
pub struct FileDisposal {
    users: BTreeMap<u32, Arc<AtomicUsize>>,
    /// Rings when a file is closed. Who was not heard for so long can be heard then.
    bell: Arc<OwnedFd>,
}

impl FileDisposal {
    pub fn new() -> io::Result<FileDisposal> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(FileDisposal { users: BTreeMap::new(), bell: Arc::new(bell) })
    }

    pub fn close(&mut self, user: u32, file: OwnedFd) {
        self.close_by(user, file, |close| {
            let thread = std::thread::Builder::new().name("ebb-close".to_owned()).stack_size(1 << 16);
            thread.spawn(close).map(drop)
        });
    }

    fn close_by(
        &mut self,
        user: u32,
        file: OwnedFd,
        start: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<()>,
    ) {
        self.users.retain(|_, count| count.load(Ordering::Relaxed) > 0);
        let count = self.users.entry(user).or_default().clone();
        count.fetch_add(1, Ordering::Relaxed);
        let (counted, bell) = (count.clone(), self.bell.clone());
        let close = move || {
            drop(file);
            counted.fetch_sub(1, Ordering::Relaxed);
            // A count that is full has rung already.
            let _ = rustix::io::write(&bell, &1u64.to_ne_bytes());
        };
        // Where there can be no thread it is closed here, with the closure that was not run. Others of that user are still being
        // closed.
        if start(Box::new(close)).is_err() {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether somebody has shown files that do not let themselves be closed.
    pub fn is_behind(&self, user: u32) -> bool {
        self.users.get(&user).is_some_and(|count| count.load(Ordering::Relaxed) >= CLOSING)
    }

    /// The bell has been heard, and rings again when the next file is closed.
    pub fn take_ring(&self) {
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
    }
}

impl AsFd for FileDisposal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, OpenOptions};
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};

    const LATER: Nanos = Nanos::from_millis(2_000);

    /// A driver that tells of one GPU, whose file is `/dev/null` but for its major number.
    fn driver(uuid: &str, minor: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let gpu = folder.path().join("gpus/0000:3b:00.0");
        fs::create_dir_all(&gpu).unwrap();
        let text = format!("Model: \t\t NVIDIA H200\nGPU UUID: \t {uuid}\nDevice Minor: \t {minor}\n");
        fs::write(gpu.join("information"), text).unwrap();
        folder
    }

    const STRANGER: Applicant = Applicant { user: 65_533, trusted: false };
    const ROOT: Applicant = Applicant { user: 0, trusted: true };
    const NAME: &str = "GPU-abababab-abab-abab-abab-abababababab";
    const GPU: Gpu = Gpu([0xab; 16]);

    fn card(folder: &Path) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).open(folder.join("card")).unwrap()
    }

    fn cards(folder: &Path) -> Vec<(Gpu, u64, u64)> {
        let facts = fs::metadata(folder.join("card"));
        let twins = if folder.join("twins").exists() { 2 } else { 1 };
        facts.map_or_else(|_| Vec::new(), |facts| vec![(GPU, facts.dev(), facts.ino()); twins])
    }

    fn of_cards(folder: &Path) -> GpuAccess {
        let mut access = GpuAccess::of_driver(folder.join("none"), folder.to_owned());
        access.cards = Some(cards);
        access
    }

    #[test]
    fn a_device_is_told_by_the_kernels_driver() {
        let folder = driver(NAME, 3);
        let mut access = GpuAccess::of_driver(folder.path().to_owned(), folder.path().to_owned());
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
        // Another device, and nothing at all, show nothing.
        for shown in [Some(null.as_fd()), None] {
            assert_eq!(access.judge(GPU, shown, STRANGER, Nanos(1)), Err(Reason::NoAccess));
        }
        assert_eq!(access.judge(GPU, None, ROOT, Nanos(1)), Ok(SeatedWith::Everybody));
        assert_eq!(ShownFile::of(null.as_fd()), Some(ShownFile::Device { major: 1, minor: 3 }));
        assert_eq!(access.devices.get(&GPU), Some(&3));
        assert_eq!(access.judge(Gpu([1; 16]), None, STRANGER, LATER), Err(Reason::UnknownGpu));
    }

    #[test]
    fn a_card_is_shown_by_its_file_open_for_reading_and_writing() {
        let folder = tempfile::tempdir().unwrap();
        let own = card(folder.path());
        let mut access = of_cards(folder.path());
        assert_eq!(access.judge(GPU, Some(own.as_fd()), STRANGER, Nanos(1)), Ok(SeatedWith::Everybody));
        let open = |flags: i32, write: bool| {
            let mut options = OpenOptions::new();
            options.read(true).write(write).custom_flags(flags).open(folder.path().join("card")).unwrap()
        };
        let other = tempfile::tempfile().unwrap();
        for shown in [open(0, false), open(libc::O_PATH, false), other] {
            let judged = access.judge(GPU, Some(shown.as_fd()), STRANGER, Nanos(1));
            assert_eq!(judged, Err(Reason::NoAccess));
        }
        assert_eq!(access.judge(GPU, None, STRANGER, Nanos(1)), Err(Reason::NoAccess));
        assert_eq!(access.judge(Gpu([1; 16]), Some(own.as_fd()), STRANGER, LATER), Err(Reason::UnknownGpu));
        let owner = Applicant { user: own.metadata().unwrap().uid(), trusted: false };
        let elsewhere = access.judge(Gpu([1; 16]), Some(own.as_fd()), owner, LATER);
        assert_eq!(elsewhere, Ok(SeatedWith::OwnUser), "a card that lies where we cannot see it");
    }

    #[test]
    fn where_it_cannot_be_known_users_do_not_meet() {
        let folder = tempfile::tempdir().unwrap();
        let mut access = of_cards(folder.path());
        assert_eq!(access.judge(GPU, None, STRANGER, Nanos(1)), Ok(SeatedWith::OwnUser), "no GPU is known");
        let own = card(folder.path());
        fs::write(folder.path().join("twins"), "").unwrap();
        let judged = access.judge(GPU, Some(own.as_fd()), STRANGER, Nanos(1));
        assert_eq!(judged, Ok(SeatedWith::OwnUser), "two cards have one name");
    }

    #[test]
    fn what_was_shown_is_closed() {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut disposal = FileDisposal::new().unwrap();
        disposal.close(5, writer.into());
        assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "the pipe has ended");
        assert!(!disposal.is_behind(5) && !disposal.is_behind(6));
    }

    /// Nobody is counted as if all of its files were closed because there was no thread for one of them.
    #[test]
    fn a_file_that_finds_no_thread_is_closed_and_the_others_are_still_counted() {
        let mut disposal = FileDisposal::new().unwrap();
        let mut waiting = Vec::new();
        let file = || OwnedFd::from(tempfile::tempfile().unwrap());
        for _ in 0..CLOSING {
            disposal.close_by(5, file(), |close| {
                waiting.push(close);
                Ok(())
            });
        }
        assert!(disposal.is_behind(5));
        let (reader, writer) = std::io::pipe().unwrap();
        disposal.close_by(5, writer.into(), |_| Err(std::io::ErrorKind::WouldBlock.into()));
        assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "it is closed");
        assert!(disposal.is_behind(5) && !disposal.is_behind(6));
        assert_eq!(rustix::io::read(&disposal, &mut [0; 8]), Err(rustix::io::Errno::AGAIN));
        waiting.pop().unwrap()();
        assert!(!disposal.is_behind(5), "one of them is closed");
        assert_eq!(rustix::io::read(&disposal, &mut [0; 8]), Ok(8), "which is told");
    }

    #[test]
    fn nonsense_of_a_driver_is_no_gpu() {
        assert_eq!(told(&format!("GPU UUID: {NAME}\nDevice Minor: 7\n")), Some((GPU, 7)));
        for text in
            ["", "GPU UUID: GPU-????????-????-????-????-????????????\nDevice Minor: 0\n", "Device Minor: 0\n"]
        {
            assert_eq!(told(text), None);
        }
    }
}
