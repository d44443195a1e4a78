//! Registering at a daemon that does as it should, and at ones that do not.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::ffi::CString;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::thread::JoinHandle;

use board::link::{self, Granted, Heard, Malformed, Reason, Received, Registration, Reply, Request};
use board::{Board, Error, Gpu, Label, Place, Settings, Terms};
use common::{GPU, ms};
use model::{Bytes, Class, Domain, Nanos};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketAddrUnix, SocketType,
};

/// A socket in a folder of its own, and a daemon at it that treats its one guest as said.
struct Daemon {
    path: CString,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

impl Daemon {
    fn new(treat: impl FnOnce(OwnedFd) + Send + 'static) -> Daemon {
        let folder = tempfile::tempdir().unwrap();
        let path = CString::new(folder.path().join("socket").as_os_str().as_bytes()).unwrap();
        let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        rustix::net::bind(&listener, &SocketAddrUnix::new(path.as_c_str()).unwrap()).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let thread = std::thread::spawn(move || treat(rustix::net::accept(&listener).unwrap()));
        Daemon { path, thread: Some(thread), _folder: folder }
    }

    /// Answers a registration with these bytes and files.
    fn answering(bytes: Vec<u8>, files: Vec<OwnedFd>) -> Daemon {
        Daemon::new(move |guest| {
            read_request(&guest);
            send(&guest, &bytes, &files);
        })
    }

    fn register(mut self, timeout: Nanos) -> Result<Granted, Error> {
        let asked = Registration { name: Label::new(b"train"), ..Registration::new(GPU, 7) };
        let outcome = link::register(&self.path, &asked, None, timeout).map(|(_, _, granted)| granted);
        self.thread.take().unwrap().join().unwrap();
        outcome
    }
}

/// Waits for one packet.
fn read_request(guest: &OwnedFd) -> Vec<u8> {
    let mut bytes = [0; 4096];
    let mut beside = RecvAncillaryBuffer::default();
    let mut slices = [IoSliceMut::new(&mut bytes)];
    let got = rustix::net::recvmsg(guest, &mut slices, &mut beside, RecvFlags::empty()).unwrap();
    bytes[..got.bytes].to_vec()
}

fn send(guest: &OwnedFd, bytes: &[u8], files: &[OwnedFd]) {
    let files: Vec<BorrowedFd<'_>> = files.iter().map(|file| file.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(16))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(beside.push(SendAncillaryMessage::ScmRights(&files)));
    }
    rustix::net::sendmsg(guest, &[IoSlice::new(bytes)], &mut beside, SendFlags::NOSIGNAL).unwrap();
}

/// A board with one seat taken, and the grant of it.
fn seated(gpu: Gpu) -> (OwnedFd, Granted) {
    let (board, file) = Board::create(gpu, &Settings::default()).unwrap();
    let place = common::take(&board, 7, 1);
    (file, Granted { place, terms: Terms::default(), lowered: true, domain: Domain::Shared, generation: 5 })
}

fn copies(file: &OwnedFd, count: usize) -> Vec<OwnedFd> {
    (0..count).map(|_| file.try_clone().unwrap()).collect()
}

#[test]
fn a_tenant_is_seated() {
    let (file, granted) = seated(GPU);
    let daemon = Daemon::new(move |guest| {
        // Nothing may be there yet: the daemon's half never waits.
        let request = loop {
            match link::receive(guest.as_fd()).unwrap() {
                Received::Nothing => std::thread::yield_now(),
                other => break other,
            }
        };
        let Received::Request(Request::Register(asked)) = request else { panic!("{request:?}") };
        assert_eq!((asked.gpu, asked.tenant, asked.name.as_bytes()), (GPU, 7, &b"train"[..]));
        link::reply(guest.as_fd(), &Reply::Granted(granted), Some(file.as_fd())).unwrap();
        while link::receive(guest.as_fd()) == Ok(Received::Nothing) {
            std::thread::yield_now();
        }
        assert_eq!(link::receive(guest.as_fd()), Ok(Received::End));
    });
    assert_eq!(daemon.register(ms(10_000)), Ok(granted));
}

#[test]
fn a_refusal_says_why() {
    let daemon = Daemon::answering(Reply::Refused(Reason::Full).encode().to_vec(), Vec::new());
    assert_eq!(daemon.register(ms(10_000)), Err(Error::Refused(Reason::Full)));
}

#[test]
fn a_grant_comes_with_exactly_one_file() {
    for count in [0, 2, 4, 5, 16] {
        let (file, granted) = seated(GPU);
        let daemon = Daemon::answering(Reply::Granted(granted).encode().to_vec(), copies(&file, count));
        let Err(Error::Files(seen)) = daemon.register(ms(10_000)) else {
            panic!("{count} files were accepted")
        };
        assert_ne!(seen, 1);
    }
}

#[test]
fn a_surplus_of_files_is_closed() {
    let (_, granted) = seated(GPU);
    let (reader, writer) = std::io::pipe().unwrap();
    let files = copies(&writer.into(), 3);
    let outcome = Daemon::answering(Reply::Granted(granted).encode().to_vec(), files).register(ms(10_000));
    assert_eq!(outcome, Err(Error::Files(3)));
    // Nobody has the writing end any more, so the pipe has ended.
    assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0));
}

#[test]
fn a_message_that_is_cut_or_too_long_is_refused() {
    let (file, granted) = seated(GPU);
    let whole = Reply::Granted(granted).encode().to_vec();
    for length in [1, 4, 11, 12, whole.len() - 1, whole.len() + 1, 4_000] {
        let mut bytes = whole.clone();
        bytes.resize(length, 0);
        let outcome = Daemon::answering(bytes, copies(&file, 1)).register(ms(10_000));
        assert!(matches!(outcome, Err(Error::Malformed(Malformed::Length(_)))), "{length}: {outcome:?}");
    }
}

#[test]
fn nonsense_is_refused() {
    let outcome = Daemon::answering(b"HTTP/1.1 400 Bad Request".to_vec(), Vec::new()).register(ms(10_000));
    assert_eq!(outcome, Err(Error::Malformed(Malformed::Magic)));
}

#[test]
fn what_comes_with_a_grant_must_be_the_right_board() {
    let (_, granted) = seated(GPU);
    let answer = |file: OwnedFd, granted: Granted| {
        Daemon::answering(Reply::Granted(granted).encode().to_vec(), vec![file]).register(ms(10_000))
    };
    let (other, _) = seated(Gpu([9; 16]));
    assert_eq!(answer(other, granted), Err(Error::OtherGpu));
    let (pipe, _writer) = std::io::pipe().unwrap();
    assert_eq!(answer(pipe.into(), granted), Err(Error::NotAMemoryFile));
    let (file, granted) = seated(GPU);
    let elsewhere = Granted { place: Place { seat: 3, ..granted.place }, ..granted };
    assert_eq!(answer(file, elsewhere), Err(Error::Stale));
}

#[test]
fn a_daemon_that_says_nothing_is_given_up_on() {
    let (hold, held) = std::sync::mpsc::channel::<()>();
    let mut daemon = Daemon::new(move |guest| {
        let _ = held.recv();
        drop(guest);
    });
    let outcome = link::register(&daemon.path, &Registration::new(GPU, 7), None, ms(20));
    assert_eq!(outcome.err(), Some(Error::TimedOut));
    drop(hold);
    daemon.thread.take().unwrap().join().unwrap();
}

#[test]
fn a_daemon_that_never_accepts_is_given_up_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = CString::new(folder.path().join("socket").as_os_str().as_bytes()).unwrap();
    let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::bind(&listener, &SocketAddrUnix::new(path.as_c_str()).unwrap()).unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let asked = Registration::new(GPU, 7);
    let outcomes: Vec<_> = (0..3).map(|_| link::register(&path, &asked, None, ms(10)).err()).collect();
    assert!(outcomes.iter().all(|outcome| *outcome == Some(Error::TimedOut)), "{outcomes:?}");
}

#[test]
fn a_daemon_that_hangs_up_is_noticed() {
    assert_eq!(Daemon::new(|guest| drop(read_request(&guest))).register(ms(10_000)), Err(Error::HungUp));
    let missing = link::register(c"/nowhere/socket", &Registration::new(GPU, 7), None, ms(10));
    assert!(matches!(missing.err(), Some(Error::Connect(_))));
    let long = CString::new(vec![b'x'; 200]).unwrap();
    let long = link::register(&long, &Registration::new(GPU, 7), None, ms(10));
    assert!(matches!(long.err(), Some(Error::Connect(_))));
}

#[test]
fn the_daemon_tells_nonsense_from_requests_and_closes_what_comes_with_it() {
    let (here, there) = socketpair();
    assert_eq!(link::receive(here.as_fd()), Ok(Received::Nothing));
    send(&there, b"{\"verb\":\"status\"}", &[]);
    assert_eq!(link::receive(here.as_fd()), Ok(Received::Nonsense(Malformed::Magic)));
    let request = Request::Register(Registration::new(GPU, 7));
    let mut long = request.encode().to_vec();
    long.extend([0; 1_000]);
    send(&there, &long, &[]);
    assert!(matches!(link::receive(here.as_fd()), Ok(Received::Nonsense(Malformed::Length(_)))));
    let (reader, writer) = std::io::pipe().unwrap();
    send(&there, &request.encode(), &[writer.into()]);
    assert_eq!(link::receive(here.as_fd()), Ok(Received::Request(request)));
    // Nobody has the writing end any more, so the pipe has ended.
    assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0));
    drop(there);
    assert_eq!(link::receive(here.as_fd()), Ok(Received::End));
    let refused = Reply::Refused(Reason::Failed);
    assert_eq!(link::reply(here.as_fd(), &refused, None), Err(Error::HungUp));
}

#[test]
fn a_seated_tenant_hears_its_terms_and_the_end() {
    let (here, there) = socketpair();
    assert_eq!(link::hear(there.as_fd()), Heard::Nothing);
    let terms = [Class::Latency, Class::BestEffort].map(|class| Terms {
        class,
        memory: Some(Bytes(1 << 30)),
        paused: true,
        ..Terms::default()
    });
    for terms in terms {
        link::reply(here.as_fd(), &Reply::NewTerms(terms), None).unwrap();
    }
    send(&here, b"what a later version may say", &[]);
    for terms in terms {
        assert_eq!(link::hear(there.as_fd()), Heard::NewTerms(terms));
    }
    assert_eq!(link::hear(there.as_fd()), Heard::Unknown);
    assert_eq!(link::hear(there.as_fd()), Heard::Nothing);
    drop(here);
    assert_eq!(link::hear(there.as_fd()), Heard::End);
}

#[test]
fn terms_are_no_answer_to_a_registration() {
    let (file, _) = seated(GPU);
    let bytes = Reply::NewTerms(Terms::default()).encode().to_vec();
    let outcome = Daemon::answering(bytes, copies(&file, 1)).register(ms(10_000));
    assert_eq!(outcome, Err(Error::Malformed(Malformed::Value)));
}

#[test]
fn the_daemon_does_not_wait_for_one_who_does_not_read() {
    let (here, _there) = socketpair();
    let refused = Reply::Refused(Reason::Failed);
    let stuck = (0..100_000).find_map(|_| link::reply(here.as_fd(), &refused, None).err());
    assert_eq!(stuck, Some(Error::Talk(rustix::io::Errno::AGAIN)));
}

fn socketpair() -> (OwnedFd, OwnedFd) {
    let flags = rustix::net::SocketFlags::CLOEXEC;
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}
