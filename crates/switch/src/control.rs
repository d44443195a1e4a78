//! What can be done to the objects of this process.

use core::fmt;

use crate::capture::{Capture, Group, Kind, Object};
use crate::error::Error;
use crate::kernel::Kernel;
use crate::wire::{self, ChannelList, Control, command};

/// A span in microseconds, the driver's unit for timeslices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub u64);

impl fmt::Display for Micros {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} µs", self.0)
    }
}

/// The driver's own limit of a wait for a preemption.
pub const LONGEST_WAIT: Micros = Micros(1_000_000);

/// How long a preemption is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all. The driver wants one preemption to be over before the next is asked for, and leaves it to the caller
    /// to see to that.
    No,
    /// As long as the driver thinks right.
    Driver,
    /// At most so long, and at most [`LONGEST_WAIT`].
    AtMost(Micros),
}

/// What becomes of channels that run while they are disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// They leave the GPU at once, in the middle of a kernel.
    Preempt,
    /// They go on until their timeslice is over.
    LetRun,
}

/// Which channels.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// All of this process.
    Process,
    /// Those on the GPU of a device object.
    Device(&'a Object),
    Group(&'a Group),
}

/// Calls on captured objects, and on no others: an object comes from a [`Capture`], and is looked up there again before
/// each call.
#[derive(Clone, Copy)]
pub struct Switch<'a, K> {
    capture: &'a Capture,
    kernel: K,
}

impl<'a, K: Kernel> Switch<'a, K> {
    pub const fn new(capture: &'a Capture, kernel: K) -> Switch<'a, K> {
        Switch { capture, kernel }
    }

    pub fn timeslice(&self, group: &Group) -> Result<Micros, Error> {
        let mut parameters = wire::timeslice(0);
        self.issue(group.object(), "GET_TIMESLICE", command::GROUP_GET_TIMESLICE, &mut parameters)?;
        Ok(Micros(u64::from_le_bytes(parameters)))
    }

    /// Takes effect at once. A call of some hundred microseconds: for standing settings, not for each request.
    pub fn set_timeslice(&self, group: &Group, slice: Micros) -> Result<(), Error> {
        let mut parameters = wire::timeslice(slice.0);
        self.issue(group.object(), "SET_TIMESLICE", command::GROUP_SET_TIMESLICE, &mut parameters)
    }

    /// Takes the group off the GPU, to which it comes back when it is its turn.
    pub fn preempt(&self, group: &Group, wait: Wait) -> Result<(), Error> {
        let mut parameters = match wait {
            Wait::No => wire::preempt(false, None),
            Wait::Driver => wire::preempt(true, None),
            Wait::AtMost(limit) if limit > LONGEST_WAIT => return Err(Error::WaitTooLong(limit)),
            Wait::AtMost(limit) => wire::preempt(true, Some(limit.0 as u32)),
        };
        self.issue(group.object(), "PREEMPT", command::GROUP_PREEMPT, &mut parameters)
    }

    /// Whether the hardware may choose the group at all.
    pub fn schedule(&self, group: &Group, enable: bool) -> Result<(), Error> {
        let mut parameters = wire::schedule(enable);
        self.issue(group.object(), "GPFIFO_SCHEDULE", command::GROUP_SCHEDULE, &mut parameters)
    }

    /// Disables channels; says how many. They still take work, and run none. When the driver refuses some of them, those
    /// that were disabled before are enabled again: nobody is left half stopped, unless the driver refuses that too.
    pub fn disable(&self, scope: Scope<'_>, halt: Halt) -> Result<usize, Error> {
        self.named(scope)?;
        self.all_reached(scope)?;
        let list = ChannelList::new(true, halt == Halt::LetRun);
        let result = self.each_device(scope, &list);
        if let Err(error) = result {
            let _ = self.enable(scope);
            return Err(error);
        }
        result
    }

    /// Enables channels, whether or not they were disabled; says how many. Does what it can before it gives the first
    /// error: a tenant that cannot be stopped is a pity, one that cannot go on is lost.
    pub fn enable(&self, scope: Scope<'_>) -> Result<usize, Error> {
        self.named(scope)?;
        let count = self.each_device(scope, &ChannelList::new(false, false))?;
        self.all_reached(scope).map(|()| count)
    }

    /// The one place from which calls are made.
    fn issue(
        &self,
        object: &Object,
        control: &'static str,
        command: u32,
        parameters: &mut [u8],
    ) -> Result<(), Error> {
        if !self.capture.holds(object) {
            return Err(Error::Gone(object.kind()));
        }
        let mut call = Control::new(object.client(), object.handle(), command);
        call.set_parameters(0, parameters.len() as u32);
        let made = self.kernel.ioctl(object.fd(), &mut call, parameters);
        made.map_err(|errno| Error::System { control, errno })?;
        match call.status() {
            status if status.is_ok() => Ok(()),
            status => Err(Error::Refused { control, status }),
        }
    }

    /// Whether what names the scope is there.
    fn named(&self, scope: Scope<'_>) -> Result<(), Error> {
        let named = match scope {
            Scope::Process => None,
            Scope::Device(object) => Some(object),
            Scope::Group(group) => Some(group.object()),
        };
        match named.filter(|object| !self.capture.holds(object)) {
            Some(gone) => Err(Error::Gone(gone.kind())),
            None => Ok(()),
        }
    }

    /// Whether each channel has a subdevice through which it can be asked for.
    fn all_reached(&self, scope: Scope<'_>) -> Result<(), Error> {
        let reached =
            |channel: Object| self.subdevices().any(|subdevice| self.is_below(&channel, &subdevice));
        if self.channels(scope).all(reached) { Ok(()) } else { Err(Error::NoSubdevice) }
    }

    /// Stops at the first error when it disables, for then there is no use in the rest.
    fn each_device(&self, scope: Scope<'_>, empty: &ChannelList) -> Result<usize, Error> {
        let mut result = Ok(0);
        for subdevice in self.subdevices() {
            let mut list = empty.clone();
            for channel in self.channels(scope).filter(|channel| self.is_below(channel, &subdevice)) {
                list.push(channel.client(), channel.handle());
                if list.is_full() {
                    result = both(result, self.send(&subdevice, &mut list));
                    list = empty.clone();
                }
                if result.is_err() && empty.disables() {
                    return result;
                }
            }
            if !list.is_empty() {
                result = both(result, self.send(&subdevice, &mut list));
            }
            if result.is_err() && empty.disables() {
                return result;
            }
        }
        result
    }

    fn send(&self, subdevice: &Object, list: &mut ChannelList) -> Result<usize, Error> {
        let count = list.len();
        self.issue(subdevice, "FIFO_DISABLE_CHANNELS", command::DISABLE_CHANNELS, list.bytes_mut())?;
        Ok(count)
    }

    /// One subdevice of each device, so that no channel is in two calls.
    fn subdevices(&self) -> impl Iterator<Item = Object> {
        let of = |object: &Object| (object.client(), object.parent());
        let first = move |object: &Object| {
            self.capture.of(Kind::Subdevice).find(|other| of(other) == of(object)) == Some(*object)
        };
        self.capture.of(Kind::Subdevice).filter(first)
    }

    fn channels(&self, scope: Scope<'_>) -> impl Iterator<Item = Object> {
        self.capture.of(Kind::Channel).filter(move |channel| match scope {
            Scope::Process => true,
            Scope::Device(device) => {
                channel.client() == device.client()
                    && self.capture.device_of(channel) == Some(device.handle())
            }
            Scope::Group(group) => {
                channel.client() == group.object().client() && channel.parent() == group.object().handle()
            }
        })
    }

    fn is_below(&self, channel: &Object, subdevice: &Object) -> bool {
        channel.client() == subdevice.client() && self.capture.device_of(channel) == Some(subdevice.parent())
    }
}

/// The first error, or the sum.
fn both(before: Result<usize, Error>, now: Result<usize, Error>) -> Result<usize, Error> {
    let before = before?;
    now.map(|now| before + now)
}
