//! The loader's cache, `/etc/ld.so.cache`: which file a library's name stands for.
//!
//! ```text
//! old header, optional   "ld.so-1.7.0", pad, count u32, count × 12 bytes; the new one follows, aligned to 8
//! new header, 48 bytes   "glibc-ld.so.cache1.1", count u32, bytes of strings u32, flags and room for more
//! entries, 24 bytes      flags u32, name u32, path u32, OS version u32, hardware capabilities u64
//! strings                offsets count from the beginning of the new header; each ends in a zero byte
//! ```
//!
//! Numbers are in the byte order of the machine which wrote them, that is, ours.

const OLD_MAGIC: &[u8] = b"ld.so-1.7.0";
const OLD_COUNT: usize = 12;
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;
const NEW_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const NEW_COUNT: usize = 20;
const NEW_HEADER: usize = 48;
const NEW_ENTRY: usize = 24;
const NEW_ALIGNMENT: usize = 8;

/// Flags of an entry: an ELF library for glibc, and the architecture.
#[cfg(target_arch = "aarch64")]
const FLAGS: u32 = 0x0a03;
#[cfg(not(target_arch = "aarch64"))]
const FLAGS: u32 = 0x0303;

/// Longer ones cannot be opened.
const LONGEST_PATH: usize = 4096;

/// The paths under which the cache knows a library of this machine's architecture, in the cache's order, which is
/// the loader's: the most specialised first.
pub(crate) fn paths<'a>(cache: &'a [u8], library: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let table = new_format(cache).unwrap_or_default();
    let count = number(table, NEW_COUNT).unwrap_or_default() as usize;
    let entries = table.get(NEW_HEADER..).unwrap_or_default().chunks_exact(NEW_ENTRY).take(count);
    entries.filter_map(move |entry| {
        let right = number(entry, 0)? == FLAGS && is_string(table, number(entry, 4)?, library);
        right.then(|| string(table, number(entry, 8)?)).flatten()
    })
}

/// What follows, and includes, the new header.
fn new_format(cache: &[u8]) -> Option<&[u8]> {
    let start = match cache.starts_with(OLD_MAGIC) {
        false => 0,
        true => {
            let entries = OLD_ENTRY.checked_mul(number(cache, OLD_COUNT)? as usize)?;
            OLD_HEADER.checked_add(entries)?.checked_next_multiple_of(NEW_ALIGNMENT)?
        }
    };
    cache.get(start..).filter(|table| table.starts_with(NEW_MAGIC))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let field = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*field))
}

fn is_string(table: &[u8], at: u32, wanted: &[u8]) -> bool {
    let found = table.get(at as usize..).and_then(|rest| rest.strip_prefix(wanted));
    found.is_some_and(|rest| rest.first() == Some(&0))
}

fn string(table: &[u8], at: u32) -> Option<&[u8]> {
    let rest = table.get(at as usize..)?;
    let rest = rest.get(..LONGEST_PATH).unwrap_or(rest);
    let end = rest.iter().position(|&byte| byte == 0)?;
    rest.get(..end)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A cache with these (flags, name, path).
    pub fn made(entries: &[(u32, &str, &str)]) -> Vec<u8> {
        let mut strings = Vec::new();
        let mut table = Vec::new();
        for (flags, name, path) in entries {
            let place = |strings: &Vec<u8>| (NEW_HEADER + entries.len() * NEW_ENTRY + strings.len()) as u32;
            let name_at = place(&strings);
            strings.extend(name.bytes().chain([0]));
            let path_at = place(&strings);
            strings.extend(path.bytes().chain([0]));
            for field in [*flags, name_at, path_at, 0, 0, 0] {
                table.extend(field.to_ne_bytes());
            }
        }
        let mut cache = NEW_MAGIC.to_vec();
        cache.extend((entries.len() as u32).to_ne_bytes());
        cache.extend((strings.len() as u32).to_ne_bytes());
        cache.resize(NEW_HEADER, 0);
        cache.extend(table);
        cache.extend(strings);
        cache
    }

    pub const OURS: u32 = FLAGS;

    fn found(cache: &[u8], library: &str) -> Vec<String> {
        let text = |path: &[u8]| String::from_utf8(path.to_vec()).unwrap();
        paths(cache, library.as_bytes()).map(text).collect()
    }

    #[test]
    fn only_libraries_of_this_name_and_architecture_are_given_in_order() {
        let cache = made(&[
            (OURS, "libcuda.so.1", "/first/libcuda.so.1"),
            (0x0003, "libcuda.so.1", "/32/libcuda.so.1"),
            (OURS, "libcuda.so", "/dev/libcuda.so"),
            (OURS, "libcuda.so.1", "/second/libcuda.so.1"),
        ]);
        assert_eq!(found(&cache, "libcuda.so.1"), ["/first/libcuda.so.1", "/second/libcuda.so.1"]);
        assert!(found(&cache, "libcuda").is_empty());
    }

    #[test]
    fn the_new_format_is_found_behind_the_old_one() {
        let mut cache = OLD_MAGIC.to_vec();
        cache.resize(OLD_COUNT, 0);
        cache.extend(3u32.to_ne_bytes());
        // Three entries end at 52, and what follows is aligned to 56.
        cache.resize(56, 0xff);
        cache.extend(made(&[(OURS, "libcuda.so.1", "/there/libcuda.so.1")]));
        assert_eq!(found(&cache, "libcuda.so.1"), ["/there/libcuda.so.1"]);
    }

    #[test]
    fn a_cache_cut_anywhere_gives_at_most_what_it_held() {
        let cache =
            made(&[(OURS, "libcuda.so.1", "/a/libcuda.so.1"), (OURS, "libcuda.so.1", "/b/libcuda.so.1")]);
        for end in 0..cache.len() {
            assert!(found(&cache[..end], "libcuda.so.1").len() < 2, "{end}");
        }
    }

    #[test]
    fn this_machines_cache_says_what_ldconfig_says() {
        let Ok(cache) = std::fs::read("/etc/ld.so.cache") else {
            eprintln!("skipped: this machine has no loader cache");
            return;
        };
        let printed = ["/sbin/ldconfig", "/usr/sbin/ldconfig"]
            .iter()
            .find_map(|program| std::process::Command::new(program).arg("-p").output().ok());
        let Some(printed) = printed.filter(|printed| printed.status.success()) else {
            eprintln!("skipped: this machine has no ldconfig");
            return;
        };
        let architecture = if cfg!(target_arch = "aarch64") { "(libc6,AArch64" } else { "(libc6,x86-64" };
        let printed = String::from_utf8(printed.stdout).unwrap();
        let expected = printed.lines().filter_map(|line| {
            let (name, rest) = line.trim().split_once(' ')?;
            let (kind, path) = rest.split_once(" => ")?;
            (name == "libc.so.6" && kind.starts_with(architecture)).then(|| path.to_owned())
        });
        assert_eq!(found(&cache, "libc.so.6"), expected.collect::<Vec<_>>());
        assert!(!found(&cache, "libc.so.6").is_empty(), "every glibc system knows its own C library");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
            paths(&bytes, b"libcuda.so.1").for_each(drop);
        }

        /// Bytes of chance rarely pass the magic; damage to a good cache gets further.
        #[test]
        fn no_damage_makes_the_reader_panic(changes in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..16)) {
            let mut cache = made(&[(OURS, "libcuda.so.1", "/a/libcuda.so.1"); 3]);
            for (at, byte) in changes {
                let at = at % cache.len();
                cache[at] = byte;
            }
            for path in paths(&cache, b"libcuda.so.1") {
                prop_assert!(path.len() < LONGEST_PATH && !path.contains(&0));
            }
        }
    }
}
