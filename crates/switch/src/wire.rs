//! Numbers and structures of the driver, as bytes.
//!
//! A request of the driver is `_IOWR('F', number, structure)`. The structures, with offsets in bytes; all numbers are
//! little-endian, handles and statuses 32 bits, addresses 64:
//!
//! | call | bytes | fields |
//! |---|---|---|
//! | allocate 0x2b (NVOS21) | 32 | client 0, parent 4, new object 8, class 12, parameters 16, their size 24, status 28 |
//! | allocate 0x2b (NVOS64) | 48 | the same up to 16, rights 24, size of parameters 32, flags 36, status 40 |
//! | free 0x29 (NVOS00) | 16 | client 0, parent 4, object 8, status 12 |
//! | control 0x2a (NVOS54) | 32 | client 0, object 4, command 8, flags 12, parameters 16, their size 24, status 28 |
//!
//! Parameters and rights are addresses, and are not followed here.
//!
//! Who asks for a new object may name its handle or leave it zero; either way it is in the structure afterwards. A new
//! *client* is its own handle, and what stands in the place of the client is not read.

use crate::status::Status;

/// The kind of request that all of the driver's are.
const TYPE: u32 = b'F' as u32;
const ALLOCATE: u32 = 0x2b;
const FREE: u32 = 0x29;
const CONTROL: u32 = 0x2a;

const fn request(number: u32, size: usize) -> u32 {
    const READ_AND_WRITE: u32 = 3;
    READ_AND_WRITE << 30 | (size as u32) << 16 | TYPE << 8 | number
}

/// The two forms in which objects are asked for, and the one in which they are freed.
pub const ALLOCATE_SHORT: u32 = request(ALLOCATE, 32);
pub const ALLOCATE_LONG: u32 = request(ALLOCATE, 48);
pub const FREE_OBJECT: u32 = request(FREE, 16);

/// Whether a request makes or frees objects: the one compare that every call in a process pays.
#[inline(always)]
pub const fn makes_or_frees(request: u32) -> bool {
    // The two numbers differ in one bit, and the number between them does not have the bit that is left.
    const EITHER: u32 = ALLOCATE ^ FREE;
    (request & 0xffff) | EITHER == TYPE << 8 | ALLOCATE
}

/// How many bytes the argument of a request has.
pub const fn argument_size(request: u32) -> usize {
    (request >> 16 & 0x3fff) as usize
}

/// What a call that made or freed something says, once it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Allocate { client: u32, parent: u32, object: u32, class: u32, status: Status },
    Free { client: u32, object: u32, status: Status },
}

impl Call {
    /// `None` for every other call, and for one whose argument is shorter than its request says.
    pub fn read(request: u32, argument: &[u8]) -> Option<Call> {
        let word = |at| word(argument, at);
        match request {
            ALLOCATE_SHORT => Call::allocate(argument.get(..32)?, 28),
            ALLOCATE_LONG => Call::allocate(argument.get(..48)?, 40),
            FREE_OBJECT => Some(Call::Free { client: word(0)?, object: word(8)?, status: Status(word(12)?) }),
            _ => None,
        }
    }

    fn allocate(argument: &[u8], status: usize) -> Option<Call> {
        let word = |at| word(argument, at);
        Some(Call::Allocate {
            client: word(0)?,
            parent: word(4)?,
            object: word(8)?,
            class: word(12)?,
            status: Status(word(status)?),
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// A control call: NVOS54.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Control {
    bytes: [u8; 32],
}

impl Control {
    pub const REQUEST: u32 = request(CONTROL, 32);

    /// The status is a failure until the driver says otherwise, so that silence is not taken for success.
    pub fn new(client: u32, object: u32, command: u32) -> Control {
        let mut call = Control { bytes: [0; 32] };
        put(&mut call.bytes, 0, client);
        put(&mut call.bytes, 4, object);
        put(&mut call.bytes, 8, command);
        call.set_status(Status::GENERIC);
        call
    }

    pub fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    pub fn client(&self) -> u32 {
        word(&self.bytes, 0).unwrap_or(0)
    }

    pub fn object(&self) -> u32 {
        word(&self.bytes, 4).unwrap_or(0)
    }

    pub fn command(&self) -> u32 {
        word(&self.bytes, 8).unwrap_or(0)
    }

    /// Address and size of the parameters.
    pub fn parameters(&self) -> (u64, u32) {
        let half = |at| u64::from(word(&self.bytes, at).unwrap_or(0));
        (half(16) | half(20) << 32, word(&self.bytes, 24).unwrap_or(0))
    }

    pub fn set_parameters(&mut self, address: u64, size: u32) {
        put(&mut self.bytes, 16, address as u32);
        put(&mut self.bytes, 20, (address >> 32) as u32);
        put(&mut self.bytes, 24, size);
    }

    pub fn status(&self) -> Status {
        word(&self.bytes, 28).map_or(Status::GENERIC, Status)
    }

    pub fn set_status(&mut self, status: Status) {
        put(&mut self.bytes, 28, status.0);
    }
}

/// Commands, each with the parameters it takes.
pub mod command {
    pub const GROUP_SCHEDULE: u32 = 0xa06c_0101;
    pub const GROUP_SET_TIMESLICE: u32 = 0xa06c_0103;
    pub const GROUP_GET_TIMESLICE: u32 = 0xa06c_0104;
    pub const GROUP_PREEMPT: u32 = 0xa06c_0105;
    pub const DISABLE_CHANNELS: u32 = 0x2080_110b;
}

/// Parameters of GROUP_SET_TIMESLICE and GROUP_GET_TIMESLICE: microseconds, 64 bits.
pub fn timeslice(micros: u64) -> [u8; 8] {
    micros.to_le_bytes()
}

/// Parameters of GROUP_PREEMPT: whether to wait at 0, whether the time-out is given at 1, the time-out in microseconds
/// at 4.
pub fn preempt(wait: bool, timeout: Option<u32>) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[0] = u8::from(wait);
    bytes[1] = u8::from(timeout.is_some());
    put(&mut bytes, 4, timeout.unwrap_or(0));
    bytes
}

/// Parameters of GROUP_SCHEDULE: whether to enable at 0; the submission and the enabling may be skipped at 1 and 2.
pub fn schedule(enable: bool) -> [u8; 3] {
    [u8::from(enable), 0, 0]
}

/// Parameters of DISABLE_CHANNELS, 536 bytes: whether to disable at 0, how many channels at 4, whether those that run
/// may go on at 8, whether to drop what was submitted at 9 (never here), an event of the kernel at 16 (none), then the
/// client of each channel from 24 and the channels from 280.
#[derive(Clone, Debug)]
pub struct ChannelList {
    bytes: [u8; 536],
    count: usize,
}

impl ChannelList {
    pub const ROOM: usize = 64;

    pub fn new(disable: bool, let_run: bool) -> ChannelList {
        let mut bytes = [0; 536];
        bytes[0] = u8::from(disable);
        bytes[8] = u8::from(let_run);
        ChannelList { bytes, count: 0 }
    }

    /// Whether there was room.
    pub fn push(&mut self, client: u32, channel: u32) -> bool {
        if self.is_full() {
            return false;
        }
        put(&mut self.bytes, 24 + 4 * self.count, client);
        put(&mut self.bytes, 280 + 4 * self.count, channel);
        self.count += 1;
        put(&mut self.bytes, 4, self.count as u32);
        true
    }

    pub fn disables(&self) -> bool {
        self.bytes[0] != 0
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn is_full(&self) -> bool {
        self.count == ChannelList::ROOM
    }

    pub fn bytes_mut(&mut self) -> &mut [u8; 536] {
        &mut self.bytes
    }
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_numbers_that_were_seen() {
        assert_eq!(ALLOCATE_SHORT, 0xc020_462b);
        assert_eq!(ALLOCATE_LONG, 0xc030_462b);
        assert_eq!(FREE_OBJECT, 0xc010_4629);
        assert_eq!(Control::REQUEST, 0xc020_462a);
        assert_eq!(argument_size(ALLOCATE_LONG), 48);
    }

    #[test]
    fn one_compare_tells_what_makes_or_frees() {
        let hits = (0..=0xffff).filter(|&request| makes_or_frees(request));
        assert!(hits.eq([0x4629, 0x462b]));
        assert!(makes_or_frees(ALLOCATE_LONG));
        assert!(!makes_or_frees(Control::REQUEST));
    }

    #[test]
    fn a_short_argument_is_no_call() {
        for (request, size) in [(ALLOCATE_SHORT, 32), (ALLOCATE_LONG, 48), (FREE_OBJECT, 16)] {
            let argument = [0; 48];
            assert!(Call::read(request, &argument[..size]).is_some());
            assert!((0..size).all(|short| Call::read(request, &argument[..short]).is_none()));
        }
    }

    #[test]
    fn silence_is_not_success() {
        assert_eq!(Control::new(1, 2, 3).status(), Status::GENERIC);
    }

    #[test]
    fn a_list_has_room_for_sixty_four() {
        let mut list = ChannelList::new(true, false);
        assert!((0..64).all(|channel| list.push(1, channel)));
        assert!(!list.push(1, 64));
        assert_eq!(list.bytes_mut()[532..], 63u32.to_le_bytes());
    }
}
