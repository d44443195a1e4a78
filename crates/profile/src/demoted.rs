//! What the guard has found out about kernels, in the file it keeps beside its twins.
//!
//! A line each: the hash of the code, a reason, seconds since 1970, the kernel's name. That hash is of the very image that the
//! driver runs, while a profile's is of the module the program loaded, in which there may be several images. So a line can be
//! shown beside a kernel of its name, but not merged into its record without asking the one who knows both. Here it is read only;
//! reasons are words there as they are in records, so that one day a record can take the place of a line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use installation::memory;
use model::Nanos;

use crate::record::Word;

/// The guard cuts its file at half of this.
const LONGEST: u64 = 2 << 20;

/// A kernel that was found not to be what it seemed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demoted {
    /// The hash of the image with its code.
    pub code: u128,
    pub reason: Word,
    /// Since 1970.
    pub when: Nanos,
    pub name: String,
}

/// All lines of the file in the guard's folder that make sense, oldest first. No file is no lines.
pub fn demoted(folder: &Path) -> Vec<Demoted> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(folder.join(memory::DEMOTIONS)) {
        // Of a file that cannot be read to its end, the lines up to there count.
        let _ = file.take(LONGEST).read_to_end(&mut bytes);
    }
    read_lines(&bytes)
}

/// All lines of these bytes that make sense.
pub fn read_lines(bytes: &[u8]) -> Vec<Demoted> {
    String::from_utf8_lossy(bytes).lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Demoted> {
    let mut words = line.splitn(4, ' ');
    let code =
        words.next().filter(|code| code.len() == 32 && code.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let code = u128::from_str_radix(code, 16).ok()?;
    let reason = Word::new(words.next()?)?;
    let when = Nanos(words.next()?.parse::<u64>().ok()?.checked_mul(1_000_000_000)?);
    let name = words.next().filter(|name| !name.is_empty() && !name.contains(model::text::is_hidden))?;
    Some(Demoted { code, reason, when, name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_that_make_sense_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let key = format!("{:032x}", 7);
        let lines = [
            format!("{key} waits-for-others 17 void add(int, int)"),
            format!("{key} a-reason-of-tomorrow 18 scan"),
            format!("{key} ordered never bad"),
            format!("{key} ordered 17 "),
            format!("{key} ordered 99999999999999999999 bad"),
            "7 ordered 17 bad".to_owned(),
            String::new(),
        ];
        std::fs::write(folder.path().join(memory::DEMOTIONS), lines.join("\n")).unwrap();
        let found = demoted(folder.path());
        let told: Vec<_> = found.iter().map(|one| (one.reason.as_str(), one.name.as_str())).collect();
        assert_eq!(told, [("waits-for-others", "void add(int, int)"), ("a-reason-of-tomorrow", "scan")]);
        assert_eq!((found[0].code, found[0].when), (7, Nanos(17_000_000_000)));
    }

    #[test]
    fn no_file_is_no_lines() {
        assert_eq!(demoted(Path::new("/nowhere/at/all")), []);
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd(line in ".*") {
            if let Some(found) = parse(&line) {
                prop_assert!(!found.name.contains(model::text::is_hidden) && !found.reason.as_str().is_empty());
            }
        }
    }
}
