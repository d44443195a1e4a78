//! The exact bytes of every control, and what becomes of the answers.

mod made_up;

use made_up::{CHANNEL, CLIENT, DEVICE, GROUP, Recorder, SUBDEVICE, make, unmake};
use switch::{Capture, Errno, Error, Group, Halt, Kind, Micros, Scope, Status, Switch, Wait};

const FD: i32 = 7;
const ROOT: u32 = 0xc1d0_0001;
const CARD: u32 = 0x5c00_0001;
const TSG: u32 = 0x5c00_0010;

/// One context with a group and so many channels.
fn context(channels: u32) -> Box<Capture> {
    let capture = Box::new(Capture::new());
    make(&capture, FD, 0, 0, ROOT, CLIENT);
    make(&capture, FD, ROOT, ROOT, CARD, DEVICE);
    make(&capture, FD, ROOT, CARD, CARD + 1, SUBDEVICE);
    make(&capture, FD, ROOT, CARD, TSG, GROUP);
    (1..=channels).for_each(|n| _ = make(&capture, FD, ROOT, TSG, TSG + n, CHANNEL));
    capture
}

fn group(capture: &Capture) -> Group {
    capture.groups().next().expect("the context has a group")
}

/// NVOS54 with no address: client, object, command, flags, address, size of parameters, status (a failure until told
/// otherwise).
fn call(object: u32, command: u32, size: u32) -> [u8; 32] {
    let words = [ROOT, object, command, 0, 0, 0, size, 0xffff];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.try_into().expect("eight words")
}

#[test]
fn a_timeslice_is_set() {
    let (capture, kernel) = (context(1), Recorder::default());
    Switch::new(&capture, &kernel).set_timeslice(&group(&capture), Micros(0x0102_0304_0506)).unwrap();
    // Microseconds as 64 bits.
    let parameters = vec![6, 5, 4, 3, 2, 1, 0, 0];
    assert_eq!(*kernel.made.borrow(), [(FD, call(TSG, 0xa06c_0103, 8), parameters)]);
}

#[test]
fn a_timeslice_is_read() {
    let (capture, kernel) = (context(1), Recorder::default());
    kernel.gives.replace(Some(vec![0, 8, 0, 0, 0, 0, 0, 0]));
    assert_eq!(Switch::new(&capture, &kernel).timeslice(&group(&capture)), Ok(Micros(2048)));
    assert_eq!(*kernel.made.borrow(), [(FD, call(TSG, 0xa06c_0104, 8), vec![0; 8])]);
}

#[test]
fn a_preemption_is_waited_for_as_asked() {
    let (capture, kernel) = (context(1), Recorder::default());
    let (switch, group) = (Switch::new(&capture, &kernel), group(&capture));
    switch.preempt(&group, Wait::No).unwrap();
    switch.preempt(&group, Wait::Driver).unwrap();
    switch.preempt(&group, Wait::AtMost(Micros(1_000_000))).unwrap();
    // Whether to wait, whether the time-out is given, two of padding, the time-out.
    let parameters = [vec![0; 8], vec![1, 0, 0, 0, 0, 0, 0, 0], vec![1, 1, 0, 0, 0x40, 0x42, 0x0f, 0]];
    let expected = parameters.map(|parameters| (FD, call(TSG, 0xa06c_0105, 8), parameters));
    assert_eq!(*kernel.made.borrow(), expected);

    let too_long = switch.preempt(&group, Wait::AtMost(Micros(1_000_001)));
    assert_eq!(too_long, Err(Error::WaitTooLong(Micros(1_000_001))));
    assert_eq!(kernel.made.borrow().len(), 3);
}

#[test]
fn scheduling_goes_off_and_on() {
    let (capture, kernel) = (context(1), Recorder::default());
    let (switch, group) = (Switch::new(&capture, &kernel), group(&capture));
    switch.schedule(&group, false).unwrap();
    switch.schedule(&group, true).unwrap();
    // Whether to enable; nothing is skipped.
    let expected = [vec![0; 3], vec![1, 0, 0]].map(|bytes| (FD, call(TSG, 0xa06c_0101, 3), bytes));
    assert_eq!(*kernel.made.borrow(), expected);
}

/// 536 bytes: disable 0, count 4, let run 8, rewind 9, event 16, clients from 24, channels from 280.
fn list(disable: u8, let_run: u8, channels: impl Iterator<Item = u32>) -> Vec<u8> {
    let mut bytes = vec![0; 536];
    let mut count = 0u32;
    for (index, channel) in channels.enumerate() {
        bytes[24 + 4 * index..][..4].copy_from_slice(&ROOT.to_le_bytes());
        bytes[280 + 4 * index..][..4].copy_from_slice(&channel.to_le_bytes());
        count += 1;
    }
    (bytes[0], bytes[8]) = (disable, let_run);
    bytes[4..8].copy_from_slice(&count.to_le_bytes());
    bytes
}

#[test]
fn channels_are_disabled_and_enabled() {
    let (capture, kernel) = (context(3), Recorder::default());
    let switch = Switch::new(&capture, &kernel);
    assert_eq!(switch.disable(Scope::Process, Halt::Preempt), Ok(3));
    assert_eq!(switch.disable(Scope::Group(&group(&capture)), Halt::LetRun), Ok(3));
    assert_eq!(switch.enable(Scope::Process), Ok(3));
    let channels = || TSG + 1..TSG + 4;
    let call = call(CARD + 1, 0x2080_110b, 536);
    let expected = [list(1, 0, channels()), list(1, 1, channels()), list(0, 0, channels())];
    assert_eq!(*kernel.made.borrow(), expected.map(|parameters| (FD, call, parameters)));
}

#[test]
fn more_channels_than_a_call_takes_are_several_calls() {
    let (capture, kernel) = (context(150), Recorder::default());
    assert_eq!(Switch::new(&capture, &kernel).disable(Scope::Process, Halt::Preempt), Ok(150));
    let sent: Vec<Vec<u8>> = kernel.made.borrow().iter().map(|made| made.2.clone()).collect();
    let ranges = [1..65, 65..129, 129..151];
    assert_eq!(sent, ranges.map(|range| list(1, 0, range.map(|n| TSG + n))));

    let (capture, kernel) = (context(64), Recorder::default());
    assert_eq!(Switch::new(&capture, &kernel).disable(Scope::Process, Halt::Preempt), Ok(64));
    assert_eq!(kernel.made.borrow().len(), 1);
}

#[test]
fn each_gpu_is_asked_for_its_own_channels() {
    let (capture, kernel) = (context(2), Recorder::default());
    let other = CARD + 0x100;
    make(&capture, FD, ROOT, ROOT, other, DEVICE);
    make(&capture, FD, ROOT, other, other + 1, SUBDEVICE);
    // A second subdevice of the same device must not get the channels again.
    make(&capture, FD, ROOT, other, other + 2, SUBDEVICE);
    make(&capture, FD, ROOT, other, other + 3, GROUP);
    make(&capture, FD, ROOT, other + 3, other + 4, CHANNEL);
    // Without a group: directly below the device.
    make(&capture, FD, ROOT, other, other + 5, CHANNEL);

    let switch = Switch::new(&capture, &kernel);
    assert_eq!(switch.disable(Scope::Process, Halt::Preempt), Ok(4));
    let device = capture.of(Kind::Device).find(|device| device.handle() == other).unwrap();
    assert_eq!(switch.enable(Scope::Device(&device)), Ok(2));
    let expected = [
        (FD, call(CARD + 1, 0x2080_110b, 536), list(1, 0, [TSG + 1, TSG + 2].into_iter())),
        (FD, call(other + 1, 0x2080_110b, 536), list(1, 0, [other + 4, other + 5].into_iter())),
        (FD, call(other + 1, 0x2080_110b, 536), list(0, 0, [other + 4, other + 5].into_iter())),
    ];
    assert_eq!(*kernel.made.borrow(), expected);
}

#[test]
fn nobody_is_left_half_stopped() {
    let (capture, kernel) = (context(100), Recorder::default());
    kernel.answers.replace(vec![Ok(Status::OK), Ok(Status::INVALID_STATE)]);
    let refused = Switch::new(&capture, &kernel).disable(Scope::Process, Halt::Preempt);
    assert_eq!(
        refused,
        Err(Error::Refused { control: "FIFO_DISABLE_CHANNELS", status: Status::INVALID_STATE })
    );
    // Disable, disable (refused), and all are enabled again.
    let asked: Vec<(u8, u8)> =
        kernel.made.borrow().iter().map(|(_, _, bytes)| (bytes[0], bytes[4])).collect();
    assert_eq!(asked, [(1, 64), (1, 36), (0, 64), (0, 36)]);
}

#[test]
fn enabling_goes_on_after_an_error() {
    let (capture, kernel) = (context(100), Recorder::default());
    kernel.answers.replace(vec![Err(Errno(5)), Ok(Status::OK)]);
    let refused = Switch::new(&capture, &kernel).enable(Scope::Process);
    assert_eq!(refused, Err(Error::System { control: "FIFO_DISABLE_CHANNELS", errno: Errno(5) }));
    assert_eq!(kernel.made.borrow().len(), 2);
}

#[test]
fn nothing_is_begun_where_a_subdevice_is_missing() {
    let (capture, kernel) = (context(2), Recorder::default());
    unmake(&capture, FD, ROOT, CARD + 1);
    let switch = Switch::new(&capture, &kernel);
    assert_eq!(switch.disable(Scope::Process, Halt::Preempt), Err(Error::NoSubdevice));
    assert!(kernel.made.borrow().is_empty());
    // What was stopped before goes on as far as it can.
    let other = CARD + 0x100;
    make(&capture, FD, ROOT, ROOT, other, DEVICE);
    make(&capture, FD, ROOT, other, other + 1, SUBDEVICE);
    make(&capture, FD, ROOT, other, other + 2, CHANNEL);
    assert_eq!(switch.enable(Scope::Process), Err(Error::NoSubdevice));
    assert_eq!(kernel.made.borrow().len(), 1);
    unmake(&capture, FD, ROOT, other);
    // Where there is no channel there is nothing to miss.
    unmake(&capture, FD, ROOT, TSG);
    assert_eq!(switch.disable(Scope::Process, Halt::Preempt), Ok(0));
}

#[test]
fn no_call_is_made_on_what_is_gone() {
    let (capture, kernel) = (context(1), Recorder::default());
    let (switch, group) = (Switch::new(&capture, &kernel), group(&capture));
    unmake(&capture, FD, ROOT, TSG);
    // The same handle again is another object.
    make(&capture, FD, ROOT, CARD, TSG, GROUP);
    let gone = Err(Error::Gone(Kind::Group));
    assert_eq!(switch.set_timeslice(&group, Micros(1)), gone);
    assert_eq!(switch.timeslice(&group).map(|_| ()), gone);
    assert_eq!(switch.preempt(&group, Wait::No), gone);
    assert_eq!(switch.schedule(&group, true), gone);
    assert_eq!(switch.disable(Scope::Group(&group), Halt::Preempt).map(|_| ()), gone);
    assert!(kernel.made.borrow().is_empty());
}

#[test]
fn an_object_of_one_capture_is_nothing_to_another() {
    let (capture, other, kernel) = (context(1), Box::new(Capture::new()), Recorder::default());
    // In the same places, so that only what is in them tells the two apart.
    (0..5).for_each(|n| _ = make(&other, FD + 1, ROOT, CARD, TSG + n, GROUP));
    let refused = Switch::new(&other, &kernel).set_timeslice(&group(&capture), Micros(1));
    assert_eq!(refused, Err(Error::Gone(Kind::Group)));
    assert!(kernel.made.borrow().is_empty());
}

#[test]
fn refusals_have_nvidias_names() {
    let names = [
        (0x1b, "NV_ERR_INSUFFICIENT_PERMISSIONS (0x1b)"),
        (0x1f, "NV_ERR_INVALID_ARGUMENT (0x1f)"),
        (0x40, "NV_ERR_INVALID_STATE (0x40)"),
        (0x56, "NV_ERR_NOT_SUPPORTED (0x56)"),
        (0x57, "NV_ERR_OBJECT_NOT_FOUND (0x57)"),
        (0x65, "NV_ERR_TIMEOUT (0x65)"),
        (0x1234, "status 0x1234"),
    ];
    for (status, name) in names {
        let (capture, kernel) = (context(1), Recorder::default());
        kernel.answers.replace(vec![Ok(Status(status))]);
        let refused = Switch::new(&capture, &kernel).set_timeslice(&group(&capture), Micros(1));
        let text = refused.unwrap_err().to_string();
        assert_eq!(text, format!("the driver refused SET_TIMESLICE: {name}"));
        assert_eq!(capture.groups().count(), 1);
    }
}

/// A kernel that returns success and writes nothing.
struct Silent;

impl switch::Kernel for Silent {
    fn ioctl(&self, _: i32, _: &mut switch::wire::Control, _: &mut [u8]) -> Result<(), Errno> {
        Ok(())
    }
}

#[test]
fn silence_is_not_success() {
    let capture = context(1);
    let refused = Switch::new(&capture, Silent).set_timeslice(&group(&capture), Micros(1));
    assert_eq!(refused, Err(Error::Refused { control: "SET_TIMESLICE", status: Status::GENERIC }));
}
