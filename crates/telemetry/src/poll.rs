//! Reading an event log, again and again.
//!
//! The file is read, never mapped: whoever writes it may also cut it short, and a reader must not die of that. Where a
//! reader in the same memory looks at the stamp, then at the words, then at the stamp again, this one reads a stretch of
//! the file three times: the first time for the stamps, then for the words, and at last for the stamps again. Each read is
//! over before the next begins, so the same holds as for the loads of `ring`.
//!
//! Launches come from many rings. Their heads lie beside each other and are read at once, so that what is taken from one ring
//! is about as new as what is taken from another; what is handed over is put in order by time.

use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::event::Event;
use crate::layout::Text;
use crate::log::{BYTES, COURSE, Header, Layout, MAGIC, POSTS, Post, RING, RINGS, VERSION};
use crate::ring::{Found, Head, Ring, Slot, Slots, judge};
use crate::rings::Rings;
use crate::shard::SHARDS;
use crate::sync::{Ordering, fence};
use crate::{Error, file};

/// Reads what a process writes down.
#[derive(Debug)]
pub struct EventReader {
    file: File,
    pub pid: u32,
    pub tenant: u64,
    /// As the tenant is called; may be empty.
    pub name: String,
    launches: [Cursor; RINGS],
    course: Cursor,
}

/// What came since the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Polled {
    /// By time.
    pub events: Vec<Event>,
    /// Events that were overwritten before anybody read them, or never completed.
    pub lost: u64,
}

/// Where a reader stands in a ring.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Where its slots begin, and how many it has.
    at: u64,
    slots: usize,
    /// The first number that was not read.
    next: u64,
    /// The number that was not there the last time.
    awaited: Option<u64>,
    /// Whether it was read before. What was overwritten earlier is not lost: nobody had asked for it.
    begun: bool,
}

impl EventReader {
    /// Opens a log. What it remembers is what comes first.
    pub fn open(path: &Path) -> Result<EventReader, Error> {
        EventReader::open_of(path, None)
    }

    /// Opens a log that must be a file of this user's, where one is given.
    pub fn open_of(path: &Path, owner: Option<u32>) -> Result<EventReader, Error> {
        let file = file::open(path, owner, BYTES, "an event log")?;
        match EventReader::begin(file).map_err(|reason| Error::Read { path: path.to_owned(), reason })? {
            Ok(reader) => Ok(reader),
            Err(reason) => Err(Error::Not { path: path.to_owned(), what: "an event log", reason }),
        }
    }

    pub(crate) fn begin(file: File) -> std::io::Result<Result<EventReader, &'static str>> {
        let mut bytes = [0; size_of::<Header>()];
        file.read_exact_at(&mut bytes, 0)?;
        let half = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        // SYNC(events-open): a log without the magic is one whose process has not finished making it.
        if word(&bytes, offset_of!(Header, magic)) != MAGIC {
            return Ok(Err("it does not begin as one"));
        }
        if half(offset_of!(Header, version)) != VERSION {
            return Ok(Err("it was written by another version of ebb"));
        }
        let cursor = |at: usize, slots| Cursor { at: at as u64, slots, next: 0, awaited: None, begun: false };
        let ring = |which: usize| LAUNCH_SLOTS + which * size_of::<Slots<RING>>();
        Ok(Ok(EventReader {
            pid: half(offset_of!(Header, pid)),
            tenant: word(&bytes, offset_of!(Header, tenant)),
            name: text(&bytes, offset_of!(Header, name)),
            launches: std::array::from_fn(|which| cursor(ring(which), RING)),
            course: cursor(offset_of!(Layout, course) + offset_of!(Ring<COURSE>, slots), COURSE),
            file,
        }))
    }

    /// Which GPU the number of a post means.
    pub fn gpu(&self, post: u8) -> Option<[u8; 16]> {
        let number = usize::from(post);
        if number >= POSTS {
            return None;
        }
        let at = offset_of!(Header, posts) + number * size_of::<Post>();
        let mut bytes = [0; size_of::<Post>()];
        self.file.read_exact_at(&mut bytes, at as u64).ok()?;
        // SYNC(events-post): one that is not ready may have half a number.
        if word(&bytes, offset_of!(Post, ready)) == 0 {
            return None;
        }
        let mut gpu = [0; 16];
        for (half, at) in gpu.chunks_exact_mut(8).zip([0, 8]) {
            half.copy_from_slice(&word(&bytes, offset_of!(Post, gpu) + at).to_le_bytes());
        }
        Some(gpu)
    }

    /// What has come since the last time; the first time, all that is remembered. A file that cannot be read any more has
    /// nothing new.
    pub fn poll(&mut self) -> Polled {
        let mut polled = Polled::default();
        let _ = self.read_course(&mut polled);
        let _ = self.read_launches(&mut polled);
        polled.events.sort_by_key(|event| event.time);
        polled
    }

    /// As [`poll`](EventReader::poll), without launches, of which there are many.
    pub fn poll_course(&mut self) -> Polled {
        let mut polled = Polled::default();
        let _ = self.read_course(&mut polled);
        polled.events.sort_by_key(|event| event.time);
        polled
    }

    /// Passes over all that is remembered.
    pub fn skip(&mut self) {
        if let Ok([head]) = heads(&self.file, COURSE_HEAD) {
            self.course.skip(head);
        }
        if let Ok(heads) = heads::<RINGS>(&self.file, LAUNCH_HEADS) {
            self.launches.iter_mut().zip(heads).for_each(|(cursor, head)| cursor.skip(head));
        }
    }

    fn read_course(&mut self, polled: &mut Polled) -> std::io::Result<()> {
        let [head] = heads(&self.file, COURSE_HEAD)?;
        self.course.poll(&self.file, head, polled)
    }

    fn read_launches(&mut self, polled: &mut Polled) -> std::io::Result<()> {
        let heads = heads::<RINGS>(&self.file, LAUNCH_HEADS)?;
        self.launches
            .iter_mut()
            .zip(heads)
            .try_for_each(|(cursor, head)| cursor.poll(&self.file, head, polled))
    }
}

pub(crate) const LAUNCH_HEADS: usize =
    offset_of!(Layout, launches) + offset_of!(Rings<SHARDS, RINGS, RING>, heads);
const LAUNCH_SLOTS: usize = offset_of!(Layout, launches) + offset_of!(Rings<SHARDS, RINGS, RING>, slots);
pub(crate) const COURSE_HEAD: usize = offset_of!(Layout, course) + offset_of!(Ring<COURSE>, head);

/// So many heads from here on.
fn heads<const COUNT: usize>(file: &File, at: usize) -> std::io::Result<[u64; COUNT]> {
    let mut bytes = vec![0; COUNT * size_of::<Head>()];
    file.read_exact_at(&mut bytes, at as u64)?;
    Ok(std::array::from_fn(|which| word(&bytes, which * size_of::<Head>())))
}

impl Cursor {
    /// Passes over all that came before this number.
    fn skip(&mut self, head: u64) {
        (self.next, self.begun) = (head, true);
    }

    fn poll(&mut self, file: &File, head: u64, polled: &mut Polled) -> std::io::Result<()> {
        let first = !std::mem::replace(&mut self.begun, true);
        if head < self.next {
            // Numbers only grow: this is no log any more.
            return Ok(());
        }
        let oldest = head.saturating_sub(self.slots as u64);
        if oldest > self.next {
            // A number that somebody made up may be as large as there are.
            polled.lost = polled.lost.saturating_add(if first { 0 } else { oldest - self.next });
            self.next = oldest;
        }
        while self.next < head {
            // As far as the numbers lie behind each other in the file.
            let slot = (self.next % self.slots as u64) as usize;
            let count = (self.slots - slot).min((head - self.next) as usize);
            if !self.stretch(file, slot, count, first, polled)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads so many slots from this one on. `false`: something is not there yet, and is waited for until the next time.
    fn stretch(
        &mut self,
        file: &File,
        slot: usize,
        count: usize,
        first: bool,
        polled: &mut Polled,
    ) -> std::io::Result<bool> {
        let at = self.at + (slot * size_of::<Slot>()) as u64;
        let read = || -> std::io::Result<Vec<u8>> {
            let mut bytes = vec![0; count * size_of::<Slot>()];
            file.read_exact_at(&mut bytes, at)?;
            // SYNC(event-open), SYNC(event-done): what is read next is read later.
            fence(Ordering::Acquire);
            Ok(bytes)
        };
        let [before, between, after] = [read()?, read()?, read()?];
        for index in 0..count {
            let at = index * size_of::<Slot>();
            let words = std::array::from_fn(|which| word(&between, at + 8 * (1 + which)));
            match judge(self.next, word(&before, at), words, word(&after, at)) {
                // Words that say nothing were written by nobody of ours.
                Found::Complete(words) => polled.events.extend(Event::from_words(words)),
                Found::NotYet if self.awaited != Some(self.next) => {
                    self.awaited = Some(self.next);
                    return Ok(false);
                }
                Found::NotYet => polled.lost = polled.lost.saturating_add(1),
                Found::Gone => polled.lost = polled.lost.saturating_add(u64::from(!first)),
            }
            self.next += 1;
        }
        Ok(true)
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A text at its place. A length beyond the text's room is a text that is being written, or a lie.
fn text(bytes: &[u8], at: usize) -> String {
    // SYNC(ledger-text): the length vouches for the bytes behind it.
    let length = u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let start = at + offset_of!(Text<0>, bytes);
    let room = crate::log::NAME_BYTES;
    let text = bytes[start..start + room].get(..length).unwrap_or_default();
    model::text::printable_bytes(text)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::PathBuf;

    use model::Nanos;
    use proptest::prelude::*;

    use super::*;
    use crate::file::Stem;
    use crate::{EventLog, LAUNCHES, What};

    struct Place {
        _folder: tempfile::TempDir,
        path: PathBuf,
        log: EventLog,
    }

    fn log() -> Place {
        let folder = tempfile::tempdir().unwrap();
        let name = CString::new(folder.path().as_os_str().as_bytes()).unwrap();
        let log = EventLog::create(&name, Stem::now(), 7, b"server").unwrap();
        let path = folder.path().read_dir().unwrap().next().unwrap().unwrap().path();
        Place { _folder: folder, path, log }
    }

    fn launch(time: u64) -> Event {
        let what = What::Launch { kernel: 3, stream: 4, blocks: time };
        Event { time: Nanos(time), post: 0, what }
    }

    fn request(time: u64) -> Event {
        Event { time: Nanos(time), post: 0, what: What::Idle { lasted: Nanos(time) } }
    }

    #[test]
    fn what_is_written_down_is_read_once_and_in_order() {
        let place = log();
        let mut reader = EventReader::open(&place.path).unwrap();
        assert_eq!((reader.pid, reader.tenant, reader.name.as_str()), (std::process::id(), 7, "server"));
        assert_eq!(reader.poll(), Polled::default());
        for time in [1, 2, 4] {
            place.log.write(&launch(time));
        }
        place.log.write(&request(3));
        let events = vec![launch(1), launch(2), request(3), launch(4)];
        assert_eq!(reader.poll(), Polled { events, lost: 0 });
        assert_eq!(reader.poll(), Polled::default());
    }

    #[test]
    fn what_is_overwritten_is_counted_but_not_by_who_has_just_come() {
        let place = log();
        let mut reader = EventReader::open(&place.path).unwrap();
        place.log.write(&launch(0));
        assert_eq!(reader.poll().events.len(), 1);
        // One thread alone has all rings. The first of what is overwritten was read.
        const ALL: usize = RINGS * RING;
        (1..ALL as u64 + 6).for_each(|time| place.log.write(&launch(time)));
        let polled = reader.poll();
        assert_eq!((polled.events.len(), polled.lost), (ALL, 5));
        let late = EventReader::open(&place.path).unwrap().poll();
        assert_eq!((late.events.len(), late.lost), (ALL, 0));
    }

    #[test]
    fn all_desks_are_read_in_order_of_time_and_what_one_of_them_loses_is_counted() {
        let place = log();
        let mut reader = EventReader::open(&place.path).unwrap();
        assert_eq!(reader.poll(), Polled::default());
        let desks = SHARDS as u64;
        let turns = 0..10 * desks;
        turns.clone().for_each(|time| place.log.write_at(time as usize, &launch(time)));
        assert_eq!(reader.poll(), Polled { events: turns.map(launch).collect(), lost: 0 });

        // Every desk has a ring in hand. One of them writes more than all the others have left.
        const MORE: u64 = 2 * LAUNCHES as u64;
        let quiet = (0..desks).filter(|&desk| desk != 3).map(|desk| (desk, 1_000 + desk));
        quiet.clone().for_each(|(desk, time)| place.log.write_at(desk as usize, &launch(time)));
        (0..MORE).for_each(|time| place.log.write_at(3, &launch(2_000 + time)));
        let polled = reader.poll();
        let flood = polled.events.iter().filter(|event| event.time >= Nanos(2_000)).count();
        assert!((LAUNCHES..=LAUNCHES + RING).contains(&flood), "{flood}");
        assert_eq!(polled.lost, MORE - flood as u64);
        let kept = (2_000 + MORE - flood as u64..2_000 + MORE).map(launch);
        let events: Vec<Event> = quiet.map(|(_, time)| launch(time)).chain(kept).collect();
        assert_eq!(polled.events, events);
        assert_eq!(reader.poll(), Polled::default());
    }

    #[test]
    fn launches_do_not_wash_away_requests() {
        let place = log();
        place.log.write(&request(1));
        (0..3 * (RINGS * RING) as u64).for_each(|time| place.log.write(&launch(10 + time)));
        assert_eq!(EventReader::open(&place.path).unwrap().poll().events[0], request(1));
    }

    #[test]
    fn the_course_is_read_without_launches() {
        let place = log();
        let mut reader = EventReader::open(&place.path).unwrap();
        place.log.write(&launch(1));
        place.log.write(&request(2));
        assert_eq!(reader.poll_course().events, [request(2)]);
        assert_eq!(reader.poll().events, [launch(1)]);
    }

    #[test]
    fn who_skips_sees_only_what_comes() {
        let place = log();
        place.log.write(&request(1));
        let mut reader = EventReader::open(&place.path).unwrap();
        reader.skip();
        place.log.write(&request(2));
        assert_eq!(reader.poll().events, [request(2)]);
    }

    #[test]
    fn a_gpu_is_known_by_its_post() {
        let place = log();
        place.log.post(1, std::array::from_fn(|at| at as u8));
        let reader = EventReader::open(&place.path).unwrap();
        assert_eq!(reader.gpu(0), None);
        assert_eq!(reader.gpu(1), Some(std::array::from_fn(|at| at as u8)));
        assert_eq!(reader.gpu(200), None);
    }

    #[test]
    fn somebody_reads_while_threads_write() {
        let place = log();
        let mut reader = EventReader::open(&place.path).unwrap();
        assert_eq!(reader.poll(), Polled::default());
        let (mut read, mut lost) = (0, 0);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4u64)
                .map(|writer| {
                    let log = &place.log;
                    scope.spawn(move || (0..25_000).for_each(|time| log.write(&launch(writer + 4 * time))))
                })
                .collect();
            while writers.iter().any(|writer| !writer.is_finished()) {
                let polled = reader.poll();
                // The words of an event belong together.
                assert!(polled.events.iter().all(|event| *event == launch(event.time.0)));
                read += polled.events.len() as u64;
                lost += polled.lost;
            }
        });
        // What was not there at the last look is waited for once.
        for _ in 0..2 {
            let polled = reader.poll();
            read += polled.events.len() as u64;
            lost += polled.lost;
        }
        assert_eq!(read + lost, 100_000, "of every event is known whether it was read");
        assert!(read > 0);
    }

    #[test]
    fn a_slot_that_is_never_completed_is_waited_for_once() {
        let place = log();
        let mut reader = EventReader::open(&place.path).unwrap();
        place.log.write(&request(1));
        let file = File::options().write(true).open(&place.path).unwrap();
        // A writer that has taken a number and stands still.
        file.write_all_at(&2u64.to_ne_bytes(), COURSE_HEAD as u64).unwrap();
        place.log.write(&request(3));
        assert_eq!(reader.poll().events, [request(1)]);
        let polled = reader.poll();
        assert_eq!((polled.events, polled.lost), (vec![request(3)], 1));
    }

    #[test]
    fn what_is_no_log_is_refused_and_one_that_is_cut_short_has_nothing_new() {
        let place = log();
        let mut reader = EventReader::open(&place.path).unwrap();
        place.log.write(&request(1));
        File::options().write(true).open(&place.path).unwrap().set_len(100).unwrap();
        assert_eq!(reader.poll(), Polled::default());
        assert!(EventReader::open(&place.path).unwrap_err().to_string().contains("another size"));
        let own = rustix::process::geteuid().as_raw();
        assert!(EventReader::open_of(&place.path, Some(own + 1)).is_err());
        let link = place.path.with_extension("link");
        std::os::unix::fs::symlink(&place.path, &link).unwrap();
        assert!(EventReader::open(&link).is_err(), "links are not followed");
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_odd_to_read(head: u64, ring in 0..RINGS, start in 0usize..BYTES, odd in proptest::collection::vec(any::<u8>(), 0..400)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("1-1.events");
            let mut bytes = vec![0; BYTES];
            bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
            bytes[8..12].copy_from_slice(&VERSION.to_ne_bytes());
            for at in [COURSE_HEAD, LAUNCH_HEADS + ring * size_of::<Head>()] {
                bytes[at..at + 8].copy_from_slice(&head.to_ne_bytes());
            }
            let end = (start + odd.len()).min(BYTES);
            bytes[start..end].copy_from_slice(&odd[..end - start]);
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(mut reader) = EventReader::open(&path) {
                let _ = (reader.poll(), reader.poll(), reader.gpu(0));
            }
        }
    }
}
