//! The reader: what a ledger says, checked.

use std::mem::offset_of;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::layout::{
    BYTES, Header, KERNEL_SHARDS, KERNELS, KernelCount, KernelEntry, KernelShard, Layout, MAGIC, Shard, Text,
    VERSION,
};
use crate::shard::SHARDS;
use crate::{AllocationKind, Counter, Error, LaunchKind, Note, StreamKind, file};

/// A ledger at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    pub pid: u32,
    /// Nanoseconds since 1970.
    pub started: u64,
    /// The program as its command line began.
    pub program: String,
    /// The library behind the shim; empty if there was none.
    pub driver: String,
    /// As CUDA counts: 13000 is 13.0. Zero when it was never asked.
    pub driver_version: i32,
    pub notes: Vec<Note>,
    /// More about the notes, in words; may be empty.
    pub detail: String,
    /// Most launched first.
    pub kernels: Vec<KernelReading>,
    counters: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelReading {
    /// Which place in the ledger it has; by this number events name it.
    pub index: u32,
    /// As the module calls it, mangled; long ones are cut.
    pub name: String,
    pub module_hash: u128,
    pub parameter_bytes: u32,
    pub parameter_count: u32,
    /// Launches of their own.
    pub launches: u64,
    /// Runs as nodes of launched graphs.
    pub in_graphs: u64,
    /// Blocks of the launches of their own.
    pub blocks: u64,
    /// The number of its verdict, in `guard`'s list; `None`: nobody has looked, or it is no number of a verdict.
    pub verdict: Option<u8>,
    /// The number of what trials have shown of its twin, in `guard`'s list; `None`: there were none.
    pub finding: Option<u8>,
    /// Launches of their own that were those of a twin; and of these, how many were cut.
    pub guarded: u64,
    pub cut: u64,
    /// Launches that were timed, and how long they took together.
    pub samples: u64,
    pub sampled_ns: u64,
    /// The longest that one of its blocks was estimated to take; zero: not known.
    pub block_ns: u64,
    /// How long it takes to stop, as promised; zero: nothing is.
    pub certificate_ns: u64,
}

impl Reading {
    /// Whether a file is called as a ledger is: there are others beside it.
    pub fn is_called_so(path: &Path) -> bool {
        path.extension().is_some_and(|ending| ending == "ledger")
    }

    /// How long a ledger is, to the byte.
    pub const BYTES: usize = BYTES;

    pub fn open(path: &Path) -> Result<Reading, Error> {
        Reading::open_of(path, None)
    }

    /// Opens a ledger that must be a file of this user's, where one is given.
    pub fn open_of(path: &Path, owner: Option<u32>) -> Result<Reading, Error> {
        let file = file::open(path, owner, BYTES, "a ledger")?;
        let mut bytes = vec![0; BYTES];
        let read = file.read_exact_at(&mut bytes, 0);
        read.map_err(|reason| Error::Read { path: path.to_owned(), reason })?;
        let no = |reason| Error::Not { path: path.to_owned(), what: "a ledger", reason };
        Reading::parse(&bytes).map_err(no)
    }

    /// What the bytes of a ledger say.
    pub fn parse(bytes: &[u8]) -> Result<Reading, &'static str> {
        if bytes.len() != BYTES {
            return Err("it has another size");
        }
        let header = Bytes(&bytes[..size_of::<Header>()]);
        // SYNC(ledger-open): a ledger without the magic is one whose process has not finished making it.
        if header.word(offset_of!(Header, magic)) != MAGIC {
            return Err("it does not begin as one");
        }
        if header.half(offset_of!(Header, version)) != VERSION {
            return Err("it was written by another version of ebb");
        }
        let bits = header.word(offset_of!(Header, notes));
        let mut kernels: Vec<KernelReading> = (0..KERNELS).filter_map(|index| kernel(bytes, index)).collect();
        kernels.sort_by(|a, b| b.total().cmp(&a.total()).then_with(|| a.name.cmp(&b.name)));
        Ok(Reading {
            pid: header.half(offset_of!(Header, pid)),
            started: header.word(offset_of!(Header, started)),
            program: header.text(offset_of!(Header, program)),
            driver: header.text(offset_of!(Header, driver)),
            driver_version: header.half(offset_of!(Header, driver_version)).cast_signed(),
            notes: Note::ALL.into_iter().filter(|note| bits & note.bit() != 0).collect(),
            detail: header.text(offset_of!(Header, detail)),
            kernels,
            counters: counters(bytes),
        })
    }

    pub fn count(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    pub fn launches(&self, kind: LaunchKind, stream: StreamKind) -> u64 {
        self.count(Counter::launches(kind, stream))
    }

    /// Kernels that the GPU was given: launched by themselves or as nodes of launched graphs.
    pub fn kernels_run(&self) -> u64 {
        let kinds = [LaunchKind::Plain, LaunchKind::Extended, LaunchKind::Cooperative];
        let cells = kinds.iter().flat_map(|&kind| StreamKind::ALL.map(|stream| (kind, stream)));
        cells.map(|(kind, stream)| self.launches(kind, stream)).sum::<u64>()
            + self.count(Counter::KernelsInGraphs)
    }

    pub fn bytes_allocated(&self) -> u64 {
        AllocationKind::ALL.iter().map(|&kind| self.count(Counter::allocations(kind).1)).sum()
    }
}

impl KernelReading {
    pub fn total(&self) -> u64 {
        self.launches.saturating_add(self.in_graphs)
    }

    /// How long the GPU was busy with it, from the launches that were timed. `None` where none was.
    pub fn gpu_ns(&self) -> Option<u64> {
        let whole = u128::from(self.sampled_ns) * u128::from(self.total());
        let time = whole.checked_div(u128::from(self.samples))?;
        Some(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

fn counters(bytes: &[u8]) -> Vec<u64> {
    let shard = |index: usize| Bytes(&bytes[offset_of!(Layout, shards) + index * size_of::<Shard>()..]);
    let total =
        |counter: usize| (0..SHARDS).map(|index| shard(index).word(counter * 8)).fold(0, u64::wrapping_add);
    (0..Counter::COUNT).map(total).collect()
}

fn kernel(bytes: &[u8], index: usize) -> Option<KernelReading> {
    let at = offset_of!(Layout, kernels) + index * size_of::<KernelEntry>();
    let entry = Bytes(&bytes[at..at + size_of::<KernelEntry>()]);
    // SYNC(ledger-kernel): an entry that is not ready may have half a name.
    if entry.half(offset_of!(KernelEntry, ready)) != 1 {
        return None;
    }
    let hash = offset_of!(KernelEntry, module_hash);
    let number = |at: usize| u8::try_from(entry.half(at)).ok().filter(|&number| number > 0);
    Some(KernelReading {
        index: index as u32,
        name: entry.text(offset_of!(KernelEntry, name)),
        module_hash: u128::from(entry.word(hash)) | u128::from(entry.word(hash + 8)) << 64,
        parameter_bytes: entry.half(offset_of!(KernelEntry, parameter_bytes)),
        parameter_count: entry.half(offset_of!(KernelEntry, parameter_count)),
        launches: launched(bytes, index, offset_of!(KernelCount, launches)),
        in_graphs: entry.word(offset_of!(KernelEntry, in_graphs)),
        blocks: launched(bytes, index, offset_of!(KernelCount, blocks)),
        verdict: number(offset_of!(KernelEntry, verdict)),
        finding: number(offset_of!(KernelEntry, finding)),
        guarded: entry.word(offset_of!(KernelEntry, guarded)),
        cut: entry.word(offset_of!(KernelEntry, cut)),
        samples: entry.word(offset_of!(KernelEntry, samples)),
        sampled_ns: entry.word(offset_of!(KernelEntry, sampled_ns)),
        block_ns: entry.word(offset_of!(KernelEntry, block_ns)),
        certificate_ns: entry.word(offset_of!(KernelEntry, certificate_ns)),
    })
}

/// What all shards have counted of a kernel, in the word at this place of its counts.
fn launched(bytes: &[u8], index: usize, word: usize) -> u64 {
    let within = offset_of!(KernelShard, counts) + index * size_of::<KernelCount>() + word;
    let of_shard = |shard: usize| offset_of!(Layout, launches) + shard * size_of::<KernelShard>() + within;
    (0..KERNEL_SHARDS).map(|shard| Bytes(bytes).word(of_shard(shard))).fold(0, u64::wrapping_add)
}

/// A part of the file. Offsets are of our own layout and lie inside; what is read there is theirs.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn word(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    fn half(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    /// A text at its place. A length beyond the text's room is a text that is being written, or a lie.
    fn text(&self, at: usize) -> String {
        // SYNC(ledger-text): the length vouches for the bytes behind it.
        let length = self.half(at) as usize;
        let start = at + offset_of!(Text<0>, bytes);
        let text = self.0.get(start..start.saturating_add(length)).unwrap_or_default();
        model::text::printable_bytes(text)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;

    use proptest::prelude::*;

    use super::*;
    use crate::{KernelIdentity, Ledger, Stem};

    fn only_file(folder: &Path) -> std::path::PathBuf {
        folder.read_dir().unwrap().next().unwrap().unwrap().path()
    }

    fn written(say: impl FnOnce(&Ledger)) -> Reading {
        let folder = tempfile::tempdir().unwrap();
        let name = CString::new(folder.path().as_os_str().as_bytes()).unwrap();
        say(&Ledger::create(&name, Stem::now(), b"python train.py").unwrap());
        Reading::open(&only_file(folder.path())).unwrap()
    }

    #[test]
    fn what_was_counted_is_read() {
        let reading = written(|ledger| {
            ledger.add(Counter::launches(LaunchKind::Plain, StreamKind::Default), 2);
            ledger.add(Counter::AllocatedDevice, 1 << 40);
            ledger.note(Note::OpenedByPath);
            ledger.driver(b"/lib/libcuda.so.1", 13000);
        });
        assert_eq!(reading.pid, std::process::id());
        assert_eq!(reading.program, "python train.py");
        assert_eq!((reading.driver.as_str(), reading.driver_version), ("/lib/libcuda.so.1", 13000));
        assert_eq!(reading.launches(LaunchKind::Plain, StreamKind::Default), 2);
        assert_eq!(reading.kernels_run(), 2);
        assert_eq!(reading.bytes_allocated(), 1 << 40);
        assert_eq!(reading.notes, [Note::OpenedByPath]);
    }

    #[test]
    fn threads_count_together() {
        let reading = written(|ledger| {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| (0..10_000).for_each(|_| ledger.add(Counter::Queries, 1)));
                }
            });
        });
        assert_eq!(reading.count(Counter::Queries), 80_000);
    }

    #[test]
    fn a_kernel_has_one_place() {
        let identity =
            KernelIdentity { name: b"gemm", module_hash: 7 << 100, parameter_bytes: 24, parameter_count: 3 };
        let reading = written(|ledger| {
            ledger.kernel(&identity).unwrap().launched(10);
            ledger.kernel(&identity).unwrap().launched(5);
            ledger.kernel(&KernelIdentity { module_hash: 1, ..identity }).unwrap().in_graph(9);
        });
        assert_eq!(reading.kernels.len(), 2);
        assert_eq!(reading.kernels[0].in_graphs, 9);
        let gemm = &reading.kernels[1];
        assert_eq!((gemm.name.as_str(), gemm.module_hash), ("gemm", 7 << 100));
        assert_eq!((gemm.launches, gemm.blocks, gemm.parameter_bytes), (2, 15, 24));
    }

    #[test]
    fn threads_launch_one_kernel_together() {
        let identity = KernelIdentity { name: b"k", module_hash: 1, parameter_bytes: 0, parameter_count: 0 };
        let reading = written(|ledger| {
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let kernel = ledger.kernel(&identity).unwrap();
                        (0..10_000).for_each(|_| kernel.launched(3));
                    });
                }
            });
        });
        assert_eq!((reading.kernels[0].launches, reading.kernels[0].blocks), (80_000, 240_000));
    }

    #[test]
    fn what_is_known_about_stopping_a_kernel_is_read() {
        let identity = KernelIdentity { name: b"k", module_hash: 1, parameter_bytes: 0, parameter_count: 0 };
        let reading = written(|ledger| {
            let kernel = ledger.kernel(&identity).unwrap();
            assert_eq!(kernel.certificate_ns(), None);
            (0..10).for_each(|_| kernel.launched(1));
            (0..4).for_each(|_| kernel.guarded());
            kernel.cut(2);
            kernel.judged(17);
            kernel.found(18);
            kernel.timed(3_000, 700, 21_000);
            kernel.timed(5_000, 600, 20_900);
            assert_eq!(kernel.certificate_ns(), Some(20_900));
        });
        let kernel = &reading.kernels[0];
        assert_eq!((kernel.verdict, kernel.finding), (Some(17), Some(18)));
        assert_eq!((kernel.guarded, kernel.cut), (4, 2));
        assert_eq!((kernel.samples, kernel.block_ns, kernel.certificate_ns), (2, 600, 20_900));
        assert_eq!(kernel.gpu_ns(), Some(40_000), "ten launches of 4 µs");
    }

    #[test]
    fn what_was_foreseen_is_no_sample_and_holds_until_there_is_one() {
        let identity = KernelIdentity { name: b"k", module_hash: 1, parameter_bytes: 0, parameter_count: 0 };
        let reading = written(|ledger| {
            let kernel = ledger.kernel(&identity).unwrap();
            kernel.foreseen(800, 22_000);
            assert_eq!(kernel.certificate_ns(), Some(22_000));
            kernel.timed(3_000, 720, 21_200);
        });
        let kernel = &reading.kernels[0];
        assert_eq!((kernel.samples, kernel.block_ns, kernel.certificate_ns), (1, 720, 21_200));
    }

    #[test]
    fn a_full_list_of_kernels_is_said() {
        let reading = written(|ledger| {
            let identity = |hash: u128| KernelIdentity {
                name: b"k",
                module_hash: hash,
                parameter_bytes: 0,
                parameter_count: 0,
            };
            let places = (0..=KERNELS as u128).filter(|&hash| ledger.kernel(&identity(hash)).is_some());
            assert_eq!(places.count(), KERNELS);
        });
        assert_eq!(reading.notes, [Note::KernelsOverflow]);
    }

    #[test]
    fn the_first_detail_stays() {
        let reading = written(|ledger| {
            ledger.detail(b"first");
            ledger.detail(b"second");
        });
        assert_eq!(reading.detail, "first");
    }

    #[test]
    fn a_missing_folder_is_an_error() {
        assert!(matches!(Ledger::create(c"/nowhere/at/all", Stem::now(), b""), Err(Error::Make(_))));
    }

    #[test]
    fn a_private_ledger_counts() {
        Ledger::private().unwrap().add(Counter::Frees, 1);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd_to_refuse(seed: u64, start in 0usize..BYTES, odd in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut bytes = vec![seed as u8; BYTES];
            bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
            bytes[8..12].copy_from_slice(&VERSION.to_ne_bytes());
            let end = (start + odd.len()).min(BYTES);
            bytes[start..end].copy_from_slice(&odd[..end - start]);
            let _ = Reading::parse(&bytes);
            let _ = Reading::parse(&odd);
        }
    }
}
