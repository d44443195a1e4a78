//! Whatever a process calls.

mod made_up;

use std::cell::RefCell;
use std::collections::BTreeSet;

use made_up::{CHANNEL, CLIENT, DEVICE, Driver, GROUP, MEMORY, SUBDEVICE, Strict, free, kept, long, short};
use proptest::collection::vec;
use proptest::prelude::*;
use switch::capture::ROOM;
use switch::driver::judge;
use switch::wire::{ALLOCATE_LONG, ALLOCATE_SHORT, Call, Control, FREE_OBJECT};
use switch::{Capture, Error, Group, Halt, Micros, Object, Scope, Switch, Wait};

/// What a program and its driver do to each other, with choices as numbers.
#[derive(Clone, Debug)]
enum Step {
    /// An object of the class below the chosen one of those that may have such.
    Make {
        class: u32,
        above: usize,
        handle: u32,
        fd: i32,
        short: bool,
    },
    /// The same, refused with a status, or by the system call.
    Fail {
        class: u32,
        above: usize,
        handle: u32,
        status: u32,
        result: i32,
    },
    Free {
        which: usize,
    },
    FailToFree {
        which: usize,
    },
    Close {
        fd: i32,
    },
    Fork,
    /// Takes hold of a group, perhaps to use it when it is long gone.
    Hold {
        which: usize,
    },
    Control {
        which: usize,
        verb: u8,
    },
}

fn class() -> impl Strategy<Value = u32> {
    prop::sample::select(&[CLIENT, DEVICE, SUBDEVICE, GROUP, GROUP, CHANNEL, CHANNEL, CHANNEL, MEMORY][..])
}

fn step() -> impl Strategy<Value = Step> {
    let (any_one, handle, fd) = (0..1000usize, 1..40u32, 3..6i32);
    let making = (class(), any_one.clone(), handle.clone(), fd.clone(), any::<bool>());
    let failing = (class(), any_one.clone(), handle, 1..0x90u32, -1..=0i32);
    prop_oneof![
        12 => making.prop_map(|(class, above, handle, fd, short)| Step::Make { class, above, handle, fd, short }),
        3 => failing.prop_map(|(class, above, handle, status, result)| {
            Step::Fail { class, above, handle, status, result }
        }),
        3 => any_one.clone().prop_map(|which| Step::Free { which }),
        1 => any_one.clone().prop_map(|which| Step::FailToFree { which }),
        1 => fd.prop_map(|fd| Step::Close { fd }),
        1 => Just(Step::Fork),
        2 => any_one.clone().prop_map(|which| Step::Hold { which }),
        4 => (any_one, 0..7u8).prop_map(|(which, verb)| Step::Control { which, verb }),
    ]
}

/// A program on a made-up driver, watched by a capture.
struct World {
    capture: Box<Capture>,
    driver: RefCell<Driver>,
    held: Vec<Group>,
}

impl World {
    fn show(&self, fd: i32, request: u32, bytes: &[u8], result: i32) {
        self.capture.observe(self.capture.moment(), fd, request, bytes, result);
    }

    /// Client, parent and file for a new object: the kernel allows only such parents.
    fn place(&self, class: u32, above: usize) -> Option<(u32, u32, i32)> {
        let parents: &[u32] = match class {
            DEVICE => &[CLIENT],
            CHANNEL => &[DEVICE, GROUP],
            _ => &[DEVICE],
        };
        let driver = self.driver.borrow();
        let fit: Vec<_> = driver.things.iter().filter(|(_, thing)| parents.contains(&thing.class)).collect();
        let &(&(client, parent), thing) = fit.get(above % fit.len().max(1))?;
        Some((client, parent, thing.fd))
    }

    fn make(&self, class: u32, above: usize, handle: u32, fd: i32, in_short: bool) {
        let root = 0xc1d0_0000 + handle;
        let (client, parent, handle, fd) = match self.place(class, above) {
            _ if class == CLIENT => (root, 0, root, fd),
            Some((client, parent, fd)) => (client, parent, handle, fd),
            None => return,
        };
        // A handle that is taken is refused by the driver.
        let taken = self.driver.borrow().things.contains_key(&(client, handle));
        let status = if taken { 0x19 } else { 0 };
        if in_short {
            self.show(fd, ALLOCATE_SHORT, &short(client, parent, handle, class, status), 0);
        } else {
            self.show(fd, ALLOCATE_LONG, &long(client, parent, handle, class, status), 0);
        }
        if !taken {
            self.driver.borrow_mut().add(fd, client, parent, handle, class);
        }
    }

    fn chosen(&self, which: usize) -> Option<(u32, u32, i32)> {
        let driver = self.driver.borrow();
        let (&(client, handle), thing) = driver.things.iter().nth(which % driver.things.len().max(1))?;
        Some((client, handle, thing.fd))
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Make { class, above, handle, fd, short } => self.make(class, above, handle, fd, short),
            Step::Fail { class, above, handle, status, result } => {
                let Some((client, parent, fd)) = self.place(class, above) else { return };
                let taken = self.driver.borrow().things.contains_key(&(client, handle));
                let status = if result < 0 && !taken { 0 } else { status };
                self.show(fd, ALLOCATE_LONG, &long(client, parent, handle, class, status), result);
            }
            Step::Free { which } => {
                let Some((client, handle, fd)) = self.chosen(which) else { return };
                self.driver.borrow_mut().free(client, handle);
                self.show(fd, FREE_OBJECT, &free(client, 0, handle, 0), 0);
            }
            Step::FailToFree { which } => {
                let Some((client, handle, fd)) = self.chosen(which) else { return };
                self.show(fd, FREE_OBJECT, &free(client, 0, handle, 0x40), 0);
            }
            Step::Close { fd } => {
                self.capture.closing(fd);
                self.driver.borrow_mut().close(fd);
            }
            Step::Fork => {
                // The child: all that it may have is what it makes itself.
                self.capture.forget_all();
                self.driver.borrow_mut().things.clear();
            }
            Step::Hold { which } => {
                let groups: Vec<Group> = self.capture.groups().collect();
                self.held.extend(groups.get(which % groups.len().max(1)));
            }
            Step::Control { which, verb } => self.control(which, verb),
        }
    }

    /// The kernel asserts that it is asked for what is there, and nothing else.
    fn control(&self, which: usize, verb: u8) {
        let switch = Switch::new(&self.capture, Strict(&self.driver));
        let all = |result: Result<usize, Error>| assert!(matches!(result, Ok(_) | Err(Error::NoSubdevice)));
        let Some(group) = self.held.get(which % self.held.len().max(1)) else {
            return all(switch.disable(Scope::Process, Halt::Preempt));
        };
        let result = match verb {
            0 => switch.set_timeslice(group, Micros(1)),
            1 => switch.timeslice(group).map(|_| ()),
            2 => switch.preempt(group, Wait::Driver),
            3 => switch.schedule(group, false),
            4 => return all(switch.disable(Scope::Process, Halt::LetRun)),
            5 => return all(switch.enable(Scope::Process)),
            _ => switch.disable(Scope::Group(group), Halt::Preempt).map(|_| ()),
        };
        let there = self.capture.holds(group.object());
        assert!(there || matches!(result, Err(Error::Gone(_))), "{result:?} of what is gone");
        assert!(!there || matches!(result, Ok(()) | Err(Error::NoSubdevice)), "{result:?} of what is there");
    }
}

/// A request that is likely to be of interest, and an argument that may be anything.
fn noise() -> impl Strategy<Value = (i32, u32, Vec<u8>, i32)> {
    let requests =
        [ALLOCATE_SHORT, ALLOCATE_LONG, FREE_OBJECT, Control::REQUEST, 0xc031_462b, 0x462b, 0x4629];
    let request = prop_oneof![9 => prop::sample::select(requests.to_vec()), 1 => any::<u32>()];
    // Small words, so that handles meet each other and statuses are often zero.
    let classes = [0, 0, 0, 1, 2, 3, DEVICE, SUBDEVICE, GROUP, CHANNEL, CLIENT, 0x57];
    let word = prop_oneof![9 => prop::sample::select(classes.to_vec()), 1 => any::<u32>()];
    let argument = (vec(word, 0..14), 0..4usize).prop_map(|(words, cut)| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes[..bytes.len().saturating_sub(cut)].to_vec()
    });
    (-1..5i32, request, argument, prop_oneof![4 => Just(0), 1 => any::<i32>()])
}

proptest! {
    #[test]
    fn the_capture_is_what_the_driver_has(steps in vec(step(), 0..200)) {
        let (capture, driver) = (Box::new(Capture::new()), RefCell::default());
        let mut world = World { capture, driver, held: Vec::new() };
        for step in &steps {
            world.take(step);
            prop_assert_eq!(kept(&world.capture), world.driver.borrow().of_interest(), "after {:?}", step);
        }
        prop_assert_eq!(world.capture.lost(), 0);
    }

    #[test]
    fn no_stream_of_calls_does_harm(calls in vec(noise(), 0..300)) {
        let capture = Box::new(Capture::new());
        let mut made = BTreeSet::new();
        for (fd, request, argument, result) in &calls {
            if let Some(Call::Allocate { object, class, status, .. }) = Call::read(*request, argument)
                && status.is_ok() && *result == 0
            {
                made.insert((*fd, object, class));
            }
            capture.observe(capture.moment(), *fd, *request, argument, *result);
            let known = |object: Object| made.contains(&(object.fd(), object.handle(), object.class()));
            prop_assert!(capture.objects().all(known));
            prop_assert!(capture.objects().count() <= ROOM);
        }
        // And nothing of it makes a control fall into an endless loop or over its own feet.
        let kernel = made_up::Recorder::default();
        let _ = Switch::new(&capture, &kernel).disable(Scope::Process, Halt::Preempt);
    }

    #[test]
    fn no_version_text_does_harm(text in vec(any::<u8>(), 0..200), tail in "[0-9. ]{0,40}") {
        let _ = judge(&text);
        let _ = judge(format!("NVRM version: NVIDIA UNIX Open Kernel Module {tail}").as_bytes());
    }
}
