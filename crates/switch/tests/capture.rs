//! What a process's calls leave in the capture.

mod made_up;

use made_up::{CHANNEL, CLIENT, DEVICE, GROUP, MEMORY, SUBDEVICE, free, kept, long, make, short, unmake};
use switch::capture::ROOM;
use switch::wire::{ALLOCATE_LONG, ALLOCATE_SHORT, Control, FREE_OBJECT};
use switch::{Capture, Event, Kind};

const FD: i32 = 7;
const ROOT: u32 = 0xc1d0_0001;

fn capture() -> Box<Capture> {
    Box::new(Capture::new())
}

/// What CUDA makes for one context, in its order: a device, its subdevice, then groups with channels.
fn context(capture: &Capture, root: u32, first: u32) {
    make(capture, FD, root, root, first, DEVICE);
    make(capture, FD, root, first, first + 1, SUBDEVICE);
    for group in 0..4 {
        let handle = first + 16 * (group + 1);
        make(capture, FD, root, first, handle, GROUP);
        (1..6).for_each(|n| _ = make(capture, FD, root, handle, handle + n, CHANNEL));
    }
}

#[test]
fn a_context_is_seen_in_both_forms_of_the_call() {
    let capture = capture();
    let observe = |request, bytes: Vec<u8>| capture.observe(capture.moment(), FD, request, &bytes, 0);
    // A client asks with zeros and is told its handle; what stands in the client's place means nothing.
    observe(ALLOCATE_SHORT, short(0, 0, ROOT, CLIENT, 0));
    observe(ALLOCATE_LONG, long(ROOT, ROOT, 0x5c00_0001, DEVICE, 0));
    observe(ALLOCATE_SHORT, short(ROOT, 0x5c00_0001, 0x5c00_0002, SUBDEVICE, 0));
    observe(ALLOCATE_LONG, long(ROOT, 0x5c00_0001, 0x5c00_0010, GROUP, 0));
    let made = observe(ALLOCATE_LONG, long(ROOT, 0x5c00_0010, 0x5c00_0011, CHANNEL, 0));
    assert_eq!(observe(ALLOCATE_LONG, long(ROOT, 0x5c00_0001, 0x5c00_0020, MEMORY, 0)), Event::Nothing);

    let kinds: Vec<Kind> = capture.objects().map(|object| object.kind()).collect();
    assert_eq!(kinds, [Kind::Client, Kind::Device, Kind::Subdevice, Kind::Group, Kind::Channel]);
    let Event::Made(channel) = made else { panic!("{made:?}") };
    assert_eq!((channel.fd(), channel.client(), channel.parent()), (FD, ROOT, 0x5c00_0010));
    assert_eq!(capture.device_of(&channel), Some(0x5c00_0001));
    assert!(capture.holds(&channel));
}

#[test]
fn the_client_is_its_own_client() {
    let capture = capture();
    make(&capture, FD, 0, 0, ROOT, 0);
    assert!(kept(&capture).contains(&(FD, ROOT, ROOT, 0)));
    context(&capture, ROOT, 0x100);
    assert_eq!(unmake(&capture, FD, ROOT, ROOT), Event::Gone(27));
    assert_eq!(capture.objects().count(), 0);
}

#[test]
fn what_failed_was_not_made() {
    let capture = capture();
    let observe =
        |fd, bytes: &[u8], result| capture.observe(capture.moment(), fd, ALLOCATE_LONG, bytes, result);
    // Refused by the driver, by the system call, on no file, without a handle, and cut off.
    observe(FD, &long(ROOT, 1, 2, GROUP, 0x1b), 0);
    observe(FD, &long(ROOT, 1, 2, GROUP, 0), -1);
    observe(-1, &long(ROOT, 1, 2, GROUP, 0), 0);
    observe(FD, &long(ROOT, 1, 0, GROUP, 0), 0);
    observe(FD, &long(ROOT, 1, 2, GROUP, 0)[..47], 0);
    // The longer structure under the shorter request has its status elsewhere: the size decides.
    capture.observe(capture.moment(), FD, 0xc024_462b, &long(ROOT, 1, 2, GROUP, 0), 0);
    capture.observe(capture.moment(), FD, Control::REQUEST, &long(ROOT, 1, 2, GROUP, 0), 0);
    assert_eq!(capture.objects().count(), 0);
}

#[test]
fn what_is_freed_takes_along_what_is_below_it() {
    let capture = capture();
    make(&capture, FD, 0, 0, ROOT, CLIENT);
    context(&capture, ROOT, 0x100);
    context(&capture, ROOT, 0x200);
    assert_eq!(unmake(&capture, FD, ROOT, 0x110), Event::Gone(6));
    assert_eq!(unmake(&capture, FD, ROOT, 0x121), Event::Gone(1));
    assert_eq!(unmake(&capture, FD, ROOT, 0x100), Event::Gone(26 - 7));
    assert_eq!(unmake(&capture, FD, ROOT, 0x100), Event::Nothing);
    assert_eq!(capture.objects().count(), 1 + 26);
    assert!(capture.groups().all(|group| group.object().parent() == 0x200));
}

#[test]
fn a_free_that_failed_frees_nothing_unless_there_was_nothing() {
    let capture = capture();
    make(&capture, FD, ROOT, 1, 2, GROUP);
    let refuse = |status| capture.observe(capture.moment(), FD, FREE_OBJECT, &free(ROOT, 1, 2, status), 0);
    assert_eq!(refuse(0x40), Event::Nothing);
    // The answer to a free on a file that is not the client's.
    assert_eq!(refuse(0x23), Event::Nothing);
    assert_eq!(capture.groups().count(), 1);
    assert_eq!(refuse(0x57), Event::Gone(1));
}

#[test]
fn equal_handles_of_two_clients_are_two_objects() {
    let capture = capture();
    make(&capture, FD, ROOT, 1, 2, GROUP);
    make(&capture, FD, ROOT + 1, 1, 2, GROUP);
    assert_eq!(unmake(&capture, FD, ROOT, 2), Event::Gone(1));
    assert_eq!(capture.groups().next().unwrap().object().client(), ROOT + 1);
}

#[test]
fn contexts_that_come_again_are_followed() {
    let capture = capture();
    make(&capture, FD, 0, 0, ROOT, CLIENT);
    for _ in 0..1000 {
        context(&capture, ROOT, 0x100);
        assert_eq!(capture.groups().count(), 4);
        assert_eq!(unmake(&capture, FD, ROOT, 0x100), Event::Gone(26));
    }
    assert_eq!((capture.objects().count(), capture.lost()), (1, 0));
}

#[test]
fn a_handle_that_is_given_anew_means_the_new_object() {
    let capture = capture();
    context(&capture, ROOT, 0x100);
    let old = capture.groups().next().unwrap();
    // As another kind of object, which tells that the group and its channels are gone.
    assert_eq!(make(&capture, FD, ROOT, 0x100, old.object().handle(), MEMORY), Event::Gone(6));
    assert!(!capture.holds(old.object()));
}

#[test]
fn a_free_that_is_told_late_does_not_take_the_new_object() {
    let capture = capture();
    make(&capture, FD, ROOT, 1, 2, GROUP);
    // One thread frees; before it says so, another is given the handle for a new object.
    let before = capture.moment();
    let Event::Made(new) = make(&capture, FD, ROOT, 1, 2, GROUP) else { panic!() };
    assert_eq!(capture.observe(before, FD, FREE_OBJECT, &free(ROOT, 1, 2, 0), 0), Event::Nothing);
    assert!(capture.holds(&new));
    assert_eq!(capture.groups().count(), 1);
}

#[test]
fn a_file_that_is_closed_takes_its_objects_along() {
    let capture = capture();
    make(&capture, FD, 0, 0, ROOT, CLIENT);
    context(&capture, ROOT, 0x100);
    make(&capture, FD + 1, 0, 0, ROOT + 1, CLIENT);
    assert_eq!(capture.closing(FD), Event::Gone(27));
    assert_eq!(capture.closing(FD), Event::Nothing);
    assert_eq!(kept(&capture), [(FD + 1, ROOT + 1, ROOT + 1, CLIENT)].into());
}

#[test]
fn a_child_of_a_fork_has_nothing() {
    let capture = capture();
    context(&capture, ROOT, 0x100);
    let group = capture.groups().next().unwrap();
    capture.forget_all();
    assert_eq!(capture.objects().count(), 0);
    assert!(!capture.holds(group.object()));
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let capture = capture();
    for handle in 1..=ROOM as u32 {
        assert!(matches!(make(&capture, FD, ROOT, 1, handle + 1, GROUP), Event::Made(_)));
    }
    assert_eq!(make(&capture, FD, ROOT, 1, 0x5000, GROUP), Event::Lost(Kind::Group));
    assert_eq!((capture.objects().count(), capture.lost()), (ROOM, 1));
    unmake(&capture, FD, ROOT, 2);
    assert!(matches!(make(&capture, FD, ROOT, 1, 0x5000, GROUP), Event::Made(_)));
}

#[test]
fn channels_of_all_architectures_are_channels() {
    let classes = [0x906f, 0xa06f, 0xb06f, 0xc06f, 0xc36f, 0xc46f, 0xc56f, 0xc86f, 0xc96f, 0xca6f];
    assert!(classes.iter().all(|&class| Kind::of(class) == Some(Kind::Channel)));
    // Memory, a usermode window, a compute engine, a context share, an event.
    let others = [0x40, 0xc361, 0xc661, 0xcbc0, 0x9067, 0x79, 0x6f, 0x1_c86f];
    assert!(others.iter().all(|&class| Kind::of(class).is_none()));
}

#[test]
fn threads_do_not_disturb_each_other() {
    let capture = capture();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let capture = &capture;
            scope.spawn(move || {
                let root = ROOT + thread;
                for _ in 0..100 {
                    make(capture, FD, 0, 0, root, CLIENT);
                    context(capture, root, 0x100);
                    let own = capture.groups().filter(|group| group.object().client() == root);
                    assert_eq!(own.count(), 4);
                    assert_eq!(unmake(capture, FD, root, root), Event::Gone(27));
                }
            });
        }
    });
    assert_eq!((capture.objects().count(), capture.lost()), (0, 0));
}
