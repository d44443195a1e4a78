//! Processes that could not make their ledger, told by themselves.
//!
//! A process whose ledger cannot be made (the disk is full, say) leaves nothing behind, and a reader of the folder would take
//! it for one that never used CUDA. So the maker of a folder for ledgers puts a small file beside them that has all its blocks
//! from the beginning: a few words can be written into it where nothing new can be made any more.

use std::ffi::CStr;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::{Error, file};

const NAME: &str = "unwritten";
/// A record is the number of a process and that of an error; all zeros is no record.
const RECORD: usize = 8;
const RECORDS: usize = 512;
const BYTES: usize = RECORD * RECORDS;

/// A process that used CUDA and could not make its ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwrittenLedger {
    pub pid: u32,
    reason: u32,
}

impl UnwrittenLedger {
    /// Makes the file in a folder, with its room.
    pub fn prepare(folder: &Path) -> io::Result<()> {
        let path = folder.join(NAME);
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let made =
            OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(&path);
        let reserved = file::reserve(&made?.into(), BYTES);
        if reserved.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        Ok(reserved?)
    }

    /// Says that this process could not make its ledger. Where there is no such file nothing is said. No heap: this is called
    /// inside host programs.
    pub fn tell(folder: &CStr, error: &Error) {
        let reason = match error {
            Error::Make(reason) => *reason,
            _ => Errno::NAMETOOLONG,
        };
        let _ = put(folder, reason);
    }

    /// All that was told in a folder. Where there is no such file nothing was.
    pub fn read_all(folder: &Path) -> Vec<UnwrittenLedger> {
        let mut bytes = [0; BYTES];
        let file = file::open(&folder.join(NAME), None, BYTES, "a list of ledgers that are missing");
        let read = file.map(|file| std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0));
        if matches!(read, Ok(Ok(()))) { UnwrittenLedger::parse(&bytes) } else { Vec::new() }
    }

    /// What the bytes of the file say.
    pub fn parse(bytes: &[u8]) -> Vec<UnwrittenLedger> {
        let half = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().expect("half of a record"));
        let records = bytes.chunks_exact(RECORD).take(RECORDS);
        let told = records.map(|record| (half(&record[..4]), half(&record[4..])));
        told.filter(|&(pid, _)| pid != 0).map(|(pid, reason)| UnwrittenLedger { pid, reason }).collect()
    }

    /// Why not, in the system's words.
    pub fn reason(self) -> io::Error {
        io::Error::from_raw_os_error(i32::try_from(self.reason).unwrap_or(0))
    }
}

fn put(folder: &CStr, reason: Errno) -> Result<(), Errno> {
    let mut path = [0; 4096];
    let mut rest = &mut path[..];
    rest.write_all(folder.to_bytes())
        .and_then(|()| write!(rest, "/{NAME}\0"))
        .map_err(|_| Errno::NAMETOOLONG)?;
    let path = CStr::from_bytes_until_nul(&path).expect("a zero was written behind the name");
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    // A longer file would be another's, and a shorter one would have to grow.
    if usize::try_from(rustix::fs::fstat(&file)?.st_size) != Ok(BYTES) {
        return Err(Errno::INVAL);
    }
    let pid = rustix::process::getpid().as_raw_nonzero().get().unsigned_abs();
    let mut record = [0; RECORD];
    record[..4].copy_from_slice(&pid.to_ne_bytes());
    record[4..].copy_from_slice(&reason.raw_os_error().unsigned_abs().to_ne_bytes());
    let first = pid as usize % RECORDS;
    for slot in (first..RECORDS).chain(0..first) {
        let at = (slot * RECORD) as u64;
        let mut there = [0; RECORD];
        rustix::io::pread(&file, &mut there, at)?;
        // Two processes that find the same place free at once are told as one, which is enough to know that some are missing.
        if there == [0; RECORD] || there[..4] == record[..4] {
            rustix::io::pwrite(&file, &record, at)?;
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_process_could_not_write_is_known_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let name = CString::new(folder.path().as_os_str().as_bytes()).unwrap();
        UnwrittenLedger::tell(&name, &Error::Make(Errno::NOSPC));
        assert_eq!(UnwrittenLedger::read_all(folder.path()), [], "nobody asked to be told");
        UnwrittenLedger::prepare(folder.path()).unwrap();
        assert_eq!(UnwrittenLedger::read_all(folder.path()), []);
        for _ in 0..3 {
            UnwrittenLedger::tell(&name, &Error::Make(Errno::NOSPC));
        }
        let told = UnwrittenLedger::read_all(folder.path());
        assert_eq!((told.len(), told[0].pid), (1, std::process::id()));
        assert!(told[0].reason().to_string().starts_with("No space left on device"), "{}", told[0].reason());
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let name = CString::new(folder.path().as_os_str().as_bytes()).unwrap();
        let path = folder.path().join(NAME);
        std::fs::write(&path, "a diary").unwrap();
        UnwrittenLedger::tell(&name, &Error::NameTooLong);
        assert_eq!(std::fs::read(&path).unwrap(), b"a diary");
        assert_eq!(UnwrittenLedger::read_all(folder.path()), []);
    }

    proptest! {
        #[test]
        fn any_bytes_name_processes_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..5000)) {
            for told in UnwrittenLedger::parse(&bytes) {
                prop_assert_ne!(told.pid, 0);
                prop_assert!(!told.reason().to_string().is_empty());
            }
        }
    }
}
