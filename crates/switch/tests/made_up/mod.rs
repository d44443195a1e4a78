//! A made-up driver: a tree of objects, calls on it as bytes, and controls that are checked against it.
#![allow(dead_code)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use switch::wire::{ALLOCATE_LONG, Control, FREE_OBJECT, command};
use switch::{Capture, Errno, Event, Kernel, Status};

pub const CLIENT: u32 = 0x41;
pub const DEVICE: u32 = 0x80;
pub const SUBDEVICE: u32 = 0x2080;
pub const GROUP: u32 = 0xa06c;
pub const CHANNEL: u32 = 0xc86f;
/// Memory on the card, which is of no interest, like most objects.
pub const MEMORY: u32 = 0x40;

/// An allocation as 32 bytes (NVOS21): client, parent, object, class; eight bytes of an address; a size; the status.
pub fn short(client: u32, parent: u32, object: u32, class: u32, status: u32) -> Vec<u8> {
    words(&[client, parent, object, class, 0xdead_beef, 0x7fff, 24, status])
}

/// An allocation as 48 bytes (NVOS64): as before up to the address, then that of rights, size, flags, status, padding.
pub fn long(client: u32, parent: u32, object: u32, class: u32, status: u32) -> Vec<u8> {
    words(&[client, parent, object, class, 0xdead_beef, 0x7fff, 0, 0, 24, 0, status, 0x5a5a_5a5a])
}

/// A free as 16 bytes (NVOS00): client, parent, object, status.
pub fn free(client: u32, parent: u32, object: u32, status: u32) -> Vec<u8> {
    words(&[client, parent, object, status])
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Shows a capture an allocation that went well, in the longer form.
pub fn make(capture: &Capture, fd: i32, client: u32, parent: u32, object: u32, class: u32) -> Event {
    capture.observe(capture.moment(), fd, ALLOCATE_LONG, &long(client, parent, object, class, 0), 0)
}

pub fn unmake(capture: &Capture, fd: i32, client: u32, object: u32) -> Event {
    capture.observe(capture.moment(), fd, FREE_OBJECT, &free(client, 0, object, 0), 0)
}

/// What of a capture can be compared.
pub fn kept(capture: &Capture) -> BTreeSet<(i32, u32, u32, u32)> {
    capture.objects().map(|object| (object.fd(), object.client(), object.handle(), object.class())).collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thing {
    pub fd: i32,
    pub parent: u32,
    pub class: u32,
}

/// The driver as it is: which objects there are, by client and handle.
#[derive(Default)]
pub struct Driver {
    pub things: BTreeMap<(u32, u32), Thing>,
}

impl Driver {
    pub fn add(&mut self, fd: i32, client: u32, parent: u32, handle: u32, class: u32) {
        self.things.insert((client, handle), Thing { fd, parent, class });
    }

    /// Frees an object with all that is below it.
    pub fn free(&mut self, client: u32, handle: u32) {
        self.things.remove(&(client, handle));
        let below = |(&(owner, own), thing): (&(u32, u32), &Thing)| {
            (owner == client && thing.parent == handle).then_some(own)
        };
        let children: Vec<u32> = self.things.iter().filter_map(below).collect();
        children.into_iter().for_each(|child| self.free(client, child));
    }

    pub fn close(&mut self, fd: i32) {
        self.things.retain(|_, thing| thing.fd != fd);
    }

    pub fn of_interest(&self) -> BTreeSet<(i32, u32, u32, u32)> {
        let rows = self.things.iter().filter(|(_, thing)| thing.class != MEMORY);
        rows.map(|(&(client, handle), thing)| (thing.fd, client, handle, thing.class)).collect()
    }
}

/// A kernel that refuses to be asked for what is not there: on the wrong file, of a wrong kind, or freed.
pub struct Strict<'a>(pub &'a RefCell<Driver>);

impl Kernel for Strict<'_> {
    fn ioctl(&self, fd: i32, call: &mut Control, parameters: &mut [u8]) -> Result<(), Errno> {
        let driver = self.0.borrow();
        let class = if call.command() == command::DISABLE_CHANNELS { SUBDEVICE } else { GROUP };
        let thing =
            driver.things.get(&(call.client(), call.object())).expect("a control on what is not there");
        assert_eq!((thing.fd, thing.class), (fd, class), "a control on something else");
        assert_eq!(call.parameters().1 as usize, parameters.len());
        if class == SUBDEVICE {
            let word = |at: usize| u32::from_le_bytes(parameters[at..at + 4].try_into().expect("four bytes"));
            for index in 0..word(4) as usize {
                let channel = (word(24 + 4 * index), word(280 + 4 * index));
                assert_eq!(driver.things.get(&channel).map(|thing| thing.class), Some(CHANNEL));
            }
        }
        call.set_status(Status::OK);
        Ok(())
    }
}

/// A call as it came to the kernel: file, bytes of the call, bytes of the parameters.
pub type Made = (i32, [u8; 32], Vec<u8>);

/// A kernel that keeps what it was asked and answers as it was told, one answer for each call, then success.
#[derive(Default)]
pub struct Recorder {
    pub made: RefCell<Vec<Made>>,
    pub answers: RefCell<Vec<Result<Status, Errno>>>,
    /// What is written over the parameters.
    pub gives: RefCell<Option<Vec<u8>>>,
}

impl Kernel for Recorder {
    fn ioctl(&self, fd: i32, call: &mut Control, parameters: &mut [u8]) -> Result<(), Errno> {
        self.made.borrow_mut().push((fd, *call.bytes(), parameters.to_vec()));
        if let Some(bytes) = &*self.gives.borrow() {
            parameters.copy_from_slice(bytes);
        }
        let mut answers = self.answers.borrow_mut();
        let answer = if answers.is_empty() { Ok(Status::OK) } else { answers.remove(0) };
        call.set_status(answer?);
        Ok(())
    }
}
