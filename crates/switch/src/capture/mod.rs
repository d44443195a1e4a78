//! Which objects this process has.

mod table;

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use table::{Found, PLACES, Record, Table};

use crate::status::Status;
use crate::wire::{self, Call};

/// At most so many objects are kept.
pub const ROOM: usize = PLACES;

/// How deep a tree can be below the object that is freed: client, device, group, channel. A stream of calls that alleges
/// deeper ones comes from no driver, and must not use up the program's stack.
const DEPTH: usize = 4;

/// Whether a request has to be shown to [`Capture::observe`]: one compare, for the path of every call.
#[inline(always)]
pub const fn concerns(request: u32) -> bool {
    wire::makes_or_frees(request)
}

/// The kinds of objects that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// To whom everything else belongs; bound to an open file.
    Client,
    /// A GPU as a client sees it.
    Device,
    /// Where calls that concern a GPU's hardware go.
    Subdevice,
    /// What the hardware gives the GPU to: the unit of timeslices.
    Group,
    /// Where work is written.
    Channel,
}

impl Kind {
    /// Of a class, by the driver's numbers. Channels have one class for each architecture, which all end alike.
    pub const fn of(class: u32) -> Option<Kind> {
        Some(match class {
            0x0000 | 0x0001 | 0x0041 => Kind::Client,
            0x0080 => Kind::Device,
            0x2080 => Kind::Subdevice,
            0xa06c => Kind::Group,
            0x506f..=0xff6f if class & 0xff == 0x6f => Kind::Channel,
            _ => return None,
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Kind::Client => "client",
            Kind::Device => "device",
            Kind::Subdevice => "subdevice",
            Kind::Group => "channel group",
            Kind::Channel => "channel",
        })
    }
}

/// An object as it was when it was looked up. It may have gone since: the capture knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    kind: Kind,
    found: Found,
}

impl Object {
    fn new(found: Found) -> Option<Object> {
        Some(Object { kind: Kind::of(found.record.class)?, found })
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The file on which it was made.
    pub fn fd(&self) -> i32 {
        self.found.record.fd
    }

    pub fn client(&self) -> u32 {
        self.found.record.client
    }

    pub fn handle(&self) -> u32 {
        self.found.record.handle
    }

    pub fn parent(&self) -> u32 {
        self.found.record.parent
    }

    pub fn class(&self) -> u32 {
        self.found.record.class
    }

    /// Itself, if it is a channel group.
    pub fn group(self) -> Option<Group> {
        (self.kind == Kind::Group).then_some(Group(self))
    }
}

/// A channel group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(Object);

impl Group {
    pub fn object(&self) -> &Object {
        &self.0
    }
}

/// A moment before a call. What was made after it cannot have been freed by the call: a handle that two threads free
/// and make again means the new object.
#[derive(Clone, Copy, Debug)]
pub struct Moment(u64);

/// What a call changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Nothing,
    Made(Object),
    /// So many objects are gone.
    Gone(usize),
    /// An object of this kind was made, and there was no room to keep it.
    Lost(Kind),
}

/// The objects of this process. Made to be a `static`: it is all zeros until used.
pub struct Capture {
    table: Table,
    born: AtomicU64,
    lost: AtomicU64,
}

impl Default for Capture {
    fn default() -> Capture {
        Capture::new()
    }
}

impl Capture {
    pub const fn new() -> Capture {
        Capture { table: Table::new(), born: AtomicU64::new(0), lost: AtomicU64::new(0) }
    }

    /// To be taken before a call that [`concerns`] us is made.
    pub fn moment(&self) -> Moment {
        Moment(self.born.load(Ordering::Acquire))
    }

    /// To be told of a call after it was made: on which file, which request, the bytes of its argument as they are now
    /// ([`wire::argument_size`] of them), and what `ioctl` returned.
    #[inline]
    pub fn observe(&self, since: Moment, fd: i32, request: u32, argument: &[u8], result: i32) -> Event {
        if !concerns(request) {
            return Event::Nothing;
        }
        self.consider(since, fd, request, argument, result)
    }

    #[cold]
    fn consider(&self, since: Moment, fd: i32, request: u32, argument: &[u8], result: i32) -> Event {
        if result != 0 || fd < 0 {
            return Event::Nothing;
        }
        match Call::read(request, argument) {
            Some(Call::Allocate { client, parent, object, class, status: Status::OK }) if object != 0 => {
                self.made(since, Record { fd, client, handle: object, parent, class, born: 0 })
            }
            Some(Call::Free { client, object, status }) if status.is_ok() || status.says_gone() => {
                self.gone(since, client, object)
            }
            _ => Event::Nothing,
        }
    }

    fn made(&self, since: Moment, mut record: Record) -> Event {
        let kind = Kind::of(record.class);
        if kind == Some(Kind::Client) {
            record.client = record.handle;
            record.parent = 0;
        }
        // A handle that is given anew had been free, whether or not that was seen.
        let gone = self.gone(since, record.client, record.handle);
        let Some(kind) = kind else { return gone };
        record.born = self.born.fetch_add(1, Ordering::AcqRel) + 1;
        match self.table.insert(record) {
            Some(found) => Event::Made(Object { kind, found }),
            None => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                Event::Lost(kind)
            }
        }
    }

    /// Forgets an object and all that is below it, as far as it is not younger than the call that freed it.
    fn gone(&self, since: Moment, client: u32, handle: u32) -> Event {
        counted(self.prune(since, client, handle, DEPTH))
    }

    fn prune(&self, since: Moment, client: u32, handle: u32, depth: usize) -> usize {
        let mut count = 0;
        for found in self.table.iter() {
            let Record { client: owner, handle: own, parent, class, born, .. } = found.record;
            let below = parent == handle || client == handle;
            if owner != client || born > since.0 || !(own == handle || below) || !self.table.remove(&found) {
                continue;
            }
            count += 1;
            let bears = matches!(Kind::of(class), Some(Kind::Device | Kind::Group));
            if bears && own != handle && depth > 0 {
                count += self.prune(since, client, own, depth - 1);
            }
        }
        count
    }

    /// A file is about to be closed, or to be replaced by `dup2`: to be told *before*, because afterwards its number may
    /// mean another file.
    pub fn closing(&self, fd: i32) -> Event {
        let own = self.table.iter().filter(|found| found.record.fd == fd);
        counted(own.filter(|found| self.table.remove(found)).count())
    }

    /// In the child of a fork, which has the files but did not make the objects behind them.
    pub fn forget_all(&self) {
        self.table.clear();
    }

    /// Whether an object is still there.
    pub fn holds(&self, object: &Object) -> bool {
        self.table.holds(&object.found)
    }

    pub fn objects(&self) -> impl Iterator<Item = Object> {
        self.table.iter().filter_map(Object::new)
    }

    pub fn of(&self, kind: Kind) -> impl Iterator<Item = Object> {
        self.objects().filter(move |object| object.kind == kind)
    }

    pub fn groups(&self) -> impl Iterator<Item = Group> {
        self.objects().filter_map(Object::group)
    }

    /// The handle of the device below which an object was made, as far as the way up is known.
    pub fn device_of(&self, object: &Object) -> Option<u32> {
        let above = |object: &Object| {
            let (client, parent) = (object.client(), object.parent());
            self.objects().find(|found| found.client() == client && found.handle() == parent)
        };
        let mut at = *object;
        // Channel, group, device: no way up is longer.
        for _ in 0..3 {
            if at.kind == Kind::Device {
                return Some(at.handle());
            }
            at = above(&at)?;
        }
        None
    }

    /// How many objects could not be kept. Not zero: what is known of this process is not all there is.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

fn counted(gone: usize) -> Event {
    if gone == 0 { Event::Nothing } else { Event::Gone(gone) }
}
