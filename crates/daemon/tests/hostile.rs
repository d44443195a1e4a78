//! Those who mean no good, or cannot do better: nobody else should notice.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::io::{IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use board::Gpu;
use board::link::{Registration, Request};
use common::{Daemon, folder, register, registration, wait_for};
use daemon::client;
use rustix::fd::OwnedFd;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, send, sendmsg, socket_with,
};
use rustix::process::Signal;

#[test]
#[ignore = "another role of this program, not a test"]
fn role() {
    common::play();
}

/// A connection to the tenants' socket that does not wait.
fn knock(daemon: &Daemon) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let address = SocketAddrUnix::new(daemon.place.socket()).unwrap();
    connect(&socket, &address).ok().map(|()| socket)
}

fn hear(socket: &OwnedFd) -> Option<usize> {
    recv(socket, &mut [0; 4096][..], RecvFlags::DONTWAIT).ok().map(|(length, _)| length)
}

/// Whether somebody who behaves is served, at the latest when the others have been given up.
fn is_well(daemon: &Daemon) {
    wait_for("a seat for somebody who behaves", || register(&daemon.place, &registration("good")).is_ok());
    wait_for("an answer", || client::answers(&daemon.place));
}

#[test]
fn nonsense_ends_its_own_connection_only() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let (_connection, board, granted) = register(&daemon.place, &registration("bystander")).unwrap();
    let good = Request::Register(registration("x")).encode();
    let mut flipped = good;
    flipped.iter_mut().for_each(|byte| *byte ^= 0x55);
    let messages: [&[u8]; 8] =
        [b"\0", b"{", b"{}", &good[..good.len() / 2], &flipped, &[0xff; 4096], &[b'{'; 60_000], &[0; 4097]];
    for message in messages {
        let socket = knock(&daemon).unwrap();
        send(&socket, message, SendFlags::NOSIGNAL).unwrap();
        // An answer perhaps, and then the end.
        wait_for("the end of the connection", || {
            hear(&socket).is_none_or(|length| length == 0) && {
                std::thread::sleep(Duration::from_millis(1));
                hear(&socket) == Some(0)
            }
        });
    }
    assert!(board.sit(granted.place).unwrap().is_mine());
    is_well(&daemon);
}

#[test]
fn a_tenant_that_goes_on_talking_loses_its_seat() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let (connection, _, _) = register(&daemon.place, &registration("talker")).unwrap();
    send(&connection, b"and another thing", SendFlags::NOSIGNAL).unwrap();
    wait_for("the seat is free", || daemon.processes().is_empty());
}

#[test]
fn thousands_of_connections_that_say_nothing_are_given_up() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let (_connection, board, granted) = register(&daemon.place, &registration("bystander")).unwrap();
    let silent: Vec<_> = (0..3000).filter_map(|_| knock(&daemon)).collect();
    assert!(!silent.is_empty());
    is_well(&daemon);
    assert!(board.sit(granted.place).unwrap().is_mine());
    wait_for("all are given up", || silent.iter().all(|socket| hear(socket) == Some(0)));
}

#[test]
fn readers_that_never_read_are_given_up() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    // A report that is longer than a socket has room for.
    let seats: Vec<_> = (0..4u8)
        .flat_map(|gpu| (0..100).map(move |_| Registration { gpu: Gpu([gpu; 16]), ..registration("crowd") }))
        .map(|claim| register(&daemon.place, &claim).unwrap())
        .collect();
    assert_eq!(daemon.processes().len(), seats.len());
    let deaf: Vec<_> = (0..50).filter_map(|_| knock(&daemon)).collect();
    for socket in &deaf {
        let _ = send(socket, b"{\"verb\":\"status\"}", SendFlags::NOSIGNAL);
    }
    is_well(&daemon);
    assert_eq!(daemon.processes().len(), seats.len());
}

#[test]
fn an_admin_that_talks_nonsense_gets_answers_and_no_more_room_than_a_line() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let mut admin = UnixStream::connect(daemon.place.admin_socket()).unwrap();
    admin
        .write_all(b"hello\n{\"verb\":\"status\"}\n{\"verb\":\"pause\",\"target\":\"x\"}\n{\"verb\":\"set\"")
        .unwrap();
    let mut said = Vec::new();
    let mut piece = [0; 4096];
    while said.iter().filter(|&&byte| byte == b'\n').count() < 3 {
        let length = admin.read(&mut piece).unwrap();
        said.extend_from_slice(&piece[..length]);
    }
    let lines: Vec<_> = String::from_utf8(said).unwrap().lines().map(str::to_owned).collect();
    assert!(lines[0].contains("not understood") && lines[1].contains("\"ok\":true"), "{lines:?}");
    assert!(lines[2].contains("no tenant x"), "{lines:?}");
    // A line without end.
    let mut endless = UnixStream::connect(daemon.place.admin_socket()).unwrap();
    let ended = (0..1000).any(|_| endless.write_all(&[b'x'; 4096]).is_err());
    assert!(ended || endless.read(&mut piece).is_ok_and(|length| length == 0));
    is_well(&daemon);
}

/// Two ends of a connection, of which the first takes some seconds to close: it has something to send that the other never reads.
fn stubborn() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    stream.set_nonblocking(true).unwrap();
    while stream.write(&[0; 1 << 16]).is_ok() {}
    set_socket_linger(&stream, Some(Duration::from_secs(5))).unwrap();
    (stream, other)
}

/// Sends a message with a file beside it, as often as is said.
fn show(socket: &OwnedFd, message: &[u8], file: impl AsFd, times: usize) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    let files = vec![file.as_fd(); times];
    assert!(beside.push(SendAncillaryMessage::ScmRights(&files)));
    sendmsg(socket, &[IoSlice::new(message)], &mut beside, SendFlags::NOSIGNAL).unwrap();
}

/// How many threads of the daemon close a file.
fn closing(daemon: &Daemon) -> usize {
    let threads = fs::read_dir(format!("/proc/{}/task", daemon.actor.pid())).unwrap().flatten();
    let names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|name| name.trim_end() == "ebb-close").count()
}

#[test]
fn files_that_do_not_let_themselves_be_closed_are_few_however_many_show_them_at_once() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let (_connection, board, granted) = register(&daemon.place, &registration("bystander")).unwrap();
    let newcomers: Vec<_> = (0..40).map(|_| knock(&daemon).unwrap()).collect();
    wait_for("an answer, so that all are let in", || client::answers(&daemon.place));
    // The last who has a file is who waits for its end, and that is to be the daemon.
    daemon.actor.signal(Signal::STOP);
    let others: Vec<_> = newcomers
        .iter()
        .map(|newcomer| {
            let (stream, other) = stubborn();
            show(newcomer, b"nonsense", &stream, 4);
            other
        })
        .collect();
    daemon.actor.signal(Signal::CONT);
    wait_for("eight of them", || closing(&daemon) >= 8);
    let most = (0..100).map(|_| {
        std::thread::sleep(Duration::from_millis(5));
        closing(&daemon)
    });
    assert_eq!(most.max(), Some(8));
    assert!(board.sit(granted.place).unwrap().is_mine());
    // Who was not heard is given up like others who say nothing.
    wait_for("the others' end", || newcomers.iter().all(|socket| hear(socket) == Some(0)));
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(
        log.contains("was turned away: files that it has shown do not let themselves be closed"),
        "{log}"
    );
    is_well(&daemon);
    drop(others);
}

#[test]
fn files_that_nobody_takes_hold_nobody_up() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let (talker, _, _) = register(&daemon.place, &registration("talker")).unwrap();
    let (quiet, board, granted) = register(&daemon.place, &registration("quiet")).unwrap();
    let silent = knock(&daemon).unwrap();
    // All are there before it hears the first, after which it may hang up.
    daemon.actor.signal(Signal::STOP);
    let others: Vec<_> = [&talker, &silent, &silent]
        .into_iter()
        .map(|socket| {
            let (stream, other) = stubborn();
            show(socket, b"nonsense", &stream, 4);
            other
        })
        .collect();
    daemon.actor.signal(Signal::CONT);
    assert!(client::answers(&daemon.place), "what a tenant sends beside a message is closed at once");
    wait_for("the seat is free", || daemon.processes().len() == 1);
    wait_for("the end of the connection", || hear(&silent) == Some(0));
    assert!(client::answers(&daemon.place) && board.sit(granted.place).unwrap().is_mine());
    drop((quiet, others));
}

#[test]
fn many_who_show_good_files_at_once_are_all_seated() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let good = tempfile::tempfile().unwrap();
    let newcomers: Vec<_> = (0..100).map(|_| knock(&daemon).unwrap()).collect();
    for newcomer in &newcomers {
        show(newcomer, &Request::Register(registration("good")).encode(), &good, 1);
    }
    wait_for("all to be seated", || daemon.processes().len() == newcomers.len());
    wait_for("the files' end", || closing(&daemon) == 0);
}
