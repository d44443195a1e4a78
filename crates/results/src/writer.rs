//! Appending to a result file, so that an interruption costs the run under way and nothing else.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::{Error, FILE, Record};

/// Appends records to `results.jsonl` of a folder. Each is one write, so a reader sees it whole or, after a crash, as a
/// torn last line. Two writers would interleave their machines, so the second is refused.
pub struct Writer {
    file: File,
    path: PathBuf,
}

impl Writer {
    /// Opens the file of a folder for appending; makes both where they are missing.
    pub fn open(folder: &Path) -> Result<Writer, Error> {
        let path = folder.join(FILE);
        let failed = |doing| {
            let path = path.clone();
            move |reason| Error::File { doing, path, reason }
        };
        fs::create_dir_all(folder).map_err(failed("make the folder of"))?;
        let mut file =
            File::options().create(true).read(true).append(true).open(&path).map_err(failed("open"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::Busy(path)),
            Err(TryLockError::Error(reason)) => return Err(failed("lock")(reason)),
        }
        mend(&mut file).map_err(failed("mend the last line of"))?;
        Ok(Writer { file, path })
    }

    /// Appends one record; when this returns, a crash of this process cannot lose it.
    pub fn append(&mut self, record: &Record) -> Result<(), Error> {
        let mut line = serde_json::to_vec(record).map_err(Error::Record)?;
        line.push(b'\n');
        self.file.write_all(&line).map_err(|reason| self.failed("write", reason))
    }

    /// Has the operating system put everything on the disk.
    pub fn finish(self) -> Result<(), Error> {
        self.file.sync_all().map_err(|reason| self.failed("write", reason))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, doing: &'static str, reason: io::Error) -> Error {
        Error::File { doing, path: self.path.clone(), reason }
    }
}

/// What a crash left of a last record would spoil the next one, which would be glued to it: it goes.
fn mend(file: &mut File) -> io::Result<()> {
    const CHUNK: u64 = 1 << 16;
    let mut length = file.seek(SeekFrom::End(0))?;
    while length > 0 {
        let begin = length.saturating_sub(CHUNK);
        let mut bytes = vec![0; (length - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut bytes)?;
        if let Some(newline) = bytes.iter().rposition(|byte| *byte == b'\n') {
            length = begin + newline as u64 + 1;
            break;
        }
        length = begin;
    }
    file.set_len(length)
}
